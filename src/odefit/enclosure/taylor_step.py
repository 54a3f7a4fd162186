"""One step of a solution over boxes: its Taylor polynomial in time, and a bound of its error.

A step computes the Taylor polynomial in time of the solution, whose coefficients are polynomials in
the box, and bounds its defect in the equations. That defect and the growth of errors by the
equations (:mod:`odefit.enclosure.error_propagation`) give a bound of the distance to every true
solution. The origin of the polynomial does not matter; only the bound has to be, and is, rounded
upwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_evaluation import TaylorEvaluation
from odefit.enclosure.arithmetic.taylor_models import CONSTANT, Monomials, TaylorModel
from odefit.enclosure.error_propagation import (
    MAX_GROWTH_NORM,
    ErrorBound,
    MovingFrame,
    in_frame_coordinates,
    propagate_componentwise,
    propagate_in_frame,
    zeroed,
)
from odefit.enclosure.state_enclosure import StateEnclosure
from odefit.enclosure.system import Mode, System

JACOBIAN_ORDERS = 3
"""Orders in time to which the Jacobian is expanded; its degree in the box is one."""

MAX_GUESSES = 4
"""Number of guesses of the largest error during a step."""

MAX_USEFUL_ERROR = 1e9
"""Error, in units of the tolerance, above which a state counts as unknown.

