"""HTML tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odefit.reporting.markup import Markup, element, join, text

NONE = element("span", "none", class_="none")
"""What stands where there is no number; the note in the same row says why."""


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Iterable[int] = (),
    wrapped: Iterable[int] = (),
    classes: Sequence[str] | None = None,
) -> Markup:
    """A table that scrolls by itself where the screen is narrower than it.

    Parameters
    ----------
    caption
        Its title, read out with it.
    columns
        Headings.
    rows
        Cells, of which the first is the row's heading.
    numeric
        Columns with numbers, set to the right.
    wrapped
        Columns with sentences, which may take several lines.
    classes
        Of each row.
    """
    right, broad = frozenset(numeric), frozenset(wrapped)

    def kind(index: int) -> str | None:
        return "num" if index in right else "text" if index in broad else None

    def cell(tag: str, index: int, content: str, **attributes: str) -> Markup:
        return element(tag, content, class_=kind(index), **attributes)

    head = element("tr", *(cell("th", i, column, scope="col") for i, column in enumerate(columns)))
    body = []
    for place, row in enumerate(rows):
        cells = [
            cell("td", i, content) if i else cell("th", i, content, scope="row")
            for i, content in enumerate(row)
        ]
        body.append(element("tr", *cells, class_=(classes[place] if classes else "") or None))
    inner = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", head),
        element("tbody", *body),
    )
    # With tabindex the keyboard can scroll it, which then needs a role and a name.
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def definitions(pairs: Iterable[tuple[str, str]], class_: str = "facts") -> Markup:
    """Names and values, side by side."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in pairs),
        class_=class_,
    )


def bullets(items: Iterable[str]) -> Markup:
    """A list."""
    return element("ul", *(element("li", item) for item in items))


def paragraph(*parts: str, class_: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", *parts, class_=class_)


def section(identifier: str, title: str, *content: str) -> Markup:
    """A section with its heading; nothing if it has no content."""
    inside = join(*content)
    if not inside:
        return Markup("")
    heading = element("h2", title, id=f"{identifier}-heading")
    return element(
        "section", heading, inside, id=identifier, aria_labelledby=f"{identifier}-heading"
    )


def subsection(title: str, *content: str) -> Markup:
    """A heading of the next level with its content; nothing if it has none."""
    inside = join(*content)
    return join(element("h3", text(title)), inside) if inside else Markup("")
