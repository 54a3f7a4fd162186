"""The figures of the campaign `separable`: Figures 1 to 3 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evidence.running.campaign import Record
from evidence.separable import paper as paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evidence.separable.tables import Group
    from odefit.common.arrays import Array

# Colours by quality of the prior
COLOURS = {"low": "#b91c1c", "medium": "#b45309", "high": "#1d4ed8"}
WHOSE = {"matched": "our optimiser", "published": "their optimiser"}


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return the figures of errors (1), of losses (2), and of their spread and times (3)."""
    from evidence.separable.tables import groups

    found = groups(records)
    if not any(g.method == "sls" for g in found):
        return {}
    return {"figure-1": errors(found), "figure-2": losses(found), "figure-3": spreads(found)}


def _models(found: Sequence[Group]) -> list[str]:
    return [m for m in paper.MODELS if any(g.model == m for g in found)]


def _parts(found: Sequence[Group]) -> list[str]:
    return [p for p in WHOSE if any(g.part == p for g in found)]


def errors(found: Sequence[Group]) -> Figure:
    """Return Figure 1: errors of linear parameters by prior, for each model and optimiser."""
    from odefit.reporting.figures.style import DATA, MODEL, dress, new_figure, plain_style

    models, parts = _models(found), _parts(found)
    order = list(reversed(paper.PRIORS))
    levels = sorted({g.noise for g in found})
    with plain_style():
        figure = new_figure(2.0 * len(models) + 0.6, 2.1 * len(parts) + 0.5)
        panels = figure.subplots(len(parts), len(models), squeeze=False)
        for row, part in zip(panels, parts, strict=True):
            for axes, model in zip(row, models, strict=True):
                for size, style in (("small", "-"), ("large", "--")):
                    for level, marker in zip(levels, "os^v", strict=False):
                        own = {
                            g.method: g.mse("linear")
                            for g in found
                            if (g.part, g.model, g.size, g.noise) == (part, model, size, level)
                        }
                        if "sls" not in own:
                            continue
                        nls = [own.get(f"nls, {prior}", np.nan) for prior in order]
                        label = f"{size} sample, noise {level:g}"
                        shape = {"linestyle": style, "marker": marker, "markersize": 3.5}
                        axes.plot(range(3), nls, color=DATA, label=f"NLS, {label}", **shape)
                        sls = [own["sls"]] * 3
                        axes.plot(range(3), sls, color=MODEL, label=f"SLS, {label}", **shape)
                axes.set_yscale("log")
                dress(axes, log_y=True)
                axes.set_xticks(range(3), order)
                axes.set_title(f"{model}, {WHOSE[part]}", loc="left", fontsize=8.0)
        panels[0][0].set_ylabel("MSE, linear")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=7.0
        )
    return figure


def losses(found: Sequence[Group]) -> Figure:
    """Return Figure 2: losses of both methods against each other, low noise, small sample."""
    from odefit.reporting.figures.style import MUTED, dress, new_figure, plain_style

    models, parts = _models(found), _parts(found)
    with plain_style():
        figure = new_figure(2.0 * len(models) + 0.6, 2.1 * len(parts) + 0.4)
        panels = figure.subplots(len(parts), len(models), squeeze=False)
        for row, part in zip(panels, parts, strict=True):
            for axes, model in zip(row, models, strict=True):
                own = _setting(found, part, model)
                if "sls" not in own:
                    axes.set_axis_off()
                    continue
                for prior in paper.PRIORS:
                    if f"nls, {prior}" in own:
                        axes.plot(
                            own[f"nls, {prior}"].losses,
                            own["sls"].losses,
                            linestyle="none",
                            marker="o",
                            markersize=2.0,
                            alpha=0.5,
                            color=COLOURS[prior],
                            label=f"{prior} prior",
                        )
                ends = _positive(own["sls"].losses)
                axes.plot(ends, ends, color=MUTED, linewidth=0.8)
                axes.set_xscale("log")
                axes.set_yscale("log")
                dress(axes, log_x=True, log_y=True)
                axes.set_title(f"{model}, {WHOSE[part]}", loc="left", fontsize=8.0)
        for axes in panels[-1]:
            axes.set_xlabel("loss, NLS")
        panels[0][0].set_ylabel("loss, SLS")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.0
        )
    return figure


def spreads(found: Sequence[Group]) -> Figure:
    """Return Figure 3: box plots of losses (left) and seconds (right), low noise, small sample."""
    from odefit.reporting.figures.style import new_figure, plain_style

    models, parts = _models(found), _parts(found)
    with plain_style():
        figure = new_figure(2.0 * len(models) + 0.6, 3.6 * len(parts) + 0.2)
        panels = figure.subplots(2 * len(parts), len(models), squeeze=False)
        for number, part in enumerate(parts):
            for column, model in enumerate(models):
                own = _setting(found, part, model)
                upper, lower = panels[2 * number][column], panels[2 * number + 1][column]
                _boxes(upper, {m: g.losses for m, g in own.items()}, f"{model}, {WHOSE[part]}")
                _boxes(lower, {m: 1e3 * g.search for m, g in own.items()}, "")
            panels[2 * number][0].set_ylabel("loss")
            panels[2 * number + 1][0].set_ylabel("search, ms")
    return figure


def _setting(found: Sequence[Group], part: str, model: str) -> dict[str, Group]:
    """Return the groups of the smallest sample and noise, by method."""
    own = [g for g in found if (g.part, g.model) == (part, model)]
    sizes = [s for s in ("small", "large") if any(g.size == s for g in own)]
    level = min((g.noise for g in own), default=0.0)
    return {g.method: g for g in own if g.size == sizes[0] and g.noise == level}


def _boxes(axes: Axes, values: Mapping[str, Array], title: str) -> None:
    from odefit.reporting.figures.style import dress

    order = ["sls", *(f"nls, {prior}" for prior in reversed(paper.PRIORS))]
    names = [n for n in order if n in values]
    if not names:
        axes.set_axis_off()
        return
    axes.boxplot(
        [_positive(values[n]) for n in names],
        flierprops={"markersize": 1.5},
        medianprops={"color": COLOURS["high"]},
    )
    axes.set_yscale("log")
    dress(axes, log_y=True)
    short = [n.replace("nls, ", "NLS\n").replace("sls", "SLS") for n in names]
    axes.set_xticks(range(1, len(names) + 1), short, fontsize=6.5)
    axes.set_title(title, loc="left", fontsize=8.0)


def _positive(values: Array) -> Array:
    """Return the positive finite values, sorted."""
    return np.sort(values[np.isfinite(values) & (values > 0)])
