"""Trajectories of all conditions of a problem, with shared segments integrated once.

The work is divided into independent units: conditions that share nothing, and limbs of shared
segments with their trunk. Units may be integrated in other processes. Each has its own choice of an
engine, from the previous evaluation. So the trajectories are the same wherever they are computed.

An evaluation without choices takes the one of the first unit, with which all others begin: most
problems are stiff in all conditions or in none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.binding import Computed
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine_choice import (
    UNDECIDED,
    EngineChoice,
    choices_of,
    plain,
    together,
)
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.linear.forms import FEWEST, seem_linear
from odefit.simulation.trajectories.located_map import LocatedMap
from odefit.simulation.trajectories.periodic_state import PeriodicState
from odefit.simulation.trajectories.several_threads import SeveralThreads, lets_threads_run
from odefit.simulation.trajectories.shared_map import SharedMap, Trunk
from odefit.simulation.trajectories.shared_segments import groups_with_equal_starts
from odefit.simulation.trajectories.sums import SumsMap, sums_of
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory
from odefit.simulation.trajectories.unit_outcome import UnitOutcome

if TYPE_CHECKING:
    from odefit.simulation.trajectories.linear_batch import LinearBatch
    from odefit.simulation.trajectories.linear_points import PointsMap


class Elsewhere(Protocol):
    """Integrates units in other processes."""

    def __call__(
        self,
        numbers: Sequence[int],
        vector: Array,
        choices: Sequence[EngineChoice],
        sensitivities: bool,
    ) -> Mapping[int, UnitOutcome]:
        """Return outcomes by number, of all units or of some: see :meth:`ConditionsMap.units`."""


class _Unit(NamedTuple):
    """One condition, or a limb of several."""

    part: ConditionMap | LocatedMap | SumsMap | SharedMap
    number: int  # Number of the condition, or of the limb
    # Numbers of the initial choices of an engine for it and for its trunk.
    choice: int
    trunk_choice: int


class ConditionsMap:
    """The forward map of all conditions at their data times.

    `further` are names to record where events assign them, besides those in observables.
    `elsewhere` integrates units in other processes.
    """

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        engines: Engines,
        sensitivities: bool = True,
        further: frozenset[str] = frozenset(),
    ) -> None:
        self._threads = None
        if lets_threads_run(field, engines):
            self._threads = SeveralThreads(self.integrate, lambda: self._again().integrate)
        self._further = further
        self.elsewhere: Elsewhere | None = None
        self._arguments = field, conditions, engines, sensitivities
        self._single: dict[int, ConditionMap | LocatedMap | SumsMap] = {}
        self._known: dict[Any, Computed] = {}
        self._units: list[_Unit] = []
        self._trunks = _Trunks()
        self._choices = 0
        located = [[k] for k, c in enumerate(conditions) if c.located]
        groups = groups_with_equal_starts(field, conditions)
        together = [[k for k in group if not conditions[k].located] for group in groups]
        for group in [*filter(None, together), *located]:
            first = self._choices
            if len(group) == 1:
                self._units.append(_Unit(self.single(group[0]), group[0], first, first))
                self._choices += 1
                continue
            shared = SharedMap(field, conditions, group, engines, sensitivities, further)
            limbs = range(len(shared.limbs))
            self._units += [_Unit(shared, k, first + 1 + k, first) for k in limbs]
            self._choices += 1 + len(limbs)
        self._batches: list[tuple[LinearBatch, dict[int, int]]] | None = None
        self._points: list[PointsMap] | None = None

    def _again(self) -> ConditionsMap:
        """Return the same map for another thread, which shares no integrator with this one."""
        field, conditions, engines, sensitivities = self._arguments
        field = VectorField.of(field.model, conditions)
        engines = engines.for_another_field(engines.needed)
        return ConditionsMap(field, conditions, engines, sensitivities, self._further)

    @property
    def passes_events(self) -> bool:
        """True if an engine passes through the many events of a condition in one call."""
        parts = (unit.part for unit in self._units)
        return any(isinstance(p, ConditionMap | LocatedMap) and p.passes_events for p in parts)

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self._units)

    def single(self, number: int) -> ConditionMap | LocatedMap | SumsMap:
        """Return the forward map of one condition."""
        if number not in self._single:
            field, conditions, engines, sensitivities = self._arguments
            condition = conditions[number]
            made = LocatedMap if condition.located else ConditionMap
            condition_map = made(field, condition, engines, sensitivities, known=self._known)
            if condition.repeated is not None:
                condition_map.propagation.periodic = PeriodicState(field, condition, engines)
            self._single[number] = condition_map
            sums = sums_of(field, condition)
            if sums and condition_map.propagation.closed_form() is None:
                self._single[number] = SumsMap(
                    field,
                    condition,
                    sums,
                    lambda c: made(field, c, engines, sensitivities, known=self._known),
                )
        return self._single[number]

    def __call__(
        self, vector: Array, choice: EngineChoice = UNDECIDED
    ) -> list[Trajectory] | Failure:
        """Return the trajectories of all conditions in their order, or a failure.

        Of the scalars that events assign, trajectories of conditions with shared segments contain
        those in observables.
        """
        first = self._units[0]
        if not isinstance(first.part, SharedMap) and len(self._units) == 1:
            only = first.part(vector, None, choice)
            return only if isinstance(only, Failure) else [only]
        trunks, known = _Trunks(), dict[int, UnitOutcome]()
        choices = choices_of(choice, self._choices)
        if choices is None:
            alike = [plain(choice)] * self._choices
            batched = range(self.units) if self.elsewhere is None else range(1)
            known |= self._batched(batched, vector, alike)
            if 0 not in known:
                known[0] = _integrate(first, vector, alike, trunks, True)
            choices = [known[0].after] * self._choices
            if isinstance(first.part, SharedMap):  # whose trunk is integrated already
                choices[first.trunk_choice] = alike[first.trunk_choice]
        elif self.elsewhere is None:
            known |= self._batched(range(self.units), vector, choices)
        began, after = time.perf_counter(), list(choices)
        numbers = [number for number in range(self.units) if number not in known]
        threads = self._threads if self.elsewhere is None else None
        if len(numbers) > 1:
            if self.elsewhere is not None:
                known |= self.elsewhere(numbers, vector, choices, self._arguments[-1])
            elif threads is not None and threads.pays:
                known |= threads(numbers, vector, choices)
                threads = None
        by_condition: dict[int, Trajectory] = {}
        for number, unit in enumerate(self._units):
            outcome = known.get(number) or _integrate(unit, vector, choices, trunks)
            after[unit.trunk_choice], after[unit.choice] = outcome.trunk_after, outcome.after
            if isinstance(outcome.trajectories, Failure):
                return replace(outcome.trajectories, choice=together(choice, after))
            by_condition.update(outcome.trajectories)
        if threads is not None:
            threads.count(time.perf_counter() - began)
        trajectories = [by_condition[number] for number in range(len(by_condition))]
        # The last trajectory has the latest choice of an engine.
        trajectories[-1] = replace(trajectories[-1], choice=together(choice, after))
        return trajectories

    def at_points(self, points: Array) -> Sequence[list[Trajectory] | None]:
        """Return the trajectories of all conditions at several vectors, shape (points, n).

        Those of linear equations are computed together, without sensitivities. None replaces those
        that have to be computed one by one.
        """
        if self._points is None:
            self._points = self._made_points()
        if not self._points or cut_off().reached:
            return [None] * len(points)
        return self._points[0](points)

    def _made_points(self) -> list[PointsMap]:
        """Return the map of several points, if there is one."""
        field, conditions, _, sensitivities = self._arguments
        parts = [
            unit.part for unit in self._units if not isinstance(unit.part, SharedMap | SumsMap)
        ]
        if sensitivities or len(parts) < len(conditions) or self.elsewhere is not None:
            return []
        if parts[0].propagation.closed_form() is None:  # as of equations with inputs
            return []
        from odefit.simulation.trajectories.linear_points import points_map

        numbers = [unit.number for unit in self._units]
        return points_map(field, dict(zip(numbers, parts, strict=True)), self._known)

    def integrate(
        self, numbers: Iterable[int], vector: Array, choices: Sequence[EngineChoice]
    ) -> dict[int, UnitOutcome]:
        """Return the outcomes of units by number, up to the first failure."""
        numbers, outcomes = list(numbers), dict[int, UnitOutcome]()
        batched = self._batched(numbers, vector, choices)
        for number in numbers:
            unit = self._units[number]
            outcome = batched.get(number)
            outcomes[number] = outcome or _integrate(unit, vector, choices, self._trunks)
            if isinstance(outcomes[number].trajectories, Failure):
                break
        return outcomes

    def _batched(
        self, numbers: Sequence[int], vector: Array, choices: Sequence[EngineChoice]
    ) -> dict[int, UnitOutcome]:
        """Return the outcomes of those units that are computed together."""
        if self._batches is None:
            self._batches = self._made_batches()
        outcomes = dict[int, UnitOutcome]()
        if not self._batches or cut_off().reached:
            return outcomes
        for batch, places in self._batches:
            units = [number for number in numbers if number in places]
            if not units:
                continue
            their_choices = [choices[self._units[number].choice] for number in units]
            chosen = np.array([places[number] for number in units])
            for number, trajectory in zip(
                units, batch(vector[None], chosen, their_choices), strict=True
            ):
                if trajectory is not None:
                    at = self._units[number].number
                    outcomes[number] = UnitOutcome(
                        {at: trajectory}, trajectory.choice, trajectory.choice
                    )
        return outcomes

    def _made_batches(self) -> list[tuple[LinearBatch, dict[int, int]]]:
        """Return the units of linear equations that are computed together, by their places."""
        alone = {
            k: unit.part
            for k, unit in enumerate(self._units)
            if not isinstance(unit.part, SharedMap | SumsMap)
        }
        field = self._arguments[0]
        if len(alone) < FEWEST or field.inputs or not seem_linear(field):
            return []
        if next(iter(alone.values())).propagation.closed_form() is None:
            return []
        from odefit.simulation.trajectories.linear_batch import batches_of

        return batches_of(alone, self._known)


class _Trunks:
    """The last trunk, whose other limbs may follow."""

    def __init__(self) -> None:
        self._key: tuple[SharedMap, bytes, EngineChoice] | None = None
        self._last: Trunk | Failure | None = None

    def __call__(self, part: SharedMap, vector: Array, choice: EngineChoice) -> Trunk | Failure:
        """Return the trunk of `part` for a vector and a choice."""
        key = part, vector.tobytes(), choice
        if self._last is None or self._key != key:
            self._last, self._key = part.begin(vector, choice), key
        return self._last


def _integrate(
    unit: _Unit,
    vector: Array,
    choices: Sequence[EngineChoice],
    trunks: _Trunks,
    chained: bool = False,
) -> UnitOutcome:
    """Integrate a unit; `chained` if it begins with its trunk's choice instead of its own."""
    choice = choices[unit.choice]
    if not isinstance(unit.part, SharedMap):
        trajectory = unit.part(vector, None, choice)
        after = trajectory.choice
        if isinstance(trajectory, Failure):
            return UnitOutcome(trajectory, after, after)
        return UnitOutcome({unit.number: trajectory}, after, after)
    trunk = trunks(unit.part, vector, choices[unit.trunk_choice])
    follows = chained or not unit.part.limbs[unit.number].segments
    if isinstance(trunk, Failure):
        return UnitOutcome(trunk, trunk.choice if follows else choice, trunk.choice)
    outcome = unit.part.go_on(unit.number, trunk, vector, trunk.after if follows else choice)
    if isinstance(outcome, Failure):
        return UnitOutcome(outcome, outcome.choice, trunk.after)
    return UnitOutcome(*outcome, trunk.after)
