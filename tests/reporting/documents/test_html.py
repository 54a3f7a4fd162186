"""The report is one safe, well-formed, accessible file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.reporting.documents.html import POLICY, report_html
from odefit.result.result import Result
from tests.reporting import examples

RESULTS: dict[str, Callable[[], Result]] = {
    "routed": examples.routed,  # alpha-pinene with a table more
    "troubled": examples.troubled,
    "failed": examples.failed,
    "nine experiments": lambda: examples.many(9, 1),
    "four by three": lambda: examples.many(4, 3),
}


@cache
def page_of(name: str) -> str:
    """A page takes a second or two: it is made once, when the first test asks for it."""
    return report_html(RESULTS[name](), "2025-01-31")


@pytest.fixture
def page(name: str) -> str:
    return page_of(name)


MANY = {"nine experiments", "four by three"}
"""More of the same as on the other pages."""

every_page = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in MANY else ()) for n in RESULTS]
)

VOID = {"meta", "br", "hr", "img", "link", "col"}


class Reader(HTMLParser):
    """Collects elements, and finds those that are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute of {tag} occurs twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def words(page: str) -> str:
    return " ".join(" ".join(Reader(page).text).split())


@every_page
def test_every_element_is_closed(page: str) -> None:
    assert Reader(page).open == []


@every_page
def test_nothing_comes_from_the_network(page: str) -> None:
    assert "http:" not in page
    assert "https:" not in page
    assert "//" not in re.sub(r"/\*.*?\*/", "", page)
    assert "url(" not in re.sub(r"url\(#[-\w]+\)", "", page)
    reader = Reader(page)
    for tag in ("script", "link", "img", "iframe", "object", "form", "base", "image"):
        assert not reader.all(tag), tag
    for tag, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("href", "src"):
            assert (attributes.get(name) or "#").startswith("#"), attributes


@every_page
def test_a_policy_forbids_scripts_and_connections(page: str) -> None:
    metas = {m.get("http-equiv"): m.get("content") for m in Reader(page).all("meta")}
    assert metas["Content-Security-Policy"] == POLICY
    assert "default-src 'none'" in POLICY
    assert "script-src" not in POLICY


@every_page
def test_ids_are_unique_and_references_resolve(page: str) -> None:
    reader = Reader(page)
    ids = [a["id"] for _, a in reader.tags if "id" in a]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    wanted = set(re.findall(r"url\(#([^)]+)\)", page))
    for _, attributes in reader.tags:
        wanted.update((attributes.get("aria-labelledby") or "").split())
        href = attributes.get("href")
        if href is not None:
            wanted.add(href.removeprefix("#"))
    assert wanted <= set(ids)


@every_page
def test_drawings_and_formulas_are_well_formed(page: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    formulas = re.findall(r"<math.*?</math>", page, flags=re.DOTALL)
    assert drawings
    assert formulas
    for piece in drawings + formulas:
        ElementTree.fromstring(piece)


@every_page
def test_every_drawing_has_a_name_and_every_table_a_caption(page: str) -> None:
    reader = Reader(page)
    for drawing in reader.all("svg"):
        assert drawing["role"] == "img"
        assert drawing["aria-labelledby"]
    assert len(reader.all("table")) == len(reader.all("caption"))
    for formula in reader.all("math"):
        assert formula["alttext"]
    assert reader.all("html") == [{"lang": "en"}]
    assert all(cell["scope"] in ("col", "row") for cell in reader.all("th"))


@every_page
def test_headings_do_not_skip_a_level(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Reader(page).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_texts_of_users_are_escaped() -> None:
    page = page_of("troubled")
    assert "<script" not in page
    assert "<img" not in page
    assert examples.HOSTILE_RUN in words(page)
    assert examples.HOSTILE in words(page)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["troubled", "failed"])
def test_the_same_result_gives_the_same_bytes_but_for_the_date(name: str) -> None:
    other = report_html(RESULTS[name](), "2031-12-01")
    assert other.replace("2031-12-01", "2025-01-31") == page_of(name)


@every_page
def test_global_is_never_said_without_a_bound(page: str) -> None:
    assert "global" not in words(page).lower()


@pytest.mark.slow
def test_every_experiment_and_observable_has_its_panel() -> None:
    page = page_of("four by three")
    assert len(re.findall(r'<div class="panel">', page)) == 4 * 3 + 3 * 7
    titles = re.findall(r"<title[^>]*>([^<]*): data and fitted model", page)
    assert len(set(titles)) == 12


def test_missing_numbers_have_their_reason_beside_them() -> None:
    text = words(page_of("troubled"))
    for reason in (
        "not determined. The data determine k2 and k5 only as the product k2*k5.",
        "at the lower bound (0)",
        "no effect: the measured observables do not depend on it here",
        "weakly determined: the standard error is 1000 % of the estimate",
        "fixed by the problem",
        "follows from alpha*0.01",
    ):
        assert reason in text


def test_a_report_has_the_settings_that_repeat_the_fit() -> None:
    text = words(page_of("routed"))
    for piece in ("Seed 20240601", "Version of odefit 0.1.0", "2025-01-31", "Wall time 3.2 s"):
        assert piece in text


@pytest.mark.slow
def test_starts_are_counted_with_their_reasons() -> None:
    text = words(page_of("routed"))
    assert "20 starts: 14 converged, 4 not converged, 2 failed." in text
    assert 'experiment "run 1", t = 1230: the step size became too small' in text


def test_all_routes_are_in_the_report() -> None:
    """Those that were not taken with the reason, and markup in messages as text."""
    page = page_of("routed")
    table = page.split("Routes to this answer")[-1].split("</table>")[0]
    assert table.count("<tr>") == 1 + 4
    assert "not needed" in table
    assert "<script" not in table
    assert "Routes to this answer" not in page_of("troubled")


def test_a_failed_fit_shows_the_data_and_the_reason() -> None:
    text = words(page_of("failed"))
    assert "No solution was found. Every start failed." in text
    assert "The measurements alone: no solution was found." in text


@pytest.mark.slow
def test_the_minimised_objective_is_shown_to_seven_digits() -> None:
    """As a result prints itself; with known noise the sum of squares stands beside it."""
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {"k": {}},
        {"x": 1.0},
        noise={"x": Noise(sd=0.1)},
    )
    found = examples.result_of(problem, np.array([0.7]), 12.3456789, None, (), -23.456789)
    text = words(report_html(found))
    assert "-2 log L 46.91358 Weighted sum of squares 12.34568 Measured values 2" in text
