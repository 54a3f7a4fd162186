"""Fit and data: one panel for each observable of each experiment."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from odefit.assessment.predictions.bands import Band
from odefit.common.arrays import Array
from odefit.common.option_checks import check_level
from odefit.methods.running.control import Control
from odefit.reporting.curves import Curve, fit_curves, last_time
from odefit.reporting.driving import Driving, driving
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.density import draw_density
from odefit.reporting.figures.function_curves import draw_driving, with_functions
from odefit.reporting.prediction_notes import band_notes, beyond_the_data
from odefit.reporting.predictions import BandKind, band_source, validation_series
from odefit.result_data import ResultData
from odefit.simulation.other_integrations import able_to_integrate

PANEL_SIZE = (3.1, 2.25)
"""Width and height of a panel, in inches."""

MAX_PANELS = 120
"""Largest number of panels in a figure that screens and printers can show."""

BELOW_MEASURED = 0.2
"""Lowest end of a logarithmic axis, as a fraction of the smallest measurement."""

MANY_EVENTS = 20
"""Smallest number of events drawn as short marks at the bottom instead of full lines."""

MARK_LENGTH = 0.03
"""Length of such a mark, as a fraction of the panel's height."""


def plot_fit(
    result: ResultData,
    experiment: str | None = None,
    observables: Sequence[str] | None = None,
    *,
    band: BandKind | None = None,
    level: float = 0.95,
    validation: Any = None,
    canvas: Canvas = SCREEN,
    log_y: bool = False,
    until: float | str | datetime.date | None = None,
    share_axes: bool = False,
    inputs: bool = False,
    control: Control | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Figure:
    """Draw all panels in one figure, see :meth:`odefit.Result.plot_fit`.

    The panels of one experiment form a row where possible. With ``log_y`` the vertical axes are
    logarithmic; with ``share_axes`` all panels share their times, and panels of an observable their
    values. Curves extend to the time ``until``, with linear bands unless others are given. With
    ``inputs``, those and doses have panels of their own after all others.
    ``control`` receives the progress of bands. `say` is called with sentences on anything
    unexpected.
    """
    check_level(level)
    if until is not None:
        until = last_time(result.problem, until, experiment)
        band = "linear" if band is None and result.uncertainty is not None else band
    forward = None
    if result.solutions:
        best = result.best
        forward = able_to_integrate(result.problem, best.vector, best.nodes)
    source = None if band is None else band_source(result, band, forward, control)
    apart = None
    if validation is not None:
        apart = validation_series(result.problem, validation, experiment)
    curves = list(fit_curves(result, experiment, source, level, apart, observables, forward, until))
    curves = with_functions(curves, result, experiment, source, level, observables, forward)
    if not curves:
        return canvas.empty("nothing of this was measured")
    for sentence in curve_notes(result, curves, until):
        say(sentence)
    left_out = sum(int((curve.measured <= 0).sum()) for curve in curves)
    if log_y and left_out:
        say(
            f"{left_out} measured values are not positive, and are left out of the logarithmic axis"
        )
    left_out = len(curves) - MAX_PANELS
    shown = curves[:MAX_PANELS]
    several = len({c.experiment for c in shown}) > 1
    driven = driving_of(result, curves, until) if inputs else []
    driven = driven[: MAX_PANELS - len(shown)]
    with style.plain_style():
        rows = canvas.panels(
            len(shown) + len(driven),
            column_count(shown),
            PANEL_SIZE,
            more=0.65 if left_out > 0 else 0.35,
        )
        panels = [axes for row in rows for axes in row]
        for axes, curve in zip(panels, shown, strict=False):
            draw_panel(axes, curve, several, log_y)
        for axes, one in zip(panels[len(shown) :], driven, strict=True):
            draw_driving_panel(axes, one, several)
        style.label_outside(rows)
        if share_axes:
            _share(panels[: len(shown)], shown)
        canvas.legend(panels, legend_handles(shown, level))
        if left_out > 0:
            panels[0].figure.suptitle(
                f"the first {MAX_PANELS} of {len(curves)} panels", fontsize=9.0
            )
        return canvas.finish(panels[0])


def driving_of(
    result: ResultData, curves: Sequence[Curve], until: float | None = None
) -> list[Driving]:
    """Return inputs and doses of the experiments of some curves, as far as these extend."""
    drivings: list[Driving] = []
    vector = result.best.vector if result.solutions else np.zeros(len(result.problem.unknowns))
    for experiment in dict.fromkeys(curve.experiment for curve in curves):
        condition = result.problem.condition(experiment)
        end = condition.end if until is None else max(condition.end, until)
        drivings += driving(result.problem, condition, vector, end)
    return drivings


def draw_driving_panel(axes: Axes, one: Driving, several: bool) -> None:
    """Draw an input, doses or a constant of one experiment, which the title names on request."""
    draw_driving(axes, [one], [style.INK])
    if several:
        title = f"{axes.get_title('left')} · {style.shorten(one.experiment, 24)}"
        axes.set_title(
            style.plain(title), loc="left", fontsize=9.5, color=style.INK, parse_math=False
        )


def _share(panels: Sequence[Axes], curves: Sequence[Curve]) -> None:
    """Give all panels the same times, and panels of one observable the same values."""
    groups: dict[str, list[Axes]] = {}
    for axes, curve in zip(panels, curves, strict=True):
        groups.setdefault(curve.observable, []).append(axes)
    for same in groups.values():
        ends = np.array([axes.get_ylim() for axes in same])
        for axes in same:
            axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    of_time = [axes for axes, curve in zip(panels, curves, strict=True) if curve.argument is None]
    ends = np.array([axes.get_xlim() for axes in of_time])
    if len({curve.log_time for curve in curves if curve.argument is None}) == 1:
        for axes in of_time:
            axes.set_xlim(ends[:, 0].min(), ends[:, 1].max())


def legend_handles(curves: Sequence[Curve], level: float) -> list[Artist]:
    """Return the entries of the legend for some kinds of curves."""
    point: dict[str, Any] = {"linestyle": "none", "markersize": 3.8, "color": style.DATA}
    handles: list[Artist] = []
    if any(len(c.times) for c in curves):
        handles.append(Line2D([], [], marker="o", label="measured", **point))
    if any(c.censored is not None for c in curves):
        handles.append(
            Line2D([], [], marker="v", markerfacecolor="none", label="beyond a limit", **point)
        )
    if any(c.spread is not None and not c.dense for c in curves):
        handles.append(
            Line2D([], [], linestyle="none", marker="|", color=style.DATA, label="± 1 sd")
        )
    if any(c.validation is not None for c in curves):
        handles.append(
            Line2D([], [], marker="s", markerfacecolor="none", label="not fitted", **point)
        )
    line: dict[str, Any] = {"color": style.MODEL}
    if any(len(c.model) for c in curves):
        handles.append(Line2D([], [], linewidth=1.4, label="model", **line))
    if any(len(c.others) for c in curves):
        line |= {"linewidth": 0.9, "linestyle": (0, (4, 2))}
        handles.append(Line2D([], [], label="other solutions", **line))
    if any(c.band is not None for c in curves):
        handles.append(Patch(color=style.MODEL, alpha=0.4, label=f"{100 * level:g} % confidence"))
    if any(c.band is not None and np.isfinite(c.band.prediction).any() for c in curves):
        handles.append(Patch(color=style.MODEL, alpha=0.13, label="prediction"))
    if any(c.events for c in curves):
        line = {"color": style.MUTED, "linewidth": 0.7, "linestyle": (0, (3, 3))}
        handles.append(Line2D([], [], label="event", **line))
    if any(c.until is not None for c in curves):
        handles.append(Patch(color=style.GRID, alpha=0.6, label="beyond the data"))
    return handles


def column_count(curves: Sequence[Curve]) -> int:
    """Return the number of panels in a row: those of an experiment, or enough for a square."""
    count = len(curves)
    experiments = len({c.experiment for c in curves})
    each = count // experiments
    if experiments > 1 and 2 <= each <= 4 and each * experiments == count:
        return each
    return min(count, 3 if count <= 9 else 4)


def panel_figure(curve: Curve) -> style.Plot:
    """Return one panel as a figure of its own."""
    with style.plain_style():
        figure, axes = style.panel_axes(*PANEL_SIZE, left=0.72)
        draw_panel(axes, curve, several=False)
        style.keep_title(axes)
    return figure


def driving_figure(one: Driving) -> style.Plot:
    """Return the panel of an input, doses or a constant as a figure of its own."""
    with style.plain_style():
        figure, axes = style.panel_axes(*PANEL_SIZE, left=0.72)
        draw_driving(axes, [one], [style.INK])
    return figure


def draw_panel(axes: Axes, curve: Curve, several: bool, log_y: bool = False) -> None:
    """Draw the measurements and the model of one observable.

    The title names the experiment if there are several. With ``log_y`` the axis does not extend to
    a model that falls far below all measurements.
    """
    title = style.shorten(curve.observable)
    if several:
        title = f"{title} · {style.shorten(curve.experiment, 24)}"
    axes.set_title(style.plain(title), loc="left", fontsize=9.5, color=style.INK, parse_math=False)
    logarithmic = log_y or curve.transform is not None
    if logarithmic:
        axes.set_yscale("log", nonpositive="clip" if log_y else "mask")
    if curve.log_time:
        axes.set_xscale("log", nonpositive="mask")
    shown = [curve.times, curve.model_times]
    if curve.validation is not None:
        shown.append(curve.validation[0])
    every = np.concatenate(shown)
    events = [time for time in curve.events if every.min() <= time <= every.max()]
    for time in events:
        if len(events) < MANY_EVENTS:
            axes.axvline(time, color=style.MUTED, linewidth=0.7, linestyle=(0, (3, 3)), zorder=1)
        else:
            axes.axvline(time, ymax=MARK_LENGTH, color=style.MUTED, linewidth=0.7, zorder=1)
    if curve.until is not None:
        last = max(curve.times.max(initial=-np.inf), curve.model_times.min(initial=curve.until))
        axes.axvspan(last, curve.until, color=style.GRID, alpha=0.6, linewidth=0, zorder=0)
    if curve.band is not None:
        _draw_band(axes, curve.band, curve.infinity is not None)
    _draw_model(axes, curve)
    _draw_data(axes, curve)
    if curve.infinity is not None:
        style.mark_infinity(axes, curve.infinity)
    if curve.validation is not None:
        _draw_validation(axes, *curve.validation)
    axes.set_ylabel(style.with_unit(curve.observable, curve.unit), parse_math=False)
    label = style.time_label(curve.time_unit, curve.calendar)
    if curve.argument is not None:
        label = style.with_unit(*curve.argument)
    axes.set_xlabel(label, parse_math=False)
    positive = curve.measured[curve.measured > 0]
    if log_y and len(positive):
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, BELOW_MEASURED * positive.min()), high)
    style.dress(axes, log_x=curve.log_time, log_y=logarithmic, calendar=curve.calendar)
    if not logarithmic:
        _keep_constant_visible(axes, curve)
    missing = "no model" if curve.failure else "no band" if lacks_band(curve) else ""
    if len(curve.others) and not missing:
        missing = "dashed: other solutions"
    if missing:
        axes.set_title(missing, loc="right", fontsize=8.0, color=style.MUTED)


