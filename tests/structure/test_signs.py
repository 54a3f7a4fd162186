"""What the equations keep from being negative is told, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem
from odefit.structure.signs import nonnegative_names

POSITIVE = {"lower": 0.0, "upper": 10.0}


def found(
    ode: Mapping[str, str],
    parameters: Mapping[str, Any],
    initial: Mapping[str, Any],
    observables: Mapping[str, str] | None = None,
    **more: Any,
) -> set[str]:
    """The names that cannot be negative in a problem with these equations."""
    first = next(iter(observables or ode))
    data = {"t": np.arange(3.0), first: np.ones(3), **more.pop("columns", {})}
    experiment = Experiment("one", data, events=more.pop("events", []))
    model = Model(ode=ode, observables=observables, inputs=more.pop("inputs", None))
    problem = Problem(
        model, parameters=parameters, initial=initial, experiments=[experiment], **more
    )
    return set(nonnegative_names(problem, problem.conditions[0]))


def test_mass_action_and_michaelis_menten_keep_concentrations_nonnegative() -> None:
    names = found(
        {
            "S": "-k1*E*S + km1*C",
            "E": "-k1*E*S + (km1 + k2)*C",
            "C": "k1*E*S - (km1 + k2)*C",
            "P": "k2*C - Vmax*P/(Km + P)",
        },
        dict.fromkeys(["k1", "km1", "k2", "Vmax", "Km"], POSITIVE),
        {"S": 1.0, "E": POSITIVE, "C": 0.0, "P": 0.0},
        {"total": "E + C", "loss": "E - S", "y": "2*sqrt(P)^2 + exp(-C)"},
    )
    assert names == {"S", "E", "C", "P", "total", "y"}


@pytest.mark.parametrize(
    ("ode", "lower", "start"),
    [
        ({"x": "-k*x", "v": "k"}, -1.0, 1.0),  # v may fall: k may be negative
        ({"x": "-k*x", "v": "-x"}, 0.0, 1.0),  # an oscillator's velocity
        ({"x": "k*v", "v": "k - v"}, 0.0, -1.0),  # starts below zero
        ({"x": "k - x", "v": "sin(t)"}, 0.0, 1.0),
        ({"x": "-k*x", "v": "k*(1 - x)"}, 0.0, 0.0),  # only x <= 1 would keep it
    ],
)
def test_quantities_that_may_be_negative_are_left_out(
    ode: Mapping[str, str], lower: float, start: float
) -> None:
    assert "v" not in found(ode, {"k": {"lower": lower}}, {"x": 1.0, "v": start})


def test_zero_stays_zero_under_powers_and_divided_by_an_unknown() -> None:
    names = found(
        {"a": "k*v^2 - k*a^k", "b": "1 - b/(1 + v) - 2*b^2", "v": "-v"},
        {"k": {"lower": 0.1}},
        {"a": 1.0, "b": 0.0, "v": -1.0},
    )
    assert names == {"a", "b"}


def test_rounding_hides_no_negative_rate() -> None:
    """The floats 0.1 and 0.2 have a sum below the float that their sum is rounded to."""
    ode = {"v": "0.1 + 0.2 - 0.30000000000000004", "w": "0.1 + 0.2 - 0.3"}
    assert found(ode, {}, {"v": 0.0, "w": 0.0}) == {"w"}


def test_a_state_is_dropped_with_the_state_that_it_follows() -> None:
    names = found({"a": "b - a", "b": "c - b", "c": "-1"}, {}, dict.fromkeys("abc", 1.0))
    assert names == set()


def test_events_and_inputs_are_checked() -> None:
    ode = {"x": "u - k*x"}
    more: dict[str, Any] = {"inputs": {"u": "linear"}, "columns": {"u": [0.0, 1.0, 2.0]}}
    arguments = (ode, {"k": POSITIVE}, {"x": 0.0})
    assert found(*arguments, **more) == {"x"}
    assert found(*arguments, **more, events=[Event((1.0,), {"x": "x/2 + 1"})]) == {"x"}
    assert found(*arguments, **more, events=[Event((1.0,), {"x": "x - 1"})]) == set()
    assert found(*arguments, **more, events=[Event((1.0,), {"k": "2*k"})]) == {"x"}
    more["columns"] = {"u": [0.0, -1.0, 2.0]}
    assert found(*arguments, **more) == set()


def test_a_cubic_input_may_swing_below_its_values() -> None:
    columns = {"u": [0.0, 1.0, 2.0]}
    names = found({"x": "u"}, {}, {"x": 0.0}, inputs={"u": "cubic"}, columns=columns)
    assert names == set()
