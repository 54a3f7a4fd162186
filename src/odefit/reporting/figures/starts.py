"""Waterfall: how well the starts fit in the end, sorted."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odefit.methods.estimate import Status
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.result_data import ResultData


def plot_starts(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw how well each start fits, the best first; failed starts are counted, not drawn."""
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
    logarithmic = bool(values[0] > 0 and values[-1] > 30 * values[0])
    with style.plain_style():
        axes = canvas.axes(4.6, 2.7)
        if logarithmic:
            axes.set_yscale("log")
        axes.plot(ranks, values, color=style.MUTED, linewidth=0.7, zorder=2)
        size = 5.0 if len(ended) <= 60 else 3.0
        groups = (
            ("converged", converged, style.MODEL, style.MODEL),
            ("not converged", ~converged, "white", style.DATA),
        )
        for label, chosen, face, edge in groups:
            if chosen.any():
                axes.plot(
                    ranks[chosen],
                    values[chosen],
                    linestyle="none",
                    marker="o",
                    markersize=size,
                    markerfacecolor=face,
                    markeredgecolor=edge,
                    label=label,
                    zorder=3,
                )
        spread = float(values[-1] - values[0])
        size_of = max(abs(float(values[0])), abs(float(values[-1])))
        if not logarithmic and spread < 1e-4 * size_of:
            axes.set_ylim(float(values[0]) - 0.1 * size_of, float(values[-1]) + 0.1 * size_of)
        axes.set_xlim(0.5, max(len(ended), 4) + 0.5)
        axes.set_xlabel("starts, the best first" + (f" ({lost} more failed)" if lost else ""))
        axes.set_ylabel(result.measure)
        style.dress(axes, log_y=logarithmic)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        if not converged.all():
            axes.legend(frameon=False, fontsize=8.0, loc="best")
        return canvas.finish(axes)
