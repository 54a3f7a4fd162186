"""Sizes of expressions as monomials: the algebra of dimensional analysis.

The value of an expression is the logarithm of its size, which is linear in the logarithms of the
sizes of its names. Summands and compared quantities should have similar sizes; arguments of exp and
sin should be near 1. These conditions are collected as equations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import COMPARISONS, LOGIC, NUMPY

ADDED = 0.5
"""Weight of similar summands, relative to that of the terms of an equation of motion."""

ADDED_TO_NUMBER = 0.2
"""Weight of a summand beside a number in the text, which may only keep a denominator from zero."""

IN_LOGARITHM = 0.2
"""Weight of an argument of a logarithm, whose size hardly affects the value."""

NATURAL = (0.9, 2.5)
"""Factors of an unknown in an exponential that make it a logarithm, natural or decadic."""

RANK = 1e-9
"""Smallest singular value, relative to the largest, of a direction that equations determine."""

MOST_NAMES = 400
"""Number of names above which all equations are solved at once as a sparse weighted system."""

MOST_SUMMANDS = 20
"""Largest number of summands in which a point of time such as t/60 - b - 2 is looked for."""

LOGARITHMS = {"log": 1.0, "log10": math.log(10.0)}
"""Functions whose value times this factor is a natural logarithm."""

SAME_SIZE = frozenset({"min", "max", "abs"})

PURE = frozenset({"exp", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"})
"""Functions whose argument is dimensionless."""


@dataclass(frozen=True)
class Monomial:
    """The logarithm of a size: a number plus multiples of the logarithms of other sizes."""

    constant: float  # the number; minus infinity for zero
    exponents: Mapping[str, float]  # the multiple of each name's logarithm
    sign: int = 1  # of the quantity where all names are positive, 0 where it is a sum

    def plus(self, other: Monomial, factor: float) -> Monomial:
        """Return the logarithm of this size, and its sign, times a power of the other's size."""
        exponents = dict(self.exponents)
        for name, value in other.exponents.items():
            exponents[name] = exponents.get(name, 0.0) + factor * value
        constant = self.constant if factor == 0 else self.constant + factor * other.constant
        return Monomial(constant, exponents, self.sign)

    @property
    def factor(self) -> float:
        """The number, with the sign."""
        return self.sign * math.exp(min(self.constant, 700.0))


ONE = Monomial(0.0, {})


@dataclass(frozen=True)
class Row:
    """The condition that a monomial is 1, with its weight."""

    monomial: Monomial
    weight: float


@dataclass(frozen=True)
class Exponential:
    """The exponential of an argument that is one unknown times a quantity of known size."""

    name: str  # of the unknown, as in monomials
    sign: int  # that of the argument
    factor: Monomial  # the argument's size over the unknown


@dataclass(frozen=True)
class Logarithm:
    """An unknown as the logarithm of a quantity, whose name is as in monomials."""

    quantity: str
    factor: float  # 1 for natural logarithms, log(10) for decadic ones


class Size:
    """The size of an expression: the sum of `terms`, without terms for zero.

    `number` is the value of an expression that depends on no name.
    """

    __slots__ = ("algebra", "number", "terms")

    def __init__(
        self, algebra: SizeAlgebra, terms: tuple[Monomial, ...], number: float | None = None
    ) -> None:
        self.algebra = algebra
        self.terms = terms
        self.number = number

    @property
    def sign(self) -> int:
        """The sign of a single term whose names are positive, 0 of a sum."""
        return self.terms[0].sign if len(self.terms) == 1 else 0

    def __neg__(self) -> Size:
        number = None if self.number is None else -self.number
        return Size(self.algebra, tuple(replace(t, sign=-t.sign) for t in self.terms), number)

    def __add__(self, other: Size) -> Size:
        if self.number is not None and other.number is not None:
            return self.algebra.known(self.number + other.number)
        terms = self.terms + other.terms
        self.algebra.note_times(terms)
        return Size(self.algebra, terms)

    def __sub__(self, other: Size) -> Size:
        return self + -other

    def __mul__(self, other: Size) -> Size:
        if self.number is not None and other.number is not None:
            return self.algebra.known(self.number * other.number)
        return self._times(other, 1.0)

    def __truediv__(self, other: Size) -> Size:
        if self.number is not None and other.number:
            return self.algebra.known(self.number / other.number)
        self.algebra.note_width(self.terms, other.terms)
        return self._times(other, -1.0)

    def _times(self, other: Size, factor: float) -> Size:
        second = self.algebra.joined(other)
        if second is None:
            return Size(self.algebra, () if factor > 0 else self.terms)
        products = (t.plus(second, factor) for t in self.terms)
        return Size(self.algebra, tuple(replace(t, sign=t.sign * other.sign) for t in products))


