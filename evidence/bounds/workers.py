"""Branch and bound over boxes with one worker and with more: the same bounds, in what time.

    OPENBLAS_NUM_THREADS=1 python -m evidence.bounds.workers
        [--parts alpha-pinene lotka-volterra] [--workers 1 2] [--repeats 5] [--gap 1e-3]
        [--chunk 256] [--limit 600] [--out FILE.md]

alpha-pinene
    Real data, discretised by 1,230 equal trapezoidal steps to t = 36,900; five rates within
    [1e-6, 1e-3].
lotka-volterra
    lotka-volterra-p of the library with 5 % noise, in continuous time; parameters within a
    factor of 2 of the truth.

Each repetition runs the same fit with every number of workers, one
after the other and in both orders: with one, all is done in this process; with more, boxes go to a
``ProcessPoolExecutor`` of so many, whose start counts. All seconds are wall time, so nothing else
should run.
Boxes are evaluated in batches, a batch is cut into chunks, and only a batch of more than one chunk
is shared: the report says how many are, and ``--chunk`` makes chunks smaller than the method's.

"Whole fit" is :func:`odefit.fit`, with the local search that comes first and the assessment of the
answer at the end; "boxes" is the time from the end of the local search to the last box, all that
workers can shorten. Ratios are those of the medians, one worker over so many. Bounds and
values have to be equal to the last bit, and so have the numbers of boxes evaluated and left after
every batch: the script ends with an error where they are not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import odefit
from evidence.running.processes import machine, markdown, publish, seconds
from odefit.discretisation.mesh import UniformMesh
from odefit.methods.branch_and_bound import node_evaluator

RATES = {"lower": 1e-6, "upper": 1e-3}
STEPS, FINAL = 1230, 36_900.0
NOISE, FACTOR = 0.05, 2.0


@dataclass(frozen=True)
class Part:
    """A problem with bounds, and the options of its discretisation, if there is one."""

    problem: odefit.Problem
    options: Mapping[str, Any]


def alpha_pinene() -> Part:
    """Return alpha-pinene, discretised."""
    problem = odefit.library.load("alpha-pinene")
    options = {"scheme": "trapezoid", "mesh": UniformMesh(STEPS, FINAL)}
    return Part(problem.with_parameters(**dict.fromkeys(problem.keys, RATES)), options)


def lotka_volterra() -> Part:
    """Return Lotka-Volterra in continuous time."""
    name = "lotka-volterra-p"
    true = odefit.library.reference(name).parameters
    near = {k: {"lower": v / FACTOR, "upper": v * FACTOR} for k, v in true.items()}
    problem = odefit.library.load(name, noise=NOISE, seed=1)
    return Part(problem.with_parameters(**near), {})


PARTS: Mapping[str, Callable[[], Part]] = {
    "alpha-pinene": alpha_pinene,
    "lotka-volterra": lotka_volterra,
}


@dataclass(frozen=True)
class Found:
    """All that must not depend on the number of workers; the log has a line for each batch."""

    lower: float
    upper: float
    boxes: int
    closed: bool
    unknowns: tuple[float, ...]
    log: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Run:
    """The result of a fit, its wall seconds, and those of them that were spent on boxes."""

    found: Found
    whole: float
    boxes: float


def fitted(problem: odefit.Problem, method: odefit.BranchAndBound, workers: int) -> Run:
    """Return one fit with this number of workers."""
    log: list[str] = []

    def note(progress: odefit.Progress) -> None:
        if "boxes" in progress.message:
            log.append(progress.message)

    began = time.perf_counter()
    if workers == 1:
        result = odefit.fit(problem, method, seed=1, jobs=1, progress=note)
    else:
        with ProcessPoolExecutor(workers) as pool:
            result = odefit.fit(problem, method, seed=1, executor=pool, progress=note)
    spent = time.perf_counter() - began
    bounds, end = result.assessment.bounds, result.starts[0]
    if bounds is None:
        raise SystemExit(f"no bounds: {result.message}")
    unknowns = tuple(end.vector.tolist())
    found = Found(bounds.lower, bounds.upper, end.evaluations, bounds.closed, unknowns, tuple(log))
    return Run(found, spent, bounds.history[-1].seconds - bounds.history[0].seconds)


def taken(
    problem: odefit.Problem, method: odefit.BranchAndBound, workers: Sequence[int], repeats: int
) -> list[list[Run]]:
    """Return the runs by number of workers."""
    runs: list[list[Run]] = [[] for _ in workers]
    for repeat in range(repeats):
        turn = list(enumerate(workers))
        for k, count in turn if repeat % 2 == 0 else turn[::-1]:
            run = fitted(problem, method, count)
            said = f"{seconds(run.whole)} s, boxes {seconds(run.boxes)} s"
            print(f"{count} workers: {said}, {run.found}", file=sys.stderr)
            runs[k].append(run)
    return runs


def batches(log: Sequence[str]) -> list[int]:
    """Return the number of boxes in each batch, from "N boxes, M left: ..."."""
    counts = [int(message.split()[0]) for message in log]
    return [after - before for before, after in pairwise(counts) if after > before]


def spread(values: Sequence[float]) -> str:
    """Return the median, the smallest and the largest value."""
    middle, ends = statistics.median(values), (min(values), max(values))
    return f"{seconds(middle)} ({seconds(ends[0])} to {seconds(ends[1])})"


def table(workers: Sequence[int], runs: Sequence[Sequence[Run]]) -> str:
    """Return a table of seconds and ratios by number of workers."""
    rows = []
    first = runs[0]
    for count, own in zip(workers, runs, strict=True):
        row = [str(count)]
        for name in ("whole", "boxes"):
            base, mine = ([getattr(run, name) for run in found] for found in (first, own))
            row += [spread(mine), f"{statistics.median(base) / statistics.median(mine):.2f}"]
        rows.append(row)
    return markdown(["workers", "whole fit, s", "ratio", "boxes, s", "ratio"], rows)


def measured(name: str, options: argparse.Namespace) -> str:
    """Return a sentence on the result, and the table."""
    part = PARTS[name]()
    method = odefit.BranchAndBound(**part.options, gap=options.gap, starts=1, seconds=options.limit)
    runs = taken(part.problem, method, options.workers, options.repeats)
    different = {run.found for own in runs for run in own}
    if len(different) > 1:
        raise SystemExit(f"{name}: the answers are not the same: {different}")
    found = different.pop()
    sizes = batches(found.log)
    shared = sum(size > options.chunk for size in sizes)
    return (
        f"{name}, gap {options.gap:g}: {found.boxes} boxes, "
        f"{found.lower:.6g} <= optimum <= {found.upper:.6g}, "
        f"{'closed' if found.closed else 'not closed'}; {shared} of {len(sizes)} batches have more "
        f"than a chunk of {options.chunk} and are shared (the largest has {max(sizes)}); "
        f"{options.repeats} runs each, the same answer to the last bit.\n\n"
        f"{table(options.workers, runs)}"
    )


def main() -> None:
    """Read the command line, run the fits, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--gap", type=float, default=1e-3, help="relative, at which to stop")
    parser.add_argument(
        "--chunk", type=int, default=node_evaluator.CHUNK_SIZE, help="boxes in a chunk"
    )
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a fit")
    parser.add_argument("--out", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    node_evaluator.CHUNK_SIZE = options.chunk
    found = [measured(name, options) for name in options.parts]
    publish("\n\n".join([*found, machine()]), options.out)


if __name__ == "__main__":
    main()
