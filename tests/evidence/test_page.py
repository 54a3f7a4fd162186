"""Every table of the benchmark pages is what its results file says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidence import commits
from evidence.page import (
    FACTS,
    OLDER,
    RESULTS,
    begin,
    first_table,
    read_results,
    record,
    renewed,
    stale,
    stamp,
)
from evidence.registry import ROWS
from odefit.common.errors import InputError

HISTORICAL = {"separable/matches", "speed/whole-fit-later"}
"""Tables that show what has changed since."""

TODAY = f"odefit 0.2.0, commit 0123abcd (number {commits.SINCE})"

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
    (folder / "proving.md").write_text(TABLE, encoding="utf-8")
    stamp(folder, "transcription-study-quick", {"seconds": "30"})
    assert record(folder, results) == ["transcription/scip"]
    file = results / "transcription" / "scip.csv"
    facts = read_results(file).facts
    # As if it were made by a commit of today, whatever the history of this copy.
    file.write_text(file.read_text(encoding="utf-8").replace(facts["version"], TODAY))
    assert facts["command"] == "python -m evidence run transcription-study-quick --set seconds=30"
    assert facts["version"].startswith(f"odefit {commits.tree_version()}, ")
    assert f", odefit {commits.tree_version()}, numpy " in facts["machine"]
    (results / "transcription").rename(results / "page")
    (results / "page" / "scip.csv").rename(results / "page" / "one.csv")

    page = pages / "page.md"
    page.write_text("# P\n\n<!-- results: page/one -->\n<!-- /results -->\nend\n", encoding="utf-8")
    assert stale(pages, results) == ["page.md is not what its results files say; run 'page'"]
    page.write_text(renewed(page, results), encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert first_table(text) == first_table(TABLE)
    assert f"page/one.csv), {facts['made'].removeprefix('on ')}.*" in text
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
def test_an_incomplete_results_file_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_results(path)


def test_a_text_without_a_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"words\.md has no table in Markdown"):
        first_table("no table", "words.md")


def results_file(folder: Path, version: str, *lines: str) -> str:
    """Write a results file by that version; return what is wrong with it."""
    pages, results = folder / "pages", folder / "results"
    (results / "page").mkdir(parents=True, exist_ok=True)
    pages.mkdir(exist_ok=True)
    facts = ["command: c", "made: m", "machine: m", f"version: {version}", *lines, "align: l"]
    text = "".join(f"# {fact}\n" for fact in facts) + "a\n1\n"
    (results / "page" / "one.csv").write_text(text, encoding="utf-8")
    page = pages / "page.md"
    page.write_text("<!-- results: page/one -->\n<!-- /results -->\n", encoding="utf-8")
    page.write_text(renewed(page, results), encoding="utf-8")
    return "\n".join(stale(pages, results))


@pytest.mark.parametrize(
    "version",
    [
        f"commit 0123abcd (number {commits.SINCE - 1})",
        f"commit 0123abcd-dirty (number {commits.SINCE + 1})",
        f"commits 0123abcd (number 7) to 4567abcd (number {commits.SINCE})",
        "commit 0123abcd",
        commits.UNKNOWN,
    ],
)
def test_a_table_by_an_older_commit_needs_a_sentence_on_why(version: str, tmp_path: Path) -> None:
    assert "page/one.csv is older than commit number" in results_file(tmp_path, version)
    assert results_file(tmp_path, version, f"{OLDER}: it takes a week") == ""
    text = (tmp_path / "pages" / "page.md").read_text(encoding="utf-8")
    assert "m. Not made again: it takes a week.*" in text
    assert results_file(tmp_path, TODAY) == ""


def test_runs_that_went_on_name_the_first_and_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a1 (number 1)", "b2 (number 2)", "b2 (number 2)"):
        monkeypatch.setattr(commits, "current", lambda name=name: name)
        begin(tmp_path)
    stamp(tmp_path, "library", {}, limit=62)
    facts = json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))
    assert facts["version"].endswith(", commits a1 (number 1) to b2 (number 2)")
    assert facts["command"] == "python -m evidence run library --limit 62"
