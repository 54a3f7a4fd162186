"""Columns give way to a narrow terminal in the order that they are given."""

from __future__ import annotations

import pytest
from rich.text import Text

from odefit.reporting.tables import Column, columns_that_fit


def column(title: str, *cells: str, wraps: bool = False, gives_way: int | None = None) -> Column:
    return Column(title, [Text(cell) for cell in cells], wraps=wraps, gives_way=gives_way)


COLUMNS = [
    column("", "cases_dispersion"),  # 16 wide
    column("estimate", "0.123"),  # 8
    column("RSE %", "12", gives_way=2),  # 5
    column("unit", "mg/L", gives_way=1),  # 4
    column("remark", "weakly determined", gives_way=0),  # 17
]


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (62, ["", "estimate", "RSE %", "unit", "remark"]),
        (61, ["", "estimate", "RSE %", "unit"]),
        (41, ["", "estimate", "RSE %"]),
        (34, ["", "estimate"]),
    ],
)
def test_remarks_give_way_before_units_and_these_before_relative_errors(
    width: int, left: list[str]
) -> None:
    kept = columns_that_fit(COLUMNS, width)
    assert kept is not None
    assert [c.title for c in kept] == left


def test_too_narrow_a_terminal_gets_no_table() -> None:
    assert columns_that_fit(COLUMNS, 26) is None


def test_a_column_of_sentences_may_become_as_narrow_as_its_longest_word() -> None:
    assert column("special", "at t = 7: new becomes 0", wraps=True).least == len("becomes")
