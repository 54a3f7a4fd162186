"""Solutions of linear motions over boxes, however fast: by the exponential of their matrix.

Where the equations are linear in the states and do not depend on time, x' = A x + g, a stretch is
many equal steps of the affine map with ``P = 1 + h A phi(h A)`` and the shift ``h phi(h A) g``,
where phi(z) = (exp(z) - 1)/z. The map of a short step follows from the series of phi with a bound
of its tail, and the stretch from powers of the map (scaling and squaring; C. Moler and C. Van Loan,
Nineteen dubious ways to compute the exponential of a matrix, twenty-five years later, 2003). The
number of operations grows with the logarithm of the stiffness alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.enclosure.affine_maps import Composition, Powers, affine
from odefit.enclosure.error_propagation import ErrorBound
from odefit.enclosure.flow import Flow, StateEnclosure
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW
from odefit.enclosure.system import Mode, System
from odefit.enclosure.taylor_evaluation import TapeProgram
from odefit.enclosure.taylor_models import MIN_KEPT_SHARE, TaylorModel
from odefit.problem.arrays import Array, BoolArray, IntArray
from odefit.structure.tape import Tape

TERMS = 11
"""Of the series of phi."""

SHORT = 0.25
"""Norm of h A, at most: the tail of the series is then 1e-16."""

FAST = 8.0
"""Rate times time from which on powers of a map cost less than steps."""

FINEST = 2.0**-40
"""Of the first stretch: no step is shorter."""

COARSE = 2.0**-12
"""Of the shortest stretch: a common measure of all stretches has to be at least so long."""


class LinearODE:
    """One motion of a system that is linear in the states and the same at all times.

    Parameters
    ----------
    system, motion
        Whose equations.
    monomials
        In the unknowns.
    stretches
        Lengths of time that will be asked for.
    """

    def __init__(
        self, system: System, motion: Mode, monomials: Monomials, stretches: Sequence[Fraction]
    ) -> None:
        n = len(system.states)
        self._system, self._motion, self._monomials = system, motion, monomials
        self.composition = Composition(*motion.order(n))
        self._unit = _measure(stretches)
        tape = Tape()
        factor, entry = tape.variable("factor"), tape.variable("entry")
        self._factor, self._entry = factor.index, entry.index
        self._scaled = TapeProgram(tape, [factor * entry, factor * entry + tape.number(1)])

    @staticmethod
    def of(
        system: System, motion: Mode, monomials: Monomials, stretches: Sequence[Fraction]
    ) -> LinearODE | None:
        """If it is one."""
        if not stretches or not affine(system, motion):
            return None
        return LinearODE(system, motion, monomials, stretches)

    def fast(
        self, unknowns: Mapping[int, TaylorModel], boxes: int, time: float
    ) -> StiffAffineFlow | None:
        """Boxes in which powers cost less than steps over some time, if there are any."""
        flow = AffineFlow(self, unknowns, boxes)
        own = np.flatnonzero(np.isfinite(flow.norms) & (flow.norms * time >= FAST))
        return StiffAffineFlow(own, flow.take(own)) if len(own) else None

    def coefficients(
        self, unknowns: Mapping[int, TaylorModel], boxes: int
    ) -> tuple[list[TaylorModel], list[TaylorModel]]:
        """A, entries in the order of the composition's pairs, and g."""
        n, motion, m = len(self._system.states), self._motion, self._monomials
        known = dict(unknowns)
        zero = TaylorModel.constant(m, np.zeros(boxes))
        known |= dict.fromkeys(self._system.states, zero)
        slopes = motion.slopes.static(m, known, boxes)
        rates = motion.rates.static(m, known, boxes)
        terms = motion.slopes.terms
        matrix = [slopes[terms[i * n + j].index] for i, j in self.composition.pairs]
        return matrix, [rates[term.index] for term in motion.rates.terms]

    def step(self, norm: float) -> Fraction:
        """Whose product with `norm` is short, and of which all stretches are multiples if can be.

        That of no length if there is none.
        """
        unit = self._unit
        size = float(unit) * norm / SHORT
        if not math.isfinite(size):
            return Fraction(0)
        halvings = math.ceil(math.log2(max(size, 1.0)))
        return unit / 2**halvings if 2.0**-halvings >= FINEST else Fraction(0)

    def scaled(self, x: TaylorModel, factor: Fraction, one: bool = False) -> TaylorModel:
        """A product with a number; one more, if `one`."""
        boxes = len(x.remainder)
        known = {self._factor: TaylorModel.number(self._monomials, factor, boxes), self._entry: x}
        found = self._scaled.static(self._monomials, known, boxes)
        return found[self._scaled.terms[int(one)].index]

    def one_and(self, matrix: Sequence[TaylorModel], factor: Fraction) -> list[TaylorModel]:
        """The unit matrix and a multiple of another."""
        return [
            self.scaled(x, factor, i == j)
            for x, (i, j) in zip(matrix, self.composition.pairs, strict=True)
        ]

    def product(
        self, left: Sequence[TaylorModel], right: Sequence[TaylorModel]
    ) -> list[TaylorModel]:
        """Of two matrices."""
        return self.composition.product(left, right, self._monomials)

    def applied(
        self, matrix: Sequence[TaylorModel], x: Sequence[TaylorModel], shift: Sequence[TaylorModel]
    ) -> list[TaylorModel]:
        """``matrix x + shift``."""
        return self.composition.applied(matrix, shift, x, self._monomials)


