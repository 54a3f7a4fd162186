"""A model with comparisons of the time is as exact and as fast as one with events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit.problem import Event, Experiment, Model, Problem
from odefit.simulation import Evaluation, ForwardMap

TIMES = np.linspace(0.0, 30.0, 16)
DATA = {"t": TIMES, "x": np.ones(16), "y": np.ones(16)}


def evaluated(problem: Problem, at: Any = None, **keys: Any) -> tuple[Any, Any]:
    vector = np.linspace(0.2, 0.5, len(problem.keys)) if at is None else np.array(at)
    found = ForwardMap(problem, **keys).evaluate(vector)
    assert isinstance(found, Evaluation)
    return found.residuals, found.jacobian


def made(ode: dict[str, str], **experiment: Any) -> Problem:
    return Problem(
        Model(ode=ode, constants={"beta": 0.57, "gamma": 0.1}),
        experiments=[Experiment("one", DATA, **experiment)],
        parameters={k: {"lower": 0.0, "upper": 1.0} for k in ("b1", "b2", "b3", "b4")},
        initial={"x": 1.0, "y": 0.3},
    )


def test_an_epidemic_in_phases_equals_one_with_events() -> None:
    """The shape of Giordano et al. 2020: phases by conditions of the time that are joined."""
    phases = [4.0, 12.0, 22.0]
    rate = "piecewise(b1, t < 4, b2, t >= 4 && t < 12, b3, t >= 12 && t < 22, b4)"
    rate2 = "piecewise(0.3, t >= 12 && !(t > 22), b1*b2)"
    by_time = made({"x": f"0.2 - {rate}*x*y", "y": f"{rate}*x*y - {rate2}*y"})
    events = [
        Event((t,), {"beta": b, "gamma": g})
        for t, b, g in zip(phases, ["b2", "b3", "b4"], ["b1*b2", "0.3", "b1*b2"], strict=True)
    ]
    by_hand = made(
        {"x": "0.2 - beta*x*y", "y": "beta*x*y - gamma*y"},
        events=events,
        constants={"beta": "b1", "gamma": "b1*b2"},
    )
    assert len(by_time.conditions[0].events) == 3
    assert ForwardMap(by_time).field.smooth
    found, expected = evaluated(by_time), evaluated(by_hand)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("engine", ["heyoka", "runge-kutta", "bdf", "casadi"])
def test_values_that_are_infinite_where_they_do_not_count_do_no_harm(engine: str) -> None:
    """x' = b/sqrt(t - 4) after t = 4.5 has an exact solution."""
    ode = {"x": "piecewise(b1/sqrt(t - 4), t > 4.5, 0)", "y": "-b2*b3*b4*y"}
    problem = made(ode)
    x = 1.0 + 0.2 * 2 * (np.sqrt(np.maximum(TIMES - 4.0, 0.5)) - np.sqrt(0.5))
    residuals, jacobian = evaluated(problem, engine=engine)
    assert residuals[:16] == pytest.approx(x - 1.0, rel=1e-6, abs=1e-8)
    assert jacobian[:16, 0] == pytest.approx((x - 1.0) / 0.2, rel=1e-6, abs=1e-8)


def test_observables_are_evaluated_at_their_times() -> None:
    problem = Problem(
        Model(ode={"x": "0"}, observables={"z": "piecewise(b, t < 4, 2*b, t <= 6, 0)*x"}),
        data={"t": [2.0, 4.0, 6.0, 8.0], "z": [0.0, 0.0, 0.0, 0.0]},
        parameters={"b": {"lower": 0.0, "upper": 1.0}},
        initial={"x": 3.0},
    )
    residuals, jacobian = evaluated(problem, at=[0.5])
    assert np.abs(residuals) == pytest.approx([1.5, 3.0, 3.0, 0.0])
    assert np.abs(jacobian[:, 0]) == pytest.approx([3.0, 6.0, 6.0, 0.0])


def test_conditions_of_the_state_are_followed_by_the_implicit_engine() -> None:
    """x' = -1 above a, then x' = -x: the solution is known."""
    problem = Problem(
        Model(ode={"x": "-piecewise(1, x > a, x/a)"}),
        data={"t": TIMES[:5], "x": np.zeros(5)},
        parameters={"a": {"lower": 0.0, "upper": 5.0}},
        initial={"x": 4.0},
    )
    a, t = 2.0, TIMES[:5]
    expected = np.where(t < 4.0 - a, 4.0 - t, a * np.exp(-(t - (4.0 - a)) / a))
    residuals, _ = evaluated(problem, at=[a])
    assert np.abs(residuals) == pytest.approx(expected, rel=1e-6)
