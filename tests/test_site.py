"""The site has the whole public interface, and its search leads to answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import odefit

DOCS = Path(__file__).parents[1] / "docs"


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(p.read_text(encoding="utf-8") for p in (DOCS / "api").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto\w+:: odefit\.(\w+)$", pages, re.MULTILINE))
    missing = set(odefit.__all__) - {"library"} - documented
    assert not missing, f"write '.. autofunction:: odefit.NAME' in docs/api/: {sorted(missing)}"


def test_the_reference_describes_nothing_twice() -> None:
    pages = "\n".join(p.read_text(encoding="utf-8") for p in (DOCS / "api").glob("*.md"))
    described = Counter(re.findall(r"^\.\. auto\w+:: (\S+)$", pages, re.MULTILINE))
    assert not [name for name, times in described.items() if times > 1]


def contents(page: str) -> list[str]:
    """Return the pages in the table of contents of a page, without those that are generated."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    entries = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for entry in entries for line in entry.split("\n")]
    names = [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and line[0] != ":"]
    return [name for name in names if (DOCS / f"{name}.md").is_file()]


def test_a_page_belongs_to_one_kind() -> None:
    kinds = ("tutorials", "guide", "reference", "methods")
    times = Counter(name for kind in kinds for name in contents(kind))
    assert len(times) > 50
    assert not [name for name, count in times.items() if count > 1]


def test_each_guide_begins_with_its_figure() -> None:
    guides = contents("guide")
    assert len(guides) > 25
    openings = {
        name: (DOCS / f"{name}.md").read_text(encoding="utf-8").split("\n## ")[0] for name in guides
    }
    assert not [name for name, opening in openings.items() if "![" not in opening]


QUESTIONS = {
    "excel": "problem-file",
    "dates": "problem-file",
    "parity plot": "diagnostics",
    "forecast": "predictions",
    "detection limit": "detection-limit",
    "counts": "fit-counts",
    "several subjects": "fit-subjects",
    "dose": "dosing",
    "r-squared": "validation",
    "confidence band": "predictions",
    "local minimum": "tutorial",
    "did not converge": "defaults",
    "stiff": "defaults",
    "delay": "writing-models",
    "spline": "smoothing",
    "missing data": "problem-file",
    "weights": "noise",
    "outliers": "noise",
    "several experiments": "problem-file",
    "parallel": "clusters",
    "cluster": "clusters",
    "gpu": "not-here",
    "export": "programs",
    "cite": "installation",
    "licence": "installation",
    "matlab": "from-matlab",
    "lmfit": "from-lmfit",
    "copasi": "from-copasi",
    "bootstrap": "predictions",
    "aic": "compare",
    "event": "problem-file",
    "identifiability": "structure",
    "steady state": "steady-states",
    "checkpoint": "checkpoints",
    "slow": "tutorial",
    "nan": "tutorial",
    "global optimum": "branch-and-bound",
}
"""Searches of users, each with the page that answers it."""


def test_search_words_lead_to_headings_and_to_one_place_each() -> None:
    places = tomllib.loads((DOCS / "search_words.toml").read_text(encoding="utf-8"))
    pages = {place.partition("#")[0] for place in places}
    assert not [page for page in pages if not (DOCS / f"{page}.md").is_file()]
    words = Counter((page, word) for page, of_page in places.items() for word in of_page)
    assert not [word for word, times in words.items() if times > 1]
    assert len(QUESTIONS) >= 30


def hits(index: dict[str, Any], query: str) -> list[str]:
    """Return the pages that the search shows, ranked as Sphinx' searchtools.js does."""
    pages: list[str] = index["docnames"]
    scored: list[tuple[int, str, str]] = []
    for title, places in index["alltitles"].items():
        if query in title.lower().strip() and len(query) >= len(title) / 2:
            score = round(15 * len(query) / len(title))
            scored += [(score + (index["titles"][p] == title), title, pages[p]) for p, _ in places]
    for entry, places in index["indexentries"].items():
        if query in entry and len(query) >= len(entry) / 2:
            score = round(100 * len(query) / len(entry))
            scored += [(score, index["titles"][p], pages[p]) for p, _, main in places if main]
    stem = english_stemmer()
    words = {stem(word) for word in re.findall(r"\w+", query)}
    scores: dict[int, dict[str, int]] = {}
    for word in words:
        for table, whole, part in (("terms", 5, 2), ("titleterms", 15, 7)):
            terms = index[table]
            exact = word in terms
            matched = [word] if exact else [t for t in terms if len(word) > 2 and word in t]
            for term in matched:
                found = terms[term] if isinstance(terms[term], list) else [terms[term]]
                for p in found:
                    scores.setdefault(p, {})[word] = whole if exact else part
    scored += [
        (max(by_word.values()), index["titles"][p], pages[p])
        for p, by_word in scores.items()
        if len(by_word) == len(words)
    ]
    ranked = sorted(scored, key=lambda hit: (-hit[0], hit[1].lower()))
    return list(dict.fromkeys(page for _, _, page in ranked))


def english_stemmer() -> Callable[[str], str]:
    from sphinx.search.en import SearchEnglish

    return SearchEnglish({}).stem


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built site.

    ``ODEFIT_SITE`` names one that was built before; else it is built without the gallery.
    """
    if built := os.environ.get("ODEFIT_SITE"):
        assert (Path(built) / "searchindex.js").is_file()
        return Path(built)
    for package in ("myst_parser", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(package, reason="the documentation has an environment of its own")
    extensions = (
        "myst_parser,sphinx.ext.autodoc,sphinx.ext.napoleon,sphinx_copybutton,sphinx_design"
    )
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-Q", "-D", f"extensions={extensions}"]
    subprocess.run([*build, "-d", folder / "trees", DOCS, folder / "html"], check=True)
    return folder / "html"


@pytest.mark.slow
def test_user_questions_lead_to_a_page_among_the_first_three_hits(site: Path) -> None:
    script = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))
    found = {query: hits(index, query)[:3] for query in QUESTIONS}
    assert not {q: found[q] for q, page in QUESTIONS.items() if page not in found[q]}


BEYOND = """() => {
  const scrolls = e => e && e !== document.body
    && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const texts = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const beyond = [...document.querySelectorAll(".bd-article *")].filter(
    e => texts(e) && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e));
  const wide = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls"] : [];
  const narrow = [...document.querySelectorAll(".bd-article td, .bd-article th")].filter(
    e => e.clientWidth < 60 && e.textContent.trim().length > 12);
  const cut = [...document.querySelectorAll(".prev-next-title")].filter(
    e => e.scrollWidth > e.clientWidth + 1);
  const bad = [...beyond, ...narrow, ...cut];
  return [...wide, ...bad.map(e => e.textContent.trim().slice(0, 60))];
}"""
"""Texts of a page beyond its right edge that no box of their own scrolls into view.

Texts in a column that is too narrow for them, and titles that are cut off, are among them.
"""


@pytest.mark.slow
def test_no_text_leaves_a_page_on_a_telephone(site: Path) -> None:
    from explore_browser import CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip("no chromium here; Debian: apt install chromium")
    cut = {}
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 320, "height": 640})
        for file in sorted(site.rglob("*.html")):
            page.goto(file.as_uri(), wait_until="domcontentloaded")
            cut[file.name] = page.evaluate(BEYOND)[:3]
    assert len(cut) > 50
    assert not {name: texts for name, texts in cut.items() if texts}
