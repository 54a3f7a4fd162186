"""One experiment simulated, and the residuals of all experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.experiment import frame
from odefit.problem.problem import Problem
from odefit.simulation.engines.failure import Failure, SimulationError
from odefit.simulation.forward import ForwardMap
from odefit.simulation.nodes import Nodes
from odefit.simulation.other_integrations import able_to_integrate
from odefit.simulation.residuals.observation import algebraic_variables
from odefit.simulation.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Simulation:
    """States and observables of one experiment.

    Attributes
    ----------
    times
        Times, shape (k,).
    states, observables
        Values by name, shape (k,) each; `states` also holds the algebraic variables.
    """

    times: Array
    states: dict[str, Array]
    observables: dict[str, Array]

    @property
    def table(self) -> pd.DataFrame:
        """The same as a table with the columns ``t``, the states, the observables."""
        return frame(self.times, {**self.states, **self.observables})


def simulate(
    problem: Problem,
    vector: Array | Mapping[str, float],
    times: npt.ArrayLike | None = None,
    experiment: str | None = None,
    *,
    forward: ForwardMap | None = None,
) -> Simulation:
    """Return states and observables of one experiment at `times`.

    Parameters
    ----------
    problem
        The problem.
    vector
        Unknowns, by name or as an array of shape (n,) in the order of ``problem.keys``.
    times
        Times, increasing, not before t0; None for the data times.
    experiment
        Name of the experiment; None for the first.
    forward
        The problem's forward map, if there is one already: it has compiled the model.

    Raises
    ------
    InputError
        Unknown experiment, or times that are not increasing or before t0.
    SimulationError
        The integration fails; the message says when and why.
    """
    values = problem.vector(vector) if isinstance(vector, Mapping) else vector
    points = None if times is None else np.atleast_1d(np.asarray(times, dtype=float))
    found = simulated(problem, values, points, experiment, forward=forward)
    if isinstance(found, Failure):
        raise SimulationError(found)
    return found


def simulated(
    problem: Problem,
    vector: Array,
    times: Array | None = None,
    experiment: str | None = None,
    *,
    forward: ForwardMap | None = None,
) -> Simulation | Failure:
    """Return what :func:`simulate` does; a failure as a value."""
    forward = forward or ForwardMap(problem)
    trajectory = forward.trajectory(vector, experiment, times, sensitivities=False)
    if isinstance(trajectory, Failure):
        return trajectory
    condition = problem.condition(experiment)
    predicted = forward.predictions(condition, vector, trajectory)
    states = {n: trajectory.states[:, i] for i, n in enumerate(forward.field.states)}
    with np.errstate(all="ignore"):
        states |= algebraic_variables(forward.field, condition, vector, trajectory)
    observables = {n: np.asarray(d.value, dtype=float) for n, d in predicted.items()}
    return Simulation(trajectory.times, states, observables)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured and predicted values of one observable in one experiment, shape (n,) each."""

    experiment: str
    observable: str
    times: Array
    measured: Array
    predicted: Array
    standardized: Array
    sds: Array


def residual_table(
    problem: Problem, vector: Array, nodes: Nodes | None = None
) -> list[Residuals] | Failure:
    """Return the residuals of all observables in all experiments.

    They are on the scale of the noise model of their observable.
    """
    forward = able_to_integrate(problem, vector, nodes)
    found = _residuals(forward, vector, sensitivities=True)  # as an evaluation integrates them
    if isinstance(found, Failure):  # values may be finite where their derivatives are not
        values = _residuals(forward, vector, sensitivities=False)
        return found if isinstance(values, Failure) else values
    return found


def _residuals(
    forward: ForwardMap, vector: Array, *, sensitivities: bool
) -> list[Residuals] | Failure:
    trajectories = forward.trajectories(vector, sensitivities=sensitivities)
    if isinstance(trajectories, Failure):
        return trajectories
    if not sensitivities:  # small problems get them all the same
        trajectories = [_without_sensitivities(course) for course in trajectories]
    found = []
    residuals = forward.series_residuals(vector, trajectories)
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(residuals)
            if isinstance(block, Failure):
                return block
            found.append(
                Residuals(
                    condition.name,
                    name,
                    condition.times[series.rows],
                    series.values,
                    block.predicted,
                    block.residuals,
                    block.sds,
                )
            )
    return found


def _without_sensitivities(course: Trajectory) -> Trajectory:
    return replace(
        course,
        unknowns=(),
        sensitivities=course.sensitivities[..., :0],
        algebraic_sensitivities=course.algebraic_sensitivities[..., :0],
        switched={name: (values, by[..., :0]) for name, (values, by) in course.switched.items()},
    )
