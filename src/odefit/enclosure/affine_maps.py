"""Affine maps over boxes, their powers, and solutions of linear ODEs, however stiff.

If the equations are linear in the states and do not depend on time, a step is an affine map of the
states, and equal steps are its powers. By repeated squaring of the map over the box, a thousand
steps take ten matrix products. Few operations then propagate errors, so that no frame has to follow
them. In the basis of the map's eigenvectors in the middle of the box, powers of decaying components
decay.

For x' = A x + g, the map of a step is ``P = 1 + h A phi(h A)``, the shift ``h phi(h A) g``, where
phi(z) = (exp(z) - 1)/z. The map of a short step follows from the series of phi with a bound of its
tail (scaling and squaring; C. Moler and C. Van Loan, Nineteen dubious ways to compute the
exponential of a matrix, twenty-five years later, 2003). The number of operations grows only with
the logarithm of the stiffness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import MIN_KEPT_SHARE, Monomials, TaylorModel
from odefit.enclosure.flow import Flow, StepControl
from odefit.enclosure.state_enclosure import StateEnclosure
from odefit.enclosure.system import Mode, System

MAX_CONDITION_NUMBER = 1e4
"""Condition number of eigenvectors above which they are not used as a basis."""

Matrix = Mapping[tuple[int, int], TaylorModel]
"""The entries of a square matrix that may be nonzero, by row and column.

The pattern of entries is that of dependences between states: it is transitive and includes the
diagonal, so that products have the same pattern.
"""


def is_autonomous_affine(system: System, mode: Mode) -> bool:
    """Return whether a mode's equations are linear in the states and the same at all times."""
    tape = system.tape
    others = {*system.inputs.values(), system.time}
    changing = {*system.states, *others}
    return not any(tape.depends(term) & changing for term in mode.jacobian.terms) and not any(
        tape.depends(term) & others for term in mode.right_hand_sides.terms
    )


def product(left: Matrix, right: Matrix) -> dict[tuple[int, int], TaylorModel]:
    """Return the product of two matrices of the same pattern."""
    inner = sorted({j for _, j in left})
    return {
        (i, j): reduce(
            add,
            [left[i, k] * right[k, j] for k in inner if (i, k) in left and (k, j) in right],
        )
        for i, j in left
    }


def image(
    matrix: Matrix, x: Sequence[TaylorModel], shift: Sequence[TaylorModel] | None = None
) -> list[TaylorModel]:
    """Return ``matrix x + shift``, or ``matrix x``."""
    image_of = []
    for i in range(len(x)):
        terms = [matrix[i, j] * x[j] for j in range(len(x)) if (i, j) in matrix]
        image_of.append(reduce(add, terms if shift is None else [*terms, shift[i]]))
    return image_of


@dataclass(frozen=True, eq=False)
class AffinePowers:
    """Powers of an affine map ``x -> P x + g``, in B boxes, in a basis (None for the states' own).

    `powers` holds matrix and shift for the exponents 1, 2, 4 ..., as far as they are known.
    """

    basis: tuple[Matrix, Matrix] | None
    powers: list[tuple[Matrix, Sequence[TaylorModel]]]

    @staticmethod
    def of(
        groups: Sequence[Sequence[int]], matrix: Matrix, shift: Sequence[TaylorModel]
    ) -> AffinePowers:
        """Return the powers of the map; states of a group depend on each other."""
        basis = _eigenbasis(groups, matrix)
        if basis is not None:
            into, back = basis
            matrix = product(product(into, matrix), back)
            shift = image(into, shift)
        return AffinePowers(basis, [(matrix, shift)])

    @property
    def monomials(self) -> Monomials:
        """The monomials in the unknowns."""
        return self.powers[0][1][0].monomials

    def __call__(self, x: Sequence[TaylorModel], count: int) -> list[TaylorModel]:
        """Return the image of x under `count` applications of the map."""
        x = list(x) if self.basis is None else image(self.basis[0], x)
        for power in range(count.bit_length()):
            if power == len(self.powers):
                matrix, shift = self.powers[-1]
                self.powers.append((product(matrix, matrix), image(matrix, shift, shift)))
            if count >> power & 1:
                matrix, shift = self.powers[power]
                x = image(matrix, x, shift)
        return x if self.basis is None else image(self.basis[1], x)

    def take(self, boxes: IntArray) -> AffinePowers:
        """Return the powers in the selected boxes."""
        basis = None
        if self.basis is not None:
            basis = taken(self.basis[0], boxes), taken(self.basis[1], boxes)
        powers: list[tuple[Matrix, Sequence[TaylorModel]]] = [
            (taken(matrix, boxes), [g.take(boxes) for g in shift]) for matrix, shift in self.powers
        ]
        return AffinePowers(basis, powers)