class AffineFlow:
    """Its solutions in B boxes.

    Attributes
    ----------
    norms
        Of the matrix, shape (B,): rates per unit of time.
    """

    def __init__(self, linear: LinearODE, unknowns: Mapping[int, TaylorModel], boxes: int) -> None:
        self._linear = linear
        self._matrix, self._shift = linear.coefficients(unknowns, boxes)
        rows = np.zeros((linear.composition.states, boxes))
        for (i, _), entry in zip(linear.composition.pairs, self._matrix, strict=True):
            rows[i] += entry.magnitude()
        self.norms: Array = rows.max(axis=0) * ROUNDING_MARGIN
        self._step = Fraction(0)
        self._powers: Powers | None = None
        self._origin: tuple[list[TaylorModel], float] | None = None

    def take(self, boxes: IntArray) -> AffineFlow:
        """In some of the boxes."""
        found = object.__new__(AffineFlow)
        found._linear, found._step = self._linear, self._step
        found._matrix = [m.take(boxes) for m in self._matrix]
        found._shift = [m.take(boxes) for m in self._shift]
        found.norms = self.norms[boxes]
        found._powers = None if self._powers is None else self._powers.take(boxes)
        found._origin = None
        if self._origin is not None:
            states, time = self._origin
            found._origin = [m.take(boxes) for m in states], time
        return found

    def __call__(self, x: Sequence[TaylorModel], since: float, until: float) -> list[TaylorModel]:
        """States at a later time, from those at one; both exact.

        They follow from the states of the first call, by as few maps as there are: from stretch to
        stretch, deviations would be carried from basis to basis.
        """
        if self._powers is None:
            self._step = self._linear.step(float(self.norms.max()))
            if self._step:
                self._powers = self._mapped(self._step)
        if self._powers is None:
            return [_nothing(m) for m in x]
        if self._origin is None:
            self._origin = list(x), since
        begin, time = self._origin
        length = Fraction(until) - Fraction(time)
        count = length // self._step
        found = self._powers(begin, int(count))
        rest = length - count * self._step
        return self._moved(found, rest) if rest else found

    def _mapped(self, h: Fraction) -> Powers:
        """The map of a step."""
        linear = self._linear
        phi = linear.one_and(self._matrix, Fraction(0))
        for k in range(TERMS, 1, -1):
            phi = linear.one_and(linear.product(self._matrix, phi), h / k)
        tail = self._tail(h)
        for entry in phi:
            entry.remainder = (entry.remainder + tail) * ROUNDING_MARGIN
        matrix = linear.one_and(linear.product(self._matrix, phi), h)
        zero = [linear.scaled(g, Fraction(0)) for g in self._shift]
        shift = [linear.scaled(g, h) for g in linear.applied(phi, self._shift, zero)]
        return Powers(linear.composition, linear._monomials, matrix, shift)

    def _moved(self, x: Sequence[TaylorModel], h: Fraction) -> list[TaylorModel]:
        """A step of any length up to that of the map."""
        linear = self._linear
        rates = linear.applied(self._matrix, x, self._shift)
        y = rates
        for k in range(TERMS, 1, -1):
            part = [linear.scaled(m, h / k) for m in y]
            y = linear.applied(self._matrix, part, rates)
        largest = np.max([m.magnitude() for m in rates], axis=0)
        tail = self._tail(h) * largest * ROUNDING_MARGIN
        found = []
        for start, slope in zip(x, y, strict=True):
            slope.remainder = (slope.remainder + tail) * ROUNDING_MARGIN
            found.append(_sum(linear._monomials, start, linear.scaled(slope, h)))
        return found

    def _tail(self, h: Fraction) -> Array:
        """Bound of what the series of phi leaves out, in the maximum norm, shape (B,)."""
        a = self.norms * float(h) * ROUNDING_MARGIN
        first = a**TERMS / math.factorial(TERMS + 1)
        tail = np.where(a <= 1.0, first / (1.0 - np.minimum(a, 1.0) / (TERMS + 2)), np.inf)
        return np.asarray(tail * ROUNDING_MARGIN + UNDERFLOW)


