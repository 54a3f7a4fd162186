"""A list of all mistakes in an input, so that they are reported at once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

from odefit.common.errors import MAX_SHOWN_LENGTH, InputError, counted, one_line, shown, some
from odefit.expressions.expressions import (
    Expression,
    ExpressionError,
    as_expression,
    parse_condition,
)

LARGEST = 1e150
"""Largest accepted number: squares of such numbers and of their quotients are finite."""

MAX_PLACE_LENGTH = 250
MAX_MESSAGE_LENGTH = 600
"""Greatest lengths in characters of names and texts in messages."""


MAX_ERRORS = 200
"""Largest number of mistakes shown at once; of more, usually consequences, only the number."""

MANY_ALIKE = 3
"""Number of further places of the same mistake from which on they share its message."""


class Issues:
    """Mistakes and remarks so far, each with its place in the file `source`."""

    def __init__(self, source: str | None = None) -> None:
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self._seen: dict[str, tuple[str, str]] = {}  # place and message of each note
        self._prefix = f"{source}: " if source else ""

    def error(self, place: str, message: str) -> None:
        """Report a mistake; a repeated one counts once."""
        self._note(self.errors, place, message)

    def expected(self, place: str, kind: str, value: object) -> None:
        """Report a value of the wrong kind."""
        self.error(place, f"expected {kind}, got {_shown(value)}")

    def warn(self, place: str, message: str) -> None:
        """Report something legal but odd."""
        self._note(self.warnings, place, message)

    def has_errors(self, place: str) -> bool:
        """True if a mistake was noted at `place` or at a part of it."""
        starts = tuple(f"{self._prefix}{place}{end}" for end in (":", ",", ".", "[", " "))
        return any(e.startswith(starts) for e in self.errors)

    def expression(self, place: str, value: Any) -> Expression | None:
        """Return `value` as an expression, or None with the reason noted."""
        try:
            parsed = as_expression(value)
            large = [n for n in _numbers_in(parsed) if abs(n) > LARGEST]
            if not large:
                return parsed
            self.error(place, f"in {_shown(parsed.text)}, {too_large(large[0])}")
        except ExpressionError as error:
            self.error(place, str(error))
        except (TypeError, ValueError, OverflowError):
            self.error(place, f"expected an expression or a number, got {_shown(value)}")
        return None

    def condition(self, place: str, value: Any) -> Expression | None:
        """Return `value` as a condition such as ``x < 0.1``, or None with the reason noted."""
        try:
            if isinstance(value, (str, Expression)):
                return parse_condition(str(value))
        except ExpressionError as error:
            self.error(place, str(error))
        else:
            self.error(place, f"expected a condition such as x < 0.1, got {shown(value)}")
        return None

    def items(self, place: str, table: Any) -> list[tuple[str, Any]]:
        """Return names and values of a table; none, with the reason noted, if it is not a table."""
        if isinstance(table, Mapping):
            return [(str(name), value) for name, value in table.items()]
        self.error(place, f"expected a table (in Python a dict), got {_shown(table)}")
        return []

    def raise_errors(self) -> None:
        """Raise :class:`InputError` with all errors, if there are any."""
        if self.errors:
            errors = self._few_alike()
            more = len(errors) - MAX_ERRORS
            shown_errors = errors[:MAX_ERRORS]
            if more > 0:
                shown_errors.append(
                    f"{self._prefix or 'input: '}and {counted(more, 'more mistake')}"
                )
            raise InputError(shown_errors)

    def _note(self, notes: list[str], place: str, message: str) -> None:
        where, reason = one_line(place, MAX_PLACE_LENGTH), one_line(message, MAX_MESSAGE_LENGTH)
        note = f"{self._prefix}{where}: {reason}"
        if note not in self._seen:
            self._seen[note] = where, reason
            notes.append(note)

    def _few_alike(self) -> list[str]:
        """Return the errors; of many that differ in their places alone, the first for all."""
        parts = {error: self._seen.get(error, (error, error)) for error in self.errors}
        places: dict[str, list[str]] = {}
        for place, reason in parts.values():
            places.setdefault(reason, []).append(place)
        errors = []
        for error, (place, reason) in parts.items():
            others = places[reason][1:]
            if len(others) < MANY_ALIKE:
                errors.append(error)
            elif place == places[reason][0]:
                errors.append(f"{error}; the same at {some(others)}")
        return errors


def _shown(value: Any) -> str:
    """Return `value` in words, with what to write instead of a Python function."""
    if not callable(value):
        return shown(value)
    name = getattr(value, "__name__", type(value).__name__)
    return (
        f"the Python function {name}; write the expression as a text, or let "
        f"odefit.Model.from_function({name}, states=[...], parameters=[...]) read the whole "
        "right-hand side"
    )


def finite_number(
    value: Any, place: str, issues: Issues, *, infinite: bool = False
) -> float | None:
    """Return `value` as a finite float (infinite if allowed), or None with the reason noted."""
    if isinstance(value, bool) or not isinstance(value, Real):
        issues.error(place, f"expected a number, got {shown(value)}{_number_in(value)}")
        return None
    try:
        number = float(value)
    except OverflowError:
        issues.error(place, f"the number is too large, got {shown(value)}")
        return None
    if math.isnan(number) or (math.isinf(number) and not infinite):
        issues.error(place, f"expected a finite number, got {number}")
        return None
    if LARGEST < abs(number) < math.inf:
        none = "; write inf for no bound" if infinite else ""
        issues.error(place, f"{too_large(number)}{none}")
        return None
    return number


_DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}")
_QUOTED = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf)\s*(\D*)\Z")


def _number_in(value: Any) -> str:
    """Return the notation of a number that was given as a text, with its unit, or in a table."""
    if isinstance(value, str) and (read := _QUOTED.match(value[:MAX_SHOWN_LENGTH])):
        if not read[2]:
            return f"; write {read[1]} without quotes"
        if read[2].isalpha() and read[1] != "inf":
            return f"; write {read[1]} alone, and the unit as a text in [units]"
    if isinstance(value, str) and _DATE.match(value):
        return "; in place of a date write the time since t = 0, in the unit of time"
    if isinstance(value, str):
        try:
            formula = as_expression(value)
            known = formula.constant
        except (ExpressionError, TypeError, ValueError, OverflowError):
            return ""
        if known is not None:
            return f"; write {known:.15g}"
        if not value.strip().isidentifier():
            return (
                "; a formula of other names belongs in [definitions] (definitions=), under its name"
            )
        return ""
    if isinstance(value, Mapping) and len(value) == 1:
        (inner,) = value.values()
        if isinstance(inner, (int, float)) and not isinstance(inner, bool):
            return f"; write {inner:g} alone"
    return ""


def _numbers_in(expression: Expression) -> list[float]:
    """Return the numbers in an expression, or its value if it is constant."""
    numbers = [float(i.text) for i in expression.program if i.kind == "number"]
    return numbers if expression.constant is None else [*numbers, float(expression.constant)]


def too_large(number: float) -> str:
    """Return the reason for refusing a number beyond :data:`LARGEST`, and the remedy."""
    return (
        f"{number:g} is too large, since its square overflows; expected at most "
        f"{LARGEST:g} in size: correct it, or choose another unit"
    )
