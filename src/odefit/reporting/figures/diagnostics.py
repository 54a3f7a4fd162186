"""Diagnostics of a fit: measurements against predictions, and the residuals' distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from odefit.common.errors import InputError, one_of
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.residual_data import (
    Residuals,
    autocorrelation,
    by_observable,
    normal_quantiles,
    quantile_band,
    residuals_of,
)
from odefit.reporting.figures.residuals import (
    Setting,
    draw_against_prediction,
    draw_against_time,
    draw_by_experiment,
    draw_points,
    reference_handles,
    title_panel,
)
from odefit.result_data import ResultData

PANEL_SIZE = (3.1, 2.3)
"""Width and height of a panel, in inches."""

MAX_PANELS = 60
"""Largest number of panels in one figure."""

MAX_BAND = 400
"""Number of points of the limits in a quantile plot, more than a reader can resolve."""

NORMAL_95 = 1.96
"""Standard deviations within which 95 % of normal values are."""


@dataclass(frozen=True)
class Diagnostic:
    """A kind of diagnostic figure, with one panel for each observable.

    `title` is its heading, `reading` is a sentence on what to look for, `draw` fills a panel, and
    `handles` are the entries of the legend beside the experiments. `by_run` says whether points
    have the colours of their experiments; where not, the panel shows a distribution alone.
    """

    title: str
    reading: str
    draw: Callable[[Axes, Sequence[Residuals], Setting], None]
    handles: Callable[[Setting], list[Artist]]
    by_run: bool = True


def plot_diagnostic(
    result: ResultData,
    kind: str | Sequence[str],
    experiment: str | None = None,
    observables: Collection[str] | None = None,
    canvas: Canvas = SCREEN,
) -> Figure:
    """Draw one or more kinds of diagnostics, with one panel for each observable.

    `kind` is one of :data:`DIAGNOSTICS`, several of these, or ``"all"``.
    """
    kinds = [kind] if isinstance(kind, str) else list(kind)
    for one in kinds:
        if one not in ("all", *DIAGNOSTICS):
            raise InputError(
                f"kind: there is no diagnostic {one!r}{one_of(one, ['all', *DIAGNOSTICS])}"
            )
    residuals = _chosen(result, experiment, observables)
    if not residuals:
        return canvas.empty("no residuals: no solution was found that can be simulated")
    groups = by_observable(residuals)
    setting = Setting.of(result.problem, residuals)
    if "all" in kinds:
        several = len(setting.marks) > 1
        kinds = [k for k in DIAGNOSTICS if several or k != "residuals-experiment"]
    drawn = [(name, k) for name in groups for k in kinds]
    columns = len(kinds)
    if 1 in (len(groups), len(kinds)):
        columns = min(len(drawn), 2 if len(drawn) == 4 else 3 if len(drawn) <= 6 else 4)
    left_out = len(drawn) - MAX_PANELS
    if left_out > 0:
        drawn = drawn[: MAX_PANELS // columns * columns]
    with style.plain_style():
        rows = canvas.panels(len(drawn), columns, PANEL_SIZE, more=0.35)
        panels = [axes for row in rows for axes in row]
        for axes, (name, one) in zip(panels, drawn, strict=True):
            DIAGNOSTICS[one].draw(axes, groups[name], setting)
            title_panel(axes, name)
        if len(kinds) == 1:
            style.label_outside(rows)
        if left_out > 0:
            panels[0].figure.suptitle(
                f"the first {len(drawn)} of {len(drawn) + left_out} panels", fontsize=9.0
            )
        by_run = any(DIAGNOSTICS[one].by_run for one in kinds)
        others = [handle for one in kinds for handle in DIAGNOSTICS[one].handles(setting)]
        unlike = list({str(handle.get_label()): handle for handle in others}.values())
        canvas.legend(panels, setting.handles(*unlike) if by_run else unlike)
        return canvas.finish(panels[0])


def _chosen(
    result: ResultData, experiment: str | None, observables: Collection[str] | None
) -> list[Residuals]:
    """Return the residuals of some experiments and observables, by default of all."""
    problem = result.problem
    name = None if experiment is None else problem.condition(experiment).name
    known = tuple(problem.model.observables)
    for observable in observables or ():
        if observable not in known:
            raise InputError(f"observable: there is no '{observable}'{one_of(observable, known)}")
    chosen = [
        entry
        for entry in residuals_of(result)
        if name in (None, entry.experiment)
        and (observables is None or entry.observable in observables)
    ]
    if not chosen and (observables or name):
        raise InputError("nothing of this was measured, so there are no residuals")
    return chosen


def panel_figure(
    kind: str, name: str, entries: Sequence[Residuals], setting: Setting
) -> style.Plot:
    """Return a panel, with its title, as a figure of its own."""
    with style.plain_style():
        figure, axes = style.panel_axes(*PANEL_SIZE, left=0.72)
        DIAGNOSTICS[kind].draw(axes, entries, setting)
        title_panel(axes, name)
        style.keep_title(axes)
    return figure


def draw_parity(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw measured against predicted values on equal axes."""
    both = np.concatenate([v for e in entries for v in (e.predicted, e.measured)])
    both = both[np.isfinite(both)]
    logarithmic = bool(
        any(e.transform is not None for e in entries) and len(both) and both.min() > 0
    )
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    draw_points(axes, entries, lambda e: (e.predicted, e.measured), setting)
    if len(both):
        low, high = float(both.min()), float(both.max())
        if logarithmic:
            ratio = (high / low) ** 0.05 if high > low else 2.0
            low, high = low / ratio, high * ratio
        else:
            margin = 0.05 * (high - low) or 0.1 * abs(high) or 1.0
            if high - low < 1e-6 * abs(high):  # do not magnify the rounding errors of a constant
                margin = 0.1 * abs(high)
            low, high = low - margin, high + margin
        axes.plot([low, high], [low, high], color=style.MUTED, linewidth=0.9, zorder=1)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
    unit = setting.problem.units.get(entries[0].observable)
    axes.set_xlabel(style.with_unit("predicted", unit), parse_math=False)
    axes.set_ylabel(style.with_unit("measured", unit), parse_math=False)
    style.dress(axes, log_x=logarithmic, log_y=logarithmic)


