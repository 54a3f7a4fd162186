"""Numbers in options and texts."""

from __future__ import annotations

import pytest

from odefit.common.errors import InputError
from odefit.common.option_checks import LEAST_LEVEL, check_level, natural_in


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), (" 12 ", 12), ("007", 7), ("9" * 15, 999_999_999_999_999)]
)
def test_a_whole_number_is_read(text: str, number: int) -> None:
    assert natural_in(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1.0", "1e3", "1_0", "x", "\N{SUPERSCRIPT TWO}", "\u0663", "9" * 16, "9" * 5000],
)
def test_other_texts_are_no_whole_numbers(text: str) -> None:
    """Python reads some of these digits as numbers, fails at others, and at too many of them."""
    assert natural_in(text) is None


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan"), 1e-300])
def test_a_level_without_an_interval_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        check_level(level)


@pytest.mark.parametrize("level", [LEAST_LEVEL, 0.95, 1 - 1e-16])
def test_other_levels_are_accepted(level: float) -> None:
    check_level(level)
