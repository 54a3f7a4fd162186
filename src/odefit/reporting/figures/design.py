"""Figures of designs: information against time, and intervals before and after."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odefit.common.arrays import Array
from odefit.designs.parts import DesignData, InformationCurve, PlannedInterval, RivalCurves, Run
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas

PANEL_SIZE = (3.6, 2.3)
"""Width and height of a panel, in inches."""

MOST_PANELS = 8
"""Largest number of curves."""

MOST_INTERVALS = 12
"""Largest number of quantities whose intervals are drawn."""


def plot_design(design: DesignData, canvas: Canvas = SCREEN) -> Figure:
    """Draw a measurement's information against time, and intervals before and after."""
    if not design.found:
        return canvas.empty("no design: some quantities cannot be determined")
    curves = design.curves[:MOST_PANELS]
    models = () if design.rivalry is None else design.rivalry.curves[:MOST_PANELS]
    intervals = [i for i in design.intervals if math.isfinite(i.after[0])][:MOST_INTERVALS]
    count = len(models) + len(curves) + bool(intervals)
    if not count:
        return canvas.empty("nothing to draw")
    with style.plain_style():
        rows = canvas.panels(count, min(count, 2), PANEL_SIZE)
        panels = [axes for row in rows for axes in row]
        for axes, both in zip(panels, models, strict=False):
            _draw_models(axes, both, design)
        for axes, curve in zip(panels[len(models) :], curves, strict=False):
            _draw_curve(axes, curve, design)
        if intervals:
            _draw_intervals(panels[-1], intervals)
        return canvas.finish(panels[0])


def _name(axes: Axes, name: str, run: Run) -> None:
    """Write the name of a panel above it, with the settings of its run."""
    settings = ", ".join(f"{k} = {v:.3g}" for k, v in run.settings.items())
    title = f"{name} ({settings})" if settings else name
    axes.set_title(
        style.plain(style.shorten(title, 44)),
        loc="left",
        fontsize=9.5,
        color=style.INK,
        parse_math=False,
    )


def _draw_models(axes: Axes, both: RivalCurves, design: DesignData) -> None:
    """Draw the curves of two models, and where they are measured."""
    assert design.rivalry is not None
    _name(axes, both.observable, both.run)
    names = [style.plain(style.shorten(name, 24)) for name in design.rivalry.models]
    run = design.runs.index(both.run)
    for m in design.measurements:
        if m.run == run and both.observable in m.observables:
            axes.axvline(m.time, color=style.DATA, linewidth=0.7, alpha=0.5)
    axes.plot(both.times, both.first, color=style.SERIES[0], linewidth=1.4, label=names[0])
    others: list[tuple[Any, str, Array]] = [
        ((0, (4, 2)), names[1], both.second),
        ((0, (1, 1.5)), f"{names[1]}, closest", both.closest),
    ]
    for dashes, label, values in others:
        axes.plot(
            both.times, values, color=style.SERIES[1], linewidth=1.2, linestyle=dashes, label=label
        )
    axes.set_xlabel(style.time_label(design.time_unit), parse_math=False)
    axes.legend(frameon=False, fontsize=7.5)
    style.dress(axes)


def _draw_curve(axes: Axes, curve: InformationCurve, design: DesignData) -> None:
    _name(axes, ", ".join(curve.observables), curve.run)
    axes.plot(curve.times, curve.values, color=style.MODEL, linewidth=1.4)
    axes.axhline(1.0, color=style.MUTED, linewidth=0.9, linestyle="--")
    run = design.runs.index(curve.run)
    on_curve = [
        m for m in design.measurements if m.run == run and m.observables == curve.observables
    ]
    heights = np.interp([m.time for m in on_curve], curve.times, curve.values)
    for m, height in zip(on_curve, heights, strict=True):
        axes.axvline(m.time, color=style.DATA, linewidth=0.7, alpha=0.5)
        axes.plot([m.time], [height], "o", color=style.DATA, markersize=4.5, zorder=4)
        if m.count > 1:
            axes.annotate(
                f"× {m.count}", (m.time, height), xytext=(4, 4), textcoords="offset points",
                fontsize=7.5, color=style.DATA,
            )  # fmt: skip
    axes.set_xlabel(style.time_label(design.time_unit), parse_math=False)
    axes.set_ylabel("relative information")
    axes.set_ylim(min(0.0, float(np.nanmin(curve.values))), None)
    style.dress(axes)


def _draw_intervals(axes: Axes, intervals: list[PlannedInterval]) -> None:
    """Draw intervals relative to the values: those before above those after."""
    axes.set_title("intervals / value", loc="left", fontsize=9.5, color=style.INK)
    reach = max(_relative(i, i.after)[1] - 1.0 for i in intervals)
    widest = max(
        [_relative(i, i.before)[1] - 1.0 for i in intervals if math.isfinite(i.before[1])],
        default=2 * reach,
    )
    limit = min(max(widest, 1.5 * reach), 20 * reach)
    for k, i in enumerate(intervals):
        y = len(intervals) - 1 - k
        before = _relative(i, i.before)
        low, high = max(before[0], 1.0 - limit), min(before[1], 1.0 + limit)
        muted: dict[str, Any] = {"color": style.MUTED, "alpha": 0.7}
        axes.plot([low, high], [y + 0.14] * 2, linewidth=2.2, **muted)
        for end, shown, marker in ((before[0], low, "<"), (before[1], high, ">")):
            if end != shown:  # it continues beyond the panel
                axes.plot([shown], [y + 0.14], marker, markersize=5.5, **muted)
        axes.plot(_relative(i, i.after), [y - 0.14] * 2, color=style.MODEL, linewidth=2.8)
        axes.plot([1.0], [y - 0.14], "o", color=style.MODEL, markersize=3.5)
    axes.plot([], [], color=style.MUTED, linewidth=2.2, label="before")
    axes.plot([], [], color=style.MODEL, linewidth=2.8, label="after")
    axes.set_xlim(1.0 - 1.1 * limit, 1.0 + 1.1 * limit)
    axes.legend(frameon=False, fontsize=7.5, loc="upper right")
    style.dress(axes)
    axes.set_ylim(-0.6, len(intervals) - 0.1)
    names = [style.plain(style.shorten(i.key, 14)) for i in reversed(intervals)]
    axes.set_yticks(range(len(intervals)), names, parse_math=False)


def _relative(interval: PlannedInterval, ends: tuple[float, float]) -> tuple[float, float]:
    """Return ends relative to the value, or their differences from a value of zero."""
    if interval.value == 0:
        return 1.0 + ends[0], 1.0 + ends[1]
    low, high = sorted(e / interval.value for e in ends)
    return low, high
