"""Linear programs by HiGHS, with bounds that hold however inexact the solver was.

A. Neumaier and O. Shcherbina, Safe bounds in linear and mixed-integer linear programming (2004):
any multipliers of the rows, right or wrong, prove a bound if all variables are bounded. The
solver's multipliers prove one that is next to its optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from odefit.enclosure.rounding import summation_error
from odefit.problem.arrays import Array, BoolArray

INFEASIBLE = 2
"""The status by which SciPy says so."""

MOST_VIOLATION = 1e6
"""Of a scaled row, where the least one is looked for."""

EQUAL = 1e-11
"""Sides of a scaled row that are closer are one to the solver; the proof takes them apart."""


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """``row_lower <= matrix @ x <= row_upper`` within ``lower <= x <= upper``, all bounds finite.

    Attributes
    ----------
    matrix
        Shape (rows, columns).
    row_lower, row_upper
        Shape (rows,); infinite on the side that is free.
    lower, upper
        Shape (columns,).
    anchored
        Columns that solvers see from their lower end, in units of their width: binaries and what
        they switch. Shape (columns,).
    """

    matrix: csr_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    anchored: BoolArray | None = None

    @cached_property
    def transposed(self) -> csr_array:
        """The matrix by columns."""
        return csr_array(self.matrix.T)

    @cached_property
    def scaled(self) -> Scaled:
        """As solvers like it."""
        return Scaled.of(self)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A polyhedron in variables from -1 to 1, its largest coefficients near 1.

    Tolerances of solvers are absolute: here they are parts of the widths of the variables.

    Attributes
    ----------
    centre, half
        ``x = centre + half * v``.
    rows
        What each row was multiplied by.
    matrix, row_lower, row_upper
        In v.
    bounds
        Of v, shape (columns, 2).
    low, high, equal
        Which rows the solver sees by their lower side, by their upper side, as equations.
    """

    centre: Array
    half: Array
    rows: Array
    matrix: csr_array
    row_lower: Array
    row_upper: Array
    bounds: Array
    low: BoolArray
    high: BoolArray
    equal: BoolArray

    @classmethod
    def of(cls, p: Polyhedron) -> Scaled:
        """`p` scaled by powers of two, so that coefficients are not rounded."""
        width = p.upper - p.lower
        power = np.ceil(np.log2(np.where(width > 0, width, 1.0)))
        half = np.where(width > 0, 2.0 ** (power - 1), 1.0)
        centre = 0.5 * p.lower + 0.5 * p.upper
        if p.anchored is not None:
            centre = np.where(p.anchored, p.lower, centre)
            half = np.where(p.anchored & (width > 0), 2.0**power, half)
        matrix = csr_array(p.matrix.multiply(half[None, :]))
        moving = csr_array(matrix.multiply((width > 0).astype(float)[None, :]))
        top = abs(moving).max(axis=1).toarray().ravel()
        rows = np.where(top > 0, 2.0 ** -np.round(np.log2(np.where(top > 0, top, 1.0))), 1.0)
        moved = p.matrix @ centre
        row_lower, row_upper = (p.row_lower - moved) * rows, (p.row_upper - moved) * rows
        low, high = np.isfinite(row_lower), np.isfinite(row_upper)
        equal = low & high
        equal[equal] = (row_upper - row_lower)[equal] <= EQUAL
        bounds = np.column_stack([p.lower - centre, p.upper - centre]) / half[:, None]
        scaled = csr_array(matrix.multiply(rows[:, None]))
        return cls(
            centre,
            half,
            rows,
            scaled,
            row_lower,
            row_upper,
            bounds,
            low & ~equal,
            high & ~equal,
            equal,
        )

    @cached_property
    def inequalities(self) -> tuple[csr_array, Array]:
        """``A v <= b``: the upper sides, then the lower ones."""
        matrix = csr_array(vstack([self.matrix[self.high], -self.matrix[self.low]], format="csr"))
        return matrix, np.concatenate([self.row_upper[self.high], -self.row_lower[self.low]])

    @cached_property
    def equations(self) -> tuple[csr_array, Array]:
        """``A v = b``."""
        middle = 0.5 * self.row_lower[self.equal] + 0.5 * self.row_upper[self.equal]
        return csr_array(self.matrix[self.equal]), middle


@dataclass(frozen=True, eq=False)
class Solved:
    """What came of a linear program.

    Attributes
    ----------
    bound
        Proved: no point of the polyhedron has a smaller value; infinite if it is proved empty,
        minus infinity if nothing is proved.
    x
        The solver's optimum, None if there is none.
    multipliers
        Of the rows, shape (rows,).
    """

    bound: float
    x: Array | None
    multipliers: Array | None


