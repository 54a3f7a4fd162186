"""What the elimination of scales, offsets and standard deviations gains, start by start.

    python -m evidence.speed.variable_projection [PROBLEM ...] [--starts 10] [--seeds 0 1]

A problem is the name of one in the library or a file: a problem file, or its mapping as JSON, of
which every `guess` is left out. Without any, it is the library's one with such unknowns. Each start
is run with and without the elimination, from the same points, in turn and in this process; both
searches have the options of the default method.

The table has the unknowns and how many of them are eliminated, the starts, those that end at the
lowest cost of all (as `odefit.fit` compares costs), the lowest cost and the median, and the
evaluations with gradient and the seconds of all starts together, with the choice of their points.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import odefit
from evidence.running.processes import machine, markdown
from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.problem import problem_from_mapping
from odefit.structure.observation_unknowns import observation_unknowns

HEADERS = (
    "problem", "unknowns", "eliminated", "search", "starts", "at the lowest cost", "lowest cost",
    "median cost", "gradients", "seconds",
)  # fmt: skip


def problem_named(name: str) -> odefit.Problem:
    """Return a problem of the library, or that of a file, without its guesses."""
    if name in odefit.library.names():
        return odefit.library.load(name)
    if Path(name).suffix != ".json":
        return odefit.load(name)
    mapping = json.loads(Path(name).read_text(encoding="utf-8"))
    for fields in mapping["parameters"].values():
        fields.pop("guess", None)
    return problem_from_mapping(mapping)


def rows_of(name: str, starts: int, seeds: list[int]) -> list[list[str]]:
    """Return the rows of the table for one problem."""
    problem = problem_named(name)
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=["hiv-proteinase"], metavar="PROBLEM")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    print(machine())
    rows = [
        row for name in options.problems for row in rows_of(name, options.starts, options.seeds)
    ]
    print(markdown(HEADERS, rows))


if __name__ == "__main__":
    main()
