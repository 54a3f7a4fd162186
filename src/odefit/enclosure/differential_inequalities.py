"""Intervals that solutions stay in, over steps of any length: what is left when series give up.

Each right-hand side is split into ``f_i = a x_i + b``, with a mean of its derivative for a and its
value at ``x_i = 0`` for b. Where all states are between two functions of time, and these solve the
scalar comparison equations with the worst a and b in between, no solution ever leaves (M. Mueller,
Ueber das Fundamentaltheorem in der Theorie der gewoehnlichen Differentialgleichungen, 1927;
W. Walter, Differential and integral inequalities, 1970, section 12). The comparison equations are
solved exactly, so that a fast decay costs nothing; the guess of what is in between is improved
over a whole stretch at a time (waveform relaxation), and counts only when it is confirmed.

Sums of states that do not change (:mod:`odefit.enclosure.invariants`) give other forms of the same
right-hand sides, without the feedback that makes bounds of fast exchange explode (J. K. Scott and
P. I. Barton, Bounds on the reachable sets of nonlinear control systems, 2013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.enclosure.intervals import Interval, evaluated, polynomial
from odefit.enclosure.invariants import invariants
from odefit.enclosure.rounding import OVERFLOW, ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.system import Mode, System
from odefit.problem.arrays import Array, BoolArray, IntArray
from odefit.structure.tape import NotRationalError, Term, needed

PARTS = 4
"""Of a stretch: in each, all but one state are taken as anything between constants."""

GUESSES = 3
"""Rounds of guessing what is in between, before the ends that do not hold are given up."""

REFINEMENTS = 2
"""Rounds that improve what is confirmed."""


@dataclass(frozen=True, eq=False)
class StateIntervals:
    """States at one time in B boxes, by intervals, and sums of them that do not change.

    Attributes
    ----------
    states
        One for each.
    totals
        By invariant of the motion that follows.
    """

    states: list[Interval]
    totals: list[Interval]

    def take(self, boxes: IntArray) -> StateIntervals:
        """Of some boxes."""
        return StateIntervals(
            [s.take(boxes) for s in self.states], [t.take(boxes) for t in self.totals]
        )


class _Forms:
    """Right-hand sides of one motion as ``a x_i + b``, each in one or several ways."""

    def __init__(self, system: System, motion: Mode) -> None:
        tape, n = system.tape, len(system.states)
        self.weights = invariants(motion.rates.terms)
        self.totals = [tape.variable(f"total {k}") for k in range(len(self.weights))]
        self.hulls = [tape.variable(f"with zero {i}") for i in range(n)]
        states = [Term(tape, i) for i in system.states]
        groups, _ = motion.order(n)
        self.rows: list[list[tuple[int, int]]] = []
        terms: list[Term] = []
        for i, rate in enumerate(motion.rates.terms):
            own: list[tuple[int, int]] = []
            group = next(g for g in groups if i in g)
            for form in [rate, *self._others(rate, i, group, states)]:
                slope = tape.derivative(form, states[i])
                try:
                    b = tape.substitute(form, {states[i].index: tape.number(0)})
                    a = tape.substitute(slope, {states[i].index: self.hulls[i]})
                except NotRationalError:  # there is no value at zero
                    continue
                if (a.index, b.index) not in own:
                    own.append((a.index, b.index))
                    terms += [a, b]
            self.rows.append(own)
        changing = {*system.states, *system.inputs.values(), system.time}
        changing |= {v.index for v in (*self.totals, *self.hulls)}
        self.still: list[int] = []
        self.moving: list[int] = []
        for i in needed(tape, terms):
            operation, a_, b_ = tape.entries[i]
            if operation not in ("number", "variable") and {a_, b_} & changing:
                changing.add(i)
            if i in changing:
                if i not in tape.names:
                    self.moving.append(i)
            elif i not in tape.names:
                self.still.append(i)

    def _others(
        self, rate: Term, i: int, group: Sequence[int], states: Sequence[Term]
    ) -> list[Term]:
        """The same rate without a state that feeds back, which follows from an invariant."""
        tape, found = rate.tape, []
        for total, weights in zip(self.totals, self.weights, strict=True):
            for j in group:
                if j == i or not weights[j] or states[j].index not in tape.depends(rate):
                    continue
                rest = total
                for k, weight in enumerate(weights):
                    if k != j and weight:
                        rest = rest - tape.number(weight) * states[k]
                solved = rest / tape.number(weights[j])
                found.append(tape.substitute(rate, {states[j].index: solved}))
        return found


class DifferentialInequalities:
    """Of one system.

    Parameters
    ----------
    system
        The equations.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._forms: dict[Mode, _Forms] = {}

    def begin(self, states: list[Interval], time: float) -> StateIntervals:
        """At a time from which on the equations have no memory of what was before."""
        forms = self._of(time)
        return StateIntervals(states, [_weighted(w, states) for w in forms.weights])

    def signs(
        self, states: list[Interval], unknowns: Mapping[int, Interval], since: float, until: float
    ) -> list[Interval]:
        """Which states keep their sign all the time until another: half lines, or anything."""
        anything = Interval.anything(len(states[0].low))
        if not any((s.low >= 0).any() or (s.high <= 0).any() for s in states):
            return [anything] * len(states)
        with np.errstate(all="ignore"):
            tube = StateIntervals(states, [anything for _ in self._of(since).weights])
            stretch = _Stretch(self._system, self._of(since), tube, since, until, 1)
            half = [
                Interval(np.where(s.low >= 0, 0.0, -np.inf), np.where(s.high <= 0, 0.0, np.inf))
                for s in states
            ]
            confirmed = stretch.confirmed(half, stretch.known(unknowns), 0)
        return [anything] * len(states) if confirmed is None else confirmed[0]

    def advance(
        self, tube: StateIntervals, unknowns: Mapping[int, Interval], since: float, until: float
    ) -> StateIntervals:
        """From one time to another, between which nothing jumps.

        Parameters
        ----------
        unknowns
            By entry of the tape.
        """
        with np.errstate(all="ignore"):
            stretch = _Stretch(self._system, self._of(since), tube, since, until, PARTS)
            return StateIntervals(stretch.end(unknowns), tube.totals)

    def _of(self, time: float) -> _Forms:
        motion = self._system.motion(time)
        if motion not in self._forms:
            self._forms[motion] = _Forms(self._system, motion)
        return self._forms[motion]


