"""Profile likelihoods beside those of pyPESTO: seconds, optimisations, evaluations, interval ends.

Needs pypesto in the same environment. It profiles the same negative log-likelihood, evaluated by
odefit, over the logarithms of the unknowns, for which its step sizes are made. The optimiser is
SciPy's L-BFGS-B, by finite differences or with odefit's gradient. FILE.json is a problem as
`odefit.problem.problem_to_mapping` writes it, with guesses, from which it is fitted.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.intervals.coverage_problems import enzyme
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import problem_named
from evidence.running.output import listed
from odefit import Failure, ForwardMap


def fitted(name: str) -> odefit.Result:
    """Fit a problem of the library, the enzyme, or a file from its guesses."""
    method = odefit.SingleShooting() if name.endswith(".json") else None
    times = np.linspace(0.1, 4.0, 40).tolist()
    problem = enzyme(times, 50.0) if name == "enzyme" else problem_named(name)
    return odefit.fit(problem, method, jobs=1)


class Likelihood:
    """The negative log-likelihood over base-10 logarithms, and the number of its calls."""

    def __init__(self, result: odefit.Result) -> None:
        self.problem = result.problem
        self.forward = ForwardMap(self.problem)
        self.calls = 0
        at = self.forward.evaluate(result.best.vector)
        assert not isinstance(at, Failure)
        degrees = self.problem.size - len(self.problem.unknowns)
        self.variance = 1.0 if self.forward.given_noise else at.objective / degrees
        self.logarithmic = np.array([u.parameter.lower > 0 for u in self.problem.unknowns])
        self.logarithmic |= (self.problem.lower == 0) & (result.best.vector > 0)

    def __deepcopy__(self, memo: object) -> Likelihood:
        """Return itself: pyPESTO copies its objectives, and the calls of all copies count."""
        return self

    def natural(self, z: np.ndarray) -> np.ndarray:
        x = np.array(z, dtype=float)
        x[self.logarithmic] = 10.0 ** x[self.logarithmic]
        return x

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        z = np.array(x, dtype=float)
        least = np.maximum(z[self.logarithmic], 1e-8)
        z[self.logarithmic] = np.log10(least)
        return z

    def value(self, z: np.ndarray) -> float:
        self.calls += 1
        cost = self.forward.cost(self.natural(z))
        return cost / self.variance if math.isfinite(cost) else 1e10

    def gradient(self, z: np.ndarray) -> np.ndarray:
        self.calls += 1
        x = self.natural(z)
        found = self.forward.evaluate(x)
        if isinstance(found, Failure):
            return np.zeros(len(z))
        factor = np.where(self.logarithmic, math.log(10.0) * x, 1.0)
        return found.jacobian.T @ found.residuals * factor / self.variance


def peer(
    result: odefit.Result, exact: bool
) -> tuple[float, int, int, dict[str, tuple[float, float]]]:
    """Return seconds, optimisations, evaluations, and interval ends of pyPESTO's profiles."""
    import pypesto
    import pypesto.optimize
    import pypesto.profile

    likelihood = Likelihood(result)
    problem = result.problem
    objective = pypesto.Objective(fun=likelihood.value, grad=likelihood.gradient if exact else None)
    if not exact:
        objective = pypesto.objective.FD(objective, grad=True)
    best = likelihood.coordinates(result.best.vector)
    wanted = pypesto.Problem(
        objective=objective,
        lb=likelihood.coordinates(problem.lower),
        ub=likelihood.coordinates(problem.upper),
        x_names=list(problem.keys),
        x_guesses=[best],
    )
    optimizer = pypesto.optimize.ScipyOptimizer(method="L-BFGS-B")
    engine = pypesto.engine.SingleCoreEngine()
    found = pypesto.optimize.minimize(
        wanted, optimizer, n_starts=1, engine=engine, progress_bar=False
    )
    likelihood.calls = 0
    began = time.perf_counter()
    limit = result.profile(jobs=1).limit
    options = pypesto.profile.ProfileOptions(ratio_min=0.9 * math.exp(-limit / 2))
    found = pypesto.profile.parameter_profile(
        wanted, found, optimizer, engine=engine, profile_options=options, progress_bar=False
    )
    seconds = time.perf_counter() - began
    ends, count = {}, 0
    for i, key in enumerate(problem.keys):
        one = found.profile_result.list[0][i]
        count += one.x_path.shape[1]
        ends[key] = crossing(one.x_path[i], one.fval_path, limit)
        if likelihood.logarithmic[i]:
            ends[key] = tuple(10.0 ** np.array(ends[key]))
    return seconds, count, likelihood.calls, ends


def crossing(values: np.ndarray, costs: np.ndarray, limit: float) -> tuple[float, float]:
    """Return where a profile crosses its limit, by linear interpolation, or infinity."""
    order = np.argsort(values)
    values, deviance = values[order], 2 * (costs[order] - costs.min())
    at = int(np.argmin(deviance))
    ends = []
    for part in (slice(at, None, -1), slice(at, None)):
        v, d = values[part], deviance[part]
        above = np.flatnonzero(d > limit)
        if not len(above):
            ends.append(math.inf if part.step is None else -math.inf)
            continue
        k = above[0]
        ends.append(v[k - 1] + (v[k] - v[k - 1]) * (limit - d[k - 1]) / (d[k] - d[k - 1]))
    return ends[0], ends[1]


HEAD = (
    *("problem", "unknowns", "odefit: seconds", "refits", "evaluations with Jacobian"),
    *("pyPESTO: seconds", "pyPESTO: refits", "evaluations", "seconds over those of odefit"),
)
ENDS = ("problem", "unknown", "odefit: lower", "upper", "pyPESTO: lower", "pyPESTO: upper")
OPTIONS = (
    Option("problems", ("alpha-pinene", "enzyme"), "problems of the library, enzyme, or files"),
    Option("gradient", "differences", "differences or exact", ("differences", "exact")),
)


def tasks(problems: Sequence[str], gradient: str) -> list[Task]:
    return tasks_of("problem", problems, gradient=gradient)


def run(task: Task) -> Mapping[str, Any]:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # pyPESTO warns of its default steps at every profile
    name = Path(task["problem"]).stem
    result = fitted(task["problem"])
    result.profile(jobs=1)
    began = time.perf_counter()
    own = result.profile(jobs=1)
    mine = time.perf_counter() - began
    theirs, optimisations, calls, ends = peer(result, task["gradient"] == "exact")
    row = [name, str(len(own.profiles)), f"{mine:.2f}", str(own.minimisations)]
    row += [str(own.evaluations), f"{theirs:.2f}", str(optimisations), str(calls)]
    limits = [
        [name, p.key, *(f"{v:.5g}" for v in (p.lower, p.upper, *ends[p.key]))] for p in own.profiles
    ]
    return {"rows": [[*row, f"{theirs / mine:.1f}"]], "ends": limits}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    ends = [end for r in records if r.result is not None for end in r.result["ends"]]
    return {"profiles": listed(HEAD, records), "ends": listed(ENDS, ends)}
