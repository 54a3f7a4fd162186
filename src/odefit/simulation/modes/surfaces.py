"""Surfaces at which right-hand sides switch, and the equations on each side of them.

A comparison of states in ``piecewise`` makes the right-hand side jump where both of its sides are
equal. Comparisons of the same two sides, such as those in ``sign(w)``, share one surface. On either
side of it the condition is known, so that it drops out of the equations, which are then as smooth
as the user wrote them. Where the values certainly meet, as in ``if(x > c, x - c, 0)``, there is a
kink like that of ``max(x - c, 0)``, which engines step over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from odefit.expressions.expressions import PIECEWISE, TIME, Expression, Instruction
from odefit.expressions.formulas import (
    PARTS,
    Part,
    PartAlgebra,
    call,
    evaluated,
    joined,
    name,
    number,
    operations,
    rewritten,
)
from odefit.expressions.grammar import COMPARISONS, CONDITIONS
from odefit.expressions.identities import value_on
from odefit.problem.vector_field import VectorField, with_equations

Mode = tuple[int, ...]
"""The side of the motion for each surface, -1 or 1; 0 if it slides along the surface."""

MAX_SURFACES = 100  # with more surfaces the engines handle the conditions
MAX_COMPARED = 30  # with more quantities compared in one ``piecewise``, it jumps at all of them
MAX_FREE = 4  # with more surfaces that may cross another one in a ``piecewise``, it jumps there

ONE = number(1.0)

SWITCHING = frozenset(COMPARISONS) - {"==", "!="}
"""Comparisons that change their values at a surface."""

_Program = tuple[Instruction, ...]

_Condition = Part | bool


@dataclass(frozen=True, eq=False)
class Surfaces:
    """The surfaces of a vector field, numbered from zero."""

    field: VectorField
    # Each surface is the zero set of one of these; its sides are -1 and 1, by the sign.
    quantities: tuple[Expression, ...]
    _numbers: Mapping[_Program, int]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, field: VectorField) -> Surfaces | None:
        """Return the surfaces of a field; None if it has no surface, or too many.

        A field whose algebraic variables need solving is treated as one without surfaces.
        """
        equations = (*field.model.ode.values(), *field.model.algebraic.values())
        if field.algebraic or field.smooth:
            return None
        moving = {*field.states, *field.inputs, *field.model.algebraic, TIME}
        numbers: dict[_Program, int] = {}
        jumps = _Jumps()
        for expression in equations:
            if PIECEWISE in expression.functions:
                evaluated(expression, {}, jumps)
        algebra = _Finding(moving, numbers, jumps.quantities)
        for expression in equations:
            if PIECEWISE in expression.functions:
                evaluated(expression, {}, algebra)
            for argument in _absolute_arguments(expression):
                algebra.note(argument)
        if not 0 < len(numbers) <= MAX_SURFACES:
            return None
        return cls(field, tuple(Part(p).expression() for p in numbers), numbers)

    def on(self, sides: Mode) -> VectorField:
        """Return the field on one side of each surface."""
        field, algebra = self.field, _OnSides(self._numbers, sides)
        tables = {"ode": field.model.ode, "algebraic": field.model.algebraic}
        written = {
            section: {
                n: e if _is_plain(e) else _here(e, algebra).expression()
                for n, e in equations.items()
            }
            for section, equations in tables.items()
        }
        model = with_equations(field.model, written["ode"], written["algebraic"])
        return VectorField.eliminated(model, field.scalars, field.folded)


def with_side(sides: Sequence[int], number: int, side: int) -> Mode:
    """Return sides with a different side for one surface."""
    return tuple(side if k == number else old for k, old in enumerate(sides))


def _here(expression: Expression, algebra: _OnSides) -> Part:
    both: _Both = expression.evaluate(
        {n: _Both(name(n), name(n)) for n in expression.names}, algebra
    )
    here: Part = both.here
    return here


def _is_plain(expression: Expression) -> bool:
    return not expression.functions & {PIECEWISE, "abs", "min", "max"}


def _absolute_arguments(expression: Expression) -> list[Part]:
    """Return the arguments of ``abs`` under a root or fractional power, or in a divisor.

    A quotient jumps there, and the slope of a root is unbounded.
    """
    arguments: list[Part] = []

    def note(instruction: Instruction, operands: list[Part]) -> Part:
        inside = None
        if instruction.text == "sqrt":
            inside = operands[0]
        elif instruction.text == "/":
            inside = operands[1]
            if inside.program in _magnitudes(operands[0]):
                arguments.append(inside)
        elif instruction.text == "^" and not (operands[1].number or 0.5).is_integer():
            inside = operands[0]
        if inside is not None and inside.program[-1].text == "abs":
            arguments.append(Part(inside.program[:-1]))
        return joined(instruction, operands)

    if "abs" in expression.functions:
        rewritten(expression.program, note)
    return arguments


def _magnitudes(part: Part) -> list[_Program]:
    """Return the factors of a product, by their programs, whose magnitudes are factors of it."""
    last = part.program[-1]
    if last.text == "abs":
        return [part.program[:-1]]
    if last.kind == "negate":
        return _magnitudes(Part(part.program[:-1]))
    if last.kind != "binary" or last.text not in "*/":
        return []
    first, second = part.operands()
    return _magnitudes(first) + (_magnitudes(second) if last.text == "*" else [])


def _positive(difference: Part) -> tuple[Part, int]:
    """Return a quantity without its sign, and that sign."""
    negated = -difference
    return (negated, -1) if len(negated.program) < len(difference.program) else (difference, 1)


class _Jumps(PartAlgebra):
    """The algebra that collects the quantities at whose zeros ``piecewise`` may jump."""

    def __init__(self) -> None:
        self.quantities: set[_Program] = set()

    def call(self, function: str, arguments: Sequence[Part]) -> Part:
        made = call(function, arguments)
        if function == PIECEWISE:
            self.quantities |= _jumping(made, arguments[1::2])
        return made


def _jumping(piecewise: Part, conditions: Sequence[Part]) -> set[_Program]:
    """Return the quantities in the conditions of a part at whose zeros it may jump."""
    in_conditions = {program for condition in conditions for program in _compared(condition)}
    numbers = {program: k for k, program in enumerate(_compared(piecewise))}
    if len(numbers) > MAX_COMPARED:
        return in_conditions
    return {q for q in in_conditions if not _meets(piecewise.expression(), q, numbers)}


def _compared(part: Part) -> list[_Program]:
    """Return the quantities that are compared in a part, each once."""
    pairs = (operands for _, operands, _ in operations(part.program, SWITCHING))
    return list(dict.fromkeys(_positive(left - right)[0].program for left, right in pairs))


def _meets(expression: Expression, quantity: _Program, numbers: Mapping[_Program, int]) -> bool:
    """Return whether values certainly meet where a quantity is zero, whatever the others are."""
    on, at = Part(quantity), numbers[quantity]
    others = {k: value_on(Part(q), on) for q, k in numbers.items() if k != at}
    known = {k: 1 if value > 0 else -1 for k, value in others.items() if value}
    free = [k for k in others if k not in known]
    if len(free) > MAX_FREE:
        return False
    for chosen in product((-1, 1), repeat=len(free)):
        side = {**known, **dict(zip(free, chosen, strict=True)), at: 1}
        sides = tuple(side[k] for k in range(len(numbers)))
        above, below = (
            _here(expression, _OnSides(numbers, with_side(sides, at, s))) for s in (1, -1)
        )
        if above.program != below.program and value_on(above - below, on) != 0:
            return False
    return True


class _Finding(PartAlgebra):
    """The algebra that collects the surfaces in an expression."""

    def __init__(
        self, moving: set[str], numbers: dict[_Program, int], jumps: set[_Program]
    ) -> None:
        self._moving, self._numbers, self._jumps = moving, numbers, jumps

    def call(self, function: str, arguments: Sequence[Part]) -> Part:
        if function in SWITCHING:
            difference = arguments[0] - arguments[1]
            if _positive(difference)[0].program in self._jumps:
                self.note(difference)
        return call(function, arguments)

    def note(self, difference: Part) -> None:
        """Record the surface where a difference is zero."""
        quantity, _ = _positive(difference)
        if quantity.names & self._moving and (-difference).program not in self._numbers:
            self._numbers.setdefault(quantity.program, len(self._numbers))


class _Both(NamedTuple):
    """A part as written, and its form without the decided conditions."""

    written: Part
    here: Any

    def __neg__(self) -> _Both:
        return _Both(-self.written, -self.here)

    def __add__(self, other: _Both) -> _Both:  # type: ignore[override]
        return _Both(self.written + other.written, self.here + other.here)

    def __sub__(self, other: _Both) -> _Both:
        return _Both(self.written - other.written, self.here - other.here)

    def __mul__(self, other: _Both) -> _Both:  # type: ignore[override]
        return _Both(self.written * other.written, self.here * other.here)

    def __truediv__(self, other: _Both) -> _Both:
        above, below = self.written, other.written
        magnitude = below.program[-1].text == "abs" or below.program in _magnitudes(above)
        here = _cancelled(self.here, other.here) if magnitude else None
        return _Both(self.written / other.written, here or self.here / other.here)


class _OnSides:
    """The algebra that drops decided conditions if each surface has one known side."""

    def __init__(self, numbers: Mapping[_Program, int], sides: Sequence[int]) -> None:
        self._numbers, self._sides = numbers, sides

    def number(self, text: str) -> _Both:
        return _Both(PARTS.number(text), PARTS.number(text))

    def power(self, base: _Both, exponent: _Both) -> _Both:
        written = PARTS.power(base.written, exponent.written)
        return _Both(written, PARTS.power(base.here, exponent.here))

    def call(self, function: str, arguments: Sequence[_Both]) -> _Both:
        written = call(function, [a.written for a in arguments])
        return _Both(written, self._here(function, arguments))

    def _side(self, difference: Part) -> int:
        """Return the sign of a difference; 0 if it is unknown."""
        for quantity, sign in ((difference, 1), (-difference, -1)):
            number = self._numbers.get(quantity.program)
            if number is not None:
                return sign * self._sides[number]
        return 0

    def _here(self, function: str, arguments: Sequence[_Both]) -> Any:
        here = [a.here for a in arguments]
        if function in CONDITIONS and function not in COMPARISONS:
            return _joined(function, here)
        if function == PIECEWISE:
            return _chosen(here)
        side = 0
        if len(arguments) == 2:
            side = self._side(arguments[0].written - arguments[1].written)
        elif function == "abs":
            side = self._side(arguments[0].written)
        if not side:
            return call(function, here)
        if function == "abs":
            return here[0] if side > 0 else -here[0]
        if function in ("min", "max"):
            return here[0] if (side > 0) == (function == "max") else here[1]
        return function == "!=" or (function[0] == ">" if side > 0 else function[0] == "<")


def _cancelled(above: Part, below: Part) -> Part | None:
    """Return a quotient whose divisor is a factor of the numerator, without that factor.

    Thus v/abs(v) is 1 or -1 on the sides of v = 0, and also at v = 0.
    """
    if above.program == below.program:
        return ONE
    last, text, _ = above.program[-1]
    if below.program[-1].kind == "negate" or last == "negate":
        negative = below if last != "negate" else above
        plain = Part(negative.program[:-1])
        quotient = _cancelled(above, plain) if negative is below else _cancelled(plain, below)
        return None if quotient is None else -quotient
    if last != "binary" or text not in "*/":
        return None
    first, second = above.operands()
    quotient = _cancelled(first, below)
    if text == "/":
        return None if quotient is None else quotient / second
    if quotient is not None:
        return quotient * second
    quotient = _cancelled(second, below)
    return None if quotient is None else first * quotient


def _joined(sign: str, conditions: Sequence[_Condition]) -> _Condition:
    """Return the combination of conditions of which some are known."""
    left = [c for c in conditions if not isinstance(c, bool)]
    known = [c for c in conditions if isinstance(c, bool)]
    if sign == "!":
        return call("!", left) if left else not known[0]
    decisive = sign == "||"
    if decisive in known:
        return decisive
    if not left:
        return not decisive
    return left[0] if known else call(sign, left)


def _chosen(arguments: Sequence[Any]) -> Part:
    """Return the value of ``piecewise`` whose condition is known to hold, or the remaining form."""
    left: list[Part] = []
    for value, condition in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if condition is True:
            left.append(value)
            break
        if condition is not False:
            left += [value, condition]
    else:
        left.append(arguments[-1])
    return left[0] if len(left) == 1 else call(PIECEWISE, left)
