"""Whatever does not integrate refuses what only integration handles, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

import odefit
from odefit import Event, Experiment, InputError, Model, Problem
from odefit.methods.registry import METHODS, OPTIONS, make_method
from odefit.problem.variants.features import integrated_features, refuse_integrated_features

DATA = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.8, 0.9]}

INTEGRATING = {"automatic", "multi-start", "single-shooting"}
"""Methods that integrate from the initial values."""


def problem(*experiments: Experiment) -> Problem:
    return Problem(
        Model(ode={"x": "k - d*x"}),
        parameters={"k": {"lower": 0.1, "upper": 2.0}, "d": {"lower": 0.1, "upper": 2.0}},
        initial={"x": 1.0},
        experiments=experiments,
    )


def run(name: str = "a", *events: Event, **more: Any) -> Experiment:
    return Experiment(name, DATA, events=events, **more)


def test_problems_without_narrow_features_have_no_stops() -> None:
    assert integrated_features(problem(run("a", Event((1.0,), {"x": "2*x"})))) == ()


def test_each_feature_is_named_with_its_experiments() -> None:
    after = Event((1.0,), {"x": "2*x"}, measured="after")
    found = integrated_features(
        problem(
            run("a", steady_state=True),
            run("b", Event(("1/k",), {"x": "x"}), steady_state=True),
            run("c", after, steady_state=True),
        )
    )
    assert found == (
        'experiments "a", "b" and 1 more begin at a steady state',
        'experiment "b" has events at times that depend on the unknowns',
        'experiment "c" has measurements that see the values after an event of their time',
    )


def test_events_without_later_measurements_are_not_a_feature() -> None:
    between = Event((1.5,), {"x": "2*x"}, measured="after")
    assert integrated_features(problem(run("a", between))) == ()
    at_data = problem(run("a", Event((1.0,), {"x": "2*x"}, measured="after")))
    assert integrated_features(at_data)
    assert integrated_features(at_data, on_nodes=True) == ()


def test_the_refusal_is_one_sentence() -> None:
    with pytest.raises(InputError) as refused:
        refuse_integrated_features(problem(run(steady_state=True)), "this analysis")
    assert str(refused.value) == (
        'this analysis cannot take this problem: experiment "a" begins at a steady state; take a '
        "method that integrates from the initial values, such as the default or multi-start"
    )


@pytest.mark.parametrize("name", sorted(set(METHODS) - INTEGRATING))
def test_methods_that_do_not_integrate_refuse(name: str) -> None:
    method = make_method(name, dict.fromkeys(OPTIONS))
    with pytest.raises(InputError, match="begins at a steady state"):
        odefit.fit(problem(run(steady_state=True)), method)


def test_structural_analysis_says_why_there_is_none() -> None:
    found = odefit.identifiability(problem(run(steady_state=True)))
    assert found.reason == 'experiment "a" begins at a steady state'
