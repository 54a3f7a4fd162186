"""The tables of the campaign `separable`: Tables 1 to 4 of the paper, and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evidence.running.campaign import Record
from evidence.separable import paper as paper
from evidence.separable import plan as plan
from evidence.separable.runs import as_low, vectors
from odefit.common.arrays import Array

KINDS = ("linear", "nonlinear")

# Where the paper's ratio is above the first, ours should exceed the second: 1 and rounding
LOW, ABOVE = 1.5, 1.01
SAME_ERROR = 1.02  # ratio of mean squared errors below which smoothers count as equal

# Multiple of the loss of separable least squares above which a search is at another minimum
WORSE = 1.01


@dataclass(frozen=True, eq=False)
class Group:
    """The runs of a method in a setting."""

    part: str  # part, model, size, noise: The setting
    model: str
    size: str
    noise: float
    method: str  # "sls", "nls, low" and so on; the name of a smoother
    vectors: Array  # vectors, losses, search, smoothing: by run; seconds for the last two
    losses: Array
    search: Array
    smoothing: Array
    # Squared errors of linear and of nonlinear parameters, summed, by run
    errors: Mapping[str, Array]

    @property
    def setting(self) -> dict[str, Any]:
        times = plan.MODELS[self.model].samples[self.size]
        return {"model": self.model, "times": times, "noise": self.noise}

    def mse(self, kind: str) -> float:
        """Return the mean over the runs that gave an estimate."""
        return float(np.nanmean(self.errors[kind])) if len(self.losses) else np.nan


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    found = groups(records)
    named: dict[str, pd.DataFrame] = {}
    for number, (kind, size) in enumerate(paper.TABLES, 1):
        table = ratios(found, kind, size)
        if len(table):
            named[f"table-{number}"] = table
    named["mse"] = mse(found)
    named["smoothers"] = smoothers(found)
    named["seconds"] = seconds(found)
    named["polished"] = polished(records)
    named["targets"] = targets(found, named["polished"])
    return {name: table for name, table in named.items() if len(table)}


def groups(records: Sequence[Record]) -> list[Group]:
    """Return the runs of all records, by setting and method."""
    entries: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    truths: dict[str, tuple[list[str], Array]] = {}
    for record in records:
        task, result = record.task, record.result
        if result is None or task["part"] == "polished":
            continue
        truths[task["model"]] = (list(result["keys"]), np.array(result["true"], dtype=float))
        for method, runs in result.items():
            if method not in ("keys", "true"):
                place = (*(task[n] for n in ("part", "model", "size", "noise")), method)
                entries.setdefault(place, []).extend(runs)
    return [_group(place, runs, *truths[place[1]]) for place, runs in entries.items()]


def _group(
    place: tuple[Any, ...], runs: list[Mapping[str, Any]], keys: list[str], true: Array
) -> Group:
    part, model, size, noise, method = place
    estimates = vectors(runs)
    squares = (estimates - true) ** 2
    linear = np.isin(keys, plan.MODELS[model].linear)

    def column(name: str) -> Array:
        values = [entry.get(name) for entry in runs]
        return np.array([np.nan if v is None else v for v in values], dtype=float)

    return Group(
        part,
        model,
        size,
        noise,
        method,
        estimates,
        column("loss"),
        column("search"),
        column("smoothing"),
        {"linear": squares[:, linear].sum(axis=1), "nonlinear": squares[:, ~linear].sum(axis=1)},
    )


def _find(found: Sequence[Group], **wanted: Any) -> Group | None:
    matching = (g for g in found if all(getattr(g, n) == v for n, v in wanted.items()))
    return next(matching, None)


def _pairs(found: Sequence[Group], part: str) -> Iterator[tuple[str, Group, Group]]:
    """Yield prior quality, nonlinear and separable least squares on the same data."""
    for group in found:
        if group.part == part and group.method.startswith("nls, "):
            same = _find(
                found,
                part=part,
                model=group.model,
                size=group.size,
                noise=group.noise,
                method="sls",
            )
            if same is not None:
                yield group.method.removeprefix("nls, "), group, same


def ratios(found: Sequence[Group], kind: str, size: str) -> pd.DataFrame:
    """Return a table of the paper: our ratios, those with the published optimisers, the paper's."""
    values = {
        (part, nls.noise, prior, nls.model): nls.mse(kind) / sls.mse(kind)
        for part in ("matched", "published")
        for prior, nls, sls in _pairs(found, part)
        if nls.size == size
    }
    names = {level: name for name, level in paper.NOISE.items()}
    levels = sorted({key[1] for key in values})
    models = [m for m in paper.MODELS if any(key[3] == m for key in values)]
    rows = []
    for level in levels:
        for prior in paper.PRIORS:
            row: dict[str, Any] = {"noise": level, "prior": prior}
            for model in models:
                row[model] = values.get(("matched", level, prior, model), np.nan)
                other = values.get(("published", level, prior, model), np.nan)
                row[f"{model}, their optimiser"] = other
                known = level in names
                row[f"{model}, paper"] = (
                    paper.ratio(kind, size, prior, names[level], model) if known else np.nan
                )
            rows.append(row)
    return pd.DataFrame(rows)


