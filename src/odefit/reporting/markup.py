"""HTML, SVG and MathML made of elements: whatever is not markup already is escaped.

Every text of the user (names, descriptions, messages) reaches a page through
:func:`element` or :func:`join`, so that none can be read as markup.
"""

from __future__ import annotations

import re
from html import escape

# A control character in a page makes it unreadable for some parsers and is never meant.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

VOID = frozenset({"meta", "br", "hr", "img", "link", "col"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: str) -> Markup:
    """`value` escaped, unless it is markup already."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", value), quote=True))


def join(*parts: str, separator: str = "") -> Markup:
    """The parts one after the other, each escaped unless it is markup."""
    return Markup(text(separator).join(text(part) for part in parts))


def element(tag: str, *children: str, **attributes: str | int | float | bool | None) -> Markup:
    """An element.

    Attribute names are written with ``_`` for ``-``, and a trailing one is dropped
    (``class_``); an attribute that is None or False is left out, True stands without value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        name = key.rstrip("_").replace("_", "-")
        written.append(f" {name}" if value is True else f' {name}="{text(str(value))}"')
    opening = f"<{tag}{''.join(written)}>"
    if tag in VOID:
        return Markup(opening)
    return Markup(f"{opening}{join(*children)}</{tag}>")
