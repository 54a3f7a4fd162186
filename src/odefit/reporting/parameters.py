"""The table of estimates, with a reason for each missing number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odefit.assessment.parts import Trouble, Uncertainty
from odefit.common.packages import require
from odefit.expressions.expressions import Expression, parse
from odefit.problem.parameters import Parameter, Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.dated_unknowns import dated_unknowns
from odefit.reporting.estimates.row import (
    LARGEST_RSE,
    MISSING,
    Kind,
    Note,
    Row,
    joined,
)
from odefit.reporting.numbers import decade_for, level_words, percent, significant, to_decade
from odefit.result_data import ResultData, Solution

if TYPE_CHECKING:
    import pandas as pd

LONGEST_RUN = 5
"""Longest run of equal known initial values that the table lists row by row."""

DATE_COLUMNS = ("date", "date_low", "date_high")
"""Columns of the table in problems with dates, if an unknown is a point of time."""


def parameter_rows(result: ResultData) -> list[Row]:
    """Return a row for every parameter, initial value and noise parameter, also for known ones."""
    problem = result.problem
    best = result.solutions[0] if result.solutions else None
    dated = dated_unknowns(problem)
    unknowns = {u.key: u for u in problem.unknowns}
    rows = []
    for kind, key, value in _entries(problem, best):
        unknown = unknowns.get(key)
        if unknown is None:
            rows.append(_known_row(problem, kind, key, value))
        elif best is None:
            reason = f"no solution was found: {result.message}".rstrip(": ")
            rows.append(_row(unknown, MISSING, flag="no solution", remark=Note(reason)))
        else:
            row = _unknown_row(unknown, value, result.uncertainty)
            row = replace(row, dated=dated.get(key))
            rows.append(over_all_solutions(row, result, problem.keys.index(key)))
    return rows


def shortened(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a printed table, with long runs of one known initial value merged.

    A chain of thirty states that begin at zero would have thirty equal rows.
    """

    def same(numbered: tuple[int, Row]) -> tuple[object, ...]:
        number, row = numbered
        alike = row.kind == "initial" and row.flag == "known"
        return (row.estimate, row.unit) if alike else (number,)

    merged: list[Row] = []
    for key, group in itertools.groupby(enumerate(rows), same):
        run = [row for _, row in group]
        if len(key) == 1 or len(run) <= LONGEST_RUN:
            merged += run
        else:
            merged.append(replace(run[0], key=f"{run[0].key} ... {run[-1].key}"))
    return merged


