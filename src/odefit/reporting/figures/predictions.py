"""Predictions of several runs in one figure: a panel for each observable and each input."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odefit.assessment.predictions.bands import Band
from odefit.assessment.predictions.prediction_runs import Run
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.common.option_checks import check_level
from odefit.expressions.expressions import TIME
from odefit.methods.running.control import Control
from odefit.problem.building.columns import as_table, numeric_column
from odefit.problem.building.times import with_times
from odefit.problem.calendars import calendar_of
from odefit.problem.inputs.issues import Issues
from odefit.problem.problem import Problem
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.fit import PANEL_SIZE
from odefit.reporting.predictions import BandKind, predicted
from odefit.result_data import ResultData

MOST_COLUMNS = 3
"""Largest number of panels side by side."""

MANY_RUNS = len(style.SERIES)
"""Number of runs with colours of their own."""


def plot_predictions(
    result: ResultData,
    experiment: Any = None,
    observables: Collection[str] | None = None,
    *,
    times: Any = None,
    band: BandKind = "linear",
    level: float = 0.95,
    canvas: Canvas = SCREEN,
    log_y: bool = False,
    control: Control | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Figure:
    """Draw runs with their bands, see :meth:`odefit.Result.plot_predictions`.

    `say` is called with sentences on what is missing, and on what is beyond the fitted experiments.
    """
    check_level(level)
    known = tuple(result.problem.model.observables)
    for name in observables or ():
        if name not in known:
            raise InputError(f"observable: there is no '{name}'{one_of(name, known)}")
    chosen = [n for n in known if observables is None or n in observables]
    found = predicted(result, times, level, experiment, band, control, chosen, dense=True)
    for sentence in found.notes:
        say(sentence)
    if len(found.runs) > MANY_RUNS:
        raise InputError(f"a figure shows {MANY_RUNS} runs at most, there are {len(found.runs)}")
    inputs = list(found.problem.model.inputs)
    count = len(chosen) + len(inputs)
    with style.plain_style():
        rows = canvas.panels(count, min(count, MOST_COLUMNS), PANEL_SIZE, more=0.3)
        panels = [axes for row in rows for axes in row]
        for axes, name in zip(panels, chosen, strict=False):
            for number, (run, bands) in enumerate(zip(found.runs, found.bands, strict=True)):
                one = next(band for band in bands if band.name == name)
                _draw_run(axes, found.problem, run, one, style.SERIES[number])
            _label(axes, found.problem, name, found.runs, log_y)
        for axes, name in zip(panels[len(chosen) :], inputs, strict=True):
            for number, run in enumerate(found.runs):
                _draw_input(axes, run, name, style.SERIES[number])
            _label(axes, found.problem, name, found.runs, False)
        style.label_outside(rows)
        panels[0].legend(frameon=False, fontsize=style.SMALL_FONT)
        return canvas.finish(panels[0])


def _draw_run(axes: Axes, problem: Problem, run: Run, band: Band, colour: str) -> None:
    """Draw one curve with its bands, its measurements and the times of events."""
    finite = np.isfinite(band.times)
    times = band.times[finite]
    for (low, high), alpha in ((band.prediction, 0.1), (band.confidence, 0.28)):
        axes.fill_between(
            times, low[finite], high[finite], color=colour, alpha=alpha, linewidth=0, zorder=1.5
        )
    label = style.plain(style.shorten(run.condition.name))
    axes.plot(times, band.values[finite], color=colour, linewidth=1.4, zorder=3, label=label)
    for moment in {t for t, _ in run.condition.events if times[0] <= t <= times[-1]}:
        axes.axvline(moment, ymax=0.03, color=colour, linewidth=0.7, zorder=1)
    points, marker = measured_in(run, band.name)
    axes.plot(
        *points,
        linestyle="none",
        marker=marker,
        markersize=3.8,
        markerfacecolor="none" if marker == "s" else colour,
        markeredgecolor=colour,
        zorder=4,
    )


def measured_in(run: Run, observable: str) -> tuple[tuple[Array, Array], str]:
    """Return times and values of the measurements of a run, and their marker.

    Fitted measurements are dots, those of a scenario's table open squares.
    """
    if run.scenario is None:
        series = run.condition.series.get(observable)
        if series is None:
            return (np.zeros(0), np.zeros(0)), "o"
        return (run.condition.times[series.rows], series.values), "o"
    data, _ = with_times(run.scenario.data, TIME, "", Issues())
    table = as_table(data) or {}
    columns = [
        numeric_column(table[name], "", Issues()) if name in table else None
        for name in (TIME, observable)
    ]
    if columns[0] is None or columns[1] is None:
        return (np.zeros(0), np.zeros(0)), "s"
    return (columns[0], columns[1]), "s"


def _draw_input(axes: Axes, run: Run, name: str, colour: str) -> None:
    given = run.condition.inputs[name]
    finite = run.times[np.isfinite(run.times)]
    start, end = run.condition.t0, float(finite.max(initial=run.condition.t0))
    corners = given.times[(given.times > start) & (given.times < end)]
    before = corners - 1e-9 * max(end - start, 1e-300)
    times = np.unique(np.concatenate([np.linspace(start, end, 240), corners, before]))
    axes.plot(times, given(times), color=colour, linewidth=1.2)


def _label(axes: Axes, problem: Problem, name: str, runs: Sequence[Run], log_y: bool) -> None:
    unit = problem.units.get(name, "")
    axes.set_title(
        style.plain(style.shorten(f"{name} ({unit})" if unit else name)),
        loc="left",
        fontsize=9.5,
        color=style.INK,
        parse_math=False,
    )
    if log_y:
        axes.set_yscale("log", nonpositive="clip")
    calendar = calendar_of(problem, runs[0].condition)
    axes.set_xlabel(style.time_label(problem.time_unit, calendar), parse_math=False)
    style.dress(axes, log_y=log_y, calendar=calendar)
