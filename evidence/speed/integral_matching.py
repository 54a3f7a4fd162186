"""Milliseconds of a match, smoothing included: the separable problems on the library's exact data.

`IntegralMatching().match(problem)` from the default start; problems are loaded, and their linear
unknowns are already found. "First" reuses nothing from other series at the same times; "again" is
the match of a later data set of a study. With `against`, the same calls are made in a process with
another copy of odefit, taking turns. Times are medians, with the smallest in brackets.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence.running.campaign import Option, Task, tasks_of

PROBLEMS = ("seasonal-lotka-volterra", "sir", "gma", "fitzhugh-nagumo-separable")
WARM_UP = 3

# A process that matches the requested problem, and answers with the time
SERVER = """
import sys, time, odefit
problems = {name: odefit.library.load(name) for name in sys.argv[1:]}
method = odefit.IntegralMatching()
try:
    from odefit.methods.smoothing import few_splines, penalised_design
    kept = [few_splines._shared, few_splines._split, penalised_design._shared]
except ImportError:
    kept = []
for line in sys.stdin:
    name, when = line.split()
    if when == "first":
        for function in kept:
            function.cache_clear()
    began = time.perf_counter()
    match = method.match(problems[name])
    print(time.perf_counter() - began, match.evaluations, match.cost, flush=True)
"""


class Copy:
    """A copy of odefit in a separate process; `source` is None for the installed copy."""

    def __init__(self, source: Path | None) -> None:
        environment = dict(os.environ)
        if source is not None:
            environment["PYTHONPATH"] = str(source.resolve())
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *PROBLEMS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def match(self, problem: str, when: str) -> tuple[float, int, float]:
        """Milliseconds, evaluations and cost of a match."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(problem, when, file=self._process.stdin, flush=True)
        seconds, evaluations, cost = self._process.stdout.readline().split()
        return 1e3 * float(seconds), int(evaluations), float(cost)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def shown(values: Sequence[float]) -> str:
    """Median and least."""
    return f"{statistics.median(values):.2f} ({min(values):.2f})"


HEAD = ("problem", "evaluations", "first, ms", "again, ms", "other copy, ms", "other / again")
OPTIONS = (
    Option("repeats", 60, "matches that count", least=1),
    Option("against", "", "src folder of another copy of odefit"),
)


def tasks(**options: Any) -> list[Task]:
    return tasks_of("problem", PROBLEMS, **options)


def run(task: Task) -> Mapping[str, Any]:
    own = Copy(None)
    other = Copy(Path(task["against"])) if task["against"] else None
    times: dict[str, list[float]] = {"first": [], "again": [], "other": []}
    evaluations = 0
    for turn in range(task["repeats"] + WARM_UP):
        asked = [(own, "first"), (own, "again"), *([(other, "other")] if other else [])]
        for copy, when in asked:
            milliseconds, evaluations, _ = copy.match(task["problem"], when)
            if turn >= WARM_UP:
                times[when].append(milliseconds)
    row = [task["problem"], str(evaluations), shown(times["first"]), shown(times["again"])]
    if other is not None:
        ratio = statistics.median(times["other"]) / statistics.median(times["again"])
        row += [shown(times["other"]), f"{ratio:.1f}"]
        other.close()
    own.close()
    return {"rows": [row]}
