"""The pictures of the README and of the documentation are those that the script makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

import guide_pictures
import make_pictures

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
MADE = {*make_pictures.FIGURES, make_pictures.REPORT, guide_pictures.MOVING}
PAGES = {
    "README.md": "docs/pictures/",
    "docs/index.md": "pictures/",
    "docs/designs.md": "pictures/",
    "docs/diagnostics.md": "pictures/",
    "docs/scenarios.md": "pictures/",
    "docs/validation.md": "pictures/",
    "docs/methods.md": "pictures/",
    "docs/installation.md": "pictures/",
    "docs/writing-models.md": "pictures/",
    "docs/noise.md": "pictures/",
    "docs/steady-states.md": "pictures/",
    "docs/dosing.md": "pictures/",
    "docs/from-copasi.md": "pictures/",
    "docs/coming-from.md": "pictures/",
    "docs/from-matlab.md": "pictures/",
    "docs/from-lmfit.md": "pictures/",
    "docs/petab.md": "pictures/",
    "docs/sbml.md": "pictures/",
    "docs/going-on.md": "pictures/",
    "docs/checkpoints.md": "pictures/",
    "docs/limits.md": "pictures/",
    "docs/clusters.md": "pictures/",
    "docs/goodness-of-fit.md": "pictures/",
    "docs/compare.md": "pictures/",
    "docs/programs.md": "pictures/",
    "docs/fit-counts.md": "pictures/",
    "docs/fit-subjects.md": "pictures/",
    "docs/detection-limit.md": "pictures/",
    "docs/unknown-functions.md": "pictures/",
    "docs/sensitivity.md": "pictures/",
    "docs/predictions.md": "pictures/",
    "docs/profiles.md": "pictures/",
    "docs/structure.md": "pictures/",
    "docs/branch-and-bound.md": "pictures/",
    "docs/multiple-shooting.md": "pictures/",
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


def test_one_iteration_of_the_moving_picture_is_shown_at_a_time() -> None:
    count = 4
    shown = []
    for k in range(count):
        text = guide_pictures.appearance(k, count)
        values = re.findall(r'values="(.*?)"', text)[0].split(";")
        times = [float(t) for t in re.findall(r'keyTimes="(.*?)"', text)[0].split(";")]
        assert times[0] == 0.0
        shown.append([(t, v) for t, v in zip(times, values, strict=True)])
    for moment in (0.05, 0.2, 0.4, 0.99):
        on = [[v for t, v in frames if t <= moment][-1] for frames in shown]
        assert on.count("1") == 1


def test_the_committed_moving_picture_has_all_its_iterations() -> None:
    text = (PICTURES / guide_pictures.MOVING).read_text(encoding="utf-8")
    lines = re.findall(r'<g id="line-(\d+)"><animate ', text)
    assert lines == [str(k) for k in range(len(lines))]
    assert len(lines) >= 5
    assert not re.search(r"<(image|script)|@import", text)


@pytest.mark.parametrize("page", ["fit-counts.md", "detection-limit.md"])
def test_a_guides_figure_comes_from_its_own_example(page: str) -> None:
    result = guide_pictures.result_of(page)
    assert result.status.value == "converged"
    assert (guide_pictures.DOCS / page).read_text(encoding="utf-8").count("odefit.fit(") >= 1


def test_the_files_of_a_page_make_its_problem() -> None:
    assert guide_pictures.problem_of("fit-subjects.md").name == "decay of three subjects"
