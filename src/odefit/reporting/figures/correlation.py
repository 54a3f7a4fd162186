"""Correlation of the estimates: which of them are determined only jointly."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from odefit.common.arrays import Array
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.result_data import ResultData

MAX_NUMBERED_UNKNOWNS = 12
"""Number of unknowns above which the cells are too small for numbers."""


def plot_correlation(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw a matrix of coloured cells; cells of unknowns without standard error stay empty."""
    uncertainty = result.uncertainty
    if uncertainty is None:
        return canvas.empty("no correlation: the uncertainty was not computed")
    keys = uncertainty.keys
    count = len(keys)
    if count < 2:
        return canvas.empty("no correlation: there are fewer than two unknowns")
    matrix = np.asarray(uncertainty.correlation, dtype=float)
    if not np.isfinite(matrix).any():
        return canvas.empty("no correlation: no unknown has a standard error")
    numbers = count <= MAX_NUMBERED_UNKNOWNS
    cell = 0.42 if numbers else max(0.16, 5.2 / count)
    side = cell * count
    colours = matplotlib.colormaps["RdBu_r"].resampled(41)  # few enough for cells
    with style.plain_style():
        axes = canvas.axes(max(side + 1.5, 3.4), side + 1.0, by_width=1.0)
        edges = np.arange(count + 1) - 0.5
        mesh = axes.pcolormesh(
            edges,
            edges,
            np.ma.masked_invalid(matrix),
            cmap=colours,
            norm=Normalize(-1.0, 1.0),
            edgecolors=style.GRID,
            linewidth=0.5,
        )
        axes.set_aspect("equal")
        axes.set_xlim(-0.5, count - 0.5)
        axes.set_ylim(count - 0.5, -0.5)
        labels = [style.plain(style.shorten(key, 18)) for key in keys]
        size = 8.0 if count <= 30 else 5.5
        longest = max(map(len, labels))
        rotation = 0 if longest <= 3 and count <= 20 else 90
        axes.set_xticks(range(count), labels, rotation=rotation, parse_math=False)
        axes.set_yticks(range(count), labels, parse_math=False)
        axes.tick_params(length=0, labelsize=size, labelcolor=style.INK)
        for spine in axes.spines.values():
            spine.set_visible(False)
        if numbers:
            _write_numbers(axes, matrix)
        bar = axes.figure.colorbar(
            mesh, ax=axes, shrink=0.8, aspect=14, pad=0.03, format=style.LinearLabels()
        )
        bar.solids.set_rasterized(False)  # type: ignore[union-attr]  # a picture would not scale
        bar.set_ticks([-1, -0.5, 0, 0.5, 1])
        bar.ax.tick_params(labelsize=8.0, labelcolor=style.INK, color=style.MUTED)
        bar.outline.set_visible(False)
        return canvas.finish(axes)


def _write_numbers(axes: Axes, matrix: Array) -> None:
    for (i, j), value in np.ndenumerate(matrix):
        if np.isfinite(value) and i != j:
            # The cells keep their colours on dark screens, so the numbers keep theirs.
            colour = "#fefefe" if abs(value) > 0.6 else "#101010"
            text = f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
            axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color=colour)
