"""The figures of the campaign `multiple-shooting`: convergence, and standard deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evidence.multiple_shooting.plan import EXAMPLES
from evidence.running.campaign import Record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = 0.05  # largest relative difference of standard deviation and standard error that is aimed at


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return the figures of convergence (Rikitake) and of standard errors (Henon-Heiles)."""
    from evidence.multiple_shooting.tables import frames, quality, reached

    fits, estimates = frames(records)
    found = {}
    rikitake = fits[(fits["example"] == "rikitake") & (fits["integrator"] == "auto")]
    if len(rikitake):
        found["figure-rikitake"] = _nodes(reached(rikitake))
    usual = EXAMPLES["henon-heiles"]
    henon = estimates[
        (estimates["example"] == "henon-heiles")
        & (estimates["states"] == "data")
        & (estimates["integrator"] == "auto")
        & (estimates["end"] == usual.end)
        & (estimates["nodes"] == usual.nodes)
    ]
    if len(henon):
        found["figure-henon-heiles"] = _honesty(quality(henon))
    return found


def _nodes(table: pd.DataFrame) -> Figure:
    from odefit.reporting.figures.style import DATA, MODEL, dress, new_figure, plain_style

    with plain_style():
        figure = new_figure(6.0, 3.2)
        axes = figure.add_subplot()
        for states, colour, marker in (("relaxed", MODEL, "s"), ("data", DATA, "o")):
            part = table[table["states"] == states].sort_values("nodes")
            axes.plot(
                part["nodes"],
                100 * part["at the optimum"],
                color=colour,
                marker=marker,
                markersize=4,
                label=f"nodes begin {'at the data' if states == 'data' else 'relaxed'}",
            )
        axes.set_xscale("log")
        dress(axes)
        ticks = sorted(set(table["nodes"]))
        axes.set_xticks(ticks, [str(t) for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel("shooting nodes (1: initial value approach)")
        axes.set_ylabel("fits that reach the optimum (%)")
        axes.set_ylim(-4, 104)
        axes.set_title("Rikitake, from a guess that is far off", loc="left")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8.0)
    return figure


def _honesty(table: pd.DataFrame) -> Figure:
    """Draw ratio and bias of each parameter, with their sampling errors."""
    from odefit.reporting.figures.style import new_figure, plain_style

    table = table[table["unknown"].isin(list(EXAMPLES["henon-heiles"].guess))]
    with plain_style():
        figure = new_figure(7.4, 3.4)
        left, right = figure.subplots(1, 2)
        error = 1 / np.sqrt(2 * np.maximum(table["fits"].to_numpy(dtype=float), 1.0))
        _points(left, table, table["ratio"].to_numpy(), 2 * error)
        left.axhspan(1 - BAND, 1 + BAND, color="0.92", zorder=0)
        left.axhline(1.0, color="0.6", linewidth=0.8, zorder=1)
        left.set_ylabel("sd of estimates / standard error")
        _points(right, table, table["bias"].to_numpy(), np.zeros(len(table)))
        right.axhspan(-2, 2, color="0.92", zorder=0)
        right.axhline(0.0, color="0.6", linewidth=0.8, zorder=1)
        right.set_ylabel("bias / its Monte Carlo error")
        figure.suptitle("Hénon-Heiles", x=0.01, ha="left")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8.0
        )
    return figure


def _points(axes: Axes, table: pd.DataFrame, values: np.ndarray, spread: np.ndarray) -> None:
    from odefit.reporting.figures.style import dress

    groups = list(dict.fromkeys(zip(table["noise"], table["size"], strict=True)))
    keys = list(dict.fromkeys(table["unknown"]))
    places = [groups.index(g) for g in zip(table["noise"], table["size"], strict=True)]
    for number, key in enumerate(keys):
        mine = (table["unknown"] == key).to_numpy()
        axes.errorbar(
            np.array(places)[mine] + 0.15 * (number - (len(keys) - 1) / 2),
            values[mine],
            yerr=spread[mine] if spread.any() else None,
            linestyle="none",
            marker="os^D"[number % 4],
            markersize=3.4,
            elinewidth=0.8,
            label=key,
        )
    dress(axes)
    axes.set_xticks(range(len(groups)), [f"{n:g}\n{s}" for n, s in groups], fontsize=7.0)
    axes.set_xlabel("noise, number of times")
