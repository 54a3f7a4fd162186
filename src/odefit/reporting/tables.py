"""Tables for a terminal: on a narrow terminal, whole columns are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GAP = 3
"""Number of spaces between two columns of a table."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    ``wraps`` is true if its cells may be broken into several lines between words. The column with
    the lowest ``gives_way`` is left out first; a column without a number always stays.
    """

    title: str
    cells: Sequence[Text]
    side: Literal["left", "right"] = "left"
    wraps: bool = False
    gives_way: int | None = None

    @property
    def least(self) -> int:
        """The smallest width that breaks no word, no title and no cell that does not wrap."""
        lines = [cell.plain for cell in self.cells]
        words = [word for line in lines for word in line.split()] if self.wraps else lines
        return max(Text(word).cell_len for word in (self.title, *words))

    @property
    def natural(self) -> int:
        """The width in which no cell wraps."""
        return max(self.least, *(cell.cell_len for cell in self.cells))


def name_column(cells: Sequence[Text], width: int) -> Column:
    """Return the first column, of names, which wrap only if one takes a third of the width."""
    return Column("", cells, wraps=any(3 * cell.cell_len > width for cell in cells))


def columns_that_fit(columns: Sequence[Column], width: int, gap: int = GAP) -> list[Column] | None:
    """Return the columns that fit, in their order; None if not enough of them fit."""
    fitting = list(columns)
    while sum(c.least for c in fitting) + gap * (len(fitting) - 1) > width:
        out = [c for c in fitting if c.gives_way is not None]
        if not out:
            return None
        fitting.remove(min(out, key=lambda c: c.gives_way or 0))
    return fitting


def table_of(columns: Sequence[Column], width: int, *, ascii_only: bool) -> Table:
    """Return a table in the common style, at most `width` wide.

    Spare room goes to columns whose cells wrap, first to those that need the least.
    """
    room = width - sum(c.least for c in columns) - GAP * (len(columns) - 1)
    widths = {}
    for column in sorted(columns, key=lambda c: c.natural - c.least):
        more = min(room, column.natural - column.least)
        widths[column.title], room = column.least + more, room - more
    table = Table(
        box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
    )
    for column in columns:
        table.add_column(
            column.title,
            justify=column.side,
            no_wrap=not column.wraps,
            width=widths[column.title],
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def inset(text: Text, by: int = 2) -> Padding:
    """Return an indented text."""
    return Padding(text, (0, 0, 0, by), expand=False)
