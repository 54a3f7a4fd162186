"""Read mutated inputs of every kind: each is refused in a sentence, or is a usable problem.

    python tools/mutated_inputs.py [--count 2000] [--seed 1] [--jobs 1] [--kinds problem,table]
    python tools/mutated_inputs.py --count 20000 --state FILE
    python tools/mutated_inputs.py --case table:17 --keep FOLDER

With `--state`, a file with a line for each outcome, a run continues where it was stopped.

Every case is read by the functions that users run, in a process with limited memory. Faults are: an
exception other than InputError; more than 10 seconds; more memory than 200 MB and 20 times its
files; a message without place or reason, or with characters that control a terminal; a connection,
a started program or an opened file that was not named; the end of the process; and a wrong success,
an input that was accepted with an impossible meaning. The exit status is 1 if there was any.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from guarded_worker import FAULTS, Outcome, serve
from kinds_of_inputs import KINDS

LIMIT = 10.0
"""Seconds of processor time after which a case counts as hanging."""

WAITING_LIMIT = 90.0
"""The same limit for seconds of waiting with a free processor, if the system counts these."""

LONGER = {"checkpoint": 20.0}
"""Seconds for cases that compute, such as a fit."""

PREPARATION = 600.0
"""Seconds for the preparation of a kind."""


class Worker:
    """A process that runs one case after another."""

    def __init__(self, seed: int, keep: Path | None) -> None:
        self.seed, self.keep = seed, keep
        self.task: tuple[str, int] | None = None
        self.ready = False
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, other = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=serve, args=(other, self.seed, self.keep), daemon=True
        )
        self.process.start()
        other.close()

    def begin(self, task: tuple[str, int]) -> None:
        """Send a case."""
        self.task, self.ready = task, False
        self._count_from_here()
        self.connection.send(task)

    def _count_from_here(self) -> None:
        self.began, self.spent = time.monotonic() - self._queued(), self._spent()

    def _queued(self) -> float:
        """Return the seconds in which the ready process waited for a processor."""
        try:
            text = Path(f"/proc/{self.process.pid}/schedstat").read_text(encoding="utf-8")
        except OSError:
            return 0.0  # another system than Linux, or an ended process
        return int(text.split()[1]) / 1e9

    def _spent(self) -> float:
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return float(times.user + times.system)

    def receive(self) -> Outcome | None:
        """Return the received outcome, or that of an ended process."""
        try:
            found = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._ended()
        if found == "ready":
            self.ready = True
            self._count_from_here()
            return None
        assert isinstance(found, Outcome)
        return found

    def _ended(self) -> Outcome:
        self.process.join()
        code = self.process.exitcode
        self.connection.close()
        self._start()
        return Outcome("crash", f"the process ended with status {code}", "", 0, 0.0)

    def overdue(self) -> Outcome | None:
        """End a process whose case takes too long, and return this outcome."""
        assert self.task is not None
        if not self.process.is_alive() and not self.connection.poll():
            return self._ended()  # a process started by it keeps the connection open
        limit = LONGER.get(self.task[0], LIMIT) if self.ready else PREPARATION
        waited = time.monotonic() - self._queued() - self.began
        spent = self._spent() - self.spent
        if spent < limit and waited < max(WAITING_LIMIT, 2 * limit):
            return None
        self.process.kill()
        self.process.join()
        self.connection.close()
        self._start()
        return Outcome(
            "hang", f"{spent:.0f} s of processor time, {waited:.0f} s in all", "", 0, spent
        )


def tasks(kinds: list[str], count: int) -> list[tuple[str, int]]:
    """Return numbers of cases by kind, spread evenly over the run."""
    total = sum(KINDS[name].share for name in kinds)
    found = []
    for name in kinds:
        share = max(1, round(count * KINDS[name].share / total))
        found += [((i + 0.5) / share, name, i) for i in range(share)]
    return [(name, i) for _, name, i in sorted(found)]


def stored(state: Path | None, seed: int) -> dict[tuple[str, int], Outcome]:
    """Return the outcomes in a file for cases of this seed, by kind and number."""
    if state is None or not state.exists():
        return {}
    lines = map(json.loads, state.read_text(encoding="utf-8").splitlines())
    return {
        (one["name"], one["number"]): Outcome(**one["outcome"])
        for one in lines
        if one["seed"] == seed
    }


def store(state: Path, seed: int, task: tuple[str, int], outcome: Outcome) -> None:
    """Write an outcome as a line of a file, which :func:`stored` reads."""
    one = {"seed": seed, "name": task[0], "number": task[1], "outcome": asdict(outcome)}
    with state.open("a", encoding="utf-8") as file:
        file.write(json.dumps(one) + "\n")


def run(
    todo: list[tuple[str, int]],
    seed: int,
    jobs: int,
    keep: Path | None,
    show: int,
    done_one: Callable[[tuple[str, int], Outcome], None],
) -> dict[str, list[tuple[int, Outcome]]]:
    """Run all cases, and report each when it ends; return their outcomes by kind."""
    workers = [Worker(seed, keep) for _ in range(min(jobs, len(todo)))]
    pending = iter(todo)
    outcomes: dict[str, list[tuple[int, Outcome]]] = defaultdict(list)
    shown: Counter[str] = Counter()
    busy = []
    for worker in workers:
        worker.begin(next(pending))
        busy.append(worker)
    while busy:
        try:
            arrived = wait_for([w.connection for w in busy], timeout=1.0)
        except KeyboardInterrupt:
            print("interrupted: the report covers the cases until then")
            break
        for worker in list(busy):
            found = worker.receive() if worker.connection in arrived else worker.overdue()
            if found is None:
                continue
            assert worker.task is not None
            name, number = worker.task
            outcomes[name].append((number, found))
            done_one(worker.task, found)
            if found.verdict in FAULTS:
                sort = f"{name} {found.verdict} {found.text.strip()[-120:]}"
                shown[sort] += 1
                if shown[sort] <= 2 and len(shown) <= show:
                    print(f"FAULT {name}:{number} {found.verdict}: {found.detail}\n{found.text}\n",
                          flush=True)  # fmt: skip
            done = sum(map(len, outcomes.values()))
            if done % 1000 == 0:
                print(f"{done} of {len(todo)}", file=sys.stderr, flush=True)
            task = next(pending, None)
            if task is None:
                busy.remove(worker)
                worker.connection.close()
                worker.process.join()
            else:
                worker.begin(task)
    return outcomes


def table(outcomes: dict[str, list[tuple[int, Outcome]]]) -> str:
    """Return the outcomes by kind as a table in Markdown."""
    columns = ("refused", "same", "another", *FAULTS)
    lines = [
        f"| kind | cases | {' | '.join(columns)} | peak MiB | slowest s |",
        "|---|" + "---:|" * (len(columns) + 3),
    ]
    every = [("all", [o for found in outcomes.values() for o in found])]
    for name, found in [*outcomes.items(), *every]:
        counts = Counter(str(o.verdict) for _, o in found)
        memory = max((o.memory for _, o in found), default=0) / 2**20
        slowest = max((o.seconds for _, o in found), default=0.0)
        cells = [name, str(len(found)), *(str(counts[c]) for c in columns)]
        lines.append(f"| {' | '.join(cells)} | {memory:.0f} | {slowest:.1f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Mutate inputs, read them, and print the outcomes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS), help="names, separated by commas")
    parser.add_argument("--case", metavar="KIND:NUMBER", help="run this one alone")
    parser.add_argument("--keep", type=Path, help="copy the files of every case to this folder")
    parser.add_argument("--show", type=int, default=60, help="sorts of faults that are shown")
    parser.add_argument("--state", type=Path, help="keep outcomes here, and go on from them")
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    options = parser.parse_args(arguments)
    todo = tasks(options.kinds.split(","), options.count)
    if options.case:
        name, _, number = options.case.partition(":")
        todo = [(name, int(number))]
    known = {} if options.case else stored(options.state, options.seed)

    def done_one(task: tuple[str, int], outcome: Outcome) -> None:
        if options.state is not None:
            store(options.state, options.seed, task, outcome)

    left = [task for task in todo if task not in known]
    outcomes = run(left, options.seed, options.jobs, options.keep, options.show, done_one)
    for name, number in todo:
        if outcome := known.get((name, number)):
            outcomes[name].append((number, outcome))
    if options.case:
        print(next(iter(outcomes.values()))[0][1])
    if options.json is not None:
        plain: dict[str, Any] = {
            name: [[n, o.verdict, o.text, o.detail, o.memory, o.seconds] for n, o in found]
            for name, found in outcomes.items()
        }
        options.json.write_text(json.dumps(plain), encoding="utf-8")
    print(table(outcomes))
    faults = sum(o.verdict in FAULTS for found in outcomes.values() for _, o in found)
    return 1 if faults else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the table of the finished cases
    sys.exit(main())
