"""The outputs of a condition along a trajectory, and the scatter of their measurements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.expressions.algebras import Dual
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.residuals.noise import standard_deviations
from odefit.simulation.trajectories.trajectory import Trajectory


def evaluated(forward: ForwardMap, vector: Array) -> Evaluation:
    """Return the evaluation at the estimate; a failure raises an InputError."""
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure):
        raise InputError(f"bands need a model that can be integrated: {evaluation}")
    return evaluation


def outputs_of(
    forward: ForwardMap,
    condition: Condition,
    vector: Array,
    trajectory: Trajectory,
    names: Collection[str] | None = None,
) -> dict[str, tuple[Dual, bool]]:
    """Return observables, then states with other names, each with a flag for observables.

    With `names`, only these are returned.
    """
    predicted = forward.predictions(condition, vector, trajectory)
    names_used = {*predicted, *forward.field.states} if names is None else names
    outputs = {name: (output, True) for name, output in predicted.items() if name in names_used}
    for i, name in enumerate(forward.field.states):
        if name in names_used and name not in predicted:
            partials = {}
            if trajectory.sensitivities.size:
                partials = {
                    u: trajectory.sensitivities[:, i, k] for k, u in enumerate(trajectory.unknowns)
                }
            outputs[name] = Dual(trajectory.states[:, i], partials), False
    return outputs


def noise_sds(
    forward: ForwardMap,
    condition: Condition,
    name: str,
    vector: Array,
    predicted: Mapping[str, Dual],
    times: Array,
) -> Array | None:
    """Return the standard deviations of measurements at any times, shape (k,); None if unknown.

    They are on the scale of their noise. If the data have a column of them, values between the
    measurements are interpolated. `predicted` holds the observables at `times` by name, and all
    other time-dependent quantities in the noise.
    """
    problem = forward.problem
    series = condition.series.get(name)
    if series is not None and series.sds is not None and series.sds_given:
        at = condition.times[series.rows]
        known, first = np.unique(at, return_index=True)
        return np.asarray(np.interp(times, known, series.sds[first]))
    noise = problem.noise.get(name, Noise())
    unknown = [i for i, u in enumerate(problem.unknowns) if u.key == noise.unknown(name)]
    measured = (c.series[name] for c in problem.conditions if name in c.series)
    if not noise.known and any(one.sds is not None for one in measured):
        return None  # the data give the scatter of the existing measurements alone
    if noise.spread == "estimate" and not unknown:
        return None
    values = np.abs(predicted[name].array(len(times)))
    every = np.arange(len(times))
    return standard_deviations(
        noise,
        Series(every, np.where(values > 0, values, 1.0), None),
        predicted,
        name,
        replace(condition, times=times),
        vector,
        unknown[0] if unknown and noise.spread == "estimate" else None,
    )
