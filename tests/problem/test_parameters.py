"""What is known of an unknown is checked before it is used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.parameters import Parameter, as_parameter
from odefit.problem.priors import Prior


def read(value: Any) -> tuple[Parameter, list[str]]:
    issues = Issues()
    return as_parameter(value, "[parameters] k", issues), issues.errors


def test_every_field_is_optional() -> None:
    assert read({}) == (Parameter(), [])


def test_all_fields_are_read() -> None:
    found, errors = read(
        {
            "lower": 0,
            "upper": math.inf,
            "guess": 0.5,
            "scale": "linear",
            "per_experiment": True,
            "unit": "1/min",
            "prior": {"mean": 1, "sd": 2},
        }
    )
    assert not errors
    assert found == Parameter(
        0.0, math.inf, 0.5, "linear", per_experiment=True, unit="1/min", prior=Prior(1.0, 2.0)
    )


def test_a_number_is_a_fixed_value() -> None:
    assert read(0.3) == (Parameter(fixed=0.3), [])
    assert read(np.int64(3)) == (Parameter(fixed=3.0), [])


def test_equal_bounds_fix_the_value() -> None:
    assert read({"lower": 2, "upper": 2})[0].fixed == 2.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"lower": 2, "upper": 1}, "k: the bounds cross: lower = 2 is above upper = 1"),
        ({"lower": math.inf}, "no number is between"),
        ({"upper": -math.inf}, "no number is between"),
        ({"lower": math.nan}, "k.lower: expected a finite number"),
        ({"lower": "0"}, "k.lower: expected a number, got '0'"),
        ({"upper": True}, "k.upper: expected a number, got true"),
        ({"guess": math.inf}, "k.guess: expected a finite number"),
        ({"guess": [1]}, "k.guess: expected a number, got a list"),
        ({"lower": 0, "guess": -1}, "guess = -1 is outside the bounds [0, inf]"),
        ({"scale": "log"}, 'k.scale: expected "linear" or "log10", got \'log\''),
        ({"scale": 3}, "k.scale"),
        ({"scale": ["log10"]}, "k.scale"),
        ({"scale": "log10", "lower": 0}, "needs a positive lower bound"),
        ({"scale": "log10", "upper": 0}, "needs a positive range"),
        ({"scale": "log10", "guess": 0}, "needs a positive guess"),
        ({"per_experiment": 1}, "expected true or false, got 1"),
        ({"unit": 5}, "k.unit: expected a text"),
        ({"prior": 1.0}, "k.prior: expected { mean = ..., sd = ... }"),
        ({"prior": {"mean": 1}}, "k.prior: expected { mean = ..., sd = ... }"),
        ({"prior": {"mean": "a", "sd": 1}}, "k.prior.mean: expected a number"),
        ({"prior": {"mean": 1, "sd": 0}}, "k.prior.sd: must be positive, got 0"),
        ({"lowr": 1}, "k.lowr: unknown field; did you mean 'lower'?"),
        ({"zzz": 1}, "k.zzz: unknown field; expected one of: lower, upper"),
        ({"lower": 10**400}, "too large"),
        (Parameter(lower="a"), "k.lower"),  # type: ignore[arg-type] # the point of the test
        ("0.3", "k: expected a number, got '0.3'"),
        (None, "k: expected a number, got nothing"),
        (math.nan, "k: expected a finite number"),
    ],
    ids=range(28),
)
def test_a_mistake_gives_one_message(value: Any, message: str) -> None:
    _, errors = read(value)
    assert len(errors) == 1
    assert message in errors[0]


def test_a_fixed_value_outside_the_bounds_is_a_warning() -> None:
    issues = Issues()
    as_parameter({"fixed": 3, "upper": 1}, "k", issues)
    assert not issues.errors
    assert "outside the bounds" in issues.warnings[0]


def test_a_log_scale_needs_no_lower_bound() -> None:
    assert read({"scale": "log10"})[1] == []


def test_numbers_of_numpy_are_numbers() -> None:
    issues = Issues()
    assert finite_number(np.float32(0.5), "x", issues) == 0.5
    assert finite_number(np.bool_(True), "x", issues) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"upper": 1e308},
            (
                "k.upper: 1e+308 is too large, since its square overflows; "
                "expected at most "
                "1e+150 in size: correct it, or choose another unit; write inf for no bound"
            ),
        ),
        ({"lower": -1e200}, "k.lower: -1e+200 is too large"),
        ({"guess": 1e308}, "k.guess: 1e+308 is too large"),
        ({"fixed": 1e160}, "k.fixed: 1e+160 is too large"),
    ],
)
def test_numbers_whose_squares_overflow_are_refused(fields: Any, message: str) -> None:
    issues = Issues()
    as_parameter(fields, "k", issues)
    assert len(issues.errors) == 1
    assert issues.errors[0].startswith(message)
