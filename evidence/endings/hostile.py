"""The command line under attack: signals, workers, clocks, streams, limits and files, with counts.

Every run is a process of its own. A run is right if it ends in time, prints no traceback, leaves no
unfinished file, and has the exit status and the files that ``docs/command-line.md`` and
``docs/security.md`` promise. Moments and sizes are drawn from the seed. POSIX only.
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
import zipfile
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
    "simulate": ("simulate", PROBLEM, "--set", "p1=1e-5"),
    "new": ("new", "small.csv", "-o", "new.toml"),
    "convert": ("convert", PROBLEM, "other.toml"),
}
ENDING = tuple(name for name in COMMANDS if name != "explore")  # commands that end by themselves
LATEST = 12.0  # seconds after which a signal comes at the latest
PATIENCE = 120.0  # seconds after which a run that should have ended counts as one that hangs
JUMPING = "import random, time\nright = time.time\ntime.time = lambda: right() + random.choice("
JUMPING += "(-86400, 0, 86400))\n"  # a clock on the wall for `sitecustomize`, also of workers

HEADS: dict[str, Callable[[int], str]] = {
    "parts of a key": lambda n: ".".join("a" * n) + " = 1",
    "nested lists": lambda n: f"z = {'[' * n}",
    "unknown keys": lambda n: "\n".join(f"k{i} = 1" for i in range(n)),
    "experiments": lambda n: '[[experiment]]\ndata = "d.csv"\n' * n,
    "columns": lambda n: ",".join(["t", *(f"c{i}" for i in range(n))]) + "\n0,1\n",
    "rows": lambda n: "t,y\n" + "0,1\n" * (10 * n),
}
"""Files that grow with a number, of the kinds of :data:`SUFFIXES`."""

HEADS |= {
    "quoted cell": lambda n: 't,y\n0,"' + "x" * (20 * n),
    "zero bytes": lambda n: "t,y\n0,1\n" + "\0" * n,
    "aliases": lambda n: (
        "a0: &a0 [1]\n"
        + "\n".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, n % 40 + 40))
    ),
    "nested flow": lambda n: "a: " + "[" * n,
    "nested JSON": lambda n: '{"format": 1, "problem": ' + "[" * (10 * n),
    "repeated keys": lambda n: "{" + ",".join('"format": 1' for _ in range(n)) + "}",
    "entities": lambda n: (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">'
        + "".join(f'<!ENTITY a{i} "&a{i - 1};&a{i - 1};">' for i in range(1, n % 40 + 40))
        + "]><sbml>&a39;</sbml>"
    ),
    "nested elements": lambda n: '<?xml version="1.0"?><sbml>' + "<a>" * n,
    "deep expressions": lambda n: (
        f'[ode]\nx = "{"(" * (n % 60 + 20)}x{" + k)^2" * (n % 60 + 20)}"\n'
        '[parameters]\nk = [0.1, 1]\n[initial]\nx = 0.1\n[[experiment]]\ndata = "small.csv"\n'
    ),
    "blown workbook": lambda n: " " * (1000 * n),
}
SUFFIXES: Mapping[str, str] = {
    **dict.fromkeys(("columns", "rows", "quoted cell", "zero bytes"), "csv"),
    **dict.fromkeys(("aliases", "nested flow"), "yaml"),
    **dict.fromkeys(("nested JSON", "repeated keys"), "json"),
    **dict.fromkeys(("entities", "nested elements"), "xml"),
    "blown workbook": "xlsx",
}
"""How the names of such files end; the others are problem files."""


def command(arguments: Sequence[str], folder: Path, **more: Any) -> subprocess.Popen[str]:
    """Begin a command in a folder, which is that of its temporary files too."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    (folder / "small.csv").write_text("t,x\n0,1\n1,0.5\n2,0.3\n", encoding="utf-8")
    shutil.copy(RESULTS / "0.1-single-shooting.json", folder / STORED)
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
    """Check a file that is larger than any that people write."""
    text = HEADS[name](drawn.randrange(110_000, 200_000))
    suffix, integrated = SUFFIXES.get(name, "toml"), name == "deep expressions"
    file = folder / f"hostile.{suffix}"
    if suffix == "xlsx":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for part in ("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"):
                packed.writestr(part, text)
    else:
        file.write_text(f"format = 1\n{text}" if suffix == "toml" else text, encoding="utf-8")
    del text  # a process that is forked counts what this one holds until it runs the command
    reading = {"csv": "new", "xlsx": "new", "json": "show"}.get(suffix, "check")
    if integrated:
        ended(command(("check", PROBLEM), folder))  # compiles the kernels, once a checkout
    process = command((reading, file.name), folder)
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
    # Engines and the compiler of their kernels take 300 MB, whatever they integrate.
    most = 20 * file.stat().st_size + (5e8 if integrated else 2e8)
    over = f"{seconds:.0f} s, {largest / 1e6:.0f} MB" if seconds > 10 or largest > most else ""
    return wrong(process, err, folder, (0,) if integrated else (2,)) or over


LIMITS: Mapping[str, tuple[int, tuple[int, int]]] = {
    "memory": (resource.RLIMIT_AS, (150_000_000, 700_000_000)),
    "size of files": (resource.RLIMIT_FSIZE, (0, 4096)),
}
"""What is limited, and between which sizes, in bytes."""

ATTACKS: Mapping[str, tuple[Callable[[str, random.Random, Path], str], Sequence[str]]] = {
    "signals": (by_signal, tuple(COMMANDS)),
    "clocks": (by_clock, ("1", "2")),
    "workers": (by_workers, ("stopped", "killed")),
    "streams": (by_stream, ("1", "2")),
    "limits": (by_limit, tuple(LIMITS)),
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
