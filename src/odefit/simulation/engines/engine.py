"""The interface of integration engines: initial value problems, one at a time or in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array
from odefit.simulation.engines.segments import Segment, places

ABSOLUTE_OVER_RELATIVE = 1e-3
"""Absolute tolerance of all engines but the Taylor method over the relative one, in units of each
state's own magnitude: a state that passes through zero does not stop the others."""


class Values(NamedTuple):
    """Values at one time of a trajectory, and their changes along the scaled directions.

    Algebraic variables are a first guess, unless something says that they are consistent.
    """

    states: Array  # differential states, shape (n,)
    scalars: Array  # run-time scalars of the field, shape (p,)
    sensitivities: Array  # shape (n, m)
    scalar_sensitivities: Array  # shape (p, m)
    algebraic: Array  # shape (a,)


class ConsistentValues(NamedTuple):
    """Values whose algebraic variables solve their equations."""

    values: Values
    algebraic_sensitivities: Array  # shape (a, m)

    def as_solution(self) -> SegmentSolution:
        """Return these values in the form of a segment's solution at one time."""
        now = self.values
        return SegmentSolution(
            states=now.states[None],
            sensitivities=now.sensitivities[None],
            algebraic=now.algebraic[None],
            algebraic_sensitivities=self.algebraic_sensitivities[None],
            steps=0,
        )


@dataclass(frozen=True, eq=False)
class SegmentSolution:
    """The solution of one initial value problem at the times of its segment."""

    states: Array  # States, shape (k, n)
    sensitivities: Array  # Derivatives of the states along each direction, shape (k, n, m)
    algebraic: Array  # Algebraic variables, shape (k, a)
    algebraic_sensitivities: Array  # Derivatives of the algebraic variables, shape (k, a, m)
    steps: int
    # Rates of the states just before the last time, shape (n,), where the right-hand side switches
    arrival: Array | None = None

    @classmethod
    def without_algebraic(cls, states: Array, sensitivities: Array, steps: int) -> SegmentSolution:
        """Return the solution of equations without algebraic variables."""
        count, _, m = sensitivities.shape
        return cls(
            states=states,
            sensitivities=sensitivities,
            algebraic=np.zeros((count, 0)),
            algebraic_sensitivities=np.zeros((count, 0, m)),
            steps=steps,
        )

    def at(self, place: int, before: Values) -> Values:
        """Return the values at one of the times, with the scalars that the segment began with."""
        return before._replace(
            states=self.states[place],
            sensitivities=self.sensitivities[place],
            algebraic=self.algebraic[place],
        )


@dataclass(frozen=True)
class EngineFailure:
    """An integration that did not reach the end of its segment."""

    time: float  # The time at which it stopped
    reason: str
    # Whether it stopped because it had taken as many steps as it was allowed.
    out_of_steps: bool = False
    steps: int = 0
    # Number of steps, each as long as the last one, that the rest would have taken.
    steps_ahead: float = math.inf


LOST_DIGITS = 1e6
"""Error of the smallest state, in units of the tolerance and of its largest value, from which on
states are integrated in units of their own: at a tolerance of 1e-12 six digits remain."""

LOST_DIGITS_OF_SEARCHES = 1e9
"""The factor :data:`LOST_DIGITS` while many starts look for the basin of the best solution."""

UNSEEN = 1e-10
"""Size of a state, relative to the largest or to one, that error control at 1e-12 hardly sees.

What grows out of it would be stepped across."""

RATES_LOOKED_AT = 4
"""Times within each smooth part at which the rates of states that begin at zero are looked at."""

FEWEST_DIGITS = 1e-14
"""Smallest unit of an absolute tolerance that is given beforehand, relative to the largest
state."""


def smallest_share(states: Array, least: float = 1.0) -> float:
    """Return the smallest magnitude that is not zero, over the largest one, or over `least`.

    With one that is what counts beside heyoka's error control, which is relative to the largest
    state, and absolute below one. It is infinite where all states are zero.
    """
    smallest, largest = math.inf, least
    for value in states.tolist():
        size = abs(value)
        if 0.0 < size < smallest:
            smallest = size
        if size > largest:
            largest = size
    return smallest / largest if largest > 0.0 else math.inf


