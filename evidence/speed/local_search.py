"""The local search beside SciPy's `trf` and `dogbox` and beside fides, from the same random starts.

All searches have the same function: residuals with their Jacobian in the search's coordinates, with
scales, offsets and standard deviations eliminated. The table counts the evaluations until the cost
is nearly the lowest that any search reaches from that start. fides (pip install fides) has the
Gauss-Newton Hessian and its own options; SciPy's methods have `x_scale="jac"`, and no row where the
cost is not a sum of squares.
"""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

import odefit
from evidence.endings.lateness import model_named
from evidence.peers.amici import problem_folders
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import problem_named
from evidence.running.output import listed
from odefit.common.arrays import Array
from odefit.methods.single_shooting import LocalCost, SingleShooting, descend
from odefit.methods.starts import sample
from odefit.simulation import ForwardMap

NEARLY = 0.05  # above the lowest cost, in units of the log-likelihood
SHARE = 1e-3  # of the lowest cost, and of the whole fall of the cost, if that is less
ROUNDING = 1e-9  # of the whole fall of the cost, where exact data leave nothing
METHODS = ("odefit", "fides", "trf", "dogbox")


class _Ended(Exception):  # noqa: N818 - no error
    """All evaluations have been used."""


class Traced:
    """A cost that records the value of each evaluation, at most `limit` values."""

    def __init__(self, cost: LocalCost, limit: int) -> None:
        self.cost, self.limit = cost, limit
        self.values: list[float] = []

    def __call__(self, coordinates: Array) -> Any:
        if len(self.values) >= self.limit:
            raise _Ended
        found = self.cost(np.asarray(coordinates, dtype=float))
        self.values.append(math.inf if found is None else found.cost)
        return found


def by_fides(cost: Traced, start: Array, lower: Array, upper: Array) -> None:
    """Search by fides with the Gauss-Newton Hessian."""
    import fides

    def function(z: Array) -> tuple[float, Array, Array]:
        found = cost(z)
        if found is None:
            return math.inf, np.full(len(z), math.nan), np.full((len(z), len(z)), math.nan)
        return (
            found.cost,
            found.jacobian.T @ found.residuals,
            found.jacobian.T @ found.jacobian,
        )

    options = {
        fides.Options.MAXITER: cost.limit,
        fides.Options.FATOL: 1e-10,
        fides.Options.FRTOL: 1e-9,
        fides.Options.GATOL: 1e-10,
    }
    search = fides.Optimizer(
        function, ub=upper, lb=lower, verbose=logging.CRITICAL, options=options
    )
    search.minimize(start)


def by_scipy(
    method: Literal["trf", "dogbox"], cost: Traced, start: Array, lower: Array, upper: Array
) -> None:
    """Search by SciPy's least_squares."""
    from scipy.optimize import least_squares

    first = cost(start)
    if first is None:
        return
    known = {start.tobytes(): first}

    def at(z: Array) -> Any:
        if z.tobytes() not in known:
            found = cost(z)
            known.clear()
            known[z.tobytes()] = found
        return known[z.tobytes()]

    def residuals(z: Array) -> Array:
        found = at(z)
        return np.full(len(first.residuals), 1e100) if found is None else found.residuals

    def jacobian(z: Array) -> Array:
        return np.asarray(at(z).jacobian)

    least_squares(
        residuals, start, jacobian, (lower, upper), method, 1e-10, 1e-10, 1e-10,
        x_scale="jac", max_nfev=cost.limit,
    )  # fmt: skip


def traces(problem: odefit.Problem, start: Array, limit: int) -> dict[str, list[float] | None]:
    """Return the costs of the evaluations of each method; None where it cannot be used."""
    forward = ForwardMap(problem)
    found: dict[str, list[float] | None] = {}
    for method in METHODS:
        cost = Traced(LocalCost.of(forward, start), limit)
        z, lower, upper = cost.cost.start, cost.cost.lower, cost.cost.upper
        try:
            if method == "odefit":
                search = SingleShooting(
                    evaluations=limit, patience=limit, tolerance=1e-9, step=1e-9
                )
                descend(search, cost.cost, lambda: False, cost)
            elif method == "fides":
                by_fides(cost, z, lower, upper)
            elif forward.likelihood:
                found[method] = None
                continue
            else:
                by_scipy("trf" if method == "trf" else "dogbox", cost, z, lower, upper)
        except _Ended:
            pass
        except ImportError:
            found[method] = None
            continue
        except (ArithmeticError, ValueError, RuntimeError):
            pass  # the costs so far count
        found[method] = cost.values
    return found


