"""Linear programs by HiGHS, with bounds that hold even if the solver was inexact.

A. Neumaier and O. Shcherbina, Safe bounds in linear and mixed-integer linear programming (2004):
any multipliers of the rows, exact or not, prove a bound if all variables are bounded. The solver's
multipliers prove a bound close to its optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.rounding import summation_error

STATUS_OPTIMAL, STATUS_INFEASIBLE = 0, 2
"""Statuses of :func:`scipy.optimize.linprog`."""

MAX_VIOLATION = 1e6
"""Largest violation of a scaled row for which the minimum is sought."""

EQUATION_WIDTH = 1e-11
"""Distance of a scaled row's sides below which the solver sees an equation; the proof keeps
both."""


LEAST_SECONDS = 0.01
"""Smallest time limit of a linear program, in seconds."""


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """``row_lower <= matrix @ x <= row_upper`` within ``lower <= x <= upper``.

    Sides of rows may be infinite; bounds of columns are finite. Solvers see `anchored` columns
    (binaries and the variables they switch) from their lower end, in units of their width.
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
    def scaled(self) -> ScaledPolyhedron:
        """The polyhedron in the variables that a solver uses."""
        return ScaledPolyhedron.of(self)


@dataclass(frozen=True, eq=False)
class ScaledPolyhedron:
    """A polyhedron in variables v from -1 to 1, ``x = centre + half * v``.

    Solvers' tolerances are absolute: here they are fractions of the widths of the variables. Rows
    are scaled too, so that their largest coefficients are near 1; `bounds` have shape (columns, 2).
    The rows `equal`, shape (rows,), are equations to the solver.
    """

    centre: Array
    half: Array
    row_scale: Array
    matrix: csr_array
    row_lower: Array
    row_upper: Array
    bounds: Array
    equal: BoolArray

    @classmethod
    def of(cls, p: Polyhedron) -> ScaledPolyhedron:
        """Return `p` scaled by powers of two, so that coefficients are not rounded."""
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
        equal = np.isfinite(row_lower) & np.isfinite(row_upper)
        equal[equal] = (row_upper - row_lower)[equal] <= EQUATION_WIDTH
        bounds = np.column_stack([p.lower - centre, p.upper - centre]) / half[:, None]
        scaled = csr_array(matrix.multiply(rows[:, None]))
        return cls(centre, half, rows, scaled, row_lower, row_upper, bounds, equal)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The outcome of a linear program.

    No point of the polyhedron has a value below the proved `bound`, which is infinite if the
    polyhedron is proved empty, and minus infinity if nothing is proved. `x` and the `multipliers`
    of the rows are the solver's.
    """

    bound: float
    x: Array | None
    multipliers: Array | None


def minimise(p: Polyhedron, cost: Array, seconds: float = math.inf) -> Optimum:
    """Minimise ``cost @ x`` over `p`; after `seconds` the outcome may prove nothing."""
    s = p.scaled
    c = cost * s.half
    size = float(np.abs(c).max(initial=0.0)) or 1.0
    optimum, y = _solved(s, c / size, s.equal, seconds)
    if optimum.status == STATUS_INFEASIBLE:
        return Optimum(math.inf if is_proved_empty(p, seconds) else -math.inf, None, None)
    if optimum.status != STATUS_OPTIMAL or optimum.x is None:
        return Optimum(-math.inf, None, None)
    y = y * s.row_scale * size
    x = np.clip(s.centre + s.half * optimum.x, p.lower, p.upper)
    return Optimum(safe_dual_bound(p, cost, y), x, y)


def _solved(
    s: ScaledPolyhedron, cost: Array, equal: BoolArray, seconds: float, violation: bool = False
) -> tuple[Any, Array]:
    """Return the result of HiGHS's dual simplex method, and the multipliers of the rows.

    The multipliers belong to a vertex, and are zero if the linear program is not solved. The cost
    is that of the scaled variables. If `violation` is set, a further variable may violate all rows
    but those in `equal`, and is minimised.
    """
    from scipy.optimize import linprog

    high, low = ~equal & np.isfinite(s.row_upper), ~equal & np.isfinite(s.row_lower)
    matrix = vstack([s.matrix[high], -s.matrix[low]], format="csr")
    equations, bounds = s.matrix[equal], s.bounds
    if violation:
        matrix = hstack([matrix, csr_array(-np.ones((matrix.shape[0], 1)))], format="csr")
        equations = hstack([equations, csr_array((equations.shape[0], 1))], format="csr")
        cost, bounds = np.append(cost, 1.0), np.vstack([bounds, [0.0, MAX_VIOLATION]])
    solve: Any = linprog
    outcome = solve(
        cost,
        A_ub=matrix,
        b_ub=np.concatenate([s.row_upper[high], -s.row_lower[low]]),
        A_eq=equations,
        b_eq=0.5 * s.row_lower[equal] + 0.5 * s.row_upper[equal],
        bounds=bounds,
        method="highs-ds",
        options={} if math.isinf(seconds) else {"time_limit": max(seconds, LEAST_SECONDS)},
    )
    y = np.zeros(len(equal))
    if outcome.status == STATUS_OPTIMAL:
        marginals, count = np.asarray(outcome.ineqlin.marginals), int(high.sum())
        y[high] += marginals[:count]
        y[low] -= marginals[count:]
        y[equal] = outcome.eqlin.marginals
    return outcome, y


def safe_dual_bound(p: Polyhedron, cost: Array, multipliers: Array) -> float:
    """Return a lower bound of ``cost @ x`` over `p` from any multipliers, rounding included.

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


def is_proved_empty(p: Polyhedron, seconds: float = math.inf) -> bool:
    """Return whether multipliers prove that there is no point.

    They are those of the smallest violation that all rows can share; with them, a positive bound of
    a zero cost is a contradiction.
    """
    s = p.scaled
    nothing, none = np.zeros(len(p.lower)), np.zeros(len(s.row_scale), dtype=bool)
    _, y = _solved(s, nothing, none, seconds, violation=True)
    return safe_dual_bound(p, nothing, y * s.row_scale) > 0.0
