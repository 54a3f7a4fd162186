"""Deviance residuals over boxes contain those of all predictions and spreads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit.enclosure.arithmetic.composition import ranges
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.likelihood.deviance_residuals import Measurement, deviance_residual
from odefit.problem.noise_distributions.huber import Huber
from odefit.problem.noise_distributions.laplace import LAPLACE_ROUNDING, Laplace
from odefit.problem.noise_distributions.negative_binomial import NegativeBinomial
from odefit.problem.noise_distributions.normal import Normal
from odefit.problem.noise_distributions.poisson import Poisson
from odefit.problem.noise_distributions.student import Student

Exact = Callable[[Any, Any, Any], Any]
"""The square of a deviance residual for a prediction, a measured value and a spread."""


def _poisson(m: Any, y: Any, _: Any) -> Any:
    return 2 * (m - y + (y * mpmath.log(y / m) if y else 0))


def _counts(m: Any, y: Any, a: Any) -> Any:
    share = (y * mpmath.log(y / m) if y else 0) - (y + 1 / a) * mpmath.log(
        (1 + a * y) / (1 + a * m)
    )
    return 2 * share


def _huber(m: Any, y: Any, s: Any) -> Any:
    u, k = abs(m - y) / s, mpmath.mpf(Huber().threshold)
    return u * u if u <= k else 2 * k * u - k * k


def _laplace(m: Any, y: Any, s: Any) -> Any:
    u, e = (m - y) / s, mpmath.mpf(LAPLACE_ROUNDING)
    return 2 * mpmath.sqrt(2) * (mpmath.sqrt(u * u + e * e) - e)


def _below(m: Any, y: Any, s: Any) -> Any:
    z = (y - m) / s
    return -2 * (mpmath.log1p(-mpmath.ncdf(-z)) if z > 0 else mpmath.log(mpmath.ncdf(z)))


def _above(m: Any, y: Any, s: Any) -> Any:
    return _below(y, m, s)


LAWS: dict[str, tuple[Measurement, Exact]] = {
    "normal": (Measurement(Normal(), 3.0), lambda m, y, s: ((m - y) / s) ** 2),
    "student": (
        Measurement(Student(), 3.0),
        lambda m, y, s: 5 * mpmath.log(1 + ((m - y) / s) ** 2 / 4),
    ),
    "huber": (Measurement(Huber(), 3.0), _huber),
    "laplace": (Measurement(Laplace(), 3.0), _laplace),
    "poisson": (Measurement(Poisson(), 3.0), _poisson),
    "none counted": (Measurement(Poisson(), 0.0), _poisson),
    "negative binomial": (Measurement(NegativeBinomial(), 3.0), _counts),
    "none of the negative binomial": (Measurement(NegativeBinomial(), 0.0), _counts),
    "below a limit": (Measurement(Normal(), 3.0, 1), _below),
    "above a limit": (Measurement(Normal(), 3.0, -1), _above),
}


@pytest.mark.parametrize("name", list(LAWS))
@settings(max_examples=40, deadline=None)
@given(
    prediction=st.floats(0.05, 20.0),
    half=st.floats(1e-9, 1.0),
    spread=st.floats(0.05, 5.0),
    ratio=st.floats(0.0, 0.9),
    degree=st.integers(1, 4),
)
def test_all_residuals_over_a_box_are_inside(
    name: str, prediction: float, half: float, spread: float, ratio: float, degree: int
) -> None:
    of, exact = LAWS[name]
    m = Monomials.of(2, degree)
    x = TaylorModel.variable(m, 0, np.array([prediction]), np.array([half * prediction * 0.99]))
    s = TaylorModel.variable(m, 1, np.array([spread]), np.array([ratio * spread]))
    r = deviance_residual(of, x, s, math.inf)
    rng = np.random.default_rng(0)
    assert np.isfinite(r.remainder).all()
    with mpmath.workdps(40):
        for _ in range(12):
            d = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 2)
            powers = [math.prod(d[k] for k in e) for e in m.exponents]
            at, scale = (
                sum(
                    mpmath.mpf(p) * mpmath.mpf(a) for p, a in zip(powers, v.c[:, 0, 0], strict=True)
                )
                for v in (x, s)
            )
            square = exact(at, mpmath.mpf(of.value), scale)
            sign = of.censored or (1 if at >= of.value else -1)
            true = sign * mpmath.sqrt(max(square, mpmath.mpf(0)))
            guess = sum(
                mpmath.mpf(p) * mpmath.mpf(a) for p, a in zip(powers, r.c[:, 0, 0], strict=True)
            )
            assert abs(true - guess) <= r.remainder[0]


@pytest.mark.parametrize("name", list(LAWS))
def test_residuals_at_a_point_are_sharp(name: str) -> None:
    of, exact = LAWS[name]
    m = Monomials.of(1, 2)
    x, s = (TaylorModel.constant(m, np.array([v])) for v in (4.5, 0.7))
    r = deviance_residual(of, x, s, math.inf)
    true = math.sqrt(exact(mpmath.mpf(4.5), mpmath.mpf(of.value), mpmath.mpf(0.7)))
    assert abs(r.c[0, 0, 0]) == pytest.approx(true, abs=2 * r.remainder[0] + 1e-12)
    assert r.remainder[0] < 1e-7


@pytest.mark.parametrize("name", ["poisson", "negative binomial", "student", "huber"])
def test_a_wide_box_has_the_exact_range(name: str) -> None:
    of, exact = LAWS[name]
    m = Monomials.of(1, 2)
    x = TaylorModel.variable(m, 0, np.array([20.0]), np.array([16.0]))
    r = deviance_residual(of, x, TaylorModel.constant(m, np.array([0.7])), math.inf)
    _, low, high = ranges(r)
    least, most = (float(mpmath.sqrt(exact(*map(mpmath.mpf, (v, 3.0, 0.7))))) for v in (4.0, 36.0))
    assert low[0] == pytest.approx(least, rel=0.05)
    assert high[0] == pytest.approx(most, rel=0.05)
    assert low[0] <= least
    assert high[0] >= most


def test_residuals_of_means_that_may_vanish_are_cut_off() -> None:
    """A mean near zero is impossible for counts, and mean - measured is known from above."""
    m = Monomials.of(1, 2)
    x = TaylorModel.variable(m, 0, np.array([0.5]), np.array([0.6]))
    none = TaylorModel.constant(m, np.zeros(1))
    r = deviance_residual(Measurement(Poisson(), 40.0), x, none, 10.0)
    _, low, high = ranges(r)
    assert low[0] == pytest.approx(-20.0)
    assert high[0] == pytest.approx(-math.sqrt(_poisson(mpmath.mpf(1.1), mpmath.mpf(40), 0)))
    unknown = deviance_residual(Measurement(Normal(), 1.0), x, x, math.inf)
    assert not np.isfinite(unknown.remainder).all()