@dataclass(frozen=True, eq=False)
class StiffAffineFlow:
    """Boxes whose motion is linear and fast, by their numbers, and their solutions."""

    boxes: IntArray
    flow: AffineFlow

    def without(self, refuted: BoolArray) -> StiffAffineFlow:
        """Without some of all boxes, a mask, if that saves enough."""
        kept = np.flatnonzero(~refuted[self.boxes])
        if len(kept) >= MIN_KEPT_SHARE * len(self.boxes):
            return self
        return StiffAffineFlow(self.boxes[kept], self.flow.take(kept))

    def advance(
        self,
        flow: Flow,
        position: StateEnclosure,
        unknowns: Mapping[int, TaylorModel],
        since: float,
        until: float,
        steps: Array,
        effort: Array,
        price: Array,
    ) -> StateEnclosure:
        """As a flow does it, but by powers in these boxes."""
        every = np.arange(len(steps))
        c, spread = position.c.copy(), position.spread.take(every)
        others = np.setdiff1d(every, self.boxes)
        if len(others):
            part = StateEnclosure(c[:, :, others], spread.take(others))
            given = {i: m.take(others) for i, m in unknowns.items()}
            own = steps[others], effort[others], price[others]
            part = flow.advance(part, given, since, until, *own)
            steps[others], effort[others] = own[:2]
            c[:, :, others] = part.c
            spread.put(others, part.spread)
        if len(self.boxes):
            after = self.flow([m.take(self.boxes) for m in position.models()], since, until)
            c[:, :, self.boxes] = np.stack([m.c[:, 0] for m in after])
            spread.put(self.boxes, ErrorBound.of(np.stack([m.remainder for m in after], axis=1)))
        return StateEnclosure(c, spread)


_ADDITION = Tape()
_SUM = TapeProgram(_ADDITION, [_ADDITION.variable("a") + _ADDITION.variable("b")])


def _sum(monomials: Monomials, a: TaylorModel, b: TaylorModel) -> TaylorModel:
    left, right = (_ADDITION.variable(name).index for name in "ab")
    found = _SUM.static(monomials, {left: a, right: b}, len(a.remainder))
    return found[_SUM.terms[0].index]


def _nothing(x: TaylorModel) -> TaylorModel:
    return TaylorModel(np.zeros_like(x.c), x.support, np.full_like(x.remainder, np.inf), x.late)


def _measure(stretches: Sequence[Fraction]) -> Fraction:
    """The longest time of which all stretches are multiples, or the shortest of them."""
    numerator, denominator = 0, math.lcm(*(s.denominator for s in stretches))
    for stretch in stretches:
        numerator = math.gcd(numerator, stretch.numerator * (denominator // stretch.denominator))
    common = Fraction(numerator, denominator)
    least = min(stretches)
    return common if common >= least * Fraction(COARSE) else least
