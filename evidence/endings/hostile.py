"""The command line under attack: kills, signals, workers, clocks, disks, streams, limits and files.

Every run is a separate process. A run is right if it ends in time, prints no traceback and leaves
no unfinished file. It must have the exit status and the files that ``docs/command-line.md`` and
``docs/security.md`` promise. Moments and sizes are drawn from the seed, the kind and the number of
the run: moments between the first line of ``main`` and the end of an undisturbed run. POSIX only; a
full disk is mounted, which needs root.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

import odefit
from evidence import commits
from evidence.endings.hostile_commands import (
    COMMANDS,
    ENDING,
    ENDING_SIGNALS,
    FIT,
    PATIENCE,
    command,
    ended,
    has_signal,
    in_main,
    prepare,
    seconds,
    wrong,
)
from evidence.endings.hostile_files import KERNELS, KINDS, MOST_BYTES, MOST_SECONDS, MOST_TIMES
from evidence.endings.hostile_tables import counted
from evidence.running.campaign import Option, Record, Task
from evidence.running.measuring import processor
from odefit.common.errors import InputError

EACH = 2  # runs of a task, which are lost together if a campaign is stopped
EARLY = 0.5  # seconds after the first line of ``main`` in which half of the signals come
OURS = f"{os.sep}odefit{os.sep}"  # in the path of every file of odefit
BEFORE_MAIN = 0.05  # seconds of processor time in which Python starts, at most
WORKED = (0.0, 3.0)  # seconds after its preparation at which a worker is stopped
LATE = 30.0  # seconds after its limit at which a fit whose worker hangs has to have ended
JUMPING = "import random, time\nright = time.time\ntime.time = lambda: right() + random.choice("
JUMPING += "(-86400, 0, 86400))\n"  # a wall clock for `sitecustomize`, also of workers


@dataclass(frozen=True)
class Attempt:
    """One run: its kind and number, its random numbers, and its folder."""

    kind: str
    number: int
    drawn: random.Random
    folder: Path

    def moment(self, arguments: Sequence[str]) -> float:
        """Return a random moment before the end of a command; half of them are early."""
        whole = seconds(tuple(arguments))
        return self.drawn.uniform(0.0, min(EARLY, whole) if self.number % 2 else whole)


def by_signal(one: Attempt) -> str:
    """End a command by a signal, or by closing its terminal."""
    arguments = COMMANDS[one.kind]
    number = one.drawn.choice(ENDING_SIGNALS)
    moment = one.moment(arguments)
    process = command(arguments, one.folder)
    in_main(process)
    time.sleep(moment)
    process.send_signal(number)
    out, err = ended(process)
    fault = wrong(process, err, one.folder, (0, 128 + number))
    unsaved = out and "r.json" in arguments and not (one.folder / "r.json").exists()
    fault = fault or ("no result was written" if unsaved else "")
    return f"{number!r} at {moment:.3f} s: {fault}" if fault else ""


def by_early_signal(one: Attempt) -> str:
    """Signal a process that starts; before ``main`` Python's own response is allowed, too."""
    number = one.drawn.choice(ENDING_SIGNALS)
    moment = one.drawn.uniform(0.0, BEFORE_MAIN)
    process = command(COMMANDS[one.kind], one.folder)
    spent = psutil.Process(process.pid)
    with suppress(psutil.Error):
        while sum(spent.cpu_times()[:2]) < moment and not process.poll():
            time.sleep(0.001)
    process.send_signal(number)
    _, err = ended(process)
    # Python's own traceback, also of the import of `site`, before any line of odefit
    own = number == signal.SIGINT and process.returncode in (-number, 1) and OURS not in err
    allowed = (0, 128 + number, -number, *((1,) if own else ()))
    fault = wrong(process, "" if own else err, one.folder, allowed)
    return f"{number!r} at {moment:.3f} s: {fault}" if fault else ""


