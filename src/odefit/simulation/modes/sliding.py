"""The fields of sliding motions: Filippov's combinations, written as equations.

If the fields on both sides of a surface g = 0 point at it, the motion stays in it. The right-hand
side is the combination f = f- + s (f+ - f-) along which g does not change, with a share s from 0 to
1 (Filippov 1988, chapter 2). An example is a mass held by friction: its velocity rests. Along
several surfaces at once the shares solve linear equations together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

from odefit.expressions.expressions import TIME, Expression
from odefit.expressions.formulas import PARTS, Part, evaluated, name
from odefit.expressions.time_derivatives import ONE, ZERO, time_derivative
from odefit.problem.vector_field import VectorField, with_equations
from odefit.simulation.modes.surfaces import Mode, Surfaces, with_side

RATE = "__rate_"
"""The names of inputs that are the derivatives of others in time begin with this."""


@dataclass(frozen=True, eq=False)
class ModeField:
    """The field of a mode."""

    field: VectorField
    # The shares of the fields on the positive sides, by surface of the sliding motion.
    shares: Mapping[int, Expression]
    # Numbers of the inputs whose derivatives in time are further inputs.
    derived: tuple[int, ...] = ()


@lru_cache(maxsize=256)
def mode_field(surfaces: Surfaces, sides: Mode) -> ModeField | None:
    """Return the field for the side of each surface, or 0 for sliding along it.

    Returns None if no combination of the fields keeps the motion in the surfaces.
    """
    sliding = [k for k, side in enumerate(sides) if side == 0]
    base = tuple(side or -1 for side in sides)
    if not sliding:
        return ModeField(surfaces.on(base), {})
    field = surfaces.field
    below = _Written.of(surfaces.on(base))
    above = [_Written.of(surfaces.on(with_side(base, k, 1))) for k in sliding]
    jumps = [
        [
            ZERO if a.program == b.program else a - b
            for a, b in zip(up.rates, below.rates, strict=True)
        ]
        for up in above
    ]
    quantities = [below.without_algebraic(surfaces.quantities[k]) for k in sliding]
    moving = {
        n: k
        for k, n in enumerate(field.inputs)
        if field.model.inputs[n] != "constant" and any(n in q.names for q in quantities)
    }
    in_time = {TIME: ONE, **{n: name(RATE + n) for n in moving}}
    states = field.states
    drift = [
        time_derivative(q, {**in_time, **dict(zip(states, below.rates, strict=True))})
        for q in quantities
    ]
    slopes = [
        [time_derivative(q, dict(zip(states, jump, strict=True))) for jump in jumps]
        for q in quantities
    ]
    shares = _solved(slopes, [-d for d in drift])
    if shares is None:
        return None
    pinned = {n for q in quantities if (n := _only(q, field)) is not None}
    ode = {}
    for i, state in enumerate(states):
        terms = [s * jump[i] for s, jump in zip(shares, jumps, strict=True)]
        rate = ZERO if state in pinned else reduce(Part.__add__, terms, below.rates[i])
        ode[state] = rate.expression()
    model = with_equations(field.model, ode, {}, tuple(RATE + n for n in moving))
    slid = VectorField.eliminated(model, field.scalars, field.folded)
    expressions = {k: share.expression() for k, share in zip(sliding, shares, strict=True)}
    return ModeField(slid, expressions, tuple(moving.values()))


@dataclass(frozen=True, eq=False)
class _Written:
    """A field written with states, inputs, run-time scalars and numbers alone."""

    rates: list[Part]
    names: Mapping[str, Part]

    @classmethod
    def of(cls, field: VectorField) -> _Written:
        plain = {n: name(n) for n in (*field.states, *field.inputs, *field.scalars, TIME)}
        return cls(field.rhs(plain, PARTS), field.complete(plain, PARTS))

    def without_algebraic(self, expression: Expression) -> Expression:
        return evaluated(expression, self.names).expression()


def _only(quantity: Expression, field: VectorField) -> str | None:
    """Return the state on which a quantity depends, if nothing else moves the quantity."""
    moving = quantity.names & {*field.states, *field.inputs, TIME}
    only = next(iter(moving)) if len(moving) == 1 else None
    return only if only in field.states else None


def _solved(matrix: list[list[Part]], right: list[Part]) -> list[Part] | None:
    """Return the symbolic solution of linear equations; None if they are singular as written."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    count = len(rows)
    for k in range(count):
        pivot = next((i for i in range(k, count) if rows[i][k].number != 0.0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(count):
            if i != k and rows[i][k].number != 0.0:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