def lacks_band(curve: Curve) -> bool:
    """Tell whether a requested band is missing, or unbounded, at most of the times."""
    if curve.band is None:
        return bool(curve.no_band)
    return bool(np.isfinite(curve.band.confidence).all(axis=0).mean() < 0.5)


def curve_notes(
    result: ResultData, curves: Sequence[Curve], until: float | None = None
) -> Iterator[str]:
    """Yield notes on the bands of curves, experiment by experiment."""
    several = len(result.problem.conditions) > 1
    for experiment in dict.fromkeys(curve.experiment for curve in curves):
        experiment_curves = [curve for curve in curves if curve.experiment == experiment]
        drawn_bands = [curve.band for curve in experiment_curves if curve.band is not None]
        failed = [f"no band of {c.observable}: {c.no_band}" for c in experiment_curves if c.no_band]
        for sentence in (*failed, *band_notes(result, drawn_bands)):
            yield f"{experiment}: {sentence}" if several else sentence
        condition = result.problem.condition(experiment)
        if until is not None and until > condition.end:
            yield (
                f"{experiment}: after t = {condition.end:g}, the last measurement, the curve is an "
                "extrapolation"
            )
            yield from beyond_the_data(result.problem, condition, until)


def _draw_model(axes: Axes, curve: Curve) -> None:
    if len(curve.model) == 0:
        return
    values = np.where(np.isfinite(curve.model), curve.model, np.nan)
    times = curve.model_times
    if curve.infinity is not None:  # no line reaches it
        axes.plot(times[-1:], values[-1:], color=style.MODEL, marker="_", markersize=9, zorder=3)
        times, values = times[:-1], values[:-1]
    axes.plot(times, values, color=style.MODEL, linewidth=0.9 if curve.dense else 1.4, zorder=3)
    for other in curve.others:
        line = np.where(np.isfinite(other), other, np.nan)[: len(times)]
        axes.plot(times, line, color=style.MODEL, linewidth=0.9, linestyle=(0, (4, 2)), zorder=2.5)


