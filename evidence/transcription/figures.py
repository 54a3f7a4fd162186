"""The figures of appendix C: distance to the reference against time, and against error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from evidence.running.campaign import Record
from evidence.transcription.measures import ALTERNATIVE, FOUND, NEAR
from evidence.transcription.plan import SCHEMES, STEPS
from evidence.transcription.tables import frame
from odefit.reporting.figures.style import INK, MUTED, dress, new_figure, plain_style, say

# Colours by scheme, from Okabe and Ito's palette, which colour-blind readers can distinguish
COLOURS = dict(zip(SCHEMES, ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9"), strict=True))
MARKERS = "os^Dvp*X"  # markers by solver, in their order

# Smallest drawn value; smaller values are drawn here
LEAST_ERROR, LEAST_DISTANCE, LEAST_TIME = 1e-12, 1e-9, 1e-3

# The panels: letter, scope, quantity on the vertical axis, and end of the title
PANELS = (
    ("a", "global", "seconds", "time"),
    ("b", "global", "nrmse", "error"),
    ("c", "local", "seconds", "time"),
    ("d", "local", "nrmse", "error"),
    ("e", "global", "nrmse", 'error when "solved"'),
)


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return a figure for each problem, with those panels of appendix C that have runs."""
    runs = frame(records)
    # a point that violates the equations is no solution
    points = runs[runs["success"] & runs["max_re"].notna() & runs["nrmse"].notna()]
    return {
        f"figure-{problem}": _figure(problem, points[points["problem"] == problem])
        for problem in STEPS
        if (points["problem"] == problem).any()
    }


def _figure(problem: str, points: pd.DataFrame) -> Figure:
    scopes = [s for s in ("global", "local") if (points["scope"] == s).any()]
    panels = [p for p in PANELS if p[1] in scopes]
    rows = (len(panels) + 1) // 2
    solvers = list(dict.fromkeys(points["solver"]))
    with plain_style():
        figure = new_figure(7.4, 0.75 + 2.55 * rows)
        axes = figure.subplots(rows, 2, squeeze=False)
        for one, panel in zip(axes.flat, panels, strict=False):
            _scale(one, panel[2], points)
            _panel(one, panel, points, solvers)
        for one in list(axes.flat)[len(panels) :]:
            one.set_axis_off()
        figure.suptitle(problem, x=0.01, ha="left", fontsize=11.0)
        _legend(figure, points, solvers)
    return figure


def _panel(
    axes: Axes, panel: tuple[str, str, str, str], points: pd.DataFrame, solvers: list[str]
) -> None:
    letter, scope, vertical, title = panel
    mine = points[points["scope"] == scope]
    if letter == "e":
        mine = mine[mine["solved"]]
    least = LEAST_ERROR if vertical == "nrmse" else LEAST_TIME
    for scheme, colour in COLOURS.items():
        for solver, marker in zip(solvers, MARKERS * len(solvers), strict=False):
            chosen = mine[(mine["scheme"] == scheme) & (mine["solver"] == solver)]
            for solved in (True, False):
                some = chosen[chosen["solved"] == solved]
                axes.plot(
                    some["max_re"].clip(lower=LEAST_DISTANCE),
                    some[vertical].clip(lower=least),
                    linestyle="none",
                    marker=marker,
                    markersize=4.2,
                    markerfacecolor=colour if solved else "none",
                    markeredgecolor="white" if solved else colour,
                    markeredgewidth=0.4 if solved else 0.9,
                    zorder=3,
                )
    dress(axes, log_x=True, log_y=True)
    for limit, style in ((FOUND, (0, (4, 2))), (NEAR, (0, (1, 2)))):
        axes.axvline(limit, color=MUTED, linewidth=0.9, linestyle=style, zorder=2)
    if vertical == "nrmse":
        axes.axhline(ALTERNATIVE, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=2)
    axes.set_xlabel("distance to the reference (MaxRE)")
    axes.set_ylabel("error (NRMSE)" if vertical == "nrmse" else "time (s)")
    axes.set_title(f"({letter}) {scope} solvers: distance and {title}", loc="left")
    if not len(mine):
        say(axes, "no such run")


def _scale(axes: Axes, vertical: str, points: pd.DataFrame) -> None:
    """Give all panels of a problem the same axes."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*_limits(points["max_re"].clip(lower=LEAST_DISTANCE), FOUND, NEAR))
    if vertical == "nrmse":
        axes.set_ylim(*_limits(points["nrmse"].clip(lower=LEAST_ERROR), ALTERNATIVE))
    else:
        axes.set_ylim(*_limits(points["seconds"].clip(lower=LEAST_TIME)))


def _limits(values: pd.Series[float], *shown: float) -> tuple[float, float]:
    """Return limits of a logarithmic axis that includes all values and `shown`."""
    every = [*values, *shown]
    return min(every) / 2.0, max(every) * 2.0


def _legend(figure: Figure, points: pd.DataFrame, solvers: list[str]) -> None:

    def sample(label: str, marker: str, colour: str, filled: bool = True) -> Any:
        return Line2D(
            [],
            [],
            linestyle="none",
            marker=marker,
            markersize=5.0,
            markerfacecolor=colour if filled else "none",
            markeredgecolor=colour,
            label=label,
        )

    schemes = [s for s in SCHEMES if (points["scheme"] == s).any()]
    handles = [sample(s, "o", COLOURS[s]) for s in schemes]
    handles += [sample(s, m, INK) for s, m in zip(solvers, MARKERS * len(solvers), strict=False)]
    if not points["solved"].all():
        handles.append(sample("not solved", "o", INK, filled=False))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles) if len(handles) <= 6 else (len(handles) + 1) // 2,
        frameon=False,
        fontsize=8.0,
        handletextpad=0.2,
        columnspacing=1.2,
    )
