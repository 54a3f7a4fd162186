"""The run of a campaign, or its continuation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import closing
from pathlib import Path

from evidence.running.campaign import Campaign, Record, Task
from evidence.running.cluster_pool import run_tasks_over
from evidence.running.noted_interrupts import interrupts_noted
from evidence.running.output import write_outputs
from evidence.running.pool import run_tasks
from evidence.running.store import Store
from evidence.running.subset import balanced
from evidence.running.terminal import TerminalProgress, print_summary
from odefit.common.errors import InputError


def run_campaign(
    campaign: Campaign,
    out: str | Path,
    jobs: int | None = None,
    limit: int | None = None,
    executor: Executor | None = None,
) -> list[Record]:
    """Run what is not stored yet in `out`; write tables and figures there, print a summary.

    All that is stored, in the order of the campaign's tasks.
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
                workers = min(jobs or _cores(), max(len(todo), 1))
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
