"""The output of the command line: a result as text, coloured where the terminal can."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from odefit.assessment.parts import Trouble
from odefit.common.errors import counted
from odefit.methods.estimate import Route
from odefit.reporting.numbers import duration, significant
from odefit.reporting.parameters import Row, interval_level, parameter_rows, shortened
from odefit.reporting.sentences import (
    data_sentence,
    findings,
    lack_of_fit,
    objective_name,
    remarks,
    sentence,
    some,
    squares_say_nothing,
    starts_sentence,
    taken_routes,
    verdict,
)
from odefit.result_data import ResultData

TONES = {"good": "green", "caution": "yellow", "bad": "red"}
"""The colours of verdicts."""

NARROW_WIDTH = 72
"""Number of columns below which each unknown takes lines of its own instead of a table row."""

TEXT_WIDTH = 88
"""Width of a result as text, where no terminal says how wide it is."""


def print_result(result: ResultData, console: Console | None = None) -> None:
    """Print `result` to `console` (standard output), all but its notes.

    Colours and lines are left out where the output is no terminal, or cannot show them.
    """
    console = console or Console()
    for part in _parts(result, console.width, plain_only(console)):
        console.print(part, highlight=False)


def print_notes(
    result: ResultData, console: Console | None = None, *, printed: Sequence[str] = ()
) -> None:
    """Print what is to be known of `result` besides, if anything, to `console` (standard error).

    Warnings among those that are `printed` already are left out.
    """
    print_warnings([w for w in remarks(result) if w not in printed], console)


def print_warnings(warnings: Sequence[str], console: Console | None = None) -> None:
    """Print what is to be known of a problem or a result to `console` (standard error)."""
    console = console or Console(stderr=True)
    if warnings:
        console.print(Text(""))
        console.print(Text("Please note", style="bold yellow"))
        for warning in warnings:
            console.print(bulleted(Text(warning)), highlight=False)


def result_text(result: ResultData, width: int = TEXT_WIDTH) -> str:
    """Return `result` as plain text of at most `width` columns."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False)
    print_result(result, console)
    print_notes(result, console)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join(lines).strip("\n")


def plain_only(console: Console) -> bool:
    """Tell whether the output can hold ASCII alone."""
    return not console.encoding.lower().startswith("utf")


def empty_table(ascii_only: bool) -> Table:
    """Return a table in the style of all tables, without columns."""
    return Table(
        box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
    )


