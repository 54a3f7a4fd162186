"""How far a discretised answer is from the integrated trajectories."""

from __future__ import annotations

import math

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.methods.estimate import Agreement
from odefit.methods.solvers.solver import Answer
from odefit.simulation import Evaluation, Failure, ForwardMap


def measure_agreement(forward: ForwardMap, d: Discretisation, answer: Answer) -> Agreement:
    """Return how far the discretised answer is from the integrated trajectories."""
    assert answer.values is not None
    assert answer.unknowns is not None
    predicted = d.predictions(answer.values, answer.unknowns)
    error = 0.0
    at = np.clip(answer.unknowns, d.problem.lower, d.problem.upper)
    for condition, ours in zip(d.problem.conditions, predicted, strict=True):
        path = forward.trajectory(at, condition.name)
        if isinstance(path, Failure):
            error = math.inf
            break
        true = forward.predictions(condition, at, path)
        for name, series in condition.series.items():
            exact = true[name].array(len(condition.times))
            size = float(np.max(np.abs(exact), initial=0.0)) or 1.0
            off = np.nan_to_num(np.abs(ours[name] - exact)[series.rows], nan=math.inf)
            error = max(error, float(np.max(off, initial=0.0)) / size)
    evaluation = forward.evaluate(at)
    true_objective = evaluation.objective if isinstance(evaluation, Evaluation) else math.inf
    return Agreement(
        d.scheme.name,
        d.steps,
        d.squares(answer.values, answer.unknowns),
        true_objective,
        error,
        vector=tuple(at.tolist()),
    )
