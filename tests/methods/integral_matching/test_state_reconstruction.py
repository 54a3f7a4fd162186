"""States from observables that are known linear combinations of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, IntegralMatching, Model, Noise, Problem
from odefit.common.arrays import Array
from odefit.methods.integral_matching.state_reconstruction import AffineObservables, measured_states
from tests.methods.integral_matching.problems import CHAIN, DECAY, T, matched, worst

ODE = {"x": "-a*x", "w": "a*x - b*w"}
TRUTH = {"a": 0.7, "b": 0.7, "x": 1.0, "w": 0.0}


def observed(observables: Mapping[str, str], data: Mapping[str, Array], **more: Any) -> Problem:
    arguments: dict[str, Any] = {
        "model": Model(ode=ODE, observables=observables, **more.pop("of_model", {})),
        "data": {"t": T, **data},
        "parameters": {"a": {}, "b": {}, **more.pop("parameters", {})},
        "initial": {"x": {}, "w": {}},
        **more,
    }
    return Problem(**arguments)


def seen(problem: Problem) -> set[str]:
    return measured_states(problem.model, problem.conditions)


@pytest.mark.parametrize(
    ("observables", "data"),
    [
        ({"y": "x", "z": "w"}, {"y": DECAY, "z": CHAIN}),
        ({"y": "x/3", "z": "2*w + 1"}, {"y": DECAY / 3, "z": 2 * CHAIN + 1}),
        ({"y": "x + w", "z": "x - w"}, {"y": DECAY + CHAIN, "z": DECAY - CHAIN}),
        ({"y": "x + w", "z": "w"}, {"y": DECAY + CHAIN, "z": CHAIN}),
        ({"y": "-x + t", "z": "w - sin(t)"}, {"y": T - DECAY, "z": CHAIN - np.sin(T)}),
        (
            {"y": "x", "z": "w", "u": "x + 2*w", "v": "3*x"},
            {"y": DECAY, "z": CHAIN, "u": DECAY + 2 * CHAIN, "v": 3 * DECAY},
        ),
    ],
)
def test_states_are_found_from_constant_combinations(
    observables: Mapping[str, str], data: Mapping[str, Array]
) -> None:
    problem = observed(observables, data)
    assert seen(problem) == {"x", "w"}
    match, found = matched(problem)
    assert worst(found, TRUTH) < 1e-8
    assert "not measured" not in match.message


def test_coefficients_may_be_constants_and_fixed_parameters() -> None:
    problem = observed(
        {"y": "s*x", "z": "w/volume + b0"},
        {"y": 4 * DECAY, "z": CHAIN / 2.5 + 0.1},
        of_model={"constants": {"volume": 2.5}},
        parameters={"s": {"fixed": 4.0}, "b0": {"fixed": 0.1}},
    )
    assert worst(matched(problem)[1], TRUTH) < 1e-8


def test_coefficients_may_differ_between_experiments() -> None:
    model = Model(ode=ODE, observables={"y": "x*scale", "z": "w"}, constants={"scale": 1.0})
    experiments = [
        Experiment("A", {"t": T, "y": DECAY, "z": CHAIN}),
        Experiment("B", {"t": T, "y": 5 * DECAY, "z": CHAIN}, constants={"scale": 5.0}),
    ]
    parameters: dict[str, Any] = {"a": {}, "b": {}}
    problem = Problem(model, None, parameters, {"x": {}, "w": {}}, experiments=experiments)
    assert worst(matched(problem)[1], TRUTH) < 1e-8


@pytest.mark.parametrize(
    ("observables", "expected"),
    [
        ({"y": "x + w"}, set()),
        ({"y": "x^2", "z": "w"}, {"w"}),
        ({"y": "x*w", "z": "w"}, {"w"}),
        ({"y": "s*x", "z": "w"}, {"w"}),
        ({"y": "x + s", "z": "w"}, {"w"}),
        ({"y": "max(x, 0.2)", "z": "w"}, {"w"}),
        ({"y": "abs(x)", "z": "w"}, {"w"}),
        ({"y": "x*t", "z": "w"}, {"w"}),
        ({"y": "x + 2*w", "z": "2*x + 4*w"}, set()),
        ({"y": "3", "z": "w"}, {"w"}),
    ],
)
def test_an_observable_that_is_not_a_known_combination_is_not_used(
    observables: Mapping[str, str], expected: set[str]
) -> None:
    parameters: dict[str, Any] = {"s": {}} if "s" in "".join(observables.values()) else {}
    data = dict.fromkeys(observables, DECAY)
    assert seen(observed(observables, data, parameters=parameters)) == expected


def test_an_observable_that_is_never_measured_measures_nothing() -> None:
    assert seen(observed({"x": "x", "w": "w"}, {"x": DECAY})) == {"x"}


def test_a_state_unmeasured_in_one_experiment_is_hidden_there() -> None:
    experiments = [
        Experiment("A", {"t": T, "x": DECAY, "w": CHAIN}),
        Experiment("B", {"t": T, "x": DECAY}),
    ]
    problem = Problem(
        Model(ode=ODE), None, {"a": {}, "b": {}}, {"x": 1.0, "w": 0.0}, experiments=experiments
    )
    assert seen(problem) == {"x"}
    match, found = matched(problem)
    assert "w not measured" in match.message
    assert abs(found["a"] - 0.7) < 0.1


def test_a_scale_that_an_event_changes_is_not_known() -> None:
    model = Model(ode=ODE, observables={"y": "x*s", "w": "w"}, constants={"s": 1.0})
    experiment = Experiment(
        "A", {"t": T, "y": DECAY, "w": CHAIN}, events=[Event((2.0,), {"s": 2.0})]
    )
    problem = Problem(model, None, {"a": {}, "b": {}}, {"x": {}, "w": {}}, experiments=[experiment])
    assert seen(problem) == {"w"}


def test_the_series_with_less_noise_counts_of_two_for_a_state() -> None:
    random = np.random.default_rng(0)
    data = {
        "y": DECAY + 1e-4 * random.normal(size=len(T)),
        "v": DECAY + 0.3 * random.normal(size=len(T)),
        "w": CHAIN,
    }
    problem = observed({"y": "x", "v": "x", "w": "w"}, data)
    assert worst(matched(problem)[1], TRUTH) < 2e-3
    series = AffineObservables.of(problem.model, problem.conditions[0])
    weights = series.states(series.names, {"y": 1e-4, "v": 0.3, "w": 1.0})[0]
    assert weights == pytest.approx([1.0, 0.0, 0.0], abs=1e-5)
    equal = series.states(series.names, {"y": 0.1, "v": 0.1, "w": 0.1})[0]
    assert equal == pytest.approx([0.5, 0.5, 0.0])


def test_an_unknown_scale_is_found_with_the_hidden_state() -> None:
    """y = s x with x(0) known: assimilated, and said so."""
    problem = Problem(
        Model(ode={"x": "-a*x"}, observables={"y": "s*x"}),
        {"t": T, "y": 2 * DECAY},
        {"a": {"guess": 1.0}, "s": {"guess": 1.0}},
        {"x": 1.0},
    )
    match, found = matched(problem)
    assert "x not measured, estimated in turns with the unknowns" in match.message
    assert worst(found, {"a": 0.7, "s": 2.0}) < 1e-2


def test_noise_unknowns_are_named_by_observable() -> None:
    random = np.random.default_rng(1)
    data = {"y": 3 * DECAY + 0.03 * random.normal(size=len(T)), "z": CHAIN}
    noise = {"y": Noise(sd="estimate"), "z": Noise(sd=0.01)}
    problem = observed({"y": "3*x", "z": "w"}, data, noise=noise)
    found = matched(problem)[1]
    assert found["y_sd"] == pytest.approx(0.03, rel=0.4)


def test_noise_of_a_logarithm_is_relative() -> None:
    random = np.random.default_rng(1)
    values = DECAY * np.exp(0.05 * random.normal(size=len(T)))
    problem = Problem(
        Model(ode={"x": "-a*x"}),
        {"t": T, "x": values},
        {"a": {}},
        {"x": {}},
        noise={"x": Noise(sd="estimate", transform="log")},
    )
    match = IntegralMatching().match(problem)
    assert match.vector[problem.keys.index("x_sd")] == pytest.approx(0.05, rel=0.7)
