"""Mueller's differential inequalities: intervals that solutions never leave, over any step.

These bounds remain when Taylor polynomials in time fail. Each right-hand side is split into ``f_i =
a x_i + b``, where a is a mean of its derivative and b its value at ``x_i = 0``. If all states are
between two functions of time, and these solve the scalar comparison equations with the worst a and
b in between, no solution ever leaves (M. Mueller, Ueber das Fundamentaltheorem in der Theorie der
gewoehnlichen Differentialgleichungen, 1927; W. Walter, Differential and integral inequalities,
1970, section 12). The comparison equations are solved exactly, so that a fast decay needs no short
steps. The guess of the values in between is improved over a whole time span at once (waveform
relaxation), and is used only once confirmed.

Linear invariants (:mod:`odefit.structure.conserved_sums`) give other forms of the same right-hand
sides, without the feedback that makes bounds of fast exchange explode (J. K. Scott and P. I.
Barton, Bounds on the reachable sets of nonlinear control systems, 2013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.intervals import Interval, evaluated, polynomial
from odefit.enclosure.arithmetic.rounding import OVERFLOW, ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram
from odefit.enclosure.system import Mode, System
from odefit.simulation.engines.cut_off import count_work, cut_off
from odefit.structure.conserved_sums import conserved_by
from odefit.structure.series.tape import NotRationalError, Term

PER_FORM, PER_BOX = 18_000, 20
"""Numbers of operations (:mod:`odefit.simulation.engines.cut_off`) of each form of a right-hand
side in a step, and of each box of it."""

STEPS_PER_SPAN = 4
"""Number of steps of a time span; in each step, all other states are bounded by constants."""

MAX_GUESSES = 3
"""Number of guesses of the values in between, after which unconfirmed ends become infinite."""

REFINEMENTS = 2
"""Number of improvements of confirmed values in between."""


@dataclass(frozen=True, eq=False)
class StateIntervals:
    """Intervals of the states in B boxes, and of the linear invariants of the next mode."""

    states: list[Interval]
    totals: list[Interval]

    def take(self, boxes: IntArray) -> StateIntervals:
        """Return the intervals in the selected boxes."""
        return StateIntervals(
            [s.take(boxes) for s in self.states], [t.take(boxes) for t in self.totals]
        )


class _Forms:
    """The right-hand sides of one mode as ``a x_i + b``, each in one or several forms.

    `totals` are the values of the invariants with these `weights`, and `hulls` the hulls of each
    state and zero, all variables of the tape. `coefficients` has by state the entries of a and b of
    each form, computed by `program`.
    """

    def __init__(self, system: System, mode: Mode) -> None:
        tape, n = system.tape, len(system.states)
        self.weights = conserved_by(mode.right_hand_sides.terms)
        self.totals = [tape.variable(f"total {k}") for k in range(len(self.weights))]
        self.hulls = [tape.variable(f"with zero {i}") for i in range(n)]
        states = [Term(tape, i) for i in system.states]
        self.coefficients: list[list[tuple[int, int]]] = []
        terms: list[Term] = []
        for i, rate in enumerate(mode.right_hand_sides.terms):
            members: list[tuple[int, int]] = []
            group = next(g for g in mode.groups if i in g)
            for form in [rate, *self._other_forms(rate, i, group, states)]:
                derivative = tape.derivative(form, states[i])
                try:
                    b = tape.substitute(form, {states[i].index: tape.number(0)})
                    a = tape.substitute(derivative, {states[i].index: self.hulls[i]})
                except NotRationalError:  # undefined at zero
                    continue
                if (a.index, b.index) not in members:
                    members.append((a.index, b.index))
                    terms += [a, b]
            self.coefficients.append(members)
        changing = [*system.states, *system.inputs.values(), system.time]
        changing += [v.index for v in (*self.totals, *self.hulls)]
        self.program = TapeProgram(tape, terms, changing)

    def _other_forms(
        self, rate: Term, i: int, group: Sequence[int], states: Sequence[Term]
    ) -> list[Term]:
        """Return the rate without another state of its group, which an invariant expresses."""
        tape, forms = rate.tape, []
        for total, weights in zip(self.totals, self.weights, strict=True):
            for j in group:
                if j == i or not weights[j] or states[j].index not in tape.depends(rate):
                    continue
                rest = total
                for k, weight in enumerate(weights):
                    if k != j and weight:
                        rest = rest - tape.number(weight) * states[k]
                solved = rest / tape.number(weights[j])
                forms.append(tape.substitute(rate, {states[j].index: solved}))
        return forms


class Comparison(Protocol):
    """Upper bounds of the solutions of scalar comparison equations, as by :func:`highest`."""

    def __call__(self, start: Array, low: Array, high: Array, rest: Array, h: float) -> Array:
        """Return upper bounds at h, with factors between `low` and `high`, shape (B,)."""


class DifferentialInequalities:
    """The differential inequalities of one system; `comparison` solves the scalar equations."""

    def __init__(self, system: System, comparison: Comparison | None = None) -> None:
        self._system, self._comparison = system, comparison or highest
        self._forms: dict[Mode, _Forms] = {}

    def start(self, states: list[Interval], time: float) -> StateIntervals:
        """Return the states with the invariants of the mode that begins at a time."""
        forms = self._forms_at(time)
        return StateIntervals(states, [_weighted_sum(w, states) for w in forms.weights])

    def signs(
        self, states: list[Interval], unknowns: Mapping[int, Interval], begin: float, end: float
    ) -> list[Interval]:
        """Return the half lines that states do not leave during a time span.

        A state that may change its sign has the interval of all numbers.
        """
        anything = Interval.anything(len(states[0].low))
        if not any((s.low >= 0).any() or (s.high <= 0).any() for s in states):
            return [anything] * len(states)
        with np.errstate(all="ignore"):
            forms = self._forms_at(begin)
            start = StateIntervals(states, [anything for _ in forms.weights])
            span = _TimeSpan(self._system, forms, self._comparison, start, begin, end, 1)
            half = [
                Interval(np.where(s.low >= 0, 0.0, -np.inf), np.where(s.high <= 0, 0.0, np.inf))
                for s in states
            ]
            confirmed = span.confirmed(half, span.known(unknowns), 0)
        return [anything] * len(states) if confirmed is None else confirmed[0]

    def advance(
        self, start: StateIntervals, unknowns: Mapping[int, Interval], begin: float, end: float
    ) -> StateIntervals:
        """Return the states at a later time, without events or input knots on the way."""
        with np.errstate(all="ignore"):
            forms = self._forms_at(begin)
            steps = STEPS_PER_SPAN
            span = _TimeSpan(self._system, forms, self._comparison, start, begin, end, steps)
            return StateIntervals(span.end(unknowns), start.totals)

    def _forms_at(self, time: float) -> _Forms:
        mode = self._system.mode_at(time)
        if mode not in self._forms:
            self._forms[mode] = _Forms(self._system, mode)
        return self._forms[mode]


def _weighted_sum(weights: Sequence[Fraction], states: Sequence[Interval]) -> Interval:
    boxes = len(states[0].low)
    total = Interval.number(Fraction(0), boxes)
    for weight, state in zip(weights, states, strict=True):
        if weight:
            total = total + _times(weight, state)
    return total


class _TimeSpan:
    """One time span, in steps; the steps of all boxes are computed together."""

    def __init__(
        self,
        system: System,
        forms: _Forms,
        comparison: Comparison,
        start: StateIntervals,
        begin: float,
        end: float,
        steps: int,
    ) -> None:
        self._system, self._forms, self._start = system, forms, start
        self._comparison = comparison
        self._boxes = len(start.states[0].low)
        times = np.unique(np.linspace(begin, end, steps + 1))
        times[0], times[-1] = begin, end
        self._h = np.diff(times)
        self._steps = len(self._h)
        self._times = Interval(
            np.repeat(times[:-1], self._boxes), np.repeat(times[1:], self._boxes)
        )

    def known(self, unknowns: Mapping[int, Interval]) -> dict[int, Interval]:
        """Return all entries that do not depend on states, in all steps."""
        system, program = self._system, self._forms.program
        constants = evaluated(system.tape, program.constant, unknowns, self._boxes)
        values = {i: self._repeated(v) for i, v in constants.items()}
        values[system.time] = self._times
        for name, entry in system.inputs.items():
            # There are no knots within a time span.
            coefficients, origin = system.input_polynomial(name, self._times.low[0])
            origins = np.full_like(self._times.low, origin)
            values[entry] = polynomial(coefficients, self._times - Interval(origins, origins))
        for total, value in zip(self._forms.totals, self._start.totals, strict=True):
            values[total.index] = self._repeated(value)
        return values

    def end(self, unknowns: Mapping[int, Interval]) -> list[Interval]:
        """Return all states at the end; they are unknown if no guess is confirmed."""
        known = self.known(unknowns)
        guess = [self._repeated(s) for s in self._start.states]
        confirmed = self.confirmed(guess, known, MAX_GUESSES)
        if confirmed is None:
            return [Interval.anything(self._boxes) for _ in guess]
        states_between, end = confirmed
        for _ in range(REFINEMENTS):
            # Consequences of confirmed bounds hold as well.
            states_between, end = self._bounds(states_between, known)
        return end

    def confirmed(
        self, between: list[Interval], known: Mapping[int, Interval], guesses: int
    ) -> tuple[list[Interval], list[Interval]] | None:
        """Return the states during each step and at the end, from a first guess; None if unknown.

        `between` is the guess of the states during each step. After `guesses` guesses, unconfirmed
        ends become infinite.
        """
        for turn in range(guesses + 4 * len(between) + 1):
            if cut_off().reached:
                return None
            during, end = self._bounds(between, known)
            missing = [
                (f.low < b.low, f.high > b.high) for f, b in zip(during, between, strict=True)
            ]
            if not any(low.any() or high.any() for low, high in missing):
                return during, end
            between = [
                _wider(b, f, low, high, turn >= guesses)
                for b, f, (low, high) in zip(between, during, missing, strict=True)
            ]
        return None

    def _repeated(self, value: Interval) -> Interval:
        """Return the same value in all steps."""
        return Interval(np.tile(value.low, self._steps), np.tile(value.high, self._steps))

    def _bounds(
        self, between: list[Interval], known: Mapping[int, Interval]
    ) -> tuple[list[Interval], list[Interval]]:
        """Return the states during each step and at the end, if they are in `between`."""
        forms, system, boxes = self._forms, self._system, self._boxes
        many = self._steps * sum(len(each) for each in forms.coefficients)
        count_work(many * (PER_FORM + PER_BOX * boxes))
        values = dict(known)
        for i, state in enumerate(between):
            nothing = np.zeros_like(state.low)
            values[system.states[i]] = state
            values[forms.hulls[i].index] = state.hull(Interval(nothing, nothing))
        values = evaluated(system.tape, forms.program.varying, values, self._steps * boxes)
        during: list[list[Interval]] = []
        now = self._start.states
        for step in range(self._steps):
            step_boxes = np.arange(step * boxes, (step + 1) * boxes)
            h = float(self._h[step])
            after = [self._after(i, start, values, step_boxes, h) for i, start in enumerate(now)]
            hulls = [s.hull(e) for s, e in zip(now, after, strict=True)]
            now = self._conserved(after)
            during.append(self._conserved(hulls))
        step_bounds = [
            Interval(
                np.concatenate([d[i].low for d in during]),
                np.concatenate([d[i].high for d in during]),
            )
            for i in range(len(between))
        ]
        return step_bounds, now

    def _after(
        self, i: int, start: Interval, values: Mapping[int, Interval], columns: IntArray, h: float
    ) -> Interval:
        """Return one state at the end of a step, by the best of its forms."""
        low, high = np.full(self._boxes, -np.inf), np.full(self._boxes, np.inf)
        for a, b in self._forms.coefficients[i]:
            factor, rest = values[a].take(columns), values[b].take(columns)
            a_low, a_high = factor.low, factor.high
            high = np.minimum(high, self._comparison(start.high, a_low, a_high, rest.high, h))
            low = np.maximum(low, -self._comparison(-start.low, a_low, a_high, -rest.low, h))
        return Interval(low, high)

    def _conserved(self, states: list[Interval]) -> list[Interval]:
        """Return the states, restricted by the linear invariants."""
        restricted = list(states)
        for weights, total in zip(self._forms.weights, self._start.totals, strict=True):
            members = [k for k, weight in enumerate(weights) if weight]
            if len(members) < 2:
                continue
            parts = [_times(weights[k], restricted[k]) for k in members]
            # The sum of all other states is the sum of those before and after.
            before, behind = [parts[0]], [parts[-1]]
            for k in range(1, len(members) - 1):
                before.append(before[-1] + parts[k])
                behind.append(behind[-1] + parts[-1 - k])
            for k, j in enumerate(members):
                rest = total
                if k > 0:
                    rest = rest - before[k - 1]
                if k < len(members) - 1:
                    rest = rest - behind[len(members) - 2 - k]
                restricted[j] = restricted[j].within(_times(1 / weights[j], rest))
        return restricted


def _times(factor: Fraction, value: Interval) -> Interval:
    """Return a multiple of an interval, without any rounding if the factor is one."""
    return value if factor == 1 else Interval.number(factor, len(value.low)) * value


def _wider(b: Interval, f: Interval, low: BoolArray, high: BoolArray, hopeless: bool) -> Interval:
    """Return a guess b, wider at its unconfirmed ends, or infinite there if `hopeless`.

    `f` is the consequence of the guess.
    """
    if hopeless:
        below, above = np.full_like(b.low, -np.inf), np.full_like(b.high, np.inf)
    else:
        below = f.low - 0.5 * np.abs(b.low - f.low)
        above = f.high + 0.5 * np.abs(f.high - b.high)
    # Signs are kept as long as possible: tight bounds of other states depend on them.
    below = np.where((f.low >= 0) | (hopeless & (b.low > 0)), np.maximum(below, 0.0), below)
    above = np.where((f.high <= 0) | (hopeless & (b.high < 0)), np.minimum(above, 0.0), above)
    return Interval(np.where(low, below, b.low), np.where(high, above, b.high))


def highest(start: Array, low: Array, high: Array, rest: Array, h: float) -> Array:
    """Return upper bounds at h of all solutions of ``u' = a u + b``, shape (B,).

    Factors a are between `low` and `high`, and b is at most `rest`. The largest value until then is
    at h or at the `start`.
    """
    # Above zero, the largest a is used; below, the smallest.
    above = _solution(start, high, rest, h)
    below = _solution(start, low, rest, h)
    up = _solution(np.zeros_like(start), high, rest, h)
    rising = np.where(below <= 0, below, up)
    negative = np.where(rest > 0, rising, below)
    # From above zero to below it: the bound stops at zero.
    positive = np.where(rest < 0, np.maximum(above, 0.0), above)
    upper = np.where((start > 0) | ((start == 0) & (rest > 0)), positive, negative)
    return np.asarray(np.where(np.isnan(upper), np.inf, np.maximum(upper, -OVERFLOW)))


def _solution(start: Array, a: Array, b: Array, h: float) -> Array:
    """Return ``start e^(a h) + b (e^(a h) - 1) / a``, rounded upwards."""
    x = a * h
    growth = np.exp(x)
    mean = np.where(np.abs(x) > UNDERFLOW, np.expm1(x) / x, 1.0)
    # An overflowing number is at least this large.
    first = start * np.where(start < 0, np.minimum(growth, OVERFLOW), growth)
    second = b * h * np.where(b < 0, np.minimum(mean, OVERFLOW), mean)
    first = np.where(start > 0, first * ROUNDING_MARGIN + UNDERFLOW, first / ROUNDING_MARGIN)
    second = np.where(b > 0, second * ROUNDING_MARGIN + UNDERFLOW, second / ROUNDING_MARGIN)
    return np.asarray(first + second + 4 * UNIT_ROUNDOFF * (np.abs(first) + np.abs(second)))
