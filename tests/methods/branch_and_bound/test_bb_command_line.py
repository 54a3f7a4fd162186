"""``--method branch-and-bound``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odefit import BranchAndBound
from odefit.cli import main

PROBLEM = """
format = 1
name = "decay"

[ode]
x = "{ode}"

[parameters]
k = {{ lower = 0.0{upper} }}

[initial]
x = 1.0

[[experiment]]
name = "run"
data = "data.csv"
"""
OPTIONS = "--method branch-and-bound --starts 1 --jobs 1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data.csv").write_text("t,x\n0.5,0.72\n1,0.45\n2,0.3\n")
    for name, ode, upper in (
        ("open", "-k*x", ""),
        ("closed", "-k*x", ", upper = 5.0"),
        ("kink", "-k*abs(x)", ", upper = 5.0"),
    ):
        (tmp_path / f"{name}.toml").write_text(PROBLEM.format(ode=ode, upper=upper))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main(["fit", *command.split()])
    out, err = (" ".join(text.split()) for text in capsys.readouterr())
    assert "Traceback" not in out + err
    return status, out, err


@pytest.mark.parametrize(
    ("options", "scope"),
    [("", "in continuous time"), ("--mesh 5 --scheme legendre", "discretised (Legendre")],
)
def test_it_prints_the_certificate_and_writes_the_log(
    folder: Path, capsys: pytest.CaptureFixture[str], options: str, scope: str
) -> None:
    status, out, _ = run(f"closed.toml {OPTIONS} {options} --json r.json --report r.html", capsys)
    assert status == 0
    assert scope in out
    assert "computed by branch and bound over boxes, with all rounding outwards" in out
    found = json.loads((folder / "r.json").read_text())["assessment"]["global"]
    assert found["closed"]
    assert found["lower"] <= found["upper"]
    assert found["history"]
    assert "branch and bound" in (folder / "r.html").read_text()


def test_missing_bounds_are_unusable_input_until_they_are_accepted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = f"{OPTIONS} --mesh 5 --scheme legendre"
    status, _, err = run(f"open.toml {options}", capsys)
    assert status == 2
    assert "--bounds propose" in err
    status, out, _ = run(f"open.toml {options} --bounds propose", capsys)
    assert status == 0
    assert "these as given to the method (k from 0 to" in out


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (f"kink.toml {OPTIONS}", "'abs' has a kink"),
        (f"kink.toml {OPTIONS} --scheme legendre", "'abs' has a kink"),
        (f"closed.toml {OPTIONS} --scheme gauss", "unknown scheme 'gauss'"),
        (f"closed.toml {OPTIONS} --mesh 0", "mesh"),
        (f"closed.toml {OPTIONS} --mesh 1 --scheme simpson", "at least 2 steps"),
        (f"closed.toml {OPTIONS} --elements 3", "--method outer-approximation"),
        ("closed.toml --bounds propose", "--bounds"),
        ("closed.toml --method branch-and-bounds", "branch-and-bound"),
    ],
)
def test_what_cannot_be_used_is_refused(
    capsys: pytest.CaptureFixture[str], command: str, part: str
) -> None:
    status, _, err = run(command, capsys)
    assert status == 2
    assert part in err


def test_a_time_limit_keeps_the_best_so_far(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its bounds can never meet, with these.
    monkeypatch.setattr(BranchAndBound, "__init__", _endless(BranchAndBound.__init__))
    status, out, _ = run(f"closed.toml {OPTIONS} --time-limit 0.7 --json r.json", capsys)
    assert status == 4
    assert "time limit was reached" in out
    found = json.loads((folder / "r.json").read_text())
    assert found["status"] == "time limit"
    assert not found["assessment"]["global"]["closed"]


def _endless(init: Callable[..., None]) -> Callable[..., None]:
    def started(self: BranchAndBound, **options: Any) -> None:
        init(self, gap=0.0, absolute_gap=0.0, **options)

    return started
