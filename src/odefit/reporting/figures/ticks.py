"""Ticks of axes: always enough to read a value off, never so many that their labels touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, ScalarFormatter

from odefit.common.arrays import Array

FEWEST_TICKS = 3
"""The number of labels that an axis has at least, if there is room for them."""

MOST_TICKS = 6
"""The number of labels that an axis has at most."""

LABEL_WIDTH, LOG_LABEL_WIDTH, LABEL_HEIGHT = 3.4, 4.6, 2.2
"""Room for a label along a horizontal axis, a horizontal logarithmic one, and a vertical one, in
sizes of its font."""

STEPS_IN_A_DECADE = ((1, 2, 5), (1, 3), (1,))
"""The first digits that may have labels on an axis of about one decade, the most first."""

PLAIN_RANGE = (1e-3, 1e5)
"""Values within are written without a power of ten on a logarithmic axis."""


class LogTicks(Locator):
    """Places of labels on a logarithmic axis.

    From three decades on, these are powers of ten. On a shorter axis they are 1, 2 and 5 times
    those, and on one of much less than a decade round numbers at equal distances: an axis with a
    single label has no scale.
    """

    def __call__(self) -> Sequence[float]:
        """Return the ticks within the limits of the axis."""
        low, high = sorted(self._axis().get_view_interval())
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks from `vmin` to `vmax`, both positive."""
        return list(log_ticks(vmin, vmax, room(self._axis())))

    def _axis(self) -> Axis:
        axis = self.axis
        assert isinstance(axis, Axis)
        return axis


class LinearTicks(MaxNLocator):
    """Round numbers at equal distances, as many as there is room for."""

    def __init__(self) -> None:
        super().__init__(nbins=5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks from `vmin` to `vmax`."""
        axis = self.axis
        if isinstance(axis, Axis):
            self.set_params(nbins=min(5, max(2, room(axis))))
        return super().tick_values(vmin, vmax)


class LogLabels(Formatter):
    """Values on a logarithmic axis as a reader would write them: 0.02, 500, 2 × 10^7."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of the value `x`."""
        if not (math.isfinite(x) and x > 0):
            return ""
        if PLAIN_RANGE[0] <= x < PLAIN_RANGE[1]:
            return f"{x:.6g}"
        exponent = math.floor(math.log10(x) + 1e-9)
        digits = f"{x / 10.0**exponent:.6g}"
        power = f"10^{{{exponent}}}"
        return f"${power}$" if digits == "1" else rf"${digits}\times{power}$"


def log_ticks(low: float, high: float, most: int = MOST_TICKS) -> Array:
    """Return values for the labels of a logarithmic axis: two to `most`, increasing."""
    if not 0.0 < low < high:
        return np.zeros(0)
    first, last = math.log10(low) - 1e-9, math.log10(high) + 1e-9
    powers = np.arange(math.ceil(first), math.floor(last) + 1)
    if len(powers) >= FEWEST_TICKS:
        step = math.ceil(len(powers) / max(most, 2))
        chosen = powers[-1 - step * ((len(powers) - 1) // step) :: step]
        return np.asarray(10.0**chosen)
    decades = np.arange(math.floor(first), math.ceil(last) + 1)
    for digits in STEPS_IN_A_DECADE:
        values = np.outer(10.0**decades, digits).ravel()
        values = values[(np.log10(values) >= first) & (np.log10(values) <= last)]
        if min(FEWEST_TICKS, most) <= len(values) <= max(most, FEWEST_TICKS):
            return np.asarray(values)
    even = MaxNLocator(nbins=max(min(most - 1, 4), 2), min_n_ticks=2, steps=[1, 2, 2.5, 5, 10])
    values = np.asarray(even.tick_values(low, high))
    return values[(values >= low) & (values <= high)]


def room(axis: Axis) -> int:
    """Return the number of labels for which there is room on an axis."""
    figure = axis.get_figure()
    assert figure is not None
    box = axis.axes.get_window_extent()
    horizontal = axis is axis.axes.xaxis
    points = (box.width if horizontal else box.height) * 72.0 / figure.dpi
    size = float(axis.get_tick_params().get("labelsize", 8.0))
    wide = LOG_LABEL_WIDTH if axis.get_scale() == "log" else LABEL_WIDTH
    label = (wide if horizontal else LABEL_HEIGHT) * size
    return int(min(max(points / label, 2), MOST_TICKS))


def set_ticks(axis: Axis, *, logarithmic: bool) -> None:
    """Let an axis have ticks and labels of this module."""
    if logarithmic:
        axis.set_major_locator(LogTicks())
        axis.set_major_formatter(LogLabels())
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(LinearTicks())
        formatter = ScalarFormatter(useOffset=False, useMathText=True)
        formatter.set_powerlimits((-3, 5))
        axis.set_major_formatter(formatter)
