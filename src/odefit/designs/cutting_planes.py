"""The criterion E by cutting planes, as it has kinks at its optima.

The least information in any direction, min z'Mz / |K'z|^2 over z, is linear in M for each z. A
linear program gives the best weights for the directions so far, and directions in which it is too
optimistic are added (J. E. Kelley, The cutting-plane method for solving convex programs, 1960). Its
optimum bounds all designs, and its dual weights give the matrix of the equivalence theorem.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.designs.criteria import Aim, regular, symmetric
from odefit.designs.weights import Atoms, Kink, Weights, judged

CUTS = 80
"""The largest number of linear programs."""

CLOSE = 1e-5
"""Relative gap between a design and the bound at which the design is optimal."""

LEAST_WEIGHT = 1e-7
"""Weight below which a point does not belong to the design."""

EXTREME = 3
"""Number of directions of least information added at once."""


def by_cutting_planes(
    atoms: Atoms, aim: Aim, effort: float, support: IntArray, weights: Array
) -> Weights:
    """Return the best continuous design for the criterion E."""
    solver = _CuttingPlanes(atoms, aim, effort)
    design = np.zeros(atoms.count)
    design[support] = weights
    best, best_value = design, -np.inf
    kink: Kink | None = None
    for _ in range(CUTS):
        information = atoms.information(design * effort / atoms.costs)[0]
        value = float(aim.values(information[None])[0])
        if value > best_value:
            best, best_value = design, value
        solver.add(information)
        outcome = solver.solved()
        if outcome is None:
            break
        proposed, bound, gradient, level = outcome
        gap = float(np.expm1(min(bound - best_value, 50.0)))
        kink = Kink(gradient, level, bound)
        if gap < CLOSE:
            break
        # Half a step keeps the cuts near the optimum.
        design = proposed + best
        design = design / design.sum()
    positive = np.flatnonzero(best > LEAST_WEIGHT)
    return judged(atoms, [aim], effort, positive, best[positive] / best[positive].sum(), kink)


class _CuttingPlanes:
    """The linear program of the directions so far.

    Its variables are the shares of effort, and the least information.
    """

    def __init__(self, atoms: Atoms, aim: Aim, effort: float) -> None:
        self._atoms = atoms
        self._aim = aim
        self._effort = effort
        self._unit = 1.0
        self._least: list[Array] = []

    def add(self, information: Array) -> None:
        """Add the directions with the least information."""
        inverse = np.linalg.inv(regular(information[None])[0])
        carried = inverse @ self._aim.selector
        eigenvalues, vectors = np.linalg.eigh(symmetric(self._aim.selector.T @ carried))
        self._unit = 1.0 / float(eigenvalues[-1])
        for u in vectors.T[::-1][:EXTREME]:
            z = carried @ u
            self._least.append(z / np.linalg.norm(self._aim.selector.T @ z))

    def _of(self, directions: list[Array]) -> tuple[Array, Array]:
        """Return the information of each candidate's whole effort, and the existing one."""
        z = np.array(directions)
        rows, prior = self._atoms.rows[0], self._atoms.prior[0]
        shares = np.sum((rows @ z.T) ** 2, axis=1).T * self._effort / self._atoms.costs
        return shares / self._unit, np.einsum("ki,ij,kj->k", z, prior, z) / self._unit

    def solved(self) -> tuple[Array, float, Array, float] | None:
        """Return weights, the bound of the criterion, its gradient and the gradient's level."""
        from scipy.optimize import linprog

        m = self._atoms.count
        shares, constants = self._of(self._least)
        solution = linprog(
            np.append(np.zeros(m), -1.0),
            A_ub=np.column_stack([-shares, np.ones(len(shares))]),
            b_ub=constants,
            A_eq=np.append(np.ones(m), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0.0, None)] * m + [(None, None)],
        )
        if solution.x is None or solution.fun is None or not solution.fun < 0:
            return None
        duals = np.maximum(-solution.ineqlin.marginals, 0.0)
        duals = duals / duals.sum()
        z = np.array(self._least)
        least = -float(solution.fun) * self._unit
        gradient = (z.T * duals) @ z / least
        level = 1.0 - float(np.sum(gradient * self._atoms.prior[0]))
        return np.maximum(solution.x[:m], 0.0), float(np.log(least)), gradient, level
