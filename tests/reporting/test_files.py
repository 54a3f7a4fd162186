"""What the name of a file decides: tables for papers, and reports of every format."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit import InputError, Model, Problem, Result
from odefit.reporting.documents.estimate_tables import in_latex, number_in_latex, number_in_words
from odefit.reporting.documents.html import has_correlation


@pytest.fixture(scope="module")
def result() -> Result:
    problem = Problem(
        Model(ode={"x": "-k_1*x"}, observables={"y_a": "s*x"}),
        {"t": [0, 1, 2, 3, 4], "y_a": [2.01e-4, 0.99e-4, 0.52e-4, 0.24e-4, 0.13e-4]},
        {"k_1": {"lower": 0.0, "upper": 10.0, "unit": "1/h"}, "s": {"lower": 0.0}},
        {"x": 1.0},
        name="decay_1 & <more>",
        description="100 % of it, [#1]",
    )
    fitted = odefit.fit(problem, jobs=1)
    return fitted.with_profiles(fitted.profile(jobs=1))


def test_a_csv_table_has_all_digits(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "table.csv")
    found = pd.read_csv(tmp_path / "table.csv", index_col="key", dtype=str)
    assert found.estimate.astype(float).to_dict() == result.parameters.estimate.to_dict()
    assert list(found.columns) == list(result.parameters.columns)


def test_a_latex_table_has_a_cell_for_every_column(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "table.tex")
    text = (tmp_path / "table.tex").read_text(encoding="utf-8")
    inside = re.search(r"\\begin\{tabular\}\{(\w+)\}\n(.*)\\end\{tabular\}", text, re.DOTALL)
    assert inside is not None
    lines = [line.strip() for line in inside[2].splitlines()]
    rows = [line for line in lines if line.endswith(r"\\")]
    assert lines[0] == r"\toprule"
    assert lines[-1] == r"\bottomrule"
    assert len(rows) == 1 + len(result.parameters)
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == len(inside[1]) - 1
        outside = re.sub(r"\$[^$]*\$", "", row)  # no special character outside mathematics
        assert not re.search(r"(?<!\\)[%#_$^]", outside)
    assert any(row.startswith(r"k\_1 & $0.") and "& 1/h &" in row for row in rows)
    assert any(re.search(r"s & \$\d\.\d+ \\times 10\^\{-4\}\$", row) for row in rows)


def test_a_markdown_table_has_a_cell_for_every_column(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "table.md")
    lines = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}
    assert lines[2].startswith(r"| k\_1 | 0.")
    assert "× 10⁻⁴" in lines[3]
    assert re.search(r"\[[^,]+, [^,]+\]", lines[2])


@pytest.mark.parametrize(
    ("text", "latex", "words"),
    [
        ("5.9e-05", r"$5.9 \times 10^{-5}$", "5.9 × 10⁻⁵"),
        ("-1.5", "$-1.5$", "−1.5"),
        ("inf", r"$\infty$", "∞"),
        ("", "", ""),
    ],
)
def test_numbers_are_typeset(text: str, latex: str, words: str) -> None:
    assert number_in_latex(text) == latex
    assert number_in_words(text) == words


def test_no_text_is_a_command_in_latex() -> None:
    assert in_latex(r"\input{x} $a_1^2$ 5 % [b] #~&") == (
        r"\textbackslash{}input\{x\} \$a\_1\textasciicircum{}2\$ 5 \% {[}b{]} "
        r"\#\textasciitilde{}\&"
    )


def test_the_markdown_report_holds_the_table_and_the_findings(
    result: Result, tmp_path: Path
) -> None:
    result.report(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# decay\\_1 & \\<more>\n")
    for words in (
        "## Estimates",
        "- Local optimality: ",
        "Profile likelihood",
        "$$\n\\begin{aligned}\n\\frac{\\mathrm{d}x}{\\mathrm{d}t} &= - k_{1}\\thinspace x\n",
        "## Data\n\n5 measured values of 1 observable in 1 experiment, t = 0 to 4.",
        "| Experiment | Start | Measured | Values | By observable |\n| :-- | --: | --:",
        "## Unknowns and bounds",
        "| k\\_1 | parameter | 0 | 10 | chosen by the method |",
    ):
        assert words in text


@pytest.mark.slow
def test_the_html_report_and_the_result_file_are_written_as_before(
    result: Result, tmp_path: Path
) -> None:
    result.report(tmp_path / "report.HTML")
    assert (tmp_path / "report.HTML").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    result.save(tmp_path / "result.json")
    assert odefit.load_result(tmp_path / "result.json").objective == result.objective


@pytest.mark.parametrize(
    ("verb", "name", "words"),
    [
        ("save", "r.xlsx", ".csv, .md, .tex, .py, .c, .jl, .m, and '.xlsx' is not"),
        ("save", "r.pdf", "result.report(path) writes .html and .md"),
        ("save", "result", "its name has none of these"),
        ("report", "r.docx", "a report is written as .html, .md, and '.docx' is not one of these"),
        ("report", "r.pdf", "write .html, and print it to PDF from a browser"),
        ("report", "report", "its name has none of these"),
    ],
)
def test_an_unknown_name_is_refused_with_the_valid_names(
    result: Result, tmp_path: Path, verb: str, name: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        getattr(result, verb)(tmp_path / name)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_correlation_is_drawn_of_two_standard_errors_or_more(result: Result) -> None:
    assert has_correlation(result)
    assert result.uncertainty is not None
    alone = np.full_like(result.uncertainty.correlation, np.nan)
    alone[0, 0] = 1.0  # the other unknown is at a bound, say
    one = replace(result, uncertainty=replace(result.uncertainty, correlation=alone))
    assert not has_correlation(one)
    assert not has_correlation(replace(result, uncertainty=None))