def taken(matrix: Matrix, boxes: IntArray) -> Matrix:
    """Return a matrix in the selected boxes."""
    return {place: entry.take(boxes) for place, entry in matrix.items()}


def _eigenbasis(groups: Sequence[Sequence[int]], matrix: Matrix) -> tuple[Matrix, Matrix] | None:
    """Return the matrix into a basis in which the map is nearly diagonal, and its inverse, or None.

    The basis consists of the eigenvectors in the middle of each box, in which bounds of the entries
    of a power are not sums over eigenvalues. Only states that depend on each other are mixed.
    """
    coupled = [g for g in groups if len(g) > 1]
    if not coupled:
        return None
    some = matrix[0, 0]
    boxes, n = len(some.remainder), sum(map(len, groups))
    middle = np.zeros((boxes, n, n))
    for (i, j), entry in matrix.items():
        middle[:, i, j] = entry.c[0, 0]
    into = np.zeros((boxes, n, n)) + np.eye(n)
    back = into.copy()
    mixed = np.zeros((n, n), dtype=bool)
    for group in coupled:
        block = np.ix_(np.arange(boxes), np.array(group), np.array(group))
        vectors = _eigenvectors(middle[block])
        back[block], into[block] = vectors, np.linalg.inv(vectors)
        mixed[np.ix_(group, group)] = True
    # back (1 - e) is the inverse of `into`, with a small e.
    rounding = 4 * n * UNIT_ROUNDOFF * (np.abs(into) @ np.abs(back))
    lacking = np.abs(np.eye(n) - into @ back) + rounding
    size = lacking.sum(axis=2).max(axis=1)
    share = np.where(size < 0.5, 2.0 * size, np.inf)
    error = np.abs(back).max(axis=(1, 2)) * n * share * ROUNDING_MARGIN
    first, second = {}, {}
    for i, j in matrix:
        first[i, j] = TaylorModel.constant(some.monomials, into[:, i, j])
        second[i, j] = TaylorModel.constant(some.monomials, back[:, i, j])
        if mixed[i, j]:
            second[i, j].remainder = error
    return first, second


def _eigenvectors(matrices: Array) -> Array:
    """Return real and imaginary parts of eigenvectors as columns, or unit vectors.

    Unit vectors replace eigenvectors that are not finite or nearly dependent.
    """
    n = matrices.shape[1]
    usable: BoolArray = np.all(np.isfinite(matrices), axis=(1, 2))
    values, vectors = np.linalg.eig(np.where(usable[:, None, None], matrices, np.eye(n)))
    # The columns of a pair are the real part and the imaginary part.
    real = np.where(np.imag(values)[:, None, :] < 0, np.imag(vectors), np.real(vectors))
    real = real / np.maximum(np.abs(real).max(axis=1, keepdims=True), UNDERFLOW)
    usable &= np.isfinite(real).all(axis=(1, 2))
    real = np.where(usable[:, None, None], real, np.eye(n))
    usable &= np.linalg.cond(real) < MAX_CONDITION_NUMBER
    usable_vectors: Array = np.where(usable[:, None, None], real, np.eye(n))
    return usable_vectors


SERIES_TERMS = 11
"""Number of computed terms of the series of phi."""

MAX_SERIES_NORM = 0.25
"""Norm of h A up to which the series is used: its tail is then 1e-16."""

STIFF_RATE = 8.0
"""Norm of A times the remaining time above which powers of a map cost less than steps."""

SHORTEST_STEP = 2.0**-40
"""Shortest step, relative to the step of which all time spans are multiples."""

SHORTEST_COMMON_STEP = 2.0**-12
"""Shortest step of which all time spans are multiples, relative to the shortest span."""


