"""Milliseconds of a match, smoothing included: the separable problems on the library's exact data.

    python -m evidence.speed.integral_matching [--repeats 60] [--against OTHER/src] [--out FILE.md]

`IntegralMatching().match(problem)` from the default start; problems are loaded, and what their
equations tell (which unknowns are linear) is known. "First" is without anything kept of other
series at the same times, "again" is how data sets after the first of a study are matched. With
`--against`, the same calls are made in a process with another copy of odefit, taking turns.
Medians; in brackets the least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from evidence.running.processes import machine, markdown, publish

PROBLEMS = ("seasonal-lotka-volterra", "sir", "gma", "fitzhugh-nagumo-separable")
WARM_UP = 3

# A process that matches the problem that it is asked for, and answers with the time it took
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
    """A copy of odefit in a process of its own; `source` is None for the one installed here."""

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


def rows(repeats: int, other: Copy | None) -> list[list[str]]:
    """A row for every problem."""
    own = Copy(None)
    found = []
    for problem in PROBLEMS:
        times: dict[str, list[float]] = {"first": [], "again": [], "other": []}
        evaluations = 0
        for turn in range(repeats + WARM_UP):
            asked = [(own, "first"), (own, "again"), *([(other, "other")] if other else [])]
            for copy, when in asked:
                milliseconds, evaluations, _ = copy.match(problem, when)
                if turn >= WARM_UP:
                    times[when].append(milliseconds)
        row = [problem, str(evaluations), shown(times["first"]), shown(times["again"])]
        if other is not None:
            ratio = statistics.median(times["other"]) / statistics.median(times["again"])
            row += [shown(times["other"]), f"{ratio:.1f}"]
        found.append(row)
    own.close()
    return found


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    other = Copy(options.against) if options.against is not None else None
    header = ["problem", "evaluations", "first, ms", "again, ms"]
    header += ["the other copy, ms", "other / again"] if other is not None else []
    table = markdown(header, rows(options.repeats, other))
    if other is not None:
        other.close()
    publish(f"{table}\n\n{machine()}", options.out)


if __name__ == "__main__":
    main()
