"""Problems whose equations have elementary functions."""

from __future__ import annotations

import numpy as np

from odefit import ForwardMap, Model, Problem
from odefit.common.arrays import Array

TIMES = np.array([0.0, 0.5, 1.0, 1.6, 2.4])

MODELS: dict[str, tuple[dict[str, str], dict[str, float], dict[str, float]]] = {
    "exp": ({"x": "c*exp(-k*x) - x"}, {"c": 1.5, "k": 0.8}, {"x": 0.2}),
    "Hill": ({"x": "1.2*x^n/(K^n + x^n) - 0.4*x"}, {"K": 0.7, "n": 2.4}, {"x": 0.6}),
    "rhythm": ({"x": "a*sin(w*t) - x"}, {"a": 1.1, "w": 1.9}, {"x": 0.5}),
    "outflow": ({"x": "u - k*sqrt(x)"}, {"u": 0.3, "k": 0.9}, {"x": 1.4}),
    "power law": ({"x": "-k*x^g"}, {"k": 0.7, "g": 1.6}, {"x": 1.5}),
}
"""Equations, parameters and initial values."""


def problem_of(name: str, noise: float = 0.0, width: float = 1.5) -> tuple[Problem, Array]:
    """Return a problem, and the unknowns that its data were made with."""
    ode, values, initial = MODELS[name]
    data = {"t": TIMES, "x": np.zeros(len(TIMES))}
    known = Problem(Model(ode=ode), data, {k: {} for k in values}, initial)
    truth = known.vector(values)
    path = ForwardMap(known).trajectory(truth, sensitivities=False)
    rng = np.random.default_rng(len(name))
    x = path.states[:, 0] + noise * rng.normal(size=len(TIMES))  # type: ignore[union-attr]
    bounds = {k: {"lower": v / width, "upper": v * width} for k, v in values.items()}
    return Problem(Model(ode=ode), {"t": TIMES, "x": x}, bounds, initial), truth
