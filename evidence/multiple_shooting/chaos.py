"""Multiple shooting: chaos, cost of an iteration, beside CasADi with IPOPT, and on the library.

    python -m evidence.multiple_shooting.chaos
        [--parts lorenz guesses nodes casadi library] [--out DIR]

All seconds are of processor time on one thread, so that other work on the computer counts little.

lorenz
    Lorenz-63 over 100 Lyapunov times (T = 110.4), 5,000 data with noise of 10 % of each state's
    standard deviation, from (s, r, b) = (5, 20, 1); the truth is (10, 28, 8/3). All three states
    are measured, then x alone (y and z of the first point are guessed as 1). "Seconds" is
    :func:`odefit.fit` with everything it does, "gap" the largest discontinuity, relative to the
    states.
guesses
    x alone over 20 Lyapunov times (1,000 data, the same spacing), from guesses that are off by up
    to a factor, all log-uniform, with the default number of nodes and with others: how many end at
    the lowest objective that any found (within 1 %), and median seconds of the iteration alone.
nodes
    Seconds for a Gauss-Newton iteration (a sweep over all intervals with derivatives, the condensed
    problem, and damping) on a node at each of so many data times, and the exponent of their number.
casadi
    The same fit as people write it with CasADi and IPOPT: see `shooting_by_hand.py`.
library
    One start of multiple shooting, single shooting and transcription from the same point of every
    problem: its guess, or several random points where it has none. Solved are those
    within 0.1 % of the best known objective, or of 1e-8 times the data's sum of squares.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.multiple_shooting.lorenz import PARAMETERS, STATES, TRUTH, fitted, lorenz, steps_of
from evidence.peers.shooting_by_hand import beside_casadi
from evidence.running.processes import machine, markdown, publish
from evidence.running.processes import seconds as in_seconds
from odefit.methods.multi_start import MultiStart
from odefit.methods.starts import guess, sample

NODES = (None, 40, 80, 333, 999)  # numbers of them with 1,000 data; None for the default
SAME = 1.01  # over the lowest objective

# Lorenz -----------------------------------------------------------------------------------------


def chaos(count: int, seeds: int) -> str:
    """Errors over 100 Lyapunov times."""
    rows = []
    for observed in (STATES, STATES[:1]):
        for seed in range(seeds):
            found = fitted(lorenz(count, seed, observed), odefit.MultipleShooting(starts=1))
            result = found.result
            print(f"Lorenz {''.join(observed)}, seed {seed}: {result}", file=sys.stderr)
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
    header = ["measured", "noise", "status", "s, %", "r, %", "b, %", "nodes", "iterations", "gap"]
    return markdown([*header, "seconds"], rows)


@dataclass(frozen=True)
class Followed:
    """One iteration to its end."""

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


def guesses(count: int, seeds: int, nodes: Sequence[int | None], off: Sequence[float]) -> str:
    """Success of x alone by the guess and the number of nodes."""
    found: dict[tuple[int | None, float], list[Followed]] = {}
    for factor in off:
        for seed in range(seeds):
            power = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 3)
            first = [t * factor**p for t, p in zip(TRUTH, power.tolist(), strict=True)]
            problem = lorenz(count, seed, STATES[:1], first)
            for n in nodes:
                method = odefit.MultipleShooting(nodes=n, iterations=50)
                found.setdefault((n, factor), []).append(followed(problem, method))
                last = found[n, factor][-1]
                print(f"factor {factor:g}, seed {seed}, {n} nodes: {last}", file=sys.stderr)
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
    return markdown(["nodes", *(f"within a factor of {f:g}" for f in off)], rows)


# Cost of an iteration ---------------------------------------------------------------------------


def growth(chosen: Sequence[int], repeats: int) -> str:
    """Seconds against the number of nodes."""
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
        print(f"{count} nodes: {runs}", file=sys.stderr)
        spent.append(min(runs))
        each = 1e6 * spent[-1] / count
        rows.append([str(count), f"{1e3 * spent[-1]:.1f}", f"{each:.0f}"])
    table = markdown(["nodes", "milliseconds", "microseconds a node"], rows)
    if len(chosen) < 2:
        return table
    slope = np.polyfit(np.log(chosen), np.log(spent), 1)[0]
    return f"{table}\n\nExponent of the number of nodes: {slope:.2f}."


# Library ----------------------------------------------------------------------------------------

METHODS = ("multiple shooting", "single shooting", "transcription")


def method_from(name: str, start: dict[str, float]) -> Any:
    """One start of a method."""
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


def on_library(names: Sequence[str], points: int, limit: float) -> str:
    """Solved and seconds, by problem and method."""
    rows = []
    totals = dict.fromkeys(METHODS, 0)
    count = 0
    for name in names:
        problem = odefit.library.load(name)
        given = guess(problem)
        starts = sample(problem, 0, points, 0) if given is None else given[None]
        count += len(starts)
        row = [name, "guess" if given is not None else f"{points} random"]
        for kind in METHODS:
            good, spent = 0, []
            for start in starts:
                at = dict(zip(problem.keys, start.tolist(), strict=True))
                found = fitted(problem, method_from(kind, at), limit)
                good += solved(name, problem, found.result.objective)
                spent.append(found.seconds)
                message = found.result.starts[0].message if found.result.starts else ""
                print(f"{name}, {kind}: {found.seconds:.2f} {good} {message}", file=sys.stderr)
            totals[kind] += good
            row += [str(good), in_seconds(statistics.median(spent))]
        rows.append(row)
    rows.append(["all", f"{count} points", *(c for k in METHODS for c in (str(totals[k]), ""))])
    header = ["problem", "from", *(c for k in METHODS for c in (k, "seconds"))]
    return markdown(header, rows)


def main() -> None:
    """Read the command line, run, report."""
    parts = ("lorenz", "guesses", "nodes", "casadi", "library")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--seeds", type=int, default=5, help="of the noise of Lorenz")
    parser.add_argument("--repeats", type=int, default=3, help="of what is timed")
    parser.add_argument("--points", type=int, default=3, help="a problem without a guess")
    parser.add_argument("--problems", nargs="+", default=list(odefit.library.names()))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a fit")
    parser.add_argument("--out", type=Path, help="write the tables to this folder")
    options = parser.parse_args()
    work: dict[str, Callable[[], str]] = {
        "lorenz": lambda: chaos(5000, options.seeds),
        "guesses": lambda: guesses(1000, 2 * options.seeds, NODES, (1.5, 3.0, 5.0)),
        "nodes": lambda: growth((100, 300, 1000, 3000, 10_000), options.repeats),
        "casadi": lambda: beside_casadi(options.limit, options.repeats),
        "library": lambda: on_library(options.problems, options.points, options.limit),
    }
    for part in options.parts:
        out = None if options.out is None else options.out / f"multiple_shooting_{part}.md"
        publish(f"{work[part]()}\n\n{machine()}", out)


if __name__ == "__main__":
    main()
