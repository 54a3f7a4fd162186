"""A list of everything that is wrong with an input, so that all is reported at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from odefit.problem.errors import InputError, shown
from odefit.problem.expressions import Expression, ExpressionError, as_expression, parse_condition

MAX_PLACE_LENGTH = 250
MAX_MESSAGE_LENGTH = 600
"""Lengths in characters; a name can be as long as a file, a message about it cannot."""


class Issues:
    """Mistakes and remarks found so far, each with its place.

    Parameters
    ----------
    source
        The file all of them are in; every message starts with it.
    """

    def __init__(self, source: str | None = None) -> None:
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self._seen: set[str] = set()
        self._prefix = f"{source}: " if source else ""

    def error(self, place: str, message: str) -> None:
        """Note a mistake; the same one twice counts once."""
        self._note(self.errors, place, message)

    def warn(self, place: str, message: str) -> None:
        """Note something legal but odd."""
        self._note(self.warnings, place, message)

    def has_errors(self, place: str) -> bool:
        """Whether a mistake was noted at `place` or at a part of it."""
        starts = tuple(f"{self._prefix}{place}{end}" for end in (":", ",", ".", "[", " "))
        return any(e.startswith(starts) for e in self.errors)

    def expression(self, place: str, value: Any) -> Expression | None:
        """Return `value` as an expression, or None with the reason noted."""
        try:
            return as_expression(value)
        except ExpressionError as error:
            self.error(place, str(error))
        except (TypeError, ValueError, OverflowError):
            self.error(place, f"expected an expression or a number, got {shown(value)}")
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
        """Return names and values of a table; none, with the reason noted, if it is no table."""
        if isinstance(table, Mapping):
            return [(str(name), value) for name, value in table.items()]
        self.error(place, f"expected a table (in Python a dict), got {shown(table)}")
        return []

    def raise_errors(self) -> None:
        """Raise :class:`InputError` with all errors, if there are any."""
        if self.errors:
            raise InputError(self.errors)

    def _note(self, notes: list[str], place: str, message: str) -> None:
        note = (
            f"{self._prefix}{_line(place, MAX_PLACE_LENGTH)}: {_line(message, MAX_MESSAGE_LENGTH)}"
        )
        if note not in self._seen:
            self._seen.add(note)
            notes.append(note)


def _line(text: str, longest: int) -> str:
    """Return `text` in one line of limited length, with terminal control characters escaped."""
    if len(text) > longest:
        text = f"{text[: longest - 3]}..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def finite_number(
    value: Any, place: str, issues: Issues, *, infinite: bool = False
) -> float | None:
    """Return `value` as a finite float (infinite if allowed), or None with the reason noted."""
    if isinstance(value, bool) or not isinstance(value, Real):
        issues.error(place, f"expected a number, got {shown(value)}")
        return None
    try:
        number = float(value)
    except OverflowError:
        issues.error(place, f"the number is too large, got {shown(value)}")
        return None
    if math.isnan(number) or (math.isinf(number) and not infinite):
        issues.error(place, f"expected a finite number, got {number}")
        return None
    return number
