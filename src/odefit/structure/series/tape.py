"""Rational expressions as a straight-line program: recorded once, run over any numbers.

Evaluating a model over :class:`Recording` records every operation once (equal ones are shared,
operations on numbers are exact). The tape is then run on truncated power series over the complex
numbers or over a prime field (:mod:`odefit.structure.series.series`), and differentiated
symbolically.

A tape may also contain :data:`ELEMENTARY` functions, for packages that can evaluate them
(:mod:`odefit.enclosure`); a :class:`Recording` records them only if its `lift` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

from odefit.expressions.chains import LONG_CHAIN
from odefit.expressions.grammar import named

Elementary = Literal["exp", "sin", "cos", "middle", "^", "log", "atan", "asin", "tanh"]
"""The name of an elementary function; ``"middle"`` is any constant near its argument."""

Operation = Literal["number", "variable", "+", "-", "*", "/"] | Elementary
"""The kind of an entry of a tape."""

ELEMENTARY: tuple[Elementary, ...] = get_args(Elementary)
"""The elementary functions. The left operand is the argument. The right operand is the argument
again, the exponent (of ``"^"``), or the reciprocal of the derivative (of log and the functions
after it). Exponents are constant in each box: numbers, or the ``"middle"`` of other terms."""

MAX_POWER = 64
"""Largest integer exponent for which a power is recorded as a chain of products."""


MANY_BITS = 50  # variables of a term from which on their bits are read all at once

REVERSED_FROM = 100_000
"""Number of entries times variables above which a gradient is taken in the reverse mode."""


class NotRationalError(ValueError):
    """An expression cannot be recorded as a rational function; the message says why."""


class Entry(NamedTuple):
    """One operation on two earlier entries (by number), or a number, or a variable."""

    operation: Operation
    left: int
    right: int


class Tape:
    """A straight-line program without two equal operations, to which operations are added.

    `numbers` and `names` hold the exact values of numbers and the names of variables by entry;
    `differentiated` counts all differentiations of entries.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.numbers: dict[int, Fraction] = {}
        self.names: dict[int, str] = {}
        self.differentiated = 0
        self._known: dict[Entry | Fraction | str, int] = {}
        self._integers: dict[int, int] = {}  # comparing fractions is slow
        self._partials: dict[tuple[int, int], int | None] = {}
        # The variables on which each entry depends, as bits of an integer: derivatives by the many
        # others are zero without any search.
        self._variables: list[int] = []
        self._bits: dict[int, int] = {}
        self._in_order: list[int] = []

    def number(self, value: Fraction | int) -> Term:
        """Return the term of a number."""
        if isinstance(value, int) and value in self._integers:
            return Term(self, self._integers[value])
        exact = Fraction(value)
        if exact not in self._known:
            self._known[exact] = self._append(Entry("number", 0, 0))
            self.numbers[self._known[exact]] = exact
        if isinstance(value, int):
            self._integers[value] = self._known[exact]
        return Term(self, self._known[exact])

    def variable(self, name: str) -> Term:
        """Return the variable with a name."""
        if name not in self._known:
            self._known[name] = self._append(Entry("variable", 0, 0))
            self.names[self._known[name]] = name
        return Term(self, self._known[name])

    def release(self, index: int, name: str) -> None:
        """Make a number a variable with a name; no derivative may have been recorded before."""
        value = self.numbers.pop(index)
        del self._known[value]
        self._integers = {k: i for k, i in self._integers.items() if i != index}
        self.entries[index] = Entry("variable", 0, 0)
        self.names[index] = name
        self._known[name] = index
        self._bits[index] = bit = 1 << len(self._bits)
        self._in_order.append(index)
        self._variables[index] = bit
        for i in range(index + 1, len(self.entries)):
            operation, left, right = self.entries[i]
            if operation not in ("number", "variable"):
                self._variables[i] = self._variables[left] | self._variables[right]

    def apply(self, operation: Operation, left: Term, right: Term) -> Term:
        """Return ``left operation right``, simplified if a number makes that trivial."""
        a, b = left.value, right.value
        if operation in ELEMENTARY:
            return self._shared(Entry(operation, left.index, right.index))
        if a is not None and b is not None:
            if operation == "/" and b == 0:
                raise NotRationalError("a division by zero")
            return self.number(_EXACT[operation](a, b))
        if operation in "+-" and b == 0:
            return left
        if operation == "+" and a == 0:
            return right
        if operation == "*" and (a == 0 or b == 0):
            return self.number(0)
        if operation == "*" and a == 1:
            return right
        if operation in "*/" and b == 1:
            return left
        if operation == "/" and a == 0:
            return left
        if operation == "/" and b == 0:
            raise NotRationalError("a division by zero")
        if operation == "-" and left.index == right.index:
            return self.number(0)
        i, j = left.index, right.index
        if operation in "+*" and i > j:
            i, j = j, i
        return self._shared(Entry(operation, i, j))

    def derivative(self, term: Term, variable: Term) -> Term:
        """Return the partial derivative of `term` by a variable."""
        if not self._variables[term.index] & self._bits[variable.index]:
            return self.number(0)
        index = self._partial(term.index, variable.index)
        return self.number(0) if index is None else Term(self, index)

    def gradient(self, term: Term, variables: Sequence[Term]) -> list[Term]:
        """Return the partial derivatives of `term` by many variables.

        A long term in many variables is traversed once, from its result back to the variables (the
        reverse mode), instead of once for each variable.
        """
        entries = needed(self, [term])
        if len(entries) * len(variables) < REVERSED_FROM:
            return [self.derivative(term, variable) for variable in variables]
        self.differentiated += len(entries)
        bits = sum(self._bits[v.index] for v in variables)
        adjoints = {term.index: [self.number(1)]}
        for i in reversed(entries):
            operation, *operands = self.entries[i]
            if operation in ("number", "variable", "middle") or i not in adjoints:
                continue
            parts = self._handed_back(i, self.total(adjoints.pop(i)))
            for operand, part in zip(operands, parts, strict=False):
                if self._variables[operand] & bits:
                    adjoints.setdefault(operand, []).append(part)
        return [self.total(adjoints.get(variable.index, [])) for variable in variables]

    def total(self, terms: Sequence[Term]) -> Term:
        """Return the sum of some terms; many are added by halves, so that the sum is not deep."""
        if len(terms) < LONG_CHAIN:
            result = terms[0] if terms else self.number(0)
            for term in terms[1:]:
                result = result + term
            return result
        middle = len(terms) // 2
        return self.total(terms[:middle]) + self.total(terms[middle:])

    def _handed_back(self, index: int, outer: Term) -> tuple[Term, ...]:
        """Return the derivatives by the operands of an entry, from the one by the entry itself."""
        operation, left, right = self.entries[index]
        a, b = Term(self, left), Term(self, right)
        if operation == "+":
            return outer, outer
        if operation == "-":
            return outer, -outer
        if operation == "*":
            return outer * b, outer * a
        if operation == "/":
            return outer / b, -(outer * Term(self, index) / b)
        return (outer * self._function_derivative(index),)

    def depends(self, *terms: Term) -> frozenset[int]:
        """Return the indices of the variables on which any of the terms depends."""
        bits = 0
        for term in terms:
            bits |= self._variables[term.index]
        return frozenset(self._indices(bits))

    def substitute(self, term: Term, replacements: Mapping[int, Term]) -> Term:
        """Return `term` with variables, given by their indices, replaced by other terms."""
        if not any(i in replacements for i in self._indices(self._variables[term.index])):
            return term
        replaced: dict[int, Term] = {}
        for i in needed(self, [term]):
            operation, a, b = self.entries[i]
            if operation in ("number", "variable"):
                replaced[i] = replacements.get(i, Term(self, i))
            else:
                replaced[i] = self.apply(operation, replaced[a], replaced[b])
        return replaced[term.index]

    def _indices(self, bits: int) -> Iterator[int]:
        """Yield the indices of the variables that the bits represent."""
        if bits.bit_count() > MANY_BITS:  # as taking them off one by one is quadratic
            digits = bin(bits)[:1:-1]
            yield from (self._in_order[k] for k, digit in enumerate(digits) if digit == "1")
            return
        while bits:
            lowest = bits & -bits
            yield self._in_order[lowest.bit_length() - 1]
            bits ^= lowest

    def _shared(self, entry: Entry) -> Term:
        if entry not in self._known:
            self._known[entry] = self._append(entry)
        return Term(self, self._known[entry])

    def _append(self, entry: Entry) -> int:
        index = len(self.entries)
        self.entries.append(entry)
        if entry.operation == "variable":
            self._bits[index] = 1 << len(self._bits)
            self._in_order.append(index)
            self._variables.append(self._bits[index])
        elif entry.operation == "number":
            self._variables.append(0)
        else:
            self._variables.append(self._variables[entry.left] | self._variables[entry.right])
        return index

    def _partial(self, index: int, variable: int) -> int | None:
        """Return the entry of a partial derivative; None if it is zero."""
        waiting, bit = [index], self._bits[variable]
        known = len(self._partials)
        while waiting:
            i = waiting[-1]
            if (i, variable) in self._partials:
                waiting.pop()
                continue
            if not self._variables[i] & bit:
                self._partials[i, variable] = None
                continue
            operation, left, right = self.entries[i]
            if operation in ("number", "variable"):
                one = self.number(1).index if i == variable else None
                self._partials[i, variable] = one
                continue
            missing = [k for k in (left, right) if (k, variable) not in self._partials]
            if missing:
                waiting += missing
                continue
            by_left, by_right = (self._partials[k, variable] for k in (left, right))
            term = self._chain_rule(i, by_left, by_right)
            zero = term is None or term.value == 0
            self._partials[i, variable] = None if zero or term is None else term.index
        self.differentiated += len(self._partials) - known
        return self._partials[index, variable]

    def _chain_rule(self, index: int, by_left: int | None, by_right: int | None) -> Term | None:
        """Return the derivative of an entry from those of its operands; None if it is zero."""
        if by_left is None and by_right is None:
            return None
        operation, left, right = self.entries[index]
        zero = self.number(0)
        a, b = Term(self, left), Term(self, right)
        da = zero if by_left is None else Term(self, by_left)
        db = zero if by_right is None else Term(self, by_right)
        if operation == "+":
            return da + db
        if operation == "-":
            return da - db
        if operation == "*":
            return da * b + a * db
        if operation == "/":
            return (da - Term(self, index) * db) / b
        return None if operation == "middle" else da * self._function_derivative(index)

    def _function_derivative(self, index: int) -> Term:
        """Return the derivative of an elementary function by its argument."""
        operation, left, right = self.entries[index]
        x, other = Term(self, left), Term(self, right)
        if operation == "exp":
            return Term(self, index)
        if operation == "sin":
            return self.apply("cos", x, x)
        if operation == "cos":
            return -self.apply("sin", x, x)
        if operation == "^":
            return other * self.apply("^", x, other - self.number(1))
        return self.number(1) / other