def by_clock(one: Attempt) -> str:
    """Run with a clock that jumps by a day; a fit must give the answer of a right clock.

    With a checkpoint the fit is killed under such a clock, and resumed under it.
    """
    (one.folder / "sitecustomize.py").write_text(JUMPING, encoding="utf-8")
    clock = {"PYTHONPATH": os.pathsep.join([str(one.folder), os.environ.get("PYTHONPATH", "")])}
    if one.kind in TIMED:
        process = command((*COMMANDS[one.kind], *TIMED[one.kind]), one.folder, env=clock)
        out, err = ended(process)
        other = "" if _timeless(out) == _printed(COMMANDS[one.kind]) else "another output"
        return wrong(process, err, one.folder, (0,)) or other
    jobs, kept = one.kind.split(", ")[0], "checkpoint" in one.kind
    arguments: tuple[str, ...] = (*FIT, "--jobs", jobs, "--seed", "1")
    right = _undisturbed(arguments)
    arguments += ("--time-limit", str(one.drawn.randrange(600, 900)))
    arguments += ("--checkpoint", "kept") if kept else ()
    if kept:
        _killed(arguments, one, env=clock)
    process = command(arguments, one.folder, env=clock)
    _, err = ended(process)
    if fault := wrong(process, err, one.folder, (0,), killed=kept):
        return fault
    found = _answer(one.folder)
    return "" if found == right else f"another answer: {right}, {found}"


@cache
def _undisturbed(arguments: Sequence[str]) -> Any:
    """Return the answer of an undisturbed fit or profile."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        process = command(arguments, Path(folder))
        _, err = ended(process)
        if process.returncode != 0:
            raise RuntimeError(f"{arguments} fails without an attack: {err}")
        return _answer(Path(folder))


@cache
def _printed(arguments: Sequence[str]) -> str:
    """Return the output of an undisturbed command."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        return _timeless(ended(command(arguments, Path(folder)))[0])


def _timeless(printed: str) -> str:
    """Return the output of a command without its seconds."""
    return re.sub(r"\d+\.?\d* s\b", "", printed)


def _killed(arguments: Sequence[str], one: Attempt, env: Mapping[str, str] | None = None) -> None:
    """Begin a command, and kill it with its workers at a random moment."""
    process = command(arguments, one.folder, env=dict(env or {}))
    in_main(process)
    time.sleep(one.drawn.uniform(0.0, seconds(tuple(arguments))))
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
    process.kill()
    process.communicate()


def _answer(folder: Path) -> Any:
    """Return unknowns and status of the result in a folder."""
    whole = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    return whole["parameters"], whole["status"], whole["objective"]


def by_kill(one: Attempt) -> str:
    """Kill work up to four times; its answer must then equal that of an undisturbed run."""
    name, jobs = one.kind.split(", ")
    arguments = (*COMMANDS[name], "--jobs", jobs, "--seed", "1")
    right = _undisturbed(arguments)
    arguments += ("--checkpoint", "kept")
    for _ in range(one.drawn.randrange(1, 5)):
        _killed(arguments, one)
    process = command(arguments, one.folder)
    _, err = ended(process)
    if fault := wrong(process, err, one.folder, (0,), killed=True):
        return fault
    found = _answer(one.folder)
    return "" if found == right else f"another answer: {right}, {found}"


def by_disk(one: Attempt) -> str:
    """Run a command in a folder on a full or read-only disk, or print to such a disk."""
    chosen = one.drawn.choice(ENDING)
    if one.kind == "full output":
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            process = command(COMMANDS[chosen], one.folder, stdout=full)
            _, err = ended(process)
        fault = wrong(process, err, one.folder, (0, 2))
        return f"{chosen}: {fault}" if fault else ""
    disk = one.folder / "disk"
    disk.mkdir()
    bytes_left = 4096 * one.drawn.randrange(0, 16)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    try:
        prepare(disk)
        if one.kind == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        else:
            free = shutil.disk_usage(disk).free - bytes_left
            (disk / "filled").write_bytes(b"x" * max(free, 0))
        process = command(COMMANDS[chosen], disk, scratch=one.folder)
        _, err = ended(process)
        fault = wrong(process, err, disk, (0, 2))
        told = process.returncode == 0 or err.strip()
        fault = fault or ("" if told else "no sentence")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    return f"{chosen}, {bytes_left} bytes: {fault}" if fault else ""


