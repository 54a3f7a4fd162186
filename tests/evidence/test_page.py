"""Every table of the benchmark pages is what its results file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidence import page as benchmark_pages
from evidence.page import FACTS, RESULTS, ResultsError, first_table, read_results, renewed, stale

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


def test_a_table_is_recorded_and_written_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results, pages = tmp_path / "results", tmp_path / "pages"
    pages.mkdir()
    monkeypatch.setattr(benchmark_pages, "RESULTS", results)
    (tmp_path / "t.md").write_text(TABLE, encoding="utf-8")
    facts = ["--command", "python x.py", "--made", "on 1 May", "--machine", "m", "--version", "1"]
    assert benchmark_pages.main(["record", str(tmp_path / "t.md"), "page/one", *facts]) == 0

    page = pages / "page.md"
    page.write_text("# P\n\n<!-- results: page/one -->\n<!-- /results -->\nend\n", encoding="utf-8")
    assert stale(pages, results) == ["page.md is not what its results files say; run 'write'"]
    page.write_text(renewed(page, results), encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert first_table(text) == first_table(TABLE)
    assert "page/one.csv), made on 1 May.*" in text
    assert stale(pages, results) == []

    # A figure that is changed in the page alone, a table by hand and an unused file are told.
    page.write_text(text.replace("1, 2", "1, 3") + "\n| c |\n|---|\n| 4 |\n", encoding="utf-8")
    (results / "page" / "two.csv").write_text((results / "page" / "one.csv").read_text())
    assert stale(pages, results) == [
        "page.md is not what its results files say; run 'write'",
        "page.md has 1 tables without a results file; see 'record'",
        "no page shows page/two.csv",
    ]
    assert capsys.readouterr().err == ""


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
    with pytest.raises(ResultsError, match=words):
        read_results(path)


def test_a_text_without_a_table_is_refused() -> None:
    with pytest.raises(ResultsError, match=r"words\.md has no table in Markdown"):
        first_table("no table", "words.md")
