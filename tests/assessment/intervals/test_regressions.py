"""Many regressions at once: each ends where another route, or theory, says that it has to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from odefit.assessment.intervals.regressions import Part, fit_all
from odefit.common.arrays import Array
from odefit.problem.noise import Noise

ROWS, FITS = 15, 20
RANDOM = np.random.default_rng(3)
DESIGN = RANDOM.standard_normal((ROWS, 3))
VALUES = RANDOM.standard_normal((FITS, ROWS)) ** 3


def part(rows: Any, unknown: int | None, **noise: Any) -> Part:
    return Part(np.asarray(rows), Noise(**noise).law, unknown)


def least_sum(values: Array) -> float:
    """Return the least sum of absolute residuals by linear programming."""
    eye = np.eye(ROWS)
    found = linprog(
        np.concatenate([np.zeros(3), np.ones(2 * ROWS)]),
        A_eq=np.hstack([DESIGN, eye, -eye]),
        b_eq=values,
        bounds=[(None, None)] * 3 + [(0, None)] * (2 * ROWS),
    )
    assert found.fun is not None
    return float(found.fun)


def test_least_absolute_deviations_are_those_of_linear_programming() -> None:
    fitted = fit_all(DESIGN, [part(range(ROWS), 0, distribution="laplace")], VALUES)
    sums = np.abs(VALUES - fitted.coordinates @ DESIGN.T).sum(axis=1)
    assert sums == pytest.approx([least_sum(v) for v in VALUES], rel=1e-4)
    # The scale of the maximum of the likelihood, a standard deviation.
    assert fitted.scales[:, 0] == pytest.approx(np.sqrt(2) * sums / ROWS, rel=1e-3)


def test_normal_noise_is_least_squares() -> None:
    fitted = fit_all(DESIGN, [part(range(ROWS), 0)], VALUES)
    coordinates, squares, *_ = np.linalg.lstsq(DESIGN, VALUES.T)
    assert fitted.coordinates == pytest.approx(coordinates.T, rel=1e-9)
    assert fitted.scales[:, 0] == pytest.approx(np.sqrt(squares / ROWS), rel=1e-9)


@pytest.mark.parametrize("loss", ["student", "huber"])
def test_a_robust_fit_is_a_local_optimum(loss: str) -> None:
    own = part(range(ROWS), 0, loss=loss)
    fitted = fit_all(DESIGN, [own], VALUES)

    def cost(coordinates: Array, scales: Array) -> Array:
        root, _ = own.law.root((VALUES - coordinates @ DESIGN.T) / scales[:, None])
        return np.asarray(0.5 * np.sum(root**2, axis=1) + ROWS * np.log(scales))

    best = cost(fitted.coordinates, fitted.scales[:, 0])
    assert best == pytest.approx(fitted.costs, rel=1e-9)
    for change in 0.05 * np.vstack([np.eye(3), -np.eye(3)]):
        assert (cost(fitted.coordinates + change, fitted.scales[:, 0]) > best - 1e-3).all()
    for factor in (0.95, 1.05):
        assert (cost(fitted.coordinates, factor * fitted.scales[:, 0]) > best - 1e-3).all()


def test_a_fixed_or_known_scale_stays_unchanged() -> None:
    parts = [part(range(8), 4, distribution="laplace"), part(range(8, ROWS), None)]
    fitted = fit_all(DESIGN, parts, VALUES)
    assert (fitted.scales[:, 1] == 1).all()
    assert (fitted.scales[:, 0] != 1).all()
    held = fit_all(DESIGN, parts, VALUES, fixed=0)
    assert (held.scales == 1).all()
    assert (held.costs > fitted.costs - 1e-3).all()