def _weighted(weights: Sequence[Fraction], states: Sequence[Interval]) -> Interval:
    boxes = len(states[0].low)
    found = Interval.number(Fraction(0), boxes)
    for weight, state in zip(weights, states, strict=True):
        if weight:
            found = found + _times(weight, state)
    return found


class _Stretch:
    """From one stop to the next, in parts; those of all boxes are computed together."""

    def __init__(
        self,
        system: System,
        forms: _Forms,
        tube: StateIntervals,
        since: float,
        until: float,
        parts: int,
    ) -> None:
        self._system, self._forms, self._begin = system, forms, tube.states
        self._totals = tube.totals
        self._boxes = len(tube.states[0].low)
        times = np.unique(np.linspace(since, until, parts + 1))
        times[0], times[-1] = since, until
        self._h = np.diff(times)
        self._parts = len(self._h)
        self._times = Interval(
            np.repeat(times[:-1], self._boxes), np.repeat(times[1:], self._boxes)
        )

    def known(self, unknowns: Mapping[int, Interval]) -> dict[int, Interval]:
        """All that does not depend on states, in all parts."""
        forms = self._forms
        still = evaluated(self._system.tape, forms.still, unknowns, self._boxes)
        found = {i: self._repeated(v) for i, v in still.items()}
        found[self._system.time] = self._times
        for name, entry in self._system.inputs.items():
            found[entry] = self._input(name)
        for total, value in zip(forms.totals, self._totals, strict=True):
            found[total.index] = self._repeated(value)
        return found

    def end(self, unknowns: Mapping[int, Interval]) -> list[Interval]:
        """All states at the end; of what is not confirmed, nothing is known."""
        known = self.known(unknowns)
        confirmed = self.confirmed([self._repeated(s) for s in self._begin], known, GUESSES)
        if confirmed is None:
            return [Interval.anything(self._boxes) for _ in self._begin]
        found, end = confirmed
        for _ in range(REFINEMENTS):
            # Whatever follows from it holds as well.
            found, end = self._bounds(found, known)
        return end

    def confirmed(
        self, between: list[Interval], known: Mapping[int, Interval], guesses: int
    ) -> tuple[list[Interval], list[Interval]] | None:
        """Where states are in each part and at the end, from a first guess; None if unknown."""
        for turn in range(guesses + 4 * len(between) + 1):
            found, end = self._bounds(between, known)
            missing = [
                (f.low < b.low, f.high > b.high) for f, b in zip(found, between, strict=True)
            ]
            if not any(low.any() or high.any() for low, high in missing):
                return found, end
            between = [
                _wider(b, f, low, high, turn >= guesses)
                for b, f, (low, high) in zip(between, found, missing, strict=True)
            ]
        return None

    def _repeated(self, value: Interval) -> Interval:
        """The same in all parts."""
        return Interval(np.tile(value.low, self._parts), np.tile(value.high, self._parts))

    def _input(self, name: str) -> Interval:
        given = self._system.condition.inputs[name]
        # Between stops there are no knots.
        place = int(np.searchsorted(given.times, self._times.low[0], side="right"))
        start = np.full_like(self._times.low, given.times[max(place - 1, 0)])
        return polynomial(given.polynomials()[place].tolist(), self._times - Interval(start, start))

    def _bounds(
        self, between: list[Interval], known: Mapping[int, Interval]
    ) -> tuple[list[Interval], list[Interval]]:
        """Where states are during each part, and at the very end, if they are in `between`."""
        forms, system, boxes = self._forms, self._system, self._boxes
        values = dict(known)
        for i, state in enumerate(between):
            nothing = np.zeros_like(state.low)
            values[system.states[i]] = state
            values[forms.hulls[i].index] = state.hull(Interval(nothing, nothing))
        values = evaluated(system.tape, forms.moving, values, self._parts * boxes)
        during: list[list[Interval]] = []
        now = self._begin
        for part in range(self._parts):
            own = np.arange(part * boxes, (part + 1) * boxes)
            slow: list[Interval] = []
            after: list[Interval] = []
            for i, start in enumerate(now):
                after.append(self._after(i, start, values, own, float(self._h[part])))
            now, slow = (
                self._conserved(after),
                self._conserved([s.hull(e) for s, e in zip(now, after, strict=True)]),
            )
            during.append(slow)
        found = [
            Interval(
                np.concatenate([d[i].low for d in during]),
                np.concatenate([d[i].high for d in during]),
            )
            for i in range(len(between))
        ]
        return found, now

    def _after(
        self, i: int, start: Interval, values: Mapping[int, Interval], own: IntArray, h: float
    ) -> Interval:
        """One state at the end of a part, by the best of its forms."""
        low, high = np.full(self._boxes, -np.inf), np.full(self._boxes, np.inf)
        for a, b in self._forms.rows[i]:
            slope, rest = values[a].take(own), values[b].take(own)
            high = np.minimum(high, highest(start.high, slope, rest.high, h))
            low = np.maximum(low, -highest(-start.low, slope, -rest.low, h))
        return Interval(low, high)

    def _conserved(self, states: list[Interval]) -> list[Interval]:
        """What invariants leave of them."""
        found = list(states)
        for weights, total in zip(self._forms.weights, self._totals, strict=True):
            own = [k for k, weight in enumerate(weights) if weight]
            if len(own) < 2:
                continue
            parts = [_times(weights[k], found[k]) for k in own]
            # The sum of all others: of those before and of those behind.
            before, behind = [parts[0]], [parts[-1]]
            for k in range(1, len(own) - 1):
                before.append(before[-1] + parts[k])
                behind.append(behind[-1] + parts[-1 - k])
            for k, j in enumerate(own):
                rest = total
                if k > 0:
                    rest = rest - before[k - 1]
                if k < len(own) - 1:
                    rest = rest - behind[len(own) - 2 - k]
                found[j] = found[j].within(_times(1 / weights[j], rest))
        return found


