"""Branch and bound over boxes with one worker and with more: equality of the bounds, and times.

alpha-pinene
    Real data, discretised by 1,230 equal trapezoidal steps to t = 36,900; five rates within
    [1e-6, 1e-3].
lotka-volterra
    lotka-volterra-p of the library with 5 % noise, in continuous time; parameters within a
    factor of 2 of the truth.

Each repetition runs the same fit with every number of workers, one after the other and in both
orders. One worker is this process; several are a ``ProcessPoolExecutor``, whose start counts. All
seconds are wall time, so no other work should run. Boxes are evaluated in batches, a batch is cut
into chunks, and only a batch of more than one chunk is shared: a note gives their number, and the
option `chunk` makes chunks smaller.

"Whole fit" is :func:`odefit.fit`, with the local search that comes first and the assessment of the
answer at the end; "boxes" is the time from the end of the local search to the last box, the part
that workers can shorten. Ratios are those of the medians, one worker over several. The script ends
with an error unless bounds, values and the numbers of boxes evaluated and left after every batch
are equal to the last bit.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import odefit
from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import seconds
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
    """The results that may not depend on the number of workers; the log has a line a batch."""

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
        raise RuntimeError(f"no bounds: {result.message}")
    unknowns = tuple(end.vector.tolist())
    found = Found(bounds.lower, bounds.upper, end.evaluations, bounds.closed, unknowns, tuple(log))
    return Run(found, spent, bounds.history[-1].seconds - bounds.history[0].seconds)


def taken(
    problem: odefit.Problem, method: odefit.BranchAndBound, workers: Sequence[int], repeats: int
) -> list[list[Run]]:
    runs: list[list[Run]] = [[] for _ in workers]
    for repeat in range(repeats):
        turn = list(enumerate(workers))
        for k, count in turn if repeat % 2 == 0 else turn[::-1]:
            run = fitted(problem, method, count)
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


def rows_of(name: str, workers: Sequence[int], runs: Sequence[Sequence[Run]]) -> list[list[str]]:
    """Return seconds and ratios by number of workers."""
    rows = []
    first = runs[0]
    for count, own in zip(workers, runs, strict=True):
        row = [name, str(count)]
        for name in ("whole", "boxes"):
            base, mine = ([getattr(run, name) for run in found] for found in (first, own))
            row += [spread(mine), f"{statistics.median(base) / statistics.median(mine):.2f}"]
        rows.append(row)
    return rows


HEAD = ("problem", "workers", "whole fit, s", "ratio", "boxes, s", "ratio")
OPTIONS = (
    Option("parts", tuple(PARTS), "problems, e.g. alpha-pinene", PARTS),
    Option("workers", (1, 2), "numbers of workers, e.g. 1,2,4", least=1),
    Option("repeats", 5, "runs with each number of workers", least=1),
    Option("gap", 1e-3, "relative gap at which to stop", above=0),
    Option("chunk", node_evaluator.CHUNK_SIZE, "boxes in a chunk", least=1),
    Option("limit", 600.0, "seconds for a fit", above=0),
)


def tasks(parts: Sequence[str], **options: Any) -> list[Task]:
    return tasks_of("part", parts, **options)


def run(task: Task) -> Mapping[str, Any]:
    node_evaluator.CHUNK_SIZE = task["chunk"]
    name, part = task["part"], PARTS[task["part"]]()
    method = odefit.BranchAndBound(**part.options, gap=task["gap"], starts=1, seconds=task["limit"])
    runs = taken(part.problem, method, task["workers"], task["repeats"])
    different = {one.found for own in runs for one in own}
    if len(different) > 1:
        raise RuntimeError(f"{name}: the answers are not the same: {different}")
    found = different.pop()
    sizes = batches(found.log)
    shared = sum(size > task["chunk"] for size in sizes)
    note = (
        f"{name}, gap {task['gap']:g}: {found.boxes} boxes, "
        f"{found.lower:.6g} <= optimum <= {found.upper:.6g}, "
        f"{'closed' if found.closed else 'not closed'}; {shared} of {len(sizes)} batches have more "
        f"than a chunk of {task['chunk']} and are shared (the largest has {max(sizes)}); "
        f"{task['repeats']} runs each, the same answer to the last bit."
    )
    return {"rows": rows_of(name, task["workers"], runs), "notes": [note]}
