"""The gain by eliminating scales, offsets and standard deviations, start by start.

A problem is the name of one in the library or a file: a problem file, or its mapping as JSON, of
which every `guess` is left out. Each start
is run with and without the elimination, from the same points, in turn and in this process; both
searches have the options of the default method.

The table has the numbers of unknowns and of eliminated unknowns, the starts, and those that end at
the lowest cost of all (as `odefit.fit` compares costs). Lowest and median cost follow, and the
evaluations with gradient and the seconds of all starts together, with the choice of their points.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import odefit
from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import problem_named
from odefit import Start
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.structure.observation_unknowns import observation_unknowns


def rows_of(name: str, starts: int, seeds: list[int]) -> list[list[str]]:
    problem = problem_named(name, guessed=False)
    methods = {
        "all together": odefit.MultiStart(_local(eliminate=False)),
        "reduced": odefit.MultiStart(_local(eliminate=True)),
    }
    forwards = {key: method.forward(problem) for key, method in methods.items()}
    ends: dict[str, list[Start]] = {key: [] for key in methods}
    seconds = dict.fromkeys(methods, 0.0)
    for seed in seeds:
        for index in range(starts):
            for key, method in methods.items():
                began = time.perf_counter()
                ends[key].append(method.run(forwards[key], index, odefit.Control(seed=seed)))
                seconds[key] += time.perf_counter() - began
    tolerance = CostTolerance.of(forwards["reduced"])
    best, _ = tolerance.best([end for found in ends.values() for end in found])
    assert best is not None, f"all starts of {name} failed"
    gone = observation_unknowns(problem).indices
    return [
        [
            problem.name,
            str(len(problem.unknowns)),
            str(len(gone) if key == "reduced" else 0),
            key,
            str(len(found)),
            str(sum(tolerance.same(end, best) for end in found)),
            f"{min(end.cost for end in found):.6g}",
            f"{statistics.median(end.cost for end in found):.6g}",
            str(sum(end.evaluations for end in found)),
            f"{seconds[key]:.1f}",
        ]
        for key, found in ends.items()
    ]


def _local(eliminate: bool) -> odefit.SingleShooting:
    """Return the local search of the default method."""
    return odefit.SingleShooting(
        evaluations=300, tolerance=1e-8, step=1e-7, patience=30, eliminate=eliminate
    )


HEAD = (
    *("problem", "unknowns", "eliminated", "search", "starts", "at the lowest cost"),
    *("lowest cost", "median cost", "gradients", "seconds"),
)
OPTIONS = (
    Option("problems", ("hiv-proteinase",), "problems; the library has one with such unknowns"),
    Option("starts", 10, "starts of each seed", least=1),
    Option("seeds", (0,), "seeds of the starts, e.g. 0,1"),
)


def tasks(problems: Sequence[str], **options: Any) -> list[Task]:
    return tasks_of("problem", problems, **options)


def run(task: Task) -> Mapping[str, Any]:
    return {"rows": rows_of(task["problem"], task["starts"], task["seeds"])}