def magnitudes(states: Array, rates: Array, ahead: float) -> Array:
    """Return the unit of each state's absolute tolerance where it has to be given beforehand.

    It is the state's value; for one that begins at zero what its rate makes of it in the time
    `ahead`, or the smallest other one where nothing moves it.
    """
    size = np.abs(states)
    moved = np.abs(rates) * ahead
    size = np.where((size == 0.0) & np.isfinite(moved), moved, size)
    largest = size.max(initial=0.0)
    if not 0.0 < largest < math.inf:
        return np.ones(len(states))
    if not size.all():
        size[size == 0.0] = size[size > 0.0].min()
    return np.asarray(np.maximum(size, FEWEST_DIGITS * largest))


def initial_magnitudes(
    segment: Segment, states: Array, rates_at: Callable[[float, Array], Array]
) -> Array:
    """Return the units of :func:`magnitudes` with which the integration of a segment begins.

    `rates_at` returns the rates of these states at a time with the inputs' polynomials. It is
    called only if a state begins at zero, and the largest rates count.
    """
    rates = np.zeros(len(states))
    if not states.all():
        for time, polynomials in places(segment, RATES_LOOKED_AT):
            rates = np.fmax(rates, np.abs(rates_at(time, polynomials)))
    return magnitudes(states, rates, float(segment.times[-1]) - segment.start)


class Engine(Protocol):
    """Integrates segments of one field with one structure of sensitivities."""

    name: str

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """Return states and sensitivities at the segment's times, or why there are none."""


class Adjoint(Protocol):
    """The adjoint of the integration of a segment, with the steps that were taken."""

    def pull_back(self, by_values: Array) -> tuple[Array, Array] | None:
        """Return derivatives of a scalar by the initial states and by the scalars.

        They have shapes (n,) and (p,); `by_values` are its derivatives by the states at the times
        of the segment, shape (k, n). None is returned where they cannot be found.
        """


class AdjointEngine(Engine, Protocol):
    """An engine whose integrations of states can be gone through backwards."""

    def recorded(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> tuple[SegmentSolution, Adjoint] | EngineFailure:
        """Return the solution of a segment, and its adjoint."""


@dataclass(frozen=True, eq=False)
class InitialValueProblems:
    """A batch of independent initial value problems of one field, without breakpoints."""

    starts: Array  # Initial times, shape (k,)
    # For each problem the times at which values are wanted: increasing, after its start, never
    # empty.
    times: Sequence[Array]
    polynomials: Array  # Inputs, shape (k, inputs, 5), as in :class:`Segment`
    states: Array  # Initial states, shape (k, n)
    scalars: Array  # Run-time scalars of the field, the same for all problems, shape (p,)
    # Derivatives of the initial states along each direction, the same for all problems, shape (n,
    # m).
    sensitivities: Array
    scalar_sensitivities: Array  # Derivatives of the scalars along each direction, shape (p, m)


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The solutions of a batch of initial value problems."""

    states: Array  # States at all times of all problems, one problem after the other, shape (t, n)
    sensitivities: Array  # Derivatives of the states along each direction, shape (t, n, m)
    steps: npt.NDArray[np.intp]  # Number of steps taken for each problem, shape (k,)


@dataclass(frozen=True)
class BatchFailure:
    """A batch of which one problem could not be solved."""

    index: int  # Number of the problem that failed
    failure: EngineFailure  # How far its integration got, and why it stopped there


class BatchIntegrator(Protocol):
    """Integrates batches of initial value problems of one field together."""

    name: str

    def integrate(
        self, problems: InitialValueProblems, max_steps: int
    ) -> BatchSolution | BatchFailure:
        """Return all solutions, or the first failure; `max_steps` holds for each problem."""
