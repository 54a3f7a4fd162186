"""Linear equations with constant coefficients, solved in closed form by their eigenvectors.

Between events the states of many models obey x' = A x + b, where A and b depend on the scalars
alone: compartments, first-order reactions, circuits, springs. With A = V diag(l) V^-1 the states
and their sensitivities are sums of exponentials,

    x(t) = V (exp(l t) y + g(l, t) V^-1 b),   y = V^-1 x(0),   g(l, t) = (exp(l t) - 1) / l,

and the derivative of the exponential along a change of A is that of Daleckii and Krein (Higham,
Functions of Matrices, 2008, section 3.2). It has divided differences of these functions over pairs
of eigenvalues. There are no steps, stiffness costs nothing, and segments with the same scalars
share the eigenvectors. If the eigenvectors are nearly parallel, digits would be lost: the other
engines integrate such equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.vector_field import SensitivityPattern
from odefit.simulation.engines.cut_off import NANOSECONDS, count_work
from odefit.simulation.engines.engine import SegmentSolution, Values
from odefit.simulation.engines.segments import Segment

if TYPE_CHECKING:
    from odefit.simulation.engines.linear.equations import LinearEquations

MOST_STATES = 30
"""Largest number of states: the work of a closed form grows with its cube, for each direction."""

MOST_LOST = 1e3
"""Largest ratio of the sum of magnitudes of a state's terms to its largest value. Cancellation
costs states the digits of this ratio, and sensitivities at worst twice as many."""

LOOKED_AT = 16  # number of output times at which these sums are compared with the values

FASTEST = 1e5
"""Largest product of an eigenvalue and the time if states act on each other in cycles. Rounding
changes all eigenvalues by a share of the largest. Without cycles the eigenvalues are entries of the
matrix."""


AT_ONCE = 2048  # number of output times whose values are computed together

BEGINNING, OUTPUT = 100_000.0, 2_000.0  # time of the eigenvectors, and of each output, in ns

CLOSE = 0.5
"""Product of the time and a difference of eigenvalues up to which differences of exponentials would
lose digits."""

SMALL = 0.3  # product of eigenvalue and time up to which differences are taken by their series
TERMS = 13  # terms of these series: the first one left out is below rounding

Complex = Any  # real if all eigenvalues are, else complex


def time_of(outputs: int) -> float:
    """Return the time of a solution with so many output times, in ns."""
    return BEGINNING + OUTPUT * outputs


class ClosedForm:
    """Linear equations with one structure of sensitivities."""

    def __init__(self, equations: LinearEquations, pattern: SensitivityPattern) -> None:
        self._equations, self._directions = equations, pattern.directions
        self._last: tuple[tuple[bytes, bytes], Eigenvectors | None] | None = None

    def eigenvectors(self, values: Values) -> Eigenvectors | None:
        """Return the eigenvectors at some values of the scalars; None if digits are lost."""
        key = values.scalars.tobytes(), values.scalar_sensitivities.tobytes()
        last = self._last  # which another thread may replace
        if last is None or last[0] != key:
            changes = values.scalar_sensitivities.reshape(len(values.scalars), self._directions)
            with np.errstate(all="ignore"):
                coefficients = self._equations.at(values.scalars, changes)
                last = key, Eigenvectors.of(*coefficients, cycles=self._equations.cycles)
            self._last = last
        return last[1]

    def integrate(self, segment: Segment, initial: Values) -> SegmentSolution | None:
        """Return states and sensitivities at the segment's times; None if digits are lost."""
        vectors, times = self.eigenvectors(initial), segment.times - segment.start
        if vectors is None or not vectors.can_reach(float(times[-1])):
            return None
        count_work(time_of(len(times)) / NANOSECONDS)
        states = np.empty((len(times), len(initial.states)))
        sensitivities = np.empty((len(times), *initial.sensitivities.shape))
        with np.errstate(all="ignore"):
            for first in range(0, len(times), AT_ONCE):
                part = slice(first, first + AT_ONCE)
                values = vectors.at(times[part], initial.states, initial.sensitivities)
                if values is None:
                    return None
                states[part], sensitivities[part] = values
        return SegmentSolution.without_algebraic(states, sensitivities, len(times))


