"""Problems whose likelihood has a ridge or two optima: the map, and two solutions of each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from odefit import Model, Problem
from odefit.common.arrays import Array
from odefit.simulation import ForwardMap

TIMES = np.linspace(0.0, 6.0, 30)

Make = Callable[[], tuple[ForwardMap, Array, Array]]


def product() -> tuple[ForwardMap, Array, Array]:
    """x = a b exp(-k t) where a weak term tells a from b: a ridge along a b = 6."""
    bounds = {"lower": 0.1, "upper": 60.0}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "a*b*x + 0.001*a"}),
        {"t": TIMES, "y": 6.0 * np.exp(-0.5 * TIMES) + 0.002},
        {"k": bounds, "a": bounds, "b": bounds},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([0.5, 2.0, 3.0]), np.array([0.5, 12.0, 0.5])


def bent() -> tuple[ForwardMap, Array, Array]:
    """The sum of a and b is determined: a straight way in logarithms leaves the ridge."""
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "(a + b)*x + 0.0001*a"}),
        {"t": TIMES, "y": 6.0 * np.exp(-0.5 * TIMES)},
        {key: {"lower": 0.1, "upper": 60.0} for key in ("k", "a", "b")},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([0.5, 0.2, 5.8]), np.array([0.5, 5.8, 0.2])


def circle() -> tuple[ForwardMap, Array, Array]:
    """The data determine the sum of the squares of a and b alone, and k."""
    signed, positive = {"lower": -3.0, "upper": 3.0}, {"lower": 0.1, "upper": 3.0}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "(a^2 + b^2)*x"}),
        {"t": TIMES, "y": np.exp(-0.5 * TIMES)},
        {"a": signed, "b": signed, "k": positive},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([0.6, 0.8, 0.5]), np.array([-0.8, -0.6, 0.5])


def ring(angle: float) -> tuple[ForwardMap, Array]:
    """The data determine the distance of (a, b) from (3, 3) alone, which is 1, and k."""
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "((a - 3)^2 + (b - 3)^2)*x"}),
        {"t": TIMES, "y": np.exp(-0.5 * TIMES)},
        {key: {"lower": 0.1, "upper": 9.0} for key in ("a", "b", "k")},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([3 + np.cos(angle), 3 + np.sin(angle), 0.5])


def turns() -> tuple[ForwardMap, Array, Array]:
    """x = cos(w t) at whole numbers, where w and 2 pi - w fit alike."""
    times = np.arange(12.0)
    problem = Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}),
        {"t": times, "x": np.cos(times)},
        {"w": {"lower": 0.2, "upper": 6.0}},
        {"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.2}},
        t0=0.0,
    )
    return ForwardMap(problem), np.array([1.0]), np.array([2 * np.pi - 1.0])
