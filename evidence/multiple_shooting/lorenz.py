"""Lorenz-63 with noise, over many Lyapunov times, and a fit timed on one thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import odefit

Array = NDArray[np.float64]
LYAPUNOV = 0.9056  # largest exponent of Lorenz-63
SPACING = 100 / LYAPUNOV / 4999  # between data times
STATES = ("x", "y", "z")
PARAMETERS = ("s", "r", "b")
TRUTH = (10.0, 28.0, 8 / 3)
GUESS = (5.0, 20.0, 1.0)


def lorenz(
    count: int,
    seed: int,
    observed: Sequence[str] = STATES,
    first: Sequence[float] = GUESS,
    spacing: float = SPACING,
) -> odefit.Problem:
    """Return this number of data on the attractor, with 10 % noise."""

    def slope(t: float, u: Array) -> list[float]:
        s, r, b = TRUTH
        return [s * (u[1] - u[0]), u[0] * (r - u[2]) - u[1], u[0] * u[1] - b * u[2]]

    start = solve_ivp(slope, (0.0, 20.0), [1.0, 1.0, 1.0], rtol=1e-10, atol=1e-10).y[:, -1]
    t = spacing * np.arange(count)
    span = (0.0, float(t[-1]))
    path = solve_ivp(slope, span, start, "DOP853", t, rtol=1e-12, atol=1e-12).y
    noise = 0.1 * path.std(axis=1)[:, None]
    values = path + noise * np.random.default_rng(seed).normal(size=path.shape)
    model = odefit.Model(
        ode={"x": "s*(y-x)", "y": "x*(r-z)-y", "z": "x*y-b*z"}, observables={k: k for k in observed}
    )
    rows = dict(zip(STATES, values, strict=True))
    return odefit.Problem(
        model,
        data={"t": t} | {k: rows[k] for k in observed},
        parameters={k: {"guess": v} for k, v in zip(PARAMETERS, first, strict=True)},
        initial={k: {"guess": rows[k][0] if k in observed else 1.0} for k in STATES},
    )


@dataclass(frozen=True)
class Fitted:
    """A fit and its processor seconds."""

    result: odefit.Result
    seconds: float


def fitted(problem: odefit.Problem, method: Any, limit: float | None = None) -> Fitted:
    """Fit in this process alone."""
    began = time.process_time()
    result = odefit.fit(problem, method, jobs=1, time_limit=limit)
    return Fitted(result, time.process_time() - began)


def steps_of(result: odefit.Result) -> str:
    """Gauss-Newton iterations, from the message of the start."""
    words = result.starts[0].message.split()
    return words[words.index("Gauss-Newton") - 1] if "Gauss-Newton" in words else "-"
