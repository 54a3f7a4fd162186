"""The tables of the campaign `global`: Tables 1 to 4 of the paper, all others, and the targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from evidence.bounds import paper as paper
from evidence.bounds import plan as plan
from evidence.bounds.runs import moments, until
from evidence.running.campaign import Record
from evidence.running.panels import legend
from odefit.reporting.figures.style import dress, new_figure, plain_style

GAPS = (0.05, 0.01, 0.001)  # relative gaps whose times are shown

# Columns of Table 1, and the number of coefficients that branch and bound has for a residual
SIZES = (
    *("NLP variables", "NLP equations", "MILP variables", "MILP binaries", "MILP equations"),
    *("unknowns", "residuals", "coefficients"),
)

BEFORE = {
    "alpha-pinene": ("alpha-pinene, legendre 5 x 3, p in [0, 1]", 19.26, 600.0),
    "hiv-proteinase": ("hiv-proteinase, legendre 5 x 5", 0.186, 1800.0),
}


@dataclass(frozen=True)
class Run:
    """A finished run."""

    case: plan.Case  # what
    method: str  # method, seconds: By which, and its limit
    seconds: float
    result: Mapping[str, Any]  # of :func:`evidence.bounds.runs.run`; empty without one
    reason: str  # why there is none

    @property
    def gap(self) -> float | None:
        """The relative gap of the bounds."""
        value: float | None = self.result.get("gap")
        return value

    def until(self, asked: float) -> float | None:
        """Return the seconds after which the gap was at most `asked`."""
        return until(self.result.get("history", ()), asked)

    def reached(self, lower: float) -> float | None:
        """Return the seconds after which the lower bound was at least `lower`."""
        found = (m.seconds for m in moments(self.result.get("history", ())) if m.lower >= lower)
        return next(found, None)


def runs(records: Sequence[Record]) -> list[Run]:
    """Return the runs of all records whose case still exists."""
    found = []
    for record in records:
        case = plan.CASES.get(record.task["case"])
        if case is None:
            continue
        result = record.result or {}
        refused = result.get("refused")
        found.append(
            Run(
                case,
                record.task["method"],
                record.task["seconds"],
                {} if refused else result,
                refused or record.reason or record.outcome,
            )
        )
    return found


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    found = runs(records)
    named = {
        "table-1": sizes(found),
        "table-2": bounds([r for r in found if r.case.part == "alpha-pinene"], "alpha-pinene"),
        "table-3": parameters(found),
        "table-4": bounds([r for r in found if r.case.part == "hiv-proteinase"], "hiv-proteinase"),
        "noisy": bounds([r for r in found if r.case.part == "noisy"]),
        "noise-free": noise_free([r for r in found if r.case.part == "noise-free"]),
        "targets": targets(found),
    }
    return {name: table for name, table in named.items() if len(table)}


def sizes(found: Sequence[Run]) -> pd.DataFrame:
    """Return Table 1: the paper's last iteration, and our first master problem."""
    own = [r for r in found if r.case.part in paper.SIZES and r.result.get("sizes")]
    rows = []
    for part, published in paper.SIZES.items():
        mine = [r for r in own if r.case.part == part]
        if mine:
            rows.append({"case": part, "method": "outer approximation (paper)", **published})
        rows += [{"case": r.case.name, "method": r.method, **r.result["sizes"]} for r in mine]
    return pd.DataFrame(rows, columns=["case", "method", *SIZES]) if rows else pd.DataFrame()


def bounds(found: Sequence[Run], part: str = "") -> pd.DataFrame:
    """Return Tables 2 and 4, and the same for other problems: gaps in per cent, seconds."""
    rows: list[dict[str, Any]] = []
    if found:
        for method, (lower, upper, gap, count, seconds) in paper.BOUNDS.get(part, {}).items():
            row = {"case": part, "method": method, "UB": upper, "LB": lower, "gap, %": 100 * gap}
            rows.append(row | {"count": count, "of": "iterations", "seconds": seconds})
    for run in found:
        row = {"case": run.case.name, "method": run.method}
        if not run.result:
            rows.append(row | {"status": run.reason})
            continue
        r = run.result
        row |= {"UB": r["upper"], "LB": r["lower"], "gap, %": _percent(run.gap)}
        row |= {"count": r["count"], "of": r["unit"], "seconds": r["seconds"]}
        row |= {f"s to {100 * asked:g} %": run.until(asked) for asked in GAPS}
        rows.append(row | {"closed": r["closed"], "status": r["status"]})
    return pd.DataFrame(rows)


