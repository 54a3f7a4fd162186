"""The figures of the campaign `separable`: Figures 1 to 3 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence.running.campaign import Record
from evidence.running.panels import legend, logarithmic, panels
from evidence.separable import paper as paper
from evidence.separable.tables import Group, groups
from odefit.common.arrays import Array
from odefit.reporting.figures.style import DATA, MODEL, MUTED

# Colours by quality of the prior
COLOURS = {"low": "#b91c1c", "medium": "#b45309", "high": "#1d4ed8"}
WHOSE = {"matched": "our optimiser", "published": "their optimiser"}


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return the figures of errors (1), of losses (2), and of their spread and times (3)."""
    found = groups(records)
    if not any(g.method == "sls" for g in found):
        return {}
    return {"figure-1": errors(found), "figure-2": losses(found), "figure-3": spreads(found)}


def _models(found: Sequence[Group]) -> list[str]:
    return [m for m in paper.MODELS if any(g.model == m for g in found)]


def _parts(found: Sequence[Group]) -> list[str]:
    return [p for p in WHOSE if any(g.part == p for g in found)]


def _grid(found: Sequence[Group]) -> Iterator[tuple[int, int, str, str]]:
    """Yield place, part and model of each panel: a row for each optimiser."""
    for row, part in enumerate(_parts(found)):
        for column, model in enumerate(_models(found)):
            yield row, column, part, model


def _titled(axes: Axes, model: str, part: str) -> None:
    axes.set_title(f"{model}, {WHOSE[part]}", loc="left", fontsize=8.0)


def errors(found: Sequence[Group]) -> Figure:
    """Return Figure 1: errors of linear parameters by prior, for each model and optimiser."""
    rows, columns = len(_parts(found)), len(_models(found))
    order = list(reversed(paper.PRIORS))
    levels = sorted({g.noise for g in found})
    with panels(rows, columns, 2.0 * columns + 0.6, 2.1 * rows + 0.5) as (figure, axes):
        for row, column, part, model in _grid(found):
            here = axes[row][column]
            for (size, style), (level, marker) in product(
                (("small", "-"), ("large", "--")), zip(levels, "os^v", strict=False)
            ):
                place = (part, model, size, level)
                mine = [g for g in found if (g.part, g.model, g.size, g.noise) == place]
                own = {g.method: g.mse("linear") for g in mine}
                if "sls" in own:
                    nls = [own.get(f"nls, {prior}", np.nan) for prior in order]
                    shape: Any = {"linestyle": style, "marker": marker, "markersize": 3.5}
                    label = f"{size} sample, noise {level:g}"
                    here.plot(range(3), nls, color=DATA, label=f"NLS, {label}", **shape)
                    sls = [own["sls"]] * 3
                    here.plot(range(3), sls, color=MODEL, label=f"SLS, {label}", **shape)
            logarithmic(here, y=True)
            here.set_xticks(range(3), order)
            _titled(here, model, part)
        axes[0][0].set_ylabel("MSE, linear")
        legend(figure, 4, axes[0][0], fontsize=7.0)
    return figure


def losses(found: Sequence[Group]) -> Figure:
    """Return Figure 2: the loss of each method over that of the other, low noise, small sample."""
    rows, columns = len(_parts(found)), len(_models(found))
    with panels(rows, columns, 2.0 * columns + 0.6, 2.1 * rows + 0.4) as (figure, axes):
        for row, column, part, model in _grid(found):
            here, own = axes[row][column], _setting(found, part, model)
            if "sls" not in own:
                continue
            for prior in (p for p in paper.PRIORS if f"nls, {p}" in own):
                pair = (own[f"nls, {prior}"].losses, own["sls"].losses)
                shape: Any = {"linestyle": "none", "marker": "o", "markersize": 2.0, "alpha": 0.5}
                here.plot(*pair, color=COLOURS[prior], label=f"{prior} prior", **shape)
            ends = _positive(own["sls"].losses)
            here.plot(ends, ends, color=MUTED, linewidth=0.8)
            logarithmic(here, x=True, y=True)
            _titled(here, model, part)
        for here in axes[-1]:
            here.set_xlabel("loss, NLS")
        axes[0][0].set_ylabel("loss, SLS")
        legend(figure, 3, axes[0][0])
    return figure


def spreads(found: Sequence[Group]) -> Figure:
    """Return Figure 3: box plots of losses (left) and seconds (right), low noise, small sample."""
    rows, columns = len(_parts(found)), len(_models(found))
    with panels(2 * rows, columns, 2.0 * columns + 0.6, 3.6 * rows + 0.2) as (figure, axes):
        for row, column, part, model in _grid(found):
            own = _setting(found, part, model)
            _boxes(axes[2 * row][column], {m: g.losses for m, g in own.items()})
            _boxes(axes[2 * row + 1][column], {m: 1e3 * g.search for m, g in own.items()})
            _titled(axes[2 * row][column], model, part)
            axes[2 * row][0].set_ylabel("loss")
            axes[2 * row + 1][0].set_ylabel("search, ms")
    return figure


def _setting(found: Sequence[Group], part: str, model: str) -> dict[str, Group]:
    """Return the groups of the smallest sample and noise, by method."""
    own = [g for g in found if (g.part, g.model) == (part, model)]
    sizes = [s for s in ("small", "large") if any(g.size == s for g in own)]
    level = min((g.noise for g in own), default=0.0)
    return {g.method: g for g in own if g.size == sizes[0] and g.noise == level}


def _boxes(axes: Axes, values: Mapping[str, Array]) -> None:
    order = ["sls", *(f"nls, {prior}" for prior in reversed(paper.PRIORS))]
    names = [n for n in order if n in values]
    if not names:
        return
    axes.boxplot(
        [_positive(values[n]) for n in names],
        flierprops={"markersize": 1.5},
        medianprops={"color": COLOURS["high"]},
    )
    logarithmic(axes, y=True)
    short = [n.replace("nls, ", "NLS\n").replace("sls", "SLS") for n in names]
    axes.set_xticks(range(1, len(names) + 1), short, fontsize=6.5)


def _positive(values: Array) -> Array:
    """Return the positive finite values, sorted."""
    return np.sort(values[np.isfinite(values) & (values > 0)])
