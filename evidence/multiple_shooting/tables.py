"""The tables of the campaign `multiple-shooting`: convergence, and quality of the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evidence.multiple_shooting.plan import EXAMPLES
from evidence.running.campaign import Record

if TYPE_CHECKING:
    import pandas as pd

# What is the same in all fits of a row; 0 nodes stand for as many as the method chooses
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
    import pandas as pd

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
    """Return how many fits converged, how many of them to the optimum, and in how many steps.

    Steps are those of fits that converged; evaluations of single shooting.
    """
    import pandas as pd

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
    its own standard errors, so that without bias it is a standard normal number. ``sd``: of the
    estimates within batches; ``standard error``: root mean square of those reported; ``ratio``:
    of the two, known to 1 / sqrt(2 fits).
    """
    import pandas as pd

    rows = []
    for group, part in estimates.groupby([*SETTING, "unknown"], sort=False):
        rows.append(dict(zip([*SETTING, "unknown"], group, strict=True)) | _quality(part))
    return pd.DataFrame(rows)


def _quality(part: pd.DataFrame) -> dict[str, Any]:
    import numpy as np

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
    import pandas as pd

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
    """Return how often Python warnings occurred, and in which setting."""
    each = fits.explode("warnings").dropna(subset="warnings")
    columns = ["example", *SETTING, "warnings"]
    return each.groupby(columns, sort=False).size().rename("fits").reset_index()
