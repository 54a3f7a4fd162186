"""Random problems of the field fitted by the default method, beside long searches by SciPy.

Each number has two tasks. A ``reference`` is the lowest optimum of searches by SciPy alone from the
truth and from many other points. A ``fit`` is by odefit, and SciPy judges its values. Both remain
in the store: after a change of odefit, delete the rows of the fits, and only these run again. Named
single methods are fitted as well; they begin near the truth. The log-likelihood or sum of squares
that odefit reports must equal that of SciPy for the same unknowns.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task
from evidence.zoo.drawing import BLOCKS, Drawn, drawn
from evidence.zoo.parts import PARTS
from evidence.zoo.searching import searched
from odefit.problem import problem_from_mapping

ALIKE = 0.05  # difference of chi-square, or n log of the sum of squares, that is ignored
SAME_VALUE = 1e-5  # relative difference of values at the same unknowns that is ignored
DEFAULT = "automatic"
METHODS: Mapping[str, Any] = {
    DEFAULT: None,
    "single-shooting": odefit.SingleShooting(),
    "transcription": odefit.Transcription(starts=1, shooting=False),
    "multiple-shooting": odefit.MultipleShooting(starts=1),
}
VERDICTS = ("right", "converged on a wrong one", "not converged", "traceback")

OPTIONS = (
    Option("count", 600, "number of problems", least=1),
    Option("first", 0, "number of the first", least=0),
    Option("parts", PARTS, "reference,fit or one of them", PARTS),
    Option("methods", (DEFAULT,), f"methods of the fits, of {','.join(METHODS)}", METHODS),
    Option("starts", 10, "random starts of a reference", least=0),
    Option("limit", 60.0, "time limit of a fit in seconds", above=0),
)


def tasks(
    count: int,
    first: int,
    parts: Sequence[str],
    methods: Sequence[str],
    starts: int,
    limit: float,
) -> list[Task]:
    kinds: dict[str, list[dict[str, Any]]] = {
        "reference": [{"starts": starts}],
        "fit": [{"method": method, "limit": limit} for method in methods],
    }
    return [
        {
            "key": " ".join(map(str, (part, number, *kind.values()))),
            "part": part,
            "number": number,
            **kind,
        }
        for part in parts
        for kind in kinds[part]
        for number in range(first, first + count)
    ]


def run(task: Task) -> dict[str, Any]:
    number = task["number"]
    if task["part"] == "fit":
        return fitted(number, task["method"], task["limit"])
    found = drawn(number)
    random = np.random.default_rng([number, 1])
    return searched(found.by_hand, found.truth, task["starts"], random)


def fitted(number: int, method: str, limit: float) -> dict[str, Any]:
    """Fit a problem, and let SciPy judge the answer."""
    found = drawn(number)
    problem = problem_from_mapping(found.mapping if method == DEFAULT else guessed(found))
    began, processor = time.perf_counter(), time.process_time()
    result = odefit.fit(problem, METHODS[method], seed=number, jobs=1, time_limit=limit)
    told: dict[str, Any] = {
        "block": found.block,
        "features": found.features,
        "status": result.status.value,
        "message": result.message,
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - processor,
        "measure": math.inf,
        "values": {},
    }
    if result.solutions:
        told["values"] = dict(zip(problem.keys, result.best.vector.tolist(), strict=True))
        log_likelihood = result.best.log_likelihood
        reported = result.objective if log_likelihood is None else -2 * log_likelihood
        try:
            told["measure"] = found.judge.measure(told["values"])
            cost = found.judge.cost(told["values"])
            told["apart"] = abs(reported - cost) / max(abs(cost), 1.0 if problem.noise else 0.0)
        except (ArithmeticError, ValueError) as error:
            told["message"] += f" SciPy cannot judge it: {error}"
    return told


def guessed(found: Drawn) -> dict[str, Any]:
    """Return the problem with guesses near the truth."""
    random = np.random.default_rng([found.number, 2])
    start = {k: v * math.exp(random.uniform(-0.1, 0.1)) for k, v in found.truth.items()}
    return {**found.mapping} | {
        section: {
            k: {**table, "guess": start[k]} if isinstance(table, dict) and k in start else table
            for k, table in found.mapping[section].items()
        }
        for section in ("parameters", "initial")
    }


def verdict(record: Record, best: float) -> tuple[str, float]:
    """Return the verdict on a fit beside the best optimum known, and its excess."""
    if record.result is None:
        return "not converged" if record.outcome == "time limit" else "traceback", math.inf
    measure = record.result["measure"]
    worse = math.inf if measure is None else measure - best
    converged = record.result["status"] == "converged"
    if worse <= ALIKE:
        return "right" if converged else "not converged", worse
    return "converged on a wrong one" if converged else "not converged", worse


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the verdicts, those of each block, and by name all that are not right."""
    best = {
        r.task["number"]: r.result["best"]
        for r in records
        if r.task["part"] == "reference" and r.result
    }
    rows = []
    for record in records:
        number = record.task["number"]
        if record.task["part"] != "fit" or number not in best:
            continue
        r = record.result or {}
        said, worse = verdict(record, best[number])
        rows.append(
            {
                "number": number,
                "method": record.task["method"],
                "block": list(BLOCKS)[number % len(BLOCKS)],
                "verdict": said,
                "worse by": worse,
                "status": r.get("status", record.outcome),
                "features": ", ".join(r.get("features", [])),
                "value apart": r.get("apart"),
                "processor s": r.get("processor", record.seconds),
                "message": r.get("message", record.reason).partition(". ")[0],
            }
        )
    if not rows:
        return {}
    fits = pd.DataFrame(rows)
    summary = []
    for method, of in fits.groupby("method", sort=False):
        times, counts = of["processor s"], Counter(of["verdict"])
        summary.append(
            {
                "method": method,
                "problems": len(of),
                **{v: counts[v] for v in VERDICTS},
                "right %": round(100 * counts["right"] / len(of), 2),
                "better than SciPy's": int((of["worse by"] < -ALIKE).sum()),
                "other value": int((pd.to_numeric(of["value apart"]) > SAME_VALUE).sum()),
                "median s": round(float(times.median()), 2),
                "95 % s": round(float(times.quantile(0.95)), 1),
                "most s": round(float(times.max()), 1),
            }
        )
    default = fits[fits["method"] == DEFAULT]
    blocks = default.groupby("block")["processor s"]
    table = pd.crosstab(default["block"], default["verdict"]).reindex(
        columns=VERDICTS, fill_value=0
    )
    table["median s"], table["most s"] = blocks.median().round(2), blocks.max().round(1)
    odd = (fits["verdict"] != "right") | (pd.to_numeric(fits["value apart"]) > SAME_VALUE)
    named = {"zoo": pd.DataFrame(summary), "blocks": table.reset_index()}
    for column in ("worse by", "value apart"):
        fits[column] = [float(f"{v:.2g}") for v in pd.to_numeric(fits[column])]
    fits["processor s"] = fits["processor s"].round(1)
    return named | {"failures": fits[odd]}
