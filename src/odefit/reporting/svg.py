"""Matplotlib figures as inline SVG that can stand many to a page."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

from odefit.reporting.figures.style import BAD, DATA, GRID, INK, MODEL, MUTED, Plot, plain_style
from odefit.reporting.markup import Markup, element, join

COLOURS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    MODEL: "var(--model)",
    DATA: "var(--data)",
    BAD: "var(--bad)",
    "#ffffff": "var(--paper)",
}
"""The report's own names for the figures' colours: they differ on dark screens."""

_POINTS_TO_PIXELS = 96.0 / 72.0

_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")

# Matplotlib writes these as a rule for every element, which would reach the whole page.
_ROOT_STYLE = "stroke-linejoin:round;stroke-linecap:butt"


def inline_svg(figure: Plot, prefix: str, title: str, description: str = "") -> Markup:
    """`figure` as an ``<svg>`` element.

    Parameters
    ----------
    figure
        To draw.
    prefix
        Put before every id, unique in the page: matplotlib's own are the same in each figure.
    title, description
        What a screen reader says.
    """
    buffer = io.BytesIO()
    with plain_style():
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    root = ElementTree.fromstring(buffer.getvalue())
    wanted = _referenced(root)
    width, height = (
        round(float(root.attrib[side].removesuffix("pt")) * _POINTS_TO_PIXELS, 1)
        for side in ("width", "height")
    )
    label = f"{prefix}-title"
    children = [element("title", title, id=label)]
    labelled = label
    if description:
        children.append(element("desc", description, id=f"{prefix}-desc"))
        labelled = f"{label} {prefix}-desc"
    children += [_write(child, prefix, wanted) for child in root if _tag(child) != "metadata"]
    return element(
        "svg",
        *children,
        role="img",
        aria_labelledby=labelled,
        viewBox=root.attrib["viewBox"],
        width=width,
        height=height,
        style=f"{_ROOT_STYLE};--least:{round(0.75 * width)}px",
    )


def _tag(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]


def _referenced(root: ElementTree.Element) -> frozenset[str]:
    """Ids that something refers to; the others are dropped."""
    found = set()
    for node in root.iter():
        for name, value in node.attrib.items():
            if name.endswith("href"):
                found.add(value.removeprefix("#"))
            found.update(_REFERENCE.findall(value))
    return frozenset(found)


def _write(node: ElementTree.Element, prefix: str, wanted: frozenset[str]) -> Markup:
    tag = _tag(node)
    if tag == "style":
        return Markup("")
    attributes = {}
    for qualified, value in node.attrib.items():
        name = qualified.rpartition("}")[2]
        if name == "id":
            if value in wanted:
                attributes[name] = f"{prefix}-{value}"
        elif name == "href":
            attributes[name] = f"#{prefix}-{value.removeprefix('#')}"
        elif name in ("d", "x", "y"):
            attributes[name] = _LONG_NUMBER.sub(_rounded, value)
        else:
            linked = _REFERENCE.sub(rf"url(#{prefix}-\1)", value)
            attributes[name] = _COLOUR.sub(lambda m: COLOURS.get(m[0], m[0]), linked)
    children = [_write(child, prefix, wanted) for child in node]
    if tag == "defs" and not any(children):
        return Markup("")
    own = (node.text or "").strip()
    return element(tag, join(own, *children), **attributes)


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
