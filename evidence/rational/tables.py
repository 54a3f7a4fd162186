"""The tables of the campaign `rational`: Table 1 and appendix B of the paper, and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from evidence.rational import paper as paper
from evidence.rational.plan import INTERVAL, MODELS, given
from evidence.running.campaign import Record
from evidence.running.panels import legend
from odefit.reporting.figures.style import DATA, INK, MODEL, dress, new_figure, plain_style

# Targets of the RMSRE in per cent before and after polishing, for data without noise
BEFORE, AFTER = 1e-4, 1e-6

# Columns of the paper that are shown, the most comparable first
ORDER = (paper.COLUMNS[-1], *paper.SEARCHES)

# Those of Table 1
RANGES = ("AMIGO2 [0, 1]", "AMIGO2 [0, 2]", "AMIGO2 [0, 3]", "SciML [0, 1]", "IQM [0, 1]")
SHOWN = (paper.COLUMNS[-1], *RANGES)

# Our errors, by their names in Table 1
OURS = {"odefit": "after", "before polishing": "before", "floor": "floor"}

# Multiple of the floor's objective up to which an estimate fits as well as possible; its remaining
# error comes from the rounding of the data
AT_FLOOR = 2.0

# Difference of sums of squares, in variances of the noise, up to which the data cannot distinguish
# two estimates (the 95 % point of chi-squared with one degree of freedom)
INDISTINGUISHABLE = 3.84

# Largest relative error of any identifiable quantity up to which an estimate is useful
USEFUL = 0.1

# Words of the refusal of true values whose trajectory ends early
NO_DATA = "the true trajectory has no data"

# Words of the method's warning that noise hides the derivatives
WARNING = "derivatives of the data"
SETTING = ("noise", "points", "start", "end")

# The numbers in the result of a run
MEASURED = (
    *("before", "after", "floor", "worst_after", "worst_floor", "spread"),
    *("objective", "objective_floor", "measurements", "seconds"),
    *("promised", "found", "real", "lost", "candidates"),
)


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return Table 1 and appendix B for data without noise, and the shares of useful noisy fits."""
    runs = frame(records)
    exact, noisy = runs[runs["noise"] == 0], runs[runs["noise"] > 0]
    found: dict[str, pd.DataFrame] = {}
    if len(exact):
        found["errors"] = table_1(exact)
        found["sets"] = appendix_b(exact)
        found["targets"] = targets(exact)
    if len(noisy):
        found["noise"] = usefulness(noisy, [*SETTING])
        found["noise-models"] = usefulness(noisy, ["model", *SETTING])
    if len(exact) or not len(noisy):
        found["models"] = models(exact, preparations(records))
    return {**found, "runs": runs}


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row for each run; errors are the paper's, in per cent, ``worst`` ones relative."""
    rows = []
    for record in records:
        task, r = record.task, record.result or {}
        if task["what"] != "run":
            continue
        rows.append(
            {"model": _short(task["problem"]), "set": task["set"]}
            | {name: task[name] for name in SETTING}
            | {"data": "the paper's" if given(task) else "simulated"}
            | {name: r.get(name) for name in MEASURED}
            | {
                # A known initial value that is held forbids a count, but not what was found.
                "complete": bool(r.get("promised")) and (r.get("found") or 0) >= r["promised"],
                "status": r.get("status", record.outcome),
                "message": str(r.get("message", record.reason)),
            }
        )
    columns = ["model", "set", *SETTING, "data", *MEASURED, "complete", "status", "message"]
    table = pd.DataFrame(rows, columns=columns)
    for name in ("noise", *MEASURED):
        table[name] = pd.to_numeric(table[name])
    table["complete"] = table["complete"].astype(bool)
    return table


def preparations(records: Sequence[Record]) -> Mapping[str, Mapping[str, Any]]:
    """Return the measurements on the preparation of each model."""
    return {
        _short(r.task["problem"]): r.result
        for r in records
        if r.task["what"] == "preparation" and r.result is not None
    }


def table_1(runs: pd.DataFrame) -> pd.DataFrame:
    """Return medians and means of the RMSRE by model, ours before the paper's, in its order.

    Those of the paper are in one column for each program and range, median before mean. Runs
    without an estimate have no error; ``runs`` counts the runs with an estimate.
    """
    rows = []
    for model in MODELS:
        part = runs[runs["model"] == _short(model)]
        if not len(part):
            continue
        row: dict[str, Any] = {"model": _short(model), "runs": int(part["after"].notna().sum())}
        for name, column in OURS.items():
            row |= {f"{name}: {kind}": part[column].agg(kind) for kind in ("median", "mean")}
        medians, means = paper.medians(model), paper.means(model)
        row |= {name: f"{medians[name]:.1f} / {means[name]:.1f}" for name in SHOWN}
        rows.append(row)
    return _shown(pd.DataFrame(rows))


