"""Cells of tables as numbers, and words of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

NONE = "nothing in this campaign"  # the cell of shortcomings if there are none

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def numbers(text: str) -> list[float]:
    """Return the numbers in a cell."""
    return [float(n.replace(",", "")) for n in _NUMBER.findall(text)]


def first(text: str) -> float | None:
    """Return the first number in a cell."""
    found = numbers(text)
    return found[0] if found else None


def span(values: Iterable[float], digits: int = 2) -> str:
    """Return the smallest and the largest of values, ``a to b``."""
    known = list(values)
    low, high = (f"{v:.{digits}g}" if v < 100 else f"{v:,.0f}" for v in (min(known), max(known)))
    return low if low == high else f"{low} to {high}"


def listed(names: Sequence[str], words: str, empty: str = NONE) -> str:
    """Return ``words: a, b``, or `empty` without items."""
    return f"{words}: {', '.join(names)}" if names else empty