def _draw_band(axes: Axes, band: Band, infinite: bool) -> None:
    """Draw the prediction band, and the confidence band on top of it.

    The last point is drawn separately where it is the steady state.
    """
    drawn = len(band.times) - infinite
    for (low, high), alpha in ((band.prediction, 0.13), (band.confidence, 0.3)):
        axes.fill_between(
            band.times[:drawn],
            low[:drawn],
            high[:drawn],
            color=style.MODEL,
            alpha=alpha,
            linewidth=0,
            zorder=1.5,
        )
        if infinite:
            axes.vlines(
                band.times[-1:],
                low[-1:],
                high[-1:],
                color=style.MODEL,
                alpha=alpha,
                linewidth=5.0,
                zorder=1.5,
            )


def _draw_validation(axes: Axes, times: Array, values: Array) -> None:
    axes.plot(
        times,
        values,
        linestyle="none",
        marker="s",
        markersize=4.0,
        markerfacecolor="none",
        markeredgecolor=style.DATA,
        zorder=4,
    )


def _draw_data(axes: Axes, curve: Curve) -> None:
    if curve.dense:
        draw_density(axes, curve.times, curve.measured, style.DATA, zorder=2)
        return
    many = len(curve.times) > 80
    codes = np.zeros(len(curve.times)) if curve.censored is None else curve.censored
    measured = codes == 0
    if curve.spread is not None:
        axes.vlines(
            curve.times[measured],
            curve.spread[0][measured],
            curve.spread[1][measured],
            color=style.DATA,
            linewidth=0.5 if many else 0.9,
            alpha=0.6,
            zorder=2,
        )
    for code, marker in ((1, "v"), (-1, "^")):  # the true value is lower, or higher
        if (codes == code).any():
            axes.plot(
                curve.times[codes == code],
                curve.measured[codes == code],
                linestyle="none",
                marker=marker,
                markersize=2.5 if many else 4.2,
                markerfacecolor="none",
                markeredgecolor=style.DATA,
                zorder=2 if many else 4,
            )
    axes.plot(
        curve.times[measured],
        curve.measured[measured],
        linestyle="none",
        marker="o",
        markersize=2.0 if many else 3.6,
        markerfacecolor=style.DATA,
        markeredgecolor=style.DATA,
        zorder=2 if many else 4,
    )


def _keep_constant_visible(axes: Axes, curve: Curve) -> None:
    """Show a nearly constant series as a flat line, without magnifying its rounding errors."""
    values = [curve.measured, curve.model[np.isfinite(curve.model)]]
    if curve.spread is not None:
        values.append(curve.spread.ravel())
    everything = np.concatenate(values)
    low, high = float(everything.min()), float(everything.max())
    size = max(abs(low), abs(high))
    if high - low < 1e-6 * size:
        axes.set_ylim(low - 0.1 * size, high + 0.1 * size)
    elif size == 0.0:
        axes.set_ylim(-1.0, 1.0)
