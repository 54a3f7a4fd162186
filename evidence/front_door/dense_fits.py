"""CPU time of default fits of dense series, each in a separate process, from start to answer.

`odefit.fit(problem, jobs=1)` of the systems in `dense_systems.toml`, draw 0, and of problems of the
library. "Fit" is the call alone, with the modules that it imports; "process" includes the start of
Python, the import of odefit and the simulation of the data. With `against`, another copy of odefit
takes turns with this one; "alike" marks whether both objectives agree to nine digits. Medians in
seconds of CPU time; a first round, which fills caches of compiled models and kernels, is not
counted.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evidence.front_door.dense_data import SYSTEMS
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import ROOT, run_process
from evidence.running.output import listed

LIBRARY = ("alpha-pinene", "fitzhugh-nagumo", "gma", "henon-heiles", "hiv-p", "lotka-volterra-f")
LIMIT = 600.0

# Fits one problem with the odefit in a folder
FIT = """
import sys, time
source, root, name, noise = sys.argv[1:]
sys.path[:0] = [source, root]
import odefit
if noise == "library":
    problem = odefit.library.load(name)
else:
    from evidence.front_door.dense_data import dense_problem
    problem, _ = dense_problem(name, float(noise), 0)
began = time.process_time()
result = odefit.fit(problem, jobs=1)
ended = time.process_time()
print(ended - began, ended, result.objective)
"""


def fitted(source: Path, name: str, noise: str) -> tuple[float, float, float]:
    """CPU seconds of the fit and of the process, and the objective."""
    command = [sys.executable, "-c", FIT, str(source), str(ROOT), name, noise]
    finished = run_process(command, LIMIT)
    if finished.status != 0:
        raise RuntimeError(f"{name}: exit status {finished.status}\n{finished.errors}")
    fit, process, objective = map(float, finished.output.split()[-3:])
    return fit, process, objective


def row(name: str, noise: str, sources: Sequence[Path], repeats: int) -> list[float]:
    """Medians of fit and process by copy, of both ratios, and whether the objectives agree."""
    spent = [[fitted(source, name, noise) for source in sources] for _ in range(repeats + 1)]
    counted = spent[1:]
    medians = [
        statistics.median(s[copy][k] for s in counted)
        for copy in range(len(sources))
        for k in (0, 1)
    ]
    if len(sources) == 1:
        return medians
    ratios = [statistics.median(s[0][k] / s[1][k] for s in counted) for k in (0, 1)]
    mine, other = (s[2] for s in spent[-1])
    return [*medians, *ratios, float(abs(mine - other) <= 1e-9 * max(abs(mine), abs(other)))]


HEAD = ("problem", "fit, s", "process, s")
OTHER = ("other: fit, s", "other: process, s", "fit, ratio", "process, ratio", "alike")
OPTIONS = (
    Option("repeats", 5, "rounds that count", least=1),
    Option("noise", 0.01, "noise of the dense series", least=0),
    Option("systems", tuple(SYSTEMS), "dense systems, e.g. pendulum", SYSTEMS),
    Option("library", LIBRARY, "problems of the library, e.g. gma"),
    Option("against", "", "src folder of another copy of odefit"),
)


def tasks(
    repeats: int, noise: float, systems: Sequence[str], library: Sequence[str], against: str
) -> list[Task]:
    common: dict[str, Any] = {"repeats": repeats, "against": against}
    return [
        *tasks_of("problem", systems, noise=str(noise), **common),
        *tasks_of("problem", library, noise="library", **common),
    ]


def run(task: Task) -> Mapping[str, Any]:
    os.environ.pop("PYTHONPATH", None)
    sources = [ROOT / "src", *([Path(task["against"]).resolve()] if task["against"] else [])]
    return {"values": row(task["problem"], task["noise"], sources, task["repeats"])}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    found = {r.task["problem"]: r.result["values"] for r in records if r.result is not None}
    rows = []
    for name, values in found.items():
        cells = [f"{v:.2f}" for v in values]
        if len(values) > 2:
            cells[-1] = "yes" if values[-1] else "no"
        rows.append([name, *cells])
    middle = [statistics.median(column) for column in zip(*found.values(), strict=True)]
    rows.append(["median", *(f"{v:.2f}" for v in middle[:6])])
    both = any(r.task["against"] for r in records)
    return {"fits": listed((*HEAD, *OTHER) if both else HEAD, rows)}
