"""Every table of the benchmark pages is what its results file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidence.page import (
    FACTS,
    RESULTS,
    first_table,
    read_results,
    record,
    renewed,
    stale,
    stamp,
)
from evidence.registry import ROWS
from odefit.common.errors import InputError

HISTORICAL = {"separable/matches", "speed/trajectory-later", "speed/whole-fit-later"}
"""Tables that show what has changed since."""

TABLE = "some words\n\n| a | b |\n|---|--:|\n| x \\| y | 1, 2 |\n|  | **3** |\n\nmore\n"


def test_pages_and_results_files_agree_and_no_table_is_without_one() -> None:
    assert stale() == []


def test_every_results_file_says_how_its_table_was_made() -> None:
    files = sorted(RESULTS.rglob("*.csv"))
    assert len(files) > 40
    for path in files:
        facts = read_results(path).facts
        assert all(facts[key] for key in FACTS), path
        assert "python " in facts["command"], path


def test_tables_that_pages_show_are_those_of_the_registry() -> None:
    """Tables of an earlier state stay, beside those that a run makes again."""
    filled = {name for one in ROWS.values() for name in one.fills}
    there = {p.relative_to(RESULTS).with_suffix("").as_posix() for p in RESULTS.rglob("*.csv")}
    assert there - filled == HISTORICAL
    assert filled <= there


def test_a_table_is_recorded_and_written_as_it_was(tmp_path: Path) -> None:
    results, pages, folder = tmp_path / "results", tmp_path / "pages", tmp_path / "study"
    pages.mkdir()
    folder.mkdir()
    with pytest.raises(InputError, match="no run has ended there"):
        record(folder, results)
    (folder / "scope.md").write_text(TABLE, encoding="utf-8")
    stamp(folder, "transcription-study-quick", {"seconds": "30"})
    assert record(folder, results) == ["transcription/starts"]
    facts = read_results(results / "transcription" / "starts.csv").facts
    assert facts["command"] == "python -m evidence run transcription-study-quick --set seconds=30"
    assert facts["version"].startswith("odefit ")
    (results / "transcription").rename(results / "page")
    (results / "page" / "starts.csv").rename(results / "page" / "one.csv")

    page = pages / "page.md"
    page.write_text("# P\n\n<!-- results: page/one -->\n<!-- /results -->\nend\n", encoding="utf-8")
    assert stale(pages, results) == ["page.md is not what its results files say; run 'page'"]
    page.write_text(renewed(page, results), encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert first_table(text) == first_table(TABLE)
    assert f"page/one.csv), made {facts['made']}.*" in text
    assert stale(pages, results) == []

    # A figure that is changed in the page alone, a table by hand and an unused file are told.
    page.write_text(text.replace("1, 2", "1, 3") + "\n| c |\n|---|\n| 4 |\n", encoding="utf-8")
    (results / "page" / "two.csv").write_text((results / "page" / "one.csv").read_text())
    assert stale(pages, results) == [
        "page.md is not what its results files say; run 'page'",
        "page.md has 1 tables without a results file",
        "no page shows page/two.csv",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# command: c\n# align: l\na\n1\n", "write lines '# KEY: VALUE' for made, machine, versi"),
        (
            "# command: c\n# made: m\n# machine: m\n# version: v\n# align: ll\na,b\n1,2\n1\n",
            r"as many fields as there are columns and letters of 'align', 2; rows \[2\] have not",
        ),
    ],
)
def test_a_results_file_that_lacks_something_is_refused(
    text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_results(path)


def test_a_text_without_a_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"words\.md has no table in Markdown"):
        first_table("no table", "words.md")
