"""Residuals against time, predictions and experiments, where patterns would show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from odefit.common.arrays import Array
from odefit.problem.problem import Problem
from odefit.reporting.curves import DENSE, place_of_infinity, placed
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import MOST_ENTRIES
from odefit.reporting.figures.density import draw_density, window_means
from odefit.reporting.figures.residual_data import Residuals
from odefit.reporting.sentences import weighted

FEW = 80
"""Number of points above which a panel draws them small."""


@dataclass(frozen=True)
class Setting:
    """The problem that all panels share, and the colour and mark of each experiment."""

    problem: Problem
    marks: dict[str, tuple[str, str]]

    @classmethod
    def of(cls, problem: Problem, residuals: Sequence[Residuals]) -> Setting:
        """Return the setting for some residuals."""
        return cls(problem, style.run_marks([entry.experiment for entry in residuals]))

    @property
    def in_sds(self) -> bool:
        """True where residuals are in standard deviations."""
        return weighted(self.problem)

    def handles(self, *others: Artist) -> list[Artist]:
        """Return the entries of a legend: the experiments, if several, and others."""
        several = len(self.marks) > 1
        named = [
            Line2D(
                [],
                [],
                color=colour,
                marker=mark,
                linestyle="none",
                markersize=3.6,
                label=style.plain(style.shorten(name)) if several else "measurements",
            )
            for name, (colour, mark) in list(self.marks.items())[:MOST_ENTRIES]
        ]
        left_out = len(self.marks) - MOST_ENTRIES
        if left_out > 0:
            named.append(Line2D([], [], linestyle="none", label=f"and {left_out} more"))
        return [*named, *others]


def title_panel(axes: Axes, text: str) -> None:
    """Write the title at the left of a panel."""
    axes.set_title(
        style.plain(style.shorten(text)),
        loc="left",
        fontsize=9.5,
        color=style.INK,
        parse_math=False,
    )


def draw_points(
    axes: Axes,
    entries: Sequence[Residuals],
    places: Callable[[Residuals], tuple[Array, Array]],
    setting: Setting,
) -> tuple[Array, Array]:
    """Draw a point for each measurement, or a density of many; return all places.

    The caller sets the scales of the axes first. A triangle points towards the true value of a
    censored measurement.
    """
    every = [places(entry) for entry in entries]
    x, y = (np.concatenate([pair[k] for pair in every]) for k in (0, 1))
    if len(x) > DENSE:
        draw_density(axes, x, y, style.MODEL, zorder=2)
        axes.set_title("density", loc="right", fontsize=8.0, color=style.MUTED)
        return x, y
    for entry, (across, up) in zip(entries, every, strict=True):
        colour, mark = setting.marks[entry.experiment]
        up = np.where(np.isfinite(up), up, np.nan)
        for code, marker in ((0, mark), (1, "v"), (-1, "^")):
            chosen = entry.censored == code
            if chosen.any():
                axes.plot(
                    across[chosen],
                    up[chosen],
                    linestyle="none",
                    marker=marker,
                    markersize=2.0 if len(x) > FEW else 3.4,
                    color=colour,
                    markerfacecolor=colour if code == 0 else "none",
                    alpha=0.8,
                    zorder=3,
                )
    return x, y


def draw_against_time(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw residuals against time."""
    infinity = place_of_infinity(np.concatenate([e.times for e in entries]))
    if infinity is not None:
        style.mark_infinity(axes, infinity)
    x, y = draw_points(axes, entries, lambda e: (placed(e.times, infinity), e.values), setting)
    if len(x) > DENSE:
        axes.plot(*window_means(x, y), color=style.INK, linewidth=1.0, zorder=3)
        axes.set_title("mean and density", loc="right", fontsize=8.0, color=style.MUTED)
    calendars = {entry.calendar for entry in entries}
    calendar = calendars.pop() if len(calendars) == 1 else None  # the experiments share no calendar
    axes.set_xlabel(style.time_label(setting.problem.time_unit, calendar), parse_math=False)
    _about_zero(axes, y, setting)
    style.dress(axes, calendar=calendar)


def draw_against_prediction(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw residuals against the model's values; a funnel shows noise that grows with them."""
    positive = all((e.predicted[np.isfinite(e.predicted)] > 0).all() for e in entries)
    logarithmic = positive and any(e.transform is not None for e in entries)
    if logarithmic:
        axes.set_xscale("log")
    x, y = draw_points(axes, entries, lambda e: (e.predicted, e.values), setting)
    if len(x) > DENSE and not logarithmic:
        axes.plot(*window_means(x, y), color=style.INK, linewidth=1.0, zorder=3)
    finite = x[np.isfinite(x)]
    size = float(np.max(np.abs(finite), initial=0.0))
    if len(finite) and not logarithmic and np.ptp(finite) < 1e-6 * size:
        axes.set_xlim(finite.mean() - 0.13 * size, finite.mean() + 0.13 * size)
    unit = setting.problem.units.get(entries[0].observable)
    axes.set_xlabel(style.with_unit("predicted", unit), parse_math=False)
    _about_zero(axes, y, setting)
    style.dress(axes, log_x=logarithmic)


def draw_by_experiment(axes: Axes, entries: Sequence[Residuals], setting: Setting) -> None:
    """Draw the residuals of each experiment side by side, with a bar at their mean."""
    runs = {entry.experiment: k for k, entry in enumerate(entries)}

    def places(entry: Residuals) -> tuple[Array, Array]:
        count = len(entry.values)
        # Points are placed side by side in order of time, so that they do not overlap.
        shift = np.linspace(-0.25, 0.25, count) if count > 1 else np.zeros(count)
        return runs[entry.experiment] + shift, entry.values

    _, y = draw_points(axes, entries, places, setting)
    for entry in entries:
        finite = entry.values[np.isfinite(entry.values)]
        if len(finite):
            place = runs[entry.experiment]
            axes.hlines(
                finite.mean(), place - 0.35, place + 0.35, color=style.INK, linewidth=1.4, zorder=4
            )
    axes.set_xlim(-0.6, len(runs) - 0.4)
    axes.set_xlabel("experiment")
    _about_zero(axes, y, setting)
    style.dress(axes)
    room = max(int(24 / max(len(runs), 1)), 3)
    step = -(-len(runs) // 24)
    shown = list(runs)[::step]
    labels = [style.plain(style.shorten(name, room)) for name in shown]
    upright = len(shown) > 8
    axes.set_xticks(
        [runs[n] for n in shown], labels, parse_math=False, rotation=90 if upright else 0
    )


def reference_handles(setting: Setting, *, mean: bool = False) -> list[Artist]:
    """Return the legend entries of the marks behind residuals."""
    handles: list[Artist] = []
    if mean:
        handles.append(Line2D([], [], color=style.INK, linewidth=1.4, label="mean"))
    if setting.in_sds:
        handles.append(Patch(color=style.GRID, label="± 2 sd"))
    return handles


def _about_zero(axes: Axes, values: Array, setting: Setting) -> None:
    """Draw lines at zero and two standard deviations, within limits that hold all values."""
    if setting.in_sds:
        axes.axhspan(-2.0, 2.0, color=style.GRID, linewidth=0, zorder=0)
    axes.axhline(0.0, color=style.MUTED, linewidth=0.9, zorder=1)
    largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    reach = max(1.12 * largest, 2.6 if setting.in_sds else 0.0) or 1.0
    axes.set_ylim(-reach, reach)
    axes.set_ylabel("residual / sd" if setting.in_sds else "residual")
