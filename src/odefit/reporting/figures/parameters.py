"""Estimates with their confidence intervals, all on one relative scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from odefit.reporting.estimates.row import Row
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.parameters import interval_level, parameter_rows
from odefit.result_data import ResultData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PERCENT = 100.0
"""Distance from the estimate, in per cent, at which an arrow cuts an interval off."""


def plot_parameters(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw a line for each unknown: its interval in per cent of the estimate.

    So parameters of very different sizes share one axis. A missing interval is replaced by its
    reason.
    """
    rows = [row for row in parameter_rows(result) if row.estimated]
    if not rows or not result.solutions:
        return canvas.empty(
            "no estimates: no solution was found" if rows else "nothing was estimated"
        )
    level = interval_level(result)
    reach = _reach(rows)
    with style.plain_style():
        axes = canvas.axes(4.6, 0.9 + 0.27 * len(rows), by_width=0.2)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        style.dress(axes)
        axes.grid(visible=False, axis="y")
        axes.axvline(0.0, color=style.MUTED, linewidth=0.8, zorder=1)
        for place, row in enumerate(rows):
            _draw_row(axes, place, row, reach)
        labels = [style.plain(style.shorten(row.key, 22)) for row in rows]
        axes.set_yticks(range(len(rows)), labels, parse_math=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        _draw_values(axes, rows)
        axes.set_xlabel(f"{level} confidence interval, % of the estimate")
        return canvas.finish(axes)


def relative_interval(row: Row) -> tuple[float, float] | None:
    """Return the interval relative to the estimate, in per cent, or None."""
    if not (math.isfinite(row.ci_low) and math.isfinite(row.ci_high)) or row.estimate == 0:
        return None
    size = abs(row.estimate)
    return (
        100 * (row.ci_low - row.estimate) / size,
        100 * (row.ci_high - row.estimate) / size,
    )


def _reach(rows: list[Row]) -> float:
    """Return half the width of the axis, in per cent: all but very wide intervals fit."""
    widths = [
        max(abs(interval[0]), abs(interval[1]))
        for row in rows
        if (interval := relative_interval(row)) is not None
    ]
    largest = min(max(widths, default=1.0), MAX_PERCENT)
    return 1.1 * largest or 1.0


def _draw_row(axes: Axes, place: int, row: Row, reach: float) -> None:
    interval = relative_interval(row)
    axes.axhline(place, color=style.GRID, linewidth=0.6, zorder=0)
    if interval is None:
        reason = row.flag or ("estimate is zero" if row.estimate == 0 else "no interval")
        axes.text(
            0.02 * reach,
            place,
            style.plain(reason),
            va="center",
            ha="left",
            fontsize=8.0,
            style="italic",
            color=style.INK,
            parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )
        return
    low, high = max(interval[0], -reach), min(interval[1], reach)
    axes.plot([low, high], [place, place], color=style.MODEL, linewidth=2.0, zorder=3)
    axes.plot([0.0], [place], marker="o", markersize=5.0, color=style.MODEL, zorder=4)
    for value, marker, limit in ((interval[0], "<", -reach), (interval[1], ">", reach)):
        if abs(value) > reach:
            axes.plot(
                [0.97 * limit], [place], marker=marker, markersize=6.0, color=style.MODEL, zorder=4
            )


def _draw_values(axes: Axes, rows: list[Row]) -> None:
    """Write the estimates to the right."""
    right = axes.secondary_yaxis("right")
    values = [row.shown[0].replace("-", "−") for row in rows]
    units = [f" {style.shorten(row.unit, 10)}" if row.unit else "" for row in rows]
    labels = [style.plain(value + unit) for value, unit in zip(values, units, strict=True)]
    right.set_yticks(range(len(rows)), labels, parse_math=False)
    right.tick_params(length=0, labelcolor=style.INK, labelsize=8.0)
    right.spines["right"].set_visible(False)
