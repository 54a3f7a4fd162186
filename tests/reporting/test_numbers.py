"""Numbers are shown to the digit that means something."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.reporting.estimates.row import Row
from odefit.reporting.numbers import (
    decade_for,
    duration,
    percent,
    significant,
    to_decade,
    to_units,
)
from odefit.reporting.parameters import LONGEST_RUN, shortened


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (224406.8, "224407"), (-34498.78, "-34499"), (328.79624, "328.8"), (0.0, "0"),
        (-112203.4, "-112203"), (2e12, "2e+12"), (math.inf, "inf"), (math.nan, ""),
    ],
)  # fmt: skip
def test_the_measure_of_a_route_agrees_with_that_of_the_answer(value: float, text: str) -> None:
    """The answer shows 224406.8, so that 224410 would be another number."""
    assert to_units(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "0"), (1.0, "1"), (100.0, "100"), (-2.5, "-2.5"), (0.001, "0.001"),
        (0.00099, "9.9e-04"), (5.92584877e-5, "5.9258e-05"), (123456.0, "123460"),
        (1234567.0, "1.2346e+06"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, ""),
        (999999.9, "1e+06"), (0.00099999999, "0.001"), (1e300, "1e+300"),
    ],
)  # fmt: skip
def test_five_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (5.92584877e-5, 2.6e-7, "5.926e-05"),
        (4e-5, 1.9e-6, "4.00e-05"),
        (1.02, 0.0612, "1.020"),
        (1.0, 1e-12, "1.0000000"),  # eight digits are enough
        (1.0, 100.0, "1.00"),  # and three are shown all the same
        (0.0, 0.1, "0"),
        (2.0, math.nan, "2"),
        (2.0, 0.0, "2"),
    ],
)
def test_an_estimate_is_shown_to_the_second_digit_of_its_error(
    value: float, error: float, text: str
) -> None:
    assert to_decade(value, decade_for(value, error)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_shown_number_is_the_rounded_value(value: float) -> None:
    assert float(significant(value, 8)) == pytest.approx(value, rel=1e-7, abs=0.0)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=1e-300, max_value=1e300),
)
def test_rounding_to_the_error_loses_less_than_the_error(value: float, error: float) -> None:
    shown = float(to_decade(value, decade_for(value, error)))
    assert abs(shown - value) <= max(0.06 * error, 1e-7 * abs(value))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0012, "1.2 ms"), (3.2468, "3.2 s"), (75.0, "75 s"), (600.0, "10 min"),
     (7500.0, "2 h 05 min"), (math.nan, "unknown time")],
)  # fmt: skip
def test_times_are_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_fractions_are_in_per_cent() -> None:
    assert percent(0.0213) == "2.1 %"
    assert percent(12.0) == "1200 %"
    assert percent(0.9961) == "100 %"
    assert percent(0.9949) == "99 %"
    assert percent(math.inf) == "unknown"


def test_relative_standard_errors_all_have_two_digits() -> None:
    def shown(error: float) -> str:
        return Row("k", "k", "parameter", None, "", 1.0, error).rse_shown

    assert [shown(e) for e in (0.03, 0.033, 0.12, 0.0089)] == ["3.0", "3.3", "12", "0.89"]


def test_long_runs_of_one_known_initial_value_are_one_line() -> None:
    def known(i: int, value: float = 0.0) -> Row:
        return Row(f"x_{i}", f"x_{i}", "initial", None, "", value, flag="known")

    fitted = Row("k", "k", "parameter", None, "", 1.0, 0.1)
    short = [fitted, known(1, 5.0), *(known(i) for i in range(2, LONGEST_RUN + 2))]
    assert shortened(short) == short
    rows = shortened([*short, known(LONGEST_RUN + 2), known(90, 1.0), fitted])
    assert [row.key for row in rows] == ["k", "x_1", f"x_2 ... x_{LONGEST_RUN + 2}", "x_90", "k"]
    assert rows[2].estimate == 0.0
    given = [Row("p", "p", "parameter", None, "", 0.0, flag="fixed")] * 9
    assert len(shortened(given)) == 9