def minimum(p: Polyhedron, cost: Array, seconds: float = math.inf) -> Solved:
    """``min cost @ x`` over `p`.

    Parameters
    ----------
    cost
        Shape (columns,).
    seconds
        Limit; with it nothing may be proved.
    """
    s = p.scaled
    c = cost * s.half
    size = float(np.abs(c).max(initial=0.0)) or 1.0
    matrix, right = s.inequalities
    equations, target = s.equations
    found = _linprog(
        c / size,
        A_ub=matrix,
        b_ub=right,
        A_eq=equations,
        b_eq=target,
        bounds=s.bounds,
        seconds=seconds,
    )
    if found.status == INFEASIBLE:
        return Solved(math.inf if proved_empty(p, seconds) else -math.inf, None, None)
    if found.status != 0 or found.x is None:
        return Solved(-math.inf, None, None)
    y = np.zeros(len(s.rows))
    marginal = np.asarray(found.ineqlin.marginals)
    upper = int(s.high.sum())
    y[s.high] += marginal[:upper]
    y[s.low] -= marginal[upper:]
    y[s.equal] = found.eqlin.marginals
    y = y * s.rows * size
    x = np.clip(s.centre + s.half * found.x, p.lower, p.upper)
    return Solved(safe_bound(p, cost, y), x, y)


def _linprog(cost: Array, *, seconds: float, **rows: Any) -> Any:
    """HiGHS, by the dual simplex method, whose multipliers are those of a vertex."""
    from scipy.optimize import linprog

    options = {} if math.isinf(seconds) else {"time_limit": max(seconds, 0.01)}
    solve: Any = linprog
    return solve(cost, method="highs-ds", options=options, **rows)


def safe_bound(p: Polyhedron, cost: Array, multipliers: Array) -> float:
    """A lower bound of ``cost @ x`` over `p` from any multipliers, rounding included.

    ``cost x = (cost - A'y) x + y (A x)``: the first part is bounded over the box, the second by
    the sides of the rows, the lower one where y > 0 and the upper one where y < 0. Multipliers
    of the wrong sign for a row with one side are set to zero.
    """
    y = np.where((multipliers > 0) & ~np.isfinite(p.row_lower), 0.0, multipliers)
    y = np.where((y < 0) & ~np.isfinite(p.row_upper), 0.0, y)
    transposed = p.transposed
    counts = np.diff(transposed.indptr)
    reduced = cost - transposed @ y
    size = np.abs(cost) + abs(transposed) @ np.abs(y)
    slack = summation_error(counts + 2) * size + 1e-300
    low, high = reduced - slack, reduced + slack
    ends = np.array([low * p.lower, low * p.upper, high * p.lower, high * p.upper]).min(axis=0)
    side = np.where(y > 0, p.row_lower, p.row_upper)
    sides = np.where(y == 0, 0.0, y * np.where(y == 0, 0.0, side))
    total = float(ends.sum() + sides.sum())
    terms = len(ends) + len(sides) + 8
    magnitude = float(np.abs(ends).sum() + np.abs(sides).sum())
    magnitude += float((slack * np.maximum(np.abs(p.lower), np.abs(p.upper))).sum())
    return float(total - summation_error(terms) * magnitude)


def proved_empty(p: Polyhedron, seconds: float = math.inf) -> bool:
    """Whether multipliers prove that there is no point.

    They are those of the least violation that all rows can share; with them, a bound above zero
    on nothing at all is a contradiction.
    """
    s = p.scaled
    low, high = np.isfinite(s.row_lower), np.isfinite(s.row_upper)
    matrix = vstack([s.matrix[high], -s.matrix[low]], format="csr")
    count, n = matrix.shape
    found = _linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=hstack([matrix, csr_array(-np.ones((count, 1)))], format="csr"),
        b_ub=np.concatenate([s.row_upper[high], -s.row_lower[low]]),
        bounds=np.vstack([s.bounds, [0.0, MOST_VIOLATION]]),
        seconds=seconds,
    )
    if found.status != 0:
        return False
    y = np.zeros(len(s.rows))
    marginal = np.asarray(found.ineqlin.marginals)
    upper = int(high.sum())
    y[high] += marginal[:upper]
    y[low] -= marginal[upper:]
    return safe_bound(p, np.zeros(n), y * s.rows) > 0.0
