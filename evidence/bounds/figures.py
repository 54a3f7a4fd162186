"""The figures of the campaign `global`: lower and upper bounds against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.bounds import plan as plan
from evidence.bounds.runs import moments
from evidence.running.campaign import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evidence.bounds.tables import Run

COLOURS = {plan.BRANCH: "#1d4ed8", plan.OUTER: "#b45309", plan.SCIP: "#047857"}
COLUMNS = 3
FIRST = 0.1  # time in seconds at which the axes begin
FEW = 3  # largest number of steps that are drawn as dots; they may all be at the end


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return a figure for each part, with a panel for each problem and two lines for each method.

    An optimum of zero that was found at once has nothing to be seen.
    """
    from evidence.bounds.tables import runs

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
    from matplotlib.lines import Line2D

    from odefit.reporting.figures.style import new_figure, plain_style

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
        figure.legend(
            handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize=8.0
        )
    return figure


def _panel(axes: Axes, found: Sequence[Run]) -> None:
    """Draw a panel; upper bounds are thin lines."""
    from odefit.reporting.figures.style import dress

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