def needed(values: Sequence[float], target: float) -> float:
    """Return the number of evaluations until a cost is at most the target; infinity if none is."""
    return next((i + 1.0 for i, value in enumerate(values) if value <= target), math.inf)


def counts(found: Mapping[str, list[float] | None]) -> dict[str, float] | None:
    """Return the evaluations that each method needs; None if no method has a finite cost."""
    lowest = min(min(values) for values in found.values() if values)
    if not math.isfinite(lowest):
        return None
    first = next(values[0] for values in found.values() if values)
    nearly = min(SHARE * abs(lowest), NEARLY) if lowest > 0 else NEARLY
    if math.isfinite(first):
        fall = first - lowest
        nearly = max(min(nearly, SHARE * fall), ROUNDING * fall)
    return {m: needed(v, lowest + nearly) for m, v in found.items() if v is not None}


OPTIONS = (
    Option("problems", (), "names of library problems; all of them without names"),
    Option("sizes", (10, 30, 100), "states of cascades, e.g. 10,100"),
    Option("folder", "", "folder with a folder for each PEtab problem, as the collection has"),
    Option("models", (), "names of PEtab problems, e.g. Boehm_JProteomeRes2014"),
    Option("starts", 10, "random starts of each problem", least=1),
    Option("evaluations", 200, "most evaluations of a search", least=2),
)


def tasks(
    problems: Sequence[str],
    sizes: Sequence[int],
    folder: str,
    models: tuple[str, ...],
    starts: int,
    evaluations: int,
) -> list[Task]:
    names = [
        *(problems or odefit.library.names()),
        *(f"cascade {size}" for size in sizes),
        *(problem_folders(folder, models) if folder else []),
    ]
    return tasks_of("problem", names, folder=folder, starts=starts, evaluations=evaluations)


def run(task: Task) -> Mapping[str, Any]:
    """Search from all starts of a problem."""
    name = task["problem"]
    if name in odefit.library.names():
        problem = problem_named(name, guessed=False)
    else:
        problem = model_named(name, task["folder"])
    points = sample(problem, 0, task["starts"], 7)
    rows = [counts(traces(problem, point, task["evaluations"])) for point in points]
    return {
        "unknowns": len(problem.unknowns),
        "logarithmic": all(u.parameter.scale == "log10" for u in problem.unknowns),
        "counts": [
            {m: c if math.isfinite(c) else None for m, c in row.items()} for row in rows if row
        ],
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the table of problems, and that of all starts."""
    rows, notes = [], []
    starts: dict[str, list[dict[str, float]]] = {}
    for record in records:
        if record.result is None:
            notes.append(f"{record.task['problem']}: {record.reason}")
            continue
        found = [
            {m: math.inf if c is None else float(c) for m, c in row.items()}
            for row in record.result["counts"]
        ]
        group = "logarithms" if record.result["logarithmic"] else "other scales"
        starts.setdefault(group, []).extend(found)
        name = record.task["problem"]
        rows.append([name, str(record.result["unknowns"]), *(_cell(found, m) for m in METHODS)])
    groups = [[group, *_compared(found)] for group, found in starts.items()]
    head = ("problem", "unknowns", *METHODS)
    heads = ("scale of the unknowns", "starts", "no more than the best other", "ratio to fides")
    return {
        "local-search": listed(head, rows, *notes),
        "local-search-all": listed((*heads, "fides: lowest", "odefit: lowest"), groups),
    }


def _cell(found: Sequence[Mapping[str, float]], method: str) -> str:
    """Return the number of starts that reach the lowest cost, and their median evaluations."""
    counted = [row[method] for row in found if method in row]
    reached = [count for count in counted if math.isfinite(count)]
    if not counted:
        return "–"
    if not reached:
        return f"0 of {len(counted)}"
    return f"{len(reached)} of {len(counted)}: {statistics.median(reached):.0f}"


def _compared(found: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the cells of the second table on some starts."""
    best = [
        (row["odefit"], min(c for m, c in row.items() if m != "odefit"))
        for row in found
        if len(row) > 1
    ]
    decided = [(a, b) for a, b in best if math.isfinite(a) or math.isfinite(b)]
    both = [
        row["odefit"] / row["fides"]
        for row in found
        if math.isfinite(row["odefit"]) and math.isfinite(row.get("fides", math.inf))
    ]
    ratio = f"{statistics.geometric_mean(both):.2f}" if both else "–"
    ends = [
        str(sum(math.isfinite(row.get(method, math.inf)) for row in found))
        for method in ("fides", "odefit")
    ]
    few = sum(a <= b for a, b in decided)
    return [str(len(found)), f"{few} of {len(decided)}", ratio, *ends]
