"""The campaign `comparisons`: how often `compare` prefers a larger model that is wrong.

Data are simulated from closed forms, and fitted by the true model and by one with one more unknown,
whose true value is within its bounds. At a level of 5 % the larger model is to be called better in
5 % of the data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evidence.running.batches import batch_options, batches, data_sets
from evidence.running.campaign import Record, Task
from odefit import Model, Problem, compare, fit
from odefit.common.arrays import Array
from odefit.reporting.comparison import SIGNIFICANT

DATA_SETS = 1000  # number of data sets of each problem


class _Pair(NamedTuple):
    """A true model and a larger one, with the true curve and the noise of its data."""

    exact: Callable[[Array], Array]
    last: float  # time of the last measurement
    noise: Mapping[str, Any]
    draw: Callable[[np.random.Generator, Array], Array]  # measurements of a curve
    smaller: str  # right-hand sides of x
    larger: str  # with another unknown, `more`


PAIRS = {
    "decay": _Pair(
        lambda t: np.asarray(2.0 * np.exp(-0.5 * t)),
        6.0,
        {"sd": "estimate"},
        lambda rng, curve: curve + 0.1 * rng.standard_normal(len(curve)),
        "-k*x",
        "-k*x + more",
    ),
    "growth": _Pair(
        lambda t: np.asarray(8.0 / (1.0 + 15.0 * np.exp(-0.9 * t))),
        9.0,
        {"sd": "estimate", "transform": "log"},
        lambda rng, curve: curve * np.exp(0.1 * rng.standard_normal(len(curve))),
        "k*x*(1 - x/8)",
        "k*x*(1 - x/8) - more*x",
    ),
    "known noise": _Pair(
        lambda t: np.asarray(2.0 * np.exp(-0.5 * t)),
        6.0,
        {"sd": 0.1},
        lambda rng, curve: curve + 0.1 * rng.standard_normal(len(curve)),
        "-k*x",
        "-k*x + more",
    ),
}
POINTS = (8, 12)

CASES = {
    f"{name}, {points} points": (pair, points) for name, pair in PAIRS.items() for points in POINTS
}

OPTIONS = batch_options(DATA_SETS, tuple(CASES), '"decay, 8 points"')

tasks = batches


def run(task: Task) -> Mapping[str, Any]:
    """Fit both models to each data set of a batch, and compare them."""
    pair, points = CASES[task["problem"]]
    times = np.linspace(0.0, pair.last, points)
    found = []
    for number in range(task["first"], task["last"] + 1):
        values = pair.draw(np.random.default_rng([number, points, 43]), pair.exact(times))
        results = [
            fit(_problem(pair, times, values, more=more), seed=number, jobs=1)
            for more in (False, True)
        ]
        (test,) = compare(*results, names=["smaller", "larger"], nested=True).tests
        found.append({"number": number, "kind": test.kind, "p": test.p})
    return {"data sets": found}


def _problem(pair: _Pair, times: Array, values: Array, *, more: bool) -> Problem:
    unknowns: dict[str, Any] = {"k": {"lower": 0.01, "upper": 10.0}}
    if more:
        unknowns["more"] = {"lower": -1.0, "upper": 1.0}
    return Problem(
        Model(ode={"x": pair.larger if more else pair.smaller}),
        {"t": times, "x": values},
        unknowns,
        {"x": {"lower": 0.01, "upper": 10.0}},
        noise={"x": dict(pair.noise)},
    )


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows = [{"problem": name, **one} for name, one in data_sets(records)]
    every = pd.DataFrame(rows, columns=["problem", "number", "kind", "p"])
    found = []
    for name, part in every.groupby("problem", sort=False):
        called = part["p"] < SIGNIFICANT
        found.append(
            {
                "data": name,
                "test": ", ".join(part["kind"].unique()),
                "data sets": len(part),
                "% larger model called better": 100 * called.mean(),
                "error": 100 * float(np.sqrt(0.05 * 0.95 / len(part))),
            }
        )
    return {"comparisons": pd.DataFrame(found).round(1)}
