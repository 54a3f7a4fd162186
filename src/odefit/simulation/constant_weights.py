"""Residuals whose weights are known beforehand: the common case, straight into arrays.

The general way (:mod:`odefit.simulation.noise`) builds dual numbers for every observable; for a
small model that takes ten times as long as the integration. Here the weights of all measurements
are computed once, and observables that are plain states are copied with their sensitivities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from odefit.problem.arrays import Array
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.observation import observe
from odefit.simulation.trajectory import Trajectory


class ConstantWeights:
    """Residuals and Jacobian of all measurements of a problem.

    Raises nothing; see :meth:`applies` for when it can be used.
    """

    def __init__(self, problem: Problem, field: VectorField) -> None:
        self._problem = problem
        self._field = field
        self._n = len(problem.unknowns)
        position = {name: i for i, name in enumerate(field.states)}
        self._plain: list[list[tuple[slice, npt.NDArray[np.intp], int]]] = []
        self._derived: list[list[tuple[slice, npt.NDArray[np.intp], str]]] = []
        values, sds = [], []
        start = 0
        for condition in problem.conditions:
            plain, derived = [], []
            for name, series in condition.series.items():
                block = slice(start, start + len(series.values))
                start = block.stop
                state = position.get(problem.model.observables[name].name or "")
                if state is not None:
                    plain.append((block, series.rows, state))
                else:
                    derived.append((block, series.rows, name))
                values.append(series.values)
                noise = problem.noise.get(name, Noise())
                if series.sds is not None:
                    sds.append(series.sds)
                elif noise.relative is not None:
                    sds.append(noise.relative * np.abs(series.values))
                else:
                    sd = noise.sd if isinstance(noise.sd, float) else 1.0
                    sds.append(np.full(len(series.values), sd))
            self._plain.append(plain)
            self._derived.append(derived)
        self._values = np.concatenate(values)
        self._weights = 1.0 / np.concatenate(sds)
        self.log_sds = -float(np.sum(np.log(self._weights)))

    @staticmethod
    def applies(problem: Problem) -> bool:
        """No transform, and no standard deviation that depends on unknowns."""
        return all(
            noise.transform is None
            and (series.sds is not None or noise.sd is None or isinstance(noise.sd, float))
            for condition in problem.conditions
            for name, series in condition.series.items()
            for noise in [problem.noise.get(name, Noise())]
        )

    def __call__(
        self, vector: Array, trajectories: Sequence[Trajectory]
    ) -> tuple[Array, Array] | None:
        """Residuals, shape (r,), and Jacobian, shape (r, n); None if they are not finite."""
        residuals = np.empty(len(self._values))
        jacobian = np.zeros((len(self._values), self._n))
        with np.errstate(all="ignore"):
            for condition, trajectory, plain, derived in zip(
                self._problem.conditions, trajectories, self._plain, self._derived, strict=True
            ):
                columns = list(trajectory.unknowns)
                for block, rows, state in plain:
                    residuals[block] = trajectory.states[rows, state]
                    jacobian[block, columns] = trajectory.sensitivities[rows, state]
                if derived:
                    found = observe(self._field, condition, vector, trajectory)
                    for block, rows, name in derived:
                        taken = found[name].take(rows, len(condition.times))
                        residuals[block] = taken.value
                        for k, slope in taken.partials.items():
                            jacobian[block, k] = slope
            residuals -= self._values
            residuals *= self._weights
            jacobian *= self._weights[:, None]
        if np.isfinite(residuals).all() and np.isfinite(jacobian).all():
            return residuals, jacobian
        return None
