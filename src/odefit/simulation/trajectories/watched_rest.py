"""Steady states that are approached while conditions are watched, whose events come before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.expressions.expressions import TIME
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.propagation.propagation import Beginning
from odefit.simulation.propagation.walk import StoppedError, Walk
from odefit.simulation.steady.steady_state import LEAST_FACTOR, Rest

WATCHED_SPANS = 16
"""Time spans over which conditions are watched, each tenfold, before there is no steady state."""


def come_to_rest(
    walk: Walk,
    first: float,
    watch: Callable[[Walk, float], None],
    nearby: Callable[[Walk], Rest | None],
    flags: Callable[[Walk], BoolArray],
) -> Beginning:
    """Move a walk to the steady state that it approaches, through the events that happen before.

    `walk`: where the trajectory stands; `first`: length of the first time span; `watch`: moves the
    walk to a time, or to the next event before it; `nearby`: returns the steady state to which the
    walk certainly leads without events, if it is close; `flags`: returns which comparisons hold at
    the walk's values. Returns the values at the steady state, where the walk stands now. Raises
    StoppedError: no steady state is approached.
    """
    start, span = walk.time, first
    for _ in range(WATCHED_SPANS):
        while walk.time < start + span:
            watch(walk, start + span)
        found = nearby(walk)
        if found is not None:
            before, held = walk.now, walk.flags
            walk.now = before._replace(states=found.states, sensitivities=found.sensitivities)
            if np.array_equal(flags(walk), held):
                walk.algebraic = found.algebraic
                return Beginning(walk.now, found.algebraic, found.algebraic_sensitivities)
            walk.now = before
        span *= LEAST_FACTOR
    reason = (
        "no steady state is approached while the conditions of events are watched: the solution "
        "may oscillate or grow without bound"
    )
    raise StoppedError(walk.time, reason, walk.choice)


def refuse_time(field: VectorField, condition: Condition, times: Array) -> None:
    """Refuse steady states beside events with conditions, where the time or an input acts.

    `times`: times at which values are wanted, shape (k,). Raises InputError: a steady state is
    wanted, and time or inputs act on equations, conditions or events.
    """
    conditions = [e.when for e in condition.located if e.when is not None]
    if not conditions or not (condition.steady_start or (len(times) and np.isinf(times[-1]))):
        return
    expressions = [*field.model.ode.values(), *field.model.algebraic.values()]
    for event in condition.located:
        expressions += [e for e in (event.when, *event.assign.values()) if e is not None]
    if any(e.names & {TIME, *field.inputs} for e in expressions):
        raise InputError(
            f'experiment "{condition.name}": steady states cannot be found beside events with '
            "when, where equations or events contain the time or inputs"
        )
