"""The run of a campaign, or its continuation."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from itertools import combinations
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

from evidence.running.campaign import Campaign, Record, Task
from evidence.running.cluster_pool import run_tasks_over
from evidence.running.output import write_outputs
from evidence.running.pool import run_tasks
from evidence.running.store import Store
from evidence.running.terminal import TerminalProgress, print_summary
from odefit.common.errors import InputError


def run_campaign(
    campaign: Campaign,
    out: str | Path,
    jobs: int | None = None,
    limit: int | None = None,
    executor: Executor | None = None,
) -> list[Record]:
    """Run the tasks not stored yet in `out`; write tables and figures there, print a summary.

    ``results.sqlite`` in `out` stores every result at once, so that the same call resumes after a
    kill at any moment. `jobs` processes work; None is one for each core, or a single process if
    tasks are timed. `limit` tasks are spread evenly over all, and stored results count. Return all
    stored records, in the order of the campaign's tasks.

    Raises
    ------
    InputError
        The directory is unusable, or the numbers are not positive.
    KeyboardInterrupt
        After Ctrl-C, when the tables of all stored results are written. Another Ctrl-C until then
        has no effect.
    """
    for name, number in (("jobs", jobs), ("limit", limit)):
        if number is not None and number < 1:
            raise InputError(f"{name}: expected a positive whole number, got {number}")
    folder = Path(out)
    tasks = campaign.tasks()
    _check_keys(tasks)
    chosen = balanced(tasks, limit)
    with interrupts_noted() as interrupted:
        with Store(folder, campaign) as store:
            stored = store.records(chosen)
            have = {r.key for r in stored}
            todo = [t for t in chosen if t["key"] not in have]
            with TerminalProgress(len(chosen), stored) as progress:
                workers = min(jobs or (1 if campaign.alone else _cores()), max(len(todo), 1))
                running_tasks = (
                    run_tasks(campaign, todo, workers, interrupted)
                    if executor is None
                    else run_tasks_over(executor, campaign, todo, interrupted)
                )
                with closing(running_tasks) as running:
                    for record in running:
                        store.add(record)
                        progress(record)
            records = store.records(tasks)
        written = write_outputs(campaign, records, folder) if records else {}
        print_summary(campaign, folder, records, len(tasks), written)
    if interrupted.is_set():
        raise KeyboardInterrupt
    return records


def _check_keys(tasks: Sequence[Task]) -> None:
    keys = [t["key"] for t in tasks]
    if len(set(keys)) < len(keys):
        twice = next(k for k in keys if keys.count(k) > 1)
        raise ValueError(f"two tasks have the key {twice!r}")


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def interrupts_noted() -> Iterator[threading.Event]:
    """Let any number of Ctrl-C set the event and do nothing else.

    An exception at an arbitrary place would damage a campaign. Above all, extension modules do not
    tolerate it. An interrupted import of Matplotlib's ``ft2font`` leaves static objects that are
    destroyed after the interpreter, which then dies with "Fatal Python error: PyThreadState_Get".
    Outside the main thread, and where Ctrl-C is ignored, as in a shell's background jobs, nothing
    changes.
    """
    noted = threading.Event()
    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT)
    if not main or previous in (None, signal.SIG_IGN):
        yield noted
        return
    signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, previous)


def balanced(tasks: Sequence[Task], limit: int | None) -> list[Task]:
    """Return `limit` of the tasks, in their order, spread evenly over the levels of every factor.

    Each next task has the levels, and then pairs of levels, that were taken least often. So the
    selection does not depend on chance, and that of a smaller limit is part of that of a larger
    limit.
    """
    if limit is None or limit >= len(tasks):
        return list(tasks)
    columns = _levels(tasks)
    pairs = [_joint(a, b) for a, b in combinations(columns, 2)]
    singles = [np.zeros(c.max() + 1) for c in columns]
    doubles = [np.zeros(p.max() + 1) for p in pairs]
    # break ties by a fixed shuffle, because the list's order would favour its own pattern
    shuffle = np.array([crc32(str(t["key"]).encode()) for t in tasks]) / 2**32
    taken = np.zeros(len(tasks), dtype=bool)
    for _ in range(limit):
        score = shuffle * 1e-3
        for column, count in zip(columns, singles, strict=True):
            score = score + 1e3 * count[column]
        for pair, count in zip(pairs, doubles, strict=True):
            score = score + count[pair] / max(len(pairs), 1)
        score[taken] = np.inf
        chosen = int(np.argmin(score))
        taken[chosen] = True
        for column, count in zip(columns, singles, strict=True):
            count[column[chosen]] += 1
        for pair, count in zip(pairs, doubles, strict=True):
            count[pair[chosen]] += 1
    return [task for task, mine in zip(tasks, taken, strict=True) if mine]


def _levels(tasks: Sequence[Task]) -> list[npt.NDArray[np.intp]]:
    """Return for every factor the number of its level in each task, shape (tasks,)."""
    names = dict.fromkeys(name for task in tasks for name in task if name != "key")
    columns = []
    for name in names:
        values = [json.dumps(task.get(name), sort_keys=True) for task in tasks]
        numbers = {value: i for i, value in enumerate(dict.fromkeys(values))}
        # an entry that is equal in all tasks, or different in all, is no factor
        if 1 < len(numbers) < len(tasks):
            columns.append(np.array([numbers[v] for v in values], dtype=np.intp))
    return columns


def _joint(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return np.asarray(a * (b.max() + 1) + b)
