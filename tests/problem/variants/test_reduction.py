"""Tests of smaller problems with the same cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.methods.starts import sample
from odefit.problem.variants.reduction import idle_states, reduced
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED

CHAIN = {"a": "-k1*a", "b": "k1*a - k2*b", "waste": "k2*b", "total": "waste + b"}
T = [0.5, 1.0, 2.0, 4.0]


def experiment(name: str, times: Sequence[float] = T, **more: Any) -> Experiment:
    rng = np.random.default_rng(len(name))
    data = {"t": np.array(times), "y": rng.uniform(0.1, 1.0, len(times))}
    return Experiment(name, data, **more)


def problem(
    *experiments: Experiment,
    ode: Mapping[str, str] = CHAIN,
    observable: str = "s*b",
    initial: Mapping[str, Any] | None = None,
    **more: Any,
) -> Problem:
    states = dict.fromkeys(ode, 0.0) | {"a": 1.0} | dict(initial or {})
    unknowns = {"k1": (0.1, 2.0), "k2": (0.1, 2.0), "s": (0.5, 2.0)}
    model = Model(ode, {"y": observable})
    given = experiments or (experiment("one"),)
    return Problem(model, None, unknowns, states, experiments=given, **more)


def check_same_cost(whole: Problem) -> Problem:
    """Return the smaller problem, after comparing it with the whole one at random unknowns."""
    smaller = reduced(whole)
    assert smaller is not None
    assert smaller.problem.keys == whole.keys
    assert smaller.problem.size == whole.size
    of_whole, of_smaller = ForwardMap(whole), ForwardMap(smaller.problem)
    for vector in sample(whole, 0, 3, 1):
        expected, found = (f.evaluate(vector, UNDECIDED) for f in (of_whole, of_smaller))
        assert isinstance(expected, Evaluation)
        assert isinstance(found, Evaluation)
        assert found.cost == pytest.approx(expected.cost, rel=1e-7)
        gradients = [at.jacobian.T @ at.residuals for at in (expected, found)]
        assert gradients[1] == pytest.approx(gradients[0], rel=1e-5, abs=1e-8)
    return smaller.problem


def test_products_that_nothing_measured_depends_on_are_idle() -> None:
    assert idle_states(problem()) == {"waste", "total"}
    assert check_same_cost(problem()).model.states == ("a", "b")


def test_a_state_in_an_observable_or_in_the_noise_is_needed() -> None:
    assert idle_states(problem(observable="s*total")) == frozenset()
    noisy = problem(noise={"y": {"sd": "0.1 + 0.1*waste"}})
    assert idle_states(noisy) == {"total"}
    check_same_cost(noisy)


def test_the_condition_of_an_event_is_needed_if_the_event_changes_more_than_idle_states() -> None:
    stop = Event((), when="waste > 0.2", assign={"b": "0.5*b"})
    assert idle_states(problem(experiment("one", events=[stop]))) == {"total"}
    clean = Event((), when="waste > 0.2", assign={"total": "0"})
    whole = problem(experiment("one", events=[clean]))
    assert idle_states(whole) == {"waste", "total"}
    assert check_same_cost(whole).conditions[0].located == ()


def test_a_timed_event_keeps_what_it_assigns_to_other_states() -> None:
    both = Event((1.0,), {"b": "b + 1", "waste": "0"})
    smaller = check_same_cost(problem(experiment("one", events=[both])))
    assert [set(assign) for _, assign in smaller.conditions[0].events] == [{"b"}]


def test_every_state_takes_part_in_a_steady_state() -> None:
    ode = {"a": "1 - k1*a", "b": "k1*a - k2*b", "waste": "k2*b - waste"}
    steady = problem(experiment("one", steady_state=True), ode=ode)
    assert idle_states(steady) == frozenset()
    assert reduced(steady) is None


def test_the_initial_value_of_an_idle_state_stays_an_unknown() -> None:
    whole = problem(initial={"waste": {"lower": 0.0, "upper": 1.0}})
    assert "waste" in whole.keys
    check_same_cost(whole)


def test_replicates_given_as_experiments_have_one_trajectory() -> None:
    whole = problem(experiment("first"), experiment("second", [0.5, 1.5, 4.0]))
    smaller = check_same_cost(whole)
    (condition,) = smaller.conditions
    assert condition.times.tolist() == [0.5, 1.0, 1.5, 2.0, 4.0]
    assert condition.series["y"].rows.tolist() == [0, 0, 1, 2, 3, 4, 4]


def test_experiments_that_differ_in_an_event_or_a_constant_are_not_joined() -> None:
    dose = Event((1.0,), {"b": "b + 1"})
    whole = problem(experiment("first"), experiment("second", events=[dose]), experiment("third"))
    smaller = reduced(whole)
    assert smaller is not None
    assert smaller.places == (0, 1, 0)
    check_same_cost(whole)


def test_values_with_and_without_standard_deviations_are_joined() -> None:
    data = {"t": [0.5, 3.0], "y": [0.4, 0.2], "y_sd": [0.05, 0.02]}
    whole = problem(experiment("first"), Experiment("second", data), noise={"y": {"sd": 0.3}})
    (condition,) = check_same_cost(whole).conditions
    sds = condition.series["y"].sds
    assert sds is not None
    assert np.isnan(sds).tolist() == [True, False, True, True, False, True]


def test_correlated_noise_keeps_each_series() -> None:
    noise = {"y": {"sd": 0.1, "correlation": "ou", "correlation_time": 1.0}}
    whole = problem(experiment("first"), experiment("second"), noise=noise)
    smaller = reduced(whole)
    assert smaller is not None
    assert len(smaller.problem.conditions) == 2


def test_a_problem_without_idle_states_is_not_reduced() -> None:
    assert reduced(problem(ode={"a": "-k1*a", "b": "k1*a - k2*b"})) is None
