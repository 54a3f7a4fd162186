"""Sensitivity indices as a figure: a panel for each output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator

from odefit.assessment.sensitivity.indices import Indices, SensitivityKind
from odefit.assessment.sensitivity.outputs import Output
from odefit.common.arrays import Array
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.fit import PANEL_SIZE
from odefit.reporting.sensitivities import importance

MOST_COLUMNS = 3
"""Largest number of panels side by side."""

MOST_CURVES = len(style.SERIES)
"""Largest number of unknowns whose indices are drawn against time, most important first."""

TITLES: dict[SensitivityKind, str] = {
    "local": "elasticity",
    "morris": "mean effect mu*",
    "sobol": "share of the variance",
}


def plot_sensitivities(
    kind: SensitivityKind,
    keys: Sequence[str],
    outputs: Sequence[Output],
    indices: Indices,
    time_unit: str,
    canvas: Canvas = SCREEN,
) -> Figure:
    """Draw indices against time where an output has several times, otherwise as bars."""
    panels = list(dict.fromkeys((o.name, o.experiment) for o in outputs))
    ranked = importance(kind, outputs, indices)
    with style.plain_style():
        rows = canvas.panels(len(panels), min(len(panels), MOST_COLUMNS), PANEL_SIZE, more=0.3)
        every = [axes for row in rows for axes in row]
        for axes, (name, experiment) in zip(every, panels, strict=False):
            places = [
                i for i, o in enumerate(outputs) if (o.name, o.experiment) == (name, experiment)
            ]
            times = np.array([outputs[i].time for i in places])
            if len(places) > 1:
                _curves(axes, kind, keys, times, places, indices, ranked[name])
                axes.set_xlabel(style.time_label(time_unit))
            else:
                _bars(axes, kind, keys, indices, places[0])
            several = len({e for n, e in panels if n == name}) > 1
            axes.set_title(style.shorten(f"{name}, {experiment}" if several else name))
            axes.set_ylabel(TITLES[kind])
        return canvas.finish(every[0])


def _curves(
    axes: Axes,
    kind: SensitivityKind,
    keys: Sequence[str],
    times: Array,
    places: Sequence[int],
    indices: Indices,
    ranked: Array,
) -> None:
    """Draw the indices of the most important unknowns against time."""
    table, errors = _shown(kind, indices)
    order = np.argsort(-np.nan_to_num(np.abs(ranked)), kind="stable")[:MOST_CURVES]
    for number, k in enumerate(order):
        colour = style.SERIES[number]
        middle, half = table[places, k], errors[places, k]
        axes.plot(times, middle, color=colour, label=style.shorten(keys[k]))
        if np.isfinite(half).any():
            axes.fill_between(times, middle - half, middle + half, color=colour, alpha=0.2, lw=0)
    style.dress(axes)
    axes.legend(frameon=False, fontsize=style.SMALL_FONT)


def _bars(
    axes: Axes, kind: SensitivityKind, keys: Sequence[str], indices: Indices, place: int
) -> None:
    """Draw the indices of a single number, the most important unknown first."""
    table, errors = _shown(kind, indices)
    order = np.argsort(-np.nan_to_num(np.abs(table[place])), kind="stable")
    values, half = table[place][order], errors[place][order]
    where = np.arange(len(order))
    bars = np.where(np.isfinite(half), half, 0.0)
    style.dress(axes)
    total = axes.bar(where, values, yerr=bars if bars.any() else None, color=style.SERIES[0])
    if kind == "sobol":
        first = axes.plot(where, indices.values[place][order], "o", color=style.SERIES[1], ms=4)
        axes.legend([total, *first], ["total", "first"], frameon=False, fontsize=style.SMALL_FONT)
    names = [style.shorten(keys[i], 12) for i in order]
    axes.xaxis.set_major_locator(FixedLocator(where.tolist()))
    axes.xaxis.set_major_formatter(FixedFormatter(names))
    axes.tick_params(axis="x", labelrotation=45 if max(map(len, names)) > 4 else 0)


def _shown(kind: SensitivityKind, indices: Indices) -> tuple[Array, Array]:
    """Return the index that is drawn and the half widths of its intervals."""
    if kind == "sobol":
        return indices.others, indices.other_errors
    return indices.values, indices.errors
