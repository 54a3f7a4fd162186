"""Optima of two models within the noise: those reported by fits, and coverage of the truth.

The truth is compared with intervals of the unknowns, and with confidence bands of the observable
and of the state that is not measured, over all solutions that fit.

Each data set of two models has its own true values, and is simulated by SciPy. A long search by
SciPy alone finds the optima within the limit of the likelihood ratio. It begins at the truth, at
other speeds of its motion and at other points. Two optima are different if an identifiable unknown
differs by a fifth, and the curve of refits from one to the other rises above that limit.
"""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares, minimize

import odefit
from evidence.peers.by_scipy import Array
from evidence.running.campaign import Option, Record, Task
from evidence.zoo.drawing import Drawn, sampled
from evidence.zoo.parts import PARTS, data_set_tasks
from evidence.zoo.searching import ByBlock, bounded_residuals
from odefit.assessment.parts import Trouble
from odefit.problem import problem_from_mapping

MODELS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("near_equal.toml").read_text(encoding="utf-8")
)
SPREAD = 1.6  # factor around the middle within which true values lie
LIMIT = 3.84  # deviance within which an optimum fits
UNLIKE = 0.2  # relative difference of unknowns of different optima
FAR = 10.0  # factor around the truth within which starts lie
SPEEDS = (0.3, 12.0)  # other speeds of the motion from which every second start begins
STEPS = 8  # values held between two optima
HOPEFUL = 30.0  # largest deviance after a short search from which a start continues
STILL = 5e-4  # decrease of chi-square by a simplex that shows that an end is no optimum
BANDS = ("observable", "state", "profile")  # the last are those of states by profile
SIMPLEX = 600  # evaluations of a simplex
EDGE = 0.3  # length of its first edges in standard errors, which are at most 1
LOOSE, TIGHT = 1e-8, 1e-10  # tolerances of searches by least squares
DIFFERENCE = 1e-6  # of a logarithm, for derivatives
ROUNDS = 6  # searches, each with a simplex after it, before an end on a ridge is left out

OPTIONS = (
    Option("problems", tuple(MODELS), "models, e.g. toggle", MODELS),
    Option("sets", 40, "data sets of each model", least=1),
    Option("parts", PARTS, "reference,fit or one of them", PARTS),
    Option("starts", 60, "random starts of a reference", least=0),
    Option("limits", (60.0,), "time limits of the fits in seconds", above=0),
    Option("seeds", 1, "fits of each data set", least=1),
)


tasks = data_set_tasks


def run(task: Task) -> dict[str, Any]:
    found = data_set(task["problem"], task["number"])
    if task["part"] == "fit":
        return fitted(found, task["seed"], task["limit"])
    search = _Search(found, MODELS[task["problem"]]["compared"])
    return {"optima": search.optima(task["starts"], np.random.default_rng([task["number"], 5]))}


def data_set(name: str, number: int) -> Drawn:
    """Return a data set of a model, with its own true values."""
    entry = MODELS[name]
    random = np.random.default_rng([number, len(name), 41])
    unknown = {}
    for key, (middle, lower, upper) in entry["unknown"].items():
        value = float(f"{middle * SPREAD ** random.uniform(-1, 1):.3g}")
        unknown[key] = [value, value / lower, upper / value]
    return sampled(name, {**entry, "unknown": unknown}, number)


