"""The operations of recorded quantities and of their derivatives, over numbers and arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odefit.expressions.algebras import (
    COMPARISONS,
    DERIVATIVES,
    FUNCTIONS,
    LOGIC,
    power_by_exponent,
    power_slope,
)

INTEGRAL = "integral"  # operation that needs the grid; all others are among :data:`OPERATIONS`
SCALED = "scaled"  # operation "factor times a derivative"

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **FUNCTIONS,
    # Python's operators serve numbers and arrays, and take less time than NumPy's functions.
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "negate": operator.neg,
    "^": np.power,
    "min": np.minimum,
    "max": np.maximum,
    **COMPARISONS,
    **LOGIC,
    # The parts of a piecewise function:
    "if": lambda condition, value: np.where(condition, value, 0.0),
    "if not": lambda condition, value: np.where(condition, 0.0, value),
    # What only derivatives have:
    SCALED: operator.mul,
    "slope of ^": power_slope,
    "^ by exponent": power_by_exponent,
    "first is min": np.less_equal,
    "first is max": np.greater_equal,
    **{f"slope of {name}": slope for name, slope in DERIVATIVES.items()},
}
"""What each operation computes from one or two arguments."""


def scaled_with_zeros(factor: Any, derivative: Any) -> Any:
    """Return a factor times a derivative; a derivative of zero stays zero.

    So do dual numbers: however steep a function is where the unknowns do not act, they do not.
    """
    return np.where(np.equal(derivative, 0.0), 0.0, factor * derivative)
