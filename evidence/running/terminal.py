"""The output of a campaign: its progress on a terminal, a summary at the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evidence.running.campaign import Campaign, Record
from evidence.running.output import shown
from odefit.reporting.numbers import duration

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 40  # largest number of rows of a table on the terminal; the files have all
LONGEST = 16  # least width of a text, however narrow the terminal
WIDTH = 180  # width without a terminal


class TerminalProgress:
    """A line of progress on standard error if that is a terminal."""

    def __init__(self, total: int, stored: Sequence[Record]) -> None:
        self._total = total
        self._stored = len(stored)
        self._counts = Counter(r.outcome for r in stored)
        self._began = time.monotonic()
        self._status = None
        if sys.stderr.isatty():
            from rich.status import Status

            self._status = Status(self._line(), console=Console(stderr=True))

    def __call__(self, record: Record) -> None:
        """Count a record."""
        self._counts[record.outcome] += 1
        if self._status is not None:
            self._status.update(self._line())

    def _line(self) -> str:
        done = sum(self._counts.values())
        spent = time.monotonic() - self._began
        parts = [f"{done} of {self._total} tasks"]
        parts += [f"{n} {outcome}" for outcome, n in self._counts.items() if outcome != "done"]
        new = done - self._stored
        if new:
            left = spent / new * (self._total - done)
            parts.append(f"{duration(spent)}, about {duration(left)} left")
        return ", ".join(parts)

    def __enter__(self) -> TerminalProgress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()


def say(line: str) -> None:
    """Print a line on the current work to standard output, at once."""
    print(line, flush=True)


def print_summary(
    campaign: Campaign,
    folder: Path,
    records: Sequence[Record],
    total: int,
    tables: Mapping[str, pd.DataFrame],
) -> None:
    """Print tables, outcomes of the tasks, and the place of the files to standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(Text(campaign.name, style="bold"), Text(campaign.description))
    for name, table in tables.items():
        console.print()
        console.print(Text(name, style="bold"))
        console.print(_table(table, console), highlight=False)
        if len(table) > MOST_ROWS:
            console.print(Text(f"and {len(table) - MOST_ROWS} more rows in {name}.csv"))
    counts = Counter(r.outcome for r in records)
    ended = ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
    seconds = sum(r.seconds for r in records)
    console.print()
    console.print(
        Text(f"{len(records)} of {total} tasks: {ended or 'none'}; {duration(seconds)} in all."),
        highlight=False,
    )
    console.print(Text(f"results.sqlite, tables and figures are in {folder}"), highlight=False)


def _table(table: pd.DataFrame, console: Console) -> Table:
    plain = not console.encoding.lower().startswith("utf")
    found = Table(
        box=box.ASCII2 if plain else box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
    )
    for k, column in enumerate(table.columns):  # two columns may have the same title
        values = table.iloc[:, k]
        numeric = values.dtype.kind in "if"
        longest = max((len(shown(v)) for v in values.head(MOST_ROWS)), default=0)
        found.add_column(
            Text(str(column)),
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=0 if numeric else min(longest, LONGEST),
        )
    for row in table.head(MOST_ROWS).itertuples(index=False):
        found.add_row(*(Text(shown(v)) for v in row))
    return found