class _Search:
    """The search of one data set by SciPy, in logarithms of the unknowns."""

    def __init__(self, found: Drawn, compared: Sequence[str]) -> None:
        self.found, self.keys = found, list(found.truth)
        self.compared = [self.keys.index(key) for key in compared]
        tables = {**found.mapping["parameters"], **found.mapping["initial"]}
        self.lower = np.log([tables[k]["lower"] for k in self.keys])
        self.upper = np.log([tables[k]["upper"] for k in self.keys])

    def residuals(self, logs: Array) -> Array:
        values = dict(zip(self.keys, np.exp(logs).tolist(), strict=True))
        return bounded_residuals(self.found.by_hand, values)

    def local(
        self, first: Array, most: int, held: int | None = None, *, tight: bool = False
    ) -> tuple[float, Array]:
        """Return chi-square and unknowns at the end of a search, with an unknown held if given.

        Derivatives are one-sided differences; a `tight` search takes central ones, and ends late.
        """
        tolerance = TIGHT if tight else LOOSE
        free = [i for i in range(len(first)) if i != held]
        start = np.clip(first, self.lower + 1e-6, self.upper - 1e-6)

        def whole(x: Array) -> Array:
            point = start.copy()
            point[free] = x
            return point

        def residuals(x: Array) -> Array:
            return self.residuals(whole(x))

        ended = least_squares(
            residuals,
            start[free],
            jac="3-point" if tight else "2-point",
            bounds=(self.lower[free], self.upper[free]),
            max_nfev=most,
            diff_step=None if tight else np.full(len(free), 1e-5),
            ftol=tolerance,
            xtol=tolerance,
            gtol=tolerance,
        )
        return 2 * float(ended.cost), whole(ended.x)

    def optima(self, starts: int, random: np.random.Generator) -> list[dict[str, Any]]:
        """Return the different optima within the limit, the lowest first."""
        truth = np.log([self.found.truth[k] for k in self.keys])
        ends = [self.local(truth, 60)]
        for k in range(starts):
            if k % 2:
                first = self._faster(truth, random)
            else:
                first = truth + random.uniform(-1, 1, len(truth)) * math.log(FAR)
            ends.append(self.local(first, 12))
            if ends[-1][0] < min(e[0] for e in ends) + HOPEFUL:
                ends[-1] = self.local(ends[-1][1], 60)
        ends.sort(key=lambda end: end[0])
        kept: list[tuple[float, Array]] = []
        for end in ends:
            if end[0] <= ends[0][0] + LIMIT and all(self._differ(end, k) for k in kept):
                kept.append(self.local(end[1], 100))
        lowest = min(kept, key=lambda end: end[0])[0]
        apart: list[tuple[float, Array]] = []
        for end in sorted(kept, key=lambda end: end[0]):
            if end[0] <= lowest + LIMIT and not any(
                self._joined(k, end, lowest + LIMIT) or not self._differ(k, end) for k in apart
            ):
                apart.append(end)
        finished: list[tuple[float, Array]] = []
        for ended in map(self.finished, apart):
            if ended is not None and all(self._differ(ended, k) for k in finished):
                finished.append(ended)
        return [
            {"measure": cost, "values": dict(zip(self.keys, np.exp(x).tolist(), strict=True))}
            for cost, x in sorted(finished, key=lambda end: end[0])
        ]

    def finished(self, end: tuple[float, Array]) -> tuple[float, Array] | None:
        """Return the optimum that an end leads to; None if it still decreases along a ridge.

        Searches by differences stop on narrow ridges, which a simplex may follow.
        """
        for _ in range(ROUNDS):
            end = min(end, self.local(end[1], 400, tight=True), key=lambda one: one[0])
            further = self._by_simplexes(end[1])
            if further[0] > end[0] - STILL:
                return min(end, further, key=lambda one: one[0])
            end = further
        return None

    def _by_simplexes(self, first: Array) -> tuple[float, Array]:
        """Return chi-square and unknowns at the lower end of two simplexes.

        One has logarithms of the unknowns as its coordinates, and stops in narrow, bent valleys.
        The other has the singular directions of the residuals, in standard errors.
        """
        inwards = np.where(first > 0.5 * (self.lower + self.upper), -0.05, 0.05)
        columns = [
            (self.residuals(first + step) - self.residuals(first - step)) / (2 * DIFFERENCE)
            for step in DIFFERENCE * np.eye(len(first))
        ]
        _, s, directions = np.linalg.svd(np.column_stack(columns), full_matrices=False)
        errors = directions.T / np.maximum(s, 1.0)
        ends = (self._by_simplex(first, edges) for edges in (EDGE * errors, np.diag(inwards)))
        return min(ends, key=lambda end: end[0])

    def _by_simplex(self, first: Array, edges: Array) -> tuple[float, Array]:
        """Return the end of a search by J. A. Nelder and R. Mead, whose first edges are columns."""

        def inside(moved: Array) -> Array:
            return np.asarray(np.clip(first + edges @ moved, self.lower, self.upper))

        def chi_square(moved: Array) -> float:
            return float(np.sum(self.residuals(inside(moved)) ** 2))

        begin = np.zeros(len(first))
        simplex = np.vstack([begin, np.eye(len(first))])
        options: Any = {"initial_simplex": simplex, "maxfev": SIMPLEX, "adaptive": True}
        ended = minimize(chi_square, begin, method="Nelder-Mead", options=options)
        return float(ended.fun), inside(ended.x)

    def _faster(self, truth: Array, random: np.random.Generator) -> Array:
        """Return the truth with all rates changed by one factor, and initial values drawn."""
        first = truth.copy()
        log = random.uniform(math.log(SPEEDS[0]), math.log(SPEEDS[1]))
        for i, key in enumerate(self.keys):
            if key in self.found.mapping["ode"]:
                first[i] += random.uniform(-1, 1)
            elif key not in ("n", "m"):
                first[i] += log
        return first

    def _differ(self, one: tuple[float, Array], other: tuple[float, Array]) -> bool:
        apart = np.abs(one[1] - other[1])[self.compared]
        return bool((apart > math.log(1 + UNLIKE)).any())

    def _joined(self, one: tuple[float, Array], other: tuple[float, Array], most: float) -> bool:
        """Return whether refits lead from one optimum to the other below a chi-square."""
        away = other[1] - one[1]
        held = max(self.compared, key=lambda i: abs(away[i]))
        for first, last in ((one, other), (other, one)):
            at = first[1]
            for step in range(1, STEPS + 1):
                point = at + (last[1] - at) / (STEPS + 1 - step)
                cost, at = min(
                    (self.local(p, 15, held) for p in (point, _with(at, held, point[held]))),
                    key=lambda end: end[0],
                )
                if cost > most:
                    break
            else:
                return True
        return False


