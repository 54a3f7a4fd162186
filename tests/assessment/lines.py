"""A model whose statistics have closed forms: a straight line, as an ODE."""

from __future__ import annotations

from typing import Any

import numpy as np

from odefit import Model, Problem
from odefit.common.arrays import Array

TIMES = np.linspace(0.0, 5.0, 12)


def line(seed: int = 0, sd: float = 0.3, **more: Any) -> Problem:
    """Return ``x' = b`` from x(0) = a, measured at :data:`TIMES` with noise."""
    noise = sd * np.random.default_rng(seed).standard_normal(len(TIMES))
    bounds = {"lower": -50.0, "upper": 50.0}
    return Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": 1.0 + 0.5 * TIMES + noise},
        {"b": bounds | {"guess": 0.5}},
        {"x": bounds | {"guess": 1.0}},
        **more,
    )


def design(times: Array) -> Array:
    """Return the derivatives of the line by its unknowns b and a, shape (k, 2)."""
    return np.column_stack([times, np.ones(len(times))])


def least_squares(problem: Problem) -> tuple[Array, float, Array]:
    """Return the estimate, the residual variance, and the unscaled covariance of b and a."""
    values = problem.conditions[0].series["x"].values
    inverse = np.asarray(np.linalg.inv(design(TIMES).T @ design(TIMES)), dtype=float)
    estimate = inverse @ design(TIMES).T @ values
    residuals = values - design(TIMES) @ estimate
    return estimate, float(residuals @ residuals) / (len(values) - 2), inverse