def by_workers(one: Attempt) -> str:
    """Stop a worker, with a time limit; or kill the parent, after which no process may stay."""
    name, how = one.kind.split(", ")
    limit = one.drawn.randrange(10, 16)
    moment = one.drawn.uniform(*WORKED)
    while True:
        arguments = (*PARALLEL[name], "--jobs", "2", "--time-limit", str(limit))
        process = command(arguments, one.folder)
        began, parent = time.monotonic(), psutil.Process(process.pid)
        while not (workers := _workers(parent)) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(moment)
        if process.poll() is None:
            break
        if limit > PATIENCE / 4:
            return f"it had ended before: {ended(process)[1][-200:]}"
        ended(process)
        limit *= 2  # the machine was too busy for an attack before this limit
    every = parent.children(recursive=True)
    with suppress(psutil.NoSuchProcess):
        workers[0].suspend()
    if how == "killed":
        process.kill()
        process.wait()
        _, left = psutil.wait_procs(every, timeout=5.0)
        for child in left:
            child.kill()
        process.communicate()
        return f"left: {len(left)} of {len(every)}" if left else ""
    _, err = ended(process)
    late = time.monotonic() - began - limit
    return wrong(process, err, one.folder, (4,)) or (f"{late:.0f} s late" if late > LATE else "")


def _workers(parent: psutil.Process) -> Sequence[psutil.Process]:
    """Return the workers of a fit that are ready, and so ignore Ctrl-C."""
    with suppress(psutil.Error, OSError):
        every = [c for c in parent.children() if "LokyProcess" in " ".join(c.cmdline())]
        return [c for c in every if has_signal(c.pid, "SigIgn", signal.SIGINT)]
    return ()


def by_stream(one: Attempt) -> str:
    """Close standard output or error of a command; its files must be complete."""
    chosen = one.drawn.choice(ENDING)
    process = command(COMMANDS[chosen], one.folder, first=lambda: os.close(int(one.kind)))
    _, err = ended(process)
    fault = wrong(process, err, one.folder, (0, 2) if one.kind == "1" else (0,))
    unwritten = "r.json" in COMMANDS[chosen] and not (one.folder / "r.json").exists()
    fault = fault or ("no result was written" if unwritten else "")
    return f"{chosen}: {fault}" if fault else ""


def by_limit(one: Attempt) -> str:
    """Limit the memory of a command or the size of its files; it must end with a sentence."""
    chosen = one.drawn.choice(ENDING)
    kind, size = LIMITS[one.kind]
    return _limited(one, chosen, kind, one.drawn.randrange(*size))


def by_address_space(one: Attempt) -> str:
    """Limit the address space of a command, from 300 MB to 600 MB by tens."""
    return _limited(one, one.kind, resource.RLIMIT_AS, 10_000_000 * (30 + one.number % 31))


def _limited(one: Attempt, chosen: str, kind: int, most: int) -> str:
    """Run a command within a limit; it must have a result or end with a sentence."""
    seconds(("--version",))  # Python stores the bytecode of modules imported before any limit
    process = command(
        COMMANDS[chosen], one.folder, first=lambda: resource.setrlimit(kind, (most, most))
    )
    _, err = ended(process)
    fault = wrong(process, err, one.folder, (0, 2))
    told = process.returncode == 0 or err.strip()
    fault = fault or ("" if told else "no sentence")
    return f"{chosen}, {most}: {fault}" if fault else ""


def by_file(one: Attempt) -> str:
    """Read a file that is far larger than usual."""
    kind = KINDS[one.kind]
    file = kind.write(one.folder, one.drawn.randrange(*kind.sizes))
    if kind.integrates:
        _compile_kernels(one.kind)
    process = command((*kind.call, file.name), one.folder)
    spent = psutil.Process(process.pid)
    largest, used = 0.0, 0.0
    while process.poll() is None:
        try:
            times = spent.cpu_times()
            used, largest = times.user + times.system, max(largest, spent.memory_info().rss)
        except psutil.Error:
            break
        time.sleep(0.05)
    _, err = ended(process)
    size = file.stat().st_size + sum((one.folder / n).stat().st_size for n in kind.beside)
    most = MOST_TIMES * size + MOST_BYTES + (KERNELS if kind.integrates else 0.0)
    slow = used > MOST_SECONDS or largest > most
    over = f"{used:.1f} s, {largest / 1e6:.0f} MB" if slow else ""
    return wrong(process, err, one.folder, kind.statuses) or over


