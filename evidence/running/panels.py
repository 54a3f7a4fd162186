"""Figures of campaigns: a grid of panels in the style of odefit's figures, with one legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odefit.reporting.figures.style import dress, new_figure, plain_style


@contextmanager
def panels(
    rows: int, columns: int, width: float, height: float
) -> Iterator[tuple[Figure, Sequence[Sequence[Axes]]]]:
    """Yield the axes of a figure with this number of panels; hide those that stay empty."""
    with plain_style():
        figure = new_figure(width, height)
        axes: Any = figure.subplots(rows, columns, squeeze=False)
        yield figure, axes
        for one in axes.flat:
            if not one.has_data():
                one.set_axis_off()


def logarithmic(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Give axes logarithmic scales, with grid lines that suit."""
    if x:
        axes.set_xscale("log")
    if y:
        axes.set_yscale("log")
    dress(axes, log_x=x, log_y=y)


def legend(figure: Figure, columns: int, of: Axes | None = None, **options: Any) -> None:
    """Put a legend below all panels, of the lines in one of them or of given handles."""
    if of is not None:
        options["handles"], options["labels"] = of.get_legend_handles_labels()
    options.setdefault("fontsize", 8.0)
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, **options)
