"""Terms of an objective over boxes: squares, deviances by law, and formulas of the unknowns.

A deviance falls towards the measured value from both sides, so that the end of a range that is
nearest to it gives the least value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odefit.certificates.verification.balls import ZERO, arb
from odefit.certificates.verification.formulas import FormulaError, Formulas
from odefit.certificates.verification.polynomials import Model, Models

NORMAL, STUDENT, HUBER, LAPLACE = "normal", "student", "huber", "laplace"
POISSON, NEGATIVE_BINOMIAL = "poisson", "negative-binomial"

SPECIAL_FUNCTIONS = frozenset({"lgamma"})
"""Functions that only formulas of the unknowns alone may have besides those of equations."""


@dataclass(frozen=True)
class Part:
    """A part of the objective over a box: the square of a residual, a term, or the sum of both.

    It is at least `least`. It has neither of the two where no polynomial encloses it. At a kink it
    has a `line` v instead, and is ``root(v^2 + loss^2) - loss``.
    """

    least: arb
    residual: Model | None = None
    term: Model | None = None
    line: Model | None = None
    loss: arb = ZERO

    @property
    def enclosed(self) -> bool:
        """True if a polynomial encloses it, or its line."""
        return any(m is not None for m in (self.residual, self.term, self.line))

    @classmethod
    def square(cls, residual: Model) -> Part:
        """Return the square of a residual."""
        if not residual.size.is_finite():
            return cls(ZERO)
        nearest = residual.range.abs_lower()
        return cls((nearest * nearest).lower(), residual)


def formula_part(formulas: Formulas, models: Models, known: Mapping[str, Model]) -> Part:
    """Return the sum of formulas of the unknowns."""
    total = models.constant(ZERO)
    for value in formulas.evaluate(known, models):
        total = total + value
    if not total.size.is_finite():
        return Part(arb("-inf"))
    return Part(total.range.lower(), None, total)


class Law:
    """The law of a measurement in a statement, with its value and its spread."""

    def __init__(self, entry: Mapping[str, Any], symbols: Sequence[str]) -> None:
        self._law: Mapping[str, Any] = entry["law"]
        self._name = str(self._law["name"])
        if self._name not in (NORMAL, STUDENT, HUBER, LAPLACE, POISSON, NEGATIVE_BINOMIAL):
            raise FormulaError(f"unknown law {self._name!r}")
        self._value, self._side = float(entry["value"]), int(entry.get("censored", 0))
        if self._side not in (-1, 0, 1) or (self._side and self._name != NORMAL):
            raise FormulaError("a value cannot be censored like that")
        spread = entry["spread"]
        self._spread: arb | Formulas = (
            Formulas([spread], symbols) if isinstance(spread, str) else arb(float(spread))
        )

    def part(self, predicted: Model, models: Models, unknowns: Mapping[str, Model]) -> Part:
        """Return the part of the objective for a prediction over a box."""
        if isinstance(self._spread, Formulas):
            spread = self._spread.evaluate(unknowns, models)[0]
        else:
            spread = models.constant(self._spread)
        least = self._least(predicted.range, spread.range)
        if self._name == LAPLACE:
            u = (predicted + models.constant(-arb(self._value))) * models.apply("inv", spread)
            if u.range.is_finite() and u.range.contains(ZERO):
                slope = arb(8).sqrt()
                line = u * models.constant(slope)
                loss = slope * arb(float(self._law["rounding"]))
                return Part(least, line=line, loss=loss) if line.size.is_finite() else Part(least)
        residual, term = self._enclosures(predicted, spread, models)
        finite = all(m is None or m.size.is_finite() for m in (residual, term))
        return Part(least, residual, term) if finite else Part(least)

    def _least(self, predicted: arb, spread: arb) -> arb:
        """Return a lower bound from the ranges of a prediction and of a spread."""
        y = arb(self._value)
        if not predicted.is_finite() or not spread.is_finite():
            return ZERO
        if self._name in (POISSON, NEGATIVE_BINOMIAL):
            low, high = predicted.lower(), predicted.upper()
            if not (low > y or high < y):
                return ZERO
            nearest = low if low > y else high
            if not nearest > 0:
                return ZERO
            deviance = self._deviance(nearest, spread.upper())
        else:
            if not spread > 0:
                return ZERO
            u = (predicted - y) / spread
            if self._side:
                deviance = _beyond((-self._side * u).upper())
            else:
                deviance = self._deviance_of(u.abs_lower())
        return deviance.lower().max(ZERO) if deviance.is_finite() else ZERO

    def _deviance(self, m: arb, a: arb) -> arb:
        """Return the deviance of counts at a mean and a dispersion."""
        y = arb(self._value)
        share = y * (y / m).log() if self._value > 0 else ZERO
        if self._name == POISSON:
            return 2 * (m - y + share)
        return 2 * (share + (y + 1 / a) * ((1 + a * m) / (1 + a * y)).log())

    def _deviance_of(self, u: arb) -> arb:
        """Return the deviance at a distance of u spreads, which is not negative."""
        if self._name == STUDENT:
            nu = arb(float(self._law["degrees"]))
            return (nu + 1) * (1 + u * u / nu).log()
        if self._name == LAPLACE:
            e = arb(float(self._law["rounding"]))
            return 2 * arb(2).sqrt() * ((u * u + e * e).sqrt() - e)
        if self._name == HUBER:
            k = arb(float(self._law["threshold"]))
            return u * u if u <= k else (2 * k * u - k * k).min(u * u)
        return u * u

    def _enclosures(
        self, predicted: Model, spread: Model, models: Models
    ) -> tuple[Model | None, Model | None]:
        """Return a residual or a term as a polynomial, or both."""
        y, constant = arb(self._value), models.constant
        if self._name == POISSON:
            rest = predicted + constant(-y)
            return None, self._with_logarithm(rest, predicted, models)
        if self._name == NEGATIVE_BINOMIAL:
            one, k = constant(arb(1)), models.apply("inv", spread)
            above = models.apply("log", one + spread * predicted)
            below = models.apply("log", one + spread * constant(y))
            rest = (k + constant(y)) * (above + -below)
            return None, self._with_logarithm(rest, predicted, models)
        u = (predicted + constant(-y)) * models.apply("inv", spread)
        if self._side:
            z = u * constant(arb(self._side) / arb(2).sqrt())
            share = models.apply("erfc", z) * constant(arb(0.5))
            return None, models.apply("log", share) * constant(arb(-2))
        if self._name == NORMAL:
            return u, None
        square = u * u
        if self._name == STUDENT:
            nu = arb(float(self._law["degrees"]))
            within = constant(arb(1)) + square * constant(1 / nu)
            return None, models.apply("log", within) * constant(nu + 1)
        if self._name == LAPLACE:
            e = arb(float(self._law["rounding"]))
            size = models.apply("sqrt", square + constant(e * e)) + constant(-e)
            return None, size * constant(2 * arb(2).sqrt())
        return self._huber(u, models)

    def _with_logarithm(self, rest: Model, predicted: Model, models: Models) -> Model:
        """Return ``2 (rest + y log(y/m))``."""
        if self._value > 0:
            y = arb(self._value)
            rest = rest + models.apply("log", predicted * models.constant(1 / y)) * models.constant(
                -y
            )
        return rest * models.constant(arb(2))

    def _huber(self, u: Model, models: Models) -> tuple[Model | None, Model | None]:
        k, r = arb(float(self._law["threshold"])), u.range
        if r.abs_upper() <= k:
            return u, None
        for sign in (1, -1):
            if sign * r > k:
                line = u * models.constant(2 * k * sign) + models.constant(-k * k)
                return None, line
        # The square exceeds the loss by (|u| - k)^2 beyond the threshold.
        excess = (r.abs_upper() - k) ** 2
        return u, models.ball(arb(0, 1) * excess / 2 - excess / 2)


def _beyond(z: arb) -> arb:
    """Return -2 log of the normal distribution function."""
    return -2 * ((-z / arb(2).sqrt()).erfc() / 2).log()


def least_of(parts: Sequence[Part]) -> arb:
    """Return the sum of the lower bounds of parts."""
    return sum((part.least for part in parts), ZERO)
