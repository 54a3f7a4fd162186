"""Limits of TOML texts, checked before parsing, since a file may be untrusted."""

from __future__ import annotations

import re

from odefit.common.errors import InputError

MAX_DEPTH = 100  # nested brackets
MAX_PARTS = 100  # dotted parts of a key
MAX_KEYS = 100_000  # keys and headers, counting their parts
MAX_VALUES = 1_000_000  # values of lists

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)?' + r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?' + r"|'[^'\n]*'?|#[^\n]*|[\[\]{}=,.\n]",
    re.DOTALL,
)
"""Texts, even unclosed ones, and comments of TOML as a whole, and the other counted signs."""


def check_toml(text: str, source: str) -> None:
    """Refuse a text of the file `source` that would need much time or memory to parse."""
    depth = parts = keys = values = 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == ".":
            parts += 1
            if parts >= MAX_PARTS:
                raise _too_large(
                    text, token.start(), source, f"a key has more than {MAX_PARTS} parts"
                )
            continue
        if sign in "[{":
            depth += 1
            keys += depth == 1  # which may be a header
            if depth > MAX_DEPTH:
                reason = f"tables or lists in more than {MAX_DEPTH} levels are nested too deeply"
                raise _too_large(text, _deepest(text), source, reason)
        elif sign in "]}":
            keys += parts * (depth == 1)
            depth -= 1
        elif sign == "=":
            keys += 1 + parts
        elif sign == ",":
            values += 1
        elif sign != "\n":
            continue
        parts = 0
        if keys > MAX_KEYS:
            reason = f"more than {MAX_KEYS} keys; split the problem"
            raise _too_large(text, token.start(), source, reason)
        if values > MAX_VALUES:
            reason = f"more than {MAX_VALUES} values in lists; put data into CSV files"
            raise _too_large(text, token.start(), source, reason)


def _deepest(text: str) -> int:
    """Return the first place with the deepest open brackets."""
    depth = most = where = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth += 1 if match[0] in "[{" else -1
        if depth > most:
            most, where = depth, match.start()
    return where


def _too_large(text: str, index: int, source: str, reason: str) -> InputError:
    line = text.count("\n", 0, index) + 1
    column = index - text.rfind("\n", 0, index)
    return InputError(f"{source}: {reason} (at line {line}, column {column})")
