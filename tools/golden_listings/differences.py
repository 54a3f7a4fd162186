"""The differences between two listings, and whether they can break the use of odefit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

TOLERANCE = 1e-7
"""Relative difference up to which numbers count as equal: engines, processors and versions of
libraries round differently."""


class Difference(NamedTuple):
    """A difference of two listings.

    Attributes
    ----------
    place
        The keys that lead to it, separated by dots.
    words
        The difference in words.
    breaking
        Whether a feature that users rely on is missing or has another meaning.
    """

    place: str
    words: str
    breaking: bool

    def __str__(self) -> str:
        return f"{'BREAKS' if self.breaking else 'adds'}  {self.place}: {self.words}"


def differences(old: Any, new: Any, place: str = "") -> Iterator[Difference]:
    """Yield the differences of `new` from `old`.

    An entry that `old` lacks is an addition, unless it is marked as required. Lists of texts are
    sets of choices; other lists have to agree element by element.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            at = f"{place}.{key}" if place else str(key)
            if key not in new:
                yield Difference(at, "is gone", key != "required")
            elif key not in old:
                required = isinstance(new[key], Mapping) and new[key].get("required") is True
                yield Difference(at, "is required and new" if required else "is new", required)
            else:
                yield from differences(old[key], new[key], at)
    elif _texts(old) and _texts(new):
        for text in old:
            if text not in new:
                yield Difference(place, f"{text!r} is gone", True)
        for text in new:
            if text not in old:
                yield Difference(place, f"{text!r} is new", False)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{place}[{i}]")
    elif not _equal(old, new):
        yield Difference(place, f"was {old!r}, is {new!r}", True)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _equal(old: Any, new: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (old, new))
    if numbers:
        return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=1e-12)
    return bool(old == new) and type(old) is type(new)