class SizeAlgebra:
    """The algebra of sizes, which collects the quantities that should have similar size.

    `exponents` has values, by name, for exponents that are not numbers.
    """

    def __init__(self, exponents: Mapping[str, float]) -> None:
        self.rows: list[Row] = []
        self.used_as_exponents: set[str] = set()
        self.in_exponents: set[str] = set()
        """Unknowns that are factors in exponents, as an energy is, and in no varying quantity."""
        self.exponentials: dict[str, Exponential] = {}
        """Exponentials by the name that each has in monomials."""
        self.logarithms: dict[str, Logarithm] = {}
        """Unknowns that are logarithms of quantities."""
        self.times: dict[str, tuple[float, float]] = {}
        """Unknowns that are points of time, such as b in t/60 - b: 1/60, and a number added."""
        self.widths: set[str] = set()
        """Unknowns by which a difference from such a point of time is divided."""
        self._exponents = exponents

    def number(self, text: str) -> Size:
        return self.known(float(text))

    def known(self, value: float) -> Size:
        """Return the size of a number."""
        if not math.isfinite(value) or value == 0:
            return Size(self, (), value)
        return Size(self, (Monomial(math.log(abs(value)), {}, 1 if value > 0 else -1),), value)

    def name(self, name: str) -> Size:
        """Return the size of a named quantity."""
        return Size(self, (Monomial(0.0, {name: 1.0}),))

    def power(self, base: Size, exponent: Size) -> Size:
        if exponent.number is not None:
            if base.number is not None:
                with np.errstate(all="ignore"):
                    return self.known(float(np.power(base.number, exponent.number)))
            factor = exponent.number
        else:
            if base.number is not None and base.number > 0:
                self._factors(exponent)
                product = self._product(exponent, math.log(base.number))
                if product is not None:
                    return Size(self, (product,))
            self._pure(exponent)
            names = [n for term in exponent.terms for n in term.exponents]
            self.used_as_exponents.update(names)
            factor = self._exponents.get(names[0], 1.0) if len(names) == 1 else 1.0
        joined = self.joined(base)
        if joined is None or not math.isfinite(factor):
            return Size(self, () if joined is None and factor > 0 else (ONE,))
        return Size(self, (ONE.plus(joined, factor),))

    def call(self, function: str, arguments: Sequence[Size]) -> Size:
        if function in COMPARISONS:
            self.joined(arguments[0] - arguments[1])
            return Size(self, ())
        if function in LOGIC:
            return Size(self, ())
        if function == "piecewise":
            return self._one_of([*arguments[:-1:2], arguments[-1]])
        if all(a.number is not None for a in arguments):
            with np.errstate(all="ignore"):
                values = [np.float64(a.number) for a in arguments]
                return self.known(float(NUMPY.call(function, values)))
        if function in SAME_SIZE:
            return self._one_of(arguments)
        if function == "sqrt":
            return self.power(arguments[0], self.known(0.5))
        if function == "exp":
            self._factors(arguments[0])
            product = self._product(arguments[0], 1.0)
            if product is not None:
                return Size(self, (product,))
        if function in PURE:
            self._pure(arguments[0])
        if function in LOGARITHMS:
            for term in arguments[0].terms:
                self.wish(term, IN_LOGARITHM)
        return Size(self, (ONE,))

    def _product(self, argument: Size, factor: float) -> Monomial | None:
        """Return the size of exp(factor*argument), None unless each term has one unknown at most.

        A model may have logarithms of constants as unknowns, as in exp(lKa)*g, 10^(lKe - lCl) and
        exp(lA - E/(R*T)). The exponential of each is a quantity with a size of its own. A function
        of time, such as exp(-k*t), starts at size 1.
        """
        of_terms = [{n: p for n, p in t.exponents.items() if p} for t in argument.terms]
        for term, names in zip(argument.terms, of_terms, strict=True):
            powers = [p for n, p in names.items() if n.startswith("parameter ")]
            changing = any(n.startswith(("time ", "state ")) for n in names)
            if term.sign == 0 or changing or (names and powers != [1.0]):
                return None
        product, pure = ONE, []
        for term, names in zip(argument.terms, of_terms, strict=True):
            unknowns = [n for n in names if n.startswith("parameter ")]
            value = term.sign * math.exp(min(term.constant, 700.0)) * factor
            if not names:
                product = product.plus(Monomial(value, {}), 1.0)
            elif len(names) == 1 and NATURAL[0] <= abs(value) <= NATURAL[1]:
                product = product.plus(self._of_logarithm(unknowns[0], abs(value)), term.sign)
            else:
                product = product.plus(self._exponential(term, unknowns[0]), 1.0)
                pure.append(term)
        self._pure(Size(self, tuple(pure)))
        return product if product.exponents else None

    def _of_logarithm(self, name: str, factor: float) -> Monomial:
        """Return the size of the exponential of a multiple of an unknown, a quantity by itself."""
        one = self.logarithms.setdefault(name, Logarithm(f"exponential of {name}", factor))
        return Monomial(0.0, {one.quantity: factor / one.factor})

    def _exponential(self, term: Monomial, unknown: str) -> Monomial:
        """Return the size of the exponential of a term with one unknown as a new name."""
        exponential = Exponential(
            unknown, term.sign, term.plus(Monomial(0.0, {unknown: 1.0}), -1.0)
        )
        name = next((n for n, e in self.exponentials.items() if e == exponential), None)
        if name is None:
            name = f"exp {len(self.exponentials)}"
            self.exponentials[name] = exponential
        return Monomial(0.0, {name: 1.0})

    def _factors(self, argument: Size) -> None:
        """Record the unknowns in which the argument of an exponential is linear at all times."""
        changing = ("time ", "state ")
        moved = [t for t in argument.terms if any(n.startswith(changing) for n in t.exponents)]
        beside_motion = {n for term in moved for n in term.exponents}
        for term in argument.terms:
            for name, power in term.exponents.items():
                if power == 1.0 and name.startswith("parameter ") and name not in beside_motion:
                    self.in_exponents.add(name)

    def joined(self, size: Size) -> Monomial | None:
        """Return one monomial for a sum with similar terms; None for zero."""
        terms = size.terms
        if not terms:
            return None
        if len(terms) == 1:
            return terms[0]
        mean = reduce(lambda a, b: a.plus(b, 1.0), terms[1:], terms[0])
        mean = ONE.plus(mean, 1.0 / len(terms))
        plain = any(not term.exponents for term in terms)
        for term in terms:
            self.wish(term.plus(mean, -1.0), ADDED_TO_NUMBER if plain else ADDED)
        return mean

    def wish(self, monomial: Monomial, weight: float) -> None:
        """Collect the condition that `monomial` is 1."""
        if any(monomial.exponents.values()) and math.isfinite(monomial.constant):
            self.rows.append(Row(monomial, weight))

    def note_times(self, terms: Sequence[Monomial]) -> None:
        """Record the unknown in a sum such as t/60 - b - 2, which is a point of time."""
        if len(terms) > MOST_SUMMANDS:
            return
        factors: dict[str, float] = {}
        for term in terms:
            names = [(name, power) for name, power in term.exponents.items() if power]
            if len(names) > 1 or any(power != 1 for _, power in names) or term.sign == 0:
                return
            name = names[0][0] if names else ""
            factors[name] = factors.get(name, 0.0) + term.factor
        offset = factors.pop("", 0.0)
        if len(factors) != 2:
            return
        time, unknown = sorted(factors, key=lambda name: not name.startswith("time "))
        if time.startswith("time ") and unknown.startswith("parameter "):
            slope = -factors[time] / factors[unknown] if factors[unknown] else 0.0
            if slope > 0.0:
                self.times[unknown] = slope, -offset / factors[unknown]

    def note_width(self, terms: Sequence[Monomial], divisor: Sequence[Monomial]) -> None:
        """Record w in (t - b)/w and in c*(t - b)/w^2, given the summands and the divisor."""
        names = {name for term in terms for name, power in term.exponents.items() if power}
        if len(divisor) == 1 and names & self.times.keys():
            powers = [name for name, power in divisor[0].exponents.items() if power]
            if len(powers) == 1 and powers[0].startswith("parameter "):
                self.widths.add(powers[0])

    def _pure(self, size: Size) -> None:
        for term in size.terms:
            self.wish(term, ADDED)

    def _one_of(self, sizes: Sequence[Size]) -> Size:
        terms = tuple(term for size in sizes for term in size.terms)
        joined = self.joined(Size(self, terms))
        return Size(self, () if joined is None else (joined,))


