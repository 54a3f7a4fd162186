"""The campaign `small-samples`: the coverage of intervals and bands from few values.

Data come from SciPy and from closed forms. Each task fits some data sets of one of the problems in
`small_sample_problems`, profiles all unknowns whose truth is known, and records which intervals are
right. Bands are compared with the true curve, and with new measurements at the same times or, of
counts, in the four weeks after the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evidence.intervals.coverage import examined, tables_of
from evidence.intervals.small_sample_problems import SAMPLES, SmallSample
from evidence.running.batches import batch_options, batches, data_sets, standard_error
from evidence.running.campaign import Record, Task
from odefit import Result, fit

DATA_SETS = 400  # number of data sets of each problem

OPTIONS = batch_options(DATA_SETS, tuple(SAMPLES), "fold,methods")

tasks = batches


def run(task: Task) -> Mapping[str, Any]:
    """Fit and profile each data set of a batch."""
    sample = SAMPLES[task["problem"]]
    keys = tuple(sample.truth)
    found = []
    for number in range(task["first"], task["last"] + 1):
        result = fit(sample.data_set(number), seed=number, jobs=1)
        bands = in_bands(result, sample, number)
        found.append({**examined(result, number, sample.truth, keys), "bands": bands})
    return {"data sets": found}


def in_bands(result: Result, sample: SmallSample, number: int) -> dict[str, int]:
    """Return the numbers of values, of bands there, and of true and new values inside these."""
    exact, new = sample.predicted(number)
    table = result.predict(exact["t"])
    counts = dict.fromkeys(("values", "shown", "curve inside", "new inside"), 0)
    for name in exact:
        if name == "t":
            continue
        rows = table[table["name"] == name]
        low, high = rows["ci_low"].to_numpy(), rows["ci_high"].to_numpy()
        least, most = rows["pi_low"].to_numpy(), rows["pi_high"].to_numpy()
        shown = np.isfinite(low + high + least + most)
        counts["values"] += len(rows)
        counts["shown"] += int(shown.sum())
        counts["curve inside"] += int((shown & (low <= exact[name]) & (exact[name] <= high)).sum())
        counts["new inside"] += int((shown & (least <= new[name]) & (new[name] <= most)).sum())
    return counts


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows = [{"problem": name, **one["bands"]} for name, one in data_sets(records)]
    columns = ["problem", "values", "shown", "curve inside", "new inside"]
    found = []
    for name, part in pd.DataFrame(rows, columns=columns).groupby("problem", sort=False):
        seen = part[part["shown"] > 0]
        curve, new = (seen[f"{what} inside"] / seen["shown"] for what in ("curve", "new"))
        total = max(int(seen["shown"].sum()), 1)
        found.append(
            {
                "problem": name,
                "data sets": len(part),
                "% with a band": 100 * seen["shown"].sum() / part["values"].sum(),
                "% of true curves inside": 100 * seen["curve inside"].sum() / total,
                "error of curves": 100 * standard_error(curve),
                "% of new measurements inside": 100 * seen["new inside"].sum() / total,
                "error of measurements": 100 * standard_error(new),
            }
        )
    every = tables_of(records)
    if not found:
        return every
    bands = pd.DataFrame(found).round(1)
    return {
        "coverage": _by_problem(every["coverage"]),
        "bands": bands,
        "unknowns": every["coverage"],
        "fits": every["fits"],
    }


def _by_problem(coverage: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of each problem in per cent: over all unknowns, or the least and most."""
    rows = []
    for name, part in coverage.groupby("problem", sort=False):
        alone, all_ = part[part["unknown"] != "all"], part[part["unknown"] == "all"].iloc[0]
        rows.append(
            {
                "problem": name,
                "unknowns": len(alone),
                "data sets": int(alone["intervals"].iloc[0]),
                **{
                    f"% {what}": f"{100 * alone[what].min():.1f} to {100 * alone[what].max():.1f}"
                    for what in ("profile covers", "linear covers")
                },
                **{
                    f"% {what}": round(100 * float(all_[what]), 1)
                    for what in ("linear shown", "without remark", "covers without remark")
                },
                "% goodness called bad": round(100 * float(all_["goodness called bad"]), 1),
            }
        )
    return pd.DataFrame(rows)
