"""The iterations of one start, for tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from odefit.common.arrays import Array
from odefit.common.packages import require
from odefit.methods.shooting.gauss_newton import Iteration
from odefit.methods.shooting.shooting_problem import ShootingProblem
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap, Simulation, simulate
from odefit.simulation.nodes import Nodes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class History:
    """The Gauss-Newton iterations of one start.

    Attributes
    ----------
    problem
        The problem that was fitted.
    iterations
        The iterations in order; the last one is the end.
    converged
        Whether the last step was negligible.
    message
        Why the iteration ended, in words.
    vector
        Unknowns at the end, shape (n,).
    objective
        Objective at the end.
    shooting
        The problem on nodes.
    """

    problem: Problem
    iterations: tuple[Iteration, ...]
    converged: bool
    message: str
    vector: Array
    objective: float
    shooting: ShootingProblem

    def table(self) -> pd.DataFrame:
        """Return a table with a row for each iteration.

        Columns: ``objective`` of the discontinuous trajectory, ``gap`` (its largest
        discontinuity, relative to the sizes of the states), ``level`` (natural level function:
        length of the full step), ``damping`` (part of it that was taken), ``undetermined``
        (directions that nothing determined), and the unknowns.
        """
        require("pandas")
        import pandas as pd

        rows = []
        for it in self.iterations:
            values = self.shooting.scaling.natural(it.point.coordinates)
            row = {
                "objective": it.objective,
                "gap": it.gap,
                "level": it.level,
                "damping": it.damping,
                "undetermined": it.undetermined,
            }
            rows.append(row | dict(zip(self.problem.keys, values, strict=True)))
        return pd.DataFrame(rows).rename_axis("iteration")

    def nodes(self, iteration: int = -1) -> Nodes:
        """Return the shooting nodes of an iteration."""
        point = self.iterations[iteration].point
        return self.shooting.nodes_of(point)

    def trajectory(
        self, iteration: int = -1, experiment: str | None = None, points: int = 20
    ) -> Simulation:
        """Return the discontinuous trajectory of an iteration (Figure 1 of the paper).

        Parameters
        ----------
        iteration
            Number of the iteration; -1 for the last.
        experiment
            Name of the experiment; None for the first.
        points
            Number of times in each interval.

        Returns
        -------
        States and observables at increasing times; before each node the values at the end of
        the interval before, and NaN between both.

        Raises
        ------
        RuntimeError
            The trajectory cannot be integrated.
        """
        condition = self.problem.condition(experiment)
        number = self.problem.conditions.index(condition)
        node_times = self.shooting.node_times[number]
        ends = np.append(node_times[1:], condition.times[-1])
        # Just before a node the trajectory is still that of the interval before.
        grids = [
            np.append(np.linspace(a, b, points, endpoint=False), np.nextafter(b, a))
            for a, b in zip(node_times, ends, strict=True)
            if b > a
        ]
        times = np.unique(np.concatenate(grids))
        point = self.iterations[iteration].point
        forward = ForwardMap(self.problem, nodes=self.shooting.nodes_of(point))
        vector = self.shooting.scaling.natural(point.coordinates)
        found = simulate(self.problem, vector, times, condition.name, forward=forward)
        if isinstance(found, Failure):
            raise RuntimeError(f"the trajectory cannot be integrated: {found}")  # noqa: TRY004
        breaks = np.searchsorted(found.times, node_times[1:])
        return Simulation(
            np.insert(found.times, breaks, node_times[1:]),
            {k: np.insert(v, breaks, np.nan) for k, v in found.states.items()},
            {k: np.insert(v, breaks, np.nan) for k, v in found.observables.items()},
        )
