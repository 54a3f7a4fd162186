"""Random points modulo the prime lie on the relations."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.structure.jets import JetSystem
from odefit.structure.points import modular_point
from odefit.structure.series import PRIME
from tests.structure.models import problem


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("term", "algebraic"),
    [
        ("sqrt(x + a)", {}),
        ("x^(1/3)", {}),
        ("sin(a*x)", {}),
        ("asin(x)*sqrt(a)", {}),
        ("z", {"z": "z^2 + a*z - x"}),
        ("z*v", {"z": "z*v - x*a", "v": "v^2 + z - sqrt(x)"}),
    ],
)
def test_all_zeros_vanish(term: str, algebraic: dict[str, str], seed: int) -> None:
    model = problem({"x": f"-x + {term}"}, {"y": "x"}, ["a"], algebraic=algebraic)
    system = JetSystem(model, "initial")
    rng = np.random.default_rng(seed)
    values, around = modular_point(system, rng, 2)
    assert np.all((values > 0) & (values < PRIME))
    block = system.blocks[0]
    jets = system.residues(0, values, 2, rng, around[0])
    # At every order, since the zeros are first integrals.
    assert not jets.outputs[0, :, len(block.observables) : block.outputs].any()
