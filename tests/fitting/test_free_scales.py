"""Directions of free scales keep the fit, and lead places back within the bounds."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.fitting.free_scales import FreeScales
from odefit.simulation import Evaluation

TIMES = np.linspace(0.5, 20.0, 25)


def prey(observed: str = "x") -> tuple[ForwardMap, Array]:
    """Prey and predators, of which the number of predators has no unit if only prey are seen."""
    model = Model(ode={"x": "a*x - b*x*y", "y": "c*x*y - d*y"}, observables={"z": observed})
    rates = {name: {"lower": 1e-3, "upper": 1e2, "scale": "log10"} for name in "abcd"}
    initial = {name: {"lower": 0.1, "upper": 100.0} for name in "xy"}
    values = 5.0 + np.sin(TIMES)
    problem = Problem(
        model, {"t": TIMES, "z": values}, rates, initial, noise={"z": {"sd": 0.2}}, t0=0.0
    )
    truth = {"a": 1.1, "b": 0.4, "c": 0.12, "d": 0.7, "x": 7.0, "y": 4.0}
    return ForwardMap(problem), problem.vector(truth)


def scales(forward: ForwardMap, vector: Array) -> FreeScales:
    at = forward.evaluate(vector)
    assert isinstance(at, Evaluation)
    return FreeScales.of(forward, vector, at)


def test_the_unit_of_an_unobserved_state_is_free() -> None:
    forward, vector = prey()
    found = scales(forward, vector)
    (direction,) = found.directions
    b, y = (forward.problem.keys.index(name) for name in "by")
    assert direction[b] == pytest.approx(-direction[y], rel=1e-6)
    assert np.delete(direction, [b, y]) == pytest.approx(np.zeros(4), abs=1e-6)


def test_a_place_outside_the_bounds_is_centred_with_the_same_fit() -> None:
    forward, vector = prey()
    outside = vector.copy()
    b, y = (forward.problem.keys.index(name) for name in "by")
    outside[b] *= 100.0
    outside[y] /= 100.0
    assert outside[y] < forward.problem.lower[y]
    place = scales(forward, vector).centred(outside)
    assert ((forward.problem.lower < place) & (place < forward.problem.upper)).all()
    assert forward.cost(place) == pytest.approx(forward.cost(vector), rel=1e-6)
    assert scales(forward, vector).centred(place) == pytest.approx(place)


def test_nothing_is_free_if_both_states_are_observed() -> None:
    forward, vector = prey("x + y")
    assert len(scales(forward, vector).directions) == 0
    assert scales(forward, vector).centred(vector) is vector