def draw_quantiles(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw sorted residuals against the quantiles of the normal distribution, with 95 % limits."""
    expected, ordered = normal_quantiles(np.concatenate([e.normal for e in entries]))
    if len(ordered):
        shown = np.unique(np.linspace(0, len(ordered) - 1, MAX_BAND).astype(int))
        low, high = quantile_band(len(ordered), places=shown)
        axes.fill_between(expected[shown], low, high, color=style.GRID, linewidth=0, zorder=0)
        ends = expected[[0, -1]]
        axes.plot(ends, ends, color=style.MUTED, linewidth=0.9, zorder=1)
        axes.plot(
            expected,
            ordered,
            linestyle="none",
            marker="o",
            markersize=3.0 if len(ordered) <= 200 else 1.6,
            color=style.MODEL,
            zorder=3,
            rasterized=len(ordered) > 2000,
        )
    axes.set_xlabel("normal quantile")
    axes.set_ylabel(_name_of(entries))
    style.dress(axes)


def draw_histogram(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw a histogram of the residuals and the normal density."""
    values = np.concatenate([e.normal for e in entries])
    values = values[np.isfinite(values)]
    reach = max(3.5, 1.05 * float(np.max(np.abs(values), initial=0.0)))
    # the bin width of D. Freedman and P. Diaconis (1981) for standard normal values
    width = max(2.7 / max(len(values), 1) ** (1 / 3), 2 * reach / 80)
    half = math.ceil(reach / width)
    edges = width * np.arange(-half, half + 1)
    density = np.histogram(values, edges)[0] / (max(len(values), 1) * width)
    axes.bar(
        edges[:-1],
        density,
        width,
        align="edge",
        color=style.MODEL,
        alpha=0.45,
        edgecolor=style.MODEL,
        linewidth=0.5,
        zorder=2,
    )
    grid = np.linspace(-reach, reach, 200)
    axes.plot(
        grid,
        np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi),
        color=style.INK,
        linewidth=1.1,
        zorder=3,
    )
    axes.set_ylim(0.0, None)
    axes.set_xlabel(_name_of(entries))
    axes.set_ylabel("density")
    style.dress(axes)


