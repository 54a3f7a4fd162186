"""Seconds of short odefit commands: process start to exit, median of fresh processes.

A bare ``python -c pass`` and the import of numpy alone run between them, taking turns; the excess
over those is odefit's. The problem is lotka-volterra-f, from "README's command" on alpha-pinene;
"first time" is with an empty cache of compiled models and kernels, as on a fresh machine. The
README's command writes report and JSON. "Heaviest imports" is the output of ``-X importtime`` for
``import odefit``: milliseconds in each module and in modules that it imports first, by package.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import odefit.library
from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import console_script, run_process

LIMIT = 60.0
FIRST = ", first time"  # the end of the names of processes that begin with an empty cache
IN_PYTHON = "import odefit, then fit, again"
VALUES = ("k1=0.02", "k2=0.03", "k3=0.05", "r=100", "w=100")


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands by what they do; they may write to the folder."""
    file = str(odefit.library.path("lotka-volterra-f"))
    pinene = str(odefit.library.path("alpha-pinene"))
    script = console_script("odefit")
    python = sys.executable
    loaded = "import odefit; odefit.fit(odefit.library.load('lotka-volterra-f'))"
    written = ["--report", str(folder / "report.html"), "--json", str(folder / "result.json")]
    readme = [script, "fit", pinene, *written]
    without = (
        "import sys; sys.modules['heyoka'] = None; from odefit.cli.main import main; "
        f"sys.exit(main(['fit', {pinene!r}]))"
    )
    stiff = (
        "import odefit; method = odefit.SingleShooting(engine='bdf'); "
        "odefit.fit(odefit.library.load('alpha-pinene'), method, jobs=1)"
    )
    twice = {
        "odefit fit": [script, "fit", file],
        "README's command": readme,
        "fit without heyoka": [python, "-c", without],
        "fit by bdf": [python, "-c", stiff],
    }
    return {
        "python -c pass": [python, "-c", "pass"],
        "import numpy": [python, "-c", "import numpy"],
        "import odefit": [python, "-c", "import odefit"],
        "odefit --help": [script, "--help"],
        "odefit --version": [script, "--version"],
        "odefit simulate": [script, "simulate", file, "--csv", os.devnull, "--set", *VALUES],
        **{f"{name}{when}": c for name, c in twice.items() for when in (FIRST, ", again")},
        IN_PYTHON: [python, "-c", loaded],
    }


def measure(repeats: int) -> dict[str, list[tuple[float, float]]]:
    """Return seconds, and those of the processor, of every command in turns.

    A first round is not counted.
    """
    spent: dict[str, list[tuple[float, float]]] = {}
    for repetition, name in product(range(repeats + 1), commands(Path())):
        with tempfile.TemporaryDirectory() as folder:
            command = commands(Path(folder))[name]
            empty = Path(folder) / "cache" if name.endswith(FIRST) else None
            before = os.times()
            finished = run_process(command, LIMIT, empty)
        if finished.status != 0:
            raise RuntimeError(f"{name}: exit status {finished.status}\n{finished.errors}")
        after = os.times()
        children = after.children_user + after.children_system
        processor = children - before.children_user - before.children_system
        if repetition:
            spent.setdefault(name, []).append((finished.seconds, processor))
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


HEAD = ("process", "median, s", "processor, s")
OPTIONS = (Option("repeats", 7, "rounds that count", least=1),)


def tasks(repeats: int) -> list[Task]:
    return tasks_of("repeats", [repeats])


def run(task: Task) -> Mapping[str, Any]:
    spent = measure(task["repeats"])
    imports = (
        f"Heaviest imports of `import odefit`, ms: {heaviest('import odefit')}. "
        f"Of a fit: {heaviest(commands(Path())[IN_PYTHON][-1])}."
    )
    rows = []
    for name, pairs in spent.items():
        seconds, processor = zip(*pairs, strict=True)
        shown = (statistics.median(seconds), statistics.median(processor))
        rows.append([name, *(f"{value:.2f}" for value in shown)])
    return {"rows": rows, "notes": [imports]}
