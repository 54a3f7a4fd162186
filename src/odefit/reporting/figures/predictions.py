"""Predictions of several runs in one figure: a panel for each observable and each input."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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
from odefit.reporting.curves import last_time
from odefit.reporting.driving import Driving, driving, event_times
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import MOST_ENTRIES, SCREEN, Canvas
from odefit.reporting.figures.fit import PANEL_SIZE
from odefit.reporting.figures.function_curves import draw_driving
from odefit.reporting.predictions import BandKind, predicted
from odefit.result_data import ResultData

MOST_COLUMNS = 3
"""Largest number of panels side by side."""

MANY_RUNS = len(style.SERIES)
"""Number of runs with colours of their own and bands; more have the colours of a scale."""

MOST_RUNS = 60
"""Largest number of runs in a figure."""


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
    predictions = predicted(result, times, level, experiment, band, control, chosen, dense=True)
    for sentence in predictions.notes:
        say(sentence)
    if len(predictions.runs) > MOST_RUNS:
        raise InputError(
            f"a figure shows {MOST_RUNS} runs at most, there are {len(predictions.runs)}"
        )
    colours = run_colours(len(predictions.runs))
    groups = _driving_of(predictions.problem, predictions.runs, result.best.vector)
    count = len(chosen) + len(groups)
    with style.plain_style():
        rows = canvas.panels(count, min(count, MOST_COLUMNS), PANEL_SIZE, more=0.3)
        panels = [axes for row in rows for axes in row]
        for axes, name in zip(panels, chosen, strict=False):
            for number, (run, bands) in enumerate(
                zip(predictions.runs, predictions.bands, strict=True)
            ):
                one = next(band for band in bands if band.name == name)
                _draw_run(axes, run, one, colours[number], bands=len(predictions.runs) <= MANY_RUNS)
                _mark_events(
                    axes, event_times(predictions.problem, run.condition), one, colours[number]
                )
            _label(axes, predictions.problem, name, predictions.runs, log_y)
        for axes, group in zip(panels[len(chosen) :], groups, strict=True):
            draw_driving(axes, [one for _, one in group], [colours[k] for k, _ in group])
        style.label_outside(rows)
        canvas.legend(panels, run_handles([r.condition.name for r in predictions.runs], colours))
        return canvas.finish(panels[0])


def plot_overlay(
    result: ResultData,
    experiment: str | None = None,
    observables: Collection[str] | None = None,
    *,
    band: BandKind = "linear",
    level: float = 0.95,
    until: float | str | datetime.date | None = None,
    canvas: Canvas = SCREEN,
    log_y: bool = False,
    control: Control | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Figure:
    """Draw all experiments, or one, in one panel for each measured observable.

    Curves extend to the time ``until``.
    """
    problem = result.problem
    conditions = problem.conditions if experiment is None else (problem.condition(experiment),)
    times = None
    measured = {name for c in conditions for name in c.series}
    if observables is None:
        observables = [name for name in problem.model.observables if name in measured]
    if until is not None:
        times = [max(last_time(problem, until, experiment), *(c.end for c in conditions))]
    return plot_predictions(
        result,
        [c.name for c in conditions],
        observables,
        times=times,
        band=band,
        level=level,
        canvas=canvas,
        log_y=log_y,
        control=control,
        say=say,
    )


def run_colours(count: int) -> list[str]:
    """Return a colour for each of some runs: those of series, or of a scale where these end."""
    if count <= MANY_RUNS:
        return list(style.SERIES[:count])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["viridis"]
    return [to_hex(scale(0.9 * k / (count - 1))) for k in range(count)]


def run_handles(names: Sequence[str], colours: Sequence[str]) -> list[Artist]:
    """Return the entries of the legend for runs, the first ones where there are many."""
    handles: list[Artist] = []
    for name, colour in list(zip(names, colours, strict=True))[:MOST_ENTRIES]:
        label = style.plain(style.shorten(name))
        handles.append(Line2D([], [], color=colour, marker="o", markersize=3.0, label=label))
    if len(names) > MOST_ENTRIES:
        label = f"and {len(names) - MOST_ENTRIES} more"
        handles.append(Line2D([], [], linestyle="none", label=label))
    return handles


def _driving_of(
    problem: Problem, runs: Sequence[Run], vector: Array
) -> list[list[tuple[int, Driving]]]:
    """Return inputs and doses of the runs, by name, with the number of the run."""
    groups: dict[tuple[str, str], list[tuple[int, Driving]]] = {}
    for number, run in enumerate(runs):
        finite = run.times[np.isfinite(run.times)]
        end = float(finite.max(initial=run.condition.t0))
        for one in driving(problem, run.condition, vector, end):
            groups.setdefault((one.kind, one.name), []).append((number, one))
    return list(groups.values())


def _mark_events(axes: Axes, moments: Sequence[float], band: Band, colour: str) -> None:
    times = band.times[np.isfinite(band.times)]
    for moment in moments:
        if times[0] <= moment <= times[-1]:
            axes.axvline(moment, ymax=0.03, color=colour, linewidth=0.7, zorder=1)


def _draw_run(axes: Axes, run: Run, band: Band, colour: str, *, bands: bool) -> None:
    """Draw one curve, its measurements and its `bands`."""
    finite = np.isfinite(band.times)
    times = band.times[finite]
    for (low, high), alpha in ((band.prediction, 0.1), (band.confidence, 0.28)) if bands else ():
        axes.fill_between(
            times, low[finite], high[finite], color=colour, alpha=alpha, linewidth=0, zorder=1.5
        )
    axes.plot(times, band.values[finite], color=colour, linewidth=1.4, zorder=3)
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


def _label(axes: Axes, problem: Problem, name: str, runs: Sequence[Run], log_y: bool) -> None:
    unit = problem.units.get(name, "")
    axes.set_title(
        style.plain(style.shorten(name)),
        loc="left",
        fontsize=9.5,
        color=style.INK,
        parse_math=False,
    )
    if log_y:
        axes.set_yscale("log", nonpositive="clip")
    axes.set_ylabel(style.with_unit(name, unit), parse_math=False)
    calendar = calendar_of(problem, runs[0].condition)
    axes.set_xlabel(style.time_label(problem.time_unit, calendar), parse_math=False)
    style.dress(axes, log_y=log_y, calendar=calendar)