def appendix_b(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the RMSRE of every data set beside the paper's; its "Random Data 1" is our set 0."""
    rows = []
    for model in MODELS:
        part = runs[runs["model"] == _short(model)].sort_values("set", kind="stable")
        for run in part.to_dict("records"):
            row = {"model": run["model"], "set": run["set"], "odefit": run["after"]}
            row |= {"before polishing": run["before"], "floor": run["floor"]}
            theirs = dict(zip(paper.COLUMNS, paper.ERRORS[model][run["set"]], strict=True))
            rows.append(row | {name: theirs[name] for name in ORDER})
    return pd.DataFrame(rows)


def targets(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of runs that reach the target accuracy, and the limit by rounding.

    The paper's data have the error of their solver (up to 1e-13); ours are rounded.
    """
    rows = []
    by = [*SETTING, "data"]
    for group, part in runs.groupby(by, sort=False):
        reached = part["after"] <= AFTER
        floor = part["objective"] <= AT_FLOOR * part["objective_floor"]
        rows.append(
            dict(zip(by, group, strict=True))
            | {
                "runs": len(part),
                f"before <= {BEFORE:g} %": int((part["before"] <= BEFORE).sum()),
                f"after <= {AFTER:g} %": int(reached.sum()),
                f"floor <= {AFTER:g} %": int((part["floor"] <= AFTER).sum()),
                "missed, at the floor": int((~reached & floor).sum()),
                "missed otherwise": int((~reached & ~floor).sum()),
                "all solutions found": int(part["complete"].sum()),
                "median seconds": part["seconds"].dropna().median(),
                "most seconds": part["seconds"].max(),
            }
        )
    return _shown(pd.DataFrame(rows))


def usefulness(runs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the shares of useful noisy runs, beside those that the data permit.

    ``useful``: every identifiable quantity is within 10 %. ``useful optimum``: the same of the
    least squares optimum next to the truth. ``spread <= 10 %``: no quantity has a larger Cramér-Rao
    bound; useful runs beyond these are chance. ``no data``: the true trajectory grows without
    bound, so that there is no run. ``the others warned``: the share of the other runs
    with a warning of inaccurate derivatives. ``as good a fit``: the estimate fits better than that
    optimum, or the data cannot distinguish them.
    """
    rows = []
    for group, every in runs.groupby(by, sort=False):
        absent = every["message"].str.contains(NO_DATA)
        part = every[~absent]
        useful = part["worst_after"] <= USEFUL
        above = (part["objective"] / part["objective_floor"] - 1) * part["measurements"]
        rows.append(
            dict(zip(by, group, strict=True))
            | {
                "no data": int(absent.sum()),
                "runs": len(part),
                "useful": useful.mean(),
                "useful optimum": (part["worst_floor"] <= USEFUL).mean(),
                "spread <= 10 %": (part["spread"] <= USEFUL).mean(),
                "the others warned": part["message"][~useful].str.contains(WARNING).mean(),
                "as good a fit": (above <= INDISTINGUISHABLE).mean(),
                "all solutions found": part["complete"].mean(),
                "median of worst": part["worst_after"].dropna().median(),
                "median of worst, optimum": part["worst_floor"].dropna().median(),
                "median seconds": part["seconds"].dropna().median(),
                "most seconds": part["seconds"].max(),
            }
        )
    table = pd.DataFrame(rows)
    if not table["no data"].any():
        table = table.drop(columns="no data")
    return _shown(table)


def models(runs: pd.DataFrame, prepared: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return preparation, solutions expected and found, and seconds for a data set, by model."""
    rows = []
    for name in map(_short, MODELS):
        part, once = runs[runs["model"] == name], prepared.get(name, {})
        if len(part) or once:
            promised = once.get("promised", part["promised"].max() if len(part) else None)
            rows.append(
                {
                    "model": name,
                    "preparation, seconds": once.get("seconds"),
                    "paths": once.get("paths"),
                    "solutions": promised,
                    "runs": len(part),
                    "all found": int(part["complete"].sum()),
                    "fewest real": part["real"].min(),
                    "most real": part["real"].max(),
                    "median seconds": part["seconds"].dropna().median(),
                    "most seconds": part["seconds"].max(),
                }
            )
    table = pd.DataFrame(rows)
    for column in table.columns[1:]:
        table[column] = pd.to_numeric(table[column])
    return _shown(table)


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without settings that all rows share, with two digits of what is no count."""
    shared = [name for name in SETTING if name in table and table[name].nunique() == 1]
    table = table.drop(columns=shared)
    for name in table.select_dtypes("float"):
        table[name] = table[name].map(lambda x: x if x % 1 == 0 else float(f"{x:.2g}"))
    return table


def _short(model: str) -> str:
    return model.removeprefix("rational-")


LEAST = 1e-14  # smallest drawn error in per cent; smaller errors are drawn here

# The columns that are drawn, with labels and markers
KINDS = (
    ("before", "before polishing", "o"),
    ("after", "after polishing", "s"),
    ("floor", "floor: rounding and noise of the data", "_"),
)


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    """Return the errors by model, a figure for each level of noise and number of points."""
    runs = frame(records)
    found = {}
    for (noise, points, start, end), part in runs.groupby([*SETTING], sort=False):
        if part["after"].notna().any():
            where = "" if (start, end) == INTERVAL else f"-from-{start:g}-to-{end:g}"
            title = f"noise {noise:g}, {points} points in [{start:g}, {end:g}]"
            found[f"figure-noise-{noise:g}-{points}-points{where}"] = _figure(part, title)
    return found


def _figure(runs: pd.DataFrame, title: str) -> Figure:
    names = list(dict.fromkeys(runs["model"]))
    with plain_style():
        figure = new_figure(7.4, 3.6)
        axes = figure.add_subplot()
        for (column, label, marker), colour in zip(KINDS, (DATA, MODEL, INK), strict=True):
            known = runs[runs[column].notna()]
            # draw data sets side by side, so that ten points of a model stay visible
            width = 0.7 / max(int(runs["set"].max()), 1)
            places = known["model"].map(names.index).astype(float) - 0.35 + width * known["set"]
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
        legend(figure, 3)
    return figure
