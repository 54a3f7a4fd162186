"""Nodes taken from a single integration: nothing on them may differ from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit import ForwardMap
from odefit.problem.binding import Binding
from odefit.simulation import Trajectory
from odefit.simulation.nodes import Nodes, node_names
from odefit.simulation.trajectories.intervals import IntervalMap, IntervalSolution
from tests.simulation.numerics import Array


def inner_node_times(forward: ForwardMap) -> list[Array]:
    """Nodes at t0, at all data but the last, at all events, and between all of these."""
    found = []
    for condition in forward.problem.conditions:
        last = condition.times[-1]
        marks = np.unique(
            [condition.t0, *condition.times, *(t for t, _ in condition.events if t < last)]
        )
        between = marks[:-1] + 0.37 * np.diff(marks)
        inner = np.concatenate([marks[:-1], between])
        found.append(np.unique(np.append(inner, condition.t0)))
    return found


def node_values(forward: ForwardMap, vector: Array, number: int, node_times: Array) -> Array:
    """What a node holds at times of a single integration, shape (K, N)."""
    condition = forward.problem.conditions[number]
    names = node_names(forward.field, forward.problem.conditions)
    path = forward.trajectory(vector, condition.name, node_times)
    assert isinstance(path, Trajectory), path
    columns = [path.states[:, i] for i in range(len(forward.field.states))]
    for name in names[len(columns) :]:
        if name in path.switched:
            columns.append(path.switched[name][0])
        else:
            value = Binding([condition.scalars[name]], condition.scalars)(vector)[0]
            columns.append(np.full(len(node_times), value))
    return np.column_stack(columns)


def nodes_on(forward: ForwardMap, vector: Array, node_times: Sequence[Array]) -> Nodes:
    """Nodes that lie on the trajectories of a single integration."""
    values = [node_values(forward, vector, i, c) for i, c in enumerate(node_times)]
    return Nodes(tuple(node_times), tuple(values))


def interval_map(forward: ForwardMap, vector: Array, number: int, node_times: Array) -> IntervalMap:
    values = node_values(forward, vector, number, node_times)
    sizes = np.abs(values).max(axis=0)
    sizes[sizes == 0] = 1.0
    problem = forward.problem
    names = node_names(forward.field, problem.conditions)
    n, condition = len(problem.unknowns), problem.conditions[number]
    return IntervalMap(forward.field, condition, forward.engines, node_times, sizes, n, names)


def integrated_intervals(
    forward: ForwardMap, vector: Array, number: int, node_times: Array
) -> IntervalSolution:
    """The intervals between nodes that lie on a single integration."""
    nodes = node_values(forward, vector, number, node_times)
    found = interval_map(forward, vector, number, node_times)(vector, nodes[1:])
    assert isinstance(found, IntervalSolution), found
    return found


def chained(
    solution: IntervalSolution, interval: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> Array:
    """Sensitivities by the unknowns alone, by the chain rule over all intervals (12)."""
    n = solution.first_node_by_unknown.shape[1]
    derivatives = [solution.first_node_by_unknown]
    for by_node, by_unknown in zip(solution.by_node, solution.by_unknown, strict=True):
        derivatives.append(by_node @ derivatives[-1] + by_unknown)
    s = solution.trajectory.sensitivities
    chain = [own[:, n:] @ derivatives[i] for own, i in zip(s, interval, strict=True)]
    return np.asarray(s[:, :, :n] + np.array(chain).reshape(s[:, :, :n].shape))
