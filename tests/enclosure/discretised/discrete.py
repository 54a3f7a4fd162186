"""Solutions of discretised problems, from their own equations alone."""

from __future__ import annotations

import numpy as np

from odefit import ForwardMap, Problem
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import Mesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.simulation import Failure

TURNS = 60


class Discrete:
    """Residuals of a discretised problem at points, by Newton's method on all of its rows."""

    def __init__(self, problem: Problem, scheme: str, mesh: Mesh | int, centre: Array) -> None:
        mesh = UniformMesh(mesh) if isinstance(mesh, int) else mesh
        self.d = Discretisation(problem, SCHEMES[scheme], mesh)
        fixed = (self.d.lower == self.d.upper).ravel()
        self._free = np.flatnonzero(~fixed)
        start = self._guess(problem, centre)
        start[fixed] = self.d.lower.ravel()[fixed]
        self._inverse = self._jacobian_inverse(start, centre)
        found = self._solved(start, centre)
        assert found is not None
        self.centre = found

    def _guess(self, problem: Problem, vector: Array) -> Array:
        """The true trajectories at all points."""
        forward, d = ForwardMap(problem), self.d
        found = np.zeros((d.points, len(d.variables)))
        for number, condition in enumerate(problem.conditions):
            own = np.flatnonzero(d.condition_of == number)
            times, back = np.unique(d.times[own], return_inverse=True)
            path = forward.trajectory(vector, condition.name, times)
            assert not isinstance(path, Failure)
            found[own[:, None], np.arange(path.states.shape[1])] = path.states[back]
        return found.ravel()

    def _defects(self, values: Array, vector: Array) -> Array:
        return self.d.defects(values.reshape(self.d.points, -1), vector)

    def _jacobian_inverse(self, values: Array, vector: Array) -> Array:
        """Return the inverse of the Jacobian, by differences."""
        columns, here = [], self._defects(values, vector)
        for k in self._free:
            h = 1e-6 * max(abs(values[k]), 1e-2)
            moved = values.copy()
            moved[k] += h
            columns.append((self._defects(moved, vector) - here) / h)
        return np.linalg.pinv(np.column_stack(columns))

    def _solved(self, values: Array, vector: Array) -> Array | None:
        values = values.copy()
        for _ in range(TURNS):
            step = self._inverse @ self._defects(values, vector)
            values[self._free] -= step
            if not np.isfinite(values).all():
                return None
            if np.abs(step).max() <= 1e-13 * max(np.abs(values).max(), 1.0):
                return values
        return None

    def at(self, vector: Array) -> Array | None:
        """Return all weighted residuals at one point; None if no solution is found."""
        values = self._solved(self.centre, vector)
        if values is None:
            return None
        shaped = values.reshape(self.d.points, -1)
        return np.concatenate([self.d.outputs(b, shaped, vector)[0] for b in self.d.residuals])
