"""Evaluations of problems with many conditions: by one process, and shared by several workers.

    python -m evidence.speed.conditions_in_parallel FOLDER [--models NAME ...] [--jobs 2]
        [--evaluations 12] [--out FILE]

FOLDER holds problems as JSON mappings that `odefit.problem.problem_from_mapping` reads, with
guesses at which they are evaluated, residuals with their Jacobian, as a fit with fewer starts than
workers does. One process and the workers take turns, each evaluation of both at the same values,
which differ by a few per cent from one to the next. Seconds are those of the clock: medians; both
have to give the same numbers to the last bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evidence.running.processes import machine, markdown, publish
from odefit import Control, ForwardMap
from odefit.common.arrays import Array
from odefit.methods.running.remote_conditions import conditions_over_workers
from odefit.problem import problem_from_mapping
from odefit.simulation import Evaluation

MODELS = ("Isensee_JCB2018", "Smith_BMCSystBiol2013")
WARM_UP = 2
SPREAD = 0.02  # standard deviation of the logarithm of each unknown from one evaluation to the next


def evaluated(forward: ForwardMap, vector: Array) -> tuple[float, Evaluation]:
    """Seconds of an evaluation, and what it is."""
    began = time.perf_counter()
    found = forward.evaluate(vector)
    assert isinstance(found, Evaluation), found
    return time.perf_counter() - began, found


def measured(path: Path, jobs: int, evaluations: int) -> list[str]:
    """The row of a problem."""
    problem = problem_from_mapping(json.loads(path.read_text(encoding="utf-8")))
    given = [u.parameter.guess for u in problem.unknowns]
    guesses = np.array([1.0 if g is None else g for g in given])
    rng = np.random.default_rng(1)
    alone, shared = ForwardMap(problem), ForwardMap(problem)
    times: list[tuple[float, float]] = []
    with conditions_over_workers(shared, Control(jobs=jobs)):
        while len(times) < WARM_UP + evaluations:
            vector = guesses * np.exp(SPREAD * rng.standard_normal(len(guesses)))
            vector = np.clip(vector, problem.lower, problem.upper)
            one, first = evaluated(alone, vector)
            several, second = evaluated(shared, vector)
            assert np.array_equal(first.jacobian, second.jacobian)
            times.append((one, several))
    one, several = (statistics.median(column) for column in zip(*times[WARM_UP:], strict=True))
    ratio = statistics.median(a / b for a, b in times[WARM_UP:])
    return [
        path.stem.split("_")[0],
        str(len(problem.conditions)),
        f"{1e3 * one:.0f}",
        f"{1e3 * several:.0f}",
        f"{ratio:.2f}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--evaluations", type=int, default=12)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    rows = [
        measured(options.folder / f"{name}.json", options.jobs, options.evaluations)
        for name in options.models
    ]
    head = ["model", "conditions", "one process, ms", f"{options.jobs} workers, ms", "times faster"]
    publish(f"{markdown(head, rows)}\n\n{machine()}", options.out)


if __name__ == "__main__":
    main()
