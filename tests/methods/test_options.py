"""Numbers that options take, and those they do not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from odefit import InputError
from odefit.common.option_checks import number, whole

SMALLEST = 5e-324


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_whole_numbers_are_accepted(value: Any) -> None:
    whole(value, "here")


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, math.nan])
def test_a_non_integer_is_refused_with_place_and_value(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        whole(value, "here")
    message = str(caught.value)
    assert message == f"here: expected a whole number of at least 1, got {value!r}"


def test_the_least_whole_number_passes() -> None:
    whole(0, "here", 0)
    with pytest.raises(InputError, match="of at least 0, got -1"):
        whole(-1, "here", 0)


@pytest.mark.parametrize("value", [0, 2.5, -1e300, np.float32(1.5), Fraction(1, 3)])
def test_any_finite_number_passes_without_limits(value: Any) -> None:
    number(value, "here")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "1", None, 1j, [1.0]])
def test_a_nonfinite_value_is_refused(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        number(value, "here")
    assert str(caught.value) == f"here: expected a finite number, got {value!r}"


def test_limits_are_allowed_values() -> None:
    number(1.0, "here", least=1.0, most=2.0)
    number(2.0, "here", least=1.0, most=2.0)
    for value in (0.999, 2.001):
        with pytest.raises(InputError, match="of at least 1 and at most 2, got"):
            number(value, "here", least=1.0, most=2.0)


def test_a_positive_number_is_requested_as_above_zero() -> None:
    number(1e-300, "here", least=SMALLEST)
    with pytest.raises(InputError, match=r"here: expected a number above 0, got 0\.0"):
        number(0.0, "here", least=SMALLEST)
