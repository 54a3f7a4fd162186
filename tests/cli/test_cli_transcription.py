"""``--method transcription``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import odefit
from tests.cli.commands import refused, run
from tests.methods.transcription.instances import needs

TRANSCRIPTION = "fit decay.toml --method transcription --scheme trapezoid --starts 1"


@pytest.mark.slow
def test_a_discretised_fit_reports_the_distance_of_mesh_and_trajectory(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = f"{TRANSCRIPTION} --mesh 100 --json r.json --report r.md"
    assert run(*options.split()) == 0
    assert "Transcription(trapezoid, Baseline, Ipopt)" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert found["assessment"]["global"] is None
    mesh = found["assessment"]["discretisation"]
    assert (mesh["scheme"], mesh["steps"]) == ("trapezoid", 100)
    assert 0 < mesh["error"] < 1e-3
    assert 0 < mesh["shift"] < 1e-2
    page = (folder / "r.md").read_text(encoding="utf-8")
    assert "differ from the integrated ones by" in page


@pytest.mark.slow
@needs("pyscipopt")
def test_a_certified_fit_names_the_objective_that_it_bounds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = f"{TRANSCRIPTION} --mesh 4 --solver scip --json r.json --report r.html"
    assert run(*options.split(), "--time-limit", "30") == 0
    scope = "discretised (trapezoid, M = 4)"
    assert scope in " ".join(capsys.readouterr().out.split())
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    bounds = found["assessment"]["global"]
    assert bounds["scope"] == scope
    assert bounds["closed"] is True
    assert 0 < bounds["lower"] <= bounds["upper"]
    assert bounds["gap"] == pytest.approx(1 - bounds["lower"] / bounds["upper"])
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "does not hold for continuous time" in page
    assert "differ from the integrated ones by" in page
    # What was written is read back.
    result = odefit.load_result(folder / "r.json")
    assert result.assessment.bounds is not None
    assert result.assessment.bounds.lower == bounds["lower"]
    assert result.assessment.discretisation is not None
    assert result.assessment.discretisation.steps == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--scheme trapezoid", "--scheme: is an option of --method transcription"),
        ("--mesh 10", "--mesh: is an option of --method transcription"),
        ("--solver scip --method multi-start", "--solver: is an option of --method transcription"),
        ("--method transcription --scheme trapez", "unknown scheme 'trapez'; did you mean"),
        ("--method transcription --solver ipop", "unknown solver 'ipop'; did you mean 'ipopt'?"),
        ("--method transcription --mesh 0", "expected a whole number of at least 1, got 0"),
        ("--method transcription --mesh x", "invalid int value: 'x'"),
        (
            "--method transcription --mesh 2 --scheme adams-moulton",
            "Adams-Moulton needs at least 3 steps",
        ),
    ],
)
def test_a_mistake_about_transcription_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    before = sorted(p.name for p in folder.iterdir())
    error = refused(capsys, "fit", "decay.toml", *arguments.split())
    assert message in error
    assert len([line for line in error.splitlines() if "error: " in line]) == 1
    assert sorted(p.name for p in folder.iterdir()) == before
