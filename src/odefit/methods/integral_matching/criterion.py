"""The integral criterion (5): how far smoothed states are from solving the equations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from odefit.methods.integral_matching.segments import Segment
from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array
from odefit.problem.binding import bound_value
from odefit.problem.expressions import TIME
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.segments import scalar_segments

BACKWARD_STEPS = 50
"""The number of integration steps from the first measurement back to the initial values."""


class IntegralCriterion:
    """x-hat(t) - xi - the integral of F(x-hat(s); theta), weighted, in all segments and states.

    Parameters
    ----------
    problem, segments
        The problem and its smoothed states.
    hidden
        Names of the states that some condition does not measure.
    invariants
        Combinations of right-hand sides that depend on the other states alone, shape
        (hidden, states), see :mod:`odefit.structure.invariants`.

    Attributes
    ----------
    size
        Length of the vectors it takes: the unknowns, then the free initial states of segments
        after events.
    free_starts
        By index of a segment and name of a state, the index of a free initial state in these
        vectors.
    equations
        Index of the segment and name of the state, by block of residuals.
    """

    def __init__(
        self,
        problem: Problem,
        segments: Sequence[Segment],
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
        self._roots = [np.sqrt(s.grid.weights) for s in segments]
        # A state counts in units of its largest magnitude.
        self._units = {state: size or 1.0 for state, size in sizes.items()}

    def residuals(
        self, vector: Array, active: Sequence[int], equations: Collection[int] | None = None
    ) -> tuple[list[Array], list[Array]]:
        """Return residuals and their derivatives, equation by equation.

        Parameters
        ----------
        vector
            Unknowns and free initial states, shape (size,).
        active
            Indices of the components by which derivatives are wanted.
        equations
            Indices of the equations that are wanted, returned in their order; None for all.

        Returns
        -------
        tuple
            Arrays of shape (m,), and arrays of shape (m, active).
        """
        column = {k: i for i, k in enumerate(active)}
        unknowns = [
            Dual(v, {column[k]: 1.0} if k in column else None) for k, v in enumerate(vector)
        ]
        values: list[Array] = []
        derivatives: list[Array] = []
        with np.errstate(all="ignore"):
            for index, root in enumerate(self._roots):
                own = [
                    state
                    for k, (segment, state) in enumerate(self.equations)
                    if segment == index and (equations is None or k in equations)
                ]
                if not own:
                    continue
                for state, residual in self._residuals_of(index, unknowns, own).items():
                    weight = root / self._units[state]
                    values.append(weight * residual.array(len(root)))
                    gradient = residual.gradient(len(active), len(root))
                    derivatives.append(weight[:, None] * gradient)
        return values, derivatives

    def _residuals_of(
        self, index: int, unknowns: Sequence[Dual], own: Sequence[str]
    ) -> dict[str, Dual]:
        """Return the residuals of some states in one segment, without weights."""
        model, segment = self.problem.model, self.segments[index]
        condition = self.problem.conditions[segment.condition]
        known = self._scalars(segment, unknowns)
        known[TIME] = Dual(segment.grid.times)
        for name, given in condition.inputs.items():
            known[name] = Dual(given(segment.grid.interior))
        start = {s: self._start(index, segment, s, unknowns) for s in model.states}
        known |= {s: Dual(v) for s, v in segment.states.items()}
        hidden = [s for s in model.states if s not in segment.states]
        if hidden:
            known |= self._hidden_states(segment, known, start, hidden)
        right_hand_sides = self._right_hand_sides(known, own)
        return {
            s: known[s] - start[s] - self._integral(segment, f)
            for s, f in zip(own, right_hand_sides, strict=True)
        }

    def states_before(self, index: int, vector: Array, time: float) -> dict[str, float]:
        """Return the states at `time` from the free initial states of a later segment.

        The equations are integrated backwards by the classical Runge-Kutta method. Where they lead
        to infinity, the states are those at the start of the segment.
        """
        segment, states = self.segments[index], self.problem.model.states
        condition = self.problem.conditions[segment.condition]
        scalars = self._scalars(segment, [Dual(v) for v in vector])

        def f(t: float, x: Array) -> Array:
            known = dict(scalars) | {TIME: Dual(t)}
            known |= {n: Dual(float(i(np.array([t]))[0])) for n, i in condition.inputs.items()}
            known |= {s: Dual(v) for s, v in zip(states, x, strict=True)}
            return np.array(
                [float(np.asarray(r.value)) for r in self._right_hand_sides(known, states)]
            )

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

    def _scalars(self, segment: Segment, unknowns: Sequence[Dual]) -> dict[str, Dual]:
        """Return parameters and constants as they are in a segment."""
        condition = self.problem.conditions[segment.condition]
        parts = scalar_segments(condition, unknowns, {}, DUAL)
        return dict([scalars for since, scalars in parts if since <= segment.start][-1])

    def _right_hand_sides(self, known: dict[str, Dual], states: Iterable[str]) -> list[Dual]:
        if self.problem.model.algebraic:
            known = self._field.complete(known, DUAL)
        return [self.problem.model.ode[s].evaluate(known, DUAL) for s in states]

    def _start(self, index: int, segment: Segment, state: str, unknowns: Sequence[Dual]) -> Dual:
        """Return the initial state xi of a segment."""
        if not segment.at_start:
            return unknowns[self.free_starts[index, state]]
        condition = self.problem.conditions[segment.condition]
        start: Dual = bound_value(condition.initial[state], condition.scalars, unknowns, DUAL)
        return start

    def _integral(self, segment: Segment, integrand: Dual) -> Dual:
        """Return the integral from the start of a segment to all points of its grid."""
        grid, m = segment.grid, len(segment.grid.times)
        keys = list(integrand.partials)
        rows = [
            integrand.array(m),
            *(np.broadcast_to(integrand.partials[k], (m,)) for k in keys),
        ]
        integrals = grid.cumulative(np.array(rows))
        return Dual(integrals[0], dict(zip(keys, integrals[1:], strict=True)))

    def _hidden_states(
        self,
        segment: Segment,
        known: dict[str, Dual],
        start: dict[str, Dual],
        hidden: Sequence[str],
    ) -> dict[str, Dual]:
        """Return hidden states by the invariants, whose rates do not depend on them."""
        states = self.problem.model.states
        any_values = {s: Dual(np.ones(len(segment.grid.times))) for s in hidden}
        right_hand_sides = self._right_hand_sides({**known, **any_values}, states)
        found = {}
        for s in hidden:
            # w x(t) = w x(start) + the integral of w f; w is 1 for s and 0 for other hidden states.
            total = rate = Dual(np.zeros(len(segment.grid.times)))
            for j, w in enumerate(self._invariants[self._hidden.index(s)]):
                if w:
                    total = total + Dual(w) * start[states[j]]
                    rate = rate + Dual(w) * right_hand_sides[j]
                    if states[j] not in hidden:
                        total = total - Dual(w) * known[states[j]]
            found[s] = total + self._integral(segment, rate)
        return found