@cache
def _compile_kernels(name: str) -> None:
    """Read the smallest file of a kind, which compiles all kernels in a new checkout."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        file = KINDS[name].write(Path(folder), KINDS[name].sizes[0])
        ended(command((*KINDS[name].call, file.name), Path(folder)))


TIMED: Mapping[str, Sequence[str]] = {
    "profile": ("--time-limit", "900"),
    "predict": (),
    "compare": (),
    "verify": (),
    "design": ("--time-limit", "900"),
    "sensitivity": ("--time-limit", "900"),
    "cross-validate": ("--time-limit", "900"),
}
"""Commands that run with a jumping clock, and their limits."""

LONG = str(odefit.library.path("hiv-proteinase"))
PARALLEL: Mapping[str, Sequence[str]] = {
    "fit": (*FIT, "--method", "multi-start", "--starts", "100000"),
    "profile": ("profile", LONG, "--json", "r.json"),
}
"""Commands whose workers are busy for a long time."""

LIMITS: Mapping[str, tuple[int, tuple[int, int]]] = {
    "memory": (resource.RLIMIT_AS, (150_000_000, 700_000_000)),
    "size of files": (resource.RLIMIT_FSIZE, (0, 4096)),
}
"""The limited resources, with ranges of sizes in bytes."""

ATTACKS: Mapping[str, tuple[Callable[[Attempt], str], Sequence[str]]] = {
    "kills": (by_kill, ("fit, 1", "fit, 2", "profile, 1")),
    "signals": (by_signal, tuple(COMMANDS)),
    "early signals": (by_early_signal, ("fit", "methods", "show")),
    "clocks": (by_clock, ("1", "2", "2, checkpoint", *TIMED)),
    "disks": (by_disk, ("full", "read-only", "full output")),
    "workers": (by_workers, tuple(f"{n}, {h}" for n in PARALLEL for h in ("stopped", "killed"))),
    "streams": (by_stream, ("1", "2")),
    "limits": (by_limit, tuple(LIMITS)),
    "address space": (by_address_space, ENDING),
    "files": (by_file, tuple(KINDS)),
}

OPTIONS = (
    Option("runs", (40,), "runs of each kind, or as many numbers as attacks, e.g. 40,8", least=1),
    Option("seed", 38, "seed of moments and sizes"),
    Option("attacks", tuple(ATTACKS), "attacks, e.g. signals", ATTACKS),
)


def tasks(runs: tuple[int, ...], seed: int, attacks: Sequence[str]) -> list[Task]:
    """Return a few runs of each kind, then a few more; a larger `runs` keeps earlier results."""
    if len(runs) not in (1, len(attacks)):
        raise InputError(f"runs: one number or {len(attacks)}, one for each attack; got {runs}")
    most = dict(zip(attacks, runs if len(runs) > 1 else runs * len(attacks), strict=True))
    return [
        {
            "key": f"{attack}, {kind}, seed {seed}, runs {first} to {min(first + EACH, end) - 1}",
            "attack": attack,
            "kind": kind,
            "seed": seed,
            "first": first,
            "runs": min(EACH, end - first),
        }
        for first in range(0, max(runs), EACH)
        for attack, end in most.items()
        if first < end
        for kind in ATTACKS[attack][1]
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Attack repeatedly in one way, and return the faults."""
    attack = ATTACKS[task["attack"]][0]
    faults = []
    for number in range(task["first"], task["first"] + task["runs"]):
        drawn = random.Random(f"{task['seed']} {task['attack']} {task['kind']} {number}")
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            if fault := attack(Attempt(task["kind"], number, drawn, Path(folder))):
                faults.append(f"run {number}: {fault}")
    by = {"commit": commits.current(), "machine": processor()}
    return {"runs": task["runs"], "faults": faults, **by}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return counts by kind and by attack, and the faults."""
    return counted([(attack, kind) for attack in ATTACKS for kind in ATTACKS[attack][1]], records)
