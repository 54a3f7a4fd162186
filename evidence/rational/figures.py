"""The figures of the campaign `rational`: the errors of the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evidence.rational.plan import INTERVAL
from evidence.running.campaign import Record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEAST = 1e-14  # smallest error in per cent that is drawn; smaller ones are drawn here

# The columns that are drawn, with labels and markers
KINDS = (
    ("before", "before polishing", "o"),
    ("after", "after polishing", "s"),
    ("floor", "floor: rounding and noise of the data", "_"),
)


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return the errors by model, a figure for each level of noise and number of points."""
    from evidence.rational.tables import SETTING, frame

    runs = frame(records)
    found = {}
    for (noise, points, start, end), part in runs.groupby([*SETTING], sort=False):
        if part["after"].notna().any():
            where = "" if (start, end) == INTERVAL else f"-from-{start:g}-to-{end:g}"
            title = f"noise {noise:g}, {points} points in [{start:g}, {end:g}]"
            found[f"figure-noise-{noise:g}-{points}-points{where}"] = _figure(part, title)
    return found


def _figure(runs: pd.DataFrame, title: str) -> Figure:
    from odefit.reporting.figures.style import DATA, INK, MODEL, dress, new_figure, plain_style

    names = list(dict.fromkeys(runs["model"]))
    with plain_style():
        figure = new_figure(7.4, 3.6)
        axes = figure.add_subplot()
        for (column, label, marker), colour in zip(KINDS, (DATA, MODEL, INK), strict=True):
            known = runs[runs[column].notna()]
            # Data sets side by side: ten points of a model do not hide each other.
            width = 0.7 / max(int(runs["set"].max()), 1)
            places = known["model"].map(names.index) - 0.35 + width * known["set"]
            axes.plot(
                places,
                known[column].clip(lower=LEAST),
                linestyle="none",
                marker=marker,
                markersize=3.6,
                color=colour,
                label=label,
            )
        axes.set_yscale("log")
        dress(axes, log_y=True)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_ylabel("RMSRE (%)")
        axes.set_title(title, loc="left")
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8.0)
    return figure
