"""Changes of the observables with each unknown, as functions of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.explorer.live_curves import LiveModel
from odefit.simulation import Failure


@dataclass(frozen=True, eq=False)
class SensitivityCurves:
    """Derivatives of the observables of one experiment by the logarithms of the unknowns.

    `curves` has, by observable and key, ``dy / d log p = p dy / dp``, shape (m,), in the unit of
    the observable, if it depends on the unknown. `magnitudes` has by key the root mean square over
    time and observables, each in units of the largest absolute value of its observable.
    """

    times: Array
    curves: Mapping[str, Mapping[str, Array]]
    magnitudes: Mapping[str, float]


def sensitivity_curves(
    model: LiveModel, vector: Array, experiment: str
) -> SensitivityCurves | Failure:
    """Return the sensitivities of all observables of an experiment, or a failure."""
    problem = model.problem
    condition = problem.condition(experiment)
    trajectory = model.forward.trajectory(vector, experiment, model.grid(condition))
    if isinstance(trajectory, Failure):
        return trajectory
    predicted = model.forward.predictions(condition, vector, trajectory)
    curves: dict[str, dict[str, Array]] = {}
    squares = np.zeros(len(problem.unknowns))
    for name, dual in predicted.items():
        size = float(np.nanmax(np.abs(dual.value), initial=0.0)) or 1.0
        curves[name] = {}
        for number, partial in dual.partials.items():
            curve = vector[number] * np.broadcast_to(partial, trajectory.times.shape)
            if np.any(curve):
                curves[name][problem.keys[number]] = np.asarray(curve, dtype=float)
                squares[number] += float(np.nanmean((curve / size) ** 2))
    sizes = np.sqrt(squares / max(len(predicted), 1))
    return SensitivityCurves(
        trajectory.times, curves, dict(zip(problem.keys, map(float, sizes), strict=True))
    )