def _percent(gap: float | None) -> float | None:
    return None if gap is None else 100 * gap


def parameters(found: Sequence[Run]) -> pd.DataFrame:
    """Return Table 3: the values at which each method's upper bound for HIV proteinase is reached.

    The paper's values belong to other data.
    """
    own = [r for r in found if r.case.part == "hiv-proteinase" and r.result]
    if not own:
        return pd.DataFrame()
    rows = [("sum of squares", *paper.SUMS["hiv-proteinase"], *(r.result["upper"] for r in own))]
    for key, published in paper.PARAMETERS.items():
        rows.append((key, *published, *(r.result["unknowns"].get(key) for r in own)))
    names = [f"{r.method}, {r.seconds:g} s" for r in own]
    columns = ["parameter", "Rodriguez-Fernandez et al.", "outer approximation (paper)", *names]
    return pd.DataFrame(rows, columns=columns)


def noise_free(found: Sequence[Run]) -> pd.DataFrame:
    """Return the problems without noise that each method certified, and the times."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for run in found:
        place = (run.case.problem, run.case.where)
        row = rows.setdefault(place, {"problem": place[0], "time": place[1]})
        r = run.result
        row[f"{run.method}, LB"] = r.get("lower")
        row[f"{run.method}, UB"] = r.get("upper")
        row[f"{run.method}, closed"] = r.get("closed", run.reason)
        row[f"{run.method}, seconds"] = r.get("seconds")
    return pd.DataFrame(list(rows.values()))


def targets(found: Sequence[Run]) -> pd.DataFrame:
    """Return the targets, the measured values, and whether each target is met so far."""
    rows = [row for make in (_paper_targets, _own_targets, _counted) for row in make(found)]
    return pd.DataFrame(rows, columns=["target", "seen", "holds"])


Row = tuple[str, str, bool]


def _of(found: Sequence[Run], method: str, wanted: Callable[[plan.Case], bool]) -> list[Run]:
    best: dict[str, Run] = {}
    for run in found:
        if run.method == method and wanted(run.case):
            before = best.get(run.case.name)
            if before is None or _rank(run) < _rank(before):
                best[run.case.name] = run
    return list(best.values())


def _rank(run: Run) -> tuple[bool, float]:
    gap = run.gap
    return (gap is None, 0.0 if gap is None else gap)


def _paper_targets(found: Sequence[Run]) -> Iterator[Row]:
    """Return the targets of the paper's algorithm."""
    name, least, limit = BEFORE["alpha-pinene"]
    for run in _of(found, plan.OUTER, lambda c: c.name == name):
        at = run.reached(least)
        said = f"LB {_number(run.result.get('lower'))}" + _after(at)
        yield (f"{name}, {plan.OUTER}: LB >= {least:g} in {limit:g} s", said, _within(at, limit))
    name, most, limit = BEFORE["hiv-proteinase"]
    for method, asked in ((plan.OUTER, most), (plan.BRANCH, 0.05)):
        for run in _of(found, method, lambda c: c.name == name):
            yield _gap_row(run, asked, limit)


def _own_targets(found: Sequence[Run]) -> Iterator[Row]:
    """Return the targets of branch and bound on alpha-pinene and in continuous time."""
    for run in _of(found, plan.BRANCH, lambda c: c.part == "alpha-pinene"):
        aims = {
            "legendre": ((0.01, 20.0), (0.001, 60.0)),
            "trapezoid": ((0.01, 600.0),),
            "continuous": ((0.01, None),),
        }
        for asked, limit in aims[run.case.space]:
            yield _gap_row(run, asked, limit)
    for run in _of(found, plan.BRANCH, lambda c: c.part == "noisy"):
        yield _gap_row(run, 0.01, None)


def _counted(found: Sequence[Run]) -> Iterator[Row]:
    """Return the targets for problems without noise."""
    for space in plan.SPACES:
        own = _of(
            found,
            plan.BRANCH,
            partial(_noise_free, space),
        )
        limit = 60.0
        done = [r for r in own if r.result.get("closed") and r.result["seconds"] <= limit]
        if own:
            said = f"{len(done)} of {len(own)}"
            what = f"noise-free, {space}, {plan.BRANCH}: certified in {limit:g} s each"
            yield (what, said, len(done) == len(own))


