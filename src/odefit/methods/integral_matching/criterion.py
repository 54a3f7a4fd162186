"""The integral criterion (5): the error of smoothed states as a solution of the equations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME, Algebra
from odefit.methods.integral_matching.program import Program
from odefit.methods.integral_matching.segments import SmoothedSegment
from odefit.methods.integral_matching.separated import Recorder, Separated
from odefit.problem.binding import bound_value
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.segments import scalar_segments

BACKWARD_STEPS = 50  # integration steps from the first measurement back to the initial values


class IntegralCriterion:
    """x-hat(t) - xi - the integral of F(x-hat(s); theta), weighted, in all segments and states.

    Its vectors have `size` components: the unknowns, then the free initial states of segments after
    events. `hidden` names the states that are not measured in every condition; `invariants` are
    combinations of right-hand sides that depend on the other states alone, shape (hidden, states),
    see :mod:`odefit.structure.invariants`.
    """

    def __init__(
        self,
        problem: Problem,
        segments: Sequence[SmoothedSegment],
        hidden: Sequence[str],
        invariants: Array,
    ) -> None:
        self.problem, self.segments, self._hidden = problem, segments, hidden
        self._field = VectorField.of(problem.model, problem.conditions)
        self._invariants = invariants
        n = len(problem.unknowns)
        states = problem.model.states
        self.free_starts: dict[tuple[int, str], int] = {}
        self.equations: list[tuple[int, str]] = []
        sizes = dict.fromkeys(states, 0.0)
        for index, segment in enumerate(segments):
            for state in states:
                if not segment.at_start:
                    self.free_starts[index, state] = n + len(self.free_starts)
                if state in segment.states:
                    self.equations.append((index, state))
                    size = float(np.abs(segment.states[state]).max())
                    sizes[state] = max(sizes[state], size)
        self.size = n + len(self.free_starts)
        self._recorders: dict[int, Recorder] = {}
        self._recorded: dict[int, tuple[dict[str, Separated], dict[str, Separated]]] = {}
        self._programs: dict[tuple[tuple[int, ...], bool], list[Program]] = {}
        # The unit of a state is its largest magnitude.
        self._units = {state: size or 1.0 for state, size in sizes.items()}

    def residuals(
        self, vector: Array, active: Sequence[int], equations: Collection[int] | None = None
    ) -> tuple[list[Array], list[Array]]:
        """Return residuals, shape (m,), and their derivatives, shape (m, active), by equation.

        `active` are the components with respect to which derivatives are computed; None for
        `equations` means all.
        """
        chosen = range(len(self.equations)) if equations is None else sorted(equations)
        values, derivatives = self.stacked(vector, active, chosen)
        sizes = [len(self.segments[self.equations[k][0]].grid.times) for k in chosen]
        ends = np.cumsum(sizes)[:-1]
        return np.split(values, ends), np.split(derivatives, ends)

    def stacked(
        self,
        vector: Array,
        active: Sequence[int],
        equations: Iterable[int],
        *,
        condensed: bool = False,
    ) -> tuple[Array, Array]:
        """Return the residuals of some equations, stacked, and their derivatives.

        The shapes are (rows,) and (rows, active); indices of equations increase. Rows that are
        `condensed` have the same products as these, see
        :class:`odefit.methods.integral_matching.program.Program`.
        """
        key = tuple(equations), condensed
        if key not in self._programs:
            self._programs[key] = self._programmed(*key)
        parts = [program.evaluate(vector, active) for program in self._programs[key]]
        if len(parts) == 1:
            return parts[0]
        values, derivatives = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(derivatives)

    def _programmed(self, equations: Sequence[int], condensed: bool) -> list[Program]:
        """Return the programs that evaluate some equations, segment by segment."""
        programs = []
        for index, group in groupby(equations, key=lambda k: self.equations[k][0]):
            if index not in self._recorders:
                self._recorders[index] = Recorder(self.segments[index].grid)
            recorder = self._recorders[index]
            names = [self.equations[k][1] for k in group]
            root = np.sqrt(recorder.grid.weights)
            sums = [
                (residual, root / self._units[state])
                for state, residual in self._residuals_of(index, names, recorder).items()
            ]
            programs.append(Program(recorder, sums, condensed=condensed))
        return programs

    def _residuals_of(
        self, index: int, states: Sequence[str], recorder: Recorder
    ) -> dict[str, Separated]:
        """Return the residuals of some states in one segment, recorded, without weights."""
        if index not in self._recorded:
            self._recorded[index] = self._quantities(index, recorder)
        known, start = self._recorded[index]
        right_hand_sides = self._right_hand_sides(known, states, recorder)
        return {
            s: known[s] - start[s] - recorder.integral(f)
            for s, f in zip(states, right_hand_sides, strict=True)
        }

    def _quantities(
        self, index: int, recorder: Recorder
    ) -> tuple[dict[str, Separated], dict[str, Separated]]:
        """Return all names and the initial states in one segment, recorded."""
        model, segment = self.problem.model, self.segments[index]
        condition = self.problem.conditions[segment.condition]
        unknowns = [recorder.unknown(k) for k in range(self.size)]
        known = self._scalars(segment, unknowns, recorder)
        known[TIME] = recorder.known(segment.grid.times)
        for name, signal in condition.inputs.items():
            known[name] = recorder.known(signal(segment.grid.interior))
        start = {s: self._start(index, segment, s, unknowns, recorder) for s in model.states}
        known |= {s: recorder.known(v) for s, v in segment.states.items()}
        hidden = [s for s in model.states if s not in segment.states]
        if hidden:
            known |= self._hidden_states(recorder, known, start, hidden)
        return known, start

    def states_before(self, index: int, vector: Array, time: float) -> dict[str, float]:
        """Return the states at `time` from the free initial states of a later segment.

        The equations are integrated backwards by the classical Runge-Kutta method. If they diverge,
        the states are those at the start of the segment.
        """
        segment, states = self.segments[index], self.problem.model.states
        condition = self.problem.conditions[segment.condition]
        scalars = self._scalars(segment, list(vector), NUMPY)

        def f(t: float, x: Array) -> Array:
            known = dict(scalars) | {TIME: np.float64(t)}
            known |= {n: i(np.array([t]))[0] for n, i in condition.inputs.items()}
            known |= dict(zip(states, x, strict=True))
            return np.array(self._right_hand_sides(known, states, NUMPY), dtype=float)

        first = float(segment.grid.times[0])
        x = start = np.array([vector[self.free_starts[index, s]] for s in states])
        h = (time - first) / BACKWARD_STEPS
        with np.errstate(all="ignore"):
            for k in range(BACKWARD_STEPS):
                t = first + k * h
                a = f(t, x)
                b = f(t + h / 2, x + h / 2 * a)
                c = f(t + h / 2, x + h / 2 * b)
                x = x + h / 6 * (a + 2 * b + 2 * c + f(t + h, x + h * c))
        return dict(zip(states, (x if np.isfinite(x).all() else start).tolist(), strict=True))

    def _scalars(
        self, segment: SmoothedSegment, unknowns: Sequence[Any], algebra: Algebra[Any]
    ) -> dict[str, Any]:
        """Return the values of parameters and constants in a segment."""
        condition = self.problem.conditions[segment.condition]
        parts = scalar_segments(condition, unknowns, {}, algebra)
        return dict([scalars for since, scalars in parts if since <= segment.start][-1])

    def _right_hand_sides(
        self, known: dict[str, Any], states: Iterable[str], algebra: Algebra[Any]
    ) -> list[Any]:
        if self.problem.model.algebraic:
            known = self._field.complete(known, algebra)
        return [self.problem.model.ode[s].evaluate(known, algebra) for s in states]

    def _start(
        self,
        index: int,
        segment: SmoothedSegment,
        state: str,
        unknowns: Sequence[Separated],
        recorder: Recorder,
    ) -> Separated:
        """Return the initial state xi of a segment."""
        if not segment.at_start:
            return unknowns[self.free_starts[index, state]]
        condition = self.problem.conditions[segment.condition]
        start: Separated = bound_value(
            condition.initial[state], condition.scalars, unknowns, recorder
        )
        return start

    def _hidden_states(
        self,
        recorder: Recorder,
        known: dict[str, Separated],
        start: dict[str, Separated],
        hidden: Sequence[str],
    ) -> dict[str, Separated]:
        """Return hidden states from the invariants, whose rates do not depend on them."""
        states = self.problem.model.states
        any_values = {s: recorder.known(np.ones(len(recorder.grid.times))) for s in hidden}
        right_hand_sides = self._right_hand_sides({**known, **any_values}, states, recorder)
        hidden_states = {}
        for s in hidden:
            # w x(t) = w x(start) + the integral of w f; w is 1 for s and 0 for other hidden states.
            total = rate = recorder.known(0.0)
            for j, w in enumerate(self._invariants[self._hidden.index(s)]):
                if w:
                    weight = recorder.known(float(w))
                    total = total + weight * start[states[j]]
                    rate = rate + weight * right_hand_sides[j]
                    if states[j] not in hidden:
                        total = total - weight * known[states[j]]
            hidden_states[s] = total + recorder.integral(rate)
        return hidden_states
