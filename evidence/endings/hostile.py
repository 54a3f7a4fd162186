"""The command line under attack: kills, signals, workers, clocks, disks, streams, limits and files.

Every run is a process of its own. A run is right if it ends in time, prints no traceback, leaves no
unfinished file, and has the exit status and the files that ``docs/command-line.md`` and
``docs/security.md`` promise. Moments and sizes are drawn from the seed, the kind and the number of
the run. POSIX only; a full disk is mounted, which needs root.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

import odefit
from evidence.endings.hostile_files import KERNELS, KINDS, MOST_BYTES, MOST_SECONDS, MOST_TIMES
from evidence.running.campaign import Option, Record, Task
from evidence.running.output import listed

PROBLEM = str(odefit.library.path("alpha-pinene"))
FIT = ("fit", PROBLEM, "--jobs", "1", "--json", "r.json")
RESULTS = Path(__file__).parents[2] / "tests" / "results-format-1"
STORED = "stored.json"  # a result that is copied into each folder
COMMANDS: Mapping[str, Sequence[str]] = {
    "fit": FIT,
    "profile": ("profile", PROBLEM, "--jobs", "1", "--json", "r.json"),
    "check": ("check", PROBLEM),
    "methods": ("methods",),
    "explore": ("explore", PROBLEM, "--no-browser"),
    "show": ("show", STORED),
    "plot": ("plot", STORED, "-o", "fit.svg"),
    "residuals": ("residuals", STORED),
    "predict": ("predict", STORED, "--times", "0:4:9"),
    "compare": ("compare", STORED, STORED),
    "simulate": ("simulate", PROBLEM, "--set", *(f"p{i}=1e-5" for i in range(1, 6))),
    "new": ("new", "small.csv", "-o", "new.toml"),
    "convert": ("convert", PROBLEM, "other.toml"),
    "convert to MATLAB": ("convert", STORED, "model.m"),
    "predict a scenario": ("predict", STORED, "--scenario", "other.toml", "--quantity", "max(y)"),
    "validate": ("validate", STORED, "new.csv", "--json", "v.json"),
    "cross-validate": ("validate", STORED, "--cross", "block", "--folds", "3", "--jobs", "1"),
    "design": ("design", STORED, "--times", "0:4", "--count", "2", "--json", "d.json"),
    "sensitivity": ("sensitivity", STORED, "--kind", "morris", "--json", "s.json"),
    "library": ("library", "sir", "--copy", "here"),
}
ENDING = tuple(name for name in COMMANDS if name != "explore")  # commands that end by themselves
LATEST = 12.0  # seconds after which a signal comes at the latest
PATIENCE = 600.0  # seconds after which a run that should have ended counts as one that hangs
EACH = 2  # runs of a task: what is lost where a campaign is stopped
JUMPING = "import random, time\nright = time.time\ntime.time = lambda: right() + random.choice("
JUMPING += "(-86400, 0, 86400))\n"  # a clock on the wall for `sitecustomize`, also of workers

TEXTS: Mapping[str, str] = {
    "small.csv": "t,x\n0,1\n1,0.5\n2,0.3\n",
    "new.csv": "t,y\n0,1\n1,0.5\n2,0.3\n",
    "other.toml": "name = 'other'\ntimes = [0, 1, 2, 3, 4]\n",
}
"""Files that lie in each folder."""


def prepare(folder: Path) -> None:
    """Write the files that commands read."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(RESULTS / "0.1-single-shooting.json", folder / STORED)