def equations(rows: Sequence[Row], names: Sequence[str]) -> tuple[Array, Array]:
    """Return the matrix and the right-hand side of weighted equations for logarithms of sizes."""
    place = {name: k for k, name in enumerate(names)}
    matrix, right = np.zeros((len(rows), len(names))), np.zeros(len(rows))
    for k, row in enumerate(rows):
        for name, value in row.monomial.exponents.items():
            matrix[k, place[name]] += row.weight * value
        right[k] = -row.weight * row.monomial.constant
    return matrix, right


def solved(matrices: Sequence[Array], rights: Sequence[Array]) -> Array:
    """Return the solution of linear equations by least squares, those of each level first.

    Each level determines what the previous one leaves open; the last determines everything.
    Matrices have the shape (rows, n), right-hand sides (rows, k), the solution (n, k).
    """
    n, k = matrices[0].shape[1], rights[0].shape[1]
    if n > MOST_NAMES:
        return _solved_together(matrices, rights)
    solution, free = np.zeros((n, k)), np.eye(n)
    for matrix, right in zip(matrices, rights, strict=True):
        if not len(matrix) or not free.shape[1]:
            continue
        reduced = matrix @ free
        # All right singular vectors are needed, but only the first of the many left ones.
        u, s, vt = np.linalg.svd(reduced, full_matrices=reduced.shape[0] < reduced.shape[1])
        rank = int(np.sum(s > RANK * max(s.max(initial=0.0), 1e-3)))
        step = (u[:, :rank].T @ (right - matrix @ solution)) / s[:rank, None]
        solution = solution + free @ (vt[:rank].T @ step)
        free = free @ vt[rank:].T
    return solution


def _solved_together(matrices: Sequence[Array], rights: Sequence[Array]) -> Array:
    from scipy.sparse import csr_array, vstack
    from scipy.sparse.linalg import lsqr

    weights = [10.0 ** (-2 * level) for level in range(len(matrices))]
    matrix = vstack([csr_array(w * m) for w, m in zip(weights, matrices, strict=True)]).tocsr()
    right = np.vstack([w * r for w, r in zip(weights, rights, strict=True)])
    columns = [lsqr(matrix, b, atol=1e-10, btol=1e-10, iter_lim=5000)[0] for b in right.T]
    return np.column_stack(columns)
