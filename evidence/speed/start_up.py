"""Seconds of short odefit commands: process start to exit, median of fresh processes.

A bare ``python -c pass`` and the import of numpy alone run between them, taking turns; the excess
over those is odefit's. The problem is lotka-volterra-f; "first time" is with an empty cache of
compiled models. "Heaviest imports" is the output of ``-X importtime`` for ``import odefit``:
milliseconds in each module and in modules that it imports first, summed by package.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import odefit.library
from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import console_script, run_process

LIMIT = 60.0
FIRST = "odefit fit, first time"
VALUES = ("k1=0.02", "k2=0.03", "k3=0.05", "r=100", "w=100")


def commands() -> dict[str, list[str]]:
    file = str(odefit.library.path("lotka-volterra-f"))
    script = console_script("odefit")
    python = sys.executable
    loaded = "import odefit; odefit.fit(odefit.library.load('lotka-volterra-f'))"
    return {
        "python -c pass": [python, "-c", "pass"],
        "import numpy": [python, "-c", "import numpy"],
        "import odefit": [python, "-c", "import odefit"],
        "odefit --help": [script, "--help"],
        "odefit --version": [script, "--version"],
        "odefit simulate": [script, "simulate", file, "--csv", os.devnull, "--set", *VALUES],
        FIRST: [script, "fit", file],
        "odefit fit, again": [script, "fit", file],
        "import odefit, then fit, again": [python, "-c", loaded],
    }


def measure(repeats: int) -> dict[str, list[float]]:
    """Return the seconds of every command in turns; a first round is not counted."""
    spent: dict[str, list[float]] = {name: [] for name in commands()}
    for repetition in range(repeats + 1):
        for name, command in commands().items():
            with tempfile.TemporaryDirectory() as folder:
                empty = Path(folder) if name == FIRST else None
                finished = run_process(command, LIMIT, empty)
            if finished.status != 0:
                raise RuntimeError(f"{name}: exit status {finished.status}\n{finished.errors}")
            if repetition:
                spent[name].append(finished.seconds)
    return spent


def heaviest(statement: str, count: int = 8) -> str:
    """Return packages by the milliseconds of their modules in a statement's imports."""
    finished = run_process([sys.executable, "-X", "importtime", "-c", statement], LIMIT)
    total: Counter[str] = Counter()
    for line in finished.errors.splitlines():
        found = re.match(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)", line)
        if found:
            total[found[2].partition(".")[0]] += int(found[1])
    return ", ".join(f"{name} {us / 1000:.0f}" for name, us in total.most_common(count))


HEAD = ("process", "median, s", "fastest, s")
OPTIONS = (Option("repeats", 11, "rounds that count", least=1),)


def tasks(repeats: int) -> list[Task]:
    return tasks_of("repeats", [repeats])


def run(task: Task) -> Mapping[str, Any]:
    spent = measure(task["repeats"])
    imports = (
        f"Heaviest imports of `import odefit`, ms: {heaviest('import odefit')}. "
        f"Of a fit: {heaviest(commands()['import odefit, then fit, again'][-1])}."
    )
    rows = [[name, f"{statistics.median(s):.2f}", f"{min(s):.2f}"] for name, s in spent.items()]
    return {"rows": rows, "notes": [imports]}