def _times(factor: Fraction, value: Interval) -> Interval:
    """A multiple, exactly the same if it is one."""
    return value if factor == 1 else Interval.number(factor, len(value.low)) * value


def _wider(b: Interval, f: Interval, low: BoolArray, high: BoolArray, hopeless: bool) -> Interval:
    """A guess with room for what was found outside of it; with all there is, if `hopeless`."""
    if hopeless:
        below, above = np.full_like(b.low, -np.inf), np.full_like(b.high, np.inf)
    else:
        below = f.low - 0.5 * np.abs(b.low - f.low)
        above = f.high + 0.5 * np.abs(f.high - b.high)
    # Signs are the last that is given up: much hangs on them.
    below = np.where((f.low >= 0) | (hopeless & (b.low > 0)), np.maximum(below, 0.0), below)
    above = np.where((f.high <= 0) | (hopeless & (b.high < 0)), np.minimum(above, 0.0), above)
    return Interval(np.where(low, below, b.low), np.where(high, above, b.high))


def highest(start: Array, slope: Interval, rest: Array, h: float) -> Array:
    """Upper bound at h of the greatest solution of ``u' = a u + b``, with the worst a of `slope`.

    The largest value until then is that, or the one at the `start`.

    Parameters
    ----------
    start, rest
        u at 0, and b, shape (B,).
    """
    # Above zero, the largest a counts; below, the smallest.
    above = _solution(start, slope.high, rest, h)
    below = _solution(start, slope.low, rest, h)
    up = _solution(np.zeros_like(start), slope.high, rest, h)
    rising = np.where(below <= 0, below, up)
    negative = np.where(rest > 0, rising, below)
    # From above zero to below it: no further than zero is counted.
    positive = np.where(rest < 0, np.maximum(above, 0.0), above)
    found = np.where((start > 0) | ((start == 0) & (rest > 0)), positive, negative)
    return np.asarray(np.where(np.isnan(found), np.inf, np.maximum(found, -OVERFLOW)))


def _solution(start: Array, a: Array, b: Array, h: float) -> Array:
    """``start e^(a h) + b (e^(a h) - 1) / a``, rounded upwards."""
    x = a * h
    growth = np.exp(x)
    mean = np.where(np.abs(x) > UNDERFLOW, np.expm1(x) / x, 1.0)
    # What overflows is at least so large.
    first = start * np.where(start < 0, np.minimum(growth, OVERFLOW), growth)
    second = b * h * np.where(b < 0, np.minimum(mean, OVERFLOW), mean)
    first = np.where(start > 0, first * ROUNDING_MARGIN + UNDERFLOW, first / ROUNDING_MARGIN)
    second = np.where(b > 0, second * ROUNDING_MARGIN + UNDERFLOW, second / ROUNDING_MARGIN)
    return np.asarray(first + second + 4 * UNIT_ROUNDOFF * (np.abs(first) + np.abs(second)))