Its bound is useless, and would spoil the rounding of states that do not depend on it.
"""

HOPED_GROWTH = 4.0
"""Factor by which steps may be expected to become longer."""


@dataclass(frozen=True, eq=False)
class Constants:
    """All entries of the tape that are constant in time, as Taylor models, by entry.

    Those of the Jacobian are of degree one.
    """

    right_hand_sides: Mapping[int, TaylorModel]
    jacobian: Mapping[int, TaylorModel]

    def take(self, boxes: IntArray) -> Constants:
        """Return the constants in the selected boxes."""
        return Constants(
            {i: m.take(boxes) for i, m in self.right_hand_sides.items()},
            {i: m.take(boxes) for i, m in self.jacobian.items()},
        )


@dataclass(frozen=True, eq=False)
class StepMethod:
    """The method of a system's steps, with `order` coefficients of Taylor polynomials in time.

    `tolerance` is the avoidable error of a whole solution, by state and in its units. A step is too
    long if the norm of step times Jacobian exceeds `step_norm`, and it counts as `step_cost` steps.
    """

    system: System
    monomials: Monomials
    order: int
    tolerance: Array
    step_norm: float
    step_cost: float = 1.0

    @cached_property
    def linear_monomials(self) -> Monomials:
        """The monomials of the Jacobian, whose degree is at most one."""
        return Monomials.of(self.monomials.variables, min(1, self.monomials.degree))

    def constants(self, mode: Mode, unknowns: Mapping[int, TaylorModel], boxes: int) -> Constants:
        """Return the constants of a mode in the boxes of the unknowns."""
        low = self.linear_monomials
        lowered = {i: m.lowered(low) for i, m in unknowns.items()}
        return Constants(
            mode.right_hand_sides.constants(self.monomials, unknowns, boxes),
            mode.jacobian.constants(low, lowered, boxes),
        )


def dependent(unknown: BoolArray, dependence: Array) -> BoolArray:
    """Return unknown states with all states that depend on them, shape (B, n)."""
    return np.asarray(unknown.astype(float) @ dependence.T > 0)


class TaylorStep:
    """One step of some boxes.

    `unknown`, shape (B, n), marks unknown states, first at the beginning and then at the end.
    `accurate` are boxes in which shorter steps would gain little, and `easy` those in which a
    longer step would suffice. `unconfirmed` are those in which the error bound cannot be confirmed
    although the step is short. The step is `too_long` for some states, shape (B, n); a much longer
    step would be for the `limiting` ones. In `stability_limited` boxes only the growth of errors
    limits it.
    """

    def __init__(
        self,
        method: StepMethod,
        mode: Mode,
        constants: Constants,
        states: StateEnclosure,
        unknown: BoolArray,
        begin: float,
        times: Array,
        h: Array,
        span: float,
    ) -> None:
        self._method, self._mode, self._constants = method, mode, constants
        self._begin, self._times, self._h = begin, times, h
        self._boxes, self._unknown_before = len(h), unknown
        polynomials, defect, truncation = self._polynomials(states)
        too_long = self._bound(states, polynomials, defect)
        allowed = method.tolerance[:, None] * (h / span)
        coarse = (truncation > np.maximum(allowed, 0.05 * defect)) & np.isfinite(truncation)
        self.too_long: BoolArray = (too_long | coarse.T) & ~unknown
        self.accurate = ~self.too_long.any(axis=1)
        exact = truncation <= 0.02 * allowed
        self.stability_limited = exact.all(0) & ~self.easy & ~self.unknown.all(axis=1)
        self.easy &= exact.all(0)
        self.limiting |= ~exact.T

    def _time_and_inputs(self, length: int, monomials: Monomials) -> dict[int, TaylorModel]:
        """Return time and inputs as polynomials in s with `length` coefficients."""
        system, h = self._method.system, self._h
        clock = np.zeros((len(monomials), length, self._boxes))
        clock[0, 0] = self._times
        rest = 4 * UNIT_ROUNDOFF * (np.abs(self._times) + h)
        if length > 1:
            clock[0, 1] = h
        else:
            rest = (rest + h) * ROUNDING_MARGIN
        models = {system.time: TaylorModel(monomials, clock, CONSTANT, rest)}
        for name, entry in system.inputs.items():
            p, start = system.input_polynomial(name, self._begin)
            offset = self._times - start
            shifted = (
                np.stack(
                    [
                        p[0] + offset * (p[1] + offset * (p[2] + offset * p[3])),
                        p[1] + offset * (2 * p[2] + 3 * offset * p[3]),
                        p[2] + 3 * offset * p[3],
                        np.full(self._boxes, p[3]),
                    ]
                )
                * h ** np.arange(4)[:, None]
            )
            c = np.zeros((len(monomials), length, self._boxes))
            terms = min(4, length)
            c[0, :terms] = shifted[:terms]
            size = sum(abs(p[j]) * (np.abs(offset) + h) ** j for j in range(4))
            rest = np.abs(shifted[terms:]).sum(0) + 32 * UNIT_ROUNDOFF * size + UNDERFLOW
            models[entry] = TaylorModel(monomials, c, CONSTANT, rest * ROUNDING_MARGIN)
        return models

    def _polynomials(self, states: StateEnclosure) -> tuple[Array, Array, Array]:
        """Return Taylor polynomials of the states, shape (n, M, K, B), and their defects.

        The defects times the step, and their parts that shorter steps would reduce, have shape (n,
        B).
        """
        method, h, unknown = self._method, self._h, self._unknown_before.T
        order, monomials = method.order, method.monomials
        n, m, boxes = states.c.shape
        t = np.zeros((n, m, order, boxes))
        t[:, :, 0] = states.c
        nothing = np.zeros(boxes)
        known = (~unknown).astype(float)
        values = dict(self._constants.right_hand_sides)
        values |= self._time_and_inputs(order, monomials)
        for i, entry in enumerate(method.system.states):
            values[entry] = TaylorModel(monomials, t[i])
        program = self._mode.right_hand_sides
        evaluation = TaylorEvaluation(program, monomials, order, values)
        targets = [evaluation.values[term.index] for term in program.terms]
        with np.errstate(all="ignore"):
            for k in range(order):
                evaluation.compute_order(k)
                if k + 1 < order:
                    for i, target in enumerate(targets):
                        if k < target.c.shape[1]:
                            t[i, :, k + 1] = target.c[:, k] * (known[i] * h / (k + 1))
            evaluation.bound()
            defect, truncation = np.zeros((n, boxes)), np.zeros((n, boxes))
            for i, term in enumerate(program.terms):
                f = evaluation.values[term.index]
                top = np.abs(f.c[:, order - 1]).sum(0) if f.c.shape[1] == order else nothing
                truncation[i] = h * (top + f.truncation)
                rounding = 8 * UNIT_ROUNDOFF * order * np.abs(t[i]).sum((0, 1))
                whole = np.abs(f.c).sum((0, 1)) * 4 * UNIT_ROUNDOFF
                total = h * (top + f.remainder + whole) + rounding
                defect[i] = total * ROUNDING_MARGIN + UNDERFLOW
        defect[unknown] = truncation[unknown] = 0.0
        t[unknown.nonzero()[0], :, :, unknown.nonzero()[1]] = 0.0
        lost = ~np.isfinite(t).all((1, 2)) | np.isnan(defect)
        if lost.any():
            defect[lost] = np.inf
            truncation[lost] = np.inf
            t = np.where(np.isfinite(t), t, 0.0)
        return t, defect, truncation

    def _bound(self, states: StateEnclosure, t: Array, defect: Array) -> BoolArray:
        """Bound the distance of true solutions from the polynomials at the end of the step.

        Returns the states for which the step is too long, shape (B, n).
        """
        before, dependence, error = self._unknown_before, self._mode.dependence, states.error
        defect = defect.T
        guess = 1.5 * error.sizes + 2.0 * defect + 4 * UNDERFLOW
        for attempt in range(MAX_GUESSES):
            middle, upper, variation = self._jacobian(t, guess.T)
            norms = np.abs(upper).sum(axis=2)
            # Nothing can be known of these states; the others do not depend on them.
            out = before | ~(norms <= MAX_GROWTH_NORM / 2) | ~np.isfinite(defect)
            out = dependent(out, dependence)
            after, during = propagate_componentwise(
                zeroed(upper, out), np.where(out, 0.0, error.sizes), np.where(out, 0.0, defect)
            )
            held = during <= guess
            if (held | ~np.isfinite(during) | out).all() or attempt == MAX_GUESSES - 1:
                break
            guess = np.where(held | out, guess, 1.3 * during + 0.1 * guess)
        # The Jacobian is bounded for errors up to the guess, which must therefore be confirmed.
        useless = ~(after <= MAX_USEFUL_ERROR * self._method.tolerance)
        unknown = dependent(out | ~(held & np.isfinite(during)) | useless, dependence)
        rounding = 4 * UNIT_ROUNDOFF * t.shape[2] * np.abs(t).sum((1, 2)).T + UNDERFLOW
        frame = MovingFrame(zeroed(middle, unknown))
        if unknown.any():
            error, defect = error.without(unknown), np.where(unknown, 0.0, defect)
        framed = propagate_in_frame(frame, zeroed(variation, unknown), error, defect)
        sizes = (np.minimum(after, framed.sizes) + rounding) * ROUNDING_MARGIN
        sizes = np.where(unknown, 0.0, sizes)
        back = np.abs(np.swapaxes(framed.frame, 1, 2))
        seen = np.matmul(back, sizes[:, :, None])[:, :, 0] * ROUNDING_MARGIN
        added = np.matmul(back, rounding[:, :, None])[:, :, 0] * ROUNDING_MARGIN
        lengths = np.minimum(
            (framed.lengths + in_frame_coordinates(framed.frame, added)) * ROUNDING_MARGIN,
            in_frame_coordinates(framed.frame, seen),
        )
        end = np.where(unknown.T[:, None], 0.0, t.sum(axis=2))
        error = ErrorBound(sizes, framed.frame, lengths)
        self.end = StateEnclosure(states.monomials, end, error)
        self.unknown: BoolArray = unknown
        # Around the middle, the Jacobian may be large because the guess of the error is.
        centre = np.where(before, 0.0, np.abs(middle).sum(axis=(0, 3))).max(axis=1)
        most = self._method.step_norm
        self.unconfirmed: BoolArray = (centre <= most) & (unknown & ~before).any(axis=1)
        self.limiting: BoolArray = norms > most / HOPED_GROWTH
        self.easy: BoolArray = np.where(before, 0.0, norms).max(axis=1) <= 0.5 * most
        return np.asarray(unknown | (norms > most))

    def _jacobian(self, t: Array, guess: Array) -> tuple[Array, Array, Array]:
        """Return bounds of the Jacobian times the step, for errors up to a guess, shape (n, B).

        `middle`, shape (k, B, n, n), is that of the middle of the boxes by order of s. `upper` has
        the diagonal from above and the other entries in magnitude. `variation` is the distance from
        the middle over the box.
        """
        h, low, n = self._h, self._method.linear_monomials, len(t)
        m, length = len(low), min(JACOBIAN_ORDERS, t.shape[2])
        values = {**self._constants.jacobian, **self._time_and_inputs(length, low)}
        for i, entry in enumerate(self._method.system.states):
            rest = np.abs(t[i, m:]).sum((0, 1)) + np.abs(t[i, :m, length:]).sum((0, 1)) + guess[i]
            values[entry] = TaylorModel(low, t[i, :m, :length], None, rest * ROUNDING_MARGIN)
        program = self._mode.jacobian
        evaluation = TaylorEvaluation(program, low, length, values)
        with np.errstate(all="ignore"):
            for k in range(length):
                evaluation.compute_order(k)
            evaluation.bound()
        middle = np.zeros((length, self._boxes, n, n))
        upper = np.zeros((self._boxes, n, n))
        variation = np.zeros((self._boxes, n, n))
        for number, term in enumerate(program.terms):
            i, j = divmod(number, n)
            a = evaluation.values[term.index]
            c = np.abs(a.c)
            constant = c[0].sum(0)
            varying = c[1:].sum((0, 1)) + a.remainder + 8 * UNIT_ROUNDOFF * constant
            varying = varying * ROUNDING_MARGIN
            middle[: a.c.shape[1], :, i, j] = a.c[0] * h
            variation[:, i, j] = varying * h * ROUNDING_MARGIN + UNDERFLOW
            if i == j:
                # During the step, the orders of s beyond the first add their positive parts.
                top = a.c[0, 0] + np.maximum(a.c[0, 1:], 0.0).sum(0) + varying
            else:
                top = constant + varying
            top += 16 * UNIT_ROUNDOFF * constant
            upper[:, i, j] = top * h + np.abs(top * h) * (ROUNDING_MARGIN - 1) + UNDERFLOW
        lost = ~np.isfinite(variation)
        variation = np.where(lost, np.inf, variation)
        upper = np.where(np.isfinite(upper), upper, np.inf)
        return middle, upper, variation
