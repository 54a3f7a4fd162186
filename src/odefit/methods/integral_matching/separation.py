"""Separable least squares: the linear unknowns in closed form, the others by variable projection.

G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate, 1973; the derivative without its second term after
L. Kaufman, A variable projection method for solving separable nonlinear least squares problems,
1975.

Penalties on linear unknowns belong to what is minimised. That on squares is more rows of the linear
problem. That on magnitudes has no rows of its own, but at the minimum over the linear unknowns it
has the gradient of weighted squares with the weights t/|y|, which lie above it (J. Fan and R. Li,
Variable selection via nonconcave penalized likelihood and its oracle properties, 2001): with these
as rows, the model of variable projection has the exact gradient of the penalised criterion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from odefit.methods.integral_matching.criterion import Criterion
from odefit.methods.integral_matching.lasso import lasso
from odefit.methods.trust_region import Minimum, Tolerances, minimise
from odefit.problem.arrays import Array, BoolArray

SINGULAR = 1e-10
"""Singular values of the linear problem that count as zero, relative, columns of length one."""


@dataclass(frozen=True)
class Penalty:
    """What linear parameters cost, in the sizes of their columns; initial values are free.

    The sizes are those at the start of the search for nonlinear unknowns: if they changed with
    these, terms could be made cheap instead of unnecessary.

    A lasso chooses parameters: those it does not make zero are fitted again without it (the relaxed
    lasso of N. Meinshausen, Relaxed lasso, 2007, relaxed entirely), within their bounds and with
    the ridge if there is one. Its penalty would shrink them, so that a weight that drops most of
    what is not there would spoil what is.

    Attributes
    ----------
    ridge
        Weight of their squares.
    lasso
        Weight of their magnitudes, relative to the data: those that explain less are zero.
    """

    ridge: float = 0.0
    lasso: float = 0.0


@dataclass(frozen=True, eq=False)
class Prices:
    """The penalty ``squares y^2 / 2 + magnitudes |y|`` on the linear unknowns y of a block.

    Attributes
    ----------
    squares, magnitudes
        Not negative, shape (k,).
    """

    squares: Array
    magnitudes: Array

    @classmethod
    def of(cls, penalty: Penalty, columns: Array, constant: Array, penalised: BoolArray) -> Prices:
        """Those of some columns, shape (rows, k), beside the data, shape (rows,)."""
        sizes = np.linalg.norm(columns, axis=0) * penalised
        data = float(np.linalg.norm(constant))
        return cls(penalty.ridge * sizes**2, penalty.lasso * data * sizes)

    @property
    def none(self) -> bool:
        """Whether nothing costs anything."""
        return not (self.squares.any() or self.magnitudes.any())

    def cost(self, y: Array) -> float:
        """Of y, shape (k,)."""
        return float(0.5 * self.squares @ y**2 + self.magnitudes @ np.abs(y))

    def roots(self, y: Array) -> Array:
        """Of the weights of squares with the penalty's gradient at y, shape (k,).

        Those at zero have none: they are held there.
        """
        sizes = np.where(y != 0, np.abs(y), np.inf)
        return np.asarray(np.sqrt(self.squares + self.magnitudes / sizes))


@dataclass(frozen=True, eq=False)
class Block:
    """Equations that share unknowns, apart from all others.

    Attributes
    ----------
    equations
        Their numbers in the criterion.
    linear, nonlinear
        The unknowns in them.
    """

    equations: tuple[int, ...]
    linear: tuple[int, ...]
    nonlinear: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Matched:
    """A block matched.

    Attributes
    ----------
    vector
        With its unknowns filled in.
    cost
        Half the criterion, without penalties.
    singular
        Linear unknowns that the criterion does not determine.
    evaluations
        Of the criterion.
    converged
        Whether the nonlinear unknowns are at a minimum.
    """

    vector: Array
    cost: float
    singular: tuple[int, ...]
    evaluations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _Reduced:
    """The penalised criterion at nonlinear unknowns, the linear ones at its minimum.

    `residuals` and `jacobian` have its exact gradient; half the square of `residuals` is `cost`
    unless magnitudes are penalised.
    """

    cost: float
    residuals: Array
    jacobian: Array
    vector: Array
    unpenalised: float
    singular: tuple[int, ...]


def separated(
    criterion: Criterion,
    block: Block,
    start: Array,
    lower: Array,
    upper: Array,
    penalty: Penalty,
    tolerances: Tolerances,
    stop: Callable[[], bool],
) -> Matched:
    """Minimise the reduced criterion (7) of a block, penalised, over its nonlinear unknowns.

    Terms that the penalty on magnitudes keeps are then fitted without it.

    Parameters
    ----------
    start, lower, upper
        Of everything the criterion takes, shape (size,).
    penalty
        On linear unknowns.
    """
    found = _searched(criterion, block, start, lower, upper, penalty, tolerances, stop)
    if not (penalty.lasso and np.isfinite(found.cost)):
        return found
    # Initial values have no penalty, and are not zero but by chance.
    kept = replace(block, linear=tuple(k for k in block.linear if found.vector[k] != 0))
    rest = replace(penalty, lasso=0.0)
    again = _searched(criterion, kept, found.vector, lower, upper, rest, tolerances, stop)
    return replace(again, evaluations=found.evaluations + again.evaluations)


def _searched(
    criterion: Criterion,
    block: Block,
    start: Array,
    lower: Array,
    upper: Array,
    penalty: Penalty,
    tolerances: Tolerances,
    stop: Callable[[], bool],
) -> Matched:
    count = 0
    own = list(block.nonlinear)
    prices: Prices | None = None

    def reduced(nonlinear: Array) -> _Reduced | None:
        nonlocal count, prices
        count += 1
        vector = start.copy()
        vector[own] = nonlinear
        if prices is None:
            prices = prices_at(criterion, block, vector, penalty)
        return _reduced(criterion, block, vector, lower, upper, prices)

    if not own:
        found = reduced(start[own])
        converged = found is not None
    else:
        minimum: Minimum = minimise(reduced, start[own], lower[own], upper[own], tolerances, stop)
        end, converged = minimum.evaluation, minimum.converged
        found = end if isinstance(end, _Reduced) else None
    if found is None:
        return Matched(start, np.inf, (), count, False)
    return Matched(found.vector, found.unpenalised, found.singular, count, converged)


def prices_at(criterion: Criterion, block: Block, vector: Array, penalty: Penalty) -> Prices:
    """The penalty of a block, by the sizes of its columns at a vector, shape (size,)."""
    if not (penalty.ridge or penalty.lasso):
        return Prices(np.zeros(len(block.linear)), np.zeros(len(block.linear)))
    constant, columns = _columns(criterion, block, vector)
    unknowns = criterion.problem.unknowns
    penalised = np.array(
        [k < len(unknowns) and unknowns[k].kind == "parameter" for k in block.linear], dtype=bool
    )
    return Prices.of(penalty, columns, constant, penalised)


def _columns(criterion: Criterion, block: Block, vector: Array) -> tuple[Array, Array]:
    """Residuals without the linear unknowns, and their derivatives by these."""
    vector = vector.copy()
    vector[list(block.linear)] = 0.0
    values, slopes = criterion.residuals(vector, block.linear, block.equations)
    return np.concatenate(values), np.concatenate(slopes)


def _reduced(
    criterion: Criterion,
    block: Block,
    vector: Array,
    lower: Array,
    upper: Array,
    prices: Prices,
) -> _Reduced | None:
    linear, nonlinear = list(block.linear), list(block.nonlinear)
    vector = vector.copy()
    constant, columns = _columns(criterion, block, vector)
    if not (np.isfinite(constant).all() and np.isfinite(columns).all()):
        return None
    answer, basis, singular = solve_linear(columns, constant, lower[linear], upper[linear], prices)
    vector[linear] = answer
    residuals = constant + columns @ answer
    unpenalised = 0.5 * float(residuals @ residuals)
    if not prices.none:
        residuals = np.append(residuals, prices.roots(answer) * answer)
    jacobian = np.zeros((len(residuals), len(nonlinear)))
    if nonlinear:
        own = np.concatenate(criterion.residuals(vector, nonlinear, block.equations)[1])
        if not np.isfinite(own).all():
            return None
        jacobian[: len(own)] = own
        # What the linear unknowns could take up is not the nonlinear ones' to explain.
        jacobian -= basis @ (basis.T @ jacobian)
    lost = tuple(linear[k] for k in singular)
    cost = unpenalised + prices.cost(answer)
    return _Reduced(cost, residuals, jacobian, vector, unpenalised, lost)


def solve_linear(
    columns: Array, constant: Array, lower: Array, upper: Array, prices: Prices
) -> tuple[Array, Array, tuple[int, ...]]:
    """Min |columns y + constant|^2 / 2 with the penalty, within bounds.

    Returns
    -------
    answer
        y, shape (k,).
    basis
        Orthonormal basis of what the columns span whose y is not held by a bound or at zero,
        shape (rows, r); below the columns, the penalty's :meth:`Prices.roots` as a diagonal,
        shape (rows + k, r), if there is one.
    singular
        Numbers of columns that the others can replace, or that are zero.
    """
    norms = np.linalg.norm(columns, axis=0)
    units = np.where(norms > 0, norms, 1.0)
    scaled, right = columns / units, -constant
    if prices.squares.any():
        scaled = np.vstack([scaled, np.diag(np.sqrt(prices.squares) / units)])
        right = np.append(right, np.zeros(len(units)))
    low, high = lower * units, upper * units
    if prices.magnitudes.any():
        y = lasso(scaled, right, low, high, prices.magnitudes / units)
        free = ((y != 0) | (prices.magnitudes == 0)) & (y > low) & (y < high)
        rows = np.vstack([columns / units, np.diag(prices.roots(y / units) / units)])
        return y / units, _span(rows[:, free]), ()
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    known = s > SINGULAR * max(float(s.max(initial=0.0)), 1e-300)
    shares = np.sqrt(np.sum(vt[~known] ** 2, axis=0)) if len(units) else np.zeros(0)
    singular = tuple(int(k) for k in np.flatnonzero((shares > 1e-6) | (norms == 0)))
    y = vt[known].T @ ((u[:, known].T @ right) / s[known])
    if ((y >= low) & (y <= high)).all():
        return y / units, u[:, known], singular
    from scipy.optimize import lsq_linear

    found = lsq_linear(scaled, right, (low, high), method="bvls")
    answer = np.clip(found.x / units, lower, upper)
    return answer, _span(scaled[:, found.active_mask == 0]), singular


def _span(columns: Array) -> Array:
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(u[:, s > SINGULAR * max(float(s.max(initial=0.0)), 1e-300)])
