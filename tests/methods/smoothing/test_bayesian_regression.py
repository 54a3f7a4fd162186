"""Bayesian regression: against the dense formulas, and where its hyperparameters must follow."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.methods.smoothing import GaussianProcess, SmoothingSpline
from odefit.methods.smoothing.bayesian_regression import (
    VARIANCE_RATIOS,
    OrthogonalisedData,
    RidgeModel,
    entire_decay,
    geometric_decay,
    most_likely_variances,
)
from odefit.methods.smoothing.expansion import Basis, ChebyshevBasis, Expansion
from odefit.methods.smoothing.smoother import InUnits
from odefit.methods.smoothing.splines.few_splines import equal_bsplines
from tests.methods.smoothing.functions import LONG, wave

X = np.linspace(-1, 1, 30)


def data(y: Array, size: int) -> OrthogonalisedData:
    q, r = np.linalg.qr(ChebyshevBasis(size).values(X))
    b = q.T @ y
    return OrthogonalisedData(ChebyshevBasis(size), r, b, float(np.sum((y - q @ b) ** 2)), len(y))


def test_the_posterior_is_that_of_the_dense_formulas() -> None:
    y = np.exp(X) + np.random.default_rng(0).normal(0, 0.1, 30)
    decay = geometric_decay(0.4, 8)
    found = data(y, 8).posterior(decay)
    variances = data(y, 8).variances(decay)
    prior = variances.prior * np.diag(decay**2)
    design = ChebyshevBasis(8).values(X)
    total = design @ prior @ design.T + variances.sd**2 * np.eye(30)
    gain = prior @ design.T @ np.linalg.inv(total)
    assert found.coefficients == pytest.approx(gain @ y, rel=1e-8, abs=1e-10)
    covariance = prior - gain @ design @ prior
    assert found.root @ found.root.T == pytest.approx(covariance, abs=1e-10)


def test_the_likelihood_is_that_of_the_dense_formulas() -> None:
    y = np.exp(X) + np.random.default_rng(0).normal(0, 0.1, 30)
    decay = entire_decay(2.0, 8)
    design = ChebyshevBasis(8).values(X) * decay
    _, s, vt = np.linalg.svd(design)
    assert vt.shape == (8, 8)

    def dense(ratio: float) -> float:
        kernel = design @ design.T + ratio * np.eye(30)
        return float(
            30 * np.log(y @ np.linalg.solve(kernel, y) / 30) + np.linalg.slogdet(kernel)[1]
        )

    u = np.linalg.svd(design, full_matrices=False)[0]
    b = u.T @ y
    model = RidgeModel(s, b, float(y @ y - b @ b), 30)
    ratios = np.array([1e-3, 1e-2, 1.0])
    assert model.likelihood(ratios)[0] == pytest.approx([dense(r) for r in ratios])
    best = most_likely_variances(model)
    assert all(best.score <= dense(r) + 1e-9 for r in VARIANCE_RATIOS[40:])


@pytest.mark.parametrize("basis", [ChebyshevBasis(9), equal_bsplines(7, 12)])
@pytest.mark.parametrize("at", [-0.31, 0.0, 0.8])
def test_taylor_series_of_a_basis_are_those_of_its_values(basis: Basis, at: float) -> None:
    h = np.array([-0.02, 0.01, 0.03])
    series = np.vander(h, 16, increasing=True) @ basis.taylor(at, 15)
    assert series == pytest.approx(basis.values(at + h), abs=1e-12)


@pytest.mark.slow
def test_many_oscillations_are_not_taken_for_noise() -> None:
    truth = wave(60.0)
    rough = np.random.default_rng(0).normal(0, 1e-2, len(LONG))
    fit = GaussianProcess().fit(LONG, truth.value(LONG) + rough)
    assert fit.sd == pytest.approx(1e-2, rel=0.1)
    error = np.abs(fit.taylor(0.9, 3) - truth.taylor(0.9, 3))
    assert np.all(error < 6 * fit.errors(0.9, 3))
    assert np.all(error < [0.01, 1.0, 30.0, 1e3])


def test_noise_alone_has_no_derivatives_beyond_its_error() -> None:
    fit = GaussianProcess().fit(LONG, np.random.default_rng(4).normal(0, 1, len(LONG)))
    assert np.all(np.abs(fit.taylor(1.0, 6)) < 3 * fit.errors(1.0, 6))
    assert fit.sd == pytest.approx(1.0, rel=0.1)


@pytest.mark.slow
def test_a_derivative_hidden_by_noise_is_called_uncertain() -> None:
    # sin t + noise: the seventh derivative is lost, and its error must cover it.
    truth = wave(1.0)
    rough = np.random.default_rng(7).normal(0, 0.02, len(LONG))
    fit = GaussianProcess().fit(LONG, truth.value(LONG) + rough)
    assert np.all(np.abs(fit.taylor(1.0, 7) - truth.taylor(1.0, 7)) < 3 * fit.errors(1.0, 7))


@pytest.mark.slow
def test_cross_validation_and_likelihood_smooth_alike() -> None:
    rough = np.random.default_rng(8).normal(0, 1e-2, len(LONG))
    values = np.sin(3 * LONG) + rough
    reml, gcv = (SmoothingSpline(criterion=c).fit(LONG, values) for c in ("reml", "gcv"))
    assert reml.sd == pytest.approx(gcv.sd, rel=0.02)
    assert np.abs(reml(LONG) - gcv(LONG)).max() < 0.01


def test_a_spline_says_nothing_of_derivatives_beyond_its_degree() -> None:
    fit = SmoothingSpline(order=3).fit(LONG, np.sin(LONG))
    assert fit.taylor(1.0, 7)[6:].tolist() == [0.0, 0.0]
    assert np.isinf(fit.errors(1.0, 7)).tolist() == [False] * 6 + [True] * 2


def test_beyond_the_data_the_error_grows() -> None:
    fit = GaussianProcess().fit(LONG, np.sin(3 * LONG))
    assert fit.errors(2.3, 0)[0] > 10 * fit.errors(1.0, 0)[0]


def test_the_covariance_is_carried_to_the_units_of_the_data() -> None:
    fit = GaussianProcess().fit(3600 * LONG, 1e-6 * np.sin(3 * LONG))
    assert isinstance(fit, InUnits)
    assert isinstance(fit.curve, Expansion)
    inner = fit.curve.errors(0.0, 1)
    assert fit.errors(3600.0, 1) == pytest.approx(inner * fit.series.scale / np.array([1, 3600.0]))
