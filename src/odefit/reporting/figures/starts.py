"""Ends of the starts: sorted goodness of fit (waterfall), and parallel coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import close
from odefit.problem.variants.sizes import expected_sizes
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.numbers import significant
from odefit.result_data import ResultData

LEAST_OFFSET = 1e-4
"""Smaller differences from the best are drawn as this value: of -2 log L, or relative to the best
sum of squares. No data resolve such differences."""

CLOSENESS = 1e-2
"""Largest relative difference of an unknown between a start's end and its solution."""

MANY_SOLUTIONS = 6
"""Number of solutions with colours of their own."""


LEAST_RANGE = 1e-3
"""Relative range of an unknown below which all ends are drawn mid-axis."""


def solution_numbers(result: ResultData, starts: Iterable[Start]) -> list[int | None]:
    """Return the index of the solution in which each start ended; None for other ends."""
    sizes = expected_sizes(result.problem)
    known = [solution.vector for solution in result.solutions]
    return [
        next((k for k, v in enumerate(known) if close(start.vector, v, CLOSENESS, sizes)), None)
        for start in starts
    ]


def solution_colour(number: int | None) -> tuple[str, str]:
    """Return the colour and the legend's name of the ends in a solution."""
    if number is None or number >= MANY_SOLUTIONS:
        return style.MUTED, "other ends"
    return style.SERIES[number], "best solution" if number == 0 else f"solution {number + 1}"


def plot_starts(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw how well each start fits, best first; failed starts are counted but not drawn."""
    if not result.starts:
        return canvas.empty("no starts are recorded")
    ends = [(result.value_of(s), s) for s in result.starts]
    ended = sorted(
        ((value, s) for value, s in ends if math.isfinite(value)), key=lambda end: end[0]
    )
    lost = len(result.starts) - len(ended)
    if not ended:
        return canvas.empty(f"all {lost} starts failed")
    values = np.array([value for value, _ in ended])
    ranks = np.arange(1, len(ended) + 1)
    converged = np.array([s.status is Status.CONVERGED for _, s in ended])
    numbers = solution_numbers(result, (s for _, s in ended))
    offsets = values - values[0]
    floor = LEAST_OFFSET * (1.0 if result.log_likelihood is not None else abs(values[0]) or 1.0)
    logarithmic = bool(offsets[-1] > floor)
    heights = np.maximum(offsets, floor) if logarithmic else values
    with style.plain_style():
        axes = canvas.axes(4.6, 2.7)
        if logarithmic:
            axes.set_yscale("log")
        axes.plot(ranks, heights, color=style.MUTED, linewidth=0.7, zorder=2)
        size = 5.0 if len(ended) <= 60 else 3.0
        for number in sorted(set(numbers), key=lambda n: math.inf if n is None else n):
            in_solution = np.array([other == number for other in numbers])
            colour, label = solution_colour(number)
            for chosen, face in (
                (in_solution & converged, colour),
                (in_solution & ~converged, "white"),
            ):
                if chosen.any():
                    axes.plot(
                        ranks[chosen],
                        heights[chosen],
                        linestyle="none",
                        marker="o",
                        markersize=size,
                        markerfacecolor=face,
                        markeredgecolor=colour,
                        label=label if face == colour else f"{label}, not converged",
                        zorder=3,
                    )
        size_of = max(abs(float(values[0])), abs(float(values[-1])))
        if not logarithmic:
            axes.set_ylim(float(values[0]) - 0.1 * size_of, float(values[-1]) + 0.1 * size_of)
        else:
            axes.set_ylim(0.5 * floor, 2.0 * float(heights.max()))
        axes.set_xlim(0.5, max(len(ended), 4) + 0.5)
        axes.set_xlabel("starts, the best first" + (f" ({lost} more failed)" if lost else ""))
        axes.set_ylabel(f"{result.measure}\nabove the best" if logarithmic else result.measure)
        style.dress(axes, log_y=logarithmic)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.legend(frameon=False, fontsize=8.0, loc="best")
        return canvas.finish(axes)


def plot_parallel(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw a line for the end of each start, with an axis for each unknown, the best on top.

    An axis spans the ends from smallest to largest, on the unknown's scale. Failed starts are left
    out.
    """
    ends = [s for s in result.starts if math.isfinite(result.value_of(s))]
    if not ends or not result.problem.unknowns:
        return canvas.empty("no start has ended, so there are no ends to compare")
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
