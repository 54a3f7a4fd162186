"""Values beyond a limit, such as ``<0.5``, in a table: their numbers and codes, and a new table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odefit.common.errors import counted, shown
from odefit.problem.inputs.cells import beyond_limit, is_missing, plain_number


@dataclass(frozen=True)
class Limits:
    """A column of measurements of which some are beyond a limit."""

    values: Sequence[float]  # numbers, limits in place of values beyond them, and NaN
    codes: Sequence[int]  # 1 below the limit, -1 above it, else 0
    first: str  # the first text
    guessed: tuple[str, float] | None = None  # a text without a number, and the limit taken

    def note(self, name: str, mark: str) -> str:
        """Return a sentence on what the new table has instead of the texts."""
        count = sum(map(bool, self.codes))
        have = "have" if count > 1 else "has"
        note = (
            f"column {name}: {counted(count, 'value')} beyond a limit, such as "
            f"{shown(self.first)}, {have} the limit there, and 1 (below) or -1 (above it) in "
            f"column {mark}"
        )
        if self.guessed is None:
            return note
        text, limit = self.guessed
        return (
            f"{note}; {shown(text)} names no limit, for which {limit:g}, the nearest measured "
            "value, was taken: correct it, or leave the fields empty where nothing was measured"
        )


def limits_of(cells: Sequence[str]) -> Limits | None:
    """Return the numbers and codes of a column; None if it has other texts, or no numbers.

    A text without a number, such as ``BLQ``, gets the limit of the column's other texts on that
    side, else its nearest measured value.
    """
    numbers = [math.nan if is_missing(cell) else plain_number(cell) for cell in cells]
    texts = {i: beyond_limit(cells[i].strip()) for i, n in enumerate(numbers) if n is None}
    measured = [n for n in numbers if n is not None and not math.isnan(n)]
    if not texts or not measured or None in texts.values():
        return None
    codes = [0] * len(cells)
    guessed = None
    for i, pair in texts.items():
        assert pair is not None
        limit, codes[i] = pair
        if limit is None:
            alike = [other[0] for other in texts.values() if other and other[1] == codes[i]]
            others = {one for one in alike if one is not None}
            if len(others) == 1:
                limit = others.pop()
            else:
                limit = min(measured) if codes[i] > 0 else max(measured)
                guessed = guessed or (cells[i].strip(), limit)
        numbers[i] = limit
    values = [math.nan if n is None else n for n in numbers]
    return Limits(values, codes, cells[next(iter(texts))].strip(), guessed)


def table_with_limits(
    cells: Mapping[str, Sequence[str]], limits: Mapping[str, tuple[Limits, str]]
) -> str:
    """Return a table in CSV with limits for texts, and columns that mark them.

    `limits` has the numbers of a column of `cells`, and the name of the column with its codes.
    """
    columns = {name: list(column) for name, column in cells.items()}
    for name, (one, mark) in limits.items():
        marks = columns.setdefault(mark, ["0"] * len(one.codes))
        for row, code in enumerate(one.codes):
            if code:
                columns[name][row], marks[row] = f"{one.values[row]:.15g}", str(code)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()
