"""The steady state that a trajectory approaches, and its sensitivities.

A trajectory is followed over time spans that grow by factors, with an implicit engine and without
sensitivities, until Newton's method ends nearby. Its equations are 0 = f(x), with one equation for
each conserved quantity replaced by conservation: L x = L x0. The end of Newton's iteration is
accepted only if the trajectory certainly leads there: it is close, the equations are nearly linear
in between, and they are stable there. Derivatives follow from the implicit function theorem.

If Newton's equations are singular, as for steady states that are not isolated, the trajectory
itself is followed, with its sensitivities, until neither changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import (
    ConsistentValues,
    EngineFailure,
    Integration,
    Solved,
    Values,
)
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.segments import Segment
from odefit.simulation.steady.newton import (
    ROUNDOFF,
    SMALL_STATE,
    NewtonSystem,
    pivots,
)
from odefit.simulation.steady.steady_equations import (
    Conserved,
    Linearised,
    SteadyEquations,
    eigenvalues_of,
    ordinary_jacobian,
    steady_equations,
)

UNSTABLE = 1e-11
"""Real part of an eigenvalue, relative to the largest eigenvalue, above which a steady state is
unstable; below, it is roundoff."""

SPANS = 40
"""Largest number of time spans over which a trajectory is followed; the last is at least 1e12 times
the first."""

LEAST_FACTOR, LARGEST_FACTOR = 10.0, 1e4
"""The smallest and the largest factor by which the time grows from one span to the next."""

LARGEST_TIME = 1e15
"""Largest time for which a trajectory is followed, relative to that of the fastest rate at the
start."""

STEPS = 20_000  # limit of the engine's steps for one span

AT_REST = 1e-8
"""Change of the states while the time grows at least tenfold, relative to their sizes, below which
a trajectory has come to rest. It is at least ten times the tolerance of the engine."""

SENSITIVITIES_AT_REST = 1e-6
"""Change of the sensitivities below which they have come to rest, in the same sense; at least a
hundred times the tolerance of the engine."""

LATER = (1e2, 1e4, 1e6)
"""Factors of time at which equations that contain the time must still have the steady state."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The influences on a trajectory that comes to rest."""

    time: float
    inputs: Array  # Values of the inputs, constant from then on, shape (u,)
    fixed: BoolArray  # Which scalars are numbers that depend on no unknown, shape (p,)
    # Whether time is frozen: equations that contain it then have its present value.
    stopped: bool


class _Point(NamedTuple):
    """A point y = (x, z) of a trajectory, and the time since its beginning."""

    elapsed: float
    y: Array