@dataclass(frozen=True, eq=False)
class LinearODE:
    """The equations of one mode that are linear in the states and the same at all times.

    `common_step` is a time of which all time spans are multiples, if one exists that is not too
    short.
    """

    system: System
    mode: Mode
    monomials: Monomials
    common_step: Fraction

    @staticmethod
    def of(
        system: System, mode: Mode, monomials: Monomials, spans: Sequence[Fraction]
    ) -> LinearODE | None:
        """Return a mode's linear ODE, or None if it is not linear or has no time spans."""
        if not spans or not is_autonomous_affine(system, mode):
            return None
        return LinearODE(system, mode, monomials, _common_step(spans))

    def stiff_flow(
        self, unknowns: Mapping[int, TaylorModel], boxes: int, time: float
    ) -> StiffAffineFlow | None:
        """Return the flow in the boxes in which powers cost less than steps, if there are any."""
        flow = self.flow(unknowns, boxes)
        stiff = np.flatnonzero(np.isfinite(flow.norms) & (flow.norms * time >= STIFF_RATE))
        return StiffAffineFlow(stiff, flow.take(stiff)) if len(stiff) else None

    def flow(self, unknowns: Mapping[int, TaylorModel], boxes: int) -> AffineFlow:
        """Return the flow in all boxes."""
        n, mode, m = len(self.system.states), self.mode, self.monomials
        zero = TaylorModel.constant(m, np.zeros(boxes))
        known = {**unknowns, **dict.fromkeys(self.system.states, zero)}
        jacobian = mode.jacobian.evaluate(m, known, boxes)
        at_zero = mode.right_hand_sides.evaluate(m, known, boxes)
        matrix = {
            (i, j): jacobian[mode.jacobian.terms[i * n + j].index]
            for i in range(n)
            for j in range(n)
            if mode.dependence[i, j]
        }
        rows = np.zeros((n, boxes))
        for (i, _), entry in matrix.items():
            rows[i] += entry.magnitude()
        shift = [at_zero[term.index] for term in mode.right_hand_sides.terms]
        return AffineFlow(self, matrix, shift, rows.max(axis=0) * ROUNDING_MARGIN)

    def step(self, norm: float) -> Fraction:
        """Return a step whose product with `norm` is at most :data:`MAX_SERIES_NORM`.

        The common step is a multiple of it. It is zero if it would be too short.
        """
        size = float(self.common_step) * norm / MAX_SERIES_NORM
        if not math.isfinite(size):
            return Fraction(0)
        halvings = math.ceil(math.log2(max(size, 1.0)))
        too_short = 2.0**-halvings < SHORTEST_STEP
        return Fraction(0) if too_short else self.common_step / 2**halvings