def mse(found: Sequence[Group]) -> pd.DataFrame:
    """Return absolute errors and losses by method: the figures of the paper as numbers.

    ``worse``: share of runs whose loss is more than one per cent above that of separable least
    squares on the same data.
    """
    rows = []
    for group in found:
        if group.part == "smoothed":
            continue
        setting = {n: getattr(group, n) for n in ("part", "model", "size", "noise")}
        same = _find(found, **setting, method="sls")
        worse = np.nan
        if same is not None and len(same.losses) == len(group.losses):
            worse = float(np.mean(~(group.losses <= WORSE * same.losses)))
        rows.append(
            {"optimiser": "ours" if group.part == "matched" else "theirs"}
            | group.setting
            | {
                "method": group.method,
                "runs": len(group.losses),
                "failed": int((~np.isfinite(group.losses)).sum()),
                "MSE, linear": group.mse("linear"),
                "MSE, nonlinear": group.mse("nonlinear"),
                "median loss": float(np.nanmedian(group.losses)),
                "worse": worse,
                "median ms": 1e3 * float(np.nanmedian(group.search)),
            }
        )
    return pd.DataFrame(rows)


def smoothers(found: Sequence[Group]) -> pd.DataFrame:
    """Return mean squared errors of separable least squares by smoother."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in found:
        if group.part == "smoothed":
            for kind in KINDS:
                place = (*group.setting.values(), kind)
                row = rows.setdefault(
                    place, group.setting | {"of": kind, "runs": len(group.losses)}
                )
                row[group.method] = group.mse(kind)
    return pd.DataFrame(list(rows.values()))


def seconds(found: Sequence[Group]) -> pd.DataFrame:
    """Return the processor time of a fit with smoothing in milliseconds, and of the R package."""
    rows = []
    for group in found:
        if group.part != "matched":
            continue
        theirs: float | None = None
        if group.size == "small" and group.model in paper.SECONDS:
            separable, least, _ = paper.SECONDS[group.model]
            theirs = 1e3 * (separable if group.method == "sls" else least)
        both = 1e3 * (group.smoothing + group.search)
        rows.append(
            group.setting
            | {
                "method": group.method,
                "smoothing, ms": 1e3 * float(np.nanmedian(group.smoothing)),
                "search, ms": 1e3 * float(np.nanmedian(group.search)),
                "median ms": float(np.nanmedian(both)),
                "most ms": float(np.nanmax(both)),
                "R package, ms": np.nan if theirs is None else theirs,
            }
        )
    table = pd.DataFrame(rows)
    if len(table):
        table["times faster"] = table["R package, ms"] / table["median ms"]
    return table


def polished(records: Sequence[Record]) -> pd.DataFrame:
    """Return the shares of single starts that reach the optimum on the true trajectories.

    ``reached``: as low as a search from the true values, or lower. ``by default``: the same with
    the method's default starts. ``lower``: more than a millionth below.
    """
    runs: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        task = record.task
        if record.result is not None and task["part"] == "polished":
            times = plan.MODELS[task["model"]].samples[task["size"]]
            place = (task["model"], times, task["noise"])
            runs.setdefault(place, []).extend(record.result["runs"])
    rows = []
    for (model, times, noise), own in runs.items():
        default = [r["reached"] or as_low(r.get("default"), r["floor"]) for r in own]
        lower = [
            None not in (r["objective"], r["floor"]) and r["objective"] < r["floor"] * (1 - 1e-6)
            for r in own
        ]
        rows.append(
            {
                "model": model,
                "times": times,
                "noise": noise,
                "runs": len(own),
                "reached": sum(r["reached"] for r in own),
                "by default": sum(default),
                "lower": sum(lower),
                "median ms": 1e3 * float(np.median([r["seconds"] for r in own])),
                "most ms": 1e3 * float(max(r["seconds"] for r in own)),
            }
        )
    return pd.DataFrame(rows)


def targets(found: Sequence[Group], polish: pd.DataFrame) -> pd.DataFrame:
    """Return the targets, and how often they hold."""
    rows = []
    for part, whose in (("matched", "ours"), ("published", "their optimiser")):
        above = [0, 0]
        near = [0, 0]
        for prior, nls, sls in _pairs(found, part):
            names = [n for n, level in paper.NOISE.items() if level == nls.noise]
            for kind in KINDS if names else ():
                theirs = paper.ratio(kind, nls.size, prior, names[0], nls.model)
                ours = nls.mse(kind) / sls.mse(kind)
                if prior == "low" and theirs > LOW:
                    above[0] += ours > ABOVE
                    above[1] += 1
                elif theirs <= LOW:
                    near[0] += ours <= LOW
                    near[1] += 1
        rows += [
            (f"low prior, paper's ratio above {LOW}: above one, {whose}", *above),
            (f"paper's ratio at most {LOW}: at most {LOW}, {whose}", *near),
        ]
    for model in dict.fromkeys(polish["model"]) if len(polish) else ():
        own = polish[polish["model"] == model]
        total = int(own["runs"].sum())
        for name, how in (("reached", "from one start"), ("by default", "by default")):
            rows.append((f"{model}: optimum reached {how}", int(own[name].sum()), total))
    table = smoothers(found)
    known = ("model", "times", "noise", "of", "runs", "default")
    for name in [c for c in table.columns if c not in known]:
        better = table["default"] <= SAME_ERROR * table[name]
        rows.append(
            (f"MSE with the default at most that with {name}", int(better.sum()), len(table))
        )
    columns = ["target", "holds", "of"]
    return pd.DataFrame([r for r in rows if r[2]], columns=columns)
