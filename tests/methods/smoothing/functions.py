"""Functions with known Taylor coefficients, and the true ones of rational ODEs."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from math import factorial

import numpy as np
from numpy.polynomial import polynomial

from odefit.common.arrays import Array
from odefit.methods.smoothing import (
    AAA,
    Chebyshev,
    FloaterHormann,
    GaussianProcess,
    Smoother,
    SmoothingSpline,
    SplineByNoise,
)

ALL: tuple[Smoother, ...] = (
    AAA(),
    FloaterHormann(),
    GaussianProcess(),
    Chebyshev(),
    SmoothingSpline(),
    SplineByNoise(),
)
FOR_NOISE = ALL[2:]

GRID = np.linspace(-0.5, 0.5, 21)
LONG = np.linspace(0.0, 2.0, 1001)


@dataclass(frozen=True)
class Known:
    """A function with its Taylor coefficients."""

    name: str
    value: Callable[[Array], Array]
    taylor: Callable[[float, int], Array]


def exponential(rate: float) -> Known:
    def taylor(at: float, order: int) -> Array:
        return np.array([np.exp(rate * at) * rate**k / factorial(k) for k in range(order + 1)])

    return Known(f"exp({rate:g} t)", lambda t: np.exp(rate * t), taylor)


def wave(omega: float) -> Known:
    def taylor(at: float, order: int) -> Array:
        return np.array(
            [omega**k * np.sin(omega * at + k * np.pi / 2) / factorial(k) for k in range(order + 1)]
        )

    return Known(f"sin({omega:g} t)", lambda t: np.sin(omega * t), taylor)


def runge(steepness: float) -> Known:
    """1 / (1 + steepness t^2), by its two poles."""
    root = 1j / np.sqrt(steepness)

    def taylor(at: float, order: int) -> Array:
        k = np.arange(order + 1)
        halves = -((-1.0) ** k) * root / 2 / (at - root) ** (k + 1.0)
        return np.asarray(2 * halves.real, dtype=float)

    return Known("Runge's function", lambda t: 1 / (1 + steepness * t**2), taylor)


def cubic() -> Known:
    c = np.array([0.3, -1.0, 0.5, 2.0])

    def taylor(at: float, order: int) -> Array:
        found = [polynomial.polyval(at, polynomial.polyder(c, k)) for k in range(4)]
        full = [float(f) / factorial(k) for k, f in enumerate(found)]
        return np.array([*full, *[0.0] * order][: order + 1])

    return Known("a cubic", lambda t: c[0] + t * (c[1] + t * (c[2] + t * c[3])), taylor)


def measured(name: str) -> dict[str, Array]:
    """Columns of a file of the library of problems."""
    text = (files("odefit.library") / "problems" / name).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def van_der_pol(at: float, order: int) -> tuple[Array, Array]:
    """Taylor coefficients of both states of the library's first data set, by series in time."""
    a, b = 0.539, 0.672
    x, v = np.array([0.582]), np.array([0.536])
    start, steps, terms = -0.5, 40, 25
    for step in [(at - start) / steps] * steps + [0.0]:
        for k in range(terms):
            pull = np.convolve(np.convolve(x, x)[: k + 1], v)[k] - v[k]
            x, v = np.append(x, a * v[k] / (k + 1)), np.append(v, (-x[k] - b * pull) / (k + 1))
        if step:
            x = np.array([polynomial.polyval(step, x)])
            v = np.array([polynomial.polyval(step, v)])
    return x[: order + 1], v[: order + 1]
