"""The first step from a point where derivatives have no bounds, beside exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.propagation.resting import is_steep

TIMES = np.array([0.0, 0.01, 0.3, 1.0, 2.5, 7.0])


def problem(rate: str, **more: str) -> Problem:
    """A state that grows from zero, and one whose rate is steep there; both are measured."""
    model = Model(ode={"C": "k", "R": rate, **more}, observables={"c": "C", "r": "R"})
    data = {"t": TIMES, "c": np.ones(6), "r": np.ones(6)}
    unknowns = {"k": {"guess": 2.0}, "a": {"guess": 0.7}}
    return Problem(model, data, unknowns, {"C": 0.0, "R": 0.0, **dict.fromkeys(more, 1.0)})


@pytest.mark.parametrize("engine", ["auto", "heyoka", "bdf"])
@pytest.mark.parametrize("power", [0.5, 1 / 3, 0.75, 1.5])
@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-9])
def test_a_power_of_what_begins_at_zero_is_integrated(
    engine: str, power: float, unit: float
) -> None:
    """R' = a C^p with C = k t gives R = a k^p t^(p + 1)/(p + 1), and its derivatives."""
    k, a = 2.0 * unit, 0.7
    given = problem(f"a*{unit!r}*(C/{unit!r})^{power!r}")
    forward = ForwardMap(given, engine)  # type: ignore[arg-type]
    found = forward.evaluate(np.array([k, a]))
    assert not isinstance(found, odefit.Failure), found
    courses = forward.trajectories(np.array([k, a]))
    assert not isinstance(courses, odefit.Failure)
    (course,) = courses
    exact = unit * a * 2.0**power * TIMES ** (power + 1) / (power + 1)
    scale = exact[-1]
    assert course.states[:, 1] / scale == pytest.approx(exact / scale, rel=1e-7, abs=1e-9)
    by_k, by_a = course.sensitivities[:, 1].T
    assert by_k * k / scale == pytest.approx(power * exact / scale, rel=1e-6, abs=1e-8)
    assert by_a * a / scale == pytest.approx(exact / scale, rel=1e-6, abs=1e-8)


def test_a_state_that_leaves_zero_after_an_event_is_integrated() -> None:
    """The event empties the tank, which fills again as it did at first."""
    model = Model(ode={"C": "k", "R": "a*sqrt(C)"}, observables={"c": "C", "r": "R"})
    data = {"t": np.array([1.0, 2.0, 3.0]), "c": np.ones(3), "r": np.ones(3)}
    emptied = Event((1.0,), {"C": 0.0, "R": 0.0})
    run = Experiment("run", data, t0=0.0, events=(emptied,))
    given = Problem(
        model, parameters={"k": {}, "a": {}}, initial={"C": 0.0, "R": 0.0}, experiments=[run]
    )
    found = odefit.simulate(given, np.array([2.0, 0.7]))
    assert not isinstance(found, odefit.Failure)
    exact = 0.7 * np.sqrt(2.0) * np.array([1.0, 1.0, 2.0]) ** 1.5 / 1.5
    assert found.states["R"] == pytest.approx(exact, rel=1e-8)


def test_a_tank_that_fills_from_empty_is_fitted() -> None:
    """A h' = q - c sqrt(h) from h(0) = 0 has an exact solution t(h)."""
    c, area, q = 0.1, 0.99, 0.25
    level = np.linspace(0.02, 0.9, 9) * (q / c) ** 2
    root = np.sqrt(level)
    times = -2 * area / c**2 * (c * root + q * np.log(1 - c * root / q))
    model = Model(ode={"h": f"({q!r} - c*sqrt(h))/A"})
    unknowns = {"c": {"lower": 0.01, "upper": 1.0}, "A": {"lower": 0.1, "upper": 10.0}}
    given = Problem(model, {"t": times, "h": level}, unknowns, {"h": 0.0}, t0=0.0)
    result = odefit.fit(given, seed=1, jobs=1)
    assert result.best.vector == pytest.approx([c, area], rel=1e-6)


def test_only_roots_and_broken_powers_are_steep() -> None:
    texts = {"a*sqrt(C)": True, "a*C^0.3": True, "C^a": True, "a*C^2": False, "a*C/(1 + C)": False}
    for text, steep in texts.items():
        given = problem(text)
        assert is_steep(VectorField.of(given.model, given.conditions)) == steep
