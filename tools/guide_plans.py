"""Diagrams for guides without a figure of odefit: checkpoints, clusters, limits, sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import odefit
from odefit.reporting.figures import style

DOCS = Path(__file__).parents[1] / "docs"

WIDTH = 4.2
"""Width of the figures in inches."""

STARTS = ((0.0, 2.0), (0.0, 3.2), (2.0, 3.4), (3.2, 5.2), (3.4, 6.1))
"""Begin and end of each start in the diagram of a checkpoint, two at a time."""

KILL, AGAIN = 4.4, 5.6
"""The times at which the process is killed, and at which the command is repeated."""


def empty_axes(height: float) -> tuple[Figure, Axes]:
    """Return a figure whose axes fill it and are not drawn."""
    figure = style.new_figure(WIDTH, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, centre: tuple[float, float], words: str, colour: str, width: float) -> None:
    """Draw a box with words."""
    x, y = centre
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.09),
            width,
            0.18,
            boxstyle="round,pad=0.01,rounding_size=0.02",
            linewidth=1.0,
            edgecolor=colour,
            facecolor="none",
        )
    )
    axes.text(x, y, words, ha="center", va="center", fontsize=7.2, color=colour)


def arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow with two heads."""
    look: dict[str, Any] = {"arrowstyle": "<->", "color": style.INK, "linewidth": 0.8}
    axes.annotate("", xy=end, xytext=begin, arrowprops=look)


def picture_of_a_checkpoint() -> Figure:
    """Return the diagram of a killed fit that continues: only unfinished starts are repeated."""
    with style.plain_style():
        figure = style.new_figure(WIDTH, 2.0)
        axes = figure.subplots()
        for row, (begin, end) in enumerate(STARTS):
            lost = end > KILL
            stop = min(end, KILL)
            colour = style.SERIES[2] if lost else style.MODEL
            axes.barh(row, stop - begin, left=begin, height=0.55, color=colour, alpha=0.85)
            if lost:
                axes.barh(row, end - begin, left=AGAIN, height=0.55, color=style.MODEL, alpha=0.85)
        axes.axvline(KILL, color=style.INK, linewidth=1.0, linestyle="--")
        axes.axvline(AGAIN, color=style.INK, linewidth=1.0, linestyle=":")
        axes.text(KILL - 0.08, -0.75, "killed", ha="right", fontsize=7.0)
        axes.text(AGAIN + 0.08, -0.75, "the same command again", ha="left", fontsize=7.0)
        style.dress(axes)
        axes.set(ylim=(len(STARTS) - 0.4, -1.2), xlim=(0.0, 8.7))
        axes.set_yticks(range(len(STARTS)), [f"start {k}" for k in range(len(STARTS))])
        axes.set_xticks([])
        axes.set_xlabel("time", fontsize=7.5)
        axes.tick_params(labelsize=6.8)
    return figure


def picture_of_a_cluster() -> Figure:
    """Return the diagram of a fit on a cluster: one process sends starts, the workers run them."""
    with style.plain_style():
        figure, axes = empty_axes(1.9)
        box(axes, (0.16, 0.5), "odefit fit\n--dask ADDRESS", style.SERIES[0], 0.26)
        box(axes, (0.52, 0.5), "scheduler", style.INK, 0.2)
        for row, words in enumerate(
            ("start 0, start 3, ...", "start 1, start 5, ...", "start 2, start 4, ...")
        ):
            y = 0.84 - 0.34 * row
            box(axes, (0.85, y), f"worker {row + 1}\n{words}", style.INK, 0.26)
            arrow(axes, (0.635, 0.5), (0.705, y))
        arrow(axes, (0.305, 0.5), (0.405, 0.5))
    return figure


def picture_of_a_limit() -> Figure:
    """Return the diagram of a fit's best objective so far, which remains if the fit is ended."""
    problem = odefit.library.load("harmonic", noise=0.1, seed=1)
    best: list[float] = []
    odefit.fit(
        problem,
        odefit.MultiStart(starts=12, screening=1),
        seed=1,
        jobs=1,
        progress=lambda progress: best.append(progress.best),
    )
    finite = [value for value in best if value < float("inf")]
    found = next(k for k, value in enumerate(finite) if value < 1.01 * finite[-1])
    finite = finite[: 3 * found + 3]  # the fit in the diagram ends just before the best answer
    with style.plain_style():
        figure = style.new_figure(WIDTH, 2.2)
        axes = figure.subplots()
        axes.step(range(1, len(finite) + 1), finite, where="post", color=style.MODEL, linewidth=1.5)
        axes.plot([found], [finite[found - 1]], "o", color=style.SERIES[2], markersize=6.0)
        axes.annotate(
            "ended here (green): this answer comes back",
            (found, finite[found - 1]),
            xytext=(38, -3),
            textcoords="offset points",
            fontsize=7.0,
        )
        axes.plot([len(finite)], [finite[-1]], "o", color=style.MODEL, markersize=6.0)
        axes.annotate(
            "run to its end",
            (len(finite), finite[-1]),
            xytext=(0, 9),
            textcoords="offset points",
            fontsize=7.0,
            ha="right",
        )
        style.dress(axes)
        axes.set_yscale("log")
        axes.set_xlabel("finished starts", fontsize=7.5)
        axes.set_ylabel("best objective so far", fontsize=7.5)
        axes.tick_params(labelsize=6.8)
    return figure


def picture_of_sizes() -> Figure:
    """Return the sizes of the packages in the table of the page on installation."""
    text = (DOCS / "installation.md").read_text(encoding="utf-8")
    table = text.partition("| package, with its dependencies |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \|", table, re.MULTILINE)
    names, sizes = [name for name, _ in rows], [float(size) for _, size in rows]
    with style.plain_style():
        figure = style.new_figure(WIDTH, 2.2)
        axes = figure.subplots()
        axes.barh(range(len(rows)), sizes, height=0.6, color=style.MODEL)
        for row, size in enumerate(sizes):
            axes.text(size + 4.0, row, f"{size:.0f}", va="center", fontsize=6.8)
        style.dress(axes)
        axes.set_yticks(range(len(rows)), names)
        axes.invert_yaxis()
        axes.set(xlim=(0.0, 1.12 * max(sizes)))
        axes.set_xlabel("MB on disk", fontsize=7.5)
        axes.tick_params(labelsize=6.8)
    return figure
