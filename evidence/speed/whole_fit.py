"""Whole fits, process start to result, on the twelve problems of local-and-global-solvers.

Each fit is a fresh process:

odefit
    ``odefit fit PROBLEM.toml --json FILE``, all options at their defaults, with an empty cache, as
    for a model never fitted on this computer. "odefit again" is the same command repeated; heyoka
    then finds the compiled model in its cache on disk.
by hand
    ``solve_ivp`` (LSODA, 1e-8) in ``scipy.optimize.least_squares``, bounds, finite-difference
    Jacobian, the best of ten random starts uniform in the bounds: `peers/fit_in_process.py`.
COPASI SS, COPASI LM
    COPASI through copasi-basico, its Scatter Search once and its Levenberg-Marquardt from ten
    random starts, default settings: `peers/fit_in_process.py`.

All get the same equations, data and bounds, and no guess. An answer is right if every unknown is
within 1 % of its reference; for alpha-pinene, whose data are real, if the objective is within 0.1 %
of the reference. COPASI integrates to 1e-6 by default, which on ill-conditioned problems moves
unknowns by more than 1 % although its own objective is negligible; "fits" marks an answer whose
objective is below 1e-8 times the sum of squares of the data.

The option `check` shows that COPASI minimises what odefit minimises: both objectives at the
reference values and at random points.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import (
    TOOLS,
    Finished,
    console_script,
    last_json,
    run_process,
    seconds,
    worst_error,
)
from evidence.running.output import listed

TAG = "local-and-global-solvers"
# Tools as processes; "odefit in process" shows the parts of odefit's time
SINGLE = ("odefit", "odefit again", "by hand", "COPASI SS", "COPASI LM")
OWN = ("odefit", "odefit again")
INSIDE = "odefit in process"
# Problems where the script by hand takes more than ten seconds, and is not repeated
SLOW = ("bbg", "crauste-f", "crauste-p", "hiv-p", "mammillary-3-p")


@dataclass(frozen=True)
class Run:
    """One fit."""

    problem: str
    tool: str
    seed: int
    seconds: float  # of the whole process
    # importing, work, again: seconds of imports, of the rest, and of the same fit again in the
    # same process; NaN if a tool does not report them
    importing: float
    work: float
    again: float
    objective: float
    error: float
    verdict: str  # "right", "fits", "wrong", "time limit" or "failed"


def twelve() -> list[str]:
    return [n for n in odefit.library.names() if TAG in odefit.library.reference(n).papers]


def command(tool: str, problem: str, seed: int, folder: Path) -> list[str]:
    """Return the command of a tool; every tool prints JSON, except odefit, which writes it."""
    file = odefit.library.path(problem)
    if tool in OWN:
        result = str(folder / "result.json")
        return [console_script("odefit"), "fit", str(file), "--json", result, "--seed", str(seed)]
    names = {
        INSIDE: "odefit",
        "by hand": "by-hand",
        "COPASI SS": "scatter-search",
        "COPASI LM": "levenberg-marquardt",
    }
    return _in_process(names[tool], problem, str(seed))


def _in_process(*arguments: str) -> list[str]:
    return [sys.executable, str(TOOLS / "fit_in_process.py"), *arguments]


def fit(tool: str, problem: str, seed: int, limit: float, cache: Path | None) -> Run:
    """Run one fit in a separate process, and judge it."""
    with tempfile.TemporaryDirectory() as name:
        finished = run_process(command(tool, problem, seed, Path(name)), limit, cache)
        answer = _answer(tool, finished, Path(name))
    if finished.status is None or answer is None:
        how = "time limit" if finished.status is None else "failed"
        nan = math.nan
        return Run(problem, tool, seed, finished.seconds, nan, nan, nan, nan, nan, how)
    error = worst_error(answer["unknowns"], _reference(problem))
    return Run(
        problem,
        tool,
        seed,
        finished.seconds - answer.get("aside", 0.0),
        answer.get("import", math.nan),
        answer.get("work", math.nan),
        answer.get("again", math.nan),
        answer["objective"],
        error,
        verdict(problem, answer["objective"], error),
    )


def verdict(problem: str, objective: float, error: float) -> str:
    """Return whether an answer is right; see the module."""
    known = odefit.library.reference(problem)
    if known.noise != "none":
        return "right" if objective <= 1.001 * known.objective else "wrong"
    if error <= 0.01:
        return "right"
    return "fits" if objective <= 1e-8 * _size(problem) else "wrong"


def _answer(tool: str, finished: Finished, folder: Path) -> dict[str, Any] | None:
    if tool in OWN and (folder / "result.json").exists():
        saved = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        if saved["objective"] is not None:
            unknowns = {**saved["initial"], **saved["parameters"]}
            return {"objective": saved["objective"], "unknowns": unknowns}
    elif finished.status == 0:
        return last_json(finished)
    return None


def _reference(problem: str) -> dict[str, float]:
    known = odefit.library.reference(problem)
    return {**known.parameters, **known.initial}


def _size(problem: str) -> float:
    frame = odefit.library.load(problem).data()
    values = frame.drop(columns="t").to_numpy(dtype=float)
    return float(np.nansum(values**2))


def campaign(problem: str, seed: int, limit: float, by_hand: bool) -> list[Run]:
    """Return the runs of a problem with one seed, the tools taking turns."""
    tools = [t for t in (*SINGLE, INSIDE) if by_hand or t != "by hand"]
    with tempfile.TemporaryDirectory() as shared, tempfile.TemporaryDirectory() as fresh:
        caches = dict.fromkeys(OWN, Path(shared)) | {INSIDE: Path(fresh)}
        return [fit(tool, problem, seed, limit, caches.get(tool)) for tool in tools]


def cell(runs: Sequence[Run]) -> str:
    """Return median seconds and verdicts of one tool on one problem."""
    if not runs:
        return ""
    good = sum(r.verdict == "right" for r in runs)
    time = seconds(statistics.median(r.seconds for r in runs))
    if good == len(runs):
        return f"{time} right"
    others = {r.verdict for r in runs} - {"right"}
    label = next(v for v in ("failed", "time limit", "wrong", "fits") if v in others)
    return f"{time} {label}" if not good else f"{time} right {good}/{len(runs)}"


def against_copasi(by_tool: dict[str, list[Run]]) -> float:
    """Return odefit's seconds over those of the faster right COPASI method with the same seed.

    The result is the median over seeds, because consecutive runs shared the machine's load, and NaN
    where COPASI is never right.
    """
    ratios = []
    for own in by_tool["odefit"]:
        rivals = [
            r.seconds
            for tool in ("COPASI SS", "COPASI LM")
            for r in by_tool[tool]
            if r.seed == own.seed and r.verdict == "right"
        ]
        if rivals:
            ratios.append(own.seconds / min(rivals))
    return statistics.median(ratios) if ratios else math.nan


def _inside(by_tool: dict[str, list[Run]]) -> list[str]:
    def median(tool: str, field: str) -> str:
        values = [v for r in by_tool[tool] if not math.isnan(v := getattr(r, field))]
        return seconds(statistics.median(values)) if values else "-"

    return [
        median(INSIDE, "importing"),
        median(INSIDE, "work"),
        median(INSIDE, "again"),
        median("COPASI SS", "importing"),
        median("COPASI SS", "work"),
        median("COPASI LM", "work"),
        median("by hand", "work"),
    ]


def check(problem: str, limit: float) -> list[list[str]]:
    """Return COPASI's objective beside odefit's, at the reference and at a point near it."""
    loaded = odefit.library.load(problem)
    forward = odefit.ForwardMap(loaded)
    reference = loaded.vector(_reference(problem))
    shaken = reference * np.random.default_rng(0).uniform(0.9, 1.1, len(reference))
    near = np.clip(shaken, loaded.lower, loaded.upper)  # as in COPASI
    rows = []
    for place, vector in {"reference": reference, "near": near}.items():
        values = json.dumps(dict(zip(loaded.keys, vector.tolist(), strict=True)))
        finished = run_process(_in_process("check", problem, values), limit)
        evaluation = forward.evaluate(vector)
        if finished.status != 0 or isinstance(evaluation, odefit.Failure):
            raise RuntimeError(f"{problem}: {finished.errors}{evaluation}")
        both = (evaluation.objective, last_json(finished)["objective"])
        rows.append([problem, place, *(f"{value:.8g}" for value in both)])
    return rows


INSIDE_HEAD = (
    *("problem", "odefit import", "first fit", "same fit again"),
    *("COPASI import", "COPASI SS", "COPASI LM", "by hand"),
)
OPTIONS = (
    Option("repeats", 3, "seeds of each problem", least=1),
    Option("limit", 60.0, "seconds for each fit", above=0),
    Option("problems", (), "problems, e.g. bbg,hiv-f", twelve),
    Option("check", False, "whether objectives are compared instead, yes or no"),
)


def tasks(problems: Sequence[str], repeats: int, limit: float, check: bool) -> list[Task]:
    names = problems or twelve()
    if check:
        return tasks_of("problem", names, limit=limit, check=True)
    return [
        t for seed in range(repeats) for t in tasks_of("problem", names, seed=seed, limit=limit)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Fit one problem by all tools; the script by hand only once where it takes long."""
    if "check" in task:
        return {"rows": check(task["problem"], task["limit"])}
    if not _WARM:
        for tool in ("odefit", "by hand", "COPASI LM"):  # byte code and file cache, not recorded
            fit(tool, "hiv-f", 0, task["limit"], None)
        _WARM.append(True)
    quick = task["seed"] == 0 or task["problem"] not in SLOW
    return {
        "runs": [asdict(r) for r in campaign(task["problem"], task["seed"], task["limit"], quick)]
    }


