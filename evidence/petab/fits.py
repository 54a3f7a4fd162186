"""Published PEtab problems fitted from random starts, beside pyPESTO with AMICI and fides.

Nominal values are removed; both have the same bounds and time limit on one core. The figure is -2
log L plus priors' terms, less that at the nominal values; if it is negative or small, the fit
reaches the published answer. pyPESTO draws starts in the scaled parameters within the bounds and
minimises with fides, one start after the other until the limit; the compilation of its model is not
counted. `folder` and `compiled` are those of `collection.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.peers.amici import FITS, by_amici, problem_folders
from evidence.running.campaign import Option, Task, tasks_of
from odefit import Failure, ForwardMap
from odefit.formats.petab import read_petab

REACHED = 0.1  # difference of -2 log L up to which a fit reaches the published answer


def own(path: Path, seed: int, limit: float) -> dict[str, Any]:
    """Fit a problem with the default, without guesses."""
    began = time.perf_counter()
    found = read_petab(path)
    forward = ForwardMap(found.problem)
    nominal = forward.evaluate_cost(np.array([found.nominal[k] for k in found.problem.keys]))
    loaded = time.perf_counter() - began
    began = time.perf_counter()
    result = odefit.fit(found.problem, seed=seed, time_limit=limit, jobs=1)
    taken = time.perf_counter() - began
    row: dict[str, Any] = {
        "load": loaded,
        "seconds": taken,
        "status": result.status.value,
        "starts": len(result.starts),
    }
    if isinstance(nominal, Failure) or not result.solutions:
        return row
    values = {**result.best.initial, **result.best.parameters}
    vector = np.array([values[key] for key in found.problem.keys])
    end = forward.evaluate_cost(vector)
    if not isinstance(end, Failure):
        row["gap"] = 2.0 * (end.cost - nominal.cost)
    return row


def cells(row: dict[str, Any]) -> list[str]:
    """Return gap, seconds and starts for the table."""
    gap = row.get("gap")
    found = "–" if gap is None else f"{gap:+.3g}" if abs(gap) > REACHED else f"{gap:+.1e}"
    seconds = row.get("seconds")
    return [found, "–" if seconds is None else f"{seconds:.0f}", str(row.get("starts", "–"))]


HEAD = (
    *("problem", "seed", "status", "gap", "s", "starts"),
    *("pyPESTO: gap", "pyPESTO: s", "pyPESTO: starts"),
)
OPTIONS = (
    Option("folder", "", "folder with a folder for each problem, as the collection has"),
    Option("models", (), "names of problems, e.g. Boehm_JProteomeRes2014"),
    Option("seeds", (1,), "seeds, e.g. 1,2"),
    Option("limit", 120.0, "seconds of a fit", above=0),
    Option("peer", "", "a Python that has pyPESTO, AMICI and fides"),
    Option("compiled", "amici_models", "folder of AMICI's compiled models"),
)


def tasks(folder: str, models: tuple[str, ...], seeds: Sequence[int], **options: Any) -> list[Task]:
    names = problem_folders(folder, models) if folder else []
    return [
        task
        for name in names
        for task in tasks_of("seed", seeds, model=name, folder=folder, **options)
    ]


def run(task: Task) -> Mapping[str, Any]:
    name, folder = task["model"], Path(task["folder"]) / task["model"]
    mine = own(folder / f"{name}.yaml", task["seed"], task["limit"])
    other: dict[str, Any] = {}
    if task["peer"]:
        given, limit = [str(task["seed"]), str(task["limit"])], 3 * task["limit"] + 600
        other = by_amici(FITS, task["peer"], folder, task["compiled"], given, limit)
    notes = [f"{name}: peer: {other['error']}"] if "error" in other else []
    row = [name, str(task["seed"]), mine["status"], *cells(mine), *cells(other)]
    return {"rows": [row], "notes": notes}