def _parts(result: ResultData, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    # Every text of the user becomes a Text: in a string, rich would read [brackets] as markup.
    yield _header(result)
    yield Text("")
    rows = shortened(parameter_rows(result))
    if rows:
        yield _narrow(rows, result) if width < NARROW_WIDTH else _table(rows, result, ascii_only)
        notes = list(_notes(rows))
        if notes:
            yield Text("")
            yield from notes
    yield Text("")
    yield from _assessment(result)
    routes = taken_routes(result)
    if routes:
        yield Text("")
        yield Text("Routes to this answer", style="bold")
        yield (
            _narrow_routes(result, routes)
            if width < NARROW_WIDTH
            else _routes(result, routes, ascii_only)
        )


def _header(result: ResultData) -> RenderableType:
    found = verdict(result)
    title = Text(result.problem.name, style="bold")
    title.append(f"  {result.method}, {duration(result.seconds)}, seed {result.seed}", style="dim")
    lines = [title, Text(data_sentence(result.problem))]
    lines.append(Text(found.headline, style=f"bold {TONES[found.tone]}"))
    bad = lack_of_fit(result)
    if bad:
        lines.append(Text(bad, style="bold yellow"))
    if result.solutions:
        lines.append(Text(_value_line(result)))
    if result.message:
        lines.append(Text(sentence(result.message), style="dim"))
    return Group(*lines)


def _value_line(result: ResultData) -> str:
    """Return the number by which the answer fits."""
    value = significant(result.value_of(result.best), 7)
    if result.log_likelihood is None:
        return f"Objective: {value} ({objective_name(result.problem)})"
    if squares_say_nothing(result.problem):
        return (
            f"{result.measure}: {value} (log-likelihood: {significant(result.log_likelihood, 7)}; "
            "weighted squares add up to the number of values where all noise is estimated)"
        )
    squares = significant(result.best.objective, 5)
    return f"{result.measure}: {value} (weighted sum of squared residuals: {squares})"


def _table(rows: list[Row], result: ResultData, ascii_only: bool) -> Table:
    table = empty_table(ascii_only)
    table.add_column("", overflow="fold")
    table.add_column("estimate", justify="right", no_wrap=True)
    table.add_column("std error", justify="right", no_wrap=True)
    table.add_column("RSE %", justify="right", no_wrap=True)
    table.add_column(f"{interval_level(result)} interval", justify="right", no_wrap=True)
    has_units = any(row.unit for row in rows)
    if has_units:
        table.add_column("unit", overflow="fold")
    table.add_column("remark", overflow="fold")
    for row in rows:
        estimate, error = row.shown[:2]
        cells = [Text(row.key), Text(estimate), Text(error), Text(row.rse_shown)]
        cells.append(Text(_interval(row)))
        if has_units:
            cells.append(Text(row.unit))
        cells.append(Text(row.flag, style=_flag_style(row)))
        table.add_row(*cells, style=None if row.estimated else "dim")
    return table


def _narrow(rows: list[Row], result: ResultData) -> RenderableType:
    """Return two or three short lines for each row."""
    lines: list[RenderableType] = []
    for row in rows:
        estimate, error = row.shown[:2]
        first = Text(row.key, style="bold")
        first.append(f" = {estimate or 'none'}{f' {row.unit}' if row.unit else ''}", "none")
        lines.append(first)
        if error:
            relative = f" ({row.rse_shown} %)" if row.rse_shown else ""
            lines.append(_inset(Text(f"std error {error}{relative}")))
        if _interval(row):
            lines.append(_inset(Text(f"{interval_level(result)}: {_interval(row)}")))
        if row.flag:
            lines.append(_inset(Text(row.flag, style=_flag_style(row))))
    return Group(*lines)


def _flag_style(row: Row) -> str:
    if not row.estimated:
        return "dim"
    return "red" if row.identifiable is False else "yellow"


def _interval(row: Row) -> str:
    low, high = row.shown[2:]
    return f"[{low}, {high}]" if low and high else ""


def _notes(rows: list[Row]) -> Iterator[RenderableType]:
    """Yield the remarks that say more than the word in the table, which each row has."""
    estimated = sum(row.estimated for row in rows)
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.estimated and row.note and row.note != row.flag:
            groups.setdefault(row.note, []).append(row.key)
    for note, keys in groups.items():
        whole = len(keys) == estimated > 1
        of = f"all {estimated} unknowns" if whole else some(keys)
        yield bulleted(Text(f"{of}: {note}"))


def _assessment(result: ResultData) -> Iterator[RenderableType]:
    if not result.solutions:
        if result.starts:
            yield bulleted(Text(starts_sentence(result)))
        return
    yield Text("What is known of this answer", style="bold")
    for found in findings(result):
        line = Text(f"{found.title}: ", style="bold" if found.shown else "")
        line.append(found.sentence, style="none")
        yield bulleted(line)
    if result.uncertainty is not None:
        trouble = result.uncertainty.trouble
        # The remarks below the table hold the directions of these already.
        said = {key for key, reason in trouble.items() if reason is Trouble.NOT_DETERMINED}
        for direction in result.uncertainty.directions:
            if said.isdisjoint(direction.keys):
                yield bulleted(Text(direction.sentence))
    if result.starts:
        yield bulleted(Text(starts_sentence(result)))


def _routes(result: ResultData, routes: list[Route], ascii_only: bool) -> Table:
    """Return a table of the routes that were taken."""
    table = empty_table(ascii_only)
    table.add_column("", overflow="fold")
    for name in ("starts", "at the best", result.measure, "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for route in routes:
        value = result.value_of(route)
        shown = significant(value, 5) if math.isfinite(value) else ""
        cells = (route.name, str(route.starts), str(route.hits), shown)
        table.add_row(*map(Text, cells), Text(duration(route.seconds)))
    return table


def _narrow_routes(result: ResultData, routes: list[Route]) -> RenderableType:
    """Return a line or two for each route."""
    return Group(
        *(
            bulleted(
                Text(
                    f"{r.name}: {counted(r.starts, 'start')}, {r.hits} at the best, "
                    f"{result.measure} {significant(result.value_of(r), 5)}, {duration(r.seconds)}"
                )
            )
            for r in routes
        )
    )


def bulleted(text: Text) -> RenderableType:
    """Return a line with a dash, its continuation lines indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row("-", text)
    return grid


def _inset(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2))
