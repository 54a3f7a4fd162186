"""Refits with one unknown held by SciPy's SLSQP on shooting nodes, for unstable trajectories.

Continuity is a constraint of SLSQP. The nodes lie at the measurements, and between them where
deviations grow much along the trajectory from which a refit begins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize

import odefit
from odefit import ForwardMap
from odefit.assessment.profiles.continuity import Joint, JointProblem, Straightened
from odefit.simulation import Trajectory
from odefit.simulation.engines.engine_choice import UNDECIDED

CONTINUOUS = 1e-6  # largest gap, relative to the values of nodes, of a refit that counts
MAX_ROUNDS = 12  # largest number of times that intervals are halved


class RefitsOnNodes:
    """Refits of a problem."""

    def __init__(self, problem: odefit.Problem) -> None:
        self.problem = problem
        self.forward = ForwardMap(problem)

    def cost(
        self, index: int, value: float, vector: np.ndarray, away: float = 0.0, seed: int = 0
    ) -> float:
        """Return the lowest cost with an unknown held; infinite where no refit is continuous.

        The refit begins on nodes along the trajectory of a vector that a single integration can
        follow, with a random deviation `away` of all coordinates. Moving the unknown to its value
        there opens gaps, because a single integration at that value might not reach the end.
        """
        known = self._on_nodes(vector)
        if known is None:
            return math.inf
        nodes, coordinates, start = known
        size = len(vector)
        random = np.random.default_rng(seed)
        free = np.delete(np.arange(size), index)
        shape = start.nodes[nodes.inner].shape
        z = np.concatenate([start.unknowns[free], start.nodes[nodes.inner].ravel()])
        low = np.concatenate([coordinates.lower[free], np.full(shape[0] * shape[1], -np.inf)])
        high = np.concatenate([coordinates.upper[free], np.full(shape[0] * shape[1], np.inf)])
        z = np.clip(z + away * random.normal(size=len(z)), low, high)
        columns = np.concatenate([free, np.arange(size, start.by_coordinate.shape[1])])
        moved = vector.copy()
        moved[index] = value
        held = start.unknowns.copy()
        held[index] = coordinates.of_vector(moved)[index]
        last: dict[bytes, Joint | str] = {}

        def at(z: np.ndarray) -> Joint | str:
            if z.tobytes() not in last:
                unknowns, values = held.copy(), start.nodes.copy()
                unknowns[free] = z[: size - 1]
                values[nodes.inner] = z[size - 1 :].reshape(shape)
                last.clear()
                last[z.tobytes()] = nodes.evaluate(coordinates, unknowns, values, UNDECIDED)
            return last[z.tobytes()]

        def cost(z: np.ndarray) -> Any:
            found = at(z)
            if isinstance(found, str):
                return 1e6, np.zeros(len(z))
            return found.cost, (found.by_coordinate.T @ found.residuals)[columns]

        def gaps(z: np.ndarray) -> np.ndarray:
            found = at(z)
            return np.full(len(start.gaps), 1e3) if isinstance(found, str) else found.gaps

        def slopes(z: np.ndarray) -> np.ndarray:
            found = at(z)
            if isinstance(found, str):
                return np.zeros((len(start.gaps), len(z)))
            return np.asarray(found.gaps_by_coordinate[:, columns])

        constraint: Any = {"type": "eq", "fun": gaps, "jac": slopes}
        bounds: Any = list(zip(low, high, strict=True))
        options: Any = {"maxiter": 300, "ftol": 1e-9}
        with np.errstate(all="ignore"):
            end = minimize(
                cost, z, jac=True, bounds=bounds, method="SLSQP", constraints=constraint,
                options=options,
            )  # fmt: skip
        found = at(end.x)
        if isinstance(found, str) or np.abs(found.gaps).max(initial=0.0) > CONTINUOUS:
            return math.inf
        return found.cost

    def _on_nodes(self, vector: np.ndarray) -> tuple[JointProblem, Straightened, Joint] | None:
        times = [
            np.concatenate([[c.t0], np.unique(c.times[(c.times > c.t0) & (c.times < c.times[-1])])])
            for c in self.problem.conditions
        ]
        units = np.maximum(np.abs(vector), 1e-300)
        for _ in range(MAX_ROUNDS):
            states = []
            for condition, t in zip(self.problem.conditions, times, strict=True):
                found = self.forward.trajectory(vector, condition.name, t, sensitivities=False)
                if not isinstance(found, Trajectory):
                    return None
                states.append(found.states)
            nodes = JointProblem(self.forward, times, vector)
            coordinates = Straightened.of(self.problem, units)
            values = nodes.of_nodes(np.concatenate(states))
            at = nodes.evaluate(coordinates, coordinates.of_vector(vector), values, UNDECIDED)
            if isinstance(at, str):
                return None
            units = nodes.units(at, coordinates)
            finer = nodes.finer(at)
            if finer is None:
                return nodes, coordinates, at
            times = finer
        return None
