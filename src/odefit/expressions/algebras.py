"""Algebras that only need NumPy: plain arrays, and dual numbers (first derivatives).

Dual numbers carry the derivatives of observables, initial values, events and noise models, which
are small expressions evaluated at all data times at once. The ODE's own derivatives come from the
integration engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array

ArrayLike = Array | np.float64 | float

FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "abs": np.abs,
}
"""Functions of one argument."""

DERIVATIVES: Mapping[str, Callable[[Any, Any], Any]] = {
    # f'(x), given x and f(x)
    "exp": lambda x, f: f,
    "log": lambda x, f: np.divide(1.0, x),
    "log10": lambda x, f: 1.0 / (x * np.log(10.0)),
    "sqrt": lambda x, f: 0.5 / f,
    "sin": lambda x, f: np.cos(x),
    "cos": lambda x, f: -np.sin(x),
    "tan": lambda x, f: 1.0 + f * f,
    "asin": lambda x, f: 1.0 / np.sqrt(1.0 - x * x),
    "acos": lambda x, f: -1.0 / np.sqrt(1.0 - x * x),
    "atan": lambda x, f: 1.0 / (1.0 + x * x),
    "sinh": lambda x, f: np.cosh(x),
    "cosh": lambda x, f: np.sinh(x),
    "tanh": lambda x, f: 1.0 - f * f,
    "abs": lambda x, f: np.sign(x),
}
"""Their derivatives."""


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
"""Comparisons of two numbers."""

LOGIC: Mapping[str, Callable[..., Any]] = {
    "&&": np.logical_and,
    "||": np.logical_or,
    "!": np.logical_not,
}
"""Operations on conditions."""


class NumpyAlgebra:
    """Floats and arrays, with NaN or inf for undefined values (``log(-1)``, ``1/0``).

    Names have values of NumPy's floats, or arrays of them. Callers wrap evaluations in
    ``numpy.errstate(all="ignore")``.
    """

    def number(self, text: str) -> np.float64:
        return np.float64(text)

    def power(self, base: Any, exponent: Any) -> Any:
        return np.power(base, exponent)

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        if function == "min":
            return reduce(np.minimum, arguments)
        if function == "max":
            return reduce(np.maximum, arguments)
        if function == "piecewise":
            return piecewise(arguments)
        if function in COMPARISONS:
            return COMPARISONS[function](*arguments)
        if function in LOGIC:
            return LOGIC[function](*arguments)
        return FUNCTIONS[function](arguments[0])


class LimitAlgebra(NumpyAlgebra):
    """The algebra of NumPy numbers in which roots and fractional powers of negatives are zero."""

    def power(self, base: Any, exponent: Any) -> Any:
        value = np.power(base, exponent)
        return np.where(np.isnan(value) & np.less(base, 0.0), np.power(0.0, exponent), value)[()]

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        return self.sqrt(arguments[0]) if function == "sqrt" else super().call(function, arguments)

    def sqrt(self, value: Any) -> Any:
        """Return the root of a number, or zero if it is negative."""
        return np.sqrt(np.maximum(value, 0.0))


class Dual:
    """A value with its first derivatives by direction; an absent direction has derivative 0.

    A partial derivative of zero stays zero however steep the function is: ``sqrt(x)`` at x = 0 does
    not spoil the directions in which x does not move.
    """

    __array_ufunc__ = None  # NumPy scalars on the left must defer to our operators
    __slots__ = ("partials", "value")

    def __init__(self, value: ArrayLike, partials: Mapping[int, ArrayLike] | None = None) -> None:
        self.value = value
        self.partials: Mapping[int, ArrayLike] = partials or {}

    def _linear(
        self, value: ArrayLike, factor_of_self: Any, other: Dual | None, factor: Any
    ) -> Dual:
        """Return `value` with the derivatives ``own * self' + factor * other'``."""
        partials = _scaled(factor_of_self, self.partials)
        if other is not None:
            for k, v in _scaled(factor, other.partials).items():
                partials[k] = partials[k] + v if k in partials else v
        return Dual(value, partials)

    def __neg__(self) -> Dual:
        return self._linear(-self.value, -1.0, None, 0.0)

    def __add__(self, other: Dual) -> Dual:
        return self._linear(self.value + other.value, 1.0, other, 1.0)

    def __sub__(self, other: Dual) -> Dual:
        return self._linear(self.value - other.value, 1.0, other, -1.0)

    def __mul__(self, other: Dual) -> Dual:
        return self._linear(self.value * other.value, other.value, other, self.value)

    def __truediv__(self, other: Dual) -> Dual:
        quotient = np.divide(self.value, other.value)
        inverse = np.divide(1.0, other.value)
        return self._linear(quotient, inverse, other, -quotient * inverse)

    def array(self, length: int) -> Array:
        """Return the value as an array of shape (length,), a scalar repeated."""
        return np.broadcast_to(np.asarray(self.value, dtype=float), (length,))

    def take(self, rows: npt.NDArray[np.intp], length: int) -> Dual:
        """Return the given rows of this dual array, which has shape (length,)."""
        shape = (length,)
        partials: dict[int, ArrayLike] = {
            k: v[rows] if isinstance(v, np.ndarray) and v.shape == shape else np.full(len(rows), v)
            for k, v in self.partials.items()
        }
        return Dual(self.array(length)[rows], partials)

    def gradient(self, directions: int, length: int | None = None) -> Array:
        """Return the derivatives as one array, shape (directions,), or (length, directions)."""
        shape = (directions,) if length is None else (length, directions)
        result = np.zeros(shape)
        for k, v in self.partials.items():
            result[..., k] = v
        return result


class DualAlgebra:
    """Arrays with first derivatives (forward mode)."""

    def number(self, text: str) -> Dual:
        return Dual(np.float64(text))

    def power(self, base: Dual, exponent: Dual) -> Dual:
        value = np.power(base.value, exponent.value)
        slope = power_slope(base.value, exponent.value)
        if not exponent.partials:
            return base._linear(value, slope, None, 0.0)
        return base._linear(value, slope, exponent, power_by_exponent(base.value, value))

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        if function in {"min", "max"}:
            return reduce(_smaller if function == "min" else _larger, arguments)
        if function == "piecewise":
            return _dual_piecewise(arguments)
        if function in COMPARISONS:
            return COMPARISONS[function](arguments[0].value, arguments[1].value)
        if function in LOGIC:
            return LOGIC[function](*arguments)
        x = arguments[0]
        value = FUNCTIONS[function](x.value)
        return x._linear(value, DERIVATIVES[function](x.value, value), None, 0.0)


def piecewise(arguments: Sequence[Any]) -> Any:
    """Return the value before the first true condition, or else the last one.

    Values are at even places of `arguments`, conditions at odd ones.
    """
    result = arguments[-1]
    for k in range(len(arguments) - 3, -1, -2):
        result = np.where(arguments[k + 1], arguments[k], result)[()]
    return result


def power_slope(base: Any, exponent: Any) -> Any:
    """Return the derivative of ``base ** exponent`` by the base."""
    # np.where keeps 0 ** 0 differentiable: its slope is 0, not 0 * inf.
    slope = exponent * np.power(base, np.subtract(exponent, 1.0))
    return np.where(np.equal(exponent, 0.0), 0.0, slope)


def power_by_exponent(base: Any, value: Any) -> Any:
    """Return the derivative of a power by its exponent, given its base and value."""
    # 0 ** p is 0 for every positive p.
    return np.where(np.equal(value, 0.0), 0.0, value * np.log(base))


def _scaled(factor: Any, partials: Mapping[int, ArrayLike]) -> dict[int, ArrayLike]:
    if np.isfinite(factor).all():
        return {k: factor * v for k, v in partials.items()}
    return {k: np.where(np.equal(v, 0.0), 0.0, factor * v) for k, v in partials.items()}


def _smaller(a: Dual, b: Dual) -> Dual:
    return _chosen(np.less_equal(a.value, b.value), np.minimum(a.value, b.value), a, b)


def _larger(a: Dual, b: Dual) -> Dual:
    return _chosen(np.greater_equal(a.value, b.value), np.maximum(a.value, b.value), a, b)


def _dual_piecewise(arguments: Sequence[Any]) -> Dual:
    result: Dual = arguments[-1]
    for k in range(len(arguments) - 3, -1, -2):
        value, first = arguments[k], arguments[k + 1]
        result = _chosen(first, np.where(first, value.value, result.value)[()], value, result)
    return result


def _chosen(first: Any, value: Any, a: Dual, b: Dual) -> Dual:
    """Return `value` with the derivatives of `a` where `first` is true, otherwise of `b`."""
    directions = dict.fromkeys((*a.partials, *b.partials))
    return Dual(
        value,
        {k: np.where(first, a.partials.get(k, 0.0), b.partials.get(k, 0.0)) for k in directions},
    )


NUMPY = NumpyAlgebra()
LIMITS = LimitAlgebra()
DUAL = DualAlgebra()
