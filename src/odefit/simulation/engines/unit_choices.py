"""The choices of an engine for the units of an evaluation, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from odefit.simulation.engines.engine_choice import EngineChoice


@dataclass(frozen=True)
class UnitChoices(EngineChoice):
    """A choice of an engine for each of the parts that an evaluation consists of.

    Conditions may differ in their stiffness: each goes on with the engine that has served it
    before, and need not know of the others, so that all may be integrated at the same time.
    """

    # The choices. The attributes of :class:`EngineChoice` say what most of them do.
    units: tuple[EngineChoice, ...] = field(default=(), repr=False)


def choices_of(choice: EngineChoice, count: int) -> Sequence[EngineChoice] | None:
    """Return the choices for `count` units; None if there are none of their own."""
    if isinstance(choice, UnitChoices) and len(choice.units) == count:
        return choice.units
    return None


def stiff_everywhere(choice: EngineChoice) -> bool:
    """Return whether the implicit engine is tried first in all units."""
    units = choice.units if isinstance(choice, UnitChoices) else (choice,)
    return all(unit.stiff for unit in units)


def plain(choice: EngineChoice) -> EngineChoice:
    """Return a choice without those of units."""
    return EngineChoice(*_own(choice))


def together(before: EngineChoice, units: Sequence[EngineChoice]) -> EngineChoice:
    """Return the choices of units as one value: `before` itself if nothing has changed."""
    found = tuple(units)
    if choices_of(before, len(found)) == found:
        return before
    most = 2 * sum(choice.stiff for choice in found) > len(found)
    typical = next(choice for choice in found if choice.stiff == most)
    return UnitChoices(*_own(typical), found)


def _own(choice: EngineChoice) -> tuple[bool, int | None, int, int]:
    """Return the attributes of a choice but for those of units, in their order."""
    return choice.stiff, choice.taylor_steps, choice.since, choice.dear
