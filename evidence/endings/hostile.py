"""The command line under attack: signals, workers, clocks, streams and files, with counts.

Every run is a process of its own. A run is right if it ends in time, prints no traceback, leaves no
unfinished file, and has the exit status and the files that ``docs/command-line.md`` and
``docs/security.md`` promise. Moments and sizes are drawn from the seed. POSIX only.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed

PROBLEM = str(odefit.library.path("alpha-pinene"))
FIT = ("fit", PROBLEM, "--jobs", "1", "--json", "r.json")
COMMANDS: Mapping[str, Sequence[str]] = {
    "fit": FIT,
    "profile": ("profile", PROBLEM, "--jobs", "1", "--json", "r.json"),
    "check": ("check", PROBLEM),
    "methods": ("methods",),
    "explore": ("explore", PROBLEM, "--no-browser"),
}
LATEST = 12.0  # seconds after which a signal comes at the latest
PATIENCE = 120.0  # seconds after which a run that should have ended counts as one that hangs
JUMPING = "import random, time\nright = time.time\ntime.time = lambda: right() + random.choice("
JUMPING += "(-86400, 0, 86400))\n"  # a clock on the wall for `sitecustomize`, also of workers

HEADS: Mapping[str, Callable[[int], str]] = {
    "parts of a key": lambda n: ".".join("a" * n) + " = 1",
    "nested lists": lambda n: f"z = {'[' * n}",
    "unknown keys": lambda n: "\n".join(f"k{i} = 1" for i in range(n)),
    "experiments": lambda n: '[[experiment]]\ndata = "d.csv"\n' * n,
    "columns": lambda n: ",".join(["t", *(f"c{i}" for i in range(n))]) + "\n0,1\n",
    "rows": lambda n: "t,y\n" + "0,1\n" * (10 * n),
}
"""Files that grow with a number; the last two are tables."""


def command(arguments: Sequence[str], folder: Path, **more: Any) -> subprocess.Popen[str]:
    """Begin a command in a folder, which is that of its temporary files too."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    environment = dict(os.environ) | {"TMPDIR": str(scratch)} | more.pop("env", {})
    return subprocess.Popen(
        [sys.executable, "-m", "odefit", *arguments], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for the end of a command, and return what it has printed."""
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def wrong(process: subprocess.Popen[str], err: str, folder: Path, allowed: Sequence[int]) -> str:
    """Return in words what is wrong with a run that has ended; empty if nothing is."""
    left = [p.name for p in [*folder.glob("*.tmp"), *(folder / "scratch").iterdir()]]
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
    """Fit with a clock that jumps by a day; the answer has to be that of a right clock."""
    (folder / "sitecustomize.py").write_text(JUMPING, encoding="utf-8")
    path = os.pathsep.join([str(folder), *(p for p in sys.path if p)])
    limit = str(drawn.randrange(300, 900))
    found = []
    for place in (path, os.pathsep.join(p for p in sys.path if p)):
        arguments = (*FIT, "--jobs", name, "--time-limit", limit, "--seed", "1")
        process = command(arguments, folder, env={"PYTHONPATH": place})
        _, err = ended(process)
        if fault := wrong(process, err, folder, (0,)):
            return fault
        found.append(json.loads((folder / "r.json").read_text(encoding="utf-8"))["parameters"])
    return "" if found[0] == found[1] else "another answer"


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
    """Close standard output or error, or limit the size of files; the result is written."""
    process = command(FIT, folder, preexec_fn=lambda: os.close(int(name)))
    _, err = ended(process)
    fault = wrong(process, err, folder, (2,) if name == "1" else (0,))
    return fault or ("" if (folder / "r.json").exists() else "no result was written")


def by_file(name: str, drawn: random.Random, folder: Path) -> str:
    """Check a file that is larger than any that people write."""
    text = HEADS[name](drawn.randrange(110_000, 200_000))
    table = name in ("columns", "rows")
    file = folder / ("d.csv" if table else "p.toml")
    file.write_text(text if table else f"format = 1\n{text}", encoding="utf-8")
    process = command(("new", "d.csv") if table else ("check", "p.toml"), folder)
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
    most = 20 * len(text) + 2e8
    over = f"{seconds:.0f} s, {largest / 1e6:.0f} MB" if seconds > 10 or largest > most else ""
    return wrong(process, err, folder, (2,)) or over


ATTACKS: Mapping[str, tuple[Callable[[str, random.Random, Path], str], Sequence[str]]] = {
    "signals": (by_signal, tuple(COMMANDS)),
    "clocks": (by_clock, ("1", "2")),
    "workers": (by_workers, ("stopped", "killed")),
    "streams": (by_stream, ("1", "2")),
    "files": (by_file, tuple(HEADS)),
}

OPTIONS = (
    Option("runs", 40, "runs of each kind", least=1),
    Option("seed", 38, "seed of moments and sizes"),
    Option("attacks", tuple(ATTACKS), "attacks, e.g. signals", ATTACKS),
)


def tasks(runs: int, seed: int, attacks: Sequence[str]) -> list[Task]:
    return [
        task
        for attack in attacks
        for task in tasks_of("kind", ATTACKS[attack][1], attack=attack, runs=runs, seed=seed)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Attack so often in one way, and return what went wrong."""
    attack = ATTACKS[task["attack"]][0]
    drawn = random.Random(f"{task['seed']} {task['attack']} {task['kind']}")
    faults = []
    for number in range(task["runs"]):
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            if fault := attack(task["kind"], drawn, Path(folder)):
                faults.append(f"run {number}: {fault}")
    return {"runs": task["runs"], "faults": faults}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows, notes = [], []
    for record in records:
        found = record.result or {"runs": 0, "faults": ["stopped"]}
        place = record.task["attack"], record.task["kind"]
        rows.append([*place, str(found["runs"]), str(len(found["faults"]))])
        notes += [f"{', '.join(place)}: {fault}" for fault in found["faults"]]
    return {"hostile": listed(("attack", "kind", "runs", "faults"), rows, *notes)}
