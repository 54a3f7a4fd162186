"""The interface of engines that pass through many events in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from odefit.common.arrays import Array, IntArray
from odefit.simulation.engines.engine import Engine, Values


@dataclass(frozen=True, eq=False)
class Events:
    """Events that change the states x to A x + c, with A constant, by kind of event."""

    # Number of the first event at the beginning of each stretch, and of all events, (k + 1,).
    first: IntArray
    number: IntArray  # Number of the kind of each event, shape (e,)
    moving: IntArray  # 1 for each event whose time depends on the unknowns, else 0, shape (e,)
    moves: Array  # Changes of these times along the directions, shape (e, m)
    matrix: Array  # A, shape (kinds, n, n)
    constant: Array  # c, shape (kinds, n)
    along: Array  # Changes of c along the directions, shape (kinds, n, m)


@dataclass(frozen=True, eq=False)
class Stretches:
    """The times between events, and the rows of a trajectory there."""

    events: Events
    starts: Array  # Start of each stretch, shape (k,)
    after: IntArray  # Row with the values after the events of each stretch, or -1, shape (k,)
    begin: IntArray  # Number of the first output of each stretch, and of all outputs, (k + 1,)
    times: Array  # Output times, the last one of each stretch being its end, shape (o,)
    rows: IntArray  # Row of each output, or -1, shape (o,)
    count: int  # Number of rows, including those that no stretch has
    most_steps: IntArray  # The largest number of steps in each stretch, shape (k,)


@dataclass(frozen=True, eq=False)
class Passed:
    """The end of a passage: states, shape (rows, n), and sensitivities, shape (rows, n, m).

    `last` has the values at the end; None if the engine gave up.
    """

    states: Array
    sensitivities: Array
    last: Values | None
    steps: int


class PassingEngine(Engine, Protocol):
    """An engine that passes through many events in one call."""

    def through(self, stretches: Stretches, initial: Values, *, searching: bool) -> Passed | None:
        """Return the rows of all stretches; None if the engine cannot integrate them this way.

        While starts are `searching` for a basin, less accuracy suffices.
        """


class Passing(NamedTuple):
    """The passage of an engine through many events."""

    engine: PassingEngine
    searching: bool
    missing: str  # the reason why the usual engine cannot take over after the last event, or empty

    def through(self, stretches: Stretches, initial: Values) -> Passed | None:
        """See :meth:`PassingEngine.through`."""
        return self.engine.through(stretches, initial, searching=self.searching)

    @property
    def to_the_end(self) -> bool:
        """True if the passage does not end at the last event.

        The Taylor method computes more digits of states that decay below rounding of the largest.
        """
        return self.searching or bool(self.missing)
