"""Problems whose trajectories are known exactly, and short ways to matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from odefit import Experiment, IntegralMatching, Model, Problem
from odefit.common.arrays import Array
from odefit.methods.integral_matching import Match
from odefit.methods.integral_matching.criterion import IntegralCriterion
from odefit.methods.integral_matching.segments import Grid, SmoothedSegment

T = np.linspace(0.0, 4.0, 41)
DECAY = np.exp(-0.7 * T)
CHAIN = 0.7 * T * DECAY
"""Of x' = -a x, w' = a x - b w with both rates 0.7, from x = 1, w = 0."""


def decay(**more: Any) -> Problem:
    """x' = -a x from x(0), both unknown; a = 0.7, x(0) = 1."""
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-a*x"}),
        "data": {"t": T, "x": DECAY},
        "parameters": {"a": {}},
        "initial": {"x": {}},
        **more,
    }
    return Problem(**arguments)


def chain(**more: Any) -> Problem:
    """Two decays in a row, both measured."""
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-a*x", "w": "a*x - b*w"}),
        "data": {"t": T, "x": DECAY, "w": CHAIN},
        "parameters": {"a": {}, "b": {}},
        "initial": {"x": {}, "w": {}},
        **more,
    }
    return Problem(**arguments)


def saturated(noise: float = 0.0, seed: int = 0, **more: Any) -> Problem:
    """x' = -v x/(k + x) + f, w' = v x/(k + x) - e w: k is nonlinear; v 2, k 0.5, f 0.3, e 0.4."""

    def rhs(t: float, z: Array) -> list[float]:
        uptake = 2.0 * z[0] / (0.5 + z[0])
        return [0.3 - uptake, uptake - 0.4 * z[1]]

    found = solve_ivp(rhs, (0, 4), [3.0, 0.5], t_eval=T, rtol=1e-11, atol=1e-12).y
    found = found + noise * np.random.default_rng(seed).normal(size=found.shape)
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "f - v*x/(k + x)", "w": "v*x/(k + x) - e*w"}),
        "data": {"t": T, "x": found[0], "w": found[1]},
        "parameters": {
            "v": {},
            "k": {"lower": 0.01, "upper": 5.0, "guess": 1.0},
            "f": {},
            "e": {},
        },
        "initial": {"x": {}, "w": {}},
        **more,
    }
    return Problem(**arguments)


SATURATED = {"v": 2.0, "k": 0.5, "f": 0.3, "e": 0.4, "x": 3.0, "w": 0.5}


def epidemic(points: int = 41, **more: Any) -> Problem:
    """SIR, I alone measured; beta 6, gamma 2.3, S(0) 0.9, I(0) 0.01."""

    def rhs(t: float, z: Array) -> list[float]:
        return [-6.0 * z[0] * z[1], 6.0 * z[0] * z[1] - 2.3 * z[1]]

    times = np.linspace(0.0, 4.0, points)
    found = solve_ivp(rhs, (0, 4), [0.9, 0.01], t_eval=times, rtol=1e-11, atol=1e-13).y
    arguments: dict[str, Any] = {
        "model": Model(ode={"S": "-beta*S*I", "I": "beta*S*I - gamma*I"}, observables={"I": "I"}),
        "data": {"t": times, "I": found[1]},
        "parameters": {"beta": {"lower": 0.0, "upper": 20.0}, "gamma": {"lower": 0.0}},
        "initial": {"S": {"lower": 0.0, "upper": 1.0}, "I": {"lower": 0.0}},
        **more,
    }
    return Problem(**arguments)


EPIDEMIC = {"beta": 6.0, "gamma": 2.3, "S": 0.9, "I": 0.01}


def matched(problem: Problem, **options: Any) -> tuple[Match, dict[str, float]]:
    """The match and its unknowns by name."""
    match = IntegralMatching(**options).match(problem)
    return match, dict(zip(problem.keys, match.vector.tolist(), strict=True))


def worst(found: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """Largest error of the unknowns in `truth`."""
    return max(abs(found[k] - v) for k, v in truth.items())


def exactly(problem: Problem, states: Mapping[str, Array], times: Array) -> IntegralCriterion:
    """The criterion of one condition on given curves instead of smoothed data."""
    grid = Grid(times, times, (0, len(times)))
    ends = float(times[0]), float(times[-1])
    segment = SmoothedSegment(0, True, *ends, grid, states, {})
    return IntegralCriterion(problem, [segment], (), np.zeros((0, len(problem.model.states))))


def two(first: Mapping[str, Any], second: Mapping[str, Any], **more: Any) -> list[Experiment]:
    return [Experiment("A", first, **more), Experiment("B", second, **more)]
