"""Modes of a vector field: the field in force at a point, and the rules for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import DUAL, LIMITS, NUMPY, Dual
from odefit.expressions.expressions import TIME, Expression
from odefit.simulation.engines.engine import Values
from odefit.simulation.modes.sliding import ModeField, mode_field
from odefit.simulation.modes.surfaces import Mode, Surfaces, with_side

MOST_TOGETHER = 6  # largest number of surfaces met at one time

STILL = 1e-12  # rate through a surface, relative to its largest term, that counts as zero

ON_SURFACE = 1e-9
"""Distance to a surface, relative to its largest term, or to the distance covered in a time span,
that counts as zero at the beginning of a motion."""


class Inputs(NamedTuple):
    """Inputs in time: breakpoints between polynomials, as in a segment."""

    breakpoints: Array
    polynomials: Array

    def at(self, times: Array, pieces: IntArray) -> tuple[Array, Array]:
        """Return the inputs and their derivatives at times, on these pieces, shapes (inputs, k)."""
        left, *c = np.moveaxis(self.polynomials[pieces], -1, 0)
        s = times[:, None] - left
        values = c[0] + s * (c[1] + s * (c[2] + s * c[3]))
        return values.T, (c[1] + s * (2.0 * c[2] + s * 3.0 * c[3])).T

    def pieces(self, times: Array) -> IntArray:
        """Return the pieces that apply from these times on."""
        return np.searchsorted(self.breakpoints, times, side="right")


class Crossing(NamedTuple):
    """A surface at a point."""

    value: float  # of its quantity
    normal: Array  # its derivatives with respect to the states, shape (n,)
    by_scalars: Array  # its derivatives with respect to the run-time scalars, shape (p,)
    in_time: float  # its time derivative, through the inputs, with the states fixed
    size: float  # the size of the terms that are subtracted in the quantity

    def rate(self, speed: Array) -> float:
        """Return the time derivative, for states that change with `speed`."""
        return float(self.normal @ speed) + self.in_time

    def changes(self, now: Values) -> Array:
        """Return the derivatives along the directions, shape (m,)."""
        return self.normal @ now.sensitivities + self.by_scalars @ now.scalar_sensitivities


class Guard(NamedTuple):
    """The end of a mode: the point where the expression, times a sign, becomes negative."""

    number: int  # of the surface
    sign: int
    # For a surface off the motion, its quantity, with the side as sign; for a surface along which
    # the motion slides, its share, with the sign 1 for falling below 0, and -1 for exceeding 1.
    of: Expression


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a motion."""

    time: float
    now: Values
    values: Mapping[str, Any]  # of the states, scalars, inputs and the time, by name
    input_rates: Array  # shape (inputs,)


