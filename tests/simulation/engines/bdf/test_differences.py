"""Backward differences of polynomials are exact, whatever the step length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from odefit.simulation.engines.bdf.differences import (
    ALPHA,
    EXTRAPOLATION,
    IMPLICIT,
    MAX_ORDER,
    add_difference,
    change_step,
    combine,
    interpolation,
)

Array = npt.NDArray[np.float64]


def polynomials(order: int) -> np.polynomial.Polynomial:
    return np.polynomial.Polynomial(np.random.default_rng(order).normal(size=order + 1))


def differences(order: int, t: float, h: float) -> Array:
    """Backward differences of a polynomial at t, with two unused rows above the order."""
    values = polynomials(order)(t - h * np.arange(order + 1))
    d = np.zeros((MAX_ORDER + 3, 1))
    for j in range(order + 1):
        d[j, 0] = values[0]
        values = values[:-1] - values[1:]
    return d


@pytest.mark.parametrize("order", range(1, MAX_ORDER + 1))
@pytest.mark.parametrize("factor", [0.2, 0.9, 1.7, 4.0])
def test_a_change_of_the_step_keeps_polynomials(order: int, factor: float) -> None:
    d = differences(order, 1.0, 0.1)
    many = np.repeat(d[None], 5, axis=2)
    change_step(d, many, order, factor, np.empty((6, 6)), np.empty((6, 5)))
    expected = differences(order, 1.0, 0.1 * factor)
    assert np.allclose(d[: order + 1], expected[: order + 1], rtol=1e-9, atol=1e-12)
    assert np.allclose(many[0, : order + 1], expected[: order + 1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", range(1, MAX_ORDER + 1))
def test_polynomials_are_interpolated_and_extrapolated(order: int) -> None:
    d = differences(order, 1.0, 0.1)
    out = np.empty(1)
    shares = np.empty((1, MAX_ORDER + 1))
    interpolation(order, 1.0, 0.1, 0.93, shares)
    combine(d, shares, 0, out)
    assert out[0] == pytest.approx(polynomials(order)(0.93), rel=1e-12)
    combine(d, EXTRAPOLATION, order, out)
    assert out[0] == pytest.approx(polynomials(order)(1.1), rel=1e-10)


@pytest.mark.parametrize("order", range(1, MAX_ORDER + 1))
def test_a_step_of_a_polynomial_appends_its_differences(order: int) -> None:
    d = differences(order, 1.0, 0.1)
    add_difference(d, np.zeros(1), order)
    assert np.allclose(d, differences(order, 1.1, 0.1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", range(1, MAX_ORDER + 1))
def test_the_implicit_equation_holds_for_polynomials(order: int) -> None:
    """Without a correction, x - c x' is what the differences before give."""
    d = differences(order, 1.0, 0.1)
    out = np.empty(1)
    combine(d, IMPLICIT, order, out)
    polynomial = polynomials(order)
    c = 0.1 / ALPHA[order]
    assert out[0] == pytest.approx(polynomial(1.1) - c * polynomial.deriv()(1.1), rel=1e-9)
