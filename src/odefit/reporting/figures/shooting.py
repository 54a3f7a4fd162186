"""An iteration of multiple shooting: the trajectory on its intervals (Figure 1 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.problem.condition import Condition
from odefit.reporting.curves import (
    Curve,
    calendar_on,
    spreads_over_decades,
)
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import Canvas, Width
from odefit.reporting.figures.fit import MAX_PANELS, draw_panel
from odefit.reporting.spreads import ends, standard_deviations
from odefit.simulation import Simulation

if TYPE_CHECKING:
    from odefit.methods.multiple_shooting import History

WIDE_PANEL_SIZE = (6.6, 1.75)
"""Width and height of one of several stacked panels, in inches."""

NARROW_PANEL_SIZE = (4.4, 1.9)
"""Width and height of one of two panels side by side, in inches."""

MAX_SINGLE_COLUMN_PANELS = 3
"""Largest number of stacked panels."""


def plot_shooting(
    history: History,
    iteration: int = -1,
    experiment: str | None = None,
    *,
    width: Width | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw the trajectory of an iteration, discontinuous at its shooting nodes, with the data.

    Every observable has a panel, and so has every state that is not itself an observable; those
    show no data. A ring marks a node, where the line is interrupted.

    Parameters
    ----------
    history
        The history that :meth:`odefit.MultipleShooting.follow` returns.
    iteration
        The number of the iteration: 0 is the start of Gauss-Newton, -1 the last.
    experiment
        The name of the experiment; None for the first.
    width
        The width of the figure: "single" or "double" (columns of a journal), "8.5 cm", or inches;
        None for one that suits a screen.
    figure
        A matplotlib figure, or a part of one, in which to draw; None for a new one.

    Raises
    ------
    InputError
        There is no such iteration or experiment, or no such width.

    Examples
    --------
    >>> import odefit
    >>> from odefit.reporting.figures.shooting import plot_shooting
    >>> problem = odefit.library.load("henon-heiles")
    >>> history = odefit.MultipleShooting(states="data").follow(problem)
    >>> figure = plot_shooting(history, iteration=0)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['x', 'y', 'px', 'py']
    """
    canvas = Canvas(width, figure)
    problem = history.problem
    condition = problem.condition(experiment)
    count = len(history.iterations)
    if not -count <= iteration < count:
        raise InputError(
            f"plot_shooting, iteration: expected 0 to {count - 1}, or -1 for the last, "
            f"got {iteration}"
        )
    try:
        path = history.trajectory(iteration, condition.name)
    except RuntimeError as error:
        return canvas.empty(str(error))
    curves = _curves(history, iteration, condition, path)
    nodes = history.shooting.node_times[problem.conditions.index(condition)]
    # At a node the trajectory has two entries: the gap, and the start of an interval.
    begins = np.searchsorted(path.times, nodes, side="right") - 1
    shown = curves[:MAX_PANELS]
    columns = 1 if len(shown) <= MAX_SINGLE_COLUMN_PANELS else 2
    size = WIDE_PANEL_SIZE if columns == 1 else NARROW_PANEL_SIZE
    with style.plain_style():
        rows = canvas.panels(len(shown), columns, size, more=0.55)
        panels = [axes for row in rows for axes in row]
        for axes, curve in zip(panels, shown, strict=True):
            _draw_nodes(axes, nodes, curve.model[begins])
            draw_panel(axes, curve, several=False)
        style.label_outside(rows)
        sheet = panels[0].figure
        sheet.suptitle(
            _title(history, iteration, condition), fontsize=9.5, color=style.INK, parse_math=False
        )
        _explain(sheet)
        return canvas.finish(sheet)


def _curves(
    history: History, iteration: int, condition: Condition, path: Simulation
) -> list[Curve]:
    """Return a curve for each observable, then for each state that is not itself an observable."""
    problem = history.problem
    point = history.iterations[iteration].point
    vector = history.shooting.scaling.natural(point.coordinates)
    observables = problem.model.observables
    alone = {expression.name for expression in observables.values()}
    lines = [*path.observables.items(), *((k, v) for k, v in path.states.items() if k not in alone)]
    curves = []
    for number, (name, values) in enumerate(lines):
        series = condition.series.get(name) if number < len(observables) else None
        noise = problem.noise.get(name)
        transform = None if noise is None or series is None else noise.transform
        spread = None
        if series is not None:
            sds = standard_deviations(problem, condition, name, vector, {})
            spread = None if sds is None else ends(series.values, sds, transform)
        curves.append(
            Curve(
                experiment=condition.name,
                observable=name,
                times=np.zeros(0) if series is None else condition.times[series.rows],
                measured=np.zeros(0) if series is None else series.values,
                spread=spread,
                model_times=path.times,
                model=values,
                failure="",
                events=tuple(sorted({time for time, _ in condition.events})),
                transform=transform,
                log_time=spreads_over_decades(condition.times),
                time_unit=problem.time_unit,
                calendar=calendar_on(problem, condition),
            )
        )
    return curves


def _draw_nodes(axes: Axes, times: Array, values: Array) -> None:
    axes.plot(
        times,
        np.where(np.isfinite(values), values, np.nan),
        linestyle="none",
        marker="o",
        markersize=5.0 if len(times) <= 60 else 3.4,
        markerfacecolor="none",
        markeredgecolor=style.MODEL,
        markeredgewidth=0.7,
        zorder=3,
    )


def _title(history: History, iteration: int, condition: Condition) -> str:
    """Return a line about the iteration that is drawn."""
    at = history.iterations[iteration]
    last = len(history.iterations) - 1
    number = range(last + 1)[iteration]
    several = len(history.problem.conditions) > 1
    title = f"iteration {number} of {last}: objective {at.objective:.3g}, gap {at.gap:.1g}"
    return style.plain(f"{style.shorten(condition.name, 24)} · {title}" if several else title)


def _explain(figure: Figure | SubFigure) -> None:
    """Add a legend below all panels."""
    line = Line2D([], [], color=style.MODEL, linewidth=1.4, label="trajectory")
    node = Line2D(
        [],
        [],
        linestyle="none",
        marker="o",
        markersize=5.0,
        markerfacecolor="none",
        color=style.MODEL,
    )
    node.set_label("node")
    data = Line2D(
        [], [], linestyle="none", marker="o", markersize=3.6, color=style.DATA, label="data"
    )
    figure.legend(
        handles=[line, node, data],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=style.SMALL_FONT,
    )
