"""Random points modulo the prime satisfy the algebraic constraints."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.modular_points import GrowingSeries, modular_point
from odefit.structure.series.number_fields import PRIME
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


def test_gradients_are_the_same_however_the_orders_grow() -> None:
    model = problem({"x": "-a*x*z", "z": "b*x - z"}, {"y": "x", "w": "c*z"}, ["a", "b", "c"])
    system = DifferentiatedSystem(model, free_states=False)
    values, points = modular_point(system, np.random.default_rng(1), 20)
    growing = GrowingSeries(system, values, points, 20)
    taylor = system.run_modular(0, values[None], 20, points[0])
    assert taylor.derivatives is not None
    for order in (0, 1, 2, 9, 5, 20):
        for output in (0, 1):
            expected = taylor.derivatives[0, order, output]
            assert (growing.gradient(0, order, output)[system.columns[0]] == expected).all()
            assert growing.output(0, order, output) == taylor.outputs[0, order, output]
