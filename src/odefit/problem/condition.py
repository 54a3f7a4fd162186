"""The conditions of an experiment, with sorted data and every name resolved."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.experiment import Input

AT_T0 = (
    "nothing is measured after t0, so the equations have no effect; give values of later "
    "times, or an earlier t0"
)
"""The reason for not fitting a problem whose values are all measured at t0."""


@dataclass(frozen=True, eq=False)
class Series:
    """Measurements of one observable."""

    rows: IntArray  # indices into the condition's times, shape (n,)
    values: Array  # measured values, shape (n,); or limits of censored ones
    # their standard deviations, if the data give them, shape (n,), else None; NaN where the noise
    # model gives it
    sds: Array | None
    # censoring, shape (n,): 1 where the true value is below the limit, -1 where it is above, 0
    # where it was measured; None without censored values
    censored: IntArray | None = None

    @property
    def sds_given(self) -> bool:
        """True if the data give the standard deviation of every value."""
        return self.sds is not None and not np.isnan(self.sds).any()

    def by_source_of_sds(self) -> list[Series]:
        """Return the values with standard deviations of their own, and those without."""
        if self.sds is None or self.sds_given:
            return [self]
        has_sd = ~np.isnan(self.sds)
        return [self.part(has_sd), replace(self.part(~has_sd), sds=None)]

    def part(self, places: IntArray | BoolArray) -> Series:
        """Return the measurements at the places `places`, which index these arrays."""
        sds = None if self.sds is None else self.sds[places]
        censored = None if self.censored is None else self.censored[places]
        return Series(self.rows[places], self.values[places], sds, censored)


@dataclass(frozen=True, eq=False)
class LocatedEvent:
    """An event whose time depends on the unknowns."""

    time: int | float | Expression | None  # None if it happens whenever `when` becomes true
    when: Expression | None
    assign: Mapping[str, Expression]  # the new values of states, constants and parameters
    measured_after: bool  # True if measurements at its time use the values after it
    # True if `when` counts as true before t0 where it is true at t0, so that it has to become false
    # first. Otherwise the event happens at t0.
    initially: bool = True
    delay: Expression | None = None  # the delay after `when` became true
    priority: Expression | None = None  # at equal times the highest priority is first
    persistent: bool = True  # True if it happens even if `when` is false again by then
    early: bool = False  # True if new values are computed when `when` becomes true

    @property
    def conditional(self) -> frozenset[str]:
        """The names that affect whether and when it happens."""
        parts = (self.when, *self.waiting)
        return frozenset().union(*(e.names for e in parts if e is not None))

    @property
    def waiting(self) -> tuple[Expression | None, Expression | None]:
        """Its delay and its priority."""
        return self.delay, self.priority


@dataclass(frozen=True, eq=False)
class Repetition:
    """Events that repeat until successive periods are equal."""

    period: float  # the time from one repetition to the next
    # events as those of a :class:`Condition`, within the last period before `t0`
    events: tuple[tuple[float, Mapping[str, Expression]], ...]
    located: tuple[LocatedEvent, ...]


@dataclass(frozen=True, eq=False)
class Condition:
    """An experiment with every name resolved."""

    name: str  # name of the experiment
    t0: float  # time of the initial values
    # All data times, shape (n,), strictly increasing, none before `t0`. The last one may be
    # infinite, for the steady state that is finally approached.
    times: Array
    # measurements by observable; observables never measured here are absent
    series: Mapping[str, Series]
    inputs: Mapping[str, Input]  # known inputs by name
    # for each parameter and constant: the index of an unknown (an int), a number (a float), or an
    # expression in parameters and constants of the first two kinds
    scalars: Mapping[str, int | float | Expression]
    # initial value of each state, in the same form; its expressions may contain any parameters and
    # constants
    initial: Mapping[str, int | float | Expression]
    # the start value for solving for each algebraic variable
    algebraic_guess: Mapping[str, float]
    # (time, {state, constant or parameter: new value}) in the order of time, all at or after `t0`;
    # at equal times in the given order
    events: tuple[tuple[float, Mapping[str, Expression]], ...]
    # times of events whose measurements use the values after all events of that time
    measured_after: frozenset[float] = frozenset()
    # events at times that depend on the unknowns, in the given order
    located: tuple[LocatedEvent, ...] = ()
    # True if it begins at the steady state approached from the initial values, with the scalars
    # before any event
    steady_start: bool = False
    repeated: Repetition | None = None  # the events of its periodic state, if any
    # the date of t = 0, from which times count in the problem's unit, if known
    origin: datetime.datetime | None = None

    def sees_events(self, time: float) -> bool:
        """Return whether measurements at `time` use the values after events of that time."""
        return time in self.measured_after and any(t == time for t, _ in self.events)

    @property
    def has_triggers(self) -> bool:
        """True if a condition on the trajectory triggers an event."""
        return any(event.when is not None for event in self.located)

    @property
    def assignments(self) -> list[Mapping[str, Expression]]:
        """The names that events of any kind assign."""
        assigned = [assign for _, assign in self.events] + [e.assign for e in self.located]
        if self.repeated is not None:
            assigned += [assign for _, assign in self.repeated.events]
            assigned += [e.assign for e in self.repeated.located]
        return assigned

    @property
    def evolves(self) -> bool:
        """True unless all measurements are at t0, where all states are known."""
        later = any(np.any(self.times[s.rows] > self.t0) for s in self.series.values())
        known = all(isinstance(value, float) for value in self.initial.values())
        return later or not known or self.steady_start or self.sees_events(self.t0)

    @property
    def end(self) -> float:
        """The last finite data time; t0 without one."""
        finite = self.times[np.isfinite(self.times)]
        return float(finite[-1]) if len(finite) else self.t0

    @property
    def size(self) -> int:
        """Number of measured values."""
        return sum(len(s.values) for s in self.series.values())
