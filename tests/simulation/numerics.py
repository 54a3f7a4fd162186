"""Finite differences of the forward map, and a short way to small problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from odefit import ForwardMap, Problem
from odefit.simulation import Evaluation, Simulation, Trajectory, simulate
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice

Array = npt.NDArray[np.float64]


def evaluated(forward: ForwardMap, vector: Array, choice: EngineChoice = UNDECIDED) -> Evaluation:
    found = forward.evaluate(vector, choice)
    assert isinstance(found, Evaluation), found
    return found


def integrated(forward: ForwardMap, vector: Array, times: Array | None = None) -> Trajectory:
    found = forward.trajectory(vector, times=times)
    assert isinstance(found, Trajectory), found
    return found


def simulated(problem: Problem, vector: Array, times: Array | None = None) -> Simulation:
    found = simulate(problem, vector, times)
    assert isinstance(found, Simulation), found
    return found


def differences(function: Callable[[Array], Array | float], at: Array, step: float = 1e-4) -> Array:
    """Central differences of fourth order, steps relative to `at`: shape (..., unknowns)."""
    columns = []
    for k in range(len(at)):
        h = np.zeros(len(at))
        h[k] = step * (abs(at[k]) or 1.0)
        near = np.asarray(function(at + h)) - np.asarray(function(at - h))
        far = np.asarray(function(at + 2 * h)) - np.asarray(function(at - 2 * h))
        columns.append((8 * near - far) / (12 * h[k]))
    return np.stack(columns, axis=-1)


def by_unknown(trajectory: Trajectory, unknowns: int) -> Array:
    """Sensitivities of the states with respect to all unknowns, shape (times, states, unknowns)."""
    full = np.zeros((*trajectory.states.shape, unknowns))
    full[:, :, list(trajectory.unknowns)] = trajectory.sensitivities
    return full


def measured(columns: Mapping[str, Any]) -> dict[str, Array]:
    """Columns of data; None is not measured."""
    return {name: np.array(values, dtype=float) for name, values in columns.items()}
