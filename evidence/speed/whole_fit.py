"""Whole fits, process start to result, on the twelve problems of local-and-global-solvers.

    python -m evidence.speed.whole_fit [--repeats 3] [--limit 60] [--problems bbg hiv-f] [--out DIR]
    python -m evidence.speed.whole_fit --check

Each fit is a fresh process:

odefit
    ``odefit fit PROBLEM.toml --json FILE``, everything left at its default, with an empty cache:
    a model that was never fitted on this computer. "odefit again" is the same command once more;
    heyoka then finds the compiled model in its cache on disk.
by hand
    ``solve_ivp`` (LSODA, 1e-8) in ``scipy.optimize.least_squares``, bounds, finite-difference
    Jacobian, the best of ten random starts uniform in the bounds: `peers/fit_by_hand.py`.
COPASI SS, COPASI LM
    COPASI through copasi-basico, its Scatter Search once and its Levenberg-Marquardt from ten
    random starts, default settings: `peers/fit_copasi.py`.

All get the same equations, data and bounds, and no guess. An answer is right if every unknown is
within 1 % of its reference; for alpha-pinene, whose data are real, if the objective is within
0.1 % of the reference. COPASI integrates to 1e-6 by default, which on ill-conditioned problems
moves unknowns by more than 1 % although its fit is perfect by its own measure: "fits" marks an
answer whose objective is below 1e-8 times the sum of squares of the data.

``--check`` shows that COPASI minimises what odefit minimises: both objectives at the reference
values and at random points.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.running.processes import (
    TOOLS,
    Finished,
    console_script,
    machine,
    markdown,
    publish,
    run_process,
    seconds,
    worst_error,
)

TAG = "local-and-global-solvers"
# Tools as processes; "odefit in process" runs beside them to show where odefit's time goes
SINGLE = ("odefit", "odefit again", "by hand", "COPASI SS", "COPASI LM")
OWN = ("odefit", "odefit again")
INSIDE = "odefit in process"
SLOW = 10.0  # the script by hand is not repeated on problems where it takes longer


@dataclass(frozen=True)
class Run:
    """One fit."""

    problem: str
    tool: str
    seed: int
    seconds: float  # of the whole process
    # importing, work, again: Seconds inside it: imports, everything after, the same fit again in
    # the same process; NaN where a tool does not tell
    importing: float
    work: float
    again: float
    objective: float
    error: float
    verdict: str  # "right", "fits", "wrong", "time limit" or "failed"


def problems() -> list[str]:
    """Names of the twelve."""
    return [n for n in odefit.library.names() if TAG in odefit.library.reference(n).papers]


def command(tool: str, problem: str, seed: int, folder: Path) -> list[str]:
    """What to run; every tool prints JSON, but for odefit's command line, which writes it."""
    file = odefit.library.path(problem)
    if tool in OWN:
        result = str(folder / "result.json")
        return [console_script("odefit"), "fit", str(file), "--json", result, "--seed", str(seed)]
    python = sys.executable
    if tool == INSIDE:
        return [python, str(TOOLS / "fit_odefit.py"), str(file), str(seed)]
    if tool == "by hand":
        (data,) = file.parent.glob("*.csv")
        return [python, str(TOOLS / "fit_by_hand.py"), problem, str(data), str(seed)]
    method = {"COPASI SS": "scatter-search", "COPASI LM": "levenberg-marquardt"}[tool]
    return [python, str(TOOLS / "fit_copasi.py"), str(file), method, str(seed)]


def fit(tool: str, problem: str, seed: int, limit: float, cache: Path | None) -> Run:
    """One fit in a process of its own, judged."""
    with tempfile.TemporaryDirectory() as name:
        finished = run_process(command(tool, problem, seed, Path(name)), limit, cache)
        answer = _answer(tool, finished, Path(name))
    if finished.status is None or answer is None:
        how = "time limit" if finished.status is None else "failed"
        print(f"{tool} on {problem}: {how}\n{finished.errors}", file=sys.stderr)
        nan = math.nan
        return Run(problem, tool, seed, finished.seconds, nan, nan, nan, nan, nan, how)
    error = worst_error(answer["unknowns"], _reference(problem))
    return Run(
        problem,
        tool,
        seed,
        finished.seconds,
        answer.get("import", math.nan),
        answer.get("work", math.nan),
        answer.get("again", math.nan),
        answer["objective"],
        error,
        verdict(problem, answer["objective"], error),
    )


def verdict(problem: str, objective: float, error: float) -> str:
    """Whether an answer is right; see the top of this file."""
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
        answer: dict[str, Any] = json.loads(finished.output)
        return answer
    return None


def _reference(problem: str) -> dict[str, float]:
    known = odefit.library.reference(problem)
    return {**known.parameters, **known.initial}


def _size(problem: str) -> float:
    frame = odefit.library.load(problem).data()
    values = frame.drop(columns="t").to_numpy(dtype=float)
    return float(np.nansum(values**2))


