"""Units of quantities, by Pint: their texts, products, powers and comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from tokenize import TokenError
from typing import Any

from odefit.common.errors import did_you_mean, shown
from odefit.common.packages import require
from odefit.expressions.expressions import ExpressionError
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import Arrays

MAX_LENGTH = 80
"""Longest label of a unit in characters; longer ones are only labels."""

SAME_SIZE = 1e-9
"""Largest relative difference of equal units."""

_LABELS = frozenset(("a.u.", "a.u", "au", "arb. units", "arb. u.", "rel. units", "-", "none"))
"""Labels that Pint would misread: arbitrary units as years and atomic masses."""

_RISKY = re.compile(r"\d\s*(?:\^|\*\*)|\d{4}")
"""Towers of powers, which Pint would compute, and long numbers."""

_NO_UNIT = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, SyntaxError,
    TokenError, TypeError, ValueError,
)  # fmt: skip
"""The errors that Pint raises for texts that are not units."""

DIMENSIONLESS = "no unit (a number)"

Key = tuple[str, str]
"""The name of a unit, and the parameter that multiplies its exponent, empty for none."""


@cache
def registry() -> Any:
    """Return Pint's registry of units."""
    require("pint")
    import pint

    return pint.UnitRegistry(cache_folder=None)


@cache
def _base(name: str) -> tuple[float, dict[str, float]]:
    """Return a unit as the logarithm of its size in base units, and its dimensions."""
    quantity = registry().Quantity(1.0, name).to_base_units()
    dimensions = {str(k): float(v) for k, v in quantity.dimensionality.items()}
    return math.log(float(quantity.magnitude)), dimensions


@dataclass(frozen=True)
class Unit:
    """A product of powers of units; exponents may be multiples of a parameter (Hill's law)."""

    powers: Mapping[Key, Fraction] = field(default_factory=dict)  # the exponents

    def __mul__(self, other: Unit) -> Unit:
        powers = dict(self.powers)
        for key, power in other.powers.items():
            powers[key] = powers.get(key, Fraction(0)) + power
        return Unit({key: power for key, power in powers.items() if power})

    def __truediv__(self, other: Unit) -> Unit:
        return self * other.to(Fraction(-1))

    def to(self, power: Fraction) -> Unit:
        """Return a power of the unit."""
        return Unit(
            {key: exponent * power for key, exponent in self.powers.items() if exponent * power}
        )

    def to_symbol(self, symbol: str) -> Unit | None:
        """Return the power with a name as exponent; None if it already has such an exponent."""
        if any(exponent for _, exponent in self.powers):
            return None
        return Unit({(name, symbol): power for (name, _), power in self.powers.items()})

    def ratio(self, other: Unit) -> float | None:
        """Return the ratio to a unit of the same dimensions; None if the dimensions differ.

        Ratios with parameters in exponents count as a difference, unless the ratio is one.
        """
        logarithms: dict[str, float] = {}
        dimensions: dict[Key, float] = {}
        for (name, symbol), power in (self / other).powers.items():
            size, base_unit = _base(name)
            logarithms[symbol] = logarithms.get(symbol, 0.0) + float(power) * size
            for dimension, exponent in base_unit.items():
                key = dimension, symbol
                dimensions[key] = dimensions.get(key, 0.0) + float(power) * exponent
        symbolic = (v for symbol, v in logarithms.items() if symbol)
        if any(abs(v) > 1e-9 for v in dimensions.values()) or any(
            abs(v) > SAME_SIZE for v in symbolic
        ):
            return None
        return math.exp(logarithms.get("", 0.0))

    def same(self, other: Unit) -> bool:
        """True if both are the same unit, in whatever spelling."""
        ratio = self.ratio(other)
        return ratio is not None and abs(ratio - 1.0) < SAME_SIZE

    def __str__(self) -> str:
        if not self.powers:
            return DIMENSIONLESS
        parts = []
        for symbol in dict.fromkeys(symbol for _, symbol in self.powers):
            exponents = {n: float(p) for (n, s), p in self.powers.items() if s == symbol}
            text = _pretty(exponents)
            parts.append(f"({text})^{symbol}" if symbol else text)
        return " * ".join(parts)


NUMBER = Unit()
"""The unit of a number."""


def _pretty(powers: Mapping[str, float]) -> str:
    """Return units with their short names, divisions by a slash."""
    above: list[str] = []
    below: list[str] = []
    for name, power in sorted(powers.items(), key=lambda item: [*_base(item[0])[1]] == ["[time]"]):
        # Of two letters that look alike, Pint uses one before version 0.26, and the other since.
        short = f"{registry().Unit(name):~}".replace("\N{GREEK SMALL LETTER MU}", "\N{MICRO SIGN}")
        size = abs(power)
        text = short if size == 1 else f"{short}^{size:g}"
        (above if power > 0 else below).append(text)
    joined = "*".join(above) or "1"
    if not below:
        return joined
    return f"{joined}/{below[0]}" if len(below) == 1 else f"{joined}/({'*'.join(below)})"


def unit_of(label: str) -> Unit | None:
    """Return the unit of a label; None if Pint does not know it, or it has an offset (degC)."""
    text = label.strip()
    if text.casefold() in _LABELS or len(text) > MAX_LENGTH or _RISKY.search(text):
        return None
    registry()
    try:
        parsed_unit = registry().parse_units(text)
        names = dict(parsed_unit._units)
        if any(not registry()._units[name].is_multiplicative for name in names):
            return None
        unit = Unit({(n, ""): Fraction(p).limit_denominator(1000) for n, p in names.items()})
        for name in names:
            _base(name)
    except _NO_UNIT:
        return None
    return unit


def read_units(
    table: Mapping[str, Any], arrays: Arrays, names: Iterable[str], issues: Issues
) -> dict[str, str]:
    """Return the labels of a table by name, with array keys expanded; `names` may have a unit."""
    units: dict[str, str] = {}
    known = set(names)
    for key, label in issues.items("[units]", table):
        place = f"[units] {key}"
        if not isinstance(label, str):
            issues.error(place, f'expected a text such as "mmol/l", got {shown(label)}')
            continue
        try:
            members = [element.name for element in arrays.elements(key)]
        except ExpressionError as error:
            issues.error(place, str(error))
            continue
        for name in members:
            if name not in known:
                issues.error(
                    place, f"there is no quantity {shown(name)}{did_you_mean(name, known)}"
                )
            units[name] = label
    return units
