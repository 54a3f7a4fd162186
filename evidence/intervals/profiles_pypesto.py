"""Profile likelihoods beside those of pyPESTO: seconds, optimisations, evaluations, interval ends.

    python -m evidence.intervals.profiles_pypesto
        --problems alpha-pinene,enzyme,FILE.json --gradient exact

Needs pypesto in the same environment. It profiles the same negative log-likelihood, evaluated by
odefit, over the logarithms of the unknowns (its step sizes are made for these), with SciPy's
L-BFGS-B, by finite differences or with odefit's gradient. FILE.json is a problem as
`odefit.problem.problem_to_mapping` writes it, with guesses, from which it is fitted.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
import warnings
from pathlib import Path

import numpy as np
import pypesto
import pypesto.optimize
import pypesto.profile

import odefit
from evidence.running.processes import machine
from odefit.problem import problem_from_mapping
from odefit.simulation import Failure, ForwardMap


def enzyme() -> odefit.Problem:
    """Michaelis-Menten kinetics by mass action of which the product alone is measured."""
    rate = {"lower": 1e-2, "upper": 1e5, "scale": "log10"}
    model = odefit.Model(
        ode={
            "E": "-k1*E*S + (km1 + k2)*ES",
            "S": "-k1*E*S + km1*ES",
            "ES": "k1*E*S - (km1 + k2)*ES",
            "P": "k2*ES",
        },
        observables={"product": "P"},
    )
    times = np.linspace(0.1, 4.0, 40)
    given = ({"k1": rate, "km1": rate, "k2": rate}, {"E": 0.1, "S": 10.0, "ES": 0.0, "P": 0.0})
    noise = {"product": {"sd": 0.1}}
    empty = odefit.Problem(model, {"t": times, "product": np.ones(40)}, *given, noise=noise)
    vector = empty.vector({"k1": 100.0, "km1": 300.0, "k2": 50.0})
    found = odefit.simulate(empty, vector)
    assert not isinstance(found, Failure)
    values = found.observables["product"] + 0.1 * np.random.default_rng(0).standard_normal(40)
    return odefit.Problem(model, {"t": times, "product": values}, *given, noise=noise)


def fitted(name: str) -> odefit.Result:
    """Fit a problem of the library, the enzyme, or a file from its guesses."""
    if name == "enzyme":
        return odefit.fit(enzyme(), jobs=1)
    if name.endswith(".json"):
        problem = problem_from_mapping(json.loads(Path(name).read_text(encoding="utf-8")))
        return odefit.fit(problem, odefit.SingleShooting(), jobs=1)
    return odefit.fit(odefit.library.load(name), jobs=1)


class Likelihood:
    """The negative log-likelihood over base-10 logarithms, and how often it was asked for."""

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


def main() -> None:
    """Profile each problem with both, and print what it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--problems", default="alpha-pinene,enzyme")
    parser.add_argument("--gradient", choices=("differences", "exact"), default="differences")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # pyPESTO warns of its default steps at every profile
    print(machine(), f"pyPESTO {pypesto.__version__}")
    for name in arguments.problems.split(","):
        result = fitted(name)
        result.profile(jobs=1)
        began = time.perf_counter()
        own = result.profile(jobs=1)
        mine = time.perf_counter() - began
        theirs, optimisations, calls, ends = peer(result, arguments.gradient == "exact")
        print(f"\n{Path(name).stem}: {len(own.profiles)} profiles; fit {result.seconds:.2f} s")
        print(f"  odefit   {mine:8.2f} s  {own.minimisations} optimisations, ", end="")
        print(f"{own.evaluations} evaluations with Jacobian")
        print(f"  pyPESTO  {theirs:8.2f} s  {optimisations} optimisations, {calls} evaluations")
        for profile in own.profiles:
            low, high = ends[profile.key]
            print(
                f"    {profile.key:12s} odefit [{profile.lower:.5g}, {profile.upper:.5g}]"
                f"   pyPESTO [{low:.5g}, {high:.5g}]"
            )


if __name__ == "__main__":
    main()
