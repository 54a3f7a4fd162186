"""Whatever is not markup is escaped."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from odefit.reporting.markup import element, join, text


@given(st.text())
def test_any_text_survives_as_text(value: str) -> None:
    node = ElementTree.fromstring(element("p", value, title=value))
    clean = "".join(c for c in text(value))
    assert "<" not in clean
    assert len(list(node)) == 0


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_characters="\x7f")))
def test_printable_text_comes_back(value: str) -> None:
    node = ElementTree.fromstring(element("p", value))
    kept = "".join("\ufffd" if "\x7f" <= c <= "\x9f" else c for c in value)
    assert (node.text or "") == kept


def test_markup_is_not_escaped_twice() -> None:
    inner = element("b", "a & b")
    assert inner == "<b>a &amp; b</b>"
    assert element("p", inner, "<", class_="x") == '<p class="x"><b>a &amp; b</b>&lt;</p>'
    assert join("a", inner, separator="<") == "a&lt;<b>a &amp; b</b>"


def test_attributes_are_left_out_or_stand_alone() -> None:
    assert element("meta", charset="utf-8", name=None) == '<meta charset="utf-8">'
    assert element("details", open=True, hidden=False) == "<details open></details>"
    assert element("p", aria_label='"q"') == '<p aria-label="&quot;q&quot;"></p>'