def _noise_free(space: str, case: plan.Case) -> bool:
    return case.part == "noise-free" and case.space == space


def _gap_row(run: Run, asked: float, limit: float | None) -> Row:
    at = run.until(asked)
    until_when = "" if limit is None else f" in {limit:g} s"
    what = f"{run.case.name}, {run.method}: gap <= {100 * asked:g} %{until_when}"
    missing = "no upper bound" if run.result else run.reason
    seen = missing if run.gap is None else f"{100 * run.gap:.3g} %"
    return (what, seen + _after(at), _within(at, limit))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _after(seconds: float | None) -> str:
    return "" if seconds is None else f", reached after {seconds:.3g} s"


def _within(seconds: float | None, limit: float | None) -> bool:
    return seconds is not None and (limit is None or seconds <= limit)


COLOURS = {plan.BRANCH: "#1d4ed8", plan.OUTER: "#b45309", plan.SCIP: "#047857"}
COLUMNS = 3
FIRST = 0.1  # time in seconds at which the axes begin
FEW = 3  # largest number of steps that are drawn as dots


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return a figure for each part, with a panel for each problem and two lines for each method.

    The figure omits an optimum of zero that was found at once.
    """
    moved = [
        run
        for run in runs(records)
        if run.result.get("history") and not (run.result["closed"] and run.result["lower"] == 0)
    ]
    found = {}
    for part in plan.PARTS:
        own = [run for run in moved if run.case.part == part]
        if own:
            found[f"bounds-{part}"] = _figure(own)
    return found


def _figure(found: Sequence[Run]) -> Figure:

    cases = list(dict.fromkeys(run.case.name for run in found))
    columns = min(COLUMNS, len(cases))
    rows = math.ceil(len(cases) / columns)
    with plain_style():
        figure = new_figure(3.1 * columns + 0.3, 2.3 * rows + 0.5)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, case in zip(panels, cases, strict=False):
            _panel(axes, [run for run in found if run.case.name == case])
        for axes in panels[len(cases) :]:
            axes.set_axis_off()
        used = dict.fromkeys(run.method for run in found)
        lines = [Line2D([], [], color=COLOURS[m], linewidth=1.4, label=m) for m in used]
        legend(figure, 3, handles=lines)
    return figure


def _panel(axes: Axes, found: Sequence[Run]) -> None:
    """Draw a panel; upper bounds are thin lines."""
    last = 10 * FIRST
    tops: list[float] = []
    bottoms: list[float] = []
    for run in found:
        steps = moments(run.result["history"])
        end = max(steps[-1].seconds, run.result["seconds"])
        steps = [*steps, replace(steps[-1], seconds=end)]
        times = np.maximum([m.seconds for m in steps], FIRST)
        last = max(last, float(times[-1]))
        for name, width in (("lower", 1.6), ("upper", 0.8)):
            values = np.array([getattr(m, name) for m in steps])
            values = np.where(np.isfinite(values), values, np.nan)
            shape: dict[str, Any] = {"color": COLOURS[run.method], "linewidth": width}
            if len(times) <= FEW:
                shape |= {"marker": "o", "markersize": 2.5}
            axes.step(times, values, where="post", **shape)
            ends = values[np.isfinite(values)]
            (bottoms if name == "lower" else tops).extend(map(float, ends[-1:]))
    axes.set_xscale("log")
    axes.set_xlim(FIRST, 1.1 * last)
    both = [*bottoms, *tops]
    if both:
        low, high = min(0.0, *both), max(both)
        room = 0.08 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)
    dress(axes, log_x=True)
    axes.set_xlabel("seconds")
    axes.set_title("\n".join(_title(found[0].case)), loc="left", fontsize=8.0)


def _title(case: plan.Case) -> tuple[str, str]:
    """Return the title of a panel: problem and time, in two lines."""
    note = f", {case.note}" if case.note else ""
    noise = f", noise {case.noise:g}" if case.noise else ""
    return f"{case.problem}{noise}", f"{case.where}{note}"
