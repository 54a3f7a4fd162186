"""The campaign `planned`: widths of intervals beside those that a design plans, and their coverage.

For six models with solutions in closed form a D-optimal design of twelve measurements is planned,
then carried out on simulated data sets. SciPy's least squares fits each on the closed form: no fit
uses code of odefit. The table shows the median widths of the intervals of 95 %, relative to the
planned widths, and the share of data sets whose interval holds the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from scipy.stats import norm

from evidence.running.campaign import Option, Record, Task
from odefit import Model, Problem, design
from odefit.common.arrays import Array

DATA_SETS = 200  # number of data sets of each model
MEASUREMENTS = 12
LEVEL = 0.95


@dataclass(frozen=True)
class Planned:
    """A model with its solution in closed form."""

    description: str
    ode: Mapping[str, str]
    measured: str
    initial: Mapping[str, str | float]
    truth: Mapping[str, float]
    sd: float
    last: float  # the time at which measurements end
    solution: Callable[..., Array]  # of the times and the unknowns


def _decay(t: Array, k: float, amount: float) -> Array:
    return np.asarray(amount * np.exp(-k * t))


def _box_lucas(t: Array, k1: float, k2: float) -> Array:
    return np.asarray(k1 / (k1 - k2) * (np.exp(-k2 * t) - np.exp(-k1 * t)))


def _logistic(t: Array, r: float, capacity: float, x0: float) -> Array:
    return np.asarray(capacity / (1 + (capacity / x0 - 1) * np.exp(-r * t)))


def _gompertz(t: Array, c: float, capacity: float, x0: float) -> Array:
    return np.asarray(capacity * (x0 / capacity) ** np.exp(-c * t))


def _oral(t: Array, ka: float, ke: float, volume: float) -> Array:
    return np.asarray(10 * ka / (volume * (ka - ke)) * (np.exp(-ke * t) - np.exp(-ka * t)))


def _relaxation(t: Array, k: float, level: float, x0: float) -> Array:
    return np.asarray(level + (x0 - level) * np.exp(-k * t))


MODELS = {
    "decay": Planned(
        "exponential decay",
        {"x": "-k*x"},
        "x",
        {"x": "A"},
        {"k": 0.25, "A": 2.0},
        0.1,
        20.0,
        _decay,
    ),
    "box-lucas": Planned(
        "A -> B -> C, B measured (Box and Lucas, 1959)",
        {"a": "-k1*a", "b": "k1*a - k2*b"},
        "b",
        {"a": 1.0, "b": 0.0},
        {"k1": 0.7, "k2": 0.2},
        0.02,
        20.0,
        _box_lucas,
    ),
    "logistic": Planned(
        "logistic growth",
        {"x": "r*x*(1 - x/K)"},
        "x",
        {"x": "x0"},
        {"r": 0.8, "K": 10.0, "x0": 0.5},
        0.3,
        15.0,
        _logistic,
    ),
    "gompertz": Planned(
        "growth after Gompertz",
        {"x": "c*log(K/x)*x"},
        "x",
        {"x": "x0"},
        {"c": 0.5, "K": 10.0, "x0": 0.5},
        0.3,
        15.0,
        _gompertz,
    ),
    "oral": Planned(
        "an oral dose in one compartment",
        {"g": "-ka*g", "c": "ka*g/V - ke*c"},
        "c",
        {"g": 10.0, "c": 0.0},
        {"ka": 1.2, "ke": 0.15, "V": 3.0},
        0.1,
        24.0,
        _oral,
    ),
    "relaxation": Planned(
        "relaxation to a level",
        {"x": "k*(s - x)"},
        "x",
        {"x": "x0"},
        {"k": 0.4, "s": 3.0, "x0": 1.0},
        0.1,
        20.0,
        _relaxation,
    ),
}

OPTIONS = (
    Option("sets", DATA_SETS, "number of data sets of each model", least=10),
    Option("models", tuple(MODELS), "models, e.g. decay,oral", tuple(MODELS)),
)


def tasks(sets: int, models: Sequence[str]) -> list[Task]:
    """Return a task for each model."""
    return [{"key": f"{name}, {sets} data sets", "model": name, "sets": sets} for name in models]


def run(task: Task) -> Mapping[str, Any]:
    """Plan the measurements of a model, and carry them out on simulated data sets."""
    model = MODELS[task["model"]]
    problem = Problem(
        Model(ode=dict(model.ode), observables={"y": model.measured}),
        data={"t": [0.0, model.last], "y": [1.0, 1.0]},
        parameters={key: {} for key in model.truth},
        initial=dict(model.initial),
        noise={"y": {"sd": model.sd}},
    )
    plan = design(problem, dict(model.truth), times=(0.0, model.last), count=MEASUREMENTS)
    times, truth = np.array(plan.times), np.array([model.truth[key] for key in problem.keys])
    names = list(model.truth)

    def residuals(values: Array, y: Array) -> Array:
        by_name = dict(zip(problem.keys, values, strict=True))
        return (model.solution(times, *(by_name[key] for key in names)) - y) / model.sd

    random = np.random.default_rng(7)
    widths, inside = [], []
    for _ in range(task["sets"]):
        exact = model.sd * residuals(truth, np.zeros(len(times)))
        y = exact + model.sd * random.standard_normal(len(times))
        found = least_squares(residuals, truth, x_scale=truth, args=(y,), xtol=1e-12, ftol=1e-12)
        rows: Any = found.jac  # a dense matrix, because the method is not for sparse matrices
        errors = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
        half = norm.ppf(0.5 + LEVEL / 2) * errors
        widths.append(2 * half)
        inside.append(np.abs(found.x - truth) <= half)
    planned = {interval.key: interval.after[1] - interval.after[0] for interval in plan.intervals}
    assert plan.continuous is not None
    return {
        "excess": float(plan.continuous.excess),
        "times": [float(t) for t in times],
        "unknowns": [
            {"unknown": key, "planned": planned[key], "width": float(width), "inside": int(count)}
            for key, width, count in zip(
                problem.keys, np.median(widths, axis=0), np.sum(inside, axis=0), strict=True
            )
        ],
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each unknown, and one for each model."""
    unknowns, models = [], []
    for record in records:
        if record.result is None:
            continue
        name, sets = record.task["model"], record.task["sets"]
        rows = record.result["unknowns"]
        unknowns += [
            {
                "model": name,
                "unknown": row["unknown"],
                "planned width": row["planned"],
                "median width": row["width"],
                "ratio": row["width"] / row["planned"],
                "coverage": row["inside"] / sets,
            }
            for row in rows
        ]
        models.append(
            {
                "model": name,
                "what it is": MODELS[name].description,
                "data sets": sets,
                "times": " ".join(f"{t:.4g}" for t in sorted(set(record.result["times"]))),
                "excess over the bound of equivalence": f"{record.result['excess']:.1e}",
                "median width over the planned one": ", ".join(
                    f"{r['width'] / r['planned']:.3f}" for r in rows
                ),
                "coverage": ", ".join(f"{100 * r['inside'] / sets:.1f} %" for r in rows),
                "coverage of all intervals": sum(r["inside"] for r in rows) / (sets * len(rows)),
            }
        )
    return {"planned": pd.DataFrame(models), "planned-unknowns": pd.DataFrame(unknowns)}
