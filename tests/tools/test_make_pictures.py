"""The pictures of the README and of the documentation are those that the script makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

import make_pictures

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
MADE = {*make_pictures.FIGURES, make_pictures.REPORT}
PAGES = {
    "README.md": "docs/pictures/",
    "docs/index.md": "pictures/",
    "docs/designs.md": "pictures/",
    "docs/diagnostics.md": "pictures/",
    "docs/scenarios.md": "pictures/",
    "docs/validation.md": "pictures/",
}


def test_the_script_makes_every_committed_picture_and_no_other() -> None:
    assert {path.name for path in PICTURES.iterdir()} == MADE


def test_every_picture_is_shown_with_a_text_for_those_who_do_not_see_it() -> None:
    shown: dict[str, str] = {}
    for page, folder in PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        shown |= {name: alt for alt, name in re.findall(rf"!\[(.*)\]\({folder}(.*)\)", text)}
    assert set(shown) == MADE
    assert all(len(alt.split()) >= 5 for alt in shown.values()), shown


@pytest.mark.parametrize("name", sorted(MADE))
def test_no_picture_is_heavy(name: str) -> None:
    assert (PICTURES / name).stat().st_size < 150_000


@pytest.mark.parametrize("name", sorted(make_pictures.FIGURES))
def test_a_figure_is_light_behind_its_lines_and_loads_nothing(name: str) -> None:
    text = (PICTURES / name).read_text(encoding="utf-8")
    assert "fill: #ffffff" in text[: text.index('<g id="axes_1">')]  # it reads on a dark page
    assert not re.search(
        r"<(image|script|style)|url\((?!#)|@import",
        text.replace(
            '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>', ""
        ),
    )
    assert not re.search(r'href="(?!#)', text)


def test_a_page_is_cut_in_two_columns_where_it_is_empty() -> None:
    page = Image.new("RGB", (10, 200), "white")
    for row in (*range(96), *range(108, 200)):
        page.putpixel((3, row), (0, 0, 0))
    both = make_pictures.side_by_side(page)
    assert both.size == (20, 101)
    assert [both.getpixel((3, row)) for row in (95, 96)] == [(0, 0, 0), (255, 255, 255)]
    assert [both.getpixel((13, row)) for row in (6, 7)] == [(255, 255, 255), (0, 0, 0)]
