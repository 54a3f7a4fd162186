"""Trajectories of all conditions of a problem, each segment that they share integrated once.

The work is divided into units, which need nothing of each other: conditions that share nothing, and
limbs of shared segments with the trunk that they grow from. Units may be integrated elsewhere. The
choice of an engine goes from unit to unit in their order, so elsewhere it has to be predicted; a
unit counts if it began with the right one, and is integrated again if not. So the trajectories are
the same wherever they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from odefit.problem.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines import TAYLOR_TRIAL, Engines
from odefit.simulation.failure import Failure
from odefit.simulation.shared_map import SharedMap, Trunk
from odefit.simulation.shared_segments import groups_with_equal_starts
from odefit.simulation.trajectory import ConditionMap, Trajectory


class UnitOutcome(NamedTuple):
    """What the integration of a unit has found.

    Attributes
    ----------
    found
        Trajectories by condition, or why there is none.
    trunk, trunk_after
        The choice of an engine that the trunk began with, and the one after it; those of the unit
        itself where there is none.
    before, after
        The choice that the unit began with, and the next one.
    """

    found: Mapping[int, Trajectory] | Failure
    trunk: EngineChoice
    trunk_after: EngineChoice
    before: EngineChoice
    after: EngineChoice


class Standing(NamedTuple):
    """Where an evaluation stands.

    Attributes
    ----------
    unit
        Number of the next unit.
    choice
        The choice of an engine that it begins with; with a trunk, if it is the first limb.
    trunk
        The choice that its trunk began with, if it is a later limb.
    """

    unit: int
    choice: EngineChoice
    trunk: EngineChoice


class Elsewhere(Protocol):
    """Integrates units in other processes."""

    def __call__(
        self, vector: Array, standing: Standing, units: int, sensitivities: bool
    ) -> Mapping[int, UnitOutcome]:
        """Return outcomes of units by number, from the next one to the last of so many."""


class _Unit(NamedTuple):
    """One condition, or a limb of several.

    Attributes
    ----------
    part
        What integrates it.
    condition, limb
        Number of the condition, or of the limb; -1 for the other.
    start
        Number of integrations before it, those of its trunk among them if it is a later limb.
    """

    part: ConditionMap | SharedMap
    condition: int
    limb: int
    start: int


class ConditionsMap:
    """The forward map of all conditions at their data times.

    Parameters
    ----------
    field
        The equations.
    conditions
        The conditions.
    engines
        Engines, shared by all conditions.
    sensitivities
        Whether sensitivities are wanted.

    Attributes
    ----------
    elsewhere
        Integrates units in other processes; None for this one.
    """

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        engines: Engines,
        sensitivities: bool = True,
    ) -> None:
        self.elsewhere: Elsewhere | None = None
        self._sensitivities = sensitivities
        self._arguments = field, conditions, engines, sensitivities
        self._single: dict[int, ConditionMap] = {}
        self._units: list[_Unit] = []
        self._trunks = _Trunks()
        start = 0
        for group in groups_with_equal_starts(field, conditions):
            if len(group) == 1:
                part = self.single(group[0])
                self._units.append(_Unit(part, group[0], -1, start))
                start += part.integrations
                continue
            shared = SharedMap(field, conditions, group, engines, sensitivities)
            for number, limb in enumerate(shared.limbs):
                self._units.append(_Unit(shared, -1, number, start))
                start += limb.integrations + (shared.trunk_integrations if number == 0 else 0)

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self._units)

    def single(self, number: int) -> ConditionMap:
        """Return the forward map of one condition."""
        if number not in self._single:
            field, conditions, engines, sensitivities = self._arguments
            self._single[number] = ConditionMap(field, conditions[number], engines, sensitivities)
        return self._single[number]

    def __call__(
        self, vector: Array, choice: EngineChoice = UNDECIDED
    ) -> list[Trajectory] | Failure:
        """Return the trajectories of all conditions in their order, or why one has none.

        Parameters
        ----------
        vector
            Unknowns of the problem, shape (unknowns,).
        choice
            The choice of an engine, as the integration before has returned it.
        """
        first = self._units[0].part
        if isinstance(first, ConditionMap) and len(self._units) == 1:
            only = first(vector, None, choice)
            return only if isinstance(only, Failure) else [only]
        run = _Run(vector, choice)
        known: Mapping[int, UnitOutcome] = {}
        ask = True
        found: dict[int, Trajectory] = {}
        for number, unit in enumerate(self._units):
            if ask and self.elsewhere is not None and number < self.units - 1:
                standing = run.standing(number)
                known = self.elsewhere(vector, standing, self.units, self._sensitivities)
            ask = False
            outcome = known.get(number)
            if outcome is None:
                outcome = run.integrate(unit)
            elif not run.accepts(unit, outcome):
                # So the predictions for the units behind it are wrong, too.
                outcome, known, ask = run.integrate(unit), {}, True
            if isinstance(outcome.found, Failure):
                return outcome.found
            found.update(outcome.found)
        trajectories = [found[number] for number in range(len(found))]
        # The last one tells what is known now.
        trajectories[-1] = replace(trajectories[-1], choice=run.choice)
        return trajectories

    def integrate(
        self, numbers: Sequence[int], vector: Array, standing: Standing
    ) -> dict[int, UnitOutcome]:
        """Return the outcomes of consecutive units by number, up to the first that fails.

        Parameters
        ----------
        numbers
            Numbers of the units.
        vector
            Unknowns of the problem, shape (unknowns,).
        standing
            Where the evaluation stands, before these units.
        """
        run = self._predicted(numbers[0], vector, standing)
        outcomes = {}
        for number in numbers:
            outcomes[number] = run.integrate(self._units[number])
            if isinstance(outcomes[number].found, Failure):
                break
        return outcomes

    def _predicted(self, number: int, vector: Array, standing: Standing) -> _Run:
        """Return a run that stands before a unit, with the choice that is to be expected there."""
        next_unit, unit = self._units[standing.unit], self._units[number]
        ahead = expected_choice(standing.choice, unit.start - next_unit.start)
        run = _Run(vector, ahead, self._trunks)
        if unit.limb <= 0:
            return run
        assert isinstance(unit.part, SharedMap)
        if unit.part is next_unit.part and next_unit.limb > 0:
            run.enter(unit.part, standing.trunk)
            return run
        first = self._units[number - unit.limb]
        run.enter(unit.part, expected_choice(standing.choice, first.start - next_unit.start))
        trunk = run.trunk(unit.part)
        if isinstance(trunk, Trunk):
            between = unit.start - first.start - unit.part.trunk_integrations
            run.choice = expected_choice(trunk.after, between)
        return run


def expected_choice(choice: EngineChoice, integrations: int) -> EngineChoice:
    """Return the choice of an engine after some integrations that bring no surprise."""
    if not choice.stiff:
        return choice
    return replace(choice, since=(choice.since + integrations) % TAYLOR_TRIAL)


class _Trunks:
    """The last trunk, which further limbs of the same evaluation may be wanted of."""

    def __init__(self) -> None:
        self._key: tuple[SharedMap, bytes, EngineChoice] | None = None
        self._last: Trunk | Failure | None = None

    def __call__(self, part: SharedMap, vector: Array, choice: EngineChoice) -> Trunk | Failure:
        """Return the trunk of `part` for a vector and a choice."""
        key = part, vector.tobytes(), choice
        if self._last is None or self._key != key:
            self._last, self._key = part.begin(vector, choice), key
        return self._last


class _Run:
    """One evaluation: the choice of an engine, and the trunk that the last limb grew from."""

    def __init__(self, vector: Array, choice: EngineChoice, trunks: _Trunks | None = None) -> None:
        self.choice = choice
        self._trunks = _Trunks() if trunks is None else trunks
        self._vector = vector
        self._shared: SharedMap | None = None
        self._trunk_choice = choice
        self._trunk: Trunk | Failure | None = None

    def integrate(self, unit: _Unit) -> UnitOutcome:
        """Integrate the next unit."""
        if isinstance(unit.part, ConditionMap):
            before = self.choice
            trajectory = unit.part(self._vector, None, before)
            self.choice = trajectory.choice
            if isinstance(trajectory, Failure):
                return UnitOutcome(trajectory, before, before, before, self.choice)
            return UnitOutcome({unit.condition: trajectory}, before, before, before, self.choice)
        is_first = unit.part is not self._shared
        if is_first:
            self.enter(unit.part, self.choice)
        trunk, began = self.trunk(unit.part), self._trunk_choice
        if isinstance(trunk, Failure):
            self.choice = trunk.choice
            return UnitOutcome(trunk, began, self.choice, self.choice, self.choice)
        before = trunk.after if is_first else self.choice
        found = unit.part.go_on(unit.limb, trunk, self._vector, before)
        if isinstance(found, Failure):
            self.choice = found.choice
            return UnitOutcome(found, began, trunk.after, before, self.choice)
        trajectories, self.choice = found
        return UnitOutcome(trajectories, began, trunk.after, before, self.choice)

    def accepts(self, unit: _Unit, outcome: UnitOutcome) -> bool:
        """Return whether :meth:`integrate` would return this outcome, and go on from it if so."""
        if isinstance(unit.part, ConditionMap):
            right = outcome.before == self.choice
        elif unit.part is self._shared:
            right = outcome.trunk == self._trunk_choice and outcome.before == self.choice
        else:
            right = outcome.trunk == self.choice and outcome.before == outcome.trunk_after
            if right:
                self.enter(unit.part, self.choice)
        if right:
            self.choice = outcome.after
        return right

    def enter(self, part: SharedMap, choice: EngineChoice) -> None:
        """Begin with the limbs of a part whose trunk begins with a choice."""
        self._shared, self._trunk_choice, self._trunk = part, choice, None

    def trunk(self, part: SharedMap) -> Trunk | Failure:
        """Return the trunk of the part that was entered."""
        if self._trunk is None:
            self._trunk = self._trunks(part, self._vector, self._trunk_choice)
        return self._trunk

    def standing(self, number: int) -> Standing:
        """Return where the evaluation stands, before unit `number`."""
        return Standing(number, self.choice, self._trunk_choice)
