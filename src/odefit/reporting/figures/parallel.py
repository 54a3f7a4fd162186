"""Ends of all starts in parallel coordinates: which unknowns they agree on."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odefit.common.arrays import Array
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.starts import solution_colour, solution_numbers
from odefit.reporting.numbers import significant
from odefit.result_data import ResultData

LEAST_RANGE = 1e-3
"""Relative range of an unknown below which all ends are drawn mid-axis."""


def plot_parallel(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw a line for the end of each start, with an axis for each unknown, the best on top.

    An axis spans the ends from smallest to largest, on the unknown's scale. Failed starts are left
    out.
    """
    ends = [s for s in result.starts if math.isfinite(result.value_of(s))]
    if not ends or not result.problem.unknowns:
        return canvas.empty("no start has ended, so that there are no ends to compare")
    ends.sort(key=result.value_of, reverse=True)
    values = np.array([s.vector for s in ends])
    heights = np.column_stack(
        [
            _heights(values[:, k], u.parameter.scale != "linear")
            for k, u in enumerate(result.problem.unknowns)
        ]
    )
    places = np.arange(values.shape[1])
    with style.plain_style():
        axes = canvas.axes(max(4.6, 1.2 + 0.55 * len(places)), 3.2, by_width=0.2)
        named: dict[str, Artist] = {}
        for row, number in zip(heights, solution_numbers(result, ends), strict=True):
            colour, name = solution_colour(number)
            other = colour == style.MUTED
            axes.plot(
                places,
                row,
                color=colour,
                linewidth=0.7 if other else 1.3,
                alpha=0.5 if other else 0.9,
                marker="o",
                markersize=2.5,
                zorder=2 if other else 3,
            )
            named[name] = Line2D([], [], color=colour, label=name)
        sides = ((1.03, "bottom", values.max(axis=0)), (-0.03, "top", values.min(axis=0)))
        for place in range(len(places)):
            axes.axvline(place, color=style.GRID, linewidth=0.9, zorder=0)
            for height, side, end in sides:
                axes.text(
                    place,
                    height,
                    significant(float(end[place]), 3).replace("-", "−"),
                    ha="center",
                    va=side,
                    fontsize=7.0,
                    color=style.MUTED,
                    rotation=90 if len(places) > 8 else 0,
                )
        axes.set_ylim(-0.35, 1.35)
        axes.set_xlim(-0.5, len(places) - 0.5)
        names = [style.plain(style.shorten(key, 14)) for key in result.problem.keys]
        axes.set_xticks(
            places, names, parse_math=False, rotation=90 if len(places) > 6 else 0, fontsize=8.0
        )
        axes.set_yticks([])
        axes.set_ylabel("least to largest end")
        axes.spines[["top", "right", "left"]].set_visible(False)
        canvas.legend([axes], [named[name] for name in sorted(named)])
        return canvas.finish(axes)


def _heights(values: Array, logarithmic: bool) -> Array:
    """Return values scaled to 0 to 1 on an axis, or 0.5 where they hardly differ."""
    if np.ptp(values) <= LEAST_RANGE * np.abs(values).max():
        return np.full(len(values), 0.5)
    scaled = np.log(values) if logarithmic and values.min() > 0 else values
    return np.asarray((scaled - scaled.min()) / np.ptp(scaled))