class Modes:
    """The modes of a vector field."""

    def __init__(self, surfaces: Surfaces) -> None:
        self.surfaces = surfaces
        self.count = len(surfaces.quantities)

    def field(self, mode: Mode) -> ModeField:
        """Return the field of a mode that continues."""
        made = mode_field(self.surfaces, mode)
        assert made is not None
        return made

    # At a point --------------------------------------------------------------------------------

    def point(self, time: float, now: Values, inputs: Inputs, piece: int) -> Point:
        """Return the point of a motion at a time, with the inputs of a piece."""
        field = self.surfaces.field
        u, rates = inputs.at(np.array([time]), np.array([piece]))
        values: dict[str, Any] = {TIME: np.float64(time)}
        values |= zip(field.states, now.states, strict=True)
        values |= zip(field.scalars, now.scalars, strict=True)
        values |= zip(field.inputs, u[:, 0], strict=True)
        return Point(time, now, values, rates[:, 0])

    def crossing(self, number: int, point: Point) -> Crossing:
        """Return the quantity of a surface and its derivatives at a point."""
        field, now = self.surfaces.field, point.now
        n, p = len(field.states), len(field.scalars)
        values: dict[str, Dual] = {TIME: Dual(np.float64(point.time), {n + p: 1.0})}
        for k, name in enumerate((*field.states, *field.scalars)):
            values[name] = Dual(point.values[name], {k: 1.0})
        for name, rate in zip(field.inputs, point.input_rates, strict=True):
            values[name] = Dual(point.values[name], {n + p: float(rate)})
        quantity = self.surfaces.quantities[number]
        difference = quantity.evaluate(field.complete(values, DUAL), DUAL)
        by = difference.gradient(n + p + 1)
        size = float(np.abs(by[:n] * now.states).max(initial=abs(float(difference.value))))
        return Crossing(float(difference.value), by[:n], by[n : n + p], float(by[-1]), size)

    def speed(self, mode: Mode, point: Point, only: Sequence[Crossing] | None = None) -> Array:
        """Return the rates of the states in a mode, shape (n,).

        With `only` some surfaces, rates of states that move through none of them are zero.
        """
        made = self.field(mode)
        further = made.field.inputs[len(self.surfaces.field.inputs) :]
        extra = zip(further, point.input_rates[[*made.derived]], strict=True)
        values = made.field.complete({**point.values, **dict(extra)}, LIMITS)
        rates = np.zeros(len(point.now.states))
        for k, equation in enumerate(made.field.model.ode.values()):
            if only is None or any(crossing.normal[k] for crossing in only):
                rates[k] = equation.evaluate(values, LIMITS)
        return rates

    def begin(self, point: Point, span: float) -> tuple[Mode, Values]:
        """Return the mode in which a motion continues from a point, and its values.

        A sliding motion is projected onto its surfaces, with its sensitivities.
        """
        crossings = [self.crossing(k, point) for k in range(self.count)]
        sides = [1 if c.value >= 0.0 else -1 for c in crossings]
        on = []
        for k, c in enumerate(crossings):
            either = [with_side(sides, k, side) for side in (-1, 1)]
            if c.value == 0.0 and np.array_equal(
                self.speed(either[0], point), self._written(point)
            ):
                sides[k] = -1
            passed = max(abs(c.rate(self.speed(m, point, [c]))) for m in either) * span
            if abs(c.value) <= ON_SURFACE * max(c.size, passed if np.isfinite(passed) else 0.0):
                on.append(k)
        mode = self.settled(point, on, tuple(sides), crossings) if on else tuple(sides)
        for k in on:
            if crossings[k].value != 0.0 and mode[k] != 0:
                mode = with_side(mode, k, sides[k])  # not yet crossed, but about to
        now = point.now
        for k in np.flatnonzero(np.equal(mode, 0)).tolist():
            if now.sensitivities.size:
                before = self.speed(with_side(mode, k, sides[k]), point)
                moved = jump(crossings[k], now, before, self.speed(mode, point))
                now = now._replace(sensitivities=now.sensitivities + moved)
            now = self.onto(k, replace(point, now=now))
        return mode, now

    def _written(self, point: Point) -> Array:
        """Return the rates of the states by the equations as they are written."""
        return np.array([float(r) for r in self.surfaces.field.rhs(point.values, NUMPY)])

    def onto(self, number: int, point: Point) -> Values:
        """Return the values of a point projected onto a surface that it misses only by rounding."""
        now, crossing = point.now, self.crossing(number, point)
        if not crossing.normal.any():
            return now
        back = crossing.normal / (crossing.normal @ crossing.normal)
        return now._replace(
            states=now.states - crossing.value * back,
            sensitivities=now.sensitivities - np.outer(back, crossing.changes(now)),
        )

    def settled(
        self, point: Point, on: Sequence[int], sides: Mode, crossings: Sequence[Crossing]
    ) -> Mode:
        """Return the mode that continues from a point on some surfaces.

        `sides` are those of the other surfaces and, for these surfaces, the sides to prefer if the
        motion could continue on either. `crossings` holds all surfaces by number.
        """
        on = list(on)[:MOST_TOGETHER]
        base = [-1 if k in on or s == 0 else s for k, s in enumerate(sides)]
        at = [crossings[k] for k in on]
        below = self.speed(tuple(base), point, at)
        ups = [self.speed(with_side(base, k, 1), point, at) for k in on]
        drift = np.array([c.rate(below) for c in at])
        slopes = np.array([[c.normal @ (up - below) for up in ups] for c in at])
        terms = np.maximum(np.abs(below), np.abs(np.array(ups)).max(axis=0))
        still = STILL * np.array([np.abs(c.normal) @ terms + abs(c.in_time) for c in at])
        modes = []
        for choice in product((-1, 0, 1), repeat=len(on)):
            if _is_consistent(np.array(choice), drift, slopes, still):
                mode = list(base)
                for k, side in zip(on, choice, strict=True):
                    mode[k] = side
                modes.append(tuple(mode))
        modes = [mode for mode in modes if mode_field(self.surfaces, mode) is not None]
        if not modes:
            return tuple(s or -1 for s in sides)
        return max(modes, key=lambda mode: sum(a == b for a, b in zip(mode, sides, strict=True)))

    # Along a motion ----------------------------------------------------------------------------

    def guards(self, mode: Mode) -> list[Guard]:
        """Return the guards that end a mode."""
        shares = self.field(mode).shares
        all_guards = []
        for k, side in enumerate(mode):
            if side:
                all_guards.append(Guard(k, side, self.surfaces.quantities[k]))
            elif shares[k].constant is None:
                all_guards += [Guard(k, 1, shares[k]), Guard(k, -1, shares[k])]
        return all_guards

    def along(
        self,
        mode: Mode,
        times: Array,
        pieces: IntArray,
        states: Array,
        scalars: Array,
        inputs: Inputs,
        guards: Sequence[Guard],
    ) -> tuple[Array, Array]:
        """Return the guards of a mode, which are negative after its end, and their rates.

        They are evaluated at states of shape (k, n), and have shape (guards, k).
        """
        field, made = self.surfaces.field, self.field(mode)
        u, rates = inputs.at(times, pieces)
        plain: dict[str, Any] = {n: states[:, i] for i, n in enumerate(field.states)}
        plain |= zip(field.scalars, scalars, strict=True)
        plain |= {**dict(zip(field.inputs, u, strict=True)), TIME: times}
        extra = dict(zip(made.field.inputs[len(u) :], rates[[*made.derived]], strict=True))
        at = made.field.complete({**plain, **extra}, LIMITS)
        moved = {n: made.field.model.ode[n].evaluate(at, LIMITS) for n in self._moving(guards)}
        moving: dict[str, Dual] = {n: Dual(v) for n, v in {**plain, **extra}.items()}
        moving |= {n: Dual(plain[n], {0: v}) for n, v in moved.items()}
        moving |= {n: Dual(plain[n], {0: v}) for n, v in zip(field.inputs, rates, strict=True)}
        moving[TIME] = Dual(times, {0: 1.0})
        whole = {**field.complete(moving, DUAL), **{n: Dual(v) for n, v in extra.items()}}
        known = {id(e): e.evaluate(whole, DUAL) for e in {id(g.of): g.of for g in guards}.values()}
        quantities, slopes = (
            np.empty((len(guards), len(times))),
            np.empty((len(guards), len(times))),
        )
        for row, (k, sign, expression) in enumerate(guards):
            dual = known[id(expression)]
            value = dual.array(len(times)) - (1.0 if mode[k] == 0 and sign < 0 else 0.0)
            quantities[row], slopes[row] = sign * value, sign * dual.gradient(1, len(times))[:, 0]
        return quantities, slopes

    def _moving(self, guards: Sequence[Guard]) -> list[str]:
        """Return the states whose rates decide those of the guards."""
        model = self.surfaces.field.model
        if model.algebraic:
            return list(model.states)
        used = {name for guard in guards for name in guard.of.names}
        return [name for name in model.states if name in used]


