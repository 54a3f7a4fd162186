"""A result on the terminal is readable, whatever the terminal can show."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import odefit
from odefit import Model, Problem, fit
from odefit.reporting.terminal import print_profiles, print_result, result_text
from odefit.result.result import Result
from tests.reporting import examples

TROUBLED = examples.troubled()


def printed(result: Result, width: int, *, terminal: bool = False, encoding: str = "utf-8") -> str:
    buffer = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True, newline="")
    console = Console(file=buffer, width=width, force_terminal=terminal)
    print_result(result, console)
    buffer.seek(0)
    return buffer.read()


@pytest.mark.parametrize("width", [30, 40, 60, 72, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for line in printed(TROUBLED, width).splitlines():
        assert len(line.rstrip()) <= width


@pytest.mark.parametrize("width", [30, 50, 80, 160])
def test_the_routes_that_were_taken_are_shown(width: int) -> None:
    text = printed(examples.routed(), width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    _, routes = text.split("Routes to this answer")
    shown = " ".join(routes.split())
    assert "integral matching" in shown
    assert "19.872" in shown
    assert "2.25" in shown or "2.2 s" in shown or "2.2" in shown
    assert "not needed" not in shown
    assert "direct transcription" not in shown


def test_the_header_and_the_routes_give_one_number_for_the_fit() -> None:
    times = np.linspace(0.0, 5.0, 30)
    values = 3.0 * np.exp(-0.7 * times) + 0.05 * np.sin(37.0 * times)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"lower": 0.01, "upper": 10}},
        {"x": {"lower": 0, "upper": 10}},
        noise={"x": {"sd": "estimate"}},
    )
    result = fit(problem, seed=1, jobs=1)
    text = result_text(result)
    header = re.search(r"^-2 log L: (\S+)", text, re.MULTILINE)
    assert header is not None
    assert float(header[1]) == pytest.approx(-2.0 * (result.log_likelihood or math.nan), rel=1e-6)
    _, routes = text.split("Routes to this answer")
    assert "-2 log L" in routes.splitlines()[1]
    shown = re.findall(r"-?\d+\.\d+(?=\s+[\d.]+ s$)", routes, re.MULTILINE)
    assert shown
    assert min(map(float, shown)) == pytest.approx(float(header[1]), rel=1e-4)


def test_a_single_route_has_no_table() -> None:
    routed = examples.routed()
    assert "Routes" not in result_text(replace(routed, routes=routed.routes[:1]))
    assert "Routes" not in result_text(replace(routed, routes=()))


@pytest.mark.parametrize(("width", "remarks"), [(72, False), (80, False), (100, True)])
def test_names_and_numbers_stay_whole_in_a_narrow_table(width: int, remarks: bool) -> None:
    result = examples.by_subject()
    head, _, *rows = printed(result, width).split("\n\n")[1].splitlines()
    assert [row.split("  ")[0] for row in rows] == list(result.problem.keys)
    titles = ["estimate", "std error", "RSE %", "95 % interval", "unit", *["remark"] * remarks]
    assert [title.strip() for title in head.split("   ") if title.strip()] == titles
    assert ("not linear" in rows[0]) == remarks


def test_one_note_states_a_shared_remark_on_many_unknowns_once() -> None:
    text = " ".join(printed(examples.by_subject(), 80).split())
    bends = "the linear interval cannot be trusted, as the model bends within it"
    assert text.count(bends) == 1
    weak = "weakly determined: the standard error is 120 % to 320 % of the estimate"
    assert text.count(weak) == text.count("weakly determined") == 1
    assert "CL[subject 12], CL[subject 13]: " in text  # the table has no remarks at this width


def test_one_remark_on_all_unknowns_names_none() -> None:
    text = " ".join(printed(replace(TROUBLED, uncertainty=None), 80).split())
    assert (
        f"all {len(TROUBLED.problem.unknowns)} unknowns: the uncertainty was not computed" in text
    )


@pytest.mark.parametrize("width", [30, 60, 80])
def test_profiles_keep_to_the_width_and_break_no_word(width: int) -> None:
    stored = Path(__file__).parents[1] / "results-format-1" / "0.1-profiles.json"
    profiles = odefit.load_result(stored).profiles
    assert profiles is not None
    buffer = io.StringIO()
    print_profiles(profiles, Console(file=buffer, width=width))
    text = buffer.getvalue()
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for whole in ("0.67471", "0.71273", "upper limit", "identifiable"):
        assert whole in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_cut_off(width: int) -> None:
    text = printed(TROUBLED, width)
    assert "…" not in text
    joined = " ".join(text.split())
    for number in ("1.020", "0.061", "[0.896, 1.144]", "0.4", "-0.0200"):
        assert number in joined
    assert "k2 and k5 only as the product k2*k5" in joined
    assert "at the lower bound (0)" in joined


def test_piped_output_has_no_colours() -> None:
    assert "\x1b" not in printed(TROUBLED, 80)
    assert "\x1b" in printed(TROUBLED, 80, terminal=True)


def test_an_ascii_terminal_gets_ascii() -> None:
    text = printed(examples.alpha_pinene(), 80, encoding="ascii")
    assert text.isascii()
    assert "5.926e-05" in text


def test_a_notebook_gets_text_when_a_result_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Jupyter rich displays a block for each part, and writes nothing."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    shown: list[object] = []
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: shown.append(parts))
    assert "k2*k5" in str(TROUBLED)
    assert not shown


def test_brackets_in_names_are_not_markup() -> None:
    named = replace(TROUBLED, warnings=("[red]nothing[/red] [parameters] k",), message="[/] x")
    text = result_text(named)
    assert "[red]nothing[/red] [parameters] k" in text
    assert "[/] x" in text


def test_the_summary_never_says_global_without_a_bound() -> None:
    text = result_text(examples.alpha_pinene())
    assert "global" not in text.lower()


def test_absent_findings_have_no_line() -> None:
    text = result_text(examples.alpha_pinene())
    assert "Completeness" not in text
    assert "Certificate" not in text


def test_a_failure_says_what_happened() -> None:
    text = result_text(examples.failed())
    assert "No solution was found." in text
    assert "Every start failed." in text
    assert "1 start: failed." in text
