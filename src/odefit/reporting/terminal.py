"""The output of the command line: a result as text, coloured where the terminal allows."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from odefit.assessment.parts import ProvedRegion
from odefit.assessment.profiles import ProfilesData
from odefit.common.errors import counted, some
from odefit.methods.estimate import Route
from odefit.reporting.estimates.row import Row
from odefit.reporting.numbers import duration, significant, to_units
from odefit.reporting.parameters import (
    interval_level,
    parameter_rows,
    shortened,
    together,
)
from odefit.reporting.profiles import (
    PROFILE_TITLES,
    REGION_TITLES,
    profile_ending,
    profile_rows,
    profile_sentences,
    profile_title,
    region_rows,
    region_title,
)
from odefit.reporting.sentences import (
    data_sentence,
    findings,
    lack_of_fit,
    objective_name,
    remarks,
    sentence,
    several_answers,
    squares_say_nothing,
    starts_sentence,
    taken_routes,
    verdict,
)
from odefit.reporting.tables import Column, columns_that_fit, inset, name_column, table_of
from odefit.result_data import ResultData

TONES = {"good": "green", "caution": "yellow", "bad": "red"}
"""The colours of verdicts."""

NARROW_WIDTH = 72
"""Number of terminal columns below which an unknown takes several lines instead of a row."""

REMARK, UNIT = "remark", "unit"
"""Titles of the columns that are left out first."""

TEXT_WIDTH = 88
"""Width of a result as text where no terminal gives one."""


def output(**options: Any) -> Console:
    """Return a console that writes text, also in a notebook, where rich would display blocks."""
    return Console(force_jupyter=False, **options)


def print_result(result: ResultData, console: Console | None = None) -> None:
    """Print `result` without its notes to `console` (standard output).

    Colours and lines are left out if the output is not a terminal or cannot show them.
    """
    console = console or output()
    for part in _parts(result, console.width, plain_only(console)):
        console.print(part, highlight=False)


def print_notes(
    result: ResultData, console: Console | None = None, *, printed: Sequence[str] = ()
) -> None:
    """Print the notes on `result`, if any, to `console` (standard error).

    Warnings in `printed` are left out.
    """
    print_warnings([w for w in remarks(result) if w not in printed], console)


def print_warnings(warnings: Sequence[str], console: Console | None = None) -> None:
    """Print the notes on a problem or a result to `console` (standard error)."""
    console = console or output(stderr=True)
    if warnings:
        console.print(Text(""))
        console.print(Text("Please note", style="bold yellow"))
        for warning in warnings:
            console.print(bulleted(Text(warning)), highlight=False)


def print_profiles(data: ProfilesData, console: Console | None = None) -> None:
    """Print the intervals by profile to `console` (standard output)."""
    console = console or output()
    rows = [[Text(cell) for cell in row] for row in profile_rows(data)]
    columns = [
        Column(
            title,
            [row[i] for row in rows],
            "right" if 0 < i < 5 else "left",
            wraps=i == 5,
            gives_way=0 if title == "linear" else None,
        )
        for i, title in enumerate(PROFILE_TITLES)
    ]
    fitting_columns = columns_that_fit(columns, console.width)
    parts: list[RenderableType] = [Text(profile_title(data)), Text("")]
    if fitting_columns is not None:
        parts.append(table_of(fitting_columns, console.width, ascii_only=plain_only(console)))
    for row in rows if fitting_columns is None else ():
        parts.append(row[0])
        parts += [
            inset(Text(f"{t}: {c}")) for t, c in zip(PROFILE_TITLES[1:], row[1:], strict=True)
        ]
    noted = [bulleted(Text(line)) for line in profile_sentences(data)]
    parts += [*([Text("")] if noted else []), *noted, Text("")]
    for part in (*parts, *map(Text, profile_ending(data))):
        console.print(part, highlight=False)


def result_text(result: ResultData, width: int = TEXT_WIDTH) -> str:
    """Return `result` as plain text of at most `width` columns."""
    buffer = io.StringIO()
    console = output(file=buffer, width=width, color_system=None, force_terminal=False)
    print_result(result, console)
    print_notes(result, console)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join(lines).strip("\n")


def plain_only(console: Console) -> bool:
    """Tell whether the output is limited to ASCII."""
    return not console.encoding.lower().startswith("utf")


def _parts(result: ResultData, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    # Every text of the user becomes a Text: in a string, rich would read [brackets] as markup.
    yield _header(result)
    yield Text("")
    rows = shortened(parameter_rows(result))
    if rows:
        yield from _estimates(rows, result, width, ascii_only)
    yield Text("")
    yield from _assessment(result)
    if result.solutions and result.assessment.region is not None:
        yield from _region(result.assessment.region, width, ascii_only)
    routes = taken_routes(result)
    if routes:
        yield Text("")
        yield Text("Routes to this answer", style="bold")
        columns = _route_columns(result, routes)
        fitting_columns = columns_that_fit(columns, width) if width >= NARROW_WIDTH else None
        yield (
            table_of(fitting_columns, width, ascii_only=ascii_only)
            if fitting_columns
            else _narrow_routes(result, routes)
        )


def _header(result: ResultData) -> RenderableType:
    conclusion = verdict(result)
    title = Text(result.problem.name, style="bold")
    title.append(f"  {result.method}, {duration(result.seconds)}, seed {result.seed}", style="dim")
    lines = [title, Text(data_sentence(result.problem))]
    lines.append(Text(conclusion.headline, style=f"bold {TONES[conclusion.tone]}"))
    above = (lack_of_fit(result), several_answers(result))
    lines += [Text(text, style="bold yellow") for text in above if text]
    if result.solutions:
        lines.append(Text(_value_line(result)))
    if result.message:
        lines.append(Text(sentence(result.message), style="dim"))
    return Group(*lines)


def _value_line(result: ResultData) -> str:
    """Return the number that measures the fit."""
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


def _estimates(
    rows: list[Row], result: ResultData, width: int, ascii_only: bool
) -> Iterator[RenderableType]:
    """Yield the table, or lines if it does not fit, and a note on what was omitted."""
    columns = _columns(rows, result, width)
    fitting_columns = columns_that_fit(columns, width) if width >= NARROW_WIDTH else None
    if fitting_columns is None:
        yield _narrow(rows, result)
        left_out = set()
    else:
        yield table_of(fitting_columns, width, ascii_only=ascii_only)
        left_out = {c.title for c in columns} - {c.title for c in fitting_columns}
    bare = REMARK in left_out  # then only the notes name the rows they are about
    notes = [
        f"{', '.join(keys) if bare else some(keys)}: {note}"
        for keys, note in together(rows, short=bare)
    ]
    notes += [f"{row.key}: {row.dates_shown}" for row in rows if row.dates_shown]
    if UNIT in left_out:
        notes.append(f"units: {_units(rows)}")
    if notes:
        yield Text("")
        yield from (bulleted(Text(note)) for note in notes)


def _columns(rows: list[Row], result: ResultData, width: int) -> list[Column]:
    """Return the columns; remarks are left out first, then units, then RSE.

    Their content then appears below, or follows from the other columns.
    """

    def texts(cells: Iterable[str]) -> list[Text]:
        styles = ["" if row.estimated else "dim" for row in rows]
        return [Text(cell, style) for cell, style in zip(cells, styles, strict=True)]

    level = f"{interval_level(result)} interval"
    columns = [
        name_column(texts(row.key for row in rows), width),
        Column("estimate", texts(row.shown[0] for row in rows), "right"),
        Column("std error", texts(row.shown[1] for row in rows), "right"),
        Column("RSE %", texts(row.rse_shown for row in rows), "right", gives_way=2),
        Column(level, texts(_interval(row) for row in rows), "right"),
    ]
    if any(row.unit for row in rows):
        columns.append(Column(UNIT, texts(row.unit for row in rows), gives_way=1))
    flags = [Text(row.flag, _flag_style(row)) for row in rows]
    return [*columns, Column(REMARK, flags, gives_way=0)]


def _units(rows: list[Row]) -> str:
    """Return the units with the quantities that have them."""
    owners: dict[str, list[str]] = {}
    for row in rows:
        if row.unit and row.name not in owners.setdefault(row.unit, []):
            owners[row.unit].append(row.name)
    return "; ".join(f"{some(names)} {unit}" for unit, names in owners.items())


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
            lines.append(inset(Text(f"std error {error}{relative}")))
        if _interval(row):
            lines.append(inset(Text(f"{interval_level(result)}: {_interval(row)}")))
        if row.flag:
            lines.append(inset(Text(row.flag, style=_flag_style(row))))
    return Group(*lines)


def _flag_style(row: Row) -> str:
    if not row.estimated:
        return "dim"
    return "red" if row.identifiable is False else "yellow"


def _interval(row: Row) -> str:
    low, high = row.shown[2:]
    return f"[{low}, {high}]" if low and high else ""


def _assessment(result: ResultData) -> Iterator[RenderableType]:
    if not result.solutions:
        if result.starts:
            yield bulleted(Text(starts_sentence(result)))
        return
    yield Text("What is known about this answer", style="bold")
    for finding in findings(result):
        line = Text(f"{finding.title}: ", style="bold" if finding.shown else "")
        line.append(finding.sentence, style="none")
        yield bulleted(line)
    if result.starts:
        yield bulleted(Text(starts_sentence(result)))


def _region(region: ProvedRegion, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    """Yield the table of proved intervals, or lines if it does not fit."""
    yield Text("")
    yield Text(region_title(region), style="bold")
    rows = [[Text(cell) for cell in row] for row in region_rows(region)]
    columns = [
        Column(title, [row[i] for row in rows], wraps=i == 1)
        for i, title in enumerate(REGION_TITLES)
    ]
    fitting_columns = columns_that_fit(columns, width) if width >= NARROW_WIDTH else None
    if fitting_columns is not None:
        yield table_of(fitting_columns, width, ascii_only=ascii_only)
        return
    for row in rows:
        yield row[0]
        yield from (
            inset(Text(f"{t}: {c}")) for t, c in zip(REGION_TITLES[1:], row[1:], strict=True)
        )


def _route_columns(result: ResultData, routes: list[Route]) -> list[Column]:
    """Return the columns of a table of the routes that a combined method took."""
    values = [result.value_of(route) for route in routes]
    shown = [to_units(value) if math.isfinite(value) else "" for value in values]
    return [
        Column("", [Text(route.name) for route in routes]),
        Column("starts", [Text(str(route.starts)) for route in routes], "right"),
        Column("at the best", [Text(str(route.hits)) for route in routes], "right"),
        Column(result.measure, [Text(value) for value in shown], "right"),
        Column("time", [Text(duration(r.seconds)) for r in routes], "right", gives_way=0),
    ]


def _narrow_routes(result: ResultData, routes: list[Route]) -> RenderableType:
    """Return a line or two for each route."""
    return Group(
        *(
            bulleted(
                Text(
                    f"{r.name}: {counted(r.starts, 'start')}, {r.hits} at the best, "
                    f"{result.measure} {to_units(result.value_of(r))}, {duration(r.seconds)}"
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
