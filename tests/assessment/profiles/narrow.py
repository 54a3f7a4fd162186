"""A problem whose best fits lie in a narrow valley at a threshold, with its exact profiles.

x' = r x^2 - c x runs to infinity in finite time above x = c/r and to zero below. Its reciprocal is
u(t) = r/c + (u(0) - r/c) exp(c t), so that an error of the initial value grows with exp(c T).
Written from the end, u(t) = a (1 - exp(c (t - T))) + b exp(c (t - T)): for a given c that is
linear in a = r/c and b = u(T), and the profile of c is the sum of squares of a linear regression.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

import odefit
from odefit.common.arrays import Array

SD = 0.05
LIMIT = 3.841458820694124  # chi-square with one degree of freedom, 95 %


def times(end: float) -> Array:
    return np.linspace(0.0, end, 17)


def measured(end: float) -> Array:
    fade = np.exp(2.0 * (times(end) - end))
    exact = 1.0 * (1 - fade) + 3.0 * fade
    return np.asarray(exact + SD * np.random.default_rng(5).normal(size=len(fade)))


def threshold_problem(end: float) -> odefit.Problem:
    """The unknowns r, c and x(0), of which 1/x is measured until `end`."""
    wide = {"lower": 1e-3, "upper": 1e3, "scale": "log10"}
    r, c, x = exact_optimum(end)
    return odefit.Problem(
        odefit.Model(ode={"x": "r*x^2 - c*x"}, observables={"u": "1/x"}),
        {"t": times(end), "u": measured(end)},
        {"r": {**wide, "guess": r}, "c": {**wide, "guess": c}},
        {"x": {**wide, "guess": x}},
        noise={"u": {"sd": SD}},
    )


def regression(c: float, end: float) -> tuple[float, float, float]:
    """The least sum of squares for a value of c, with a = r/c and b = u(T)."""
    fade = np.exp(c * (times(end) - end))
    design = np.column_stack([1 - fade, fade]) / SD
    (a, b), *_ = np.linalg.lstsq(design, measured(end) / SD, rcond=None)
    left = design @ np.array([a, b]) - measured(end) / SD
    return float(left @ left), float(a), float(b)


def optimal_rate(end: float) -> float:
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda c: regression(c, end)[0],
        bounds=(0.5, 8.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(found.x)


def exact_optimum(end: float) -> tuple[float, float, float]:
    """r, c and x(0) of the best fit."""
    c = optimal_rate(end)
    _, a, b = regression(c, end)
    return a * c, c, 1 / (a + (b - a) * float(np.exp(-c * end)))


def exact_interval(end: float) -> tuple[float, float]:
    """The ends of the interval of c."""
    best = optimal_rate(end)
    least = regression(best, end)[0]

    def excess(c: float) -> float:
        return regression(c, end)[0] - least - LIMIT

    return float(brentq(excess, 0.2, best)), float(brentq(excess, best, 20.0))


def two_valleys(end: float, reach: float = 3.0) -> odefit.Problem:
    """The threshold, and beside it k and m, whose best fits change from k = 1 to k = -1.

    Near k = 1 the deviance of m rises four times as fast as near k = -1, whose optimum is worse by
    0.16; between them is a barrier of 3.3.
    """
    wide = {"lower": 1e-3, "upper": 1e3, "scale": "log10"}
    r, c, x = exact_optimum(end)
    t = times(end)
    sd = math.sqrt(len(t))  # measured as often, each of the three counts once
    others = {"f": "1.8*(k^2 - 1)", "g": "0.2*(k - 1)", "h": "m*(3 + k)"}
    return odefit.Problem(
        odefit.Model(ode={"x": "r*x^2 - c*x"}, observables={"u": "1/x", **others}),
        {"t": t, "u": measured(end), **dict.fromkeys(others, 0 * t)},
        {
            "r": {**wide, "guess": r},
            "c": {**wide, "guess": c},
            "k": {"lower": -3.0, "upper": 3.0, "guess": 1.0},
            "m": {"lower": -reach, "upper": reach, "guess": 0.0},
        },
        {"x": {**wide, "guess": x}},
        noise={"u": {"sd": SD}, **{name: {"sd": sd} for name in others}},
    )


def two_valleys_deviance(m: float) -> float:
    """The least deviance of all k for a value of m."""
    k = np.linspace(-3.0, 3.0, 60001)
    squares = (1.8 * (k**2 - 1)) ** 2 + (0.2 * (k - 1)) ** 2 + (m * (3 + k)) ** 2
    return float(squares.min())


def two_valleys_end() -> float:
    """The upper end of the interval of m."""
    return float(brentq(lambda m: two_valleys_deviance(m) - LIMIT, 0.1, 2.5))
