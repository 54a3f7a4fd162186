"""Lower and upper bound of the objective against time, and how far they are apart."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odefit.common.arrays import Array
from odefit.methods.estimate import BoundStep
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.result_data import ResultData

LOG_TIME_RATIO = 30.0
"""Ratio of the last to the first time above which the time axis is logarithmic."""

MAX_UPPER_RATIO = 1.5
"""Upper bounds larger than this multiple of the last one are cut off."""

SCOPE_WIDTH, SCOPE_LINES = 66, 2
"""Largest number of characters in a line of the scope, and of lines."""


def plot_bounds(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw the bounds and, below, their relative gap, if the method keeps a log."""
    bounds = result.assessment.bounds
    if bounds is None:
        return canvas.empty("no lower bound was computed")
    if not bounds.history:
        return canvas.empty("the method keeps no log of its bounds")
    times, lower, upper = series(bounds.history)
    with np.errstate(all="ignore"):
        gaps = 100.0 * (upper - lower) / (bounds.unit or np.abs(upper))
    gaps = np.where(np.isfinite(gaps) & (gaps > 0), gaps, np.nan)
    with_gaps = bool(np.isfinite(gaps).any())
    with style.plain_style():
        figure = canvas.sheet(4.6, 3.9 if with_gaps else 2.8)
        panels = figure.subplots(
            1 + with_gaps, 1, sharex=True, squeeze=False, height_ratios=[1.6, 1][: 1 + with_gaps]
        )[:, 0]
        logarithmic = draw_bounds(panels[0], times, lower, upper, style.MODEL)
        panels[0].set_ylabel(bounds.measure)
        panels[0].legend(frameon=False, fontsize=style.SMALL_FONT, loc="lower right")
        style.dress(panels[0], log_x=logarithmic)
        if with_gaps:
            panels[1].plot(times, gaps, color=style.INK, linewidth=1.2, drawstyle="steps-post")
            panels[1].set_yscale("log")
            panels[1].set_ylabel("gap, %")
            style.dress(panels[1], log_x=logarithmic, log_y=True)
        panels[-1].set_xlabel("seconds")
        figure.suptitle(
            _caption(bounds.scope),
            fontsize=style.SMALL_FONT,
            color=style.INK,
            parse_math=False,
            ha="center",
        )
        return canvas.finish(figure)


def series(history: Sequence[BoundStep]) -> tuple[Array, Array, Array]:
    """Return seconds, lower bounds and upper bounds, each of shape (steps,)."""
    rows = np.array([(s.seconds, s.lower, s.upper) for s in history], dtype=float)
    return rows[:, 0], rows[:, 1], rows[:, 2]


def draw_bounds(
    axes: Axes,
    times: Array,
    lower: Array,
    upper: Array,
    colour: str,
    label: str = "",
    upper_colour: str = style.DATA,
) -> bool:
    """Draw both bounds as steps, and the region between them in grey.

    ``label`` stands before "lower bound" and "upper bound" in the legend. Return whether the time
    axis is logarithmic.
    """
    positive = times[times > 0]
    logarithmic = bool(len(positive) > 1 and positive[-1] > LOG_TIME_RATIO * positive[0])
    if logarithmic:
        axes.set_xscale("log")
        times = np.maximum(times, positive[0])
    low = np.where(np.isfinite(lower), lower, np.nan)
    high = np.where(np.isfinite(upper), upper, np.nan)
    axes.fill_between(times, low, high, step="post", color=style.GRID, alpha=0.5, linewidth=0)
    for values, shade, name in ((high, upper_colour, "upper"), (low, colour, "lower")):
        axes.plot(
            times,
            values,
            color=shade,
            linewidth=1.4,
            drawstyle="steps-post",
            marker="o" if len(times) <= 12 else "",
            markersize=3.0,
            label=f"{label}{name} bound",
        )
    _limit(axes, low, high)
    return logarithmic


def _limit(axes: Axes, low: Array, high: Array) -> None:
    """Set the limits of the objective; the last upper bound cuts off much larger ones."""
    known, shown = low[np.isfinite(low)], high[np.isfinite(high)]
    ends = [float(v) for v in (*known[-1:], *shown[-1:])]
    if not ends:
        return
    top = max(ends)
    bottom = float(known.min()) if len(known) else top
    most = min(float(shown.max()), top + (MAX_UPPER_RATIO - 1.0) * abs(top)) if len(shown) else top
    same = math.isclose(most, bottom)
    room = 0.1 * (abs(most) or 1.0) if same else 0.06 * (most - bottom)
    axes.set_ylim(bottom - room, most + room)


def _caption(scope: str) -> str:
    """Return the scope of the bounds in a few lines."""
    lines = textwrap.wrap(style.plain(scope), SCOPE_WIDTH)
    if len(lines) > SCOPE_LINES:
        lines = [
            *lines[: SCOPE_LINES - 1],
            style.shorten(" ".join(lines[SCOPE_LINES - 1 :]), SCOPE_WIDTH),
        ]
    return "\n".join(lines)
