"""A result on the terminal is readable, whatever the terminal can show."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from odefit.reporting.terminal import print_result, result_text
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


def test_a_single_route_is_no_table() -> None:
    routed = examples.routed()
    assert "Routes" not in result_text(replace(routed, routes=routed.routes[:1]))
    assert "Routes" not in result_text(replace(routed, routes=()))


def test_one_remark_on_all_unknowns_names_none() -> None:
    text = " ".join(printed(replace(TROUBLED, uncertainty=None), 80).split())
    assert (
        f"all {len(TROUBLED.problem.unknowns)} unknowns: the uncertainty was not computed" in text
    )


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


def test_brackets_in_names_are_no_markup() -> None:
    named = replace(TROUBLED, warnings=("[red]nothing[/red] [parameters] k",), message="[/] x")
    text = result_text(named)
    assert "[red]nothing[/red] [parameters] k" in text
    assert "[/] x" in text


def test_the_summary_never_says_global_without_a_bound() -> None:
    text = result_text(examples.alpha_pinene())
    assert "global" not in text.lower()


def test_what_was_neither_asked_for_nor_found_has_no_line() -> None:
    text = result_text(examples.alpha_pinene())
    assert "Completeness" not in text
    assert "Certificate" not in text


def test_a_failure_says_what_happened() -> None:
    text = result_text(examples.failed())
    assert "No solution was found." in text
    assert "Every start failed." in text
    assert "1 start: failed." in text
