"""The first table of the evidence says what the results files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidence import cells, overview
from evidence.overview_rows import published, whole_fits
from evidence.page import PAGES, RESULTS
from odefit.common.errors import InputError


def test_the_table_on_the_page_is_that_of_the_results_files() -> None:
    """Renew it by `python -m evidence page`."""
    assert overview.stale() == []


def test_the_readme_has_some_of_its_rows() -> None:
    texts = {path: text.splitlines() for path, text in overview.renewed().items()}
    shown = [line for line in texts[overview.README] if line.startswith("| [")]
    assert {line.replace("](docs/", "](") for line in shown} <= set(texts[overview.PAGE])
    assert len(shown) == sum(line.front for line in overview.LINES) > 5


def test_a_figure_that_was_changed_by_hand_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("<!-- overview -->\n<!-- /overview -->\n", encoding="utf-8")
    monkeypatch.setattr(overview, "PAGE", page)
    assert overview.stale() == ["benchmarks.md is not what its results files say; run 'page'"]
    overview.write()
    assert overview.stale() == []


@pytest.mark.parametrize("line", overview.LINES, ids=lambda line: line.question)
def test_a_row_names_its_page_and_has_no_empty_cell(line: overview.Line) -> None:
    page = line.page.partition("#")[0]
    assert (PAGES / page).is_file()
    assert {name.split("/")[0] for name in line.tables} == {page.removesuffix(".md")}
    said = line.text().strip("|").split(" | ")
    assert len(said) == len(overview.HEAD)
    assert all(cell.strip() for cell in said)


def test_every_page_of_results_is_in_the_table() -> None:
    shown = {name.split("/")[0] for line in overview.LINES for name in line.tables}
    assert shown == {path.name for path in RESULTS.iterdir() if path.is_dir()}


def test_shortfalls_are_read_from_the_rows() -> None:
    won = {"problem": "a", "odefit, s": "1.0 right", "odefit / fastest right COPASI": "0.5"}
    won |= {"COPASI SS, s": "2.0 right", "COPASI LM, s": "9 wrong"}
    lost = {**won, "problem": "b", "odefit, s": "3 wrong", "odefit / fastest right COPASI": "1.5"}
    own, other, short = whole_fits([won, lost])
    assert own.startswith("1 of 2 right, 1 to 3 s")
    assert other.endswith("2 right, 2 s")
    assert short == "COPASI is faster on: b"
    assert whole_fits([won])[2] == cells.NONE


def test_a_problem_that_is_missed_several_times_is_named_once() -> None:
    table = [{"runs": "9", "right": "6"}]
    lost = [{"problem": name, "differs": "seed"} for name in ("a", "b", "a")]
    assert published(table, lost)[2] == "missed: 2 times a (seed), b (seed)"


def test_a_table_that_lacks_a_column_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    line = next(line for line in overview.LINES if line.tables == ["algebraic/without-noise"])
    monkeypatch.setattr(overview, "read", lambda path: [{"model": "harmonic"}])
    with pytest.raises(InputError, match="algebraic/without-noise lack what the first table"):
        line.text()


COMPARED = {"SOLVED": "0.9", "FOUND": "0.5", "SUCCESS": "1"}
AS_MADE = {
    "Published models, fits": (
        [[{"problem": "a", "gap": "+0.2", "pyPESTO: gap": "–"}]],
        ("0 of 1 published", "0 of 1", "not reached: a"),
    ),
    "Published models, gradients": (
        [
            [
                {"problem": "a", "AMICI's": "-1.00000", "log-likelihood": "-2.00000"}
                | {"gradient, ms": "2", "AMICI: gradient, ms": "20 (3)"}
                | {"cost, ms": "1", "AMICI: cost, ms": "9 (0.5)"}
            ]
        ],
        ("0 of 1 published models as by AMICI", "10 times", "another likelihood: a"),
    ),
    "Intervals": (
        [
            [
                {"problem": "a", "unknown": u, "intervals": n, "profile covers": "0.947"}
                | {"goodness called bad": "0.06"}
                for u, n in (("k", "500"), ("all", "1000"))
            ]
        ],
        ("94.7 % of 500 data sets", "95 %", "6 %"),
    ),
    "Direct transcription": (
        [
            [
                {"scheme": "radau", "runs": "2", **COMPARED}
                | {f"paper {k}": "0.95" for k in COMPARED},
                {"scheme": "euler", "runs": "2", **COMPARED, "FOUND": "0.3"}
                | {f"paper {k}": "0.35" for k in COMPARED},
            ]
        ],
        ("finds the reference in 40 % of 4 runs", "all solvers: 65 %", "FOUND 0.4 against 0.65"),
    ),
    "The algebraic method": (
        [
            [
                {"model": "a", "odefit: median": "3e-13", "odefit: mean": "5e-13"}
                | {"AMIGO2 [0, 1]": "0.0 / 2.5"}
            ]
        ],
        ("below 3e-13 %", "on 1 models", "largest mean error 5e-13 %, on a"),
    ),
    "Multiple shooting": (
        [
            [
                {"problem": "a", "program": "IPOPT, Gauss-Newton", "over odefit": "0.5"},
                {"problem": "a", "program": "odefit", "over odefit": "1.0"},
            ]
        ],
        ("on all 1 ", "0.5 times", "IPOPT is faster on: a"),
    ),
    "Separable least squares": (
        [
            [
                {"method": "sls", "median ms": "8", "times faster": "20"},
                {"method": "nls", "median ms": "9", "times faster": ""},
            ],
            [dict.fromkeys(("sir", "ltk", "gma", "ftz"), "1.0, 0.9")],
        ],
        ("8 ms", "20 times", "in 4 of 4"),
    ),
    "Proofs": (
        [
            [{"system": "s", "closed": "yes"}],
            [
                {"method": "BARON (paper)", "gap, %": "79.31", "seconds": "43200"},
                {"method": "branch and bound", "gap, %": "0.1", "seconds": "6"},
            ],
        ],
        ("to 0.1 % in 6 s", "79.31 %", cells.NONE),
    ),
}
"""Tables as campaigns make them; those of some pages were taken over by hand in another form."""


@pytest.mark.parametrize("question", AS_MADE)
def test_a_row_is_also_read_from_what_its_campaign_makes(question: str) -> None:
    (line,) = (line for line in overview.LINES if line.question == question)
    tables, parts = AS_MADE[question]
    for cell, words in zip(line.cells(*tables), parts, strict=True):
        assert words in cell


def test_columns_of_one_title_are_distinguished(tmp_path: Path) -> None:
    facts = "".join(f"# {key}: x\n" for key in ("command", "made", "machine", "version"))
    path = tmp_path / "t.csv"
    path.write_text(f"{facts}# align: lll\n,gap,gap\na,1,2\n", encoding="utf-8")
    assert overview.read(path) == [{"": "a", "gap": "1", "gap 2": "2"}]


@pytest.mark.parametrize(
    ("text", "values"),
    [("1,230 ms", [1230.0]), ("9e-07 %", [9e-07]), ("2.30 right 2/3", [2.3, 2, 3])],
)
def test_numbers_of_a_cell_are_read(text: str, values: list[float]) -> None:
    assert cells.numbers(text) == values
