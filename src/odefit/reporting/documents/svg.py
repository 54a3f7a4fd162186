"""Matplotlib figures as inline SVG; one page can hold many of them."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure

from odefit.reporting.figures.style import BAD, DATA, GRID, INK, MODEL, MUTED, save_outlines

COLOURS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    MODEL: "var(--model)",
    DATA: "var(--data)",
    BAD: "var(--bad)",
    "#ffffff": "var(--paper)",
}
"""The report's own names for the colours of figures, which differ on dark screens."""

PIXELS_PER_POINT = 96.0 / 72.0
"""Size of a point in CSS pixels."""

PIXELS_TO_AN_INCH = 144
"""Resolution, in pixels per inch, of bitmaps within a figure."""

_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


@dataclass(frozen=True)
class Drawing:
    """A figure to be written as an ``<svg>`` element by the templates.

    ``prefix`` begins all its ids and is unique in the page. Screen readers read title and
    description. Width and height are in pixels, and ``content`` is markup.
    """

    prefix: str
    title: str
    description: str
    view_box: str
    width: float
    height: float
    content: Markup


def drawing(figure: Figure, prefix: str, title: str, description: str = "") -> Drawing:
    """Return `figure` as SVG whose ids, colours and numbers suit a page with many figures."""
    buffer = io.BytesIO()
    save_outlines(
        figure,
        buffer,
        transparent=True,
        dpi=PIXELS_TO_AN_INCH,
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    root = ElementTree.fromstring(buffer.getvalue())
    width, height = (
        round(float(root.attrib[side].removesuffix("pt")) * PIXELS_PER_POINT, 1)
        for side in ("width", "height")
    )
    view_box = root.attrib["viewBox"]
    referenced = _referenced(root)
    # Matplotlib's style sheet would apply to the whole page; the template has its own.
    for node in root.iter():
        for child in [c for c in node if _local(c.tag) in ("metadata", "style")]:
            node.remove(child)
        node.tag, node.tail, node.text = _local(node.tag), None, (node.text or "").strip()
        node.attrib = {
            _local(name): _fit(_local(name), value, prefix)
            for name, value in node.attrib.items()
            if name != "id" or value in referenced
        }
    drawn = [c for c in root if len(c) or c.tag != "defs"]
    content = "".join(ElementTree.tostring(c, encoding="unicode", method="html") for c in drawn)
    return Drawing(prefix, title, description, view_box, width, height, Markup(content))


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _referenced(root: ElementTree.Element) -> frozenset[str]:
    """Return the ids that are referred to; the others are dropped."""
    ids = set()
    for node in root.iter():
        for name, value in node.attrib.items():
            if name.endswith("href"):
                ids.add(value.removeprefix("#"))
            ids.update(_REFERENCE.findall(value))
    return frozenset(ids)


def _fit(name: str, value: str, prefix: str) -> str:
    """Return the value of an attribute, made unique in a page of many figures."""
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href" and not value.startswith("data:"):
        return f"#{prefix}-{value.removeprefix('#')}"
    if name in ("d", "x", "y"):
        return _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value)
    linked = _REFERENCE.sub(rf"url(#{prefix}-\1)", value)
    return _COLOUR.sub(lambda m: COLOURS.get(m[0], m[0]), linked)