_WARM: list[bool] = []  # not empty when this process has filled the caches


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return seconds from process start to result, and inside one process."""
    runs = [
        Run(**dict[str, Any]({k: math.nan if v is None else v for k, v in one.items()}))
        for r in records
        for one in (r.result or {}).get("runs", [])
    ]
    rows, inside, wrong, slower = [], [], [], []
    names = list(dict.fromkeys(r.problem for r in runs))
    for problem in names:
        by_tool = {
            t: [r for r in runs if (r.problem, r.tool) == (problem, t)] for t in (*SINGLE, INSIDE)
        }
        ratio = against_copasi(by_tool)
        if ratio > 1:
            slower.append(problem)
        if any(r.verdict != "right" for r in by_tool["odefit"]):
            wrong.append(problem)
        shown = "-" if math.isnan(ratio) else f"{ratio:.2f}"
        rows.append([problem, *(cell(by_tool[t]) for t in SINGLE), shown])
        inside.append([problem, *_inside(by_tool)])
    notes = (
        f"odefit is right on {len(names) - len(wrong)} of {len(names)} problems; not on: "
        + (", ".join(wrong) or "none"),
        f"It is slower than COPASI where COPASI is right on: {', '.join(slower) or 'none'}.",
    )
    head = ("problem", *(f"{t}, s" for t in SINGLE), "odefit / fastest right COPASI")
    named = {"whole-fit": listed(head, rows, *notes), "inside": listed(INSIDE_HEAD, inside)}
    checked = listed(("problem", "where", "odefit", "COPASI"), records)
    return named | ({"check": checked} if len(checked) else {})