def draw_autocorrelation(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw the autocorrelation of residuals, with the limits of independent residuals."""
    correlations, count = autocorrelation(entries)
    limit = NORMAL_95 / math.sqrt(max(count, 1))
    axes.axhspan(-limit, limit, color=style.GRID, linewidth=0, zorder=0)
    axes.axhline(0.0, color=style.MUTED, linewidth=0.9, zorder=1)
    lags = np.arange(1, len(correlations) + 1)
    axes.vlines(lags, 0.0, correlations, color=style.MODEL, linewidth=1.4, zorder=3)
    axes.plot(
        lags,
        correlations,
        linestyle="none",
        marker="o",
        markersize=3.0,
        color=style.MODEL,
        zorder=3,
    )
    reach = max(1.15 * float(np.max(np.abs(correlations), initial=0.0)), min(1.5 * limit, 1.0))
    axes.set_ylim(-reach, reach)
    axes.set_xlim(0.4, max(len(correlations), 4) + 0.6)
    axes.set_xlabel("lag, measurements")
    axes.set_ylabel("autocorrelation")
    style.dress(axes)
    if not len(correlations):
        style.say(axes, "too few in succession")


def _name_of(entries: Sequence[Residuals]) -> str:
    return "residual / sd" if all(e.plain for e in entries) else "quantile residual"


def _equality(setting: Setting) -> list[Artist]:
    handles: list[Artist] = [Line2D([], [], color=style.MUTED, linewidth=0.9, label="equality")]
    series = [s for c in setting.problem.conditions for s in c.series.values()]
    if any(s.censored is not None for s in series):
        handles.append(
            Line2D(
                [],
                [],
                color=style.INK,
                linestyle="none",
                marker="v",
                markerfacecolor="none",
                markersize=3.8,
                label="beyond a limit",
            )
        )
    return handles


def _limits(_: Setting) -> list[Artist]:
    return [
        Line2D(
            [],
            [],
            color=style.MODEL,
            marker="o",
            linestyle="none",
            markersize=3.0,
            label="residuals",
        ),
        Patch(color=style.GRID, label="95 % limits"),
    ]


def _density(_: Setting) -> list[Artist]:
    return [
        Patch(color=style.MODEL, alpha=0.45, label="residuals"),
        Line2D([], [], color=style.INK, linewidth=1.1, label="normal density"),
    ]


DIAGNOSTICS = {
    "parity": Diagnostic(
        "Observed against predicted",
        "Points scatter evenly about the line of equality.",
        draw_parity,
        _equality,
    ),
    "residuals": Diagnostic(
        "Residuals against time",
        "A slow wave means that the model misses something.",
        draw_against_time,
        reference_handles,
    ),
    "residuals-prediction": Diagnostic(
        "Residuals against the prediction",
        "A funnel means that the noise grows with the values.",
        draw_against_prediction,
        reference_handles,
    ),
    "residuals-experiment": Diagnostic(
        "Residuals by experiment",
        "A mean away from zero means that an experiment differs from the others.",
        draw_by_experiment,
        lambda setting: reference_handles(setting, mean=True),
    ),
    "qq": Diagnostic(
        "Quantiles of residuals (Q-Q)",
        "Normal residuals lie on the line; those outside the limits are too large or too small.",
        draw_quantiles,
        _limits,
        by_run=False,
    ),
    "histogram": Diagnostic(
        "Distribution of residuals",
        "Bars follow the density of the normal distribution.",
        draw_histogram,
        _density,
        by_run=False,
    ),
    "autocorrelation": Diagnostic(
        "Autocorrelation of residuals",
        "Bars beyond the limits at the first lags mean slow waves.",
        draw_autocorrelation,
        _limits,
        by_run=False,
    ),
}
"""The diagnostics by name, in the order of display."""
