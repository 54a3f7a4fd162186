"""Continuous designs: the shares of effort that maximise a criterion, by convex optimisation.

The support is found as in C. L. Atwood, Sequences converging to D-optimal designs of experiments,
1973. The weights of all points of the support are optimised together, points with the largest
directional derivative enter, and points without weight leave. By the equivalence theorem, the
largest derivative then shows the distance of the design from the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.designs.criteria import SMOOTH_POWERS, regular
from odefit.designs.cutting_planes import by_cutting_planes
from odefit.designs.weights import Aims, Atoms, Weights, judged, mean_value

TOLERANCE = 1e-5
"""Excess of the largest derivative at which a continuous design is optimal."""

ROUNDS = 80
"""Number of rounds in which points may enter the support."""

NEW_POINTS = 6
"""Number of points that enter the support at once."""

MULTIPLICATIONS = 50  # largest number of steps of the multiplicative algorithm

LEAST_WEIGHT = 1e-7
"""Weight below which a point leaves the support."""


def optimal_weights(
    atoms: Atoms,
    aims: Aims,
    effort: float,
    begin: tuple[IntArray, Array] | None = None,
    tolerance: float = TOLERANCE,
) -> Weights:
    """Return the best continuous design of an effort: a number of measurements, or a budget."""
    if len(aims) == 1 and aims[0].by_cutting_planes:
        support, weights = _first(atoms, effort)
        return by_cutting_planes(atoms, aims[0], effort, support, weights)
    support, weights = begin if begin is not None else _first(atoms, effort)
    best: Weights | None = None
    for power in SMOOTH_POWERS if not all(a.smooth for a in aims) else SMOOTH_POWERS[-1:]:
        smooth = [replace(a, power=power) for a in aims]
        best = _solved(atoms, smooth, effort, support, weights, tolerance)
        support, weights = best.support, best.weights
    assert best is not None
    if best.excess > tolerance and of_one_quantity(aims):
        # The best design of one quantity may leave other directions undetermined. The criterion has
        # a kink there, and for one quantity it equals the criterion E.
        other = by_cutting_planes(atoms, aims[0], effort, best.support, best.weights)
        return min(best, other, key=lambda weights: weights.excess)
    return best


def of_one_quantity(aims: Aims) -> bool:
    """Return whether a criterion is that of one quantity, at one vector of unknowns."""
    return len(aims) == 1 and aims[0].selector.shape[1] == 1


def _first(atoms: Atoms, effort: float) -> tuple[IntArray, Array]:
    """Return a design of the most informative candidates that determines all it can."""
    n = atoms.rows.shape[-1]
    total = atoms.information(np.full(atoms.count, effort / atoms.count))
    ridge = regular(total) - total + 1e-6 * np.einsum("sii->si", total)[:, :, None] * np.eye(n)
    matrix = atoms.prior + ridge
    chosen: list[int] = []
    for _ in range(2 * n + 1):
        gradients = np.linalg.inv(matrix)
        # For shares of effort, cheap candidates have more weight.
        gains = atoms.derivatives(gradients) / atoms.costs
        best = int(np.argmax(gains))
        chosen.append(best)
        rows = atoms.rows[:, best]
        step = effort / (2 * n) / atoms.costs[best]
        matrix = matrix + step * np.swapaxes(rows, 1, 2) @ rows
    support = np.unique(chosen)
    return support, np.full(len(support), 1.0 / len(support))


def _solved(
    atoms: Atoms,
    aims: Aims,
    effort: float,
    support: IntArray,
    weights: Array,
    tolerance: float,
) -> Weights:
    best: Weights | None = None
    for _ in range(ROUNDS):
        weights = _weights(atoms.part(support), aims, effort, weights)
        positive = weights > LEAST_WEIGHT
        support, weights = support[positive], weights[positive] / weights[positive].sum()
        design = judged(atoms, aims, effort, support, weights)
        if best is None or design.excess < best.excess or design.value > best.value + 1e-12:
            best = design
        if design.excess < tolerance:
            return design
        new = _violators(atoms, design, tolerance)
        new = new[~np.isin(new, support)]
        if not len(new):
            break
        share = 0.1 / len(new)
        weights = np.concatenate([0.9 * weights, np.full(len(new), share)])
        support = np.concatenate([support, new])
    assert best is not None
    return best


def _violators(atoms: Atoms, design: Weights, tolerance: float) -> IntArray:
    """Return the candidates with the largest derivatives, one for each peak along the time."""
    d = design.derivatives
    same = atoms.series[1:] == atoms.series[:-1]
    left = np.concatenate([[True], ~same | (d[1:] >= d[:-1])])
    right = np.concatenate([~same | (d[:-1] >= d[1:]), [True]])
    hills = np.flatnonzero(left & right & (d > design.mean + 0.5 * tolerance))
    return np.asarray(hills[np.argsort(-d[hills], kind="stable")][:NEW_POINTS])


def _weights(atoms: Atoms, aims: Aims, effort: float, begin: Array) -> Array:
    """Return the best weights of a few candidates."""
    from scipy.optimize import LinearConstraint, minimize

    m = len(begin)
    if m == 1:
        return np.ones(1)

    def objective(weights: Any) -> Any:
        shares = np.maximum(weights, 0.0)
        value, gradients = mean_value(aims, atoms.information(shares * effort / atoms.costs))
        return -value, -atoms.derivatives(gradients) * effort / atoms.costs

    minimum: Any = minimize(
        objective,
        begin,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * m,
        constraints=LinearConstraint(np.ones((1, m)), 1.0, 1.0),
        options={"maxiter": 300, "ftol": 1e-15},
    )
    best = np.clip(minimum.x, 0.0, 1.0)
    if not np.isfinite(best).all() or best.sum() <= 0:
        return begin
    best = best / best.sum()
    best = best if objective(best)[0] <= objective(begin)[0] else begin
    return _multiplied(objective, best)


def _multiplied(objective: Callable[[Array], tuple[float, Array]], weights: Array) -> Array:
    """Return weights improved by the multiplicative algorithm, until it gains no more.

    Weights of neighbouring times lie along a flat valley, in which the quadratic method may end
    early. Here all weights of a peak change together (S. D. Silvey, D. M. Titterington and B.
    Torsney, An algorithm for optimal designs on a finite design space, 1978).
    """
    lowest, slopes = objective(weights)
    for _ in range(MULTIPLICATIONS):
        changed = weights * np.sqrt(np.maximum(-slopes, 0.0))
        if not 0.0 < changed.sum() < np.inf:
            break
        changed = changed / changed.sum()
        value, following = objective(changed)
        if not value < lowest:
            break
        weights, lowest, slopes = changed, value, following
    return weights
