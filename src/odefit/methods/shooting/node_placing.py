"""The times of the shooting nodes, and the typical sizes of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.option_checks import whole
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import data_size
from odefit.problem.variants.sizes import typical_sizes
from odefit.problem.variants.state_guesses import states_from_data

GivenNodes = int | Sequence[float] | Mapping[str, Sequence[float]] | None
"""The types in which nodes can be given, see :class:`odefit.MultipleShooting`."""

REDUNDANCY = 2.0
"""Ratio of the measured values in an interval to the values of a node, for chosen nodes.

With fewer values an interval carries no information on unmeasured states; with more it is longer,
and its trajectory depends less linearly on its start.
"""

MIN_INTERVALS = 10  # kept in spite of that ratio, if there are enough data times


def check(nodes: GivenNodes) -> None:
    """Refuse nodes that are neither a number nor increasing times."""
    if nodes is None:
        return
    if isinstance(nodes, Integral):
        whole(nodes, "MultipleShooting, nodes")
        return
    groups = nodes.values() if isinstance(nodes, Mapping) else [nodes]
    for times in groups:
        array = _array(times)
        if array is None or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
            raise InputError(
                "MultipleShooting, nodes: expected their number, or their times, increasing (by "
                f"name of the experiment, if there are several), got {nodes!r}"
            )


def _array(times: object) -> Array | None:
    try:
        array = np.asarray(times, dtype=float)
    except (TypeError, ValueError):
        return None
    return array if array.ndim == 1 else None


def place_nodes(problem: Problem, condition: Condition, nodes: GivenNodes, size: int) -> Array:
    """Return the times of the nodes of a condition, the first at t0; a node has `size` values.

    Raises InputError if nodes lie outside the data, or belong to no experiment.
    """
    last = float(condition.times[-1])
    if nodes is not None and not isinstance(nodes, int):
        return _from_user(problem, condition, nodes)
    times = condition.times[(condition.times > condition.t0) & (condition.times < last)]
    if nodes is None:
        measured = condition.size / max(len(condition.times), 1)
        stride = int(np.ceil(REDUNDANCY * size / measured))
        stride = max(1, min(stride, len(times) // MIN_INTERVALS))
        inner = times[stride - 1 :: stride]
    else:
        # About the same number of measurements lies between them.
        count = min(nodes - 1, len(times))
        places = np.linspace(-1, len(times), count + 2)[1:-1]
        inner = times[np.unique(np.round(places).astype(int))] if count else times[:0]
    return np.concatenate([[condition.t0], inner])


def _from_user(
    problem: Problem, condition: Condition, nodes: Sequence[float] | Mapping[str, Sequence[float]]
) -> Array:
    if isinstance(nodes, Mapping):
        names = [c.name for c in problem.conditions]
        unknown = [name for name in nodes if name not in names]
        if unknown:
            raise InputError(
                f'MultipleShooting, nodes: there is no experiment "{unknown[0]}"; '
                f"there are {', '.join(names)}"
            )
        if condition.name not in nodes:
            return np.array([condition.t0])
        times = np.asarray(nodes[condition.name], dtype=float)
    elif len(problem.conditions) > 1:
        raise InputError(
            "MultipleShooting, nodes: give times by name of the experiment; there are several"
        )
    else:
        times = np.asarray(nodes, dtype=float)
    last = float(condition.times[-1])
    outside = times[(times < condition.t0) | (times >= last)]
    if len(outside):
        raise InputError(
            f"MultipleShooting, nodes: t = {outside[0]:g} is outside the data of "
            f'"{condition.name}"; nodes lie from t0 = {condition.t0:g} to before the last '
            f"measurement at t = {last:g}"
        )
    return np.unique(np.concatenate([[condition.t0], times]))


def node_sizes(problem: Problem, names: Sequence[str], unknowns: Array) -> Array:
    """Return typical sizes of the values of a node from the data, shape (N,)."""
    rough = np.zeros(len(names))
    for condition in problem.conditions:
        values = states_from_data(problem, condition, names, unknowns, condition.times)
        rough = np.maximum(rough, np.abs(values).max(axis=0))
    states = typical_sizes(problem).states
    largest = max(data_size(condition) for condition in problem.conditions)
    return np.where(rough > 0, rough, [states.get(name, largest) for name in names])