class Term:
    """An entry of a tape, with arithmetic that records more entries."""

    __slots__ = ("index", "tape")

    def __init__(self, tape: Tape, index: int) -> None:
        self.tape = tape
        self.index = index

    @property
    def value(self) -> Fraction | None:
        """The exact value, if the term is a number."""
        return self.tape.numbers.get(self.index)

    def __add__(self, other: Term) -> Term:
        return self.tape.apply("+", self, other)

    def __sub__(self, other: Term) -> Term:
        return self.tape.apply("-", self, other)

    def __mul__(self, other: Term) -> Term:
        return self.tape.apply("*", self, other)

    def __truediv__(self, other: Term) -> Term:
        return self.tape.apply("/", self, other)

    def __neg__(self) -> Term:
        return self.tape.number(0) - self

    def power(self, exponent: int) -> Term:
        """Return the term to the power of an integer."""
        if abs(exponent) > MAX_POWER:
            raise NotRationalError(f"the power {exponent} is larger than {MAX_POWER}")
        result = self.tape.number(1)
        square, left = self, abs(exponent)
        while left:
            if left % 2:
                result = result * square
            left //= 2
            if left:
                square = square * square
        return self.tape.number(1) / result if exponent < 0 else result


class Recording:
    """The algebra of terms: evaluating an expression over it records the expression on `tape`.

    `lift` is called for functions that are not rational, with the name (or ``"^"``) and arguments;
    without it, NotRationalError is raised.
    """

    def __init__(
        self, tape: Tape, lift: Callable[[str, Sequence[Term]], Term] | None = None
    ) -> None:
        self.tape = tape
        self._lift = lift

    def number(self, text: str) -> Term:
        return self.tape.number(Fraction(text))

    def power(self, base: Term, exponent: Term) -> Term:
        value = exponent.value
        if value is not None and value.denominator == 1:
            return base.power(int(value))
        return self.call("^", (base, exponent))

    def call(self, function: str, arguments: Sequence[Term]) -> Term:
        if self._lift is None:
            raise NotRationalError(f"{named(function)!r} is no rational function")
        return self._lift(function, arguments)


def needed(tape: Tape, terms: Iterable[Term]) -> list[int]:
    """Return the entries on which `terms` depend, in an order of computation."""
    seen: set[int] = set()
    waiting = [t.index for t in terms]
    while waiting:
        i = waiting.pop()
        if i in seen:
            continue
        seen.add(i)
        operation, left, right = tape.entries[i]
        if operation not in ("number", "variable"):
            waiting += [left, right]
    return sorted(seen)


_EXACT: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
