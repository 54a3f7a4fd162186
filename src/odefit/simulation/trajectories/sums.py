"""Sums that known events reset, such as the new cases since the last report.

If neither equations nor events depend on a sum, all states can be integrated without its resets.
Its value since the last reset is the difference of two values on the way. So a report a day does
not divide the trajectory into an integration a day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.failure import Failure
from odefit.simulation.trajectories.located_map import LocatedMap
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

FEWEST = 4
"""Smallest number of resets for which a sum is a difference."""

CANCELLED = 1e-5
"""Smallest sum since a reset, relative to the sum without resets, that is a difference of both."""

NONE, SOME, ALL = range(3)
"""Numbers of the choices of resets that divide the trajectory."""

KEPT = 5
"""Number of resets of which one is kept, if without any the sums are too small a part."""


@dataclass(frozen=True, eq=False)
class Sum:
    """A state that events only set to numbers."""

    state: int  # its number
    times: Array  # times of its resets, increasing, shape (k,)
    values: Array  # values after them, shape (k,)

    def kept(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Return which resets divide the trajectory: none, some or all of them."""
        number = np.arange(1, len(self.times) + 1)
        return number < 0, number % KEPT == 0, number > 0


def sums_of(field: VectorField, condition: Condition) -> list[Sum]:
    """Return the sums of a condition whose resets need not divide its trajectory."""
    if condition.has_triggers or condition.steady_start or condition.repeated is not None:
        return []
    model, located = field.model, condition.located
    expressions = [*model.ode.values(), *model.algebraic.values()]
    expressions += [e for _, assign in condition.events for e in assign.values()]
    expressions += [e for event in located for e in event.assign.values()]
    expressions += [event.time for event in located if isinstance(event.time, Expression)]
    used = frozenset().union(*(e.names for e in expressions))
    used |= {name for event in located for name in event.assign}
    sums = []
    for number, name in enumerate(field.states):
        resets = {time: assign[name] for time, assign in condition.events if name in assign}
        alone = name not in used and not condition.measured_after & resets.keys()
        if alone and len(resets) >= FEWEST and not any(e.names for e in resets.values()):
            values = [float(e.evaluate({}, NUMPY)) for e in resets.values()]
            sums.append(Sum(number, np.array(list(resets)), np.array(values)))
    return sums


class SumsMap:
    """The forward map of a condition with sums, for which `made` makes maps.

    If sums since a reset are too small a part of the sums since the last reset that divides the
    trajectory, more of them divide it.
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        sums: list[Sum],
        made: Callable[[Condition], ConditionMap | LocatedMap],
    ) -> None:
        self._field, self._condition, self._sums, self._made = field, condition, sums, made
        self._maps: dict[int, ConditionMap | LocatedMap] = {}

    def __call__(
        self, vector: Array, times: Array | None = None, choice: EngineChoice = UNDECIDED
    ) -> Trajectory | Failure:
        """Return the trajectory at `times` (the data times), or a failure."""
        at = self._condition.times if times is None else times
        finite = len(at) > 0 and np.isfinite(at[-1])
        for level in (NONE, SOME) if finite else ():
            course = self._differences(vector, at, choice, level)
            if course is not None:
                return course
        return self._map(ALL)(vector, times, choice)

    def _map(self, level: int) -> ConditionMap | LocatedMap:
        if level not in self._maps:
            dividing = {
                self._field.states[one.state]: {*one.times[one.kept()[level]].tolist()}
                for one in self._sums
            }
            self._maps[level] = self._made(_with_resets(self._condition, dividing))
        return self._maps[level]

    def _differences(
        self, vector: Array, at: Array, choice: EngineChoice, level: int
    ) -> Trajectory | Failure | None:
        """Return a trajectory with sums that are differences; None if these lose digits."""
        resets = np.concatenate([one.times for one in self._sums])
        every = np.union1d(at, resets[resets < at[-1]])
        course = self._map(level)(vector, every, choice)
        if isinstance(course, Failure):
            return course
        rows = np.searchsorted(every, at)
        states, sensitivities = course.states[rows], course.sensitivities[rows]
        for one in self._sums:
            last = np.searchsorted(one.times, at) - 1
            later = last >= 0
            later &= ~one.kept()[level][last]
            last = last[later]
            begun = np.searchsorted(every, one.times[last])
            total = states[later, one.state]
            since = total - course.states[begun, one.state]
            if (np.abs(since) < CANCELLED * np.abs(total)).any():
                return None
            states[later, one.state] = one.values[last] + since
            sensitivities[later, one.state] -= course.sensitivities[begun, one.state]
        return replace(
            course,
            times=at,
            states=states,
            algebraic=course.algebraic[rows],
            sensitivities=sensitivities,
            algebraic_sensitivities=course.algebraic_sensitivities[rows],
            switched={name: (v[rows], s[rows]) for name, (v, s) in course.switched.items()},
        )


def _with_resets(condition: Condition, dividing: Mapping[str, AbstractSet[float]]) -> Condition:
    """Return the condition with only those resets of sums that are at `dividing` times, by name."""
    events: list[tuple[float, Mapping[str, Expression]]] = []
    for time, assign in condition.events:
        rest = {n: e for n, e in assign.items() if n not in dividing or time in dividing[n]}
        if rest:
            events.append((time, assign if len(rest) == len(assign) else rest))
    return replace(condition, events=tuple(events))
