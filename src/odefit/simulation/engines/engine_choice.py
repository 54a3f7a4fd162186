"""The choice of an engine as a value, for an integration and for the units of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class EngineChoice:
    """The stiffness of a problem, as far as integrations have shown it.

    Every integration takes a choice and returns one. A search that passes the choice of one
    evaluation to the next first tries the engine used last. Without the choice, both engines are
    compared at each evaluation, and the values are the same.
    """

    stiff: bool = False  # whether the implicit engine has needed less work than the Taylor method
    # Steps that the Taylor method may take for a segment before the implicit engine is tried; None
    # for the work of a usual integration by the implicit engine.
    taylor_steps: int | None = None
    # Integrations by the implicit engine since the Taylor method was last tried; the number begins
    # below zero if the next trial is delayed.
    since: int = 0
    # Number of the last consecutive integrations that were more work for the Taylor method than
    # usual for the implicit engine, while the problem is not known to be stiff.
    costly: int = field(default=0, repr=False)


UNDECIDED = EngineChoice()  # the choice of an engine before anything has been integrated

LAST_SERVED = EngineChoice()
"""The default choice of callers: this object stands for the engine used last."""


def after_taylor(choice: EngineChoice, cheap: bool, patience: int) -> EngineChoice:
    """Return the choice after an integration by the Taylor method, which was cheap or not."""
    if cheap:
        return replace(choice, costly=0) if choice.costly else choice
    if choice.costly + 1 < patience:
        return replace(choice, costly=choice.costly + 1)
    return EngineChoice(stiff=True)


@dataclass(frozen=True)
class UnitChoices(EngineChoice):
    """A choice of an engine for each of the units of an evaluation.

    Conditions may differ in their stiffness: each continues with its previous engine, independently
    of the others, so that all may be integrated at the same time. The other attributes describe the
    majority of the units.
    """

    units: tuple[EngineChoice, ...] = field(default=(), repr=False)


def choices_of(choice: EngineChoice, count: int) -> Sequence[EngineChoice] | None:
    """Return the choices for `count` units; None if units have no separate choices."""
    if isinstance(choice, UnitChoices) and len(choice.units) == count:
        return choice.units
    return None


def plain(choice: EngineChoice) -> EngineChoice:
    """Return a choice without those of the units."""
    return EngineChoice(choice.stiff, choice.taylor_steps, choice.since, choice.costly)


def together(before: EngineChoice, units: Sequence[EngineChoice]) -> EngineChoice:
    """Return the choices of units as one value: `before` itself if nothing has changed."""
    choices = tuple(units)
    if choices_of(before, len(choices)) == choices:
        return before
    most = 2 * sum(choice.stiff for choice in choices) > len(choices)
    typical = next(choice for choice in choices if choice.stiff == most)
    return UnitChoices(typical.stiff, typical.taylor_steps, typical.since, typical.costly, choices)
