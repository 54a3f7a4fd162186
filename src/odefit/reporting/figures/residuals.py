"""Residuals against time: what the model leaves unexplained should have no pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odefit.common.arrays import Array
from odefit.problem.calendars import Calendar, calendar_of
from odefit.reporting.curves import DENSE, place_of_infinity, placed
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.density import draw_density, window_means
from odefit.reporting.sentences import weighted
from odefit.result_data import ResultData
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.other_integrations import able_to_integrate
from odefit.simulation.simulations import residuals_by

PANEL_SIZE = (3.1, 2.0)
"""Width and height of a panel, in inches."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of one observable in one experiment, shape (n,).

    They are measured minus modelled values, in standard deviations where those are known.
    """

    experiment: str
    observable: str
    times: Array
    values: Array
    calendar: Calendar | None = None


def residuals_of(result: ResultData, forward: ForwardMap | None = None) -> list[Residuals]:
    """Return the residuals of the best solution; none if it is missing or cannot be simulated.

    ``forward`` is the map that integrates it, where it is known.
    """
    if not result.solutions:
        return []
    best = result.best
    if forward is None:
        forward = able_to_integrate(result.problem, best.vector, best.nodes)
    table = residuals_by(forward, best.vector)
    if isinstance(table, Failure):
        return []
    return [
        # The sign is made "measured minus modelled"; the optimiser's own is the other.
        Residuals(
            entry.experiment,
            entry.observable,
            entry.times,
            np.abs(entry.standardized) * np.sign(entry.measured - entry.predicted),
            calendar_of(result.problem, result.problem.condition(entry.experiment)),
        )
        for entry in table
    ]


def by_observable(residuals: Sequence[Residuals]) -> dict[str, list[Residuals]]:
    """Group residuals by observable."""
    groups: dict[str, list[Residuals]] = {}
    for entry in residuals:
        groups.setdefault(entry.observable, []).append(entry)
    return groups


def plot_residuals(result: ResultData, canvas: Canvas = SCREEN) -> Figure:
    """Draw one panel for each observable, all experiments together."""
    groups = by_observable(residuals_of(result))
    if not groups:
        return canvas.empty("no residuals: no solution was found that can be simulated")
    in_sds = weighted(result.problem)
    with style.plain_style():
        rows = canvas.panels(len(groups), min(len(groups), 3), PANEL_SIZE)
        panels = [axes for row in rows for axes in row]
        for axes, (observable, entries) in zip(panels, groups.items(), strict=True):
            draw_panel(axes, observable, entries, result.problem.time_unit, in_sds)
        style.label_outside(rows)
        return canvas.finish(panels[0])


def panel_figure(
    observable: str, entries: Sequence[Residuals], time_unit: str, in_sds: bool
) -> style.Plot:
    """Return one panel as a figure of its own."""
    with style.plain_style():
        figure, axes = style.panel_axes(*PANEL_SIZE, left=0.72)
        draw_panel(axes, observable, entries, time_unit, in_sds)
    return figure


def draw_panel(
    axes: Axes, observable: str, entries: Sequence[Residuals], time_unit: str, in_sds: bool
) -> None:
    """Draw the residuals of one observable; `in_sds` says that they are standardised."""
    axes.set_title(
        style.plain(style.shorten(observable)),
        loc="left",
        fontsize=9.5,
        color=style.INK,
        parse_math=False,
    )
    if in_sds:
        axes.axhspan(-2.0, 2.0, color=style.GRID, linewidth=0, zorder=0)
    axes.axhline(0.0, color=style.MUTED, linewidth=0.9, zorder=1)
    count = sum(len(e.times) for e in entries)
    infinity = place_of_infinity(np.concatenate([e.times for e in entries]))
    if infinity is not None:
        style.mark_infinity(axes, infinity)
    times = placed(np.concatenate([e.times for e in entries]), infinity)
    values = np.concatenate([e.values for e in entries])
    if count > DENSE:
        draw_density(axes, times, values, style.MODEL, zorder=2)
        axes.plot(*window_means(times, values), color=style.INK, linewidth=1.0, zorder=3)
        axes.set_title("mean and density", loc="right", fontsize=8.0, color=style.MUTED)
    for entry in entries if count <= DENSE else ():
        axes.plot(
            placed(entry.times, infinity),
            np.where(np.isfinite(entry.values), entry.values, np.nan),
            linestyle="none",
            marker="o",
            markersize=2.0 if count > 80 else 3.4,
            color=style.MODEL,
            alpha=0.8,
            zorder=3,
        )
    largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    reach = max(1.12 * largest, 2.6 if in_sds else 0.0) or 1.0
    axes.set_ylim(-reach, reach)
    calendars = {entry.calendar for entry in entries}
    calendar = calendars.pop() if len(calendars) == 1 else None  # none that all experiments share
    axes.set_xlabel(style.time_label(time_unit, calendar), parse_math=False)
    axes.set_ylabel("residual / sd" if in_sds else "residual")
    style.dress(axes, calendar=calendar)
