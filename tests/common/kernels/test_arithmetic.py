"""Operations of kernels give what Python and NumPy give."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled, rigorous


@compiled
def of_floats(x: float, y: float, out: Array) -> None:
    out[0] = x + y
    out[1] = x - y
    out[2] = x * y
    out[3] = x / y
    out[4] = x % y
    out[5] = abs(x) ** y
    out[6] = x**2
    out[7] = min(x, y)
    out[8] = max(x, y)
    out[9] = -x
    out[10] = np.sign(x)
    out[11] = np.isfinite(x / y)
    out[12] = x < y
    out[13] = x <= y
    out[14] = x != y
    out[15] = x == y


@compiled
def of_integers(a: int, b: int, out: Array) -> None:
    out[0] = a + b
    out[1] = a - b
    out[2] = a * b
    out[3] = a / b
    out[4] = a % b
    out[5] = a // b
    out[6] = min(a, b)
    out[7] = max(a, b, 0)
    out[8] = abs(a)
    out[9] = 1.5**b
    out[10] = a > b and b > 0
    out[11] = a > b or b > 0
    out[12] = not a
    out[13] = int(a / b)


@compiled
def functions(x: float, out: Array) -> None:
    out[0] = np.exp(x)
    out[1] = np.log(x)
    out[2] = np.sqrt(x)
    out[3] = np.sin(x)
    out[4] = np.cos(x)
    out[5] = np.tan(x)
    out[6] = np.arcsin(x)
    out[7] = np.arccos(x)
    out[8] = np.arctan(x)
    out[9] = np.sinh(x)
    out[10] = np.cosh(x)
    out[11] = np.tanh(x)
    out[12] = np.ceil(x)


FLOATS = [0.0, -0.0, 1.0, -2.5, 0.3, 3.0, 1e300, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("x", FLOATS)
@pytest.mark.parametrize("y", FLOATS)
def test_operations_of_floats(x: float, y: float) -> None:
    out = np.full(16, 7.0)
    of_floats(x, y, out)
    a, b = np.float64(x), np.float64(y)
    with np.errstate(all="ignore"):
        expected = [a + b, a - b, a * b, a / b, a % b, np.abs(a) ** b, a * a]
        expected += [y if y < x else x, y if y > x else x, -a, np.sign(a), np.isfinite(a / b)]
        expected += [x < y, x <= y, x != y, x == y]
    if x and math.isfinite(x) and math.isinf(y):
        expected[4] = x  # C's remainder, where Python adds the infinite divisor
        out[4] = x if (x < 0) != (y < 0) else out[4]
    np.testing.assert_array_equal(out, np.array(expected, dtype=float))


@pytest.mark.parametrize("a", [-7, -2, 0, 3, 8])
@pytest.mark.parametrize("b", [-3, -1, 1, 2, 5])
def test_operations_of_integers(a: int, b: int) -> None:
    out = np.full(14, 7.5)
    of_integers(a, b, out)
    expected = [a + b, a - b, a * b, a / b, a % b, a // b, min(a, b), max(a, b, 0), abs(a)]
    expected += [1.5**b, a > b > 0, a > b or b > 0, a == 0, int(a / b)]
    np.testing.assert_allclose(out, expected, rtol=1e-15)


@pytest.mark.parametrize("x", [0.0, 0.25, 0.9, 1.0, -0.5, 3.7, math.nan])
def test_functions_of_a_float(x: float) -> None:
    out = np.empty(13)
    functions(x, out)
    named = [np.exp, np.log, np.sqrt, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan]
    named += [np.sinh, np.cosh, np.tanh, np.ceil]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [function(x) for function in named]
    np.testing.assert_allclose(out, expected, rtol=4e-16)


@rigorous
def product_and_sum(x: Array, y: Array, z: Array, out: Array) -> None:
    for k in range(len(x)):
        out[k] = x[k] * y[k] + z[k]


def test_rigorous_kernels_round_each_operation_by_itself() -> None:
    rng = np.random.default_rng(1)
    x, y, z = rng.normal(size=(3, 10_000))
    out = np.empty(10_000)
    product_and_sum(x, y, z, out)
    np.testing.assert_array_equal(out, x * y + z)
