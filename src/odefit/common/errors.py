"""The one exception that unusable input raises, and the phrases its messages share."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class InputError(ValueError):
    """The error that unusable input raises: each message names the place and the remedy.

    Parameters
    ----------
    messages
        One message, or several messages at once. Terminal control characters in them are escaped,
        and messages are cut off after :data:`MAX_ERROR_LENGTH` characters: they may quote a file of
        a stranger.
    """

    def __init__(self, messages: str | Iterable[str]) -> None:
        texts = (messages,) if isinstance(messages, str) else messages
        self.messages: tuple[str, ...] = tuple(one_line(m, MAX_ERROR_LENGTH) for m in texts)
        super().__init__("\n".join(self.messages))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[str, ...]]]:
        return InputError, (self.messages,)


MAX_ERROR_LENGTH = 1500
"""Length of a message in characters; libraries quote whole files."""

MAX_SHOWN_LENGTH = 80
"""Length in characters up to which a value is shown in full, and a name is compared with others;
the comparison takes quadratic time."""

MAX_NAMES = 8
"""Number of names that a sentence lists before it says "and n more"."""

MAX_CANDIDATES = 200
"""Number of candidates above which only those with the same beginning and length are compared."""


def one_line(text: str, longest: int) -> str:
    """Return `text` in one line of limited length, with terminal control characters escaped."""
    if len(text) > longest:
        text = f"{text[: longest - 3]}..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def closest(name: str, candidates: Iterable[str], *, alike: float = 0.6) -> str | None:
    """Return the one of `candidates` that `name` most likely means, if there is one.

    It has a similarity to `name` of at least `alike`, which is 1 for equal names.
    """
    if not name or len(name) > MAX_SHOWN_LENGTH:
        return None
    eligible = {c for c in candidates if 0 < len(c) <= MAX_SHOWN_LENGTH and c != name}
    if len(eligible) > MAX_CANDIDATES:
        first = name[0].casefold()
        eligible = {
            c for c in eligible if c[0].casefold() == first and abs(len(c) - len(name)) <= 3
        }
    known = sorted(eligible)[:MAX_CANDIDATES]
    for candidate in known:
        if _bare(candidate) == _bare(name):
            return candidate
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=alike)), None)


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``"; did you mean 'k_2'?"`` if a candidate is close to `name`, else ``""``."""
    candidate = closest(name, candidates)
    return f"; did you mean '{candidate}'?" if candidate else ""


def some(names: Sequence[str]) -> str:
    """Return the names separated by commas; of many, the first few and the number of others."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"


def counted(number: float, noun: str, plural: str = "") -> str:
    """Return a number with its noun in the singular or plural; all messages use this function.

    >>> counted(1, "start"), counted(0, "start"), counted(2, "box", "boxes")
    ('1 start', '0 starts', '2 boxes')
    """
    return f"{number:g} {noun}" if number == 1 else f"{number:.15g} {plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names joined by commas and "and".

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def one_of(name: str, candidates: Iterable[str]) -> str:
    """Return a suggestion instead of `name`: the closest of `candidates`, or all of them."""
    known = tuple(candidates)
    return did_you_mean(name, known) or f"; expected one of: {', '.join(known)}"


def nearest_first(name: str, candidates: Iterable[str]) -> str:
    """Return a suggestion instead of `name` and the known names, the closest first.

    >>> nearest_first("k2", ["a", "k_2"])
    "; did you mean 'k_2'? Known are: k_2, a"
    """
    known = tuple(candidates)
    meant = closest(name, known)
    if meant is None:
        return f"; known are: {some(known)}" if known else ""
    return (
        f"; did you mean '{meant}'? Known are: {some((meant, *(k for k in known if k != meant)))}"
    )


def shown(value: Any) -> str:
    """Return `value` as shown in messages: in the words of a problem file, never long.

    >>> shown(True), shown([1, 2]), shown("ab")
    ('true', 'a list', "'ab'")
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a very large integer"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, (datetime.date, datetime.time)):
        return f"the date or time {value.isoformat()}"
    text = repr(value[: MAX_SHOWN_LENGTH + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[: MAX_SHOWN_LENGTH - 3]}..."


def _bare(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")
