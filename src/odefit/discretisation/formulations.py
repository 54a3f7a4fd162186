"""Formulations: the strictness of the discretised equations (sections 2.1 and 2.2).

H denotes the scheme's equations for the differential equations; the other constraints (initial
values, events, algebraic equations) hold exactly in every formulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.option_checks import number


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints ``lower <= row + sign * slack <= upper``, c of them.

    `rows` and `slack` are numbers, shape (c,); -1 means no slack. All slack variables are
    nonnegative and have the coefficient `penalty` in the objective.
    """

    rows: IntArray
    slack: IntArray
    sign: Array
    lower: Array
    upper: Array
    slacks: int = 0
    penalty: float = 0.0


class Formulation(Protocol):
    """The strictness of the equations H = 0."""

    @property
    def name(self) -> str:
        """The name shown in results."""

    def constraints(self, dynamic: BoolArray) -> Constraints:
        """Return all constraints; `dynamic` marks the rows of H, shape (rows,)."""


@dataclass(frozen=True)
class Baseline:
    """The equations H = 0 exactly, equation (2)."""

    name: str = "Baseline"

    def constraints(self, dynamic: BoolArray) -> Constraints:
        """Return equalities."""
        return _within(dynamic, 0.0)


@dataclass(frozen=True)
class ExtraTol:
    """Equations with a tolerance, -eps <= H <= eps, equation (8).

    `eps` is in the units of the states. Raises InputError if it is negative or not finite.
    """

    eps: float = 1e-6

    def __post_init__(self) -> None:
        number(self.eps, "ExtraTol, eps", least=0.0)

    @property
    def name(self) -> str:
        """The name with its tolerance."""
        return f"ExtraTol({self.eps:g})"

    def constraints(self, dynamic: BoolArray) -> Constraints:
        """Return two-sided inequalities."""
        return _within(dynamic, self.eps)


@dataclass(frozen=True)
class SoftCons:
    """Soft constraints: -s <= H <= s with P times the sum of s in the objective, equation (9).

    Optimisers call this an exact l1 penalty, or the elastic mode. The `penalty` P is in units of
    the objective per unit of a state. Raises InputError if it is not positive and finite.
    """

    penalty: float = 1e5

    def __post_init__(self) -> None:
        number(self.penalty, "SoftCons, penalty", least=math.ulp(0.0))

    @property
    def name(self) -> str:
        """The name with its penalty."""
        return f"SoftCons({self.penalty:g})"

    def constraints(self, dynamic: BoolArray) -> Constraints:
        """Return every row of H twice, each with its own slack variable."""
        soft = np.flatnonzero(dynamic)
        hard = np.flatnonzero(~dynamic)
        count = len(soft)
        numbers = np.arange(count)
        none = np.full(len(hard), -1)
        inf = np.full(count, np.inf)
        zero, ones = np.zeros(count), np.ones(count)
        return Constraints(
            np.concatenate([hard, soft, soft]),
            np.concatenate([none, numbers, numbers]),
            np.concatenate([np.zeros(len(hard)), -ones, ones]),
            np.concatenate([np.zeros(len(hard)), -inf, zero]),
            np.concatenate([np.zeros(len(hard)), zero, inf]),
            count,
            self.penalty,
        )


def _within(dynamic: BoolArray, eps: float) -> Constraints:
    count = len(dynamic)
    width = np.where(dynamic, eps, 0.0)
    rows, none = np.arange(count), np.full(count, -1)
    return Constraints(rows, none, np.zeros(count), -width, width)
