"""Small problems with noise, of different shapes, and certificates of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.bounds.textbook import SYSTEMS
from evidence.zoo.drawing import sampled
from odefit import BranchAndBound, Event, Experiment, Model, Problem
from odefit.certificates.document import Document, read_document
from odefit.common.arrays import Array
from odefit.problem import problem_from_mapping

TIMES = np.linspace(0.5, 4.0, 8)
NOISE = 0.05 * np.array([1.0, -0.7, 0.4, -1.2, 0.9, 0.1, -0.5, 0.8])


def quadratic() -> Problem:
    """Return the problem of the documentation: decay of second order."""
    return Problem(
        Model(ode={"x": "-k*x^2"}),
        {"t": [0.5, 1.0, 2.0, 4.0], "x": [0.72, 0.45, 0.37, 0.18]},
        {"k": {"lower": 0.0, "upper": 5.0}},
        {"x": {"lower": 0.5, "upper": 2.0}},
    )


def one(rate: str, truth: Callable[[Array], Array], upper: float = 3.0, **more: Any) -> Problem:
    """Return a problem with one state, x(0) = 1, and the unknown k."""
    return Problem(
        Model(ode={"x": rate}, **more.pop("model", {})),
        {"t": TIMES, "x": truth(TIMES) + NOISE},
        {"k": {"lower": 0.05, "upper": upper}},
        {"x": 1.0},
        noise={"x": {"sd": 0.05}},
        **more,
    )


def decay(times: Array) -> Array:
    """Return the solution of x' = -0.7 x, x(0) = 1."""
    return np.asarray(np.exp(-0.7 * times))


def ten() -> dict[str, Problem]:
    """Return ten problems: functions, inputs, events, priors, several states and conditions."""
    found = {
        "quadratic": quadratic(),
        "decay": one("-k*x", decay),
        "saturated": one("-k*x/(0.5 + x)", decay),
        "root": one("-k*sqrt(x)", lambda t: (1 - 0.1 * t) ** 2, 0.4),
        "sine": one("-k*sin(x)", decay),
        "power": one("-k*x^1.5", decay),
        "forced": one("exp(-t) - k*x", lambda t: (1 + t) * np.exp(-t)),
        "prior": one("-k*x", decay),
    }
    found["prior"] = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": decay(TIMES) + NOISE},
        {"k": {"lower": 0.05, "upper": 3.0, "prior": {"mean": 0.9, "sd": 0.1}}},
        {"x": 1.0},
        noise={"x": {"sd": 0.05}},
    )
    found["dose"] = Problem(
        Model(ode={"d": "-2*d", "c": "2*d - k*c"}, observables={"y": "c/v"}),
        {"t": TIMES, "y": (np.exp(-0.7 * TIMES) - np.exp(-2 * TIMES)) * 1.5 + NOISE},
        {"k": {"lower": 0.1, "upper": 2.0}, "v": {"lower": 0.5, "upper": 4.0}},
        {"d": 1.0, "c": 0.0},
        noise={"y": {"sd": 0.05}},
    )
    pulse = Experiment(
        "pulse",
        {"t": TIMES, "x": np.where(TIMES > 2, 1 + np.exp(1.4), 1) * np.exp(-0.7 * TIMES) + NOISE},
        events=[Event((2.0,), {"x": "x + 1"})],
    )
    found["event"] = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[pulse],
        parameters={"k": {"lower": 0.05, "upper": 3.0}},
        initial={"x": 1.0},
        noise={"x": {"sd": 0.05}},
    )
    return found


def oscillator(name: str) -> Problem:
    """Return a textbook oscillator whose unknowns are known to 4 %, over half of its times."""
    entry: dict[str, Any] = dict(SYSTEMS[name])
    entry["unknown"] = {key: [value, 1.04, 1.04] for key, (value, *_) in entry["unknown"].items()}
    first, last, count = entry["times"]
    entry["times"] = [first, (first + last) / 2, count // 2]
    return problem_from_mapping(sampled(name, entry, 0).mapping)


def certificate(problem: Problem, folder: Path, gap: float = 0.02) -> Document:
    """Return the certificate of a problem, as it was read from its file."""
    path = folder / "certificate.json"
    method = BranchAndBound(gap=gap, starts=2, certificate=path)
    odefit.fit(problem, method, seed=1, jobs=1)
    return read_document(path)
