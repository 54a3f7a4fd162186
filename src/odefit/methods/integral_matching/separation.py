"""Separable least squares: the linear unknowns in closed form, the others by variable projection.

G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate, 1973; the derivative without its second term after
L. Kaufman, A variable projection method for solving separable nonlinear least squares problems,
1975.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.methods.integral_matching.criterion import Criterion
from odefit.methods.integral_matching.lasso import lasso
from odefit.methods.scaling import Flags
from odefit.methods.trust_region import Minimum, Tolerances, minimise
from odefit.problem.algebras import Array

SINGULAR = 1e-10
"""Singular values of the linear problem that count as zero, relative, columns of length one."""


@dataclass(frozen=True)
class Penalty:
    """What linear parameters cost, in the sizes of their columns; initial values are free.

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
        Half the criterion.
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
    cost: float
    residuals: Array
    jacobian: Array
    vector: Array
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
    """Minimise the reduced criterion (7) of a block over its nonlinear unknowns.

    Parameters
    ----------
    start, lower, upper
        Of everything the criterion takes, shape (size,).
    penalty
        On linear unknowns.
    """
    count = 0

    def reduced(nonlinear: Array) -> _Reduced | None:
        nonlocal count
        count += 1
        vector = start.copy()
        vector[list(block.nonlinear)] = nonlinear
        return _reduced(criterion, block, vector, lower, upper, penalty)

    first = start[list(block.nonlinear)]
    if not block.nonlinear:
        found = reduced(first)
        if found is None:
            return Matched(start, np.inf, (), count, False)
        return Matched(found.vector, found.cost, found.singular, count, True)
    own = list(block.nonlinear)
    minimum: Minimum = minimise(reduced, first, lower[own], upper[own], tolerances, stop)
    end = minimum.evaluation
    if not isinstance(end, _Reduced):
        return Matched(start, np.inf, (), count, False)
    return Matched(end.vector, end.cost, end.singular, count, minimum.converged)


def _reduced(
    criterion: Criterion,
    block: Block,
    vector: Array,
    lower: Array,
    upper: Array,
    penalty: Penalty,
) -> _Reduced | None:
    linear, nonlinear = list(block.linear), list(block.nonlinear)
    vector = vector.copy()
    vector[linear] = 0.0
    values, slopes = criterion.residuals(vector, linear, block.equations)
    constant, columns = np.concatenate(values), np.concatenate(slopes)
    if not (np.isfinite(constant).all() and np.isfinite(columns).all()):
        return None
    unknowns = criterion.problem.unknowns
    penalised = np.array(
        [k < len(unknowns) and unknowns[k].kind == "parameter" for k in linear], dtype=bool
    )
    answer, basis, singular = solve_linear(
        columns, constant, lower[linear], upper[linear], penalty, penalised
    )
    vector[linear] = answer
    residuals = constant + columns @ answer
    jacobian = np.zeros((len(residuals), len(nonlinear)))
    if nonlinear:
        own = np.concatenate(criterion.residuals(vector, nonlinear, block.equations)[1])
        if not np.isfinite(own).all():
            return None
        # What the linear unknowns could take up is not the nonlinear ones' to explain.
        jacobian = own - basis @ (basis.T @ own)
    lost = tuple(linear[k] for k in singular)
    return _Reduced(0.5 * float(residuals @ residuals), residuals, jacobian, vector, lost)


def solve_linear(
    columns: Array,
    constant: Array,
    lower: Array,
    upper: Array,
    penalty: Penalty,
    penalised: Flags,
) -> tuple[Array, Array, tuple[int, ...]]:
    """Min |columns y + constant| within bounds, those of `penalised` with the penalty.

    Returns
    -------
    answer
        y, shape (k,).
    basis
        Orthonormal basis of what the columns span whose y is not held by a bound or at zero,
        shape (rows, r).
    singular
        Numbers of columns that the others can replace, or that are zero.
    """
    rows, count = columns.shape
    norms = np.linalg.norm(columns, axis=0)
    units = np.where(norms > 0, norms, 1.0)
    scaled, right = columns / units, -constant
    if penalty.ridge > 0:
        scaled = np.vstack([scaled, np.sqrt(penalty.ridge) * np.diag(penalised.astype(float))])
        right = np.append(right, np.zeros(count))
    low, high = lower * units, upper * units
    if penalty.lasso > 0:
        thresholds = np.where(penalised, penalty.lasso * float(np.linalg.norm(right)), 0.0)
        y = lasso(scaled, right, low, high, thresholds)
        free = ((y != 0) | ~penalised) & (y > low) & (y < high)
        return y / units, _span(scaled[:rows, free]), ()
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    known = s > SINGULAR * max(float(s.max(initial=0.0)), 1e-300)
    shares = np.sqrt(np.sum(vt[~known] ** 2, axis=0)) if count else np.zeros(0)
    singular = tuple(int(k) for k in np.flatnonzero((shares > 1e-6) | (norms == 0)))
    y = vt[known].T @ ((u[:, known].T @ right) / s[known])
    if ((y >= low) & (y <= high)).all():
        basis = u[:, known] if penalty.ridge == 0 else _span(scaled[:rows])
        return y / units, basis, singular
    from scipy.optimize import lsq_linear

    found = lsq_linear(scaled, right, (low, high), method="bvls")
    answer = np.clip(found.x / units, lower, upper)
    return answer, _span(scaled[:rows, found.active_mask == 0]), singular


def _span(columns: Array) -> Array:
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(u[:, s > SINGULAR * max(float(s.max(initial=0.0)), 1e-300)])
