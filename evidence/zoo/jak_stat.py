"""Measured data of the JAK-STAT cascade from many seeds: are both optima told from each?

I. Swameye, T. G. Mueller, J. Timmer, O. Sandra and U. Klingmueller, PNAS 100 (2003) 1028. One
optimum has a slow reaction of dimers, another one where that is as fast as its bound allows fits
within the noise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task

DATA = Path(__file__).parents[2] / "tests" / "data" / "jak_stat.csv"

OPTIONS = (Option("seeds", 20, "seeds of the fit", least=1),)


def tasks(seeds: int) -> list[Task]:
    """Return the tasks, one for each seed."""
    return [{"key": f"seed {seed}", "seed": seed} for seed in range(seeds)]


def cascade() -> odefit.Problem:
    """Return the problem, with bounds of six orders of magnitude for the rates."""
    rate = {"lower": 1e-3, "upper": 1e3, "scale": "log10"}
    scale = {"lower": 1e-2, "upper": 1e2, "scale": "log10"}
    model = odefit.Model(
        ode={
            "x1": "-p1*x1*E + 2*p4*x4",
            "x2": "p1*x1*E - p2*x2^2",
            "x3": "0.5*p2*x2^2 - p3*x3",
            "x4": "p3*x3 - p4*x4",
        },
        observables={"y1": "s1*(x2 + 2*x3)", "y2": "s2*(x1 + x2 + 2*x3)"},
        inputs={"E": "linear"},
    )
    rates = dict.fromkeys(("p1", "p2", "p3", "p4"), rate)
    return odefit.Problem(
        model,
        pd.read_csv(DATA, comment="#"),
        rates | {"s1": scale, "s2": scale},
        {"x1": 1.0, "x2": 0.0, "x3": 0.0, "x4": 0.0},
        noise={"y1": {"sd": 0.05}, "y2": {"sd": 0.04}},
        t0=0.0,
    )


def run(task: Task) -> Mapping[str, Any]:
    began = time.process_time()
    result = odefit.fit(cascade(), seed=task["seed"], jobs=1)
    return {
        "status": result.status.value,
        "objective": result.objective,
        "deviances": [s.deviance for s in result.fitting],
        "p2": [s.parameters["p2"] for s in result.fitting],
        "processor": time.process_time() - began,
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return how many seeds end alike, by the optima that they tell."""
    rows = []
    for r in records:
        if r.result is None:
            continue
        found = r.result
        p2 = found["p2"]
        rows.append(
            {
                "p2 of the solutions told": ", ".join(f"{v:.2g}" for v in p2) or "none",
                "status": found["status"],
                "objective": round(found["objective"], 3),
                "deviance of the others": ", ".join(f"{d:.2f}" for d in found["deviances"][1:]),
                "processor s": found["processor"],
            }
        )
    if not rows:
        return {}
    told = pd.DataFrame(rows)
    alike = [key for key in told if key != "processor s"]
    table = told.groupby(alike, sort=False).agg(
        seeds=("processor s", "size"),
        **{"median s": ("processor s", "median"), "most s": ("processor s", "max")},
    )
    return {"jak-stat": table.reset_index().round(2)}
