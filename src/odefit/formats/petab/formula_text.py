"""Expressions as formulas of PEtab and SBML, in which both agree: an algebra of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odefit.expressions.grammar import CONDITIONS

NAMES = {"log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
"""Functions that PEtab and SBML call otherwise."""

RESERVED = frozenset(
    "time avogadro pi exponentiale inf infinity nan notanumber true false delay rateof".split()
)
"""Words, in any capitals, that are no names in formulas of SBML or of PEtab."""


def identifier(name: str) -> str:
    """Return a name that both formats allow: one that is reserved gets an underscore."""
    return f"{name}_" if name.lower() in RESERVED else name


@dataclass(frozen=True)
class Formula:
    """A text with its operators, each in parentheses."""

    text: str

    def __add__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} + {other.text})")

    def __sub__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} - {other.text})")

    def __mul__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} * {other.text})")

    def __truediv__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} / {other.text})")

    def __neg__(self) -> Formula:
        return Formula(f"(-{self.text})")


class FormulaAlgebra:
    """The algebra of :class:`Formula`."""

    def number(self, text: str) -> Formula:
        value = float(text)
        return Formula(repr(value) if value >= 0 else f"({value!r})")

    def power(self, base: Formula, exponent: Formula) -> Formula:
        return Formula(f"({base.text} ^ {exponent.text})")

    def call(self, function: str, arguments: Sequence[Formula]) -> Formula:
        texts = [argument.text for argument in arguments]
        if function in CONDITIONS:
            if len(texts) == 1:
                return Formula(f"(!{texts[0]})")
            return Formula(f"({f' {function} '.join(texts)})")
        if function in ("min", "max"):  # of two numbers in PEtab
            nested = texts[0]
            for text in texts[1:]:
                nested = f"{function}({nested}, {text})"
            return Formula(nested)
        return Formula(f"{NAMES.get(function, function)}({', '.join(texts)})")


FORMULAS = FormulaAlgebra()
