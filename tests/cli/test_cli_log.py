"""The log of what was tried."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import odefit
from tests.cli.commands import refused, run

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) (.*)")


def logged(path: str = "fit.log") -> list[tuple[str, str]]:
    """Level and message of every line."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    matches = [LINE.fullmatch(line) for line in lines]
    return [(m[1], m[2]) for m in matches if m is not None]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_every_start_is_logged_whatever_the_number_of_jobs(folder: Path, jobs: str) -> None:
    options = ("--method", "multi-start", "--starts", "3", "--jobs", jobs, "--log", "fit.log")
    assert run("fit", "decay.toml", *options) == 0
    found = logged()
    began, *_, ended = found
    assert began[1].startswith("fit of Problem('decay': 1 state, 2 unknowns, 5 measurements")
    starts = [m for _, m in found if m.startswith("MultiStart(SingleShooting), start ")]
    assert sorted(int(m.split()[2].rstrip(":")) for m in starts) == [0, 1, 2]
    assert all(": converged, objective " in m for m in starts)
    assert ended[1].startswith("the fit ended after ")
    assert ": converged, objective 0.000662" in ended[1]


def test_starts_that_fail_are_warnings_with_their_reason(folder: Path) -> None:
    text = (folder / "blow_up.toml").read_text(encoding="utf-8")
    text = text.replace("lower = 1.0, upper = 3.0", "lower = 0.0, upper = 3.0, guess = 2.0")
    (folder / "blow_up.toml").write_text(text, encoding="utf-8")
    (folder / "blow_up.csv").write_text("t,x\n0,1\n1,1.25\n2,1.66\n", encoding="utf-8")
    assert run("fit", "blow_up.toml", "--jobs", "1", "--log", "fit.log") == 0
    failed = [m for level, m in logged() if level == "WARNING" and ", start " in m]
    assert failed
    assert "without bound" in failed[0]


@pytest.mark.slow
def test_routes_and_profiles_are_logged(folder: Path) -> None:
    options = ("--jobs", "1", "--log", "fit.log")
    assert run("profile", "decay.toml", "--only", "k", *options) == 0
    messages = [m for _, m in logged()]
    assert any(m.startswith("single shooting: starts ") for m in messages)
    assert sum(m.startswith("profile of k, side ") for m in messages) == 2


def test_a_log_grows_and_holds_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    level = logging.getLogger("odefit").level
    Path("fit.log").write_text("before\n", encoding="utf-8")
    refused(capsys, "fit", "decay.toml", "--fix", "z=1", "--log", "fit.log")
    assert Path("fit.log").read_text(encoding="utf-8").startswith("before\n")
    assert logged() == [("ERROR", "--fix: unknown name 'z'")]
    assert logging.getLogger("odefit").level == level


def test_nothing_is_shown_without_a_request(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    problem = odefit.library.load("harmonic")
    odefit.fit(problem, "single-shooting", jobs=1)
    assert capsys.readouterr() == ("", "")
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="odefit"):
        odefit.fit(problem, "multi-start", jobs=1)
    assert caplog.records[0].getMessage().startswith("fit of Problem('harmonic'")
