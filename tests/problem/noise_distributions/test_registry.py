"""A distribution of noise is a module and a row in the registry."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats

import odefit
from odefit.problem import noise
from odefit.problem.noise_distributions import registry
from odefit.problem.noise_distributions.registry import DISTRIBUTIONS, LOSSES, Row
from odefit.reporting.formulas.equations import PLAIN, noise_words
from odefit.simulation import Evaluation, ForwardMap
from tests.problem.noise_distributions.weibull import FACTOR, Weibull

TIMES = np.linspace(0.25, 6.0, 40)
SHAPE = 4.0
TRUE = np.array([0.5, 10.0, FACTOR / SHAPE])


def test_the_tables_list_all_names() -> None:
    assert tuple(DISTRIBUTIONS) == get_args(registry.Distribution)
    assert tuple(LOSSES) == get_args(registry.Loss)


@pytest.fixture
def with_weibull(monkeypatch: pytest.MonkeyPatch) -> odefit.Problem:
    rows: Any = DISTRIBUTIONS
    monkeypatch.setitem(rows, "weibull", Row(Weibull, "log"))
    monkeypatch.setitem(noise._CHOICES, "distribution", tuple(rows))
    scale = TRUE[1] * np.exp(-TRUE[0] * TIMES)
    values = stats.weibull_min.rvs(
        SHAPE, scale=scale, random_state=4
    )  # seed 3 is one of the 5 % that run in a pattern
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        {"t": TIMES, "y": values},
        {"k": {"lower": 0.01, "upper": 5.0}, "s": {"lower": 0.1, "upper": 100.0}},
        {"x": 1.0},
        noise={"y": {"distribution": "weibull", "sd": "estimate"}},
        t0=0.0,
    )


@pytest.mark.slow
def test_a_pandas_row_suffices_for_a_fit_with_intervals(with_weibull: odefit.Problem) -> None:
    result = odefit.fit(with_weibull, seed=1, jobs=1)  # other processes lack the row
    assert result.status is odefit.Status.CONVERGED
    best = result.best
    measured = with_weibull.conditions[0].series["y"].values
    k, s, sd = best.vector
    law = stats.weibull_min(FACTOR / sd, scale=s * np.exp(-k * TIMES))
    assert best.log_likelihood == pytest.approx(law.logpdf(measured).sum(), rel=1e-9)
    assert result.uncertainty is not None
    low, high = result.uncertainty.intervals.T
    assert ((low < TRUE) & (high > TRUE)).all()
    assert np.isfinite(low[0] + high[0])
    assert result.goodness is not None
    assert not result.goodness.bad
    assert "  identifiable" in str(result.profile(["k"], jobs=1))
    assert noise_words(with_weibull, "y", PLAIN, "sd").endswith("Weibull distribution")


def test_a_skewed_density_has_its_gradient_and_information(with_weibull: odefit.Problem) -> None:
    forward, vector = ForwardMap(with_weibull), np.array([0.47, 9.0, 0.4])
    at = forward.evaluate(vector)
    assert isinstance(at, Evaluation)
    slopes = [
        (forward.cost(vector + step) - forward.cost(vector - step)) / 2e-6
        for step in 1e-6 * np.eye(3)
    ]
    assert at.jacobian.T @ at.residuals == pytest.approx(slopes, rel=1e-5, abs=1e-5)
    law = with_weibull.noise["y"].law
    z = np.linspace(-35.0, 4.0, 200_001)
    weights = np.exp(z - np.exp(z)) * (z[1] - z[0])
    terms = law.terms(-z / FACTOR, np.zeros_like(z), np.ones_like(z))
    scores = np.stack([terms.residuals * terms.slopes, terms.scale_slopes])
    b, c, d = law.information(np.zeros(1), np.ones(1))[0]
    expected = np.array([[b * b, b * c], [b * c, c * c + d * d]])
    assert (scores * weights) @ scores.T == pytest.approx(expected, rel=1e-4)
    assert law.mean_residual == pytest.approx(float(terms.residuals @ weights), rel=1e-5)
    low, high = law.interval(0.9)
    share = np.exp(-np.exp(-low * FACTOR)) - np.exp(-np.exp(high * FACTOR))
    assert share == pytest.approx(0.9)
    values = law.standard_values(100_000, np.random.default_rng(1))
    assert values.std() == pytest.approx(1.0, rel=0.02)
