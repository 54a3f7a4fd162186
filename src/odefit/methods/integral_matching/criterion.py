"""The integral criterion (5): how far smoothed states are from solving the equations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from odefit.methods.integral_matching.curves import Piece
from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array
from odefit.problem.binding import bound_value
from odefit.problem.expressions import TIME
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.segments import scalar_segments

BACKWARD = 50
"""Steps from the first measurement back to the initial values."""


class Criterion:
    """x-hat(t) - xi - the integral of F(x-hat(s); theta), weighted, over all pieces and states.

    Parameters
    ----------
    problem, pieces
        The problem and its smoothed states.
    hidden
        States that some condition does not measure.
    invariants
        Combinations of right-hand sides that depend on the other states alone, shape
        (hidden, states), see :mod:`odefit.structure.invariants`.

    Attributes
    ----------
    size
        Length of the vectors it takes: the unknowns, then the free starts of pieces after
        events.
    equations
        Piece and state of each block of residuals.
    """

    def __init__(
        self, problem: Problem, pieces: Sequence[Piece], hidden: Sequence[str], invariants: Array
    ) -> None:
        self.problem, self.pieces, self._hidden = problem, pieces, hidden
        self._field = VectorField.of(problem.model, problem.conditions)
        self._invariants = invariants
        self._n = len(problem.unknowns)
        states = problem.model.states
        self.starts: dict[tuple[int, str], int] = {}
        self.equations: list[tuple[int, str]] = []
        for number, piece in enumerate(pieces):
            for state in states:
                if not piece.begins:
                    self.starts[number, state] = self._n + len(self.starts)
                if state in piece.states:
                    self.equations.append((number, state))
        self.size = self._n + len(self.starts)
        self._roots = [np.sqrt(p.grid.weights) for p in pieces]
        scale = self._scales()
        self._scales_of = {eq: scale[eq[1]] for eq in self.equations}

    def _scales(self) -> dict[str, float]:
        """By state, what a residual counts as one: the largest magnitude."""
        found: dict[str, float] = {}
        for piece in self.pieces:
            for state, values in piece.states.items():
                found[state] = max(found.get(state, 0.0), float(np.abs(values).max()))
        return {state: size or 1.0 for state, size in found.items()}

    def residuals(
        self, vector: Array, active: Sequence[int], wanted: Collection[int] | None = None
    ) -> tuple[list[Array], list[Array]]:
        """Residuals and their derivatives by the `active` components, equation by equation.

        Of the equations of these numbers alone, in their order, if `wanted` is given.

        Returns
        -------
        Arrays of shape (m,) and (m, active).
        """
        place = {k: i for i, k in enumerate(active)}
        unknowns = [Dual(v, {place[k]: 1.0} if k in place else None) for k, v in enumerate(vector)]
        count = len(active)
        values: list[Array] = []
        slopes: list[Array] = []
        with np.errstate(all="ignore"):
            for number, piece in enumerate(self.pieces):
                own = [
                    state
                    for k, (of, state) in enumerate(self.equations)
                    if of == number and (wanted is None or k in wanted)
                ]
                if not own:
                    continue
                root = self._roots[number]
                for state, residual in self._piece(number, piece, unknowns, own).items():
                    weight = root / self._scales_of[number, state]
                    values.append(weight * residual.array(len(root)))
                    slopes.append(weight[:, None] * residual.gradient(count, len(root)))
        return values, slopes

    def _piece(
        self, number: int, piece: Piece, unknowns: Sequence[Dual], own: Sequence[str]
    ) -> dict[str, Dual]:
        model = self.problem.model
        condition = self.problem.conditions[piece.condition]
        parts = scalar_segments(condition, unknowns, {}, DUAL)
        known = dict([scalars for since, scalars in parts if since <= piece.since][-1])
        known[TIME] = Dual(piece.grid.times)
        for name, given in condition.inputs.items():
            known[name] = Dual(given(piece.grid.inside))
        start = {s: self._start(number, piece, s, unknowns) for s in model.states}
        known |= {s: Dual(v) for s, v in piece.states.items()}
        hidden = [s for s in model.states if s not in piece.states]
        if hidden:
            known |= self._recovered(piece, known, start, hidden)
        rates = self._rates(known, own)
        return {
            s: known[s] - start[s] - self._integral(piece, rate)
            for s, rate in zip(own, rates, strict=True)
        }

    def before(self, number: int, vector: Array, time: float) -> dict[str, float]:
        """States at `time` from those at the start of a piece, by Runge and Kutta's rule.

        As they are at the start of the piece where the equations lead to infinity.
        """
        piece, states = self.pieces[number], self.problem.model.states
        condition = self.problem.conditions[piece.condition]
        unknowns = [Dual(v) for v in vector]
        parts = scalar_segments(condition, unknowns, {}, DUAL)
        scalars = [found for since, found in parts if since <= piece.since][-1]

        def slope(t: float, x: Array) -> Array:
            known = dict(scalars) | {TIME: Dual(t)}
            known |= {n: Dual(float(i(np.array([t]))[0])) for n, i in condition.inputs.items()}
            known |= {s: Dual(v) for s, v in zip(states, x, strict=True)}
            return np.array([float(np.asarray(r.value)) for r in self._rates(known, states)])

        first = float(piece.grid.times[0])
        x = begin = np.array([vector[self.starts[number, s]] for s in states])
        h = (time - first) / BACKWARD
        with np.errstate(all="ignore"):
            for k in range(BACKWARD):
                t = first + k * h
                a = slope(t, x)
                b = slope(t + h / 2, x + h / 2 * a)
                c = slope(t + h / 2, x + h / 2 * b)
                x = x + h / 6 * (a + 2 * b + 2 * c + slope(t + h, x + h * c))
        found = x if np.isfinite(x).all() else begin
        return dict(zip(states, found.tolist(), strict=True))

    def _rates(self, known: dict[str, Dual], own: Iterable[str]) -> list[Dual]:
        if self.problem.model.algebraic:
            known = self._field.complete(known, DUAL)
        return [self.problem.model.ode[s].evaluate(known, DUAL) for s in own]

    def _start(self, number: int, piece: Piece, state: str, unknowns: Sequence[Dual]) -> Dual:
        if not piece.begins:
            return unknowns[self.starts[number, state]]
        condition = self.problem.conditions[piece.condition]
        found: Dual = bound_value(condition.initial[state], condition.scalars, unknowns, DUAL)
        return found

    def _integral(self, piece: Piece, rate: Dual) -> Dual:
        grid, m = piece.grid, len(piece.grid.times)
        keys = list(rate.partials)
        rows = [rate.array(m), *(np.broadcast_to(rate.partials[k], (m,)) for k in keys)]
        sums = grid.cumulative(np.array(rows))
        return Dual(sums[0], dict(zip(keys, sums[1:], strict=True)))

    def _recovered(
        self, piece: Piece, known: dict[str, Dual], start: dict[str, Dual], hidden: Sequence[str]
    ) -> dict[str, Dual]:
        """States that are not measured, from combinations whose rates do not depend on them."""
        states = self.problem.model.states
        blank = {s: Dual(np.ones(len(piece.grid.times))) for s in hidden}
        rates = self._rates({**known, **blank}, states)
        found = {}
        for s in hidden:
            # w x(t) = w x(start) + the integral of w f, w one for s and zero for what is hidden.
            total = rate = Dual(np.zeros(len(piece.grid.times)))
            for j, w in enumerate(self._invariants[self._hidden.index(s)]):
                if w:
                    total = total + Dual(w) * start[states[j]]
                    rate = rate + Dual(w) * rates[j]
                    if states[j] not in hidden:
                        total = total - Dual(w) * known[states[j]]
            found[s] = total + self._integral(piece, rate)
        return found
