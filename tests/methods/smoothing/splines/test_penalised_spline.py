"""Banded penalised splines: against the dense formulas, and B-splines against SciPy's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import BSpline

from odefit.methods.smoothing.smoother import NormalisedSeries
from odefit.methods.smoothing.splines.bsplines import BSplines, breakpoints_among
from odefit.methods.smoothing.splines.penalised_spline import PenalisedProblem

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(-1, 1, 30))
SERIES = NormalisedSeries(X, RNG.normal(size=30), RNG.uniform(0.5, 2, 30))


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_rows_are_those_of_scipy(degree: int) -> None:
    basis = BSplines(np.array([-1.0, -0.3, 0.1, 0.2, 1.0]), degree)
    x = np.array([-1.2, -1.0, -0.5, 0.1, 0.15, 0.9, 1.0, 1.1])
    for order in range(degree + 1):
        theirs = BSpline(basis.knots, np.eye(basis.size), degree)(x, nu=order)
        assert basis.rows(x, order).dense() == pytest.approx(theirs, rel=1e-9, abs=1e-9)


def test_products_of_rows_are_those_of_the_full_matrix() -> None:
    rows = BSplines(breakpoints_among(X, 12), 3).rows(X)
    full = rows.dense()
    assert rows @ np.arange(15.0) == pytest.approx(full @ np.arange(15.0))
    assert rows.transposed(SERIES.y) == pytest.approx(full.T @ SERIES.y)
    gram = full.T @ (SERIES.weights[:, None] * full)
    for d, band in enumerate(rows.gram(SERIES.weights)):
        assert band[: 15 - d] == pytest.approx(np.diagonal(gram, d))


def test_breakpoints_have_about_as_many_points_between_them() -> None:
    breakpoints = breakpoints_among(np.geomspace(1, 1e6, 101), 10)
    assert breakpoints == pytest.approx(np.geomspace(1, 1e6, 11))
    assert len(breakpoints_among(X, 100)) == 30


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_solution_is_that_of_the_dense_formulas(order: int) -> None:
    problem = PenalisedProblem.in_pieces(SERIES, order, 29)
    design, derivatives = problem.design.rows.dense(), problem.design.derivatives.dense()
    penalty = derivatives.T @ (problem.design.quadrature[:, None] * derivatives)
    for ratio in (0.1, 1e3):
        found = problem.solve(ratio)
        assert found is not None
        smoothing = ratio * problem.design.unit
        normal = design.T @ (SERIES.weights[:, None] * design) + smoothing * penalty
        c = np.linalg.solve(normal, design.T @ (SERIES.weights * SERIES.y))
        assert design @ found.coefficients == pytest.approx(design @ c, abs=1e-6)
        rss = SERIES.weights @ (SERIES.y - design @ c) ** 2
        assert found.rss == pytest.approx(rss, rel=1e-5)
        assert found.cost == pytest.approx(rss + smoothing * c @ penalty @ c, rel=1e-5)
        hat = design @ np.linalg.solve(normal, design.T * SERIES.weights)
        assert problem.design.effective_parameters(ratio) == pytest.approx(np.trace(hat), abs=2e-3)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_likelihoods_compare_across_smoothing_parameters(order: int) -> None:
    # As a mixed model: y = X b + Z u + e, u ~ N(0, 1 / smoothing), by contrasts that X leaves.
    ours, theirs = [], []
    roots = np.sqrt(SERIES.weights)
    problem = PenalisedProblem.in_pieces(SERIES, order, 29)
    derivatives = problem.design.derivatives.dense()
    penalty = derivatives.T @ (problem.design.quadrature[:, None] * derivatives)
    values, vectors = np.linalg.eigh(penalty)
    design = roots[:, None] * problem.design.rows.dense()
    smooth = design @ (vectors[:, order:] / np.sqrt(values[order:]))
    free = np.linalg.qr(roots[:, None] * np.vander(X, order))[0]
    for ratio in (0.1, 10.0, 1e3):
        found = problem.solve(ratio)
        assert found is not None
        ours.append(problem.likelihood(found)[0])
        covariance = np.eye(30) + smooth @ smooth.T / (ratio * problem.design.unit)
        inverse = np.linalg.inv(covariance)
        inner = free.T @ inverse @ free
        left = inverse - inverse @ free @ np.linalg.solve(inner, free.T @ inverse)
        quadratic = roots * SERIES.y @ left @ (roots * SERIES.y)
        logs = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(inner)[1]
        theirs.append((30 - order) * np.log(quadratic / (30 - order)) + logs)
    shifts = np.array(ours) - np.array(theirs)
    assert all(a == pytest.approx(b, abs=1e-4) for a, b in pairwise(shifts))


def test_polynomials_that_are_free_survive_the_strongest_smoothing() -> None:
    x = np.linspace(-1, 1, 100)
    line = NormalisedSeries(x, 0.3 + 0.7 * x, np.ones(100))
    found = (problem := PenalisedProblem.in_pieces(line, 3, 99)).solve(1e11)
    assert found is not None
    assert problem.design.rows @ found.coefficients == pytest.approx(line.y, abs=1e-6)
