"""Taylor coefficients of outputs as polynomials in the unknowns and in new variables.

The new variables are the Taylor coefficients of the states, with ``(k + 1) x_(k+1) = f_k`` for a
state with ``x' = f``, and those of the reciprocal ``w`` of every divisor ``b``, with ``w b = 1``.
So all equations stay short, and none of their solutions makes a divisor zero (H. Hong, A.
Ovchinnikov, G. Pogudin and C. Yap, Global identifiability of differential models, Comm. Pure Appl.
Math. 73, 2020: SIAN does the same with derivatives instead of Taylor coefficients, and one common
denominator).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from odefit.structure.exact.polynomials import (
    ONE,
    Polynomial,
    add,
    constant,
    is_constant,
    multiply,
    scale,
    variable,
)
from odefit.structure.series.deadline import PER_TERM, Deadline
from odefit.structure.series.number_fields import MODULAR, PRIME
from odefit.structure.series.series import RationalODE

Place = tuple[int, int]
"""An entry of the tape, and the order of one of its Taylor coefficients."""


class Variables:
    """The variables of all expansions' polynomials; 0 to ``count - 1`` are the unknowns.

    `depth` holds the order of the Taylor coefficient that each variable represents.
    """

    def __init__(self, count: int) -> None:
        self.depth = [0] * count

    def new(self, depth: int) -> Polynomial:
        """Return a new variable."""
        self.depth.append(depth)
        return variable(len(self.depth) - 1)


LONG = 8  # variables of two monomials above which their product takes longer than usual


def pairs(a: Polynomial, b: Polynomial) -> float:
    """Return the number of products of terms of two polynomials, with long ones weighted."""
    count = len(a) * len(b)
    if not count:
        return 0.0
    mean = sum(map(len, a)) / len(a) + sum(map(len, b)) / len(b)
    return count * max(mean / LONG, 1.0)


class SymbolicSeries:
    """The Taylor coefficients of one expansion, as polynomials; `relations` define new variables.

    `values` maps the entries of unknowns and known numbers to variables or numbers, `functions`
    those of known functions to Taylor coefficients.
    """

    def __init__(
        self,
        equations: RationalODE,
        variables: Variables,
        values: Mapping[int, Polynomial],
        functions: Mapping[int, Sequence[int]],
        deadline: Deadline | None = None,
    ) -> None:
        e = equations
        self._tape = e.tape
        self._variables = variables
        self._values = values
        self._functions = functions
        self._deadline = deadline or Deadline()
        self._rhs = {x.index: f.index for x, f in zip(e.states, e.rhs, strict=True)}
        self._initial = {x.index: f.index for x, f in zip(e.states, e.initial, strict=True)}
        self._moving = self._changing()
        self._known: dict[Place, Polynomial] = {}
        self._reciprocals: dict[Place, Polynomial] = {}
        self.relations: list[Polynomial] = []

    def coefficients(self, places: Iterable[Place]) -> list[Polynomial]:
        """Return the coefficients of the given entries, at the given orders."""
        pending = list(places)
        for place in self._needed(pending):
            self._deadline.check()
            self._known[place] = coefficient = self._coefficient(*place)
            self._deadline.spend(PER_TERM * (1 + len(coefficient)))
        return [self._known[place] for place in pending]

    def _changing(self) -> list[bool]:
        """Return for each entry whether it may change in time."""
        moving: list[bool] = []
        for i, (operation, a, b) in enumerate(self._tape.entries):
            if operation in ("number", "variable"):
                moving.append(i in self._rhs or i in self._functions)
            else:
                moving.append(moving[a] or moving[b])
        return moving

    def _needed(self, places: Sequence[Place]) -> list[Place]:
        """Return the unknown coefficients that `places` need, operands first."""
        seen: set[Place] = set()
        order: list[Place] = []
        waiting = [(place, False) for place in places]
        while waiting:
            place, operands_done = waiting.pop()
            if operands_done:
                order.append(place)
            elif place not in seen and place not in self._known:
                seen.add(place)
                waiting.append((place, True))
                waiting += [(operand, False) for operand in self._operands(*place)]
        return order

    def _operands(self, i: int, k: int) -> list[Place]:
        """Return the coefficients that enter coefficient `k` of entry `i`."""
        operation, a, b = self._tape.entries[i]
        if i in self._rhs:
            return [(self._rhs[i], k - 1)] if k else [(self._initial[i], 0)]
        if operation in ("number", "variable"):
            return []
        pairs = [(a, j) for j in range(k + 1)] + [(b, j) for j in range(k + 1)]
        if operation in "+-":
            pairs = [(a, k), (b, k)]
        return [(c, j) for c, j in pairs if j == 0 or self._moving[c]]

    def _coefficient(self, i: int, k: int) -> Polynomial:
        """Return coefficient `k` of entry `i`, whose operands are known."""
        operation, a, b = self._tape.entries[i]
        if i in self._rhs:
            return self._state(i, k)
        if operation == "number":
            return constant(MODULAR.exact(self._tape.numbers[i])) if k == 0 else {}
        if operation == "variable":
            if i in self._functions:
                return constant(int(self._functions[i][k]))
            return self._values[i] if k == 0 else {}
        if operation in "+-":
            return add(self._at(a, k), self._at(b, k), 1 if operation == "+" else -1)
        total: Polynomial = {}
        for j in range(k + 1):
            left = self._at(a, j)
            if left:
                right = self._at(b, k - j) if operation == "*" else self._reciprocal(b, k - j)
                # Terms are multiplied one by one, and those of the sum are copied.
                self._deadline.spend(PER_TERM * (pairs(left, right) + len(total) / 4))
                self._deadline.check()  # before a product that may exceed all limits
                total = add(total, multiply(left, right))
        return total

    def _at(self, i: int, k: int) -> Polynomial:
        """Return a known coefficient; those of constants beyond the first are zero."""
        return self._known[i, k] if k == 0 or self._moving[i] else {}

    def _state(self, i: int, k: int) -> Polynomial:
        """Return coefficient `k` of a state, from its initial value or its right-hand side."""
        if k == 0:
            return self._known[self._initial[i], 0]
        return self._named(self._at(self._rhs[i], k - 1), k, k)

    def _named(self, f: Polynomial, divisor: int, depth: int) -> Polynomial:
        """Return a new variable for `f` over a number, unless the quotient is a number."""
        if is_constant(f):
            return scale(f, pow(divisor, -1, PRIME))
        new = self._variables.new(depth)
        self.relations.append(add(f, new, -divisor))
        return new

    def _reciprocal(self, i: int, k: int) -> Polynomial:
        """Return coefficient `k` of the reciprocal of entry `i`."""
        if k and not self._moving[i]:
            return {}
        for j in range(k + 1):
            if (i, j) not in self._reciprocals:
                self._reciprocals[i, j] = self._new_reciprocal(i, j)
        return self._reciprocals[i, k]

    def _new_reciprocal(self, i: int, k: int) -> Polynomial:
        """Return this coefficient, given the lower ones: the product with the entry is 1."""
        first = self._at(i, 0)
        if not first:
            raise ZeroDivisionError("division by zero in the prime field")
        total = constant(-1 if k == 0 else 0)
        for j in range(k):
            right = self._at(i, k - j)
            self._deadline.spend(PER_TERM * (pairs(self._reciprocals[i, j], right) + len(total)))
            self._deadline.check()
            total = add(total, multiply(self._reciprocals[i, j], right))
        if is_constant(first):
            return self._named(total, -first[ONE], k)
        if not total:
            return {}
        new = self._variables.new(k)
        self.relations.append(add(total, multiply(new, first)))
        return new
