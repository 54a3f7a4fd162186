"""The passage of a solution to an edge of its equations' domain, along it, and away from it.

An engine fails on reaching an edge. Then the edge is approached. With u its argument, -u/u' is a
smooth function of time with a simple zero there, whatever the power of time with which u goes to
zero. So a secant predicts the time tau, and each integration covers nearly all of the rest. The
remaining u is far below the accuracy of any engine. There the motion changes its mode, with the
jump of the sensitivities for the change of the right-hand side from f- to f+,

    S+ = S- + (f- - f+) tau',    tau' = -(du/dtheta)/u',

after which u stays zero for all values of the unknowns. A mode is left when the rate of u at the
edge becomes positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.expressions import Expression
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.engine_choice import EngineChoice, Integrated
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.segments import Segment, part_of
from odefit.simulation.propagation.edges import (
    Argument,
    Course,
    Edge,
    HeldEdges,
    arguments_of,
    edges_with_crossings,
    held_field,
    inputs_at,
    is_kept,
    limits,
    model_ends,
    moving_arguments,
    next_zero,
    rates,
)

SHARES = (1e-3, 1e-2, 0.1)
"""Distances before the time of an engine's failure, relative to the time until then, to which the
solution is integrated again. A larger one is used if the engine fails before that."""

AROUND = 10.0
"""Largest distance between the predicted time of an edge and an engine's failure that the edge may
explain, in units of the distance of the prediction."""

CLOSER = 0.01  # share of the predicted time to an edge that an integration leaves out
MAX_APPROACHES = 12  # integrations towards one edge
GONE = 1e-14  # size of an argument, relative to its largest, that counts as zero
SMALL = 1e-5  # the same for an argument that cannot be followed further
NEAREST = 1e-12  # time to an edge, relative to the time, that counts as zero

RATE_OF_NONE = 1e-10
"""Change of an argument until the end of the segment, relative to its largest size, below which a
rate counts as zero."""

MAX_CHANGES = 200  # changes of the mode in one segment
WATCHED = 256  # total number of times of a segment at which the end of a mode is sought
CLOSE_UP = 32  # parts into which the time in which a mode ends is divided
ROUNDS = 6  # repetitions of this division

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")  # the inputs before a breakpoint, and after it

Integrator = Callable[[VectorField, Engines, Segment, Values, EngineChoice], Integrated]


class Passage:
    """A segment in which an engine has failed, and which may lead to edges.

    Where `crossed` are zero the equations change, and other code detects that: such an argument may
    become negative, and its operation is then zero.
    """

    def __init__(
        self,
        field: VectorField,
        engines: Engines,
        integrate: Integrator,
        segment: Segment,
        now: Values,
        choice: EngineChoice,
        crossed: Sequence[Expression] = (),
    ) -> None:
        self._field, self._engines, self._integrate = field, engines, integrate
        self._segment, self._choice = segment, choice
        self._edges = edges_with_crossings(field, crossed)
        self._time, self._now = segment.start, now
        self._mode = HeldEdges()
        self._held: list[Edge] = []
        self._flat: set[Edge] = set()  # Those of them beyond which the motion continues
        self._sizes = dict.fromkeys(self._edges, 0.0)
        self._steps = 0
        count, (n, m) = len(segment.times), now.sensitivities.shape
        self._states, self._sensitivities = np.empty((count, n)), np.empty((count, n, m))

    def through(self, failure: EngineFailure) -> Integrated:
        """Return the solution of the segment, or the reason why it ends."""
        failed: EngineFailure | None = failure
        if not failure.time > self._segment.start:
            failed = self._go_on()
        for _ in range(MAX_CHANGES):
            if failed is None:
                values = self._states, self._sensitivities, self._steps
                return SegmentSolution.without_algebraic(*values), self._choice
            ended = self._enter(failed, self._approach(failed))
            if ended is not None:
                return ended, self._choice
            failed = self._go_on()
        return failed or failure, self._choice

    # Integration in a mode ---------------------------------------------------------------------

    def _output_times(self, until: float, *more: float) -> Array:
        """Return the times of the segment from now to a time, with additional ones."""
        times = self._segment.times
        return np.union1d(times[(times > self._time) & (times <= until)], more)

    def _solve(self, times: Array) -> SegmentSolution | EngineFailure:
        """Integrate from now through times in the present mode."""
        field, engines = self._in_force(self._mode)
        segment = part_of(self._segment, self._time, times)
        piece, choice = self._integrate(field, engines, segment, self._now, self._choice)
        if isinstance(piece, EngineFailure) and not piece.time > self._time and not choice.stiff:
            # The Taylor method does not report where it has failed.
            stiff = EngineChoice(stiff=True)
            piece, _ = self._integrate(field, engines, segment, self._now, stiff)
        else:
            self._choice = choice
        self._steps += piece.steps
        return piece

    def _in_force(self, mode: HeldEdges) -> tuple[VectorField, Engines]:
        return held_field(self._field, self._engines, mode, self._now.scalars)

    def _move(self, piece: SegmentSolution, times: Array, place: int) -> None:
        """Go to one of the times of a solution, and store the requested values on the way."""
        outputs = self._segment.times
        rows = np.flatnonzero((outputs > self._time) & (outputs <= times[place]))
        at = np.searchsorted(times, outputs[rows])
        self._states[rows], self._sensitivities[rows] = piece.states[at], piece.sensitivities[at]
        course = self._course(times[: place + 1], piece.states[: place + 1], "left")
        for edge in self._edges:
            largest = float(np.abs(self._argument_alone(edge, course)[0]).max())
            self._sizes[edge] = max(self._sizes[edge], largest)
        self._time, self._now = float(times[place]), piece.at(place, self._now)

    # Towards an edge ---------------------------------------------------------------------------

    def _approach(self, failure: EngineFailure) -> list[Edge]:
        """Integrate to just before an engine's failure; return the edges that may cause it."""
        start, span = self._time, failure.time - self._time
        here = self._arguments()
        at_once = [e for e in self._edges if self._gone(e, here[e]) or self._beyond(e, here[e])]
        for share in SHARES:
            near = (failure.time - 2.0 * share * span, failure.time - share * span)
            if not start < near[0] < near[1]:
                return at_once
            times = self._output_times(near[1], *near)
            solution = self._solve(times)
            if isinstance(solution, SegmentSolution):
                break
        else:
            return at_once
        before = self._moved(solution, times, int(np.searchsorted(times, near[0])))
        after = self._moved(solution, times, len(times) - 1)
        predicted = {
            e: next_zero(near, before[e], after[e]) for e in self._edges if not self._mode.holds(e)
        }
        gone = [e for e in predicted if self._gone(e, after[e]) or self._beyond(e, after[e])]
        if gone:
            return gone
        hit = {e: abs(t - failure.time) for e, t in predicted.items() if t > near[1]}
        edge = min(hit, key=lambda e: hit[e], default=None)
        if edge is None or not hit[edge] < AROUND * share * span:
            return []
        if not self._closer(edge, predicted[edge]):
            return []
        here = self._arguments()
        return [edge, *(e for e in self._edges if e != edge and self._gone(e, here[e]))]

    def _moved(self, solution: SegmentSolution, times: Array, place: int) -> dict[Edge, Argument]:
        self._move(solution, times, place)
        return self._arguments()

    def _closer(self, edge: Edge, time: float) -> bool:
        """Approach an edge with a predicted time as far as needed; return whether it is one."""
        share = CLOSER
        for _ in range(MAX_APPROACHES):
            left = time - self._time
            argument = self._arguments()[edge]
            if self._gone(edge, argument) or not left > NEAREST * max(abs(time), abs(self._time)):
                return True
            near = (time - 2.0 * share * left, time - share * left)
            if not self._time < near[0] < near[1]:
                break
            times = self._output_times(near[1], *near)
            solution = self._solve(times)
            if isinstance(solution, EngineFailure):
                time, share = min(solution.time, near[1]), 10.0 * CLOSER
                continue
            before = self._moved(solution, times, int(np.searchsorted(times, near[0])))
            after = self._moved(solution, times, len(times) - 1)
            time, share = next_zero(near, before[edge], after[edge]), CLOSER
        return abs(self._arguments()[edge].value) <= SMALL * self._sizes[edge]

    def _gone(self, edge: Edge, argument: Argument) -> bool:
        """Return whether an argument is practically zero and not held there."""
        self._sizes[edge] = max(self._sizes[edge], argument.size)
        return abs(argument.value) <= GONE * self._sizes[edge] and not self._mode.holds(edge)

    def _beyond(self, edge: Edge, argument: Argument) -> bool:
        """Return whether an operation is zero beyond its edge, and its argument is beyond."""
        return edge.flat and argument.value < 0.0 and not self._mode.holds(edge)

    def _arguments(self) -> dict[Edge, Argument]:
        """Return the arguments of all edges now."""
        here = self._here()
        speeds = rates(self._in_force(self._mode)[0], here)[0]
        arguments = arguments_of(self._field, self._edges, here, self._now, speeds)
        return dict(zip(self._edges, arguments, strict=True))

    # Along an edge -----------------------------------------------------------------------------

    def _enter(self, failure: EngineFailure, edges: list[Edge]) -> EngineFailure | None:
        """Hold the first of some edges that the motion does not leave, or cross it.

        Returns the reason if that is impossible.
        """
        ended = failure
        for edge in edges:
            mode = self._mode.changed(edge)
            if self._beyond(edge, self._arguments()[edge]):
                self._go_beyond(edge)
                return None
            speeds = self._speeds(edge, mode, self._here())[0]
            rate = float(self._leaving(edge, mode, self._here())[0])
            others = (
                speeds
                if edge.state is None
                else np.delete(speeds, self._field.states.index(edge.state))
            )
            lost = not np.isfinite(others).all() or ("log" in edge.operation and np.isinf(rate))
            none = self._rate_of_none(edge)
            if lost:
                ended = model_ends(edge, self._time)
            elif abs(rate) <= none or (edge.ends and edge.state is not None and not rate > 0.0):
                self._hold(edge, mode, speeds)
                return None
            elif not edge.ends:
                self._cross(edge, rate, speeds)
                return None
            elif not rate > 0.0:
                ended = model_ends(edge, self._time)
        return ended

    def _here(self) -> Course:
        return self._course(np.array([self._time]), self._now.states[None])

    def _course(self, times: Array, states: Array, side: Side = "right") -> Course:
        return Course(times, inputs_at(self._segment, times, side), states, self._now.scalars)

    def _rate_of_none(self, edge: Edge) -> float:
        segment = self._segment
        return RATE_OF_NONE * self._sizes[edge] / (float(segment.times[-1]) - segment.start)

    def _speeds(self, edge: Edge, mode: HeldEdges, course: Course) -> Array:
        """Return the rates of the states at an edge, shape (k, n); `mode` holds the edge."""
        if edge.state is None:
            return rates(self._in_force(mode)[0], course)
        field, _ = self._in_force(mode.changed(edge))
        return limits(field, course, edge.state)

    def _leaving(self, edge: Edge, mode: HeldEdges, course: Course) -> Array:
        """Return the rate of an argument at its edge, shape (k,); `mode` holds the edge."""
        speeds = self._speeds(edge, mode, course)
        if edge.state is not None:
            return np.asarray(speeds[:, self._field.states.index(edge.state)])
        return np.asarray(self._argument_alone(edge, course, speeds)[1])

    def _argument_alone(self, edge: Edge, course: Course, speeds: Array | None = None) -> Array:
        """Return an argument and its rate, shape (2, k); the states change with `speeds`."""
        changes = np.zeros_like(course.states) if speeds is None else speeds
        none = np.zeros((len(course.scalars), 1))
        arguments = moving_arguments(self._field, [edge], course, changes[:, :, None], none)
        return np.asarray(arguments[0])

    def _hold(self, edge: Edge, mode: HeldEdges, speeds: Array) -> None:
        """Hold the argument of an edge at zero from now on."""
        now, argument = self._now, self._arguments()[edge]
        before = rates(self._in_force(self._mode)[0], self._here())[0]
        states, jump = now.states.copy(), np.zeros_like(now.sensitivities)
        if argument.rate and np.isfinite(argument.rate):
            jump = np.outer(before - speeds, -argument.changes / argument.rate)
        sensitivities = now.sensitivities + jump
        if edge.state is not None:
            at = self._field.states.index(edge.state)
            states[at], sensitivities[at] = 0.0, 0.0
        self._now = now._replace(states=states, sensitivities=sensitivities)
        self._mode = mode
        self._held.append(edge)

    def _cross(self, edge: Edge, rate: float, speeds: Array) -> None:
        """Step as far beyond an edge as the motion is before it."""
        step = 2.0 * abs(self._arguments()[edge].value / rate)
        self._now = self._now._replace(states=self._now.states + step * speeds)
        if edge.flat and rate < 0.0:
            self._go_beyond(edge)

    def _go_beyond(self, edge: Edge) -> None:
        """Keep an operation at zero until its argument becomes positive."""
        self._mode = self._mode.changed(edge, flat=True)
        self._held.append(edge)
        self._flat.add(edge)

    # Away from an edge -------------------------------------------------------------------------

    def _go_on(self) -> EngineFailure | None:
        """Integrate to the end, ending modes on the way; return any failure of an engine."""
        end = float(self._segment.times[-1])
        for _ in range(MAX_CHANGES):
            rest = part_of(self._segment, self._time, self._output_times(end, end))
            times, watched = rest.times, [e for e in self._held if self._may_leave(e)]
            if watched:
                parts = rest.smooth_parts
                count = max(4, WATCHED // len(parts))
                grid = [np.linspace(p.start, p.times[-1], count + 1)[1:] for p in parts]
                times = np.union1d(times, np.concatenate(grid))
                times = times[times > self._time]
            piece = self._solve(times)
            if isinstance(piece, EngineFailure):
                before = times[times < self._time + (1.0 - SHARES[0]) * (piece.time - self._time)]
                earlier = self._solve(before) if watched and len(before) else None
                if not isinstance(earlier, SegmentSolution):
                    return piece
                if not self._leave(earlier, before, watched):
                    return piece
            elif not self._leave(piece, times, watched):
                self._move(piece, times, len(times) - 1)
                return None
        return EngineFailure(self._time, "the solution leaves and reaches this point without end")

    def _may_leave(self, edge: Edge) -> bool:
        """Return whether the rate at an edge may become positive, according to the equations."""
        scalars = self._now.scalars
        return (
            edge.state is None
            or edge in self._flat
            or not is_kept(self._field, self._mode, scalars, edge.state)
        )

    def _leave(self, solution: SegmentSolution, times: Array, watched: list[Edge]) -> bool:
        """Integrate to the first end of a mode, and end the mode; return whether there is any."""
        left = self._first_left(solution, times, watched)
        if left is None:
            return False
        edge, place, at_once = left
        before = place if at_once else place - 1
        if before >= 0:
            self._move(solution, times, before)
        if not at_once:
            self._close_in(edge, float(times[place]))
        self._mode = self._mode.changed(edge, flat=edge in self._flat)
        self._held.remove(edge)
        self._flat.discard(edge)
        return True

    def _first_left(
        self, solution: SegmentSolution, times: Array, watched: list[Edge]
    ) -> tuple[Edge, int, bool] | None:
        """Return the edge that is left first, with the first time that shows it.

        Times are numbered; -1 is now. The flag is true if it is left exactly at that time, as at a
        jump of an input.
        """
        every = np.append(self._time, times)
        states = np.concatenate([self._now.states[None], solution.states])
        first: tuple[Edge, int, bool] | None = None
        for edge in watched:
            for side in SIDES:
                leaves = self._is_left(edge, self._course(every, states, side))
                leaves[0] &= side == "right"
                leaves[-1] &= side == "left"
                place = int(np.argmax(leaves)) - 1
                if leaves.any() and (first is None or place < first[1]):
                    first = edge, place, side == "right"
        return first

    def _is_left(self, edge: Edge, course: Course) -> Any:
        if edge in self._flat:
            return self._argument_alone(edge, course)[0] > 0.0
        rate = self._leaving(edge, self._mode, course)
        return (rate if edge.ends else np.abs(rate)) > self._rate_of_none(edge)

    def _close_in(self, edge: Edge, end: float) -> None:
        """Go to the end of a mode between now and a time."""
        for _ in range(ROUNDS):
            times = np.unique(np.linspace(self._time, end, CLOSE_UP + 1)[1:])
            times = np.union1d(times[times > self._time], self._output_times(end, end))
            solution = self._solve(times)
            if isinstance(solution, EngineFailure):
                return
            course = self._course(times, solution.states, "left")
            place = int(np.argmax(self._is_left(edge, course)))
            end = float(times[place])
            if place > 0:
                self._move(solution, times, place - 1)
            if end - self._time <= NEAREST * abs(end):
                break
        times = self._output_times(end, end)
        solution = self._solve(times)
        if isinstance(solution, SegmentSolution):
            self._move(solution, times, len(times) - 1)
