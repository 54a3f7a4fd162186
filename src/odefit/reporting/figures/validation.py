"""New measurements and predictions against time and against each other, and their residuals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odefit.assessment.predictions.cross_validation import CrossValidationData, Fold
from odefit.assessment.predictions.validation_data import ValidatedSeries, ValidationData
from odefit.common.arrays import Array
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import MOST_ENTRIES, SCREEN, Canvas
from odefit.reporting.figures.fit import PANEL_SIZE


def plot_validation(validation: ValidationData, canvas: Canvas = SCREEN) -> Figure:
    """Draw the course in time, a parity panel and a residual panel for each observable.

    Runs have colours of their own. Bars are prediction bands, dashed lines the predictions one step
    ahead; grey lines mark equality and two standard deviations.
    """
    return _drawn(validation.series, validation.time_unit, canvas)


def plot_cross_validation(validation: CrossValidationData, canvas: Canvas = SCREEN) -> Figure:
    """Draw the same for parts that were left out, each in a colour of its own."""
    good = [fold for fold in validation.folds if not fold.failure]
    if not good:
        return canvas.empty("no part could be predicted")
    return _drawn([one for fold in good for one in _of_fold(fold)], validation.time_unit, canvas)


def _of_fold(fold: Fold) -> Iterator[ValidatedSeries]:
    """Yield the measurements of a part by experiment and observable, named after the part."""
    experiments, observables = np.array(fold.experiments), np.array(fold.observables)
    for experiment, observable in dict.fromkeys(zip(experiments, observables, strict=True)):
        chosen = (experiments == experiment) & (observables == observable)
        none, nan = np.full(int(chosen.sum()), np.nan), math.nan
        yield ValidatedSeries(
            fold.name, str(observable), fold.times[chosen], fold.measured[chosen],
            fold.predicted[chosen], none, none, fold.residuals[chosen],
            nan, nan, nan, nan, nan, nan, nan,
        )  # fmt: skip


def _drawn(series: Sequence[ValidatedSeries], time_unit: str, canvas: Canvas) -> Figure:
    observables = list(dict.fromkeys(one.observable for one in series))
    runs = list(dict.fromkeys(one.experiment for one in series))
    ahead = any(len(one.ahead) for one in series)
    with style.plain_style():
        rows = canvas.panels(3 * len(observables), 3, PANEL_SIZE, more=0.35)
        panels = [axes for row in rows for axes in row]
        for k, observable in enumerate(observables):
            observable_series = [one for one in series if one.observable == observable]
            course, parity, residuals = panels[3 * k : 3 * k + 3]
            for one in observable_series:
                _draw_series(
                    (course, parity, residuals),
                    one,
                    style.SERIES[runs.index(one.experiment) % len(style.SERIES)],
                )
            ends = _range(observable_series)
            parity.plot(ends, ends, color=style.MUTED, linewidth=0.8, zorder=1)
            for height in (-2.0, 0.0, 2.0):
                dashes = "-" if height == 0 else (0, (3, 3))
                residuals.axhline(height, color=style.MUTED, linewidth=0.8, linestyle=dashes)
            course.set_title(style.plain(observable), loc="left", fontsize=9.5, parse_math=False)
            time_label = style.time_label(time_unit)
            for axes, below, left in (
                (course, time_label, style.plain(observable)),
                (parity, "predicted", "measured"),
                (residuals, time_label, "residual / sd"),
            ):
                axes.set_xlabel(below, parse_math=False)
                axes.set_ylabel(left, parse_math=False)
                style.dress(axes)
        canvas.legend(panels, _legend(runs, ahead))
        return canvas.finish(panels[0])


def _draw_series(panels: tuple[Axes, Axes, Axes], one: ValidatedSeries, colour: str) -> None:
    course, parity, residuals = panels
    known = np.isfinite(one.low)
    order = np.argsort(one.times, kind="stable")
    points: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 3.8}
    points |= {"color": colour, "markerfacecolor": "none"}
    times, values, low, high = one.course
    if not len(times):
        times, values = one.times[order], one.predicted[order]
        low, high = one.low[order], one.high[order]
    if np.isfinite(low).any():
        course.fill_between(times, low, high, color=colour, alpha=0.13, linewidth=0)
    course.plot(times, values, color=colour, linewidth=1.2)
    if len(one.ahead):
        dashed: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (3, 2))}
        course.plot(one.times[order], one.ahead[order], color=colour, **dashed)
    course.plot(one.times, one.measured, **points)
    parity.vlines(one.predicted[known], one.low[known], one.high[known], color=colour, alpha=0.35)
    parity.plot(one.predicted, one.measured, **points)
    residuals.plot(one.times, one.residuals, **points)


def _legend(runs: Sequence[str], ahead: bool) -> list[Artist]:
    """Return the entries of the legend: a colour for each run, and the kinds of lines."""
    handles: list[Artist] = [
        Line2D(
            [], [], color=style.SERIES[k % len(style.SERIES)], marker="s", markersize=3.8,
            markerfacecolor="none", label=style.plain(style.shorten(run)),
        )
        for k, run in enumerate(runs[:MOST_ENTRIES])
    ]  # fmt: skip
    if ahead:
        line: dict[str, Any] = {"color": style.INK}
        handles.append(Line2D([], [], linewidth=1.2, label="free run", **line))
        line["linestyle"] = (0, (3, 2))
        handles.append(Line2D([], [], linewidth=1.0, label="one step ahead", **line))
    return handles


def _range(series: Sequence[ValidatedSeries]) -> Array:
    values = np.concatenate([v for s in series for v in (s.measured, s.predicted)])
    return np.array([values.min(), values.max()])
