"""The choice of an engine as a value, for an integration and for the units of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from odefit.simulation.engines.engine import Solved

FIRST_TRIAL = 4
"""The number :data:`TRIAL` before both engines have integrated a problem."""

TRIAL = 20
"""One of so many integrations is repeated by the other engine."""

LATER_TRIALS = 40
"""The number :data:`TRIAL` if the last trial has changed nothing: stiffness seldom appears or
disappears during a search."""


@dataclass(frozen=True)
class EngineChoice:
    """The stiffness of a problem, as far as integrations have shown it.

    Every integration takes a choice and returns one. A search that passes the choice of one
    evaluation to the next uses the engine that is expected to be faster. Without the choice, the
    explicit engine is tried first at each evaluation.
    """

    stiff: bool = False  # whether the implicit engine is expected to be faster
    # Steps that the Taylor method may take for a segment before the implicit engine is tried; None
    # for the work of a usual integration by the implicit engine.
    taylor_steps: int | None = None
    # Steps that the explicit engine took or would have taken in the last integration, and those of
    # the implicit one for each of them, at the tolerances of statistics; zero if not known.
    explicit: float = field(default=0.0, repr=False)
    ratio: float = field(default=0.0, repr=False)
    # One of so many integrations is repeated by the other engine.
    rare: int = field(default=FIRST_TRIAL, repr=False)


Integrated = tuple[Solved, EngineChoice]
"""The outcome of an integration, and the choice of an engine for the next one."""

UNDECIDED = EngineChoice()  # the choice of an engine before anything has been integrated

LAST_SERVED = EngineChoice()
"""The default choice of callers: this object stands for the engine used last."""


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
    return EngineChoice(**_own(choice))


def _own(choice: EngineChoice) -> dict[str, Any]:
    return {entry.name: getattr(choice, entry.name) for entry in fields(EngineChoice)}


def together(before: EngineChoice, units: Sequence[EngineChoice]) -> EngineChoice:
    """Return the choices of units as one value: `before` itself if nothing has changed."""
    choices = tuple(units)
    if choices_of(before, len(choices)) == choices:
        return before
    most = 2 * sum(choice.stiff for choice in choices) > len(choices)
    typical = next(choice for choice in choices if choice.stiff == most)
    return UnitChoices(**_own(typical), units=choices)