@dataclass(frozen=True)
class Functions:
    """Functions of the eigenvalues at times, and their divided differences over pairs.

    g and its differences are missing if b and its changes are zero, the differences also if A does
    not change.
    """

    exponentials: Complex  # shape (n, k)
    integrals: Complex  # g, shape (n, k)
    of_exponentials: Complex  # shape (r, k, n), of the eigenvalues that were requested
    of_integrals: Complex  # shape (r, k, n)


class Eigenvectors:
    """The eigenvectors of A, with b and all changes in their coordinates.

    `values` are the eigenvalues, shape (n,), by falling real parts, `vectors` the eigenvectors and
    `inverse` the inverse of their matrix, shape (n, n). `constant` is b, shape (n,), with its
    changes `constant_along`, shape (n, m). `along` are the changes of A, shape (n, n, moved), along
    the directions `moved` in which it changes. It is `forced` if b or its changes are not zero.
    """

    def __init__(
        self,
        values: Complex,
        vectors: Complex,
        inverse: Complex,
        changes: tuple[Array, ...],
        *,
        cycles: bool,
    ) -> None:
        self.cycles = cycles
        constant, along, constant_along = changes
        self.values, self.vectors, self.inverse = values, vectors, inverse
        self.moved = np.flatnonzero(along.any(axis=(1, 2)))
        turned = inverse @ along[self.moved] @ vectors
        self.along = np.ascontiguousarray(turned.transpose(1, 2, 0))
        self.forced = bool(constant.any() or constant_along.any())
        self.constant, self.constant_along = inverse @ constant, inverse @ constant_along.T
        # The sum of conjugate eigenvectors is twice the real part of one of them.
        self._half = half = np.flatnonzero(values.imag >= 0.0)
        self._weighted = vectors[:, half] * np.where(values[half].imag > 0.0, 2.0, 1.0)
        self._last: tuple[bytes, Functions] | None = None

    @classmethod
    def of(
        cls, a: Array, b: Array, along: Array, constant_along: Array, *, cycles: bool = True
    ) -> Eigenvectors | None:
        """Return the eigenvectors of A; None if there are too few or A is not finite.

        `cycles` is False if no state acts on itself through others.
        """
        if not all(np.isfinite(part).all() for part in (a, b, along, constant_along)):
            return None
        try:
            values, vectors = np.linalg.eig(a)
            inverse = np.linalg.inv(vectors)
        except np.linalg.LinAlgError:
            return None
        order, changes = np.argsort(-values.real, kind="stable"), (b, along, constant_along)
        return cls(values[order], vectors[:, order], inverse[order], changes, cycles=cycles)

    def can_reach(self, time: float) -> bool:
        """Return whether rounding of the eigenvalues leaves enough digits up to a time."""
        return not self.cycles or float(np.abs(self.values).max()) * time <= FASTEST

    def at(self, times: Array, states: Array, sensitivities: Array) -> tuple[Array, Array] | None:
        """Return states and sensitivities at times after those given, shapes (k, n), (k, n, m).

        None is returned if digits are lost.
        """
        key = times.tobytes()
        last = self._last  # which another thread may replace
        if last is None or last[0] != key:
            self._last = last = key, self.functions(times, self._half)
        terms, half = last[1], self._half
        m = sensitivities.shape[1]
        y = self.inverse @ states
        exponentials = terms.exponentials[half]
        modes = exponentials * y[half, None]
        r = exponentials[:, :, None] * (self.inverse[half] @ sensitivities)[:, None]
        if self.forced:
            integrals = terms.integrals[half]
            modes += integrals * self.constant[half, None]
            r += integrals[:, :, None] * self.constant_along[half, None]
        if len(self.moved):
            weights = terms.of_exponentials * y
            if self.forced:
                weights += terms.of_integrals * self.constant
            if len(self.moved) == m:
                r += weights @ self.along[half]
            else:
                r[:, :, self.moved] += weights @ self.along[half]
        return summed(self._weighted, modes, r)

    def functions(self, times: Array, rows: IntArray) -> Functions:
        """Return the functions at times, with differences that begin at eigenvalues `rows`."""
        each, none = self.values, None
        exponentials = np.exp(each[:, None] * times)
        integrals = times * phi(each[:, None] * times) if self.forced else none
        if not len(self.moved):
            return Functions(exponentials, integrals, none, none)
        of_exponentials = np.empty((len(rows), len(times), len(each)), exponentials.dtype)
        for row, i in enumerate(rows.tolist()):
            of_exponentials[row] = _of_exponentials(each, i, times, exponentials).T
        if integrals is None:
            return Functions(exponentials, integrals, of_exponentials, none)
        one, g = each[rows, None, None], (integrals[rows][:, :, None], integrals.T[None])
        pairs = one, each[None, None, :], times[None, :, None]
        of_integrals = differences_of_integrals(*pairs, g, of_exponentials)
        return Functions(exponentials, integrals, of_exponentials, of_integrals)

    def states(self, coordinates: Complex) -> Array:
        """Return the states, or their changes, with these coordinates, shape (n, ...)."""
        return _real(self.vectors, coordinates)