class SteadyStateSearch:
    """The search for the steady state that a trajectory approaches from `initial`.

    The pattern belongs to the scalars' sensitivities. Derivatives are along the directions of
    `initial`.
    """

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        engines: Engines,
        initial: Values,
        around: Surroundings,
    ) -> None:
        self.initial, self.around = initial, around
        self.states, self.n = field.states, len(field.states)
        self.equations: SteadyEquations = steady_equations(field)
        self.pattern = pattern
        self.field, self.engines = field, engines
        expressions = (*field.model.ode.values(), *field.model.algebraic.values())
        self.timed = any(TIME in e.names for e in expressions)
        if self.timed and around.stopped:
            self.field, self.engines = engines.stopped(field, around.time)
        self.largest = np.abs(initial.states)
        self.conserved = self._conserved()
        self.at_rest = max(AT_REST, 10.0 * engines.implicit_tolerance)

    @np.errstate(all="ignore")
    def run(self) -> ConsistentValues | EngineFailure:
        """Return the steady state; a failure if the trajectory oscillates, grows, follows time."""
        now = _Point(0.0, np.concatenate([self.initial.states, self.initial.algebraic]))
        first = self._at(now)
        if not np.isfinite(first.value).all():
            return self._failure(now, "the right-hand side is not defined at the start")
        if not first.value.any() and (self.around.stopped or not self.timed):
            return self._unmoved(now, first)
        rates = np.abs(eigenvalues_of(ordinary_jacobian(first.jacobian, self.n)))
        fastest = float(rates.max(initial=0.0)) or 1.0
        span, before = 1.0 / fastest, now
        for _ in range(SPANS):
            rest = self._polished(now)
            if rest is not None:
                return rest
            if now.elapsed > 0.0 and self._changed(before, now) <= self.at_rest:
                rest = self._at_rest(now)
                if rest is not None:
                    return rest
            if now.elapsed * fastest > LARGEST_TIME:
                break
            span = self._next_span(now, span)
            reached = self._followed(now, span)
            if isinstance(reached, EngineFailure):
                return self._no_rest(before, now, reached)
            before, now = now, reached
            self.largest = np.maximum(self.largest, np.abs(now.y[: self.n]))
        return self._no_rest(before, now, None)

    @np.errstate(all="ignore")
    def nearby(self) -> ConsistentValues | None:
        """Return the steady state to which a trajectory certainly leads, if it is close already.

        Equations must not contain the time.
        """
        now = _Point(0.0, np.concatenate([self.initial.states, self.initial.algebraic]))
        first = self._at(now)
        if not np.isfinite(first.value).all():
            return None
        if not first.value.any():
            rest = self._unmoved(now, first)
            return None if isinstance(rest, EngineFailure) else rest
        return self._polished(now)

    def _time(self, elapsed: float) -> float:
        """Return the time of the equations."""
        return self.around.time + (0.0 if self.around.stopped else elapsed)

    def _at(self, point: _Point) -> Linearised:
        time = self._time(point.elapsed)
        return self.equations.at(time, point.y, self.initial.scalars, self.around.inputs)

    def _next_span(self, now: _Point, span: float) -> float:
        """Return a span as long as the slowest change needs, within bounds."""
        if now.elapsed == 0.0:
            return span
        least, most = LEAST_FACTOR * now.elapsed, LARGEST_FACTOR * now.elapsed
        return float(np.clip(3.0 / self._slowest(now), least, most))

    def _slowest(self, now: _Point) -> float:
        """Return the slowest nonzero rate of change of the linearised equations."""
        rates = np.abs(eigenvalues_of(ordinary_jacobian(self._at(now).jacobian, self.n)).real)
        slow = rates[rates > UNSTABLE * rates.max(initial=0.0)]
        return float(slow.min(initial=math.inf))

    def _followed(self, now: _Point, span: float) -> _Point | EngineFailure:
        """Follow the trajectory without sensitivities."""
        solution = self._integrated(now, np.array([span]), False)
        if isinstance(solution, EngineFailure):
            return solution
        y = np.concatenate([solution.states[-1], solution.algebraic[-1]])
        return _Point(now.elapsed + span, y)

    def _integrated(self, now: _Point, spans: Array, sensitivities: bool) -> Solved:
        initial, pattern = self.initial, self.pattern
        if not sensitivities:
            pattern = SensitivityPattern(0, frozenset())
            initial = initial._replace(
                states=now.y[: self.n],
                algebraic=now.y[self.n :],
                sensitivities=np.zeros((self.n, 0)),
                scalar_sensitivities=np.zeros((len(initial.scalars), 0)),
            )
        start = self._time(now.elapsed) if self.timed and not self.around.stopped else 0.0
        polynomials = np.zeros((1, len(self.around.inputs), 5))
        polynomials[0, :, 1] = self.around.inputs
        segment = Segment(start, start + spans, np.zeros(0), polynomials)
        problem = Integration(self.field, pattern, segment, initial)
        return self.engines.implicit_solution(problem, STEPS)

    def _conserved(self) -> Conserved:
        around, scalars = self.around, self.initial.scalars
        return self.equations.conserved(around.time, scalars, around.fixed, around.inputs)

    def _sizes(self, *points: Array) -> Array:
        """Return reference sizes for changes of y."""
        sizes = np.max(np.abs(points), axis=0)
        sizes[: self.n] = np.maximum(sizes[: self.n], SMALL_STATE * self.largest)
        return np.asarray(np.maximum(sizes, ROUNDOFF * sizes.max(initial=0.0) or 1.0))

    def _system(self, point: _Point, at: Linearised, sizes: Array) -> NewtonSystem | None:
        """Return Newton's equations at a point; None if they are singular."""
        weights = self.conserved.weights
        value, matrix = at.value.copy(), at.jacobian.copy()
        places = np.zeros(0, dtype=np.intp)
        if len(weights):
            places = pivots(weights, sizes[: self.n])
            value[places] = weights @ (point.y[: self.n] - self.initial.states)
            matrix[places] = 0.0
            matrix[places, : self.n] = weights
        return NewtonSystem.of(value, places, matrix)

    def _polished(self, now: _Point) -> ConsistentValues | None:
        """Return the end of Newton's method from a point if the trajectory surely approaches it."""
        around, weights = self.around, self.conserved.weights
        end_of_newton = self.equations.approached(
            self._time(now.elapsed), now.y, self.initial, around.inputs, weights, self.largest
        )
        if end_of_newton is None:
            return None
        y, at, places = end_of_newton
        end = now._replace(y=y)
        stable = self._stable(at.jacobian, places) and self._persists(end)
        return self._rest(end, at) if stable else None

    def _stable(self, jacobian: Array, places: IntArray) -> bool:
        """Return whether eigenvalues have negative real parts, except for conserved quantities.

        `places` are the states that these determine.
        """
        reduced = ordinary_jacobian(jacobian, self.n)
        if len(places):
            others = np.setdiff1d(np.arange(self.n), places)
            weights = self.conserved.weights
            dependent = -np.linalg.solve(weights[:, places], weights[:, others])
            reduced = reduced[np.ix_(others, others)] + (
                reduced[np.ix_(others, places)] @ dependent
            )
        if not np.isfinite(reduced).all():
            return False
        eigenvalues = eigenvalues_of(reduced)
        limit = UNSTABLE * float(np.max(np.abs(eigenvalues), initial=0.0))
        return bool((eigenvalues.real <= limit).all())

    def _persists(self, end: _Point) -> bool:
        """Return whether equations that contain the time also have the steady state later."""
        if self.around.stopped or not self.timed:
            return True
        if end.elapsed == 0.0:
            return False  # the later equations are unknown
        since = max(end.elapsed, abs(self.around.time))
        for factor in LATER:
            later = end._replace(elapsed=factor * since)
            at = self._at(later)
            sizes = self._sizes(end.y)
            system = self._system(later, at, sizes) if at.finite else None
            if system is None:
                return False
            if np.max(np.abs(system.solve(system.value)) / sizes, initial=0.0) > AT_REST:
                return False
        return True

    def _rest(self, end: _Point, at: Linearised) -> ConsistentValues | None:
        """Return the steady state with its derivatives, by the implicit function theorem."""
        n, changes = self.n, self.initial.scalar_sensitivities
        # States that stay zero: the residue of a linear solver in them would need accuracy, too.
        size = np.abs(end.y[:n])
        gone = np.flatnonzero((self.largest == 0.0) & (size <= ROUNDOFF * size.max(initial=0.0)))
        end.y[gone] = 0.0
        m = changes.shape[1]
        if not m:
            return self._settled(end.y, np.zeros((len(end.y), 0)))
        if changes[self.conserved.moving].any():
            return self._at_rest(end)
        system = self._system(end, at, self._sizes(end.y))
        if system is None:
            return None
        totals = -self.conserved.weights @ self.initial.sensitivities
        derivatives = -system.solve(system.instead(at.by_scalars @ changes, totals))
        noise = ROUNDOFF * np.abs(derivatives[:n]).max(initial=0.0)
        derivatives[gone] = np.where(np.abs(derivatives[gone]) <= noise, 0.0, derivatives[gone])
        return self._settled(end.y, derivatives)

    def _settled(self, y: Array, by_direction: Array) -> ConsistentValues:
        """Return a steady state y = (x, z) with its derivatives, shape (n + a, m)."""
        n = self.n
        values = self.initial._replace(
            states=y[:n], algebraic=y[n:], sensitivities=by_direction[:n]
        )
        return ConsistentValues(values, by_direction[n:])

    def _unmoved(self, now: _Point, at: Linearised) -> ConsistentValues | EngineFailure:
        """Return a start at which all rates are zero."""
        state = self._rest(now, at)
        if state is not None:
            return state
        # Steady states that are not isolated: the start must remain one along all directions.
        by_start = at.jacobian[:, : self.n] @ self.initial.sensitivities
        moved = by_start + at.by_scalars @ self.initial.scalar_sensitivities
        if not moved.any() and len(now.y) == self.n:
            return self._settled(now.y, self.initial.sensitivities)
        rest = self._at_rest(now)
        if rest is not None:
            return rest
        reason = "the steady state at its start has no derivatives with respect to the unknowns"
        return self._failure(now, reason)

    def _changed(self, before: _Point, now: _Point) -> float:
        """Return the largest change of a state between two points, relative to its size."""
        sizes = self._sizes(now.y)[: self.n]
        change = np.abs(now.y - before.y)[: self.n] / sizes
        return float(np.max(change, initial=0.0))

    def _at_rest(self, now: _Point) -> ConsistentValues | None:
        """Return the end of the trajectory itself, if its sensitivities have come to rest, too."""
        n, m = self.n, self.initial.sensitivities.shape[1]
        if not m:
            return self._settled(now.y, np.zeros((len(now.y), 0)))
        slowest = self._slowest(now)
        end = max(10.0 * now.elapsed, 300.0 / slowest, 1e-6)
        solution = self._integrated(_Point(0.0, now.y), np.array([0.1 * end, end]), True)
        if isinstance(solution, EngineFailure):
            return None
        limit = max(SENSITIVITIES_AT_REST, 100.0 * self.engines.implicit_tolerance)
        before, after = solution.sensitivities
        sizes = np.maximum(np.abs(after), 1e-6 * self._sizes(now.y)[:n, None])
        if not np.max(np.abs(after - before) / sizes, initial=0.0) <= limit:
            return None
        values = solution.at(-1, self.initial)
        return ConsistentValues(values, solution.algebraic_sensitivities[-1])

    def _no_rest(self, before: _Point, now: _Point, failure: EngineFailure | None) -> EngineFailure:
        """Return a failure with the reason why there is no steady state."""
        if failure is not None and not failure.out_of_steps:
            time = self._time(now.elapsed)
            return EngineFailure(time, f"no steady state is approached: {failure.reason}")
        change = np.abs(now.y - before.y)[: self.n] / self._sizes(now.y)[: self.n]
        state = self.states[int(np.argmax(change))] if self.n else ""
        words = f"{state} still changes after {now.elapsed:.3g} units of time"
        if self.timed and not self.around.stopped:
            why = "the equations contain the time, or the solution oscillates or grows"
        else:
            why = "the solution may oscillate or grow without bound"
        return self._failure(now, f"no steady state is approached: {words}; {why}")

    def _failure(self, now: _Point, reason: str) -> EngineFailure:
        return EngineFailure(self._time(now.elapsed), reason)
