"""Parts of problem files: their keys, tables and texts, with reports of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from odefit.common.errors import closest, counted, one_of, shown
from odefit.problem.inputs.issues import Issues
from odefit.problem.toml.other_notations import word_of

TYPO = 0.75  # similarity from which a key is taken for a misspelt one, whatever it may mean
MAX_UNKNOWN = 20  # unknown keys of one place that get separate messages


def known_keys(
    raw: Mapping[str, Any],
    known: tuple[str, ...],
    place: str,
    issues: Issues,
    words: Mapping[str, str] = MappingProxyType({}),
    hint: Callable[[str, Any], str] = lambda key, value: "",
) -> dict[str, Any]:
    """Return `raw` without unknown keys, which are reported.

    An obviously misspelt key is taken for the right one, so that the right one is not reported as
    missing. So is a key of other programs, for which `words` has odefit's. For any other, `hint`
    may say what to write instead.
    """
    known_part = {key: value for key, value in raw.items() if key in known}
    unknown = [(key, value) for key, value in raw.items() if key not in known]
    if (more := len(unknown) - MAX_UNKNOWN) > 0:
        issues.error(place or "problem", f"and {counted(more, 'more unknown key')}")
    for key, value in unknown[:MAX_UNKNOWN]:
        name = str(key)
        free = [k for k in known if k not in raw]
        foreign = words.get(word_of(name))
        meant = foreign if foreign in free else closest(name, free)
        section = isinstance(value, Mapping) and not place
        at = place or (f"[{name}]" if section else name)
        mistake = (
            f"unknown key {shown(name)}" if place else f"unknown {'section' * section or 'key'}"
        )
        typo = closest(name, free, alike=TYPO) is not None
        remedy = "" if typo else hint(name, value)
        if meant is not None and meant == foreign:
            remedy = f"; write {f'[{meant}]' if section else meant}"
        elif remedy:
            meant = None
        remedy = remedy or one_of(name, free if meant else known)
        issues.error(at, f"{mistake}{remedy}")
        if meant is not None:
            known_part.setdefault(meant, value)
    return known_part


def table_of(value: Any, place: str, issues: Issues) -> Mapping[str, Any] | None:
    """Return a section: {} if absent, None with the reason noted if it is not a table."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    doubled = isinstance(value, list) and any(isinstance(v, Mapping) for v in value)
    hint = f"; write {place}, with one pair of brackets" if doubled else ""
    issues.error(place, f"expected a table, got {shown(value)}{hint}")
    return None


def list_of_tables(value: Any, place: str, issues: Issues) -> list[Mapping[str, Any]] | None:
    """Return a list of tables: [] if absent, None with the reason noted if it is not one."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        issues.error(place, f"got a single table; write {place}, with two pairs of brackets")
        return [value]
    if not isinstance(value, list):
        issues.error(place, f"expected tables, got {shown(value)}")
        return None
    wrong = [v for v in value if not isinstance(v, Mapping)]
    if wrong:
        issues.error(place, f"expected tables, got {shown(wrong[0])} among them")
        return None
    return value


def text_of(value: Any, place: str, issues: Issues) -> str | None:
    """Return a text, or None, with the reason noted for any other value."""
    if value is None or isinstance(value, str):
        return value
    issues.expected(place, "a text in quotes", value)
    return None