def campaign(names: Sequence[str], repeats: int, limit: float) -> list[Run]:
    """All runs, the tools taking turns."""
    for tool in ("odefit", "by hand", "COPASI LM"):  # byte code and file cache, not recorded
        fit(tool, "hiv-f", 0, limit, None)
    runs: list[Run] = []
    for seed in range(repeats):
        for problem in names:
            with tempfile.TemporaryDirectory() as shared, tempfile.TemporaryDirectory() as fresh:
                caches = dict.fromkeys(OWN, Path(shared)) | {INSIDE: Path(fresh)}
                for tool in (*SINGLE, INSIDE):
                    before = [r for r in runs if (r.problem, r.tool) == (problem, tool)]
                    if tool == "by hand" and before and before[0].seconds > SLOW:
                        continue
                    runs.append(fit(tool, problem, seed, limit, caches.get(tool)))
                    last = runs[-1]
                    print(
                        f"{problem:18s} {tool:18s} {last.seconds:7.2f} s  {last.verdict}",
                        file=sys.stderr,
                    )
    return runs


def cell(runs: Sequence[Run]) -> str:
    """Median seconds and verdicts of one tool on one problem."""
    if not runs:
        return ""
    good = sum(r.verdict == "right" for r in runs)
    time = seconds(statistics.median(r.seconds for r in runs))
    if good == len(runs):
        return f"{time} right"
    others = {r.verdict for r in runs} - {"right"}
    label = next(v for v in ("failed", "time limit", "wrong", "fits") if v in others)
    return f"{time} {label}" if not good else f"{time} right {good}/{len(runs)}"


def tables(runs: Sequence[Run], names: Sequence[str]) -> str:
    """Both tables and the sentences that judge them."""
    header = ["problem", *(f"{t}, s" for t in SINGLE), "odefit / fastest right COPASI"]
    rows, inside, sentences = [], [], []
    wrong, slower = [], []
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
    sentences.append(
        f"odefit is right on {len(names) - len(wrong)} of {len(names)} problems"
        + (f" (not on {', '.join(wrong)})." if wrong else ".")
    )
    sentences.append(
        f"It is slower than COPASI where COPASI is right on: {', '.join(slower) or 'none'}."
    )
    second = [
        "problem",
        "odefit import",
        "first fit",
        "same fit again",
        "COPASI import",
        "COPASI SS",
        "COPASI LM",
        "by hand",
    ]
    return "\n\n".join(
        [
            "Process start to result, median seconds:",
            markdown(header, rows),
            " ".join(sentences),
            'Inside one process, median seconds (columns without "import": after imports):',
            markdown(second, inside),
        ]
    )


def against_copasi(by_tool: dict[str, list[Run]]) -> float:
    """Seconds of odefit over those of the faster COPASI method that is right, with the same seed.

    The median over seeds: what ran one after the other shared the machine's load. NaN where
    COPASI is never right.
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


def check(names: Sequence[str], limit: float) -> str:
    """COPASI's objective beside odefit's, at the reference and at points near it."""
    rng = np.random.default_rng(0)
    rows = []
    for problem in names:
        loaded = odefit.library.load(problem)
        forward = odefit.ForwardMap(loaded)
        reference = loaded.vector(_reference(problem))
        points = {"reference": reference}
        shaken = reference * rng.uniform(0.9, 1.1, len(reference))
        points["near"] = np.clip(shaken, loaded.lower, loaded.upper)  # COPASI would do so
        for place, vector in points.items():
            values = json.dumps(dict(zip(_keys(loaded), vector.tolist(), strict=True)))
            file = str(odefit.library.path(problem))
            tool = [sys.executable, str(TOOLS / "fit_copasi.py"), file, "check", values]
            finished = run_process(tool, limit)
            evaluation = forward.evaluate(vector)
            if finished.status != 0 or isinstance(evaluation, odefit.Failure):
                raise SystemExit(f"{problem}: {finished.errors}{evaluation}")
            rows.append(
                [problem, place, f"{evaluation.objective:.8g}", f"{float(finished.output):.8g}"]
            )
    return markdown(["problem", "where", "odefit", "COPASI"], rows)


def _keys(problem: odefit.Problem) -> list[str]:
    return [u.key for u in problem.unknowns]


def main() -> None:
    """Read the command line, run, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each fit")
    parser.add_argument("--problems", nargs="+", choices=problems(), default=problems())
    parser.add_argument("--out", type=Path, help="folder for whole_fit.csv and whole_fit.md")
    parser.add_argument("--check", action="store_true", help="compare objectives, time nothing")
    options = parser.parse_args()
    if options.check:
        print(check(options.problems, options.limit))
        return
    runs = campaign(options.problems, options.repeats, options.limit)
    text = f"{tables(runs, options.problems)}\n\n{machine()}"
    publish(text, options.out and options.out / "whole_fit.md")
    if options.out is not None:
        with (options.out / "whole_fit.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, [f.name for f in fields(Run)])
            writer.writeheader()
            writer.writerows(asdict(r) for r in runs)


if __name__ == "__main__":
    main()
