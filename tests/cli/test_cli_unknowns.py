"""What is estimated and from where, by options of the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.cli.commands import refused, run


def fitted(*options: str) -> dict[str, float]:
    assert run("fit", "decay.toml", "--jobs", "1", "--json", "out.json", *options) == 0
    found: dict[str, float] = json.loads(Path("out.json").read_text(encoding="utf-8"))["parameters"]
    return found


@pytest.mark.slow
def test_unknowns_are_fixed_and_bounded(folder: Path) -> None:
    found = fitted("--fix", "s=2", "--bounds", "k=0:0.5")
    assert found == {"k": 0.5, "s": 2.0}


def test_the_option_free_makes_a_known_value_an_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", "decay.toml", "--free", "x", "--fix", "s=2") == 0
    assert "2 unknowns" in capsys.readouterr().out


def test_a_simulation_takes_fixed_values(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", "decay.toml", "--fix", "x=3", "s=2", "--set", "k=0.5") == 0
    assert capsys.readouterr().out.splitlines()[1] == "0.0,3.0,6.0"


def test_a_value_may_be_an_expression_of_numbers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mean duration of six days is a rate of 1/6."""
    options = ("--fix", "x=sqrt(9)", "s=2*3", "--set", "k=1/6", "--times", "0:6:2")
    assert run("simulate", "decay.toml", *options) == 0
    last = capsys.readouterr().out.splitlines()[-1].split(",")
    assert float(last[1]) == pytest.approx(3.0 * math.exp(-1.0), rel=1e-8)
    assert run("check", "decay.toml", "--bounds", "k=1/8:1/2") == 0
    assert "0.125 to 0.5" in capsys.readouterr().out


@pytest.mark.slow
def test_a_fit_continues_from_a_result(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted("--fix", "s=2")
    capsys.readouterr()
    found = ("fit", "decay.toml", "--start", "out.json", "--method", "multi-start", "--starts", "2")
    assert run(*found, "--jobs", "1") == 0
    told = capsys.readouterr()
    assert "start as given" in told.out
    assert "start out.json: 's' was known there and begins at that value, 2" in told.err + told.out


def test_any_option_of_a_method_is_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted("--method", "multi-start", "--set", "hits=2", "chance=1.0", "screening=4")
    assert "The lowest objective was reached 2 times in 2 starts" in capsys.readouterr().out


def test_methods_are_listed_with_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("methods") == 0
    assert "automatic            The default. Combine" in capsys.readouterr().out
    assert run("methods", "multiple-shooting") == 0
    told = capsys.readouterr().out
    assert "nodes = none" in told
    assert "iterations = 100" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fix", "z=1"], "--fix: unknown name 'z'"),
        (["--fix", "k"], "--fix: expected NAME=VALUE such as k1=0.1 or k1=1/6, got 'k'"),
        (["--fix", "k=1/s"], "--fix: expected NAME=VALUE such as k1=0.1 or k1=1/6, got 'k=1/s'"),
        (["--free", "q"], "--free: unknown name 'q'"),
        (["--bounds", "k=1"], "--bounds: expected NAME=LOW:HIGH such as k1=0:1"),
        (["--start", "none.json"], "none.json"),
        (["--method", "multi-start", "--set", "nodes=3"], "multi-start has no option 'nodes'"),
    ],
)
def test_mistakes_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert words in refused(capsys, "fit", "decay.toml", *options)


def test_the_unknowns_of_a_result_stay(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "profile", "result.json", "--fix", "k=1")
    assert "--fix: the profiles of a result are those of its own unknowns" in told
    assert "unknown method 'multistart'; did you mean 'multi-start'? Methods are:" in refused(
        capsys, "methods", "multistart"
    )
