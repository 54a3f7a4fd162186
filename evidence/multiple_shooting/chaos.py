"""Multiple shooting: chaos, cost of an iteration, beside CasADi with IPOPT, and on the library.

All seconds are of processor time on one thread, so that other work on the computer counts little.

lorenz
    Lorenz-63 over 100 Lyapunov times (T = 110.4), 5,000 data with noise of 10 % of each state's
    standard deviation, from (s, r, b) = (5, 20, 1); the truth is (10, 28, 8/3). All three states
    are measured, then x alone (y and z of the first point are guessed as 1). "Seconds" is
    :func:`odefit.fit` with everything it does, "gap" the largest discontinuity, relative to the
    states.
guesses
    x alone over 20 Lyapunov times (1,000 data, the same spacing), from guesses that differ from the
    truth by up to a factor, all log-uniform, with the default number of nodes and with others. The
    table has the number that end within 1 % of the lowest objective of all, and median seconds of
    the iteration alone.
nodes
    Seconds for a Gauss-Newton iteration (a sweep over all intervals with derivatives, the condensed
    problem, and damping) with a node at each of several numbers of data times, and the exponent of
    that number.
casadi
    The same fit written by hand with CasADi and IPOPT: see `shooting_by_hand.py`.
library
    One start of multiple shooting, single shooting and transcription from the same point of every
    problem: its guess, or several random points where it has none. A start is solved within 0.1 %
    of the best known objective, or of 1e-8 times the data's sum of squares.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.multiple_shooting.lorenz import PARAMETERS, STATES, TRUTH, fitted, lorenz, steps_of
from evidence.peers.shooting_by_hand import BESIDE, CASES, beside_casadi
from evidence.running.campaign import Option, Record, Task
from evidence.running.measuring import seconds as in_seconds
from evidence.running.output import listed
from odefit import MultiStart
from odefit.methods.starts import guess, sample

NODES = (None, 40, 80, 333, 999)  # numbers of nodes with 1,000 data; None for the default
SAME = 1.01  # over the lowest objective

# Lorenz -----------------------------------------------------------------------------------------


def chaos(count: int, seed: int) -> list[list[str]]:
    """Return errors over 100 Lyapunov times, of all states and of one."""
    rows = []
    for observed in (STATES, STATES[:1]):
        found = fitted(lorenz(count, seed, observed), odefit.MultipleShooting(starts=1))
        result = found.result
        row = [", ".join(observed), str(seed), result.status.value]
        if result.solutions:
            values = result.best.parameters
            errors = [values[k] / v - 1 for k, v in zip(PARAMETERS, TRUTH, strict=True)]
            row += [f"{100 * e:+.2f}" for e in errors]
        else:
            row += ["-"] * 3
        continuity = result.assessment.continuity
        nodes = continuity.nodes if continuity else 1
        gap = f"{continuity.gap:.0e}" if continuity else "-"
        rows.append([*row, str(nodes), steps_of(result), gap, in_seconds(found.seconds)])
    return rows


@dataclass(frozen=True)
class Followed:
    """The result of one iteration."""

    objective: float
    converged: bool
    seconds: float


def followed(problem: odefit.Problem, method: odefit.MultipleShooting) -> Followed:
    """Relaxation and Gauss-Newton steps alone."""
    began = time.process_time()
    try:
        history = method.follow(problem)
    except RuntimeError:  # the start cannot be integrated
        return Followed(np.inf, False, time.process_time() - began)
    spent = time.process_time() - began
    return Followed(history.objective, history.converged, spent)


def guesses(
    count: int, seeds: int, nodes: Sequence[int | None], off: Sequence[float]
) -> list[list[str]]:
    """Return the success with x alone by guess and number of nodes."""
    found: dict[tuple[int | None, float], list[Followed]] = {}
    for factor in off:
        for seed in range(seeds):
            power = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 3)
            first = [t * factor**p for t, p in zip(TRUTH, power.tolist(), strict=True)]
            problem = lorenz(count, seed, STATES[:1], first)
            for n in nodes:
                method = odefit.MultipleShooting(nodes=n, iterations=50)
                found.setdefault((n, factor), []).append(followed(problem, method))
    lowest = [
        min((r[k].objective for r in found.values() if r[k].converged), default=np.inf)
        for k in range(seeds)
    ]
    rows = []
    for n in nodes:
        row = ["default" if n is None else str(n)]
        for factor in off:
            runs = found[n, factor]
            good = [
                r
                for r, best in zip(runs, lowest, strict=True)
                if r.converged and r.objective <= SAME * best
            ]
            spent = in_seconds(statistics.median(r.seconds for r in runs))
            row.append(f"{len(good)} of {len(runs)}, {spent} s")
        rows.append(row)
    return rows


# Cost of an iteration ---------------------------------------------------------------------------


def growth(chosen: Sequence[int], repeats: int) -> tuple[list[list[str]], str]:
    """Return seconds by the number of nodes, and a sentence on the exponent."""
    rows, spent = [], []
    for count in chosen:
        problem = lorenz(count + 1, 0)
        method = odefit.MultipleShooting(nodes=count, states="data", iterations=10)
        method.follow(problem)
        runs = []
        for _ in range(repeats):
            began = time.process_time()
            history = method.follow(problem)
            runs.append((time.process_time() - began) / history.shooting.evaluations)
        spent.append(min(runs))
        each = 1e6 * spent[-1] / count
        rows.append([str(count), f"{1e3 * spent[-1]:.1f}", f"{each:.0f}"])
    slope = np.polyfit(np.log(chosen), np.log(spent), 1)[0]
    return rows, f"Exponent of the number of nodes: {slope:.2f}."


# Library ----------------------------------------------------------------------------------------

METHODS = ("multiple shooting", "single shooting", "transcription")


def method_from(name: str, start: dict[str, float]) -> Any:
    if name == "single shooting":
        return MultiStart(starts=1, first=tuple(start.values()))
    if name == "transcription":
        return odefit.Transcription(starts=1, start=start)
    return odefit.MultipleShooting(starts=1, start=start)


def solved(name: str, problem: odefit.Problem, objective: float) -> bool:
    """Whether the best objective known was reached."""
    known = odefit.library.reference(name)
    best = known.objective if known.best_known is None else known.best_known
    if known.noise != "none":
        return objective <= 1.001 * best
    values = [s.values for c in problem.conditions for s in c.series.values()]
    return objective <= 1e-8 * float(np.sum(np.concatenate(values) ** 2))


def on_library(name: str, points: int, limit: float) -> list[Any]:
    """Return the number of points of a problem, and by method the number solved and seconds."""
    problem = odefit.library.load(name)
    given = guess(problem)
    starts = sample(problem, 0, points, 0) if given is None else given[None]
    row: list[Any] = [name, "guess" if given is not None else f"{points} random", len(starts)]
    for kind in METHODS:
        good, spent = 0, []
        for start in starts:
            at = dict(zip(problem.keys, start.tolist(), strict=True))
            found = fitted(problem, method_from(kind, at), limit)
            good += solved(name, problem, found.result.objective)
            spent.append(found.seconds)
        row += [good, in_seconds(statistics.median(spent))]
    return row


PARTS = ("lorenz", "guesses", "nodes", "casadi", "library")
FACTORS, SIZES = (1.5, 3.0, 5.0), (100, 300, 1000, 3000, 10_000)
HEADS: Mapping[str, Sequence[str]] = {
    "lorenz": (
        *("measured", "noise", "status", "s, %", "r, %", "b, %", "nodes", "iterations", "gap"),
        "seconds",
    ),
    "guesses": ("nodes", *(f"within a factor of {f:g}" for f in FACTORS)),
    "nodes": ("nodes", "milliseconds", "microseconds a node"),
    "casadi": BESIDE,
    "library": ("problem", "from", *(c for k in METHODS for c in (k, "seconds"))),
}
OPTIONS = (
    Option("parts", PARTS, "parts, e.g. lorenz,nodes", PARTS),
    Option("seeds", 5, "seeds of the noise of Lorenz", least=1),
    Option("repeats", 3, "runs of what is timed", least=1),
    Option("points", 3, "random points of a problem without a guess", least=1),
    Option("problems", (), "problems of the library, all if none is named", odefit.library.names),
    Option("limit", 60.0, "seconds for a fit", above=0),
)


def tasks(
    parts: Sequence[str],
    seeds: int,
    repeats: int,
    points: int,
    problems: Sequence[str],
    limit: float,
) -> list[Task]:
    cases: dict[str, list[dict[str, Any]]] = {
        "lorenz": [{"seed": seed} for seed in range(seeds)],
        "guesses": [{"seeds": 2 * seeds}],
        "nodes": [{"repeats": repeats}],
        "casadi": [{"case": k, "limit": limit, "repeats": repeats} for k in range(CASES)],
        "library": [
            {"problem": name, "points": points, "limit": limit}
            for name in problems or odefit.library.names()
        ],
    }
    return [
        {"key": f"{part}, " + ", ".join(f"{k} {v}" for k, v in one.items()), "part": part, **one}
        for part in parts
        for one in cases[part]
    ]


def run(task: Task) -> Mapping[str, Any]:
    if task["part"] == "lorenz":
        return {"rows": chaos(5000, task["seed"])}
    if task["part"] == "guesses":
        return {"rows": guesses(1000, task["seeds"], NODES, FACTORS)}
    if task["part"] == "nodes":
        rows, note = growth(SIZES, task["repeats"])
        return {"rows": rows, "notes": [note]}
    if task["part"] == "casadi":
        return {"rows": beside_casadi(task["case"], task["limit"], task["repeats"])}
    return {"solved": on_library(task["problem"], task["points"], task["limit"])}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    found = {}
    for part in PARTS:
        mine = [r for r in records if r.task["part"] == part]
        if mine and part != "library":
            found[part] = listed(HEADS[part], mine)
        elif mine:
            solved_of = [r.result["solved"] for r in mine if r.result is not None]
            rows = [[*row[:2], *map(str, row[3:])] for row in solved_of]
            sums = [str(sum(row[k] for row in solved_of)) for k in (3, 5, 7)]
            count = sum(row[2] for row in solved_of)
            rows.append(["all", f"{count} points", *(c for s in sums for c in (s, ""))])
            found[part] = listed(HEADS[part], rows)
    return found
