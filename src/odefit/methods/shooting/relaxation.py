"""Start values of the nodes: trajectories that follow the data first and the equations later.

The continuity conditions become costs, min w |F1|^2 + rho |F2|^2, and rho grows from step to step
until they nearly hold. Data assimilation calls these weak constraints, with annealing of the
model's precision (J. Ye, D. Rey, N. Kadakia et al., Systematic variational method for statistical
nonlinear state and parameter estimation, 2015). The parameters are held at first, so that all
states, including unmeasured ones, settle between data and equations.

With nodes that begin at the data, damped Gauss-Newton steps reach the optimum from half of the
starts within a factor of five of Rikitake's parameters. From relaxed nodes they reach it from all
starts, in very few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solveh_banded

from odefit.common.arrays import Array, BoolArray
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem
from odefit.simulation import Failure

WEIGHTS_HELD = (1e-2, 1e-1, 1.0)  # weights of continuity while parameters are held, in turn

WEIGHTS_FREE = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
"""Weights of the continuity conditions afterwards. Residuals as large as those of constant
predictions contribute one for each node; so does a gap as large as the states, with a weight of
1."""

MAX_STEPS = 10  # largest number of Levenberg-Marquardt steps for each weight
MIN_GAIN = 1e-3  # relative decrease of the cost below which the steps with a weight end
MAX_DAMPINGS = 10  # largest number of dampings tried for a step


@dataclass(frozen=True, eq=False)
class _Normal:
    """Normal equations: block tridiagonal in the nodes, bordered by the unknowns."""

    # blocks on the diagonal and below it, shape (nodes, N, N) each
    diagonal: Array
    below: Array
    # blocks of nodes and unknowns, shape (nodes, N, n), and of the unknowns, shape (n, n)
    border: Array
    # gradients with respect to the nodes, shape (nodes, N), and the unknowns, shape (n,)
    gradient: Array
    corner: Array
    corner_gradient: Array


@np.errstate(all="ignore")  # squares overflow far from any sensible answer
def relax(
    shooting: ShootingProblem,
    start: Point,
    sizes: Array,
    held: BoolArray,
    stop: Callable[[], bool],
    free: Sequence[float] = WEIGHTS_FREE,
) -> Point | Failure:
    """Return a point near the data and near a solution of the equations.

    The `held` unknowns, the parameters of the equations, do not change while the weights of
    continuity are small; `free` are the weights after that. Unknowns of the noise are held
    throughout. If `stop`, called before each integration, returns True, the point reached so far is
    returned. Returns a failure if the start itself cannot be integrated.
    """
    at = shooting.linearise(start)
    if isinstance(at, Failure):
        return at
    noise = np.array([u.kind == "noise" for u in shooting.problem.unknowns], dtype=bool)
    weight = shooting.nodes / shooting.total_sum_of_squares(at)
    damping = 1e-2
    for phase, mask in ((WEIGHTS_HELD, held | noise), (free, noise)):
        for rho in phase:
            weak = _WeakConstraints(shooting, sizes, weight, rho)
            for _ in range(MAX_STEPS):
                if stop():
                    return at.point
                new, damping = weak.step(at, damping, ~mask, stop)
                if new is None:
                    break
                cost, at = weak.cost(at), new
                if cost - weak.cost(at) < MIN_GAIN * cost:
                    break
    return at.point


@dataclass(frozen=True, eq=False)
class _WeakConstraints:
    """The cost min w |F1|^2 + rho |F2|^2, with the weights w and rho."""

    shooting: ShootingProblem
    sizes: Array
    weight: float
    rho: float

    def cost(self, at: Linearisation) -> float:
        """Return the cost at a point."""
        gaps = at.gaps / self.shooting.sizes
        return self.weight * float(at.residuals @ at.residuals) + self.rho * float(np.sum(gaps**2))

    def step(
        self, at: Linearisation, damping: float, free: BoolArray, stop: Callable[[], bool]
    ) -> tuple[Linearisation | None, float]:
        """Return the next point (None without one), and its damping (Levenberg, Marquardt)."""
        normal, cost = self._normal(at), self.cost(at)
        for _ in range(MAX_DAMPINGS):
            if stop():
                break
            step = self._solved(at, normal, damping, free)
            if step is not None:
                new = self.shooting.linearise(at.point.moved(step, 1.0), at.choice)
                if not isinstance(new, Failure) and self.cost(new) < cost:
                    return new, max(damping / 5, 1e-12)
            damping *= 5
        return None, 1e-2

    def _normal(self, at: Linearisation) -> _Normal:
        chains, scale, sizes = self.shooting.chains, self.shooting.sizes, self.sizes
        weight, rho = self.weight, self.rho
        count, size, n = chains.nodes, chains.size, chains.unknowns
        rows, by_unknown = at.rows_by_node * scale, at.rows_by_unknown * sizes
        ends, shared = at.by_node * scale / scale[:, None], at.by_unknown * sizes / scale[:, None]
        gaps, where, left = at.gaps / scale, chains.row_nodes, chains.left
        diagonal, border = np.zeros((count, size, size)), np.zeros((count, size, n))
        gradient, below = np.zeros((count, size)), np.zeros((count, size, size))
        np.add.at(diagonal, where, weight * rows[:, :, None] * rows[:, None, :])
        np.add.at(border, where, weight * rows[:, :, None] * by_unknown[:, None, :])
        np.add.at(gradient, where, weight * rows * at.residuals[:, None])
        back = ends.transpose(0, 2, 1)
        diagonal[left] += rho * back @ ends
        diagonal[left + 1] += rho * np.eye(size)
        border[left] += rho * back @ shared
        border[left + 1] -= rho * shared
        gradient[left] += rho * np.einsum("kji,kj->ki", ends, gaps)
        gradient[left + 1] -= rho * gaps
        below[left] = -rho * ends
        corner = weight * by_unknown.T @ by_unknown
        corner += rho * np.einsum("kji,kjl->il", shared, shared)
        corner_gradient = weight * by_unknown.T @ at.residuals
        corner_gradient += rho * np.einsum("kji,kj->i", shared, gaps)
        # The unknowns determine the first nodes.
        for node, slope in zip(
            chains.firsts, at.first_by_unknown * sizes / scale[:, None], strict=True
        ):
            cross = slope.T @ border[node]
            corner += slope.T @ diagonal[node] @ slope + cross + cross.T
            corner_gradient += slope.T @ gradient[node]
            if node not in chains.lasts:
                border[node + 1] += below[node] @ slope
            diagonal[node], border[node], gradient[node], below[node] = np.eye(size), 0, 0, 0
        return _Normal(
            diagonal=diagonal,
            below=below,
            border=border,
            gradient=gradient,
            corner=corner,
            corner_gradient=corner_gradient,
        )

    def _solved(
        self, at: Linearisation, normal: _Normal, damping: float, free: BoolArray
    ) -> Point | None:
        chains, scaling, sizes = self.shooting.chains, self.shooting.scaling, self.sizes
        count, size, n = chains.nodes, chains.size, chains.unknowns
        bands = np.zeros((2 * size, count * size))
        place = size * np.arange(count)
        for i in range(size):
            for j in range(size):
                if i >= j:
                    bands[i - j, place + j] += normal.diagonal[:, i, j]
                bands[size + i - j, place + j] += normal.below[:, i, j]
        bands[0] += damping
        border = normal.border.reshape(count * size, n)
        right = np.concatenate([normal.gradient.reshape(-1, 1), border], axis=1)
        if not (np.isfinite(bands).all() and np.isfinite(right).all()):
            return None
        try:
            answers = solveh_banded(bands, right, lower=True)
        except LinAlgError:
            return None
        matrix = normal.corner - border.T @ answers[:, 1:] + damping * np.eye(n)
        right_side = -(normal.corner_gradient - border.T @ answers[:, 0])
        z = at.point.coordinates
        low, high = (scaling.lower - z) / sizes, (scaling.upper - z) / sizes
        unknowns = _within(matrix, right_side, low, high, free)
        nodes = -(answers[:, 0] + answers[:, 1:] @ unknowns).reshape(count, size)
        step = Point(unknowns * sizes, nodes * self.shooting.sizes)
        finite = np.isfinite(step.coordinates).all() and np.isfinite(step.nodes).all()
        return step if finite else None


def _within(matrix: Array, target: Array, low: Array, high: Array, free: BoolArray) -> Array:
    """Solve for the free unknowns; those that would leave their bounds stop at them."""
    solution = np.zeros(len(target))
    free = free.copy()
    while free.any():
        rest = target - matrix @ np.where(free, 0.0, solution)
        solution[free] = np.linalg.lstsq(matrix[np.ix_(free, free)], rest[free], rcond=None)[0]
        out = free & ((solution < low) | (solution > high))
        if not out.any():
            break
        solution[out] = np.clip(solution[out], low[out], high[out])
        free &= ~out
    return solution
