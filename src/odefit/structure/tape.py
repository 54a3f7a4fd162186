"""Rational expressions as a straight-line program: recorded once, run over any numbers.

Evaluating a model over :class:`Recording` writes down every operation once (equal ones are
shared, numbers are folded exactly). The tape is then run on truncated power series over complex
numbers or over a prime field (:mod:`odefit.structure.series`), and differentiated symbolically.

There is room for :data:`ELEMENTARY` functions, for those who can run them
(:mod:`odefit.enclosure.function_rewriting`); no :class:`Recording` writes them down unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

Elementary = Literal["exp", "sin", "cos", "middle", "^", "log", "atan", "asin", "tanh"]

Operation = Literal["number", "variable", "+", "-", "*", "/"] | Elementary

ELEMENTARY: tuple[Elementary, ...] = get_args(Elementary)
"""Functions, with the argument for left operand. The right one is the argument again, the exponent
(``"^"``), or one over the derivative (log and those after it). Exponents are constants in each box:
numbers, and the ``"middle"`` of what is not, any constant near it."""

GREATEST_POWER = 64
"""Whole exponents up to which a power is a chain of products."""


class NotRationalError(ValueError):
    """An expression leaves the rational functions; the text says where."""


class Entry(NamedTuple):
    """One operation: on two earlier entries, or a number, or a variable."""

    operation: Operation
    left: int
    right: int


class Tape:
    """A growing straight-line program without two equal operations.

    Attributes
    ----------
    entries
        In an order in which they can be computed.
    numbers
        Exact values of the entries that are numbers.
    names
        Of the entries that are variables.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.numbers: dict[int, Fraction] = {}
        self.names: dict[int, str] = {}
        self._known: dict[Entry | Fraction | str, int] = {}
        self._partials: dict[tuple[int, int], int | None] = {}

    def number(self, value: Fraction | int) -> Term:
        """A constant."""
        value = Fraction(value)
        if value not in self._known:
            self._known[value] = self._append(Entry("number", 0, 0))
            self.numbers[self._known[value]] = value
        return Term(self, self._known[value])

    def variable(self, name: str) -> Term:
        """The variable of that name."""
        if name not in self._known:
            self._known[name] = self._append(Entry("variable", 0, 0))
            self.names[self._known[name]] = name
        return Term(self, self._known[name])

    def apply(self, operation: Operation, left: Term, right: Term) -> Term:
        """``left operation right``, simplified where a number makes that trivial."""
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
        """The partial derivative of `term` by a variable."""
        index = self._partial(term.index, variable.index)
        return self.number(0) if index is None else Term(self, index)

    def depends(self, term: Term) -> frozenset[int]:
        """Indices of the variables on which `term` depends."""
        return frozenset(i for i in needed(self, [term]) if i in self.names)

    def substitute(self, term: Term, replacements: Mapping[int, Term]) -> Term:
        """`term` with variables, by their indices, replaced."""
        if not self.depends(term) & replacements.keys():
            return term
        found: dict[int, Term] = {}
        for i in needed(self, [term]):
            operation, a, b = self.entries[i]
            if operation in ("number", "variable"):
                found[i] = replacements.get(i, Term(self, i))
            else:
                found[i] = self.apply(operation, found[a], found[b])
        return found[term.index]

    def _shared(self, entry: Entry) -> Term:
        if entry not in self._known:
            self._known[entry] = self._append(entry)
        return Term(self, self._known[entry])

    def _append(self, entry: Entry) -> int:
        self.entries.append(entry)
        return len(self.entries) - 1

    def _partial(self, index: int, variable: int) -> int | None:
        """Entry of the derivative; None where it is zero. Operands come first in the tape."""
        needed = [index]
        while needed:
            i = needed[-1]
            if (i, variable) in self._partials:
                needed.pop()
                continue
            operation, left, right = self.entries[i]
            if operation in ("number", "variable"):
                one = self.number(1).index if i == variable else None
                self._partials[i, variable] = one
                continue
            missing = [k for k in (left, right) if (k, variable) not in self._partials]
            if missing:
                needed += missing
                continue
            term = self._rule(i, self._partials[left, variable], self._partials[right, variable])
            zero = term is None or term.value == 0
            self._partials[i, variable] = None if zero or term is None else term.index
        return self._partials[index, variable]

    def _rule(self, index: int, by_left: int | None, by_right: int | None) -> Term | None:
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
        return None if operation == "middle" else da * self._slope(index)

    def _slope(self, index: int) -> Term:
        """The derivative of a function by its argument."""
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
    """An entry of a tape, with the arithmetic that records more of them."""

    __slots__ = ("index", "tape")

    def __init__(self, tape: Tape, index: int) -> None:
        self.tape = tape
        self.index = index

    @property
    def value(self) -> Fraction | None:
        """Its exact value, if it is a number."""
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
        """A whole power."""
        if abs(exponent) > GREATEST_POWER:
            raise NotRationalError(f"the power {exponent} is larger than {GREATEST_POWER}")
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
    """The algebra of terms. What is not rational goes to `lift`, or is refused.

    Parameters
    ----------
    tape
        Where operations are written down.
    lift
        Called with the name of a function (or ``"^"``) and its arguments.
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
            raise NotRationalError(f"{function!r} is no rational function")
        return self._lift(function, arguments)


def needed(tape: Tape, terms: Iterable[Term]) -> list[int]:
    """Entries that `terms` need, in an order in which they can be computed."""
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
