"""Random problems of one to three unknowns, whose best fit is found by many local searches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from odefit import ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure
from odefit.methods.branch_and_bound.local_minima import objective_at
from odefit.simulation import Evaluation

MODELS: dict[str, tuple[dict[str, str], dict[str, float], dict[str, Any], float]] = {
    "decay": ({"x": "-k*x"}, {"k": 0.7}, {"x": 2.0}, 4.0),
    "growth and decay": ({"x": "c - k*x"}, {"k": 0.8, "c": 0.5}, {"x": 0.1}, 4.0),
    "two compartments": (
        {"a": "-k*a + m*b", "b": "k*a - m*b"},
        {"k": 0.9, "m": 0.3},
        {"a": 1.0, "b": 0.0},
        4.0,
    ),
    "chain": ({"a": "-k*a", "b": "k*a - m*b"}, {"k": 1.1, "m": 0.4}, {"a": 1.0, "b": 0.0}, 4.0),
    "harmonic": ({"x": "w*y", "y": "-w*x"}, {"w": 1.3}, {"x": 0.5, "y": 1.0}, 4.0),
    "logistic": ({"x": "r*x*(1 - x/K)"}, {"r": 1.2, "K": 1.5}, {"x": 0.2}, 4.0),
    "Lotka-Volterra": (
        {"x": "x*(a - y)", "y": "y*(b*x - 1)"},
        {"a": 0.8, "b": 1.1},
        {"x": 1.2, "y": 0.9},
        2.0,
    ),
}
"""Equations, parameters, initial values, and the time until which is measured."""


@dataclass(frozen=True, eq=False)
class Small:
    """A random problem, and how its data were made.

    Attributes
    ----------
    planted
        The unknowns that the data were made with; they are in the box.
    noisy
        Whether noise was added.
    """

    name: str
    problem: Problem
    planted: Array
    noisy: bool


def small(number: int) -> Small:
    """Return the random problem with this number."""
    rng = np.random.default_rng([17, number])
    name = list(MODELS)[number % len(MODELS)]
    ode, parameters, start, last = MODELS[name]
    noisy = bool(rng.uniform() < 0.6)
    parameters = {k: v * math.exp(rng.normal(0, 0.3)) for k, v in parameters.items()}
    times = np.sort(rng.uniform(0.0, last, int(rng.integers(4, 8))))
    times[0] = 0.0
    first = next(iter(start))
    free = len(parameters) < 2 or rng.uniform() < 0.2  # an initial value, too
    seen = list(ode) if rng.uniform() < 0.7 else [list(ode)[-1]]
    bounds = {k: _bounds(rng, v) for k, v in parameters.items()}
    initial: dict[str, Any] = dict(start)
    truth = dict(parameters)
    if free:
        truth[first] = start[first]
        initial[first] = _bounds(rng, start[first])
    known = Problem(
        Model(ode=ode), _zeros(times, list(ode)), {k: {} for k in parameters}, {**start}
    )
    path = ForwardMap(known).trajectory(known.vector(parameters), sensitivities=False)
    data: dict[str, Array] = {"t": times}
    for k, state in enumerate(ode):
        if state in seen:
            values = path.states[:, k]  # type: ignore[union-attr]
            size = float(np.abs(values).max())
            data[state] = values + noisy * rng.choice([0.02, 0.1]) * size * rng.normal(
                size=len(times)
            )
    problem = Problem(Model(ode=ode), data, bounds, initial)
    return Small(name, problem, problem.vector(truth), noisy)


def _bounds(rng: np.random.Generator, value: float) -> dict[str, float]:
    lower = 0.0 if rng.uniform() < 0.3 else value / rng.choice([1.5, 3.0, 10.0])
    return {"lower": float(lower), "upper": float(value * rng.choice([1.3, 2.0, 5.0]))}


def _zeros(times: Array, states: list[str]) -> dict[str, Array]:
    return {"t": times, **{s: np.zeros(len(times)) for s in states}}


def best_known(found: Small, starts: int = 12) -> float:
    """The least objective of many local searches on the integrated trajectories."""
    problem, forward = found.problem, ForwardMap(found.problem)
    rng = np.random.default_rng(3)
    low, high = problem.lower, problem.upper
    worst = np.full(problem.size, 1e6)

    def evaluate(vector: Array) -> Evaluation | None:
        end = forward.evaluate(np.clip(vector, low, high))
        return end if isinstance(end, Evaluation) else None

    def residuals(vector: Array) -> Array:
        end = evaluate(vector)
        return worst if end is None else end.residuals

    def jacobian(vector: Array) -> Array:
        end = evaluate(vector)
        return np.zeros((problem.size, len(low))) if end is None else end.jacobian

    points = [found.planted, *(low + (high - low) * rng.uniform(size=(starts, len(low))))]
    ends = [
        least_squares(
            residuals, np.clip(p, low, high), jacobian, (low, high), xtol=1e-12, ftol=1e-12
        )
        for p in points
    ]
    best = min(ends, key=lambda end: end.cost)
    # Of the objective, an upper bound that is rigorous.
    return objective_at(Enclosure(problem), np.clip(best.x, low, high))
