"""Differential equations whose solutions are known in closed form, to forty digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np

from odefit import Model, Problem
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, Residuals
from odefit.enclosure.residuals import variables
from tests.enclosure.containment import exact, sane

DIGITS = 40

DIRECTIONS = [Fraction(k, 8) for k in (-8, -5, 0, 3, 8)]

Solution = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""States at a time for unknowns, over numbers of many digits."""


def observed(
    ode: dict[str, str],
    times: Sequence[float],
    initial: dict[str, Any],
    parameters: Sequence[str],
    t0: float = 0.0,
    **inputs: Any,
) -> Problem:
    """A problem whose residuals are its states: all data are zero."""
    data = {"t": list(times), **{name: [0.0] * len(times) for name in ode}}
    return Problem(Model(ode=ode), data, {p: {} for p in parameters}, initial, t0=t0)


def holds(
    problem: Problem,
    enclosure: Enclosure,
    lower: Array,
    upper: Array,
    solution: Solution,
    seed: int = 0,
    count: int = 12,
) -> Residuals:
    """The enclosure, when exact solutions at many points are inside, to the last digit."""
    found = enclosure(lower, upper)
    sane(found)
    rng = np.random.default_rng(seed)
    models = variables(enclosure.monomials, lower, upper)
    times = [Fraction(t) for t in problem.conditions[0].times.tolist()]
    states = len(problem.model.states)
    corners = [[Fraction(s) for s in signs] for signs in np.ndindex(*(2,) * len(models))]
    points = [[2 * s - 1 for s in corner] for corner in corners[:16]]
    points += [[DIRECTIONS[k] for k in rng.integers(0, 5, len(models))] for _ in range(count)]
    with mpmath.workdps(DIGITS):
        for d in points:
            vector = []
            for m, k in zip(models, d, strict=True):
                radius = m.c[1:].sum(axis=0)[0, 0] + m.remainder[0]
                vector.append(number(Fraction(float(m.c[0, 0, 0])) + k * Fraction(float(radius))))
            for j, t in enumerate(times):
                true = solution(number(t), vector)
                for i in range(states):
                    row = i * len(times) + j
                    claimed = number(exact(enclosure.monomials, found.c[row, :, 0], d))
                    bound = mpmath.mpf(float(found.remainder[row, 0]))
                    error = mpmath.mpf(10) ** (10 - DIGITS) * abs(claimed)
                    assert abs(true[i] - claimed) <= bound + error, (d, t, i)
    return found


def number(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def decay(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [v[1] * mpmath.exp(-v[0] * t)]


def logistic(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    r, x = v
    return [x * mpmath.exp(r * t) / (1 + x * (mpmath.exp(r * t) - 1))]


def oscillator(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    w, x = v
    return [x * mpmath.cos(w * t), -x * mpmath.sin(w * t)]


def rational(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    """Michaelis-Menten, by Lambert's function."""
    k, m = v
    return [m * mpmath.lambertw(mpmath.exp((2 - k * t) / m) * 2 / m).real]


def growing_clock(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [v[1] * mpmath.exp(v[0] * t * t / 2)]


def cooling(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.log(mpmath.exp(v[1]) - v[0] * t)]


def draining(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [(mpmath.sqrt(v[1]) - v[0] * t / 2) ** 2]


def of_order(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    g, x = v
    return [(x ** (1 - g) - (1 - g) * t) ** (1 / (1 - g))]


def gompertz(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.exp(mpmath.log(v[1]) * mpmath.exp(-v[0] * t))]


def forced(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    a, w, phi = v
    return [1 + a / w * (mpmath.cos(phi) - mpmath.cos(w * t + phi))]


def fading(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    a, x = v
    return [x * mpmath.exp(-(1 - mpmath.exp(-a * t)) / a)]


def turning(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.atan(mpmath.tan(v[1]) + v[0] * t)]


def saturating(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.asinh(mpmath.sinh(v[1]) * mpmath.exp(-v[0] * t))]


def falling(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.asin(mpmath.sin(v[1]) * mpmath.exp(-v[0] * t))]


TIMES = [0.0, 0.3, 1.0, 2.7]


class Case(NamedTuple):
    """A problem with values of its unknowns, its solution, and the widest box that is tried."""

    problem: Problem
    vector: Array
    solution: Solution
    widest: float


CASES = {
    "decay": Case(
        observed({"x": "-k*x"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.7, 1.3]),
        decay,
        0.2,
    ),
    "logistic": Case(
        observed({"x": "r*x*(1 - x)"}, TIMES, {"x": {}}, ["r"]),
        np.array([1.1, 0.2]),
        logistic,
        0.2,
    ),
    "oscillator": Case(
        observed({"x": "w*y", "y": "-w*x"}, TIMES, {"x": {}, "y": 0.0}, ["w"]),
        np.array([1.9, 1.0]),
        oscillator,
        0.2,
    ),
    "a quotient": Case(
        observed({"x": "-k*x/(m + x)"}, TIMES, {"x": 2.0}, ["k", "m"]),
        np.array([0.6, 0.8]),
        rational,
        0.2,
    ),
    "the time itself": Case(
        observed({"x": "k*t*x"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.4, 1.5]),
        growing_clock,
        0.2,
    ),
    "exp": Case(
        observed({"x": "-k*exp(-x)"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.3, 1.5]),
        cooling,
        0.1,
    ),
    "sqrt": Case(
        observed({"x": "-k*sqrt(x)"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.4, 2.0]),
        draining,
        0.1,
    ),
    "an unknown power": Case(
        observed({"x": "-x^g"}, TIMES, {"x": {}}, ["g"]),
        np.array([1.7, 1.2]),
        of_order,
        0.1,
    ),
    "log": Case(
        observed({"x": "-k*x*log(x)"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.8, 0.3]),
        gompertz,
        0.1,
    ),
    "sin": Case(
        observed({"x": "a*sin(w*t + phi)"}, TIMES, {"x": 1.0}, ["a", "w", "phi"]),
        np.array([0.9, 2.1, 0.4]),
        forced,
        0.1,
    ),
    "exp of the time": Case(
        observed({"x": "-exp(-a*t)*x"}, TIMES, {"x": {}}, ["a"]),
        np.array([0.7, 1.1]),
        fading,
        0.1,
    ),
    "cos": Case(
        observed({"x": "k*cos(x)^2"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.5, -0.4]),
        turning,
        0.1,
    ),
    "tanh": Case(
        observed({"x": "-k*tanh(x)"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.6, 1.3]),
        saturating,
        0.1,
    ),
    "tan": Case(
        observed({"x": "-k*tan(x)"}, TIMES, {"x": {}}, ["k"]),
        np.array([0.6, 0.9]),
        falling,
        0.1,
    ),
}