@dataclass(eq=False)
class AffineFlow:
    """The solutions of a linear ODE x' = A x + g in B boxes.

    `norms` are bounds of the maximum norm of A, shape (B,): rates per unit of time. `powers` belong
    to the map of `step`, once they are known; `origin` holds states and time of the first call.
    """

    ode: LinearODE
    matrix: Matrix
    shift: Sequence[TaylorModel]
    norms: Array
    step: Fraction = Fraction(0)
    powers: AffinePowers | None = None
    origin: tuple[Sequence[TaylorModel], float] | None = None

    def take(self, boxes: IntArray) -> AffineFlow:
        """Return the flow in the selected boxes."""
        shift = [g.take(boxes) for g in self.shift]
        powers = None if self.powers is None else self.powers.take(boxes)
        origin = None
        if self.origin is not None:
            origin = [x.take(boxes) for x in self.origin[0]], self.origin[1]
        matrix, norms = taken(self.matrix, boxes), self.norms[boxes]
        return AffineFlow(self.ode, matrix, shift, norms, self.step, powers, origin)

    def __call__(self, x: Sequence[TaylorModel], begin: float, end: float) -> list[TaylorModel]:
        """Return the states at a later time, from those at an earlier one.

        They are computed from the states of the first call, by as few maps as possible: from span
        to span, errors would be carried from basis to basis.
        """
        if self.powers is None:
            self.step = self.ode.step(float(self.norms.max()))
            if not self.step:
                unknown = np.full_like(self.norms, np.inf)
                return [TaylorModel(m.monomials, np.zeros_like(m.c), m.support, unknown) for m in x]
            self.powers = self._powers(self.step)
        if self.origin is None:
            self.origin = x, begin
        start, time = self.origin
        length = Fraction(end) - Fraction(time)
        count = length // self.step
        states_there = self.powers(start, int(count))
        rest = length - count * self.step
        return self._advanced(states_there, rest) if rest else states_there

    def _powers(self, h: Fraction) -> AffinePowers:
        """Return the powers of the map of a step."""
        phi = _one_and(self.matrix, Fraction(0))
        for k in range(SERIES_TERMS, 1, -1):
            phi = _one_and(product(self.matrix, phi), h / k)
        tail = self._tail(h)
        for entry in phi.values():
            entry.remainder = (entry.remainder + tail) * ROUNDING_MARGIN
        matrix = _one_and(product(self.matrix, phi), h)
        shift = [g * h for g in image(phi, self.shift)]
        return AffinePowers.of(self.ode.mode.groups, matrix, shift)

    def _advanced(self, x: Sequence[TaylorModel], h: Fraction) -> list[TaylorModel]:
        """Return the states after a step of any length up to that of the map."""
        rates = image(self.matrix, x, self.shift)
        mean = rates  # phi(h A) times the right-hand sides, by Horner's rule
        for k in range(SERIES_TERMS, 1, -1):
            mean = image(self.matrix, [m * (h / k) for m in mean], rates)
        largest = np.max([m.magnitude() for m in rates], axis=0)
        tail = self._tail(h) * largest * ROUNDING_MARGIN
        for m in mean:
            m.remainder = (m.remainder + tail) * ROUNDING_MARGIN
        return [start + m * h for start, m in zip(x, mean, strict=True)]

    def _tail(self, h: Fraction) -> Array:
        """Return a bound of the tail of the series of phi, in the maximum norm, shape (B,)."""
        a = self.norms * float(h) * ROUNDING_MARGIN
        first = a**SERIES_TERMS / math.factorial(SERIES_TERMS + 1)
        tail = np.where(a <= 1.0, first / (1.0 - np.minimum(a, 1.0) / (SERIES_TERMS + 2)), np.inf)
        return np.asarray(tail * ROUNDING_MARGIN + UNDERFLOW)


def _one_and(matrix: Matrix, factor: Fraction) -> dict[tuple[int, int], TaylorModel]:
    """Return the sum of the unit matrix and a multiple of another."""
    return {(i, j): m * factor + 1 if i == j else m * factor for (i, j), m in matrix.items()}


@dataclass(frozen=True, eq=False)
class StiffAffineFlow:
    """The flow of a linear ODE in the `boxes` (by number among all) in which it is stiff."""

    boxes: IntArray
    flow: AffineFlow

    def without(self, refuted: BoolArray) -> StiffAffineFlow:
        """Return the flow without some of all boxes, a mask, or itself if that saves little."""
        remaining = np.flatnonzero(~refuted[self.boxes])
        if len(remaining) >= MIN_KEPT_SHARE * len(self.boxes):
            return self
        return StiffAffineFlow(self.boxes[remaining], self.flow.take(remaining))

    def advance(
        self,
        flow: Flow,
        states: StateEnclosure,
        unknowns: Mapping[int, TaylorModel],
        begin: float,
        end: float,
        control: StepControl,
    ) -> StateEnclosure:
        """Return the states at a later time: by powers in these boxes, by steps elsewhere."""
        advanced = states.take(np.arange(states.boxes))
        others = np.setdiff1d(np.arange(states.boxes), self.boxes)
        if len(others):
            other_control = control.take(others)
            models = {i: m.take(others) for i, m in unknowns.items()}
            advanced.put(
                others, flow.advance(states.take(others), models, begin, end, other_control)
            )
            control.put(others, other_control)
        if len(self.boxes):
            after = self.flow(states.take(self.boxes).models(), begin, end)
            advanced.put(self.boxes, StateEnclosure.of(after))
        return advanced


def _common_step(spans: Sequence[Fraction]) -> Fraction:
    """Return the longest time of which all spans are multiples, or the shortest of them."""
    numerator, denominator = 0, math.lcm(*(s.denominator for s in spans))
    for span in spans:
        numerator = math.gcd(numerator, span.numerator * (denominator // span.denominator))
    common, least = Fraction(numerator, denominator), min(spans)
    return common if common >= least * Fraction(SHORTEST_COMMON_STEP) else least
