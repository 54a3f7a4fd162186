"""Characters that a terminal obeys instead of showing them: texts of a file have none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from odefit.common.errors import shown
from odefit.problem.inputs.issues import Issues

CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)"
)
"""Control characters but for tabulators and line ends, and those that turn the direction of text:
they move the cursor, colour and overwrite what stands on a screen, and hide what a file says."""


def has_controls(text: str) -> bool:
    """Whether a text has a character that a terminal obeys."""
    return CONTROL.search(text) is not None


def refuse_controls(tree: Any, issues: Issues) -> None:
    """Report every text with control characters among keys and values of a TOML or JSON tree."""
    pending: list[tuple[str, Any]] = [("", tree)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, str):
            _check(place, value, issues)
        elif isinstance(value, Mapping):
            for key, part in value.items():
                inside = f"{place}.{key}" if place else str(key)
                _check(inside, str(key), issues)
                if isinstance(part, (str, Mapping, list, tuple)):
                    pending.append((inside, part))
        else:
            pending += [
                (f"{place}[{i}]", part)
                for i, part in enumerate(value)
                if isinstance(part, (str, Mapping, list, tuple))
            ]


def _check(place: str, text: str, issues: Issues) -> None:
    found = CONTROL.search(text)
    if found is not None:
        issues.error(
            place or "text",
            f"{shown(text)} has the control character {found[0]!r}, which a terminal would obey; "
            "remove it",
        )