def jump(crossing: Crossing, now: Values, before: Array, after: Array) -> Array:
    """Return the jump of the sensitivities at a surface where the rates of the states jump.

    Its time tau changes by -(dg/dtheta)/(dg/dt), and S+ = S- + (f- - f+) tau' (Rozenvasser 1967).
    """
    rate = crossing.rate(before)
    changes = crossing.changes(now)
    if rate == 0.0 or not changes.any():
        return np.zeros(now.sensitivities.shape)
    return np.outer(before - after, -changes / rate)


def _is_consistent(choice: Array, drift: Array, slopes: Array, still: Array) -> bool:
    """Return whether a motion can continue with these sides, 0 for sliding.

    The quantities of the surfaces have the rates ``drift + slopes @ shares``. A motion can slide
    along surfaces only if the fields lead back to them.
    """
    shares = (choice > 0).astype(float)
    slides = np.flatnonzero(choice == 0)
    if len(slides):
        matrix = slopes[np.ix_(slides, slides)]
        known = drift[slides] + slopes[slides] @ shares
        if not np.isfinite(matrix).all() or np.linalg.eigvals(matrix).real.max() >= 0.0:
            return False
        solution = np.linalg.solve(matrix, -known)
        near = still[slides] / np.abs(np.diag(matrix) + (np.diag(matrix) == 0))
        if (solution < -near).any() or (solution > 1.0 + near).any():
            return False
        shares[slides] = solution
    rates = (drift + slopes @ shares) * choice
    return bool((rates > np.where(choice == 0, -np.inf, still)).all())
