"""Functions of polynomials contain all their values, and integrals agree with ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.composition import (
    BEND,
    LOG_SHARE,
    LOGARITHM,
    RECIPROCAL,
    ROOT,
    STIELTJES_ERROR,
    SmoothFunction,
    Stieltjes,
    chosen,
    composed,
    ranges,
    within,
)
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.likelihood.deviance_residuals import CENSORED

POINTS = np.concatenate(
    [np.linspace(-0.999, 0.999, 60), 10.0 ** np.linspace(-1, 5, 25), [-0.6, 0.6, -0.6001, 0.6001]]
)


def _bend(x: Array) -> Array:
    return np.where(np.abs(x) > 1e-3, 2 * (x - np.log1p(x)) / x**2, 1 - 2 * x / 3 + x * x / 2)


def _share(x: Array) -> Array:
    return np.where(np.abs(x) > 1e-9, np.log1p(x) / np.where(x == 0, 1.0, x), 1 - x / 2)


def _censored(x: Array) -> Array:
    from scipy.special import log_ndtr

    return np.asarray(np.sqrt(-2 * log_ndtr(x)))


FUNCTIONS: dict[str, tuple[SmoothFunction, Callable[[Array], Array], float]] = {
    "reciprocal": (RECIPROCAL, lambda x: 1 / x, 0.0),
    "root": (ROOT, np.sqrt, 0.0),
    "logarithm": (LOGARITHM, np.log, 0.0),
    "bend": (BEND, _bend, -1.0),
    "share": (LOG_SHARE, _share, -1.0),
    "censored": (CENSORED, _censored, -6.0),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
@settings(max_examples=40, deadline=None)
@given(
    begin=st.floats(1e-3, 6.0),
    width=st.floats(1e-9, 3.0),
    share=st.floats(0.0, 1.0),
    degree=st.integers(1, 5),
)
def test_all_values_over_a_box_are_inside(
    name: str, begin: float, width: float, share: float, degree: int
) -> None:
    function, exact, least = FUNCTIONS[name]
    m = Monomials.of(2, degree)
    middle, low = least + begin + width, width
    x = TaylorModel.variable(m, 0, np.array([middle]), np.array([0.6 * low * (1 - share)]))
    x = x + TaylorModel.variable(m, 1, np.zeros(1), np.array([0.4 * low * (1 - share)]))
    x.remainder = x.remainder + low * share
    y = composed(x, function)
    if not np.isfinite(y.remainder).all():
        assert least + begin < least + 1e-2 or name == "censored"
        return
    rng = np.random.default_rng(0)
    for _ in range(20):
        d = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 2)
        powers = np.array([math.prod(d[k] for k in e) for e in m.exponents])
        off = low * share * rng.choice([-1.0, 1.0])
        value = float(powers @ x.c[:, 0, 0]) + off
        true = float(exact(np.array([value]))[0])
        error = abs(true - float(powers @ y.c[:, 0, 0]))
        assert error <= y.remainder[0] + 1e-11 * (1 + abs(true))


@pytest.mark.parametrize("power", [0, 1])
def test_integrals_agree_with_ball_arithmetic(power: int) -> None:
    flint = pytest.importorskip("flint", reason="the extra odefit[certificates] is missing")
    found = Stieltjes(power).coefficients(POINTS, 8)
    before = flint.ctx.prec, flint.ctx.cap
    flint.ctx.prec, flint.ctx.cap = 300, 9
    try:
        for i, x in enumerate(POINTS.tolist()):
            argument = flint.arb_series([flint.arb(x), 1], prec=9)
            log = (argument + 1).log()
            exact = log / argument
            if power:
                exact = 2 * (argument - log) / (argument * argument)
            for k in range(8):
                error = abs(float(flint.arb(float(found[k, i])) / exact[k] - 1))
                assert error < STIELTJES_ERROR / 2, (x, k)
    finally:
        flint.ctx.prec, flint.ctx.cap = before


def test_a_range_beyond_the_domain_leaves_the_value_unknown() -> None:
    x = TaylorModel.variable(Monomials.of(1, 2), 0, np.array([1.0, 1.0]), np.array([0.5, 1.5]))
    assert np.isfinite(composed(x, LOGARITHM).remainder).tolist() == [True, False]


def test_a_wide_box_has_the_range_of_the_function() -> None:
    m = Monomials.of(1, 2)
    x = TaylorModel.variable(m, 0, np.array([10.0]), np.array([10.0 - 1e-6]))
    _, low, high = ranges(composed(x, LOGARITHM))
    assert low[0] == pytest.approx(math.log(1e-6), rel=1e-2)
    assert high[0] == pytest.approx(math.log(20.0), rel=1e-6)


def test_a_range_replaces_only_what_says_less() -> None:
    m = Monomials.of(1, 2)
    x = TaylorModel.variable(m, 0, np.zeros(3), np.ones(3))
    x.remainder = np.array([5.0, 0.5, np.inf])
    known = np.array([True, True, False])
    found = within(x, np.full(3, -2.0), np.full(3, 2.0), known)
    assert found.remainder == pytest.approx([2.0, 0.5, np.inf], rel=1e-9)
    assert found.c[1, 0].tolist() == [0.0, 1.0, 1.0]
    picked = chosen(np.array([True, False, True]), found, x)
    assert picked.remainder == pytest.approx([2.0, 0.5, np.inf], rel=1e-9)
