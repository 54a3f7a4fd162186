"""The tables of the campaign `multiple-shooting`: convergence, and quality of the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence.multiple_shooting.plan import EXAMPLES
from evidence.running.campaign import Record
from evidence.running.panels import legend
from odefit.reporting.figures.style import DATA, MODEL, dress, new_figure, plain_style

# The settings shared by all fits of a row; 0 nodes mean the method's own choice
SETTING = ("noise", "size", "end", "states", "nodes", "integrator")
FIT = (*SETTING, "batch", "realization")
LOCAL = "local-linearization"
_COUNTS = ("converged", "right", "steps", "seconds", "objective", "reference")


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return tables of convergence and estimates of each example, and of the integrators."""
    fits, estimates = frames(records)
    found: dict[str, pd.DataFrame] = {}
    for name in EXAMPLES:
        mine = fits[fits["example"] == name]
        if len(mine):
            found[name] = reached(mine)
            found[f"{name}-estimates"] = quality(estimates[estimates["example"] == name])
    if (fits["integrator"] == LOCAL).any():
        found["integrators"] = integrators(fits, estimates)
    if fits["warnings"].map(len).any():
        found["warnings"] = warned(fits)
    return found or {"fits": fits}


def frames(records: Sequence[Record]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each fit, and a row for each unknown of each fit that converged."""
    fits, estimates = [], []
    for record in records:
        result = record.result or {"fits": []}
        for fit in result["fits"]:
            row = {name: record.task[name] for name in ("example", *SETTING, "batch")}
            row["realization"] = fit["realization"]
            fits.append(row | {name: fit[name] for name in (*_COUNTS, "message", "warnings")})
            if not fit["converged"]:
                continue
            values = zip(
                result["unknowns"],
                result["true"],
                fit["estimate"],
                fit["errors"] or [None] * len(result["true"]),
                strict=True,
            )
            estimates += [
                row | {"unknown": key, "true": true, "estimate": value, "error": error}
                for key, true, value, error in values
            ]
    columns = ["example", *FIT]
    table = pd.DataFrame(fits, columns=[*columns, *_COUNTS, "message", "warnings"])
    long = pd.DataFrame(estimates, columns=[*columns, "unknown", "true", "estimate", "error"])
    for name in ("true", "estimate", "error"):
        long[name] = pd.to_numeric(long[name])
    for name in _COUNTS:
        table[name] = pd.to_numeric(table[name])
    return table, long


def reached(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of fits that converged, and to the optimum, and of their steps.

    Steps are those of converged fits; evaluations of single shooting.
    """
    rows = []
    for setting, part in fits.groupby([*SETTING], sort=False):
        converged = part[part["converged"].astype(bool)]
        rows.append(
            dict(zip(SETTING, setting, strict=True))
            | {
                "fits": len(part),
                "converged": float(part["converged"].mean()),
                "at the optimum": float(part["right"].mean()),
                "mean steps": converged["steps"].mean(),
                "most steps": converged["steps"].max(),
                "median seconds": part["seconds"].median(),
            }
        )
    return pd.DataFrame(rows)


def quality(estimates: pd.DataFrame) -> pd.DataFrame:
    """Return average, bias and spread of the estimates beside the standard errors reported.

    ``average``, ``sd of averages``: averages within batches, then over the batches. ``bias``: in
    its own standard errors, a standard normal number without bias. ``sd``: of the estimates within
    batches; ``standard error``: root mean square of the reported standard errors; ``ratio``: of the
    two, known to 1 / sqrt(2 fits).
    """
    rows = []
    for group, part in estimates.groupby([*SETTING, "unknown"], sort=False):
        rows.append(dict(zip([*SETTING, "unknown"], group, strict=True)) | _quality(part))
    return pd.DataFrame(rows)


def _quality(part: pd.DataFrame) -> dict[str, Any]:
    batches = part.groupby("batch")["estimate"]
    averages = batches.mean()
    count = len(part)
    squares = float(((part["estimate"] - batches.transform("mean")) ** 2).sum())
    degrees = count - len(averages)
    sd = np.sqrt(squares / degrees) if degrees else np.nan
    error = float(np.sqrt((part["error"] ** 2).mean()))
    bias = float(part["estimate"].mean() - part["true"].mean())
    return {
        "fits": count,
        "true": part["true"].iloc[0],
        "average": averages.mean(),
        "sd of averages": averages.std(),
        "bias": bias / (sd / np.sqrt(count)) if sd else np.nan,
        "sd": sd,
        "standard error": error,
        "ratio": sd / error,
    }


def integrators(fits: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Compare Local Linearization with the usual integrator, on the same data and starts.

    ``largest difference``: of any estimate, in standard errors.
    """
    shared = [name for name in ("example", *FIT) if name != "integrator"]
    rows = []
    for name in EXAMPLES:
        local = fits[(fits["example"] == name) & (fits["integrator"] == LOCAL)]
        usual = fits[(fits["example"] == name) & (fits["integrator"] == "auto")]
        both = local.merge(usual, on=shared, suffixes=(" local", " usual"))
        if both.empty:
            continue
        mine = estimates[estimates["example"] == name]
        pairs = mine[mine["integrator"] == LOCAL].merge(
            mine[mine["integrator"] == "auto"],
            on=[*shared, "unknown"],
            suffixes=(" local", " usual"),
        )
        apart = (pairs["estimate local"] - pairs["estimate usual"]).abs() / pairs["error usual"]
        same = both["converged local"].astype(bool) == both["converged usual"].astype(bool)
        rows.append(
            {
                "example": name,
                "fits": len(both),
                "converged": float(both["converged local"].mean()),
                "usual converged": float(both["converged usual"].mean()),
                "same": float(same.mean()),
                "mean steps": both["steps local"].mean(),
                "usual mean steps": both["steps usual"].mean(),
                "largest difference": apart.max(),
                "median seconds": both["seconds local"].median(),
                "usual median seconds": both["seconds usual"].median(),
            }
        )
    return pd.DataFrame(rows)


def warned(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the number of Python warnings by setting."""
    each = fits.explode("warnings").dropna(subset="warnings")
    columns = ["example", *SETTING, "warnings"]
    return each.groupby(columns, sort=False).size().rename("fits").reset_index()


BAND = 0.05  # target of the relative difference of standard deviation and standard error


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return the figures of convergence (Rikitake) and of standard errors (Henon-Heiles)."""
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
        legend(figure, 2)
    return figure


def _honesty(table: pd.DataFrame) -> Figure:
    """Draw ratio and bias of each parameter, with their sampling errors."""
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
        legend(figure, 4, left)
    return figure


def _points(axes: Axes, table: pd.DataFrame, values: np.ndarray, spread: np.ndarray) -> None:
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
