"""Subjects with constants of their own and a shared one: is a wrong optimum called "converged"?

Oral doses of several subjects, each with its clearance and volume, and one rate of absorption for
all. Where absorption and elimination are exchanged in some subjects, the curves still fit a part of
them, and all random starts may end there. The lowest sum of squares comes from SciPy and the closed
form: at each of many rates of absorption every subject has two unknowns and is fitted alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task
from odefit.common.arrays import Array

TIMES = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 24.0])
DOSE, RATE, NOISE = 100.0, 1.3, 0.05
RATES = np.geomspace(0.01, 100.0, 121)  # rates of absorption at which the reference fits
BOUNDS = np.log(np.array([[0.01, 0.1], [100.0, 1000.0]]))  # of clearance and volume
BEGINNINGS = ((2.0, 20.0), (2.0, 1.0), (0.5, 50.0))  # clearance and volume
AFRESH = 4  # rates from one search of each subject from all beginnings to the next
ALIKE = 1e-4  # relative difference of sums of squares that is ignored

OPTIONS = (
    Option("counts", (2, 4, 6, 10), "numbers of subjects"),
    Option("sets", 20, "data sets of each number", least=1),
)


def tasks(counts: Sequence[int], sets: int) -> list[Task]:
    """Return the tasks, one for each data set."""
    return [
        {"key": f"{count} subjects {number}", "count": count, "number": number}
        for count in counts
        for number in range(sets)
    ]


def concentration(absorption: float, clearance: float, volume: float) -> Array:
    """Return the concentrations after an oral dose at the times of measurement."""
    k = clearance / volume
    difference = absorption - k
    if abs(difference) < 1e-9 * absorption:
        return np.asarray(DOSE / volume * absorption * TIMES * np.exp(-k * TIMES))
    early = np.exp(-k * TIMES) - np.exp(-absorption * TIMES)
    return np.asarray(DOSE / volume * absorption / difference * early)


def data_set(count: int, number: int) -> list[Array]:
    """Return the measured concentrations of some subjects."""
    random = np.random.default_rng([count, number])
    measured = []
    for _ in range(count):
        clearance, volume = np.exp(random.normal(np.log([2.0, 20.0]), 0.4))
        noise = np.exp(NOISE * random.normal(size=len(TIMES)))
        measured.append(concentration(RATE, clearance, volume) * noise)
    return measured


def problem_of(measured: Sequence[Array]) -> odefit.Problem:
    """Return the problem as a user would write it."""
    subjects = [
        odefit.Experiment(f"subject {i}", {"t": TIMES, "c": values}, t0=0.0)
        for i, values in enumerate(measured, 1)
    ]

    def own(low: float, high: float) -> dict[str, Any]:
        return {"lower": low, "upper": high, "scale": "log10", "per_experiment": True}

    model = odefit.Model(ode={"G": "-ka*G", "A": "ka*G - CL/V*A"}, observables={"c": "A/V"})
    unknowns = {
        "ka": {"lower": 0.01, "upper": 100.0, "scale": "log10"},
        "CL": own(0.01, 100.0),
        "V": own(0.1, 1000.0),
    }
    return odefit.Problem(model, None, unknowns, {"G": DOSE, "A": 0.0}, experiments=subjects)


def lowest(measured: Sequence[Array]) -> float:
    """Return the lowest sum of squares, by SciPy and the closed form."""
    from scipy.optimize import minimize_scalar

    last: list[list[Array]] = [[] for _ in measured]

    def total(logarithm: float, beginnings: Sequence[Sequence[float]] = ()) -> float:
        absorption = float(np.exp(logarithm))
        return sum(
            _alone(v, absorption, known, beginnings)
            for v, known in zip(measured, last, strict=True)
        )

    grid = np.log(RATES)
    every = [total(rate, () if k % AFRESH else BEGINNINGS) for k, rate in enumerate(grid)]
    best = min(every)
    for k in np.argsort(every)[:4]:
        total(float(grid[k]), BEGINNINGS)
        around = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
        best = min(best, float(minimize_scalar(total, bounds=around, method="bounded").fun))
    return float(best)


def _alone(
    values: Array, absorption: float, known: list[Array], beginnings: Sequence[Sequence[float]]
) -> float:
    """Return one subject's lowest sum of squares at a rate; `known` has its last estimates."""
    from scipy.optimize import least_squares

    def misses(z: Array) -> Array:
        return concentration(absorption, *np.exp(z)) - values

    starts = np.clip([*known, *(np.log(b) for b in beginnings)], *BOUNDS)
    ends = [least_squares(misses, s, bounds=tuple(BOUNDS), xtol=1e-10, ftol=1e-10) for s in starts]
    best = min(ends, key=lambda end: end.cost)
    known[:] = [best.x]
    return float(2.0 * best.cost)


def run(task: Task) -> Mapping[str, Any]:
    """Fit a data set, and compare the answer with the reference."""
    measured = data_set(task["count"], task["number"])
    problem = problem_of(measured)
    began = time.process_time()
    result = odefit.fit(problem, seed=task["number"], jobs=1)
    taken = time.process_time() - began
    return {
        "unknowns": len(problem.unknowns),
        "status": result.status.value,
        "objective": result.objective,
        "lowest": lowest(measured),
        "starts": len(result.starts),
        "seconds": taken,
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the verdicts by number of subjects."""
    rows = []
    for r in records:
        told = r.result or {}
        lowest_known = told.get("lowest", np.inf)
        worse = told.get("objective", np.inf) - lowest_known
        at_lowest = bool(worse <= ALIKE * lowest_known)
        converged = told.get("status") == "converged"
        rows.append(
            {
                "subjects": r.task["count"],
                "unknowns": told.get("unknowns"),
                "at the lowest": at_lowest,
                "false converged": converged and not at_lowest,
                "starts": told.get("starts"),
                "processor s": told.get("seconds"),
            }
        )
    if not rows:
        return {}
    grouped = pd.DataFrame(rows).groupby("subjects", sort=False)
    counted = grouped.agg(
        **{
            "unknowns": ("unknowns", "max"),
            "fits": ("unknowns", "size"),
            "at the lowest": ("at the lowest", "sum"),
            "false converged": ("false converged", "sum"),
            "median starts": ("starts", "median"),
            "median s": ("processor s", "median"),
            "most s": ("processor s", "max"),
        }
    )
    return {"subjects": counted.reset_index().round(2)}
