"""Problems with exact data, by an integration that has nothing to do with odefit's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from odefit import Control, Model, Problem, Start
from odefit.common.arrays import Array
from odefit.methods.algebraic import Algebraic
from odefit.methods.estimate import Estimate

TIMES = np.linspace(0.0, 4.0, 31)

RightHandSide = Callable[[float, Array], Sequence[float]]


def integrated(
    rhs: RightHandSide,
    start: Sequence[float],
    times: Array = TIMES,
    doses: Mapping[float, Callable[[Array], Array]] | None = None,
) -> Array:
    """States at `times`, shape (states, times).

    Doses change the state at their times; a measurement at that time sees what was before.
    """
    doses = doses or {}
    first, last = float(times[0]), float(times[-1])
    cuts = [first, *(d for d in sorted(doses) if first < d < last), last]
    found = np.zeros((len(start), len(times)))
    state = np.array(start, dtype=float)
    found[:, 0] = state
    for low, high in itertools.pairwise(cuts):
        state = doses[low](state) if low in doses else state
        rows = np.flatnonzero((times > low) & (times <= high))
        wanted = np.unique(np.append(times[rows], high))
        run = solve_ivp(
            rhs, (low, high), state, method="DOP853", rtol=1e-13, atol=1e-15, t_eval=wanted
        )
        found[:, rows] = run.y[:, : len(rows)]
        state = run.y[:, -1]
    return found


# The toy example of Bassik et al., section 2 ----------------------------------------------------


def toy(**data: Any) -> Problem:
    """x' = -mu x, y = x^2 + x: two solutions of the polynomial system, one of them spurious."""
    return Problem(
        Model(ode={"x": "-mu*x"}, observables={"y": "x^2 + x"}),
        {"t": [0.0, 0.333, 0.666, 1.0], "y": [2.0, 1.563, 1.229, 0.974], **data},
        {"mu": {}},
        {"x": {}},
    )


# Lotka and Volterra, the prey alone observed ----------------------------------------------------

PREY = Model(ode={"r": "a*r - b*r*w", "w": "b*r*w - c*w"}, observables={"y": "r"})
PREY_TRUTH = {"a": 0.7, "b": 0.9, "c": 0.5, "r": 1.2, "w": 0.4}


def prey_rhs(t: float, z: Array) -> list[float]:
    a, b, c = PREY_TRUTH["a"], PREY_TRUTH["b"], PREY_TRUTH["c"]
    return [a * z[0] - b * z[0] * z[1], b * z[0] * z[1] - c * z[1]]


def prey(times: Array = TIMES, values: Any = None, **more: Any) -> Problem:
    """Prey and predator; `values` in place of exact ones, `more` in place of what is unknown."""
    exact = integrated(prey_rhs, [1.2, 0.4], times)[0] if values is None else values
    given: dict[str, Any] = {
        "parameters": {"a": {}, "b": {}, "c": {}},
        "initial": {"r": {}, "w": {}},
        **more,
    }
    return Problem(PREY, {"t": times, "y": exact}, **given)


# One state, of which the solution is known ------------------------------------------------------

LOGISTIC = Model(ode={"x": "-k*x^2 - j*x"}, observables={"y": "x"})
LOGISTIC_TRUTH = {"k": 0.3, "j": 0.2}


def logistic_rhs(t: float, z: Array) -> list[float]:
    return [-0.3 * z[0] ** 2 - 0.2 * z[0]]


def logistic(start: float, times: Array = TIMES) -> Array:
    """The solution of x' = -k x^2 - j x from `start`."""
    k, j = LOGISTIC_TRUTH["k"], LOGISTIC_TRUTH["j"]
    decay = np.exp(-j * times)
    value: Array = j * start * decay / (j + k * start * (1.0 - decay))
    return value


# What is done with them -------------------------------------------------------------------------


def solved(problem: Problem, control: Control | None = None, **options: Any) -> Estimate:
    """What the method finds."""
    return Algebraic(**options).solve(problem, control or Control(seed=0))


def best(found: Estimate) -> Start:
    """The best start, of which there is one."""
    assert found.best is not None, found.message
    return found.best


def named(problem: Problem, vector: Array) -> dict[str, float]:
    """The unknowns by key."""
    return {k: float(v) for k, v in zip(problem.keys, vector, strict=True)}


def worst(problem: Problem, vector: Array, truth: Mapping[str, float]) -> float:
    """The largest relative error among the unknowns that `truth` has."""
    values = named(problem, vector)
    return max(abs(values[k] / v - 1.0) for k, v in truth.items() if k in values)
