"""Branch and bound over boxes with one worker and with more: equality of the bounds, and times.

alpha-pinene
    Real data, discretised by 1,230 equal trapezoidal steps to t = 36,900; five rates within
    [1e-6, 1e-3].
lotka-volterra
    lotka-volterra-p of the library with 5 % noise, in continuous time; parameters within a
    factor of 2 of the truth.
the textbook systems
    As in the campaign `certificates`, in continuous time, from the truth.

Each repetition runs the same fit with every number of workers, one after the other and in both
orders. One worker is this process. Several are this process with others of its own, or with the
option `pool` a ``ProcessPoolExecutor`` of so many; their start counts. All seconds are wall time,
so no other work should run: "busy" is the number of processors that other processes used meanwhile.

"Whole fit" is :func:`odefit.fit`, with the local search that comes first and the assessment of the
answer at the end; "boxes" is the time from the end of the local search to the last box, the part
that workers can shorten. Ratios are those of the medians, one worker over several. The script ends
with an error unless bounds, values and the numbers of boxes evaluated and left after every chunk
are equal to the last bit.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import odefit
from evidence.bounds.textbook import SYSTEMS
from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import seconds
from evidence.zoo.drawing import sampled
from odefit.discretisation.mesh import UniformMesh
from odefit.problem import problem_from_mapping

RATES = {"lower": 1e-6, "upper": 1e-3}
STEPS, FINAL = 1230, 36_900.0
NOISE, FACTOR = 0.05, 2.0


@dataclass(frozen=True)
class Part:
    """A problem with bounds, and options of the method, such as its discretisation."""

    problem: odefit.Problem
    options: Mapping[str, Any]


def textbook(system: str) -> Part:
    drawn = sampled(system, SYSTEMS[system], 0)
    problem = problem_from_mapping(drawn.mapping)
    return Part(problem, {"start": tuple(drawn.truth[key] for key in problem.keys)})


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
    **{system: partial(textbook, system) for system in SYSTEMS},
}
LONG = ("toggle-switch", "brusselator", "seir", "enzyme")  # searches of half a minute


@dataclass(frozen=True)
class Found:
    """The results that may not depend on the number of workers; the log has a line a chunk."""

    lower: float
    upper: float
    boxes: int
    closed: bool
    unknowns: tuple[float, ...]
    log: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Run:
    """The result of a fit, its wall seconds, and those of them that were spent on boxes.

    `busy` is the number of processors that other processes used.
    """

    found: Found
    whole: float
    boxes: float
    busy: float


def processor_seconds() -> tuple[float, float]:
    """Return processor seconds of the whole machine, and of this process with ended children."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split()[1:8]
    user, nice, system, _, _, *interrupts = map(float, fields)
    machine = (user + nice + system + sum(interrupts)) / 100
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return machine, sum(one.ru_utime + one.ru_stime for one in used)


def fitted(problem: odefit.Problem, method: odefit.BranchAndBound, workers: int, pool: bool) -> Run:
    log: list[str] = []

    def note(progress: odefit.Progress) -> None:
        if "boxes" in progress.message:
            log.append(progress.message)

    began, (machine, own) = time.perf_counter(), processor_seconds()
    with ProcessPoolExecutor(workers) if pool and workers > 1 else nullcontext() as executor:
        result = odefit.fit(problem, method, seed=1, executor=executor, jobs=workers, progress=note)
    spent, (machine_after, own_after) = time.perf_counter() - began, processor_seconds()
    busy = max(machine_after - machine - (own_after - own), 0.0) / spent
    bounds, end = result.assessment.bounds, result.starts[0]
    if bounds is None:
        raise RuntimeError(f"no bounds: {result.message}")
    unknowns = tuple(end.vector.tolist())
    found = Found(bounds.lower, bounds.upper, end.evaluations, bounds.closed, unknowns, tuple(log))
    return Run(found, spent, bounds.history[-1].seconds - bounds.history[0].seconds, busy)


def taken(
    problem: odefit.Problem,
    method: odefit.BranchAndBound,
    workers: Sequence[int],
    repeats: int,
    pool: bool,
) -> list[list[Run]]:
    runs: list[list[Run]] = [[] for _ in workers]
    for repeat in range(repeats):
        turn = list(enumerate(workers))
        for k, count in turn if repeat % 2 == 0 else turn[::-1]:
            run = fitted(problem, method, count, pool)
            runs[k].append(run)
    return runs


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
        rows.append([*row, f"{max(run.busy for run in own):.2f}"])
    return rows


HEAD = ("problem", "workers", "whole fit, s", "ratio", "boxes, s", "ratio", "busy")
OPTIONS = (
    Option("parts", LONG, "problems, e.g. alpha-pinene", PARTS),
    Option("workers", (1, 2), "numbers of workers, e.g. 1,2,4", least=1),
    Option("repeats", 1, "runs with each number of workers", least=1),
    Option("gap", 0.01, "relative gap at which to stop", above=0),
    Option("pool", "no", "whether workers are a ProcessPoolExecutor", ("yes", "no")),
    Option("limit", 600.0, "seconds for a fit", above=0),
)


def tasks(parts: Sequence[str], **options: Any) -> list[Task]:
    return tasks_of("part", parts, **options)


def run(task: Task) -> Mapping[str, Any]:
    name, part = task["part"], PARTS[task["part"]]()
    options = {"starts": 1, **part.options}
    method = odefit.BranchAndBound(**options, gap=task["gap"], seconds=task["limit"])
    pool = task["pool"] == "yes"
    runs = taken(part.problem, method, task["workers"], task["repeats"], pool)
    different = {one.found for own in runs for one in own}
    if len(different) > 1:
        raise RuntimeError(f"{name}: the answers are not the same: {different}")
    found = different.pop()
    note = (
        f"{name}, gap {task['gap']:g}: {found.boxes} boxes, "
        f"{found.lower:.6g} <= optimum <= {found.upper:.6g}, "
        f"{'closed' if found.closed else 'not closed'}; "
        f"{task['repeats']} runs each, the same answer to the last bit."
    )
    return {"rows": rows_of(name, task["workers"], runs), "notes": [note]}
