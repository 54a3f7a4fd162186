"""Nodes taken from a single integration: nothing on them may differ from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit import ForwardMap
from odefit.problem.binding import Binding
from odefit.simulation import Trajectory
from odefit.simulation.intervals import IntervalMap, IntervalSolution
from odefit.simulation.nodes import Nodes, node_names
from tests.simulation.numerics import Array


def inner_cuts(forward: ForwardMap) -> list[Array]:
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


def node_values(forward: ForwardMap, vector: Array, number: int, cuts: Array) -> Array:
    """What a node holds at times of a single integration, shape (K, N)."""
    condition = forward.problem.conditions[number]
    names = node_names(forward.field, forward.problem.conditions)
    path = forward.trajectory(vector, condition.name, cuts)
    assert isinstance(path, Trajectory), path
    columns = [path.states[:, i] for i in range(len(forward.field.states))]
    for name in names[len(columns) :]:
        if name in path.switched:
            columns.append(path.switched[name][0])
        else:
            value = Binding([condition.scalars[name]], condition.scalars)(vector)[0]
            columns.append(np.full(len(cuts), value))
    return np.column_stack(columns)


def nodes_on(forward: ForwardMap, vector: Array, cuts: Sequence[Array]) -> Nodes:
    """Nodes that lie on the trajectories of a single integration."""
    values = [node_values(forward, vector, i, c) for i, c in enumerate(cuts)]
    return Nodes(tuple(cuts), tuple(values))


def interval_map(forward: ForwardMap, vector: Array, number: int, cuts: Array) -> IntervalMap:
    values = node_values(forward, vector, number, cuts)
    sizes = np.abs(values).max(axis=0)
    sizes[sizes == 0] = 1.0
    problem = forward.problem
    names = node_names(forward.field, problem.conditions)
    n, condition = len(problem.unknowns), problem.conditions[number]
    return IntervalMap(forward.field, condition, forward.engines, cuts, sizes, n, names)


def swept(forward: ForwardMap, vector: Array, number: int, cuts: Array) -> IntervalSolution:
    """The intervals between nodes that lie on a single integration."""
    nodes = node_values(forward, vector, number, cuts)
    found = interval_map(forward, vector, number, cuts)(vector, nodes[1:])
    assert isinstance(found, IntervalSolution), found
    return found


def chained(sweep: IntervalSolution, interval: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Array:
    """Sensitivities by the unknowns alone, by the chain rule over all intervals (12)."""
    n = sweep.first_slope.shape[1]
    slopes = [sweep.first_slope]
    for by_node, by_unknown in zip(sweep.by_node, sweep.by_unknown, strict=True):
        slopes.append(by_node @ slopes[-1] + by_unknown)
    s = sweep.trajectory.sensitivities
    chain = [own[:, n:] @ slopes[i] for own, i in zip(s, interval, strict=True)]
    return np.asarray(s[:, :, :n] + np.array(chain).reshape(s[:, :, :n].shape))
