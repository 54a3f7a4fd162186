"""Expressions as MathML: an algebra whose elements are typeset formulas.

Evaluating an :class:`~odefit.expressions.expressions.Expression` over :data:`MATHML` gives its
typeset form, just as evaluating it over floats gives its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce

from markupsafe import Markup

from odefit.expressions.expressions import CONDITIONS, PIECEWISE, TIME, Expression


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """Return an element; children and attributes that are not markup are escaped."""
    written = join(*(Markup(' {}="{}"').format(k, v) for k, v in attributes.items()))
    return Markup("<{0}{1}>{2}</{0}>").format(tag, written, join(*children))


def join(*parts: str) -> Markup:
    """Return the parts joined, each escaped unless it is markup."""
    return Markup("").join(parts)


class Binding(IntEnum):
    """The precedence of the outermost operation of a formula."""

    EITHER = 1
    BOTH = 2
    COMPARISON = 3
    SUM = 4
    PRODUCT = 5
    POWER = 6
    ATOM = 7


GREEK: Mapping[str, str] = {
    **dict(
        zip(
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
            "pi rho sigma tau upsilon phi chi psi omega".split(),
            "αβγδεζηθικλμνξοπρστυφχψω",
            strict=True,
        )
    ),
    "lambda_": "λ",
    "eps": "ε",
    **dict(
        zip(
            "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split(),
            "ΓΔΘΛΞΠΣΥΦΨΩ",
            strict=True,
        )
    ),
}

_INDEXED = re.compile(r"([A-Za-z]+)_?(\d+(?:_\d+)*)\Z")
_SUBSCRIPTED = re.compile(r"([A-Za-z]+(?:\d+)?)_([A-Za-z0-9]+(?:_[A-Za-z0-9]+)*)\Z")

_CALLED = {"log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}

_SIGNS = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠", "&&": "∧", "||": "∨", "!": "¬"}
"""Signs of conditions as they are typeset."""

_INVISIBLE_TIMES = element("mo", "\N{INVISIBLE TIMES}", lspace="0.12em", rspace="0.12em")
_DOT = element("mo", "\N{DOT OPERATOR}")
_MINUS = element("mo", "\N{MINUS SIGN}")
_PREFIX_MINUS = element("mo", "\N{MINUS SIGN}", form="prefix")

MAX_EXPONENT_SIZE = 6
"""Largest number of symbols in an exponent of e; beyond it, exp(...) reads better."""


@dataclass(frozen=True)
class Formula:
    """A typeset formula in MathML, with the data that decide on brackets and signs.

    ``binding`` is the precedence of its outermost operation, ``size`` the number of symbols,
    ``negated`` the formula whose negative it is, if it is a plain negative.
    """

    markup: Markup
    binding: Binding = Binding.ATOM
    size: int = 1
    number_first: bool = False
    tall: bool = False
    negative: bool = False
    negated: Formula | None = None

    def inside(self, binding: Binding, *, sign: bool = True) -> Markup:
        """Return the markup, in parentheses if its precedence is lower than `binding`.

        A leading minus is put in parentheses too, unless `sign` allows it.
        """
        if self.binding < binding or (self.negative and not sign):
            return parentheses(self.markup)
        return self.markup

    def __neg__(self) -> Formula:
        body = self.inside(Binding.PRODUCT, sign=False)
        markup = join(_PREFIX_MINUS, body)
        return Formula(
            markup, Binding.SUM, self.size + 1, tall=self.tall, negative=True, negated=self
        )

    def __add__(self, other: Formula) -> Formula:
        right = other.inside(Binding.SUM, sign=False)
        return self._join(other, element("mo", "+"), self.markup, right, Binding.SUM)

    def __sub__(self, other: Formula) -> Formula:
        right = other.inside(Binding.PRODUCT, sign=False)
        return self._join(other, _MINUS, self.markup, right, Binding.SUM)

    def __mul__(self, other: Formula) -> Formula:
        if self.negated is not None:  # -a*b is parsed as (-a)*b and read as -(a*b)
            return -(self.negated * other)
        left = self.inside(Binding.PRODUCT, sign=False)
        right = other.inside(Binding.PRODUCT, sign=False)
        sign = _DOT if other.number_first else _INVISIBLE_TIMES
        return self._join(other, sign, left, right, Binding.PRODUCT)

    def __truediv__(self, other: Formula) -> Formula:
        if self.negated is not None:
            return -(self.negated / other)
        fraction = element("mfrac", row(self.markup), row(other.markup))
        return Formula(fraction, Binding.PRODUCT, max(self.size, other.size), tall=True)

    def _join(
        self, other: Formula, operator: Markup, left: Markup, right: Markup, binding: Binding
    ) -> Formula:
        return Formula(
            join(left, operator, right),
            binding,
            self.size + other.size,
            self.number_first and binding >= Binding.PRODUCT,
            self.tall or other.tall,
            self.negative and binding == Binding.SUM,
        )


class MathmlAlgebra:
    """The algebra whose elements are typeset formulas."""

    def number(self, text: str) -> Formula:
        """Return a number with powers of ten raised."""
        mantissa, _, exponent = text.lower().partition("e")
        if not exponent:
            return Formula(element("mn", text.removesuffix(".0")), number_first=True)
        power = element("msup", element("mn", "10"), _integer(int(exponent)))
        if float(mantissa) == 1.0:
            return Formula(power, Binding.POWER, 2, number_first=True)
        body = join(element("mn", mantissa.removesuffix(".0")), element("mo", "×"), power)
        return Formula(body, Binding.PRODUCT, 3, number_first=True)

    def power(self, base: Formula, exponent: Formula) -> Formula:
        """Return a base with a raised exponent."""
        below = row(base.inside(Binding.ATOM))
        markup = element("msup", below, row(exponent.markup))
        size = base.size + exponent.size
        return Formula(markup, Binding.POWER, size, base.number_first, base.tall)

    def call(self, function: str, arguments: Sequence[Formula]) -> Formula:
        """Return a root, an exponential, bars, or the function's name with its arguments."""
        first = arguments[0]
        if function in CONDITIONS:
            return _condition(function, arguments)
        size = 1 + sum(a.size for a in arguments)
        tall = any(a.tall for a in arguments)
        if function == PIECEWISE:
            return _pieces(arguments, size)
        if function == "sqrt":
            return Formula(element("msqrt", row(first.markup)), size=size, tall=tall)
        if function == "abs":
            bar = element("mo", "|", stretchy="true")
            return Formula(row(join(bar, first.markup, bar)), size=size, tall=tall)
        if function == "exp" and not tall and first.size <= MAX_EXPONENT_SIZE:
            markup = element("msup", element("mi", "e", mathvariant="normal"), row(first.markup))
            return Formula(markup, Binding.POWER, size)
        inner = reduce(
            lambda left, right: join(left, element("mo", ","), right),
            (a.markup for a in arguments),
        )
        name = _function_name(function)
        # POWER: without parentheses, the square of a call reads like that of its argument.
        apply = element("mo", "\N{FUNCTION APPLICATION}")
        return Formula(join(name, apply, parentheses(inner)), Binding.POWER, size, tall=tall)


