"""Separable least squares: linear unknowns in closed form, the others by variable projection.

G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate, 1973; the derivative without its second term after
L. Kaufman, A variable projection method for solving separable nonlinear least squares problems,
1975.

Penalties on linear unknowns are part of the criterion. A penalty on squares adds rows to the linear
problem. A penalty on magnitudes has no rows of its own, but at the minimum over the linear unknowns
it has the gradient of weighted squares. These squares, with the weights t/|y|, lie above it (J. Fan
and R. Li, Variable selection via nonconcave penalized likelihood and its oracle properties, 2001):
with these as rows, the model of variable projection has the exact gradient of the penalised
criterion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dgesdd

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.integral_matching.criterion import IntegralCriterion
from odefit.methods.integral_matching.lasso import lasso
from odefit.methods.local.quadratic_models import column_norms
from odefit.methods.local.stopping import Minimum, Tolerances
from odefit.methods.local.trust_region import minimise

SINGULAR_TOLERANCE = 1e-10
"""The relative singular value of the linear problem, its columns scaled to length one, up to which
it counts as zero."""

SCAN_FACTOR, SCAN_GAIN = 4.0, 0.5
"""Factor between the points of a scan of the only nonlinear unknown, and the largest ratio of
successive costs at which the scan continues."""


@dataclass(frozen=True)
class Penalty:
    """A penalty on linear parameters in the sizes of their columns; initial values have none.

    The sizes are fixed at the start of the search for nonlinear unknowns: if they changed with
    these, the search could make terms cheap instead of unnecessary.

    A lasso selects parameters: those that it leaves nonzero are refitted without it (the fully
    relaxed lasso of N. Meinshausen, Relaxed lasso, 2007), within their bounds and with the ridge if
    there is one. Otherwise its penalty would shrink them, so that a weight that removes most
    unnecessary terms would spoil the necessary ones.

    Attributes
    ----------
    ridge
        Weight of the squares of the parameters.
    lasso
        Weight of their magnitudes, relative to the data: parameters that explain less are zero.
    """

    ridge: float = 0.0
    lasso: float = 0.0


@dataclass(frozen=True, eq=False)
class PenaltyWeights:
    """The penalty ``squares y^2 / 2 + magnitudes |y|`` on the linear unknowns y of a block."""

    # non-negative weights, shape (k,)
    squares: Array
    magnitudes: Array

    @classmethod
    def of(
        cls, penalty: Penalty, columns: Array, constant: Array, penalised: BoolArray
    ) -> PenaltyWeights:
        """Return the weights for columns of shape (rows, k) and data of shape (rows,)."""
        sizes = np.linalg.norm(columns, axis=0) * penalised
        data = float(np.linalg.norm(constant))
        return cls(penalty.ridge * sizes**2, penalty.lasso * data * sizes)

    @cached_property
    def zero(self) -> bool:
        """True if there is no penalty."""
        return not (self.squares.any() or self.magnitudes.any())

    def cost(self, y: Array) -> float:
        """Return the penalty on y, shape (k,)."""
        return float(0.5 * self.squares @ y**2 + self.magnitudes @ np.abs(y))

    def row_weights(self, y: Array) -> Array:
        """Return the weights of rows y_i whose squares have the penalty's gradient at y.

        Their shape is (k,). The magnitude of a zero unknown has no weight: it is held there.
        """
        sizes = np.where(y != 0, np.abs(y), np.inf)
        return np.asarray(np.sqrt(self.squares + self.magnitudes / sizes))


@dataclass(frozen=True, eq=False)
class EquationBlock:
    """Equations that share unknowns with each other and with no other equations."""

    equations: tuple[int, ...]  # indices of the equations in the criterion
    # indices of the unknowns in them
    linear: tuple[int, ...]
    nonlinear: tuple[int, ...]

    @cached_property
    def linear_places(self) -> IntArray:
        """The indices of the linear unknowns, as an array."""
        return np.array(self.linear, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """The minimum of the criterion of one block."""

    # unknowns and free initial states, shape (size,); only those of the block have changed
    vector: Array
    cost: float  # half the criterion, without penalties
    # indices of the linear unknowns that the criterion does not determine
    singular: tuple[int, ...]
    evaluations: int  # number of evaluations of the criterion
    converged: bool  # whether the nonlinear unknowns are at a minimum


@dataclass(frozen=True, eq=False)
class _ReducedCriterion:
    """The penalised criterion at nonlinear unknowns, with the linear ones at its minimum.

    `residuals` and `jacobian` have its exact gradient; half the square of `residuals` is `cost`
    unless magnitudes are penalised.
    """

    cost: float
    residuals: Array
    jacobian: Array
    vector: Array
    unpenalised: float
    singular: tuple[int, ...]


def solve_block(
    criterion: IntegralCriterion,
    block: EquationBlock,
    start: Array,
    lower: Array,
    upper: Array,
    penalty: Penalty,
    tolerances: Tolerances,
    stop: Callable[[], bool],
    *,
    relax: bool = True,
) -> BlockSolution:
    """Minimise the reduced criterion (7) of a block, penalised, over its nonlinear unknowns.

    With `relax`, terms that the penalty on magnitudes keeps are then fitted without it. Start and
    bounds cover all components of the criterion, shape (size,).
    """
    count = 0
    columns_of = np.array(block.nonlinear, dtype=np.intp)
    weights: PenaltyWeights | None = None

    def reduced(nonlinear: Array) -> _ReducedCriterion | None:
        nonlocal count, weights
        count += 1
        vector = start.copy()
        vector[columns_of] = nonlinear
        if weights is None:
            weights = penalty_weights_at(criterion, block, vector, penalty)
        return _reduced(criterion, block, vector, lower, upper, weights)

    if not len(columns_of):
        best = reduced(start[columns_of])
        converged = best is not None
    else:
        first, known = np.clip(start[columns_of], lower[columns_of], upper[columns_of]), None
        if len(columns_of) == 1:
            first, known = _scanned(reduced, first, lower[columns_of], upper[columns_of])

        def evaluate(nonlinear: Array) -> _ReducedCriterion | None:
            again = known is not None and nonlinear[0] == first[0]
            return known if again else reduced(nonlinear)

        minimum: Minimum = minimise(
            evaluate, first, lower[columns_of], upper[columns_of], tolerances, stop
        )
        end, converged = minimum.evaluation, minimum.converged
        best = end if isinstance(end, _ReducedCriterion) else None
    if best is None:
        return BlockSolution(
            vector=start, cost=np.inf, singular=(), evaluations=count, converged=False
        )
    solution = BlockSolution(
        vector=best.vector,
        cost=best.unpenalised,
        singular=best.singular,
        evaluations=count,
        converged=converged,
    )
    if not (relax and penalty.lasso and np.isfinite(solution.cost)):
        return solution
    # Initial values have no penalty, and are zero only by chance.
    nonzero = replace(block, linear=tuple(k for k in block.linear if best.vector[k] != 0))
    relaxed = replace(penalty, lasso=0.0)
    again = solve_block(criterion, nonzero, best.vector, lower, upper, relaxed, tolerances, stop)
    return replace(again, evaluations=count + again.evaluations)


def _scanned(
    reduced: Callable[[Array], _ReducedCriterion | None], start: Array, lower: Array, upper: Array
) -> tuple[Array, _ReducedCriterion | None]:
    """Return a point nearer to the minimum in one unknown, shape (1,), and the criterion there.

    Far from its minimum a criterion like 1/p at most halves with each Gauss-Newton step, however
    long a step may be.
    """
    best = reduced(start)
    while best is not None:
        downhill = -float(best.jacobian[:, 0] @ best.residuals) * start[0]
        trial = start * (SCAN_FACTOR if downhill > 0 else 1 / SCAN_FACTOR)
        if downhill == 0 or not lower[0] <= trial[0] <= upper[0]:
            break
        new = reduced(trial)
        if new is None or not new.cost < SCAN_GAIN * best.cost:
            break
        start, best = trial, new
    return start, best


def penalty_weights_at(
    criterion: IntegralCriterion, block: EquationBlock, vector: Array, penalty: Penalty
) -> PenaltyWeights:
    """Return the penalty on a block, by the sizes of its columns at a vector, shape (size,)."""
    if not (penalty.ridge or penalty.lasso):
        return PenaltyWeights(np.zeros(len(block.linear)), np.zeros(len(block.linear)))
    constant, columns = _linear_problem(criterion, block, vector)
    unknowns = criterion.problem.unknowns
    penalised = np.array(
        [k < len(unknowns) and unknowns[k].kind == "parameter" for k in block.linear], dtype=bool
    )
    return PenaltyWeights.of(penalty, columns, constant, penalised)


def _linear_problem(
    criterion: IntegralCriterion, block: EquationBlock, vector: Array
) -> tuple[Array, Array]:
    """Return residuals with the linear unknowns at zero, and their derivatives by these."""
    vector = vector.copy()
    vector[block.linear_places] = 0.0
    return criterion.stacked(vector, block.linear, block.equations, condensed=True)


def _reduced(
    criterion: IntegralCriterion,
    block: EquationBlock,
    vector: Array,
    lower: Array,
    upper: Array,
    weights: PenaltyWeights,
) -> _ReducedCriterion | None:
    """Return the reduced criterion at a vector; None if it cannot be evaluated."""
    linear = block.linear_places
    constant, columns = _linear_problem(criterion, block, vector)
    if not (_usable(constant) and _usable(columns)):
        return None
    y, basis, singular = solve_linear(columns, constant, lower[linear], upper[linear], weights)
    vector = vector.copy()
    vector[linear] = y
    residuals = constant + columns @ y
    unpenalised = 0.5 * float(residuals @ residuals)
    if not weights.zero:
        residuals = np.append(residuals, weights.row_weights(y) * y)
    jacobian = criterion.stacked(vector, block.nonlinear, block.equations, condensed=True)[1]
    if not _usable(jacobian):
        return None
    if len(jacobian) < len(residuals):
        penalised = np.zeros((len(residuals) - len(jacobian), len(block.nonlinear)))
        jacobian = np.vstack([jacobian, penalised])
    # The part that the linear unknowns can absorb is projected out.
    jacobian = jacobian - basis @ (basis.T @ jacobian)
    return _ReducedCriterion(
        cost=unpenalised + weights.cost(y),
        residuals=residuals,
        jacobian=jacobian,
        vector=vector,
        unpenalised=unpenalised,
        singular=tuple(block.linear[k] for k in singular),
    )


def solve_linear(
    columns: Array, constant: Array, lower: Array, upper: Array, weights: PenaltyWeights
) -> tuple[Array, Array, tuple[int, ...]]:
    """Minimise |columns y + constant|^2 / 2 with the penalty, within bounds.

    Returns the minimum y, shape (k,), and an orthonormal basis, shape (rows, r). It spans those
    columns whose y is not held at a bound or at zero. The third value has the indices of columns
    that the others can replace, or that are zero. With a penalty, its
    :meth:`PenaltyWeights.row_weights` are a diagonal below the columns, and the basis has the shape
    (rows + k, r).
    """
    norms = column_norms(columns)
    units = norms if norms.all() else np.where(norms > 0, norms, 1.0)
    scaled, right = columns / units, -constant
    low, high = lower * units, upper * units
    if not weights.zero:
        if weights.squares.any():
            scaled = np.vstack([scaled, np.diag(np.sqrt(weights.squares) / units)])
            right = np.append(right, np.zeros(len(units)))
        if weights.magnitudes.any():
            y = lasso(scaled, right, low, high, weights.magnitudes / units)
            free = ((y != 0) | (weights.magnitudes == 0)) & (y > low) & (y < high)
            rows = np.vstack([columns / units, np.diag(weights.row_weights(y / units) / units)])
            return y / units, _orthonormal_basis(rows[:, free]), ()
    if not len(units):
        return np.zeros(0), scaled, ()
    u, s, vt = _thin_svd(scaled)
    known = s > SINGULAR_TOLERANCE * max(float(s.max(initial=0.0)), 1e-300)
    singular: tuple[int, ...] = ()
    if not known.all():
        in_kernel = np.sqrt(np.sum(vt[~known] ** 2, axis=0))
        singular = tuple(int(k) for k in np.flatnonzero((in_kernel > 1e-6) | (norms == 0)))
        u, s, vt = u[:, known], s[known], vt[known]
    y = vt.T @ ((u.T @ right) / s)
    inside = (y >= low) & (y <= high)
    if inside.all():
        return y / units, u, singular
    if not singular:
        side = np.where(y < low, -1, np.where(y > high, 1, 0))
        held = _at_bounds(scaled, right, low, high, side)
        if held is not None:
            return np.clip(held[0] / units, lower, upper), held[1], ()
    from scipy.optimize import lsq_linear

    bounded = lsq_linear(scaled, right, (low, high), method="bvls")
    y = np.clip(bounded.x / units, lower, upper)
    return y, _orthonormal_basis(scaled[:, bounded.active_mask == 0]), singular


def _at_bounds(
    columns: Array, right: Array, low: Array, high: Array, side: IntArray
) -> tuple[Array, Array] | None:
    """Minimise |columns y - right| with components held at their lower or upper bounds.

    The `side` of a component is -1 or 1 where it is held at the lower or upper bound, and 0
    elsewhere. Returns y and an orthonormal basis of the span of the other columns; None if this is
    not the minimum within all bounds.
    """
    held = side != 0
    free = ~held
    y = np.where(side < 0, low, high)
    rest = right - columns[:, held] @ y[held]
    u, s, vt = _thin_svd(columns[:, free])
    projected = u.T @ rest
    y[free] = vt.T @ (projected / s)
    # Leaving a bound must not lower the criterion.
    outward = side[held] * (columns[:, held].T @ (rest - u @ projected))
    if (outward < 0).any() or (y < low).any() or (y > high).any():
        return None
    return y, u


def _usable(array: Array) -> bool:
    """Return whether an array and the sum of its squares are finite."""
    return math.isfinite(np.vdot(array, array))


def _thin_svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Return the singular value decomposition, without NumPy's overhead for small matrices."""
    if not matrix.shape[1]:
        return matrix, np.zeros(0), np.zeros((0, 0))
    u, s, vt, failed = dgesdd(matrix, full_matrices=0)
    if failed:
        raise np.linalg.LinAlgError(f"the singular value decomposition did not converge: {failed}")
    return u, s, vt


def _orthonormal_basis(columns: Array) -> Array:
    """Return an orthonormal basis of the span of the columns."""
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(u[:, s > SINGULAR_TOLERANCE * max(float(s.max(initial=0.0)), 1e-300)])
