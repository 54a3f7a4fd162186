"""Whatever is not markup is escaped, in templates and in elements alike."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from odefit.reporting.documents.html import environment, typeset
from odefit.reporting.formulas.mathml import element, join

PARAGRAPH = environment().from_string('<p title="{{ value }}">{{ value }}</p>')


@given(st.text())
def test_any_text_survives_as_text(value: str) -> None:
    node = ElementTree.fromstring(PARAGRAPH.render(value=value))
    assert len(list(node)) == 0


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_characters="\x7f")))
def test_printable_text_comes_back(value: str) -> None:
    node = ElementTree.fromstring(PARAGRAPH.render(value=value))
    kept = "".join("\ufffd" if "\x7f" <= c <= "\x9f" else c for c in value)
    assert (node.text or "") == node.attrib["title"] == kept


def test_markup_is_not_escaped_twice() -> None:
    inner = element("b", "a & b")
    assert inner == "<b>a &amp; b</b>"
    assert element("mi", inner, "<", form="x") == '<mi form="x"><b>a &amp; b</b>&lt;</mi>'
    assert join("a", Markup("<"), inner, "<") == "a<<b>a &amp; b</b>&lt;"
    assert element("p", title='"q"') == '<p title="&#34;q&#34;"></p>'
    assert "<b>a &amp; b</b></p>" in PARAGRAPH.render(value=inner)


def test_html_has_true_minus_signs_and_raised_powers() -> None:
    assert typeset("-1.5e-07").endswith("10<sup>−7</sup></span>")
    assert "−1.5" in typeset("-1.5e-07")
    assert typeset("-2") == '<span class="number">−2</span>'
