"""CPU time of default fits for which users waited longest, beside another copy of odefit.

Each fit of `waiting_problems` is a separate process: it reads the file and calls `odefit.fit` with
one job, or with the problem's number of starts. Seconds are the processor's, of the call alone.
With `against`, the src folder of another copy, that copy takes turns with this one. Times are
medians of the counted rounds; a first round, which fills caches of compiled models and kernels, is
left out unless a fit of it took more than a minute. An optimum is equal or better if its measure is
at most 1 + 1e-6 times that of the other copy. The measure is -2 log L with noise, and otherwise the
objective.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import ROOT, last_json, run_process
from evidence.running.output import listed
from evidence.speed.waiting_problems import PROBLEMS, written

# Fits a problem file with the odefit in a folder
FIT = """
import json, sys, time
source, file, starts = sys.argv[1:]
sys.path.insert(0, source)
import odefit
problem = odefit.load(file)
method = odefit.MultiStart(starts=int(starts)) if int(starts) else None
began = time.process_time()
result = odefit.fit(problem, method, jobs=1) if method else odefit.fit(problem, jobs=1)
seconds = time.process_time() - began
best = result.best
log_likelihood = getattr(best, "log_likelihood", None)
measure = best.objective if log_likelihood is None else -2.0 * log_likelihood
print(json.dumps({
    "seconds": seconds,
    "measure": measure,
    "unknowns": len(problem.unknowns),
    "values": problem.size,
    "starts": len(result.starts),
}))
"""

LONG = 60.0  # seconds of the longest fit in a round from which caches are negligible

HEAD = ("problem", "unknowns, values", "starts", "CPU time, s", "-2 log L or objective")
OTHER = ("its starts", "other copy, s", "its measure", "share of its time", "as good")
OPTIONS = (
    Option("problems", (), "problems by name"),
    Option("repeats", 1, "rounds that count", least=1),
    Option("against", "", "src folder of another copy of odefit"),
    Option("limit", 600.0, "seconds of a process", above=0),
)


def tasks(problems: Sequence[str], repeats: int, against: str, limit: float) -> list[Task]:
    if against and not (Path(against) / "odefit").is_dir():
        raise ValueError(f"against={against}: there is no odefit in this folder; name its src")
    chosen = [name for name in PROBLEMS if not problems or name in problems]
    return tasks_of("problem", chosen, repeats=repeats, against=against, limit=limit)


def fitted(source: Path, file: Path, starts: int, limit: float) -> dict[str, Any]:
    """Return the CPU seconds of a fit, the measure of its optimum and the size of the problem."""
    command = [sys.executable, "-c", FIT, str(source), str(file), str(starts)]
    finished = run_process(command, limit)
    if finished.status != 0:
        why = "time limit" if finished.status is None else finished.errors.splitlines()[-1]
        raise RuntimeError(f"{file}: {why}")
    return last_json(finished)


def run(task: Task) -> Mapping[str, Any]:
    os.environ.pop("PYTHONPATH", None)
    sources = [ROOT / "src", *([Path(task["against"]).resolve()] if task["against"] else [])]
    with tempfile.TemporaryDirectory() as name:
        file, starts = written(task["problem"], Path(name)), PROBLEMS[task["problem"]].starts

        def measured() -> list[dict[str, Any]]:
            return [fitted(source, file, starts, task["limit"]) for source in sources]

        first = measured()
        rounds = [first] if max(one["seconds"] for one in first) > LONG else []
        rounds += [measured() for _ in range(task["repeats"] - len(rounds))]
    copies = [[one[k] for one in rounds] for k in range(len(sources))]
    return {
        "copies": [
            {**found[0], "seconds": statistics.median(one["seconds"] for one in found)}
            for found in copies
        ]
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows, shares = [], []
    both = any(r.task["against"] for r in records)
    for record in records:
        if record.result is None:
            rows.append([record.task["problem"], "failed", *[""] * (8 if both else 3)])
            continue
        one, *others = record.result["copies"]
        size = f"{one['unknowns']}, {one['values']}"
        row = [record.task["problem"], size, str(one["starts"])]
        row += [f"{one['seconds']:.2f}", f"{one['measure']:.6g}"]
        for other in others:
            share = one["seconds"] / other["seconds"]
            shares.append(share)
            good = one["measure"] <= other["measure"] + 1e-6 * abs(other["measure"])
            row += [
                str(other["starts"]),
                f"{other['seconds']:.2f}",
                f"{other['measure']:.6g}",
                f"{share:.2f}",
            ]
            row.append("yes" if good else "no")
        rows.append(row)
    notes = []
    if shares:
        mean = float(np.exp(np.mean(np.log(shares))))
        notes.append(
            f"At most half the time: {sum(s <= 0.5 for s in shares)} of {len(shares)}; "
            f"{mean:.2f} of the other copy's time in the geometric mean."
        )
    return {"waiting": listed((*HEAD, *OTHER) if both else HEAD, rows, *notes)}
