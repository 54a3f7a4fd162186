"""Density plots of many points, which would hide each other if drawn one by one."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb

from odefit.common.arrays import Array

COLUMNS, ROWS = 110, 70
"""Number of cells in which points are counted, along an axis of time and across."""

PALEST = 0.3
"""Opacity of a cell with a single point, so that each point is visible."""

WINDOWS = 60
"""Number of time windows whose means are drawn."""


def draw_density(axes: Axes, x: Array, y: Array, colour: str, zorder: float) -> None:
    """Draw cells that darken with the logarithm of their number of points.

    The caller sets the scales of the axes first.
    """
    finite = np.isfinite(x) & np.isfinite(y)
    logs = axes.get_xscale() == "log", axes.get_yscale() == "log"
    for values, log in ((x, logs[0]), (y, logs[1])):
        if log:
            finite &= values > 0
    if not finite.any():
        return
    places = [
        np.log10(v[finite]) if log else v[finite] for v, log in zip((x, y), logs, strict=True)
    ]
    counts, *edges = np.histogram2d(places[0], places[1], bins=(COLUMNS, ROWS))
    shades = np.ma.masked_equal(np.log1p(counts.T), 0.0)
    rgb = to_rgb(colour)
    colours = LinearSegmentedColormap.from_list("density", [(*rgb, PALEST), (*rgb, 1.0)])
    ends = [10.0**e if log else e for e, log in zip(edges, logs, strict=True)]
    mesh = axes.pcolormesh(
        *ends, shades, cmap=colours, vmin=np.log(2.0), rasterized=True, linewidth=0, zorder=zorder
    )
    mesh.sticky_edges.x[:] = []  # margins, as around points
    mesh.sticky_edges.y[:] = []


def window_means(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the means of finite values over the non-empty windows of equal length."""
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    window = np.minimum(((x - x.min()) / (np.ptp(x) or 1.0) * WINDOWS).astype(int), WINDOWS - 1)
    count = np.bincount(window, minlength=WINDOWS)
    held = count > 0
    means = [np.bincount(window, v, WINDOWS)[held] / count[held] for v in (x, y)]
    return means[0], means[1]
