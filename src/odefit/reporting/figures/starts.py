"""Ends of the starts: sorted goodness of fit (waterfall), and places."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import close
from odefit.problem.variants.sizes import expected_sizes
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.result_data import ResultData

LEAST_OFFSET = 1e-4
"""Smaller differences from the best are drawn as this value: of -2 log L, or relative to the best
sum of squares. No data resolve such differences."""

CLOSENESS = 1e-2
"""Largest relative difference of an unknown between a start's end and its solution."""

MANY_SOLUTIONS = 6
"""Number of solutions with colours of their own."""


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
            mine = np.array([other == number for other in numbers])
            colour, label = solution_colour(number)
            for chosen, face in ((mine & converged, colour), (mine & ~converged, "white")):
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
