"""The standard form (18)-(25): linear rows, and the simplest nonlinear terms between variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from odefit.problem.arrays import Array, BoolArray, IntArray

Bounds = tuple[Array, Array]
"""Lower and upper bounds of all variables, each of shape (n,)."""


@dataclass(frozen=True)
class Univariate:
    """A term ``w_result = f(w_argument)``, (24) and (25).

    Attributes
    ----------
    result, argument
        Numbers of the variables.
    function
        ``"exp"``, ``"log"``, ...; ``"power"`` for ``w_argument ** exponent``.
    exponent
        Of a power.
    """

    result: int
    argument: int
    function: str
    exponent: float = 0.0


@dataclass(frozen=True, eq=False)
class StandardForm:
    """``min sum of w_r^2 over residuals + linear . w + constant`` subject to (19)-(25).

    Attributes
    ----------
    names
        Of the variables, for messages.
    lower, upper
        Bounds, shape (n,); infinite where nothing is known yet.
    matrix, target
        ``matrix @ w = target`` (19), shapes (rows, n) and (rows,).
    bilinear
        Numbers (k, i, j) of ``w_k = w_i w_j`` (22), shape (terms, 3). A fraction
        ``w_k = w_i / w_j`` (23) is here as ``w_i = w_k w_j``.
    univariate
        The other terms.
    residuals
        Numbers of the variables whose squares are the objective.
    linear, constant
        The rest of the objective: logarithms of standard deviations that are estimated.
    originals
        So many variables, the first, are those of the discretised problem.
    parameters
        Numbers of the variables that are unknowns of the problem.
    elements
        First and last finite element that a variable belongs to, counted from 0, shape (n, 2);
        the end of an element belongs to the next one too. -1 and the largest number for what
        belongs to none, such as parameters.
    definitions
        What each variable behind the originals is, in an order in which they can be computed.
    """

    names: tuple[str, ...]
    lower: Array
    upper: Array
    matrix: csr_array
    target: Array
    bilinear: IntArray
    univariate: tuple[Univariate, ...]
    residuals: IntArray
    linear: Array
    constant: float
    originals: int
    parameters: IntArray
    elements: IntArray
    definitions: Mapping[int, Any]

    @property
    def size(self) -> int:
        """Number of variables, n."""
        return len(self.names)

    @property
    def factors(self) -> IntArray:
        """Variables that occur in nonlinear terms, increasing."""
        arguments = [t.argument for t in self.univariate]
        return np.unique(np.concatenate([self.bilinear[:, 1:].ravel(), arguments])).astype(np.intp)

    def within(self, group: Sequence[int]) -> BoolArray:
        """Which variables belong to a group of consecutive elements, or to none, shape (n,)."""
        first, last = self.elements.T
        found: BoolArray = (first < 0) | ((last >= min(group)) & (first <= max(group)))
        return found

    def objective(self, w: Array) -> float:
        """At the variables `w`, shape (n,)."""
        r = w[self.residuals]
        return float(r @ r + self.linear @ w + self.constant)