def together(rows: Sequence[Row], *, short: bool = False) -> list[tuple[list[str], str]]:
    """Return each remark with the keys of all rows that it applies to.

    Remarks that a row's short flag already gives, and those on known values, appear only if
    `short`. Sentences on directions are left to the assessment below.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.note and (short or (row.estimated and row.remark.words != row.flag)):
            groups.setdefault(row.remark.words, []).append(row)
    estimated = sum(row.estimated for row in rows)
    remarks = []
    for group in groups.values():
        keys = [row.key for row in group]
        if len(keys) == estimated > 1 and group[0].estimated:
            keys = [f"all {estimated} unknowns"]
        remarks.append((keys, joined([replace(row.remark, more=()) for row in group])))
    return remarks


def interval_level(result: ResultData) -> str:
    """Return the level of the confidence intervals, e.g. ``"95 %"``."""
    return level_words(result.uncertainty.level) if result.uncertainty else "95 %"


def parameter_table(result: ResultData) -> pd.DataFrame:
    """Return the rows as a table indexed by key; ``attrs["level"]`` is the confidence level."""
    require("pandas")
    import pandas as pd

    rows = parameter_rows(result)
    columns = (
        "kind",
        "estimate",
        "std_error",
        "rse",
        "ci_low",
        "ci_high",
        "identifiable",
        "note",
        "unit",
    )
    table = pd.DataFrame(
        {column: [getattr(row, column) for row in rows] for column in columns},
        index=pd.Index([row.key for row in rows], name="key"),
    )
    if any(row.dated for row in rows):
        for column, value in zip(DATE_COLUMNS, ("estimate", "ci_low", "ci_high"), strict=True):
            dates = [row.dated and row.dated.date(getattr(row, value)) for row in rows]
            table[column] = pd.Series(dates, index=table.index)
    # Otherwise pandas turns None into NaN, or the column into plain booleans.
    table["identifiable"] = pd.Series(
        [row.identifiable for row in rows], index=table.index, dtype=object
    )
    if result.uncertainty is not None:
        table.attrs["level"] = result.uncertainty.level
    return table


def _entries(problem: Problem, best: Solution | None) -> Iterator[tuple[Kind, str, float]]:
    """Yield kind, key and value in reading order; values are NaN without a solution."""
    if best is None:
        for name, parameter in problem.parameters.items():
            if parameter.fixed is not None:
                yield "parameter", name, parameter.fixed
        for unknown in problem.unknowns:
            yield unknown.kind, unknown.key, MISSING
        return
    listed = {*best.parameters, *best.initial}
    values = dict(zip(problem.keys, map(float, best.vector), strict=True))
    yield from (("parameter", key, value) for key, value in best.parameters.items())
    yield from (
        (u.kind, u.key, values[u.key])
        for u in problem.unknowns
        if u.kind == "parameter" and u.key not in listed
    )
    yield from (("initial", key, value) for key, value in best.initial.items())
    yield from (
        (u.kind, u.key, values[u.key])
        for u in problem.unknowns
        if u.kind != "parameter" and u.key not in listed
    )


def _row(unknown: Unknown, estimate: float, **fields: Any) -> Row:
    """Return the row of an unknown."""
    unit = unknown.parameter.unit or ""
    names = unknown.key, unknown.name, unknown.kind, unknown.experiment
    return Row(*names, unit, estimate, unknown=unknown, **fields)


def _unknown_row(unknown: Unknown, value: float, uncertainty: Uncertainty | None) -> Row:
    if uncertainty is None or unknown.key not in uncertainty.keys:
        reason = Note("the uncertainty was not computed")
        return _row(unknown, value, flag="not analysed", remark=reason)
    index = uncertainty.keys.index(unknown.key)
    std_error = float(uncertainty.standard_errors[index])
    low, high = (float(limit) for limit in uncertainty.intervals[index])
    trouble = uncertainty.trouble.get(unknown.key)
    identifiable: bool | None = math.isfinite(std_error)
    flag: str = trouble or ""
    remark = Note(flag)
    own_note = uncertainty.notes.get(unknown.key, "")
    if trouble is Trouble.NO_EFFECT:
        identifiable = False
        remark = Note("no effect: the measured observables do not depend on it here")
    elif trouble is Trouble.NOT_DETERMINED:
        identifiable = False
        directions = (d.sentence for d in uncertainty.directions if unknown.key in d.keys)
        remark = Note("not determined", more=tuple(directions))
        if not remark.more:
            remark = Note("not determined by these data")
    elif trouble is Trouble.WEAKLY_DETERMINED:
        identifiable = None
        remark = _weak_note(value, std_error, own_note)
    elif trouble is Trouble.AT_A_BOUND:
        identifiable = None
        flag, remark = _bound_note(value, unknown.parameter)
    elif trouble is Trouble.TIED_TO_A_BOUND:
        identifiable = None
        remark = Note(own_note or "no interval: tied to an unknown at a bound")
    elif trouble is Trouble.BY_PROFILE:
        identifiable, flag = True, "by profile"
        remark = Note(own_note or "the interval is that of a profile")
    elif trouble is Trouble.NOT_LINEAR:
        remark = Note(own_note or "the linear interval cannot be trusted")
    elif trouble is Trouble.NO_NOISE:
        identifiable = None
        remark = Note("no noise: the data are reproduced to rounding")
    elif trouble is Trouble.FIXED:
        identifiable = None
        remark = Note("held fixed in the analysis")
    elif uncertainty.treatment == "withheld" and not math.isfinite(std_error):
        identifiable = None
        flag, remark = "withheld", Note("withheld: the residuals do not look like noise")
    elif not math.isfinite(std_error):
        identifiable = None
        flag = "no std error"
        remark = Note(uncertainty.sentence or "the standard error could not be computed")
    if not remark.words and not (math.isfinite(low) and math.isfinite(high)):
        flag = "no interval"
        remark = Note(
            "no interval: as many unknowns as measurements leave no degrees of freedom"
            if uncertainty.degrees_of_freedom <= 0
            else "the interval could not be computed"
        )
    known = trouble in {None, Trouble.NOT_LINEAR, Trouble.BY_PROFILE, Trouble.WEAKLY_DETERMINED}
    if known and unknown.key in uncertainty.corrected_noise and not flag.startswith("no "):
        remark = _corrected(uncertainty.corrected_noise[unknown.key], value, std_error, remark)
    return _row(
        unknown,
        value,
        std_error=std_error,
        ci_low=low,
        ci_high=high,
        identifiable=identifiable,
        flag=flag,
        remark=remark,
    )


def _corrected(corrected: float, value: float, std_error: float, remark: Note) -> Note:
    """Return the remark on a noise estimate that is too small, followed by other remarks."""
    # rounded like the estimate beside it, and left out where both then look alike
    shown, shown_value = (to_decade(v, decade_for(value, std_error)) for v in (corrected, value))
    rest = str(remark)
    more = (f"{rest[0].upper()}{rest[1:]}",) if rest else ()
    correction = Note("{} when corrected for the unknowns that were fitted", corrected, shown, more)
    return remark if shown == shown_value else correction


def over_all_solutions(row: Row, result: ResultData, index: int) -> Row:
    """Return the row of an unknown, with its interval over all solutions that fit.

    The interval of a single solution would exclude the others. If one solution has no interval, the
    union has none.
    """
    several = [s for s in result.fitting if s.intervals]
    if len(several) < 2 or not (math.isfinite(row.ci_low) and math.isfinite(row.ci_high)):
        return row
    intervals = joined_intervals([s.intervals[index] for s in several])
    count = len(several)
    remark_of_best = str(row.remark)
    rest = f"; of the best alone: {remark_of_best}" if remark_of_best else ""
    if not intervals:
        words = (
            f"no interval: {count} solutions fit within the noise, and linearisation has no "
            "interval at one of them; a profile can tell more"
        )
        missing = replace(row, ci_low=MISSING, ci_high=MISSING)
        return replace(missing, flag="several solutions", remark=Note(words + rest))
    row = replace(row, ci_low=intervals[0][0], ci_high=intervals[-1][1])
    if len(intervals) == 1:
        return row
    decade = decade_for(row.estimate, row.std_error)
    listed = " or ".join(
        f"{to_decade(low, decade)} to {to_decade(high, decade)}" for low, high in intervals
    )
    words = f"{count} solutions fit within the noise: {listed}"
    return replace(row, flag="several intervals", remark=Note(words + rest))


def joined_intervals(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return intervals sorted and merged where they overlap; empty where an end is missing."""
    if not all(math.isfinite(end) for pair in intervals for end in pair):
        return []
    merged: list[tuple[float, float]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def _weak_note(value: float, std_error: float, reason: str) -> Note:
    more = f"; {reason}" if reason else ""
    if value and math.isfinite(std_error):
        share = std_error / abs(value)
        if 100.0 * share > LARGEST_RSE:
            return Note(
                f"weakly determined: the standard error is more than ten times the estimate{more}"
            )
        words = "weakly determined: the standard error is {} of the estimate"
        return Note(words + more, share, percent(share))
    return Note(f"weakly determined by these data{more}")


def _bound_note(value: float, parameter: Parameter) -> tuple[str, Note]:
    to_lower = abs(value - parameter.lower)
    to_upper = abs(value - parameter.upper)
    side, bound = ("lower", parameter.lower) if to_lower <= to_upper else ("upper", parameter.upper)
    return f"at {side} bound", Note(f"at the {side} bound ({{}})", bound, significant(bound))


def _known_row(problem: Problem, kind: Kind, key: str, value: float) -> Row:
    name, _, rest = key.partition("[")
    experiment = rest[:-1] if rest else None
    parameter = problem.parameters.get(name)
    flag, note = "known", "known"
    if kind == "parameter":
        flag, note = "fixed", "fixed by the problem"
    else:
        initial = _given_initial(problem, name, experiment)
        if isinstance(initial, Expression) and initial.names:
            flag, note = "derived", f"follows from {initial.text}"
        elif isinstance(initial, Parameter):
            flag, note, parameter = "fixed", "fixed by the problem", initial
    unit = (parameter.unit if parameter else None) or ""
    return Row(key, name, kind, experiment, unit, float(value), flag=flag, remark=Note(note))


def _given_initial(
    problem: Problem, state: str, experiment: str | None
) -> Expression | Parameter | None:
    for candidate in problem.experiments:
        if state in candidate.initial and experiment in (None, candidate.name):
            value = candidate.initial[state]
            if isinstance(value, (Expression, Parameter)):
                return value
            if isinstance(value, str):
                return parse(value)
            return None
    return problem.initial.get(state)
