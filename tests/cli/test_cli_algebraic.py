"""``--method algebraic``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import refused, run

TOY = """format = 1
name = "toy"
[ode]
x = "-mu*x"
[observables]
y = "x^2 + x"
[parameters]
mu = {}
[initial]
x = {}
[[experiment]]
data = "toy.csv"
"""
TOY_DATA = "t,y\n0,2.000\n0.333,1.563\n0.666,1.229\n1,0.974\n"


@pytest.fixture
def toy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example of the algebraic paper, and a cache in which nothing is."""
    (folder / "toy.toml").write_text(TOY, encoding="utf-8")
    (folder / "toy.csv").write_text(TOY_DATA, encoding="utf-8")
    monkeypatch.setenv("ODEFIT_CACHE", str(folder / "cache"))
    return folder


@pytest.mark.slow
def test_the_algebraic_method_needs_no_guess(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "toy.toml", "--method", "algebraic", "--json", "r.json") == 0
    found = json.loads((toy / "r.json").read_text(encoding="utf-8"))
    assert found["method"] == "Algebraic"
    assert found["parameters"]["mu"] == pytest.approx(0.5005, abs=1e-3)
    assert found["initial"]["x"] == pytest.approx(1.0, abs=1e-3)
    complete = found["assessment"]["complete"]
    assert (complete["possible"], complete["found"]) == (1, 1)
    printed = capsys.readouterr().out
    assert "Algebraic" in printed
    assert "no second solution" in printed
    assert list((toy / "cache").glob("*.json"))


def test_the_algebraic_method_has_no_starts(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic", "--starts", "3")
    assert error.strip() == (
        "error: --starts: the algebraic method needs no starts: it finds all solutions"
    )


@pytest.mark.parametrize("option", ["--scheme trapezoid", "--mesh 20", "--solver ipopt"])
def test_the_algebraic_method_has_no_options_of_transcription(
    toy: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic", *option.split())
    assert "is an option of --method transcription" in error


def test_too_few_measurements_for_the_algebraic_method_are_unusable_input(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (toy / "toy.csv").write_text("t,y\n0,2.0\n1,0.974\n", encoding="utf-8")
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic")
    assert "y: the algebraic method needs its derivatives up to order 1" in error
    assert "there are 2" in error


@pytest.mark.parametrize("slope", ["-mu*abs(x)", "-mu*min(x, 1)"])
def test_a_model_with_a_kink_is_unusable_for_the_algebraic_method(
    toy: Path, capsys: pytest.CaptureFixture[str], slope: str
) -> None:
    (toy / "toy.toml").write_text(TOY.replace("-mu*x", slope), encoding="utf-8")
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic")
    assert "has a kink: it has no Taylor series there" in error


def test_a_time_limit_of_the_algebraic_method_is_status_four(toy: Path) -> None:
    options = ("--method", "algebraic", "--time-limit", "0.001", "--json", "r.json")
    assert run("fit", "toy.toml", *options) == 4
    assert json.loads((toy / "r.json").read_text())["status"] == "time limit"


def test_methods_are_named_where_one_is_unknown(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraik")
    assert 'Did you mean "algebraic"?' in error or "did you mean" in error.lower()
    assert "transcription, algebraic" in error
