"""A campaign of starts over a Dask cluster, two of whose workers are killed during the run.

kills
    Multi-start of ``harmonic`` of the library with 5 % noise: all starts over four workers (``dask
    worker`` with one thread each); one of them gets SIGKILL after a fifth of the starts, another
    after half of them. With `nannies` Dask replaces them, without it two remain. The same starts
    are then made in this process alone. The script ends with an error unless every start is present
    once and all its numbers are equal to the last bit.
overhead
    Starts that keep the processor busy for `own` seconds each and do nothing else, over two
    workers. The wall-time overhead is the workers' time less the starts' own; it needs a core for
    each worker and a quiet machine. The processor-time overhead is the time of this process, the
    scheduler and the workers less the starts' own; it is valid on a busy machine, too.
speed-up
    The same starts over one worker and over two, in turns, `repeats` times; ratio of the medians of
    wall time. It needs two idle cores.

Each part begins with a run that is not counted, in which workers import and compile. A worker's
start of a campaign, which takes about a second, is not part of the figures.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import psutil

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import seconds
from evidence.running.output import listed
from odefit import Control, ForwardMap, Progress, Start, Status
from odefit.methods.running.workers import Workers
from odefit.methods.start_pool import run_starts

KILLED_AFTER = (0.2, 0.5)  # shares of the starts after which a worker is killed
UNEQUAL = ("seconds",)  # the entries of a start that depend on the clock


@dataclass(frozen=True)
class Cluster:
    """A scheduler and its workers, as processes, and a client of them."""

    client: Any
    scheduler: psutil.Process
    workers: list[psutil.Process]

    def kill_one(self) -> int:
        """End a worker by SIGKILL, and return its process number."""
        numbers = sorted(self.client.run(os.getpid).values())
        os.kill(numbers[0], signal.SIGKILL)
        return int(numbers[0])

    def processor(self) -> float:
        """Return the processor seconds of this process, the scheduler and all workers so far."""
        every = [psutil.Process(), self.scheduler, *self.workers]
        return sum(sum(process.cpu_times()[:2]) for process in every)


@contextmanager
def cluster(workers: int, nannies: bool = False) -> Iterator[Cluster]:
    """Start a Dask cluster on this machine by its commands, and end it."""
    import distributed

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    paths = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    python = [sys.executable, "-m"]
    commands = [
        [*python, "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard"],
        *[
            [
                *python, "distributed.cli.dask_worker", address, "--nthreads", "1",
                "--no-dashboard", "--nanny" if nannies else "--no-nanny",
            ]
            for _ in range(workers)
        ],
    ]  # fmt: skip
    running = [subprocess.Popen(command, env=environment, **quiet) for command in commands]  # type: ignore[call-overload]
    connect: Any = distributed.Client
    try:
        with connect(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)
            every = [psutil.Process(process.pid) for process in running]
            yield Cluster(client, every[0], every[1:])
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:  # the worker waits for a scheduler that has ended
                process.kill()
                process.wait()


def same(one: Start, other: Start) -> bool:
    """Return whether two starts are equal to the last bit, except their seconds."""
    for part in fields(Start):
        mine, theirs = getattr(one, part.name), getattr(other, part.name)
        if isinstance(mine, np.ndarray):
            if not np.array_equal(mine, theirs, equal_nan=True):
                return False
        elif (
            part.name not in UNEQUAL and mine != theirs and not (mine != mine and theirs != theirs)
        ):
            return False
    return True


def kills(starts: int, nannies: bool) -> dict[str, Any]:
    """Return the outcome of a campaign over four workers, two of them killed."""
    problem = odefit.library.load("harmonic", noise=0.05, seed=1)
    method = odefit.MultiStart(starts=starts, screening=2)
    shares: list[tuple[Any, ...]] = []

    class Shares(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if str(record.msg).startswith("worker %s"):
                shares.append(record.args)  # type: ignore[arg-type]

    logger = logging.getLogger("odefit")
    logger.setLevel(logging.INFO)
    handler = Shares()
    logger.addHandler(handler)
    with cluster(4, nannies) as four:
        killed: list[int] = []

        def kill(progress: Progress) -> None:
            due = sum(progress.done >= share * starts for share in KILLED_AFTER)
            if len(killed) < due:
                killed.append(four.kill_one())

        control = Control(seed=1, executor=four.client.get_executor(), report=kill)
        began = time.perf_counter()
        there = method.solve(problem, control)
        spent = time.perf_counter() - began
    logger.removeHandler(handler)
    began = time.perf_counter()
    here = method.solve(problem, Control(seed=1, jobs=1))
    alone = time.perf_counter() - began
    numbers = [start.index for start in there.starts]
    if numbers != list(range(starts)):
        raise RuntimeError(f"starts are missing or there twice: {len(numbers)} of {starts}")
    pairs = zip(there.starts, here.starts, strict=True)
    different = [one.index for one, other in pairs if not same(one, other)]
    if different or there.message != here.message:
        raise RuntimeError(f"starts differ: {different[:10]}; {there.message}; {here.message}")
    done = sum(share[1] for share in shares)
    rows = [[str(s[0]).partition("/")[2], str(s[1]), seconds(s[2]), seconds(s[3])] for s in shares]
    note = (
        f"{starts} starts over four workers, {len(killed)} of them killed"
        f"{' and replaced' if nannies else ''}: every start once, all numbers the same to the last "
        f"bit as in one process; {there.message}. {len(shares)} worker processes answered for "
        f"{done} starts. {seconds(spent)} s; {seconds(alone)} s in one process. "
        f"{'; '.join(control.remarks)}"
    )
    return {"rows": rows, "notes": [note]}


@dataclass(frozen=True)
class Busy:
    """Starts that keep the processor busy for a known time."""

    own: float

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        began = time.thread_time()
        while time.thread_time() - began < self.own:
            pass
        point = np.zeros(len(forward.problem.unknowns))
        return Start(index, point, point, 0.0, Status.CONVERGED, "busy", 1, self.own, 0.0)


def busy(one: Cluster, forward: ForwardMap, starts: int, own: float) -> tuple[float, float]:
    """Return wall seconds and processor seconds of a campaign of busy starts."""
    control = Control(executor=one.client.get_executor())
    search, before = Busy(own), one.processor()
    began = time.perf_counter()
    with Workers(control) as workers:
        tasks = ((search, index, control) for index in range(starts))
        found = [position for position, *_ in run_starts(tasks, forward, workers, control, starts)]
    spent = time.perf_counter() - began
    if sorted(found) != list(range(starts)):
        raise RuntimeError("starts are missing")
    return spent, one.processor() - before


def overhead(starts: int, own: float, repeats: int) -> dict[str, Any]:
    """Return the overhead of a start over two workers."""
    forward = ForwardMap(odefit.library.load("harmonic", noise=0.05, seed=1))
    rows = []
    with cluster(2) as two:
        busy(two, forward, 50, own)
        for _ in range(repeats):
            spent, used = busy(two, forward, starts, own)
            clock, processor = 2 * spent / starts - own, used / starts - own
            rows.append([f"{1e3 * clock:.2f}", f"{1e3 * processor:.2f}", seconds(spent)])
    middle = statistics.median(float(row[1]) for row in rows)
    note = (
        f"{starts} starts of {1e3 * own:g} ms over two workers: overhead per start, in ms; "
        f"{middle:.2f} ms of the processor in the median."
    )
    return {"rows": rows, "notes": [note]}


def speed_up(starts: int, own: float, repeats: int) -> dict[str, Any]:
    """Return the speed-up of two workers over one."""
    forward = ForwardMap(odefit.library.load("harmonic", noise=0.05, seed=1))
    taken: dict[int, list[float]] = {1: [], 2: []}
    for repeat in range(repeats):
        for count in (1, 2) if repeat % 2 == 0 else (2, 1):
            with cluster(count) as used:  # another cluster beside it would not be idle
                busy(used, forward, 50, own)
                spent, _ = busy(used, forward, starts, own)
            taken[count].append(spent)
    rows = [
        [
            str(count),
            seconds(statistics.median(own_)),
            f"{seconds(min(own_))} to {seconds(max(own_))}",
        ]
        for count, own_ in taken.items()
    ]
    ratio = statistics.median(taken[1]) / statistics.median(taken[2])
    note = (
        f"{starts} starts of {1e3 * own:g} ms, {repeats} runs each in turns: two workers are "
        f"{ratio:.2f} times as fast as one."
    )
    return {"rows": rows, "notes": [note]}


HEADS = {
    "kills": ("worker process", "starts", "seconds", "processor seconds"),
    "overhead": ("by the clock", "by the processor", "seconds of the campaign"),
    "speed-up": ("workers", "seconds", "least to most"),
}
OPTIONS = (
    Option("parts", tuple(HEADS), "parts, e.g. overhead", HEADS),
    Option("starts", 5000, "starts of a campaign", least=1),
    Option("own", 0.01, "seconds of a busy start", above=0),
    Option("repeats", 3, "runs of what is timed", least=1),
    Option("nannies", False, "whether Dask replaces killed workers, yes or no"),
)


def tasks(parts: Sequence[str], **options: Any) -> list[Task]:
    return tasks_of("part", parts, **options)


def run(task: Task) -> dict[str, Any]:
    if task["part"] == "kills":
        return kills(task["starts"], task["nannies"])
    timed = overhead if task["part"] == "overhead" else speed_up
    return timed(task["starts"], task["own"], task["repeats"])


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    return {r.task["part"]: listed(HEADS[r.task["part"]], [r]) for r in records}