def _with(point: Array, place: int, value: float) -> Array:
    changed = point.copy()
    changed[place] = value
    return changed


def fitted(found: Drawn, seed: int, limit: float) -> dict[str, Any]:
    """Fit a data set, and return the solutions that fit with their intervals."""
    began, processor = time.perf_counter(), time.process_time()
    problem = problem_from_mapping(found.mapping)
    result = odefit.fit(problem, seed=seed, jobs=1, time_limit=limit)
    keys = problem.keys
    solutions = [
        {
            "measure": found.judge.measure(dict(zip(keys, s.vector.tolist(), strict=True))),
            "values": dict(zip(keys, s.vector.tolist(), strict=True)),
            "intervals": dict(zip(keys, _intervals(result, s), strict=True)),
        }
        for s in result.fitting or result.solutions[:1]
    ]
    return {
        "status": result.status.value,
        "message": result.message,
        "ambiguous": result.ambiguous,
        "solutions": solutions,
        "remarked": _remarked(result),
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - processor,
        "bands": _bands(result, found),
    }


def _intervals(result: odefit.Result, solution: Any) -> list[list[float | None]]:
    """Return the interval of each unknown at a solution; None for a missing end."""
    uncertainty = result.uncertainty
    if solution.intervals:
        ends = [list(pair) for pair in solution.intervals]
    elif uncertainty is not None:
        ends = uncertainty.intervals.tolist()
    else:
        ends = [[math.nan, math.nan]] * len(solution.vector)
    return [[end if math.isfinite(end) else None for end in pair] for pair in ends]


def _bands(result: odefit.Result, found: Drawn) -> dict[str, list[int]]:
    """Return the numbers of values, of confidence bands there, and of true values inside these.

    Each is for linear bands of observables and of states that are not measured, and for bands of
    these states by profile.
    """
    mapping = found.mapping
    every = {**mapping["observables"], **{state: state for state in mapping["ode"]}}
    by_hand = ByBlock({**mapping, "observables": every}, {}, 1e-3)
    run = by_hand.runs[0]
    exact = by_hand.predicted(run, found.truth)
    counts = {}
    linear = result.predict(run.times)
    by_profile = result.predict(run.times, by="profile").query("kind == 'state'")
    table = pd.concat([linear, by_profile.assign(kind="profile")])
    for kind, rows in table[~table["name"].isin(mapping["observables"].values())].groupby("kind"):
        low, high = rows["ci_low"].to_numpy(), rows["ci_high"].to_numpy()
        true = np.concatenate([exact[name] for name in dict.fromkeys(rows["name"])])
        shown = np.isfinite(low) & np.isfinite(high)
        inside = shown & (low <= true) & (true <= high)
        counts[str(kind)] = [len(rows), int(shown.sum()), int(inside.sum())]
    return counts


