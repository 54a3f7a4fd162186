"""Random points modulo the prime satisfy the algebraic constraints."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.structure.differentiated_system import DifferentiatedSystem
from odefit.structure.modular_points import modular_point
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
def test_all_constraints_hold(term: str, algebraic: dict[str, str], seed: int) -> None:
    model = problem({"x": f"-x + {term}"}, {"y": "x"}, ["a"], algebraic=algebraic)
    system = DifferentiatedSystem(model, free_states=False)
    rng = np.random.default_rng(seed)
    values, points = modular_point(system, rng, 2)
    assert np.all((values > 0) & (values < PRIME))
    expansion = system.expansions[0]
    taylor = system.run_modular(0, values[None], 2, points[0])
    # At every order, since what is constrained is constant in time.
    assert not taylor.outputs[0, :, len(expansion.observables) : expansion.outputs].any()
