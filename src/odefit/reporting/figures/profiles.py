"""Profile likelihoods, one panel each, with the limit and the parabola of linearisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import CubicHermiteSpline

from odefit.assessment.profiles import Profile, ProfilesData
from odefit.common.arrays import Array
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas

PANEL_SIZE = (2.75, 2.15)
"""Width and height of a panel, in inches."""

COLUMNS = 3
"""Largest number of panels side by side."""

WIDE = 20.0
"""Ratio of the last to the first value above which the axis is logarithmic."""

SHOWN = 1.3
"""Largest deviance drawn, relative to the limit."""


def plot_profiles(
    data: ProfilesData, keys: Sequence[str] | None = None, canvas: Canvas = SCREEN
) -> Figure:
    """Draw the deviance against each quantity, with its limit and the interval's ends.

    ``keys`` are the profiles to draw; None for all.
    """
    shown = [p for p in data.profiles if keys is None or p.key in keys]
    if not shown:
        return canvas.empty("no profile is complete")
    with style.plain_style():
        rows = canvas.panels(len(shown), min(COLUMNS, len(shown)), PANEL_SIZE)
        panels = [axes for row in rows for axes in row]
        for axes, profile in zip(panels, shown, strict=True):
            _panel(axes, profile, data.limit)
        for row in rows:
            row[0].set_ylabel("deviance")
        return canvas.finish(panels[0])


def _panel(axes: Axes, profile: Profile, limit: float) -> None:
    logarithmic = profile.logarithmic
    at = np.log10(profile.values) if logarithmic else profile.values
    at, first = np.unique(at, return_index=True)
    deviances, slopes = profile.deviances[first], profile.slopes[first]
    wide = logarithmic and profile.values[-1] > WIDE * profile.values[0]
    if wide:
        axes.set_xscale("log")
    axes.axhline(limit, color=style.MUTED, linewidth=0.8, linestyle="--")
    if len(at) > 1:
        fine = np.unique(np.concatenate([np.linspace(at[0], at[-1], 200), at]))
        curve = CubicHermiteSpline(at, deviances, _tame(at, deviances, slopes))(fine)
        axes.plot(_natural(fine, logarithmic), curve, color=style.MODEL, linewidth=1.4)
        parabola = _parabola(profile, fine, logarithmic, limit)
        if parabola is not None:
            axes.plot(
                _natural(fine, logarithmic),
                parabola,
                color=style.DATA,
                linewidth=0.9,
                linestyle=":",
            )
    axes.plot(
        _natural(at, logarithmic),
        deviances,
        linestyle="none",
        marker="o",
        markersize=2.5,
        color=style.MODEL,
    )
    axes.plot([profile.estimate], [0.0], marker="o", markersize=4.5, color=style.INK)
    for end in (profile.lower, profile.upper):
        if math.isfinite(end):
            axes.axvline(end, color=style.MODEL, linewidth=0.7)
    axes.set_ylim(-0.05 * limit, SHOWN * limit)
    axes.set_xlabel(style.plain(style.shorten(profile.key)), parse_math=False)
    style.dress(axes, log_x=wide)


def _tame(at: Array, deviances: Array, slopes: Array) -> Array:
    """Return the slopes, limited so that a cubic stays within the range of its two points.

    The limit is that of F. N. Fritsch and R. E. Carlson, Monotone piecewise cubic interpolation,
    1980; a parabola satisfies it.
    """
    secants = np.diff(deviances) / np.diff(at)
    tamed = slopes.copy()
    for before, after, secant in zip(range(len(at) - 1), range(1, len(at)), secants, strict=True):
        for k in (before, after):
            limit = 3 * abs(secant)
            tamed[k] = 0.0 if tamed[k] * secant < 0 else np.clip(tamed[k], -limit, limit)
    return tamed


def _natural(at: Array, logarithmic: bool) -> Array:
    return np.asarray(10.0**at if logarithmic else at)


def _parabola(profile: Profile, at: Array, logarithmic: bool, limit: float) -> Array | None:
    """Return the deviance that linearisation predicts; None without a linear interval."""
    low, high = profile.linear
    if not (math.isfinite(low) and math.isfinite(high)) or (logarithmic and low <= 0):
        return None
    ends = np.log10([low, high]) if logarithmic else np.array([low, high])
    half = 0.5 * float(ends[1] - ends[0])
    middle = math.log10(profile.estimate) if logarithmic else profile.estimate
    return np.asarray(limit * ((at - middle) / half) ** 2) if half > 0 else None