def summed(vectors: Complex, modes: Complex, r: Complex) -> tuple[Array, Array] | None:
    """Return states and sensitivities, shapes (k, n) and (k, n, m); None if digits are lost.

    They are given in coordinates of eigenvectors, shapes (a, k) and (a, k, m).
    """
    count, m = r.shape[1:]
    states = _real(vectors, modes)
    along = _real(vectors, r.reshape(len(r), count * m)).reshape(len(states), count, m)
    size, size_along = np.abs(states).max(axis=1), np.abs(along).max(axis=1)
    at = np.unique(np.linspace(0, count - 1, LOOKED_AT).astype(np.intp))
    magnitudes = np.abs(vectors)
    lost = (magnitudes @ np.abs(modes[:, at])).max(axis=1)
    lost_along = magnitudes @ np.abs(r[:, at]).max(axis=1)
    enough = np.maximum(MOST_LOST * size[:, None], MOST_LOST**2 * size_along)
    # Comparisons with NaN are false.
    if not ((lost <= MOST_LOST * size).all() and (lost_along <= enough).all()):
        return None
    return np.ascontiguousarray(states.T), along.transpose(1, 0, 2)


def _real(vectors: Complex, modes: Complex) -> Array:
    """Return the real part of a product of matrices."""
    if not np.iscomplexobj(modes):
        return np.asarray(vectors @ modes)
    return np.asarray(vectors.real @ modes.real - vectors.imag @ modes.imag)


def phi(z: Complex) -> Complex:
    """Return (exp(z) - 1)/z, which is one at zero."""
    zero = z == 0.0
    return np.where(zero, 1.0, np.expm1(z) / np.where(zero, 1.0, z))


def _of_exponentials(eigenvalues: Complex, i: int, times: Array, exponentials: Complex) -> Complex:
    """Return divided differences of exp over eigenvalue number `i` and each one, shape (n, k).

    The eigenvalues come by falling real parts. For a close pair the exponential of the first is a
    factor, so that nothing overflows.
    """
    difference = (eigenvalues - eigenvalues[i])[:, None]
    quotients = (exponentials - exponentials[i]) / np.where(difference == 0.0, 1.0, difference)
    row, column = np.nonzero(np.abs(difference) * times < CLOSE)
    first = np.minimum(row, i)
    later = np.where(row > i, 1.0, -1.0) * difference[row, 0] * times[column]
    quotients[row, column] = times[column] * exponentials[first, column] * phi(later)
    return quotients


def differences_of_integrals(
    one: Complex, other: Complex, times: Array, g: tuple[Complex, Complex], of_exponentials: Complex
) -> Complex:
    """Return divided differences of g over pairs of eigenvalues `one` and `other`.

    As l g(l) = exp(l t) - 1, they are (D - g(k))/l with D those of the exponentials, where l is the
    larger one of a pair and k the other. Where both are small, a series is used. `g` has the values
    at `one` and `other`; the shapes of all broadcast against each other.
    """
    larger = np.abs(one) >= np.abs(other)
    of_other = np.where(larger, g[1], g[0])
    divisor: Complex = np.where(larger, one, other)
    small = np.abs(divisor) * times < SMALL
    quotients = (of_exponentials - of_other) / np.where(divisor == 0.0, 1.0, divisor)
    if small.any():
        power, factor = np.ones_like(other), times**2 / 2.0
        term = np.ones_like(one * other * times)
        total = factor * term
        for order in range(2, TERMS + 1):
            power = power * other
            term = one * term + power
            factor = factor * times / (order + 1)
            total = total + factor * term
        quotients = np.where(small, total, quotients)
    return quotients
