"""Files that people have brought: each is read right, or refused with one message that helps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit.problem import InputError, load

CASES = Path(__file__).parents[2] / "cases"


def test_a_value_below_a_limit_names_its_replacement() -> None:
    """The case below-detection-hint."""
    with pytest.raises(InputError) as caught:
        load(CASES / "below-detection-hint" / "lod.toml")
    (message,) = caught.value.messages
    assert "lod.csv, column x, row 6: '<0.5' is not a number; if it is beyond a limit" in message
    assert "write 0.5 here and either lower_limit = 0.5 for the observable in [noise]" in message
    assert "or 1 in a column x_cens" in message


def test_dates_in_another_order_are_one_mistake() -> None:
    """The case dates-two-errors."""
    with pytest.raises(InputError) as caught:
        load(CASES / "dates-two-errors" / "pd.toml")
    (message,) = caught.value.messages
    assert "dd.csv, column Date, row 2: '01.01.1900' is not a number (and 20 more" in message
    assert "write dates as year-month-day, such as 2024-01-31 or 2024-01-31 14:30" in message


def test_weekly_cases_count_from_the_first_of_january(tmp_path: Path) -> None:
    """The case iso-dates."""
    folder = CASES / "iso-dates"
    text = (folder / "seir.toml").read_text(encoding="utf-8")
    (tmp_path / "cases.csv").write_bytes((folder / "cases.csv").read_bytes())
    (tmp_path / "seir.toml").write_text(
        text.replace("t0 = 0.0", 't0 = "2024-01-01"'), encoding="utf-8"
    )
    (condition,) = load(tmp_path / "seir.toml").conditions
    assert condition.t0 == 0.0
    np.testing.assert_array_equal(condition.times, 7.0 * np.arange(1, len(condition.times) + 1))
    assert [t for t, _ in condition.events[:3]] == [7.0, 14.0, 21.0]
    (from_first,) = load(folder / "seir.toml").conditions
    np.testing.assert_array_equal(from_first.times, condition.times - 7.0)
