"""The time of a default fit by the number of workers, from the measured times of its starts.

Problems of a collection are fitted on one core with a number of starts, without nominal values. The
starts of each batch are then given again to 1, 2, ... workers, in their order, each to the worker
that is free first. The work between batches and after the search stays in one process, and a batch
ends with its last start, as in a fit. Times are those of the processor. Sending is not counted.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import odefit
from evidence.peers.amici import problem_folders
from evidence.running.campaign import Option, Task, tasks_of
from odefit.formats.petab import read_petab
from odefit.methods.automatic import automatic
from odefit.methods.start_pool import run_starts


def with_workers(batches: Iterable[Sequence[float]], workers: int) -> float:
    """Return the seconds of batches of starts, one after the other, shared by some workers."""
    total = 0.0
    for batch in batches:
        free = [0.0] * workers
        for seconds in batch:
            heapq.heapreplace(free, free[0] + seconds)
        total += max(free)
    return total


def timed_batches(
    problem: odefit.Problem, starts: int, seed: int
) -> tuple[list[list[float]], float]:
    """Fit a problem; return the seconds of the starts by batch, and those of all other work."""
    batches: list[list[float]] = []

    def timed(*arguments: Any) -> Iterator[Any]:
        batch: list[float] = []
        batches.append(batch)
        began = time.process_time()
        for outcome in run_starts(*arguments):
            batch.append(time.process_time() - began)
            yield outcome
            began = time.process_time()

    began = time.process_time()
    with patch.object(automatic, "run_starts", timed):
        odefit.fit(problem, odefit.Automatic(starts=starts), seed=seed, jobs=1)
    return batches, time.process_time() - began - sum(map(sum, batches))


WORKERS = (2, 4, 8, 100)
HEAD = (
    *("problem", "unknowns", "starts", "processor, s", "share of starts"),
    *(f"{count} workers: times faster" for count in WORKERS),
)
OPTIONS = (
    Option("folder", "", "folder with a folder for each problem, as the collection has"),
    Option("models", (), "names of problems, e.g. Boehm_JProteomeRes2014"),
    Option("starts", 40, "starts of a fit", least=1),
    Option("seed", 1, "seed of the fits"),
)


def tasks(folder: str, models: tuple[str, ...], **options: Any) -> list[Task]:
    names = problem_folders(folder, models) if folder else []
    return tasks_of("model", names, folder=folder, **options)


def run(task: Task) -> Mapping[str, Any]:
    """Fit a problem once, and share its starts out among workers."""
    name = task["model"]
    problem = read_petab(Path(task["folder"]) / name / f"{name}.yaml").problem
    batches, rest = timed_batches(problem, task["starts"], task["seed"])
    alone = with_workers(batches, 1)
    counts = [len(problem.unknowns), sum(map(len, batches))]
    whole = rest + alone
    times = [f"{whole / (rest + with_workers(batches, count)):.1f}" for count in WORKERS]
    row = [name.split("_")[0], *map(str, counts), f"{whole:.0f}", f"{alone / whole:.2f}", *times]
    return {"rows": [row]}
