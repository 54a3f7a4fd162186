"""Evaluations of problems with many conditions: by one thread, and shared by several threads.

`folder` holds problems as JSON mappings that `odefit.problem.problem_from_mapping` reads, with
guesses at which they are evaluated, residuals with their Jacobian, as in a fit with fewer starts
than cores. One thread and several take turns, each evaluation of both at the same values,
which differ by a few per cent from one to the next. Seconds are those of the clock: medians; both
have to give the same numbers to the last bit.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import guesses, problem_named
from odefit import ForwardMap
from odefit.common.arrays import Array
from odefit.common.cores import using_cores
from odefit.simulation import Evaluation

MODELS = ("Isensee_JCB2018", "Smith_BMCSystBiol2013")
WARM_UP = 4  # threads begin after a second of evaluations
SPREAD = 0.02  # standard deviation of the logarithm of each unknown from one evaluation to the next


def evaluated(forward: ForwardMap, vector: Array) -> tuple[float, Evaluation]:
    began = time.perf_counter()
    found = forward.evaluate(vector)
    assert isinstance(found, Evaluation), found
    return time.perf_counter() - began, found


def measured(path: str, jobs: int, evaluations: int) -> list[str]:
    problem = problem_named(path)
    given = np.array(list(guesses(problem).values()))
    rng = np.random.default_rng(1)
    alone, shared = ForwardMap(problem), ForwardMap(problem)
    times: list[tuple[float, float]] = []
    while len(times) < WARM_UP + evaluations:
        vector = given * np.exp(SPREAD * rng.standard_normal(len(given)))
        vector = np.clip(vector, problem.lower, problem.upper)
        one, first = evaluated(alone, vector)
        with using_cores(jobs):
            several, second = evaluated(shared, vector)
        assert np.array_equal(first.jacobian, second.jacobian)
        times.append((one, several))
    one, several = (statistics.median(column) for column in zip(*times[WARM_UP:], strict=True))
    ratio = statistics.median(a / b for a, b in times[WARM_UP:])
    return [
        Path(path).stem.split("_")[0],
        str(len(problem.conditions)),
        f"{1e3 * one:.0f}",
        f"{1e3 * several:.0f}",
        f"{ratio:.2f}",
    ]


HEAD = ("model", "conditions", "one thread, ms", "threads, ms", "times faster")
OPTIONS = (
    Option("folder", "", "folder of the problems, NAME.json each"),
    Option("models", MODELS, "names of the problems"),
    Option("jobs", 2, "number of threads", least=2),
    Option("evaluations", 12, "evaluations that count", least=1),
)


def tasks(models: Sequence[str], **options: Any) -> list[Task]:
    return tasks_of("model", models, **options)


def run(task: Task) -> Mapping[str, Any]:
    path = str(Path(task["folder"]) / f"{task['model']}.json")
    return {"rows": [measured(path, task["jobs"], task["evaluations"])]}
