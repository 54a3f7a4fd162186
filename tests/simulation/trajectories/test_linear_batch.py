"""Linear equations of many conditions at once, beside the engines that integrate each alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Parameter, Problem
from odefit.simulation import Evaluation, Failure
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.linear.forms import FEWEST
from odefit.simulation.trajectories.conditions import ConditionsMap
from odefit.simulation.trajectories.linear_batch import LinearBatch
from odefit.simulation.trajectories.unit_outcome import UnitOutcome
from tests.simulation.numerics import Array

ORAL = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood + leak"})
SPRING = Model(ode={"gut": "blood", "blood": "-ka*gut - ke*blood + leak"})
TIMES = np.array([0.0, 0.5, 3.0, 11.0, 12.0, 30.0])

CASES: dict[str, tuple[Model, list[Event]]] = {
    "no event": (ORAL, []),
    "bolus": (ORAL, [Event((0.0, 12.0), {"gut": "gut + F*5"})]),
    "measured after": (ORAL, [Event((0.0, 12.0, 30.0), {"gut": "gut + 5"}, measured="after")]),
    "lag": (ORAL, [Event(("lag", "12 + lag"), {"gut": "gut + 5*F"})]),
    "lag beside known times": (
        ORAL,
        [Event(("2 + lag", "lag - 3"), {"gut": "gut + 5"}), Event((1.0,), {"blood": "blood + F"})],
    ),
    "part is taken away": (ORAL, [Event((2.0, "lag"), {"blood": "0.7*F*blood", "gut": "gut + 3"})]),
    "moved": (ORAL, [Event((2.0,), {"blood": "blood + F*gut", "gut": "0"})]),
    "oscillation": (SPRING, [Event((2.0, "4 + lag"), {"gut": "gut + F"})]),
}


def subjects(model: Model, events: list[Event], count: int = 5) -> Problem:
    """Subjects with a rate of their own, at times of their own."""
    experiments = [
        Experiment(
            f"{k}",
            {"t": (TIMES[k % 2 :] + 0.01 * k), "blood": np.ones(len(TIMES) - k % 2)},
            t0=0.01 * k,
            events=[
                Event(tuple(_later(t, 0.01 * k) for t in e.times), e.assign, measured=e.measured)
                for e in events
            ],
        )
        for k in range(count)
    ]
    return Problem(
        model,
        parameters={
            "ka": Parameter(lower=0.0, per_experiment=True),
            **{name: {} for name in ("ke", "leak", "F", "lag")},
        },
        initial={"gut": {}, "blood": {}},
        experiments=experiments,
    )


def _later(time: Any, by: float) -> Any:
    return time + by if isinstance(time, float) else f"{time} + {by}"


def values(problem: Problem) -> Array:
    """Values of the unknowns, another rate for each subject."""
    usual = {"ke": 0.13, "leak": 0.02, "F": 0.8, "lag": 0.4, "gut": 1.5, "blood": 0.7}
    return np.array([usual.get(key, 1.1 + 0.1 * k) for k, key in enumerate(problem.keys)])


def alone(forward: ForwardMap, vector: Array) -> Evaluation:
    """The evaluation without batches."""
    with patch.object(ConditionsMap, "_batched", lambda *_: {}):
        found = forward.evaluate(vector)
    assert isinstance(found, Evaluation)
    return found


def batched(forward: ForwardMap, vector: Array) -> Evaluation:
    """The evaluation with them; all conditions have to be in them."""
    with patch("odefit.simulation.trajectories.conditions._integrate", None):
        found = forward.evaluate(vector)
    assert isinstance(found, Evaluation)
    return found


@pytest.mark.parametrize("name", list(CASES))
def test_values_are_those_of_each_condition_alone(name: str) -> None:
    problem = subjects(*CASES[name])
    forward, vector = ForwardMap(problem), values(problem)
    one, other = batched(forward, vector), alone(forward, vector)
    assert one.residuals == pytest.approx(other.residuals, rel=1e-10, abs=1e-11)
    assert one.jacobian == pytest.approx(other.jacobian, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("lag", [0.0, 0.5, 11.0, 12.0, 12.0 + 1e-14, 40.0])
def test_a_dose_at_the_time_of_a_measurement_is_one_after_it(lag: float) -> None:
    problem = subjects(*CASES["lag"])
    vector = values(problem)
    vector[problem.keys.index("lag")] = lag
    forward = ForwardMap(problem)
    one, other = batched(forward, vector), alone(forward, vector)
    assert one.residuals == pytest.approx(other.residuals, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("name", ["bolus", "lag", "part is taken away", "oscillation"])
def test_a_condition_has_the_same_values_beside_any_others(name: str) -> None:
    problem = subjects(*CASES[name], count=7)
    forward, vector = ForwardMap(problem), values(problem)
    every = forward.trajectories(vector)
    assert not isinstance(every, Failure)
    choices = [every[-1].choice] * 7
    for numbers in ([2], [0, 3, 6], [5, 1]):
        some = forward.integrate_units(numbers, vector, choices, True)
        for number in numbers:
            found = some[number].trajectories
            assert not isinstance(found, Failure)
            assert np.array_equal(found[number].states, every[number].states)
            assert np.array_equal(found[number].sensitivities, every[number].sensitivities)


def test_units_elsewhere_have_the_values_of_those_here() -> None:
    problem = subjects(*CASES["lag"])
    here, there, vector = ForwardMap(problem), ForwardMap(problem), values(problem)
    asked: list[int] = []

    def elsewhere(
        numbers: Sequence[int],
        vector: Array,
        choices: Sequence[EngineChoice],
        sensitivities: bool,
    ) -> dict[int, UnitOutcome]:
        asked.extend(numbers)
        return ForwardMap(problem).integrate_units(numbers, vector, choices, sensitivities)

    there.integrate_elsewhere(elsewhere)
    one, other = here.evaluate(vector), there.evaluate(vector)
    assert isinstance(one, Evaluation)
    assert isinstance(other, Evaluation)
    assert np.array_equal(one.jacobian, other.jacobian)
    assert asked == [1, 2, 3, 4]


def test_states_that_have_not_moved_are_exact() -> None:
    problem = subjects(*CASES["bolus"]).with_unknowns(fix={"gut": 0.0, "blood": 0.0, "leak": 0.0})
    trajectories = ForwardMap(problem).trajectories(values(problem))
    assert not isinstance(trajectories, Failure)
    assert trajectories[0].times[0] == 0.0
    assert (trajectories[0].states[0] == 0.0).all()


def test_equal_rates_of_two_states_are_left_to_the_engines() -> None:
    problem = subjects(*CASES["bolus"])
    vector = values(problem)
    vector[problem.keys.index("ka[0]")] = vector[problem.keys.index("ke")]
    forward = ForwardMap(problem)
    calls: list[Any] = []
    with patch.object(LinearBatch, "__call__", _recorded(calls)):
        one = forward.evaluate(vector)
    assert isinstance(one, Evaluation)
    assert [found is None for found in calls[0]] == [True, False, False, False, False]
    assert one.residuals == pytest.approx(alone(forward, vector).residuals, rel=1e-9)


def _recorded(calls: list[Any]) -> Any:
    original = LinearBatch.__call__

    def call(self: LinearBatch, *arguments: Any) -> Any:
        found = original(self, *arguments)
        calls.append(found)
        return found

    return call


def test_few_conditions_are_left_to_the_engines() -> None:
    problem = subjects(*CASES["bolus"], count=FEWEST - 1)
    with patch.object(LinearBatch, "__call__", None):
        assert isinstance(ForwardMap(problem).evaluate(values(problem)), Evaluation)


def test_nonlinear_equations_are_left_to_the_engines() -> None:
    model = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood^2 + leak"})
    problem = subjects(model, CASES["bolus"][1])
    with patch.object(LinearBatch, "__call__", None):
        assert isinstance(ForwardMap(problem).evaluate(values(problem)), Evaluation)
