"""Residuals whose weights do not depend on unknowns: the common case, straight into arrays.

The general way (:mod:`odefit.simulation.noise`) builds dual numbers for every observable; for a
small model that takes ten times as long as the integration. Here the weights of all measurements
are computed once, and observables that are plain states are copied with their sensitivities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.problem.arrays import Array, IntArray
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.noise import known_sds
from odefit.simulation.observation import observe
from odefit.simulation.trajectory import Trajectory


class KnownWeightResiduals:
    """Residuals and Jacobian of all measurements of a problem whose weights are known.

    Parameters
    ----------
    problem
        A problem of which :meth:`applies` is true.
    field
        The problem's equations.

    Attributes
    ----------
    log_sds
        Sum of the logarithms of all standard deviations.
    """

    def __init__(self, problem: Problem, field: VectorField) -> None:
        self._problem = problem
        self._field = field
        self._n = len(problem.unknowns)
        position = {name: i for i, name in enumerate(field.states)}
        self._states: list[list[tuple[slice, IntArray, int]]] = []
        self._derived: list[list[tuple[slice, IntArray, str]]] = []
        values, sds = [], []
        start = 0
        for condition in problem.conditions:
            states, derived = [], []
            for name, series in condition.series.items():
                block = slice(start, start + len(series.values))
                start = block.stop
                state = position.get(problem.model.observables[name].name or "")
                if state is not None:
                    states.append((block, series.rows, state))
                else:
                    derived.append((block, series.rows, name))
                values.append(series.values)
                sds.append(known_sds(problem.noise.get(name, Noise()), series))
            self._states.append(states)
            self._derived.append(derived)
        self._values = np.concatenate(values)
        self._weights = 1.0 / np.concatenate([sd for sd in sds if sd is not None])
        self.log_sds = -float(np.sum(np.log(self._weights)))

    @staticmethod
    def applies(problem: Problem) -> bool:
        """Return whether no residual is transformed, nor weighted by what depends on unknowns."""
        return all(
            noise.transform is None and known_sds(noise, series) is not None
            for condition in problem.conditions
            for name, series in condition.series.items()
            for noise in [problem.noise.get(name, Noise())]
        )

    def __call__(
        self, vector: Array, trajectories: Sequence[Trajectory]
    ) -> tuple[Array, Array] | None:
        """Return residuals, shape (r,), and Jacobian, shape (r, n); None if they are not finite."""
        residuals = np.empty(len(self._values))
        jacobian = np.zeros((len(self._values), self._n))
        with np.errstate(all="ignore"):
            for condition, trajectory, states, derived in zip(
                self._problem.conditions, trajectories, self._states, self._derived, strict=True
            ):
                columns = list(trajectory.unknowns)
                for block, rows, state in states:
                    residuals[block] = trajectory.states[rows, state]
                    jacobian[block, columns] = trajectory.sensitivities[rows, state]
                if derived:
                    found = observe(self._field, condition, vector, trajectory)
                    for block, rows, name in derived:
                        taken = found[name].take(rows, len(condition.times))
                        residuals[block] = taken.value
                        for k, partial in taken.partials.items():
                            jacobian[block, k] = partial
            residuals -= self._values
            residuals *= self._weights
            jacobian *= self._weights[:, None]
        if np.isfinite(residuals).all() and np.isfinite(jacobian).all():
            return residuals, jacobian
        return None
