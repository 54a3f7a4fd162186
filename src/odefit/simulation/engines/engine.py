"""The interface of integration engines: initial value problems, one at a time or in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.segments import Segment, places

ABSOLUTE_OVER_RELATIVE = 1e-3
"""Ratio of the absolute to the relative tolerance of all engines but the Taylor method, in units of
each state's own magnitude. A state that passes through zero does not stop the others.
"""


class Values(NamedTuple):
    """Values at one time of a trajectory, and their changes along the scaled directions.

    Algebraic variables are a first guess, unless they are marked as consistent.
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
    # Rates of the states just before the last time, shape (n,), if the right-hand side switches
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
        """Return the values at one of the times, with the scalars of the segment's beginning."""
        return before._replace(
            states=self.states[place],
            sensitivities=self.sensitivities[place],
            algebraic=self.algebraic[place],
        )

    def followed_by(self, last: SegmentSolution, rows: int) -> SegmentSolution:
        """Return the first rows of this solution, and another one after them."""
        return SegmentSolution(
            states=np.concatenate([self.states[:rows], last.states]),
            sensitivities=np.concatenate([self.sensitivities[:rows], last.sensitivities]),
            algebraic=np.concatenate([self.algebraic[:rows], last.algebraic]),
            algebraic_sensitivities=np.concatenate(
                [self.algebraic_sensitivities[:rows], last.algebraic_sensitivities]
            ),
            steps=self.steps,
        )


@dataclass(frozen=True)
class EngineFailure:
    """An integration that did not reach the end of its segment."""

    time: float  # The time at which the integration stopped
    reason: str
    # Whether it stopped at its limit of steps.
    out_of_steps: bool = False
    steps: int = 0
    # Number of steps of the last length that the rest would have needed.
    steps_ahead: float = math.inf


Solved = SegmentSolution | EngineFailure


def either(second: Solved, first: Solved) -> Solved:
    """Return the second attempt if it succeeded, else the more informative failure."""
    if isinstance(second, SegmentSolution) or isinstance(first, SegmentSolution):
        return second if isinstance(second, SegmentSolution) else first
    return second if first.out_of_steps else first


SAME_END = 0.05
"""Distance between the ends of two engines, relative to their way, that are at one place."""


def at_one_end(start: float, first: EngineFailure, second: Solved) -> bool:
    """Return whether two engines show that a solution ends: one cannot go on from there.

    Towards a singularity steps become ever shorter, so that more of them do not help the `first`
    engine. It has run out of steps a little before that place.
    """
    if isinstance(second, SegmentSolution) or second.out_of_steps or not second.time > start:
        return False
    return abs(second.time - first.time) <= SAME_END * (second.time - start)


class Integration(NamedTuple):
    """The object of an integration: a field with a pattern of sensitivities, along a segment."""

    field: VectorField
    pattern: SensitivityPattern
    segment: Segment
    initial: Values


LOST_DIGITS = 1e6
"""Error of the smallest state, in units of the tolerance and of its largest value, above which
states are integrated in their own units. At a tolerance of 1e-12 six digits remain.
"""

LOST_DIGITS_OF_SEARCHES = 1e9
"""The factor :data:`LOST_DIGITS` while many starts search for the basin of the best solution."""

UNSEEN = 1e-10
"""Size of a state, relative to the largest or to one, below which error control at 1e-12 hardly
acts. A feature that grows from such a size would be missed.
"""

RATES_LOOKED_AT = 4
"""Number of times within each smooth part at which the rates of states that begin at zero are
evaluated."""

FEWEST_DIGITS = 1e-14
"""Smallest unit of an absolute tolerance given in advance, relative to the largest state."""


def smallest_share(states: Array, least: float = 1.0) -> float:
    """Return the ratio of the smallest nonzero magnitude to the largest one, or to `least`.

    With `least` equal to one this ratio matches heyoka's error control, which is relative to the
    largest state, and absolute below one. It is infinite if all states are zero.
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
    """Return the unit of each state's absolute tolerance, if it must be given in advance.

    It is the state's value. For a state that begins at zero it is the value that its rate gives
    after the time `ahead`, or the smallest other unit if the rate is zero.
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
    """Return the units of :func:`magnitudes` at the beginning of a segment.

    `rates_at` returns the rates of these states at a time with the inputs' polynomials. It is
    called only if a state begins at zero, and the largest rates are used.
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
        """Return states and sensitivities at the segment's times, or why they are missing."""


class Adjoint(Protocol):
    """The adjoint of the integration of a segment, for the steps that were taken."""

    def pull_back(self, by_values: Array) -> tuple[Array, Array] | None:
        """Return derivatives of a scalar with respect to the initial states and to the scalars.

        They have shapes (n,) and (p,); `by_values` are its derivatives with respect to the states
        at the times of the segment, shape (k, n). Returns None if they cannot be computed.
        """


class AdjointEngine(Engine, Protocol):
    """An engine that can traverse its integrations of states backwards."""

    def recorded(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> tuple[SegmentSolution, Adjoint] | EngineFailure:
        """Return the solution of a segment, and its adjoint."""


@dataclass(frozen=True, eq=False)
class InitialValueProblems:
    """A batch of independent initial value problems of one field, without breakpoints."""

    starts: Array  # Initial times, shape (k,)
    # The output times of each problem: increasing, after its start, never empty.
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
    failure: EngineFailure  # The time that its integration reached, and why it stopped there


class BatchIntegrator(Protocol):
    """Integrates batches of initial value problems of one field together."""

    name: str

    def integrate(
        self, problems: InitialValueProblems, max_steps: int
    ) -> BatchSolution | BatchFailure:
        """Return all solutions, or the first failure; `max_steps` holds for each problem."""
