"""Solutions over whole boxes of unknowns: Taylor models that hold in continuous time.

A step computes the Taylor polynomial in time of the solution, whose coefficients are polynomials in
the box, and bounds how far it is from solving the equations: from that defect, and from how the
equations contract or stretch deviations (:mod:`odefit.enclosure.error_propagation`), follows a
bound of the distance to every true solution. The polynomial may come from anywhere; only the bound
has to be, and is, rounded upwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.enclosure.error_propagation import (
    MAX_STEP_NORM,
    ErrorBound,
    Frame,
    componentwise,
    coordinates,
    framed,
    without,
)
from odefit.enclosure.intervals import Interval
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.system import Mode, System
from odefit.enclosure.taylor_evaluation import TaylorEvaluation
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array, BoolArray

SHORT = 2.0**-12
"""Of a stretch: steps are not made shorter, and are then taken as they are."""

MOST_STEPS = 400
"""Steps that are tried in a box: where that is not enough, nothing is known of what follows."""

PATIENT = 4.0
"""How many times longer than now steps are hoped to become."""

MOST_DOUBTS = 2
"""Short steps without a confirmed bound of the deviation, after which nothing is known."""

SLOPE_ORDERS = 3
"""Orders in time to which the Jacobian is expanded; its degree in the box is one."""

TRIES = 4
"""Attempts at guessing how large the deviation gets during a step."""

USELESS = 1e9
"""Deviation, in units of the tolerance, of which nothing better is known than nothing: it would
leave its traces in the rounding of states that do not depend on it."""

STRONG = 1.5
"""Norm of step times Jacobian for which a step is too long."""


@dataclass(frozen=True, eq=False)
class StateEnclosure:
    """States at one time in all boxes.

    Attributes
    ----------
    c
        Polynomials in the box, shape (n, M, B).
    spread
        Where the true states are around them.
    """

    c: Array
    spread: ErrorBound

    def models(self, ranges: Sequence[Interval] | None = None) -> list[TaylorModel]:
        """As Taylor models, constant in time; by `ranges` where nothing else is known."""
        found = []
        for i, c in enumerate(self.c):
            size = self.spread.sizes[:, i]
            if ranges is not None:
                middle, radius = ranges[i].middle()
                use = ~np.isfinite(size) & np.isfinite(radius)
                if use.any():
                    c = np.where(use, 0.0, c)
                    c[0] = np.where(use, middle, c[0])
                    size = np.where(use, radius, size)
            found.append(TaylorModel(c[:, None, :], None, size, np.zeros(len(size))))
        return found

    def ranges(self) -> list[Interval]:
        """As intervals."""
        radius = (np.abs(self.c[:, 1:]).sum(axis=1) + self.spread.sizes.T) * ROUNDING_MARGIN
        return [Interval.around(c[0], r) for c, r in zip(self.c, radius, strict=True)]


class Flow:
    """Solutions of one system over boxes.

    Parameters
    ----------
    system
        The equations.
    monomials
        In the unknowns.
    order
        Of the Taylor polynomials in time.
    tolerance
        Error that shorter steps could avoid, in units of the states, of a whole solution.
    """

    def __init__(self, system: System, monomials: Monomials, order: int, tolerance: Array) -> None:
        self._system, self._monomials, self._order = system, monomials, order
        self._tolerance = tolerance
        self._reach: dict[Mode, Array] = {}
        self._low = Monomials.of(monomials.variables, min(1, monomials.degree))

    def advance(
        self,
        position: StateEnclosure,
        unknowns: Mapping[int, TaylorModel],
        since: float,
        until: float,
        steps: Array,
        effort: Array,
        price: Array | None = None,
    ) -> StateEnclosure:
        """From one time to another, between which nothing jumps.

        Parameters
        ----------
        unknowns
            Taylor models by entry of the tape.
        steps
            Step sizes to try, shape (B,); changed to those that were found good.
        effort
            Steps that were tried so far, shape (B,); counted on.
        price
            How many a step counts for that is short for stability alone, shape (B,); 1 by default.
        """
        boxes = position.c.shape[2]
        dear = np.ones(boxes) if price is None else price
        motion = self._system.motion(since)
        if motion not in self._reach:
            self._reach[motion] = motion.order(len(position.c))[1]
        reach = self._reach[motion]
        still = motion.rates.still(self._monomials, unknowns, boxes)
        low = {i: lowered(m, self._low) for i, m in unknowns.items()}
        slow = motion.slopes.still(self._low, low, boxes)
        lost = carried(~np.isfinite(position.spread.sizes), reach)
        c = np.where(lost.T[:, None], 0.0, position.c)
        spread = position.spread.without(lost)
        span = until - since
        now = np.where(lost.all(axis=1), until, since)
        shortest = max(SHORT * span, 4 * float(np.spacing(max(abs(since), abs(until)))))
        while True:
            active = np.flatnonzero(now < until)
            if not len(active):
                return StateEnclosure(c, spread.unknown(lost))
            left = until - now[active]
            count = np.ceil(left / steps[active] - 1e-9)
            # Steps go from one floating-point time to another: no time is lost by rounding.
            ends = now[active] + left / np.maximum(count, 1)
            ends = np.maximum(ends, np.nextafter(now[active], np.inf))
            ends = np.where(count <= 1, until, np.minimum(ends, until))
            h = ends - now[active]
            part = StateEnclosure(c[:, :, active], spread.take(active))
            taken = len(active) < boxes
            step = _Step(
                self,
                motion,
                {i: m.take(active) for i, m in still.items()} if taken else still,
                {i: m.take(active) for i, m in slow.items()} if taken else slow,
                part,
                lost[active],
                reach,
                since,
                now[active],
                h,
                h / span,
            )
            price = np.where(step.stiff, dear[active], 1.0)
            effort[active] += np.where(step.doubtful, MOST_STEPS / MOST_DOUBTS, price)
            # At this size, too many would be left: better to know it now.
            ahead = effort[active] + price * (until - ends) / (PATIENT * h)
            tired = ahead > MOST_STEPS
            fine = step.fine | (h <= shortest) | tired
            done = active[fine]
            c[:, :, done] = step.end.c[:, :, fine]
            spread.put(done, step.end.spread.take(np.flatnonzero(fine)))
            now[done] = ends[fine]
            steps[active[~fine]] = h[~fine] / 2
            easy = fine & step.easy
            steps[active[easy]] = np.maximum(steps[active[easy]], 1.5 * h[easy])
            # What holds the others up is given up, with all that depends on it.
            gone = step.lost | (tired[:, None] & step.blamed)
            for others in (step.slow, True):
                gone |= (tired & ~(gone & ~lost[active]).any(axis=1))[:, None] & others
            gone = carried(gone, reach) & fine[:, None]
            fewer = (gone & ~lost[active]).any(axis=1)
            if fewer.any():
                own = active[fewer]
                lost[own] |= gone[fewer]
                c[:, :, own] = np.where(lost[own].T[:, None], 0.0, c[:, :, own])
                spread.put(own, spread.take(own).without(lost[own]))
                steps[own] = span
                effort[own] = np.minimum(effort[own], MOST_STEPS / 2)
                now[own[lost[own].all(axis=1)]] = until


def carried(lost: BoolArray, reach: Array) -> BoolArray:
    """States of which nothing is known any more, and those that depend on them, shape (B, n)."""
    return np.asarray(lost.astype(float) @ reach.T > 0)


def lowered(model: TaylorModel, low: Monomials) -> TaylorModel:
    """With a lower degree in the box, what is dropped in the remainder."""
    m = len(low)
    rest = np.abs(model.c[m:]).sum((0, 1))
    support = None if model.support is None else frozenset(k for k in model.support if k < m)
    return TaylorModel(model.c[:m], support, model.remainder + rest * ROUNDING_MARGIN, model.late)


class _Step:
    """One step of some boxes.

    Attributes
    ----------
    end
        Where it leads.
    fine
        Boxes in which shorter steps would not gain much.
    easy
        Those in which longer ones would do.
    doubtful
        Those in which the bound of the deviation cannot be confirmed although the step is short.
    lost
        States of which nothing is known, at the end or before, shape (B, n).
    blamed
        Those for which the step is too long, or that are lost by it.
    slow
        Those for which a much longer one would be.
    stiff
        Boxes in which it could be longer but for the growth of deviations.
    """

    def __init__(
        self,
        flow: Flow,
        motion: Mode,
        still: Mapping[int, TaylorModel],
        slow: Mapping[int, TaylorModel],
        begin: StateEnclosure,
        dead: BoolArray,
        reach: Array,
        since: float,
        times: Array,
        h: Array,
        shares: Array,
    ) -> None:
        self._since = since
        self._flow, self._motion, self._h, self._times = flow, motion, h, times
        self._boxes, self._dead, self._reach = len(h), dead, reach
        self.end, self.lost = begin, dead
        self.blamed: BoolArray = dead
        self.slow: BoolArray = dead
        self.easy: BoolArray = np.ones(len(h), dtype=bool)
        self.doubtful: BoolArray = self.easy
        polynomials, defect, late = self._polynomials(begin, still)
        self._bound(begin, polynomials, slow, defect)
        allowed = flow._tolerance[:, None] * shares
        coarse = (late > np.maximum(allowed, 0.05 * defect)) & np.isfinite(late)
        self.blamed = (self.blamed | coarse.T) & ~dead
        self.fine = ~self.blamed.any(axis=1)
        exact = late <= 0.02 * allowed
        self.stiff = exact.all(0) & ~self.easy & ~self.lost.all(axis=1)
        self.easy &= exact.all(0)
        self.slow |= ~exact.T

    def _given(self, length: int, monomials: Monomials) -> dict[int, TaylorModel]:
        """Time and inputs as polynomials in s."""
        flow, h, nothing = self._flow, self._h, np.zeros(self._boxes)
        system = flow._system
        clock = np.zeros((len(monomials), length, self._boxes))
        clock[0, 0] = self._times
        rest = 4 * UNIT_ROUNDOFF * (np.abs(self._times) + h)
        if length > 1:
            clock[0, 1] = h
        else:
            rest = (rest + h) * ROUNDING_MARGIN
        found = {system.time: TaylorModel(clock, frozenset([0]), rest, nothing)}
        for name, entry in system.inputs.items():
            given = system.condition.inputs[name]
            rows = given.polynomials()
            # Between stops there are no knots.
            place = int(np.searchsorted(given.times, self._since, side="right"))
            offset = self._times - given.times[max(place - 1, 0)]
            p = rows[place]
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
            kept = min(4, length)
            c[0, :kept] = shifted[:kept]
            size = sum(abs(p[j]) * (np.abs(offset) + h) ** j for j in range(4))
            rest = np.abs(shifted[kept:]).sum(0) + 32 * UNIT_ROUNDOFF * size + UNDERFLOW
            found[entry] = TaylorModel(c, frozenset([0]), rest * ROUNDING_MARGIN, nothing)
        return found

    def _polynomials(
        self, begin: StateEnclosure, still: Mapping[int, TaylorModel]
    ) -> tuple[Array, Array, Array]:
        """Taylor polynomials of the states, shape (n, M, K, B), and their defects times the step.

        These, and the parts of them that shorter steps would lower, have shape (n, B).
        """
        flow, h = self._flow, self._h
        system, order = flow._system, flow._order
        n, m, boxes = begin.c.shape
        t = np.zeros((n, m, order, boxes))
        t[:, :, 0] = begin.c
        nothing = np.zeros(boxes)
        alive = (~self._dead).T.astype(float)
        values = {**still, **self._given(order, flow._monomials)}
        for i, entry in enumerate(system.states):
            values[entry] = TaylorModel(t[i], None, nothing, nothing)
        rates = self._motion.rates
        sweep = TaylorEvaluation(rates, flow._monomials, order, values)
        targets = [sweep.values[term.index] for term in rates.terms]
        with np.errstate(all="ignore"):
            for k in range(order):
                sweep.advance(k)
                if k + 1 < order:
                    for i, target in enumerate(targets):
                        if k < target.c.shape[1]:
                            t[i, :, k + 1] = target.c[:, k] * (alive[i] * h / (k + 1))
            sweep.bound()
            defect, late = np.zeros((n, boxes)), np.zeros((n, boxes))
            for i, term in enumerate(rates.terms):
                f = sweep.values[term.index]
                top = np.abs(f.c[:, order - 1]).sum(0) if f.c.shape[1] == order else nothing
                late[i] = h * (top + f.late)
                rounding = 8 * UNIT_ROUNDOFF * order * np.abs(t[i]).sum((0, 1))
                whole = np.abs(f.c).sum((0, 1)) * 4 * UNIT_ROUNDOFF
                defect[i] = (
                    h * (top + f.remainder + whole) + rounding
                ) * ROUNDING_MARGIN + UNDERFLOW
        defect[self._dead.T] = late[self._dead.T] = 0.0
        t[self._dead.T.nonzero()[0], :, :, self._dead.T.nonzero()[1]] = 0.0
        lost = ~np.isfinite(t).all((1, 2)) | np.isnan(defect)
        if lost.any():
            defect[lost] = np.inf
            late[lost] = np.inf
            t = np.where(np.isfinite(t), t, 0.0)
        return t, defect, late

    def _bound(
        self, begin: StateEnclosure, t: Array, slow: Mapping[int, TaylorModel], defect: Array
    ) -> None:
        """How far true solutions are from the polynomials at the end of the step."""
        spread, dead, reach = begin.spread, self._dead, self._reach
        end = t.sum(axis=2)
        steady = defect.T
        guess = 1.5 * spread.sizes + 2.0 * steady + 4 * UNDERFLOW
        for attempt in range(TRIES):
            middle, upper, variation = self._slopes(t, guess.T, slow)
            norms = np.abs(upper).sum(axis=2)
            # Nothing can be known of these; the others do not depend on them.
            out = carried(dead | ~(norms <= MAX_STEP_NORM / 2) | ~np.isfinite(steady), reach)
            upper = without(upper, out)
            after, during = componentwise(
                upper, np.where(out, 0.0, spread.sizes), np.where(out, 0.0, steady)
            )
            held = during <= guess
            if (held | ~np.isfinite(during) | out).all() or attempt == TRIES - 1:
                break
            guess = np.where(held | out, guess, 1.3 * during + 0.1 * guess)
        # All is for deviations up to the guess: it has to be the one that was found to hold.
        useless = ~(after <= USELESS * self._flow._tolerance)
        lost = carried(out | ~(held & np.isfinite(during)) | useless, reach)
        rounding = 4 * UNIT_ROUNDOFF * t.shape[2] * np.abs(t).sum((1, 2)).T + UNDERFLOW
        # By the middle alone: around it, the Jacobian may be large because of the doubt.
        centre = np.where(dead, 0.0, np.abs(middle).sum(axis=(0, 3))).max(axis=1)
        frame = Frame(without(middle, lost))
        if lost.any():
            spread, steady = spread.without(lost), np.where(lost, 0.0, steady)
        other = framed(frame, without(variation, lost), spread, steady)
        sizes = np.where(lost, 0.0, (np.minimum(after, other.sizes) + rounding) * ROUNDING_MARGIN)
        back = np.abs(np.swapaxes(other.frame, 1, 2))
        straight = np.matmul(back, sizes[:, :, None])[:, :, 0]
        added = np.matmul(back, rounding[:, :, None])[:, :, 0]
        lengths = np.minimum(
            (other.lengths + coordinates(other.frame, added * ROUNDING_MARGIN)) * ROUNDING_MARGIN,
            coordinates(other.frame, straight * ROUNDING_MARGIN),
        )
        self.lost = lost
        self.blamed = lost | (norms > STRONG)
        self.doubtful = (centre <= STRONG) & (lost & ~dead).any(axis=1)
        self.slow = norms > STRONG / PATIENT
        self.easy = np.where(dead, 0.0, norms).max(axis=1) <= 0.5 * STRONG
        end = np.where(lost.T[:, None], 0.0, end)
        self.end = StateEnclosure(end, ErrorBound(sizes, other.frame, lengths))

    def _slopes(
        self, t: Array, guess: Array, slow: Mapping[int, TaylorModel]
    ) -> tuple[Array, Array, Array]:
        """The Jacobian times the step: at the middle, by order of s; from above; its variation."""
        flow, h = self._flow, self._h
        low, n = flow._low, len(t)
        m, length = len(low), min(SLOPE_ORDERS, t.shape[2])
        nothing = np.zeros(self._boxes)
        values = {**slow, **self._given(length, low)}
        for i, entry in enumerate(flow._system.states):
            rest = np.abs(t[i, m:]).sum((0, 1)) + np.abs(t[i, :m, length:]).sum((0, 1)) + guess[i]
            values[entry] = TaylorModel(t[i, :m, :length], None, rest * ROUNDING_MARGIN, nothing)
        slopes = self._motion.slopes
        sweep = TaylorEvaluation(slopes, low, length, values)
        with np.errstate(all="ignore"):
            for k in range(length):
                sweep.advance(k)
            sweep.bound()
        middle = np.zeros((length, self._boxes, n, n))
        upper = np.zeros((self._boxes, n, n))
        variation = np.zeros((self._boxes, n, n))
        for number, term in enumerate(slopes.terms):
            i, j = divmod(number, n)
            a = sweep.values[term.index]
            c = np.abs(a.c)
            own = c[0].sum(0)
            varying = (c[1:].sum((0, 1)) + a.remainder + 8 * UNIT_ROUNDOFF * own) * ROUNDING_MARGIN
            middle[: a.c.shape[1], :, i, j] = a.c[0] * h
            variation[:, i, j] = varying * h * ROUNDING_MARGIN + UNDERFLOW
            if i == j:
                # During the step, the orders of s beyond the first add what they can.
                top = a.c[0, 0] + np.maximum(a.c[0, 1:], 0.0).sum(0) + varying
            else:
                top = own + varying
            top += 16 * UNIT_ROUNDOFF * own
            upper[:, i, j] = top * h + np.abs(top * h) * (ROUNDING_MARGIN - 1) + UNDERFLOW
        lost = ~np.isfinite(variation)
        variation = np.where(lost, np.inf, variation)
        upper = np.where(np.isfinite(upper), upper, np.inf)
        return middle, upper, variation