def _condition(sign: str, arguments: Sequence[Formula]) -> Formula:
    """Return a comparison, or conditions that are joined."""
    size, tall = 1 + sum(a.size for a in arguments), any(a.tall for a in arguments)
    operator = element("mo", _SIGNS.get(sign, sign))
    if sign == "!":
        return Formula(join(operator, arguments[0].inside(Binding.ATOM)), size=size, tall=tall)
    binding = {"||": Binding.EITHER, "&&": Binding.BOTH}.get(sign, Binding.COMPARISON)
    left, right = (a.inside(binding) for a in arguments)
    return Formula(join(left, operator, right), binding, size, tall=tall)


def _pieces(arguments: Sequence[Formula], size: int) -> Formula:
    """Return cases beside a brace, each with its condition."""
    texts = [element("mtext", "if "), element("mtext", "otherwise")]
    rows = [
        element("mtr", element("mtd", value.markup), element("mtd", texts[0], condition.markup))
        for value, condition in zip(arguments[:-1:2], arguments[1::2], strict=True)
    ]
    rows.append(element("mtr", element("mtd", arguments[-1].markup), element("mtd", texts[1])))
    brace = element("mo", "{", stretchy="true")
    table = element("mtable", *rows, columnalign="left")
    return Formula(row(join(brace, table)), Binding.EITHER, size, tall=True)


MATHML = MathmlAlgebra()


class Symbols(Mapping[str, Formula]):
    """All names of a problem, typeset: ``mu_N`` as a Greek letter, it and ``k21`` with subscripts.

    Names that would look alike (``k21`` and ``k_21``) are shown as written.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = dict.fromkeys([*names, TIME])
        seen: dict[str, list[str]] = {}
        for name in self._names:
            seen.setdefault(typeset_name(name), []).append(name)
        self._alike = {name for group in seen.values() if len(group) > 1 for name in group}

    def __getitem__(self, name: str) -> Formula:
        if name in self._alike or name not in self._names:
            return Formula(element("mi", name))
        return Formula(typeset_name(name), size=2 if "_" in name else 1)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def formula(self, expression: Expression) -> Formula:
        """Return `expression` typeset."""
        result: Formula = expression.evaluate(self, MATHML)
        return result


def typeset_name(name: str) -> Markup:
    """Return a name as MathML."""
    if name in GREEK:
        return element("mi", GREEK[name])
    match = _INDEXED.match(name) or _SUBSCRIPTED.match(name)
    if match is None:
        return element("mi", name)
    body, subscript = match.groups()
    base = typeset_name(body) if _INDEXED.match(body) is None else element("mi", body)
    pieces = subscript.split("_")
    parts = [
        element("mn", piece) if piece.isdigit() else element("mi", GREEK.get(piece, piece))
        for piece in pieces
    ]
    comma = element("mo", ",", lspace="0", rspace="0")
    return element("msub", base, row(comma.join(parts)))


def derivative(formula: Formula) -> Markup:
    """Return the time derivative of a state."""
    d = element("mi", "d", mathvariant="normal")
    time = element("mi", TIME)
    return element("mfrac", row(join(d, formula.markup)), row(join(d, time)))


def equation(left: Markup, right: Markup, plain: str) -> Markup:
    """Return a displayed equation; `plain` is read where formulas cannot be shown."""
    body = row(join(left, element("mo", "="), right))
    return element("math", body, display="block", alttext=plain)


def row(markup: Markup) -> Markup:
    """Return the markup as one group, where MathML requires a single element."""
    return element("mrow", markup)


def parentheses(markup: Markup) -> Markup:
    """Return `markup` in parentheses that grow with it."""
    opening = element("mo", "(", stretchy="true")
    closing = element("mo", ")", stretchy="true")
    return row(join(opening, row(markup), closing))


def _integer(value: int) -> Markup:
    number = element("mn", str(abs(value)))
    return row(join(_PREFIX_MINUS, number)) if value < 0 else number


def _function_name(function: str) -> Markup:
    if function == "log10":
        return element("msub", element("mi", "log", mathvariant="normal"), element("mn", "10"))
    return element("mi", _CALLED.get(function, function), mathvariant="normal")
