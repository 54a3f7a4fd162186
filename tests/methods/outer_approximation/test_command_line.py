"""``--method outer-approximation``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odefit.cli import main

PROBLEM = """
format = 1
name = "decay"

[ode]
x = "-k*x"

[parameters]
k = {{ lower = 0.0{upper} }}

[initial]
x = 1.0

[[experiment]]
name = "run"
data = "data.csv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data.csv").write_text("t,x\n0.5,0.72\n1,0.45\n2,0.3\n")
    (tmp_path / "open.toml").write_text(PROBLEM.format(upper=""))
    (tmp_path / "closed.toml").write_text(PROBLEM.format(upper=", upper = 5.0"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_the_bounds_and_writes_the_log(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--method outer-approximation --elements 2 --starts 1 --jobs 1 --json r.json"
    assert main(["fit", "closed.toml", *options.split()]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "discretised (Legendre collocation, 2 elements x 3 points" in said
    found = json.loads((folder / "r.json").read_text())["assessment"]["global"]
    assert found["closed"]
    assert found["history"][0]["stage"] == "local"


def test_missing_bounds_are_unusable_input_until_they_are_accepted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--method outer-approximation --elements 2 --starts 1 --jobs 1"
    assert main(["fit", "open.toml", *options.split()]) == 2
    assert "--bounds propose" in capsys.readouterr().err
    assert main(["fit", "open.toml", *options.split(), "--bounds", "propose"]) == 0


def test_its_options_belong_to_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "closed.toml", "--elements", "3"]) == 2
    assert "--method outer-approximation" in capsys.readouterr().err
