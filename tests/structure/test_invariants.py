"""Sums of equations that do not see what is not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.structure.invariants import invariants
from tests.structure.models import TIMES, problem


def of(
    ode: Mapping[str, str], hidden: str, parameters: Sequence[str] = ("a", "b"), **more: Any
) -> Array | None:
    seen = {s: s for s in ode if s not in hidden.split()}
    return invariants(problem(ode, seen, parameters, **more), hidden.split())


def test_susceptibles_follow_from_infected() -> None:
    """S + I of an SIR model: its rate is -gamma I."""
    found = invariants(library.load("sir"), ["S"])
    assert found is not None
    assert found == pytest.approx(np.array([[1.0, 1.0]]))


def test_three_compartments_follow_from_one_measured_sum() -> None:
    found = of({"x": "-a*x*y", "y": "a*x*y - b*z", "z": "b*z"}, "y")
    assert found is not None
    assert found[0] @ [1, 1, 0] == pytest.approx(2.0)


def test_weights_may_be_any_numbers() -> None:
    """x + y/2.5 - z/4 does not see x."""
    found = of({"x": "-a*x^2 - x", "y": "2.5*a*x^2 + b*y", "z": "-4*x - z"}, "x")
    assert found is not None
    assert found == pytest.approx(np.array([[1.0, 0.4, -0.25]]))


def test_two_hidden_states_take_two_sums() -> None:
    ode = {"x": "-a*x*y", "y": "a*x*y - b*y*w", "w": "b*y*w - w", "v": "a*x*y - v"}
    found = of(ode, "x y")
    assert found is not None
    assert found[:, :2] == pytest.approx(np.eye(2))
    assert found == pytest.approx(np.array([[1, 0, 0, 1], [0, 1, 1, -1]]))


@pytest.mark.parametrize(
    "ode",
    [
        {"x": "-a*x", "y": "b*x"},  # a weight would be a parameter
        {"x": "-x", "y": "x + x*y"},  # ... or a state
        {"x": "y - x^2", "y": "x + y"},
        {"x": "-max(x - 20, 0)", "y": "a*x"},  # a kink that no random point sees
    ],
)
def test_models_without_an_invariant_sum_return_none(ode: Mapping[str, str]) -> None:
    model = Model(ode=ode, observables={"y": "y"})
    assert invariants(problem(ode, {"y": "y"}, sorted(model.parameters)), ["x"]) is None


def test_a_state_without_hidden_influence_is_its_own_sum() -> None:
    found = of({"x": "a*y", "y": "-b*y"}, "x")
    assert found == pytest.approx(np.array([[1.0, 0.0]]))


def test_with_nothing_measured_there_is_nothing_to_match() -> None:
    assert invariants(problem({"x": "a"}, {"y": "x^2"}, ["a"]), ["x"]) is None


def test_with_everything_measured_there_is_nothing_to_recover() -> None:
    found = of({"x": "a*x", "y": "b"}, "")
    assert found is not None
    assert found.shape == (0, 2)


def test_sums_hold_in_every_experiment_and_after_every_event() -> None:
    """A constant that is zero in the first experiment, or before an event, couples later."""
    model = Model(
        ode={"x": "-x*y", "y": "x*y - leak*x"}, observables={"y": "y"}, constants={"leak": 0.0}
    )
    data = {"t": TIMES, "y": np.cos(TIMES)}

    def found(*experiments: Experiment) -> Array | None:
        problem = Problem(model, None, {}, {"x": {}, "y": {}}, experiments=experiments)
        return invariants(problem, ["x"])

    plain = Experiment("A", data)
    assert found(plain) is not None
    assert found(plain, Experiment("B", data, constants={"leak": 1.0})) is None
    assert found(Experiment("C", data, events=[Event((0.5,), {"leak": 1.0})])) is None


def test_eliminated_variables_carry_the_hidden_state() -> None:
    """z = x y: x + y sees neither."""
    ode = {"x": "-a*z", "y": "a*z - b*y"}
    assert of(ode, "x", algebraic={"z": "z - x*y"}) == pytest.approx(np.array([[1.0, 1.0]]))


def test_sums_are_found_once_for_all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = library.load("sir")
    first = invariants(problem, ("S",))
    assert first is not None
    expected = first.copy()
    first[:] = 0.0
    monkeypatch.setattr("odefit.structure.invariants._invariants", None)
    noisy = library.load("sir", noise=0.1, seed=1)
    again = invariants(noisy, ("S",))
    assert again is not None
    assert np.array_equal(again, expected)


def test_the_value_that_an_event_takes_from_an_input_is_considered_in_each_problem() -> None:
    def driven(value: float) -> Problem:
        t = np.arange(5.0)
        data = {"t": t, "x": t, "u": np.full(5, value)}
        return Problem(
            Model(
                ode={"w": "-k*x*w", "x": "k*f*x*w - a*x"},
                observables={"x": "x"},
                inputs={"u": "constant"},
                constants={"f": 1.0},
            ),
            None,
            {"k": {}, "a": {}},
            {"w": {}, "x": {}},
            experiments=[Experiment("A", data, events=[Event((2.0,), {"f": "u"})])],
        )

    assert invariants(driven(1.0), ("w",)) is not None
    assert invariants(driven(2.0), ("w",)) is None


@pytest.mark.parametrize("unit", [1e-11, 1e-3, 1e9])
def test_sums_do_not_depend_on_the_unit(unit: float) -> None:
    """In small units the linear terms are small beside the others, but not zero."""
    infection = {"s": f"-a*s*i/{unit!r}", "i": f"a*s*i/{unit!r} - b*i"}
    found = in_unit(infection, "s", unit)
    assert found is not None
    assert found == pytest.approx(np.array([[1.0, 1.0]]))
    prey = {"r": f"a*r - b*r*w/{unit!r}", "w": f"b*r*w/{unit!r} - 0.3*w"}
    assert in_unit(prey, "w", unit) is None


def in_unit(ode: Mapping[str, str], hidden: str, unit: float) -> Array | None:
    seen = [state for state in ode if state != hidden]
    data = {"t": TIMES, **{s: unit * (1.0 + 0.1 * np.arange(len(TIMES))) for s in seen}}
    states = dict.fromkeys(ode, 0.5 * unit)
    model = Model(ode, {s: s for s in seen})
    return invariants(Problem(model, data, {"a": {}, "b": {}}, states), [hidden])