def _remarked(result: odefit.Result) -> list[str]:
    """Return the unknowns whose linear intervals carry a warning."""
    trouble = {} if result.uncertainty is None else result.uncertainty.trouble
    return [key for key, kind in trouble.items() if kind is Trouble.NOT_LINEAR]


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the shares of optima reported and of unions with the truth, and misses by name."""
    optima = {
        (r.task["problem"], r.task["number"]): r.result["optima"]
        for r in records
        if r.task["part"] == "reference" and r.result is not None
    }
    rows, missed = [], []
    for r in records:
        known = optima.get((r.task["problem"], r.task["number"]))
        if r.task["part"] != "fit" or r.result is None or known is None:
            continue
        found, entry = r.result, MODELS[r.task["problem"]]
        own = found["solutions"]
        lowest = min([k["measure"] for k in known] + [s["measure"] for s in own])
        confirmed = [k for k in known if k["measure"] <= lowest + LIMIT]
        untold = [k for k in confirmed if not any(_same(k, s, entry["compared"]) for s in own)]
        truth = data_set(r.task["problem"], r.task["number"]).truth
        shown = [key for key in entry["compared"] if _closed(own, key)]
        held = [key for key in shown if _inside(own, key, truth[key])]
        plain = [key for key in shown if key not in found.get("remarked", ())]
        worse = min((s["measure"] for s in own), default=math.inf) - lowest
        rows.append(
            {
                "model": r.task["problem"],
                "limit s": r.task["limit"],
                "several known": len(confirmed) > 1,
                "told": len(confirmed) > 1 and found["ambiguous"],
                "all told": len(confirmed) > 1 and not untold,
                "at the lowest": worse <= 0.05,
                "false converged": found["status"] == "converged" and worse > 0.05,
                "shown": len(shown),
                "held": len(held),
                "plain": len(plain),
                "plain held": sum(key in held for key in plain),
                "processor s": found["processor"],
                **_of_bands(found["bands"]),
            }
        )
        if untold or worse > 0.05 or len(held) < len(shown):
            missed.append(
                {
                    "model": r.task["problem"],
                    "limit s": r.task["limit"],
                    "data set": r.task["number"],
                    "seed": r.task["seed"],
                    "status": found["status"],
                    "told": len(own),
                    "known": len(confirmed),
                    "not told": "; ".join(_words(k, lowest) for k in untold),
                    "worse by": round(worse, 3),
                    "misses": ", ".join(k for k in shown if k not in held),
                    "remarked": ", ".join(k for k in shown if k not in {*held, *plain}),
                }
            )
    if not rows:
        return {}
    fits = pd.DataFrame(rows).groupby(["model", "limit s"], sort=False)
    table = fits.agg(
        **{"data sets": ("told", "size")},
        **{k: (k, "sum") for k in ("several known", "told", "all told", "at the lowest")},
        **{"false converged": ("false converged", "sum")},
        **{"intervals shown": ("shown", "sum"), "truth inside": ("held", "sum")},
        **{"without a remark": ("plain", "sum"), "truth in these": ("plain held", "sum")},
        **{"median s": ("processor s", "median")},
        **{name: (name, "sum") for name in _of_bands({})},
    ).reset_index()
    for kind in BANDS:
        values, known, inside = (table.pop(name) for name in _of_bands({}) if kind in name)
        table[f"% of {kind} bands shown"] = (100 * known / values).round(1)
        table[f"% inside {kind} bands"] = (100 * inside / known).round(1)
    table["% inside"] = (100 * table["truth inside"] / table["intervals shown"]).round(1)
    table["% in these"] = (100 * table["truth in these"] / table["without a remark"]).round(1)
    named = pd.DataFrame(missed)
    same = [name for name in ("limit s", "seed") if missed and named[name].nunique() == 1]
    return {"near-equal": table.round(2), "missed": named.drop(columns=same)}


def _of_bands(bands: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the counts of a fit's bands as columns of a table."""
    return {
        f"{kind} {what}": count
        for kind in BANDS
        for what, count in zip(("values", "shown", "held"), bands.get(kind, (0, 0, 0)), strict=True)
    }


def _same(known: Mapping[str, Any], own: Mapping[str, Any], compared: Sequence[str]) -> bool:
    """Return whether an optimum is a solution, or within its intervals."""

    def near(key: str) -> bool:
        value, at = known["values"][key], own["values"][key]
        low, high = own["intervals"][key]
        alike = abs(math.log(value / at)) <= math.log(1 + UNLIKE) if at > 0 else False
        return alike or low is None or high is None or low <= value <= high

    return all(near(key) for key in compared)


def _closed(solutions: Sequence[Mapping[str, Any]], key: str) -> bool:
    ends = [end for s in solutions for end in s["intervals"][key]]
    return bool(ends) and None not in ends


def _inside(solutions: Sequence[Mapping[str, Any]], key: str, value: float) -> bool:
    return any(low <= value <= high for low, high in (s["intervals"][key] for s in solutions))


def _words(known: Mapping[str, Any], lowest: float) -> str:
    values = " ".join(f"{k} {v:.3g}" for k, v in known["values"].items())
    return f"+{known['measure'] - lowest:.2f}: {values}"