def command(
    arguments: Sequence[str], folder: Path, scratch: Path | None = None, **more: Any
) -> subprocess.Popen[str]:
    """Begin a command in a folder; its temporary files lie below it, or below another one."""
    temporary = (scratch or folder) / "scratch"
    temporary.mkdir(exist_ok=True)
    if scratch is None:
        prepare(folder)
    environment = dict(os.environ) | {"TMPDIR": str(temporary)} | more.pop("env", {})
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen(
        [sys.executable, "-m", "odefit", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        **streams,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for the end of a command, and return what it has printed."""
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def wrong(
    process: subprocess.Popen[str],
    err: str,
    folder: Path,
    allowed: Sequence[int],
    killed: bool = False,
) -> str:
    """Return in words what is wrong with a run that has ended; empty if nothing is.

    What a run that was `killed` has left behind does not count.
    """
    scratch = folder / "scratch"
    temporary = scratch.iterdir() if scratch.is_dir() and not killed else ()
    left = [p.name for p in [*folder.glob("*.tmp"), *temporary]]
    if process.returncode not in allowed:
        return f"status {process.returncode}: {err[-200:]}"
    return "a traceback" if "Traceback" in err else f"left: {left}" if left else ""


def by_signal(name: str, drawn: random.Random, folder: Path) -> str:
    """End a command by a signal."""
    number = drawn.choice((signal.SIGINT, signal.SIGTERM))
    process = command(COMMANDS[name], folder)
    time.sleep(drawn.uniform(0.2, LATEST))
    process.send_signal(number)
    out, err = ended(process)
    fault = wrong(process, err, folder, (0, 128 + number))
    unsaved = out and "r.json" in COMMANDS[name] and not (folder / "r.json").exists()
    return fault or ("no result was written" if unsaved else "")


def by_clock(name: str, drawn: random.Random, folder: Path) -> str:
    """Fit with a clock that jumps by a day; the answer has to be that of a right clock.

    With a checkpoint the fit is killed under such a clock, and resumed under it.
    """
    (folder / "sitecustomize.py").write_text(JUMPING, encoding="utf-8")
    right = os.pathsep.join(p for p in sys.path if p)
    wrong_clock = os.pathsep.join([str(folder), right])
    jobs, kept = name.split(", ")[0], "checkpoint" in name
    arguments = (*FIT, "--jobs", jobs, "--time-limit", str(drawn.randrange(600, 900)))
    arguments += ("--seed", "1", *(("--checkpoint", "kept") if kept else ()))
    found = []
    for place in (wrong_clock, right):
        (folder / "kept").unlink(missing_ok=True)
        if kept and place == wrong_clock:
            _killed(arguments, drawn, folder, env={"PYTHONPATH": place})
        process = command(arguments, folder, env={"PYTHONPATH": place})
        _, err = ended(process)
        if fault := wrong(process, err, folder, (0,), killed=kept):
            return fault
        found.append(_answer(folder))
    return "" if found[0] == found[1] else f"another answer: {found}"


def _killed(
    arguments: Sequence[str],
    drawn: random.Random,
    folder: Path,
    env: Mapping[str, str] | None = None,
) -> None:
    """Begin a command, and kill it with its workers at a moment that is drawn."""
    process = command(arguments, folder, env=dict(env or {}))
    time.sleep(drawn.uniform(0.5, LATEST))
    with suppress(psutil.Error):
        for one in psutil.Process(process.pid).children(recursive=True):
            one.kill()
    process.kill()
    process.communicate()


def _answer(folder: Path) -> Any:
    """Return unknowns and status of the result in a folder."""
    whole = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    return whole["parameters"], whole["status"], whole["objective"]


def by_kill(name: str, drawn: random.Random, folder: Path) -> str:
    """Kill work up to four times; then it has the answer of an undisturbed run."""
    arguments = (*COMMANDS[name.split(", ")[0]], "--jobs", name.split(", ")[1], "--seed", "1")
    found = []
    for kills in (0, drawn.randrange(1, 5)):
        (folder / "r.json").unlink(missing_ok=True)
        for _ in range(kills):
            _killed((*arguments, "--checkpoint", "kept"), drawn, folder)
        process = command((*arguments, "--checkpoint", "kept") if kills else arguments, folder)
        _, err = ended(process)
        if fault := wrong(process, err, folder, (0,), killed=kills > 0):
            return fault
        found.append(_answer(folder))
    return "" if found[0] == found[1] else f"another answer: {found}"


def by_disk(name: str, drawn: random.Random, folder: Path) -> str:
    """Run a command in a folder on a disk that fills up, or that is read-only; or print to one."""
    chosen = drawn.choice(ENDING)
    if name == "full output":
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            process = command(COMMANDS[chosen], folder, stdout=full)
            _, err = ended(process)
        fault = wrong(process, err, folder, (0, 2))
        return f"{chosen}: {fault}" if fault else ""
    disk = folder / "disk"
    disk.mkdir()
    bytes_left = 4096 * drawn.randrange(0, 16)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    try:
        prepare(disk)
        if name == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        else:
            free = shutil.disk_usage(disk).free - bytes_left
            (disk / "filled").write_bytes(b"x" * max(free, 0))
        process = command(COMMANDS[chosen], disk, scratch=folder)
        _, err = ended(process)
        fault = wrong(process, err, disk, (0, 2))
        told = process.returncode == 0 or err.strip()
        fault = fault or ("" if told else "no sentence")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    return f"{chosen}, {bytes_left} bytes: {fault}" if fault else ""


def by_workers(name: str, drawn: random.Random, folder: Path) -> str:
    """Stop a worker, with a time limit; or kill the parent, after which no process may stay."""
    limit = drawn.randrange(20, 30)
    more = ("--method", "multi-start", "--starts", "100000", "--jobs", "2", "--time-limit")
    process = command((*FIT, *more, str(limit)), folder)
    began, parent = time.monotonic(), psutil.Process(process.pid)
    while not (found := [c for c in parent.children() if "LokyProcess" in " ".join(c.cmdline())]):
        time.sleep(0.1)
    time.sleep(drawn.uniform(2.0, 6.0))
    every = parent.children(recursive=True)
    found[0].suspend()
    if name == "killed":
        process.kill()
        process.wait()
        _, left = psutil.wait_procs(every, timeout=5.0)
        for one in left:
            one.kill()
        return f"left: {len(left)} of {len(every)}" if left else ""
    _, err = ended(process)
    late = time.monotonic() - began - limit
    return wrong(process, err, folder, (4,)) or (f"{late:.0f} s late" if late > 30.0 else "")


def by_stream(name: str, drawn: random.Random, folder: Path) -> str:
    """Close standard output or error of a command; what it writes is written."""
    chosen = drawn.choice(ENDING)
    process = command(COMMANDS[chosen], folder, preexec_fn=lambda: os.close(int(name)))
    _, err = ended(process)
    fault = wrong(process, err, folder, (0, 2) if name == "1" else (0,))
    unwritten = "r.json" in COMMANDS[chosen] and not (folder / "r.json").exists()
    fault = fault or ("no result was written" if unwritten else "")
    return f"{chosen}: {fault}" if fault else ""


def by_limit(name: str, drawn: random.Random, folder: Path) -> str:
    """Limit the memory of a command, or the size of its files; it ends with a sentence."""
    chosen = drawn.choice(ENDING)
    ended(command(("--version",), folder))  # Python keeps bytecode of what comes before any limit
    kind, size = LIMITS[name]
    most = drawn.randrange(*size)
    process = command(
        COMMANDS[chosen], folder, preexec_fn=lambda: resource.setrlimit(kind, (most, most))
    )
    _, err = ended(process)
    fault = wrong(process, err, folder, (0, 2))
    told = process.returncode == 0 or err.strip()
    fault = fault or ("" if told else "no sentence")
    return f"{chosen}, {most}: {fault}" if fault else ""


def by_file(name: str, drawn: random.Random, folder: Path) -> str:
    """Read a file that is larger than any that people write."""
    kind = KINDS[name]
    file = kind.write(folder, drawn.randrange(*kind.sizes))
    if kind.integrates:
        ended(command(("check", PROBLEM), folder))  # compiles the kernels, once a checkout
    process = command((*kind.call, file.name), folder)
    spent = psutil.Process(process.pid)
    largest, seconds = 0.0, 0.0
    while process.poll() is None:
        try:
            times = spent.cpu_times()
            seconds, largest = times.user + times.system, max(largest, spent.memory_info().rss)
        except psutil.Error:
            break
        time.sleep(0.05)
    _, err = ended(process)
    size = file.stat().st_size + sum((folder / n).stat().st_size for n in kind.beside)
    most = MOST_TIMES * size + MOST_BYTES + (KERNELS if kind.integrates else 0.0)
    slow = seconds > MOST_SECONDS or largest > most
    over = f"{seconds:.0f} s, {largest / 1e6:.0f} MB" if slow else ""
    return wrong(process, err, folder, kind.statuses) or over


LIMITS: Mapping[str, tuple[int, tuple[int, int]]] = {
    "memory": (resource.RLIMIT_AS, (150_000_000, 700_000_000)),
    "size of files": (resource.RLIMIT_FSIZE, (0, 4096)),
}
"""What is limited, and between which sizes, in bytes."""

ATTACKS: Mapping[str, tuple[Callable[[str, random.Random, Path], str], Sequence[str]]] = {
    "kills": (by_kill, ("fit, 1", "fit, 2", "profile, 1")),
    "signals": (by_signal, tuple(COMMANDS)),
    "clocks": (by_clock, ("1", "2", "2, checkpoint")),
    "disks": (by_disk, ("full", "read-only", "full output")),
    "workers": (by_workers, ("stopped", "killed")),
    "streams": (by_stream, ("1", "2")),
    "limits": (by_limit, tuple(LIMITS)),
    "files": (by_file, tuple(KINDS)),
}

OPTIONS = (
    Option("runs", 40, "runs of each kind", least=1),
    Option("seed", 38, "seed of moments and sizes"),
    Option("attacks", tuple(ATTACKS), "attacks, e.g. signals", ATTACKS),
)


def tasks(runs: int, seed: int, attacks: Sequence[str]) -> list[Task]:
    """Return a few runs of each kind, then a few more; those of another `runs` stay valid."""
    return [
        {
            "key": f"{attack}, {kind}, seed {seed}, runs {first} to {min(first + EACH, runs) - 1}",
            "attack": attack,
            "kind": kind,
            "seed": seed,
            "first": first,
            "runs": min(EACH, runs - first),
        }
        for first in range(0, runs, EACH)
        for attack in attacks
        for kind in ATTACKS[attack][1]
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Attack so often in one way, and return what went wrong."""
    attack = ATTACKS[task["attack"]][0]
    faults = []
    for number in range(task["first"], task["first"] + task["runs"]):
        drawn = random.Random(f"{task['seed']} {task['attack']} {task['kind']} {number}")
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            if fault := attack(task["kind"], drawn, Path(folder)):
                faults.append(f"run {number}: {fault}")
    return {"runs": task["runs"], "faults": faults}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return counts by kind and by attack, and the faults."""
    counts: dict[tuple[str, str], list[int]] = {}
    faults = []
    for record in records:
        found = record.result or {"runs": 0, "faults": [f"{record.task['first']}: stopped"]}
        place = record.task["attack"], record.task["kind"]
        count = counts.setdefault(place, [0, 0])
        count[0] += found["runs"]
        count[1] += len(found["faults"])
        faults += [[*place, fault] for fault in found["faults"]]
    ordered = [(a, k) for a in ATTACKS for k in ATTACKS[a][1] if (a, k) in counts]
    rows = [[*place, *map(str, counts[place])] for place in ordered]
    sums = [
        [attack, *(str(sum(counts[p][i] for p in ordered if p[0] == attack)) for i in (0, 1))]
        for attack in ATTACKS
        if any(p[0] == attack for p in ordered)
    ]
    return {
        "hostile": listed(("attack", "runs", "faults"), sums),
        "kinds": listed(("attack", "kind", "runs", "faults"), rows),
        "faults": listed(("attack", "kind", "fault"), faults),
    }
