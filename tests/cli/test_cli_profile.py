"""``odefit profile``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import odefit
import odefit.cli
from tests.cli.commands import refused, run


@pytest.mark.slow
def test_a_problem_is_fitted_and_profiled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("profile", "decay.toml", "--only", "k", "--expression", "half = 0.69/k") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "Profile likelihood, 95 % intervals" in captured.out
    rows = [line.split()[0] for line in captured.out.splitlines() if "identifiable" in line]
    assert rows == ["k", "half"]


@pytest.mark.slow
def test_profiles_of_a_result_are_kept_with_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odefit.fit(odefit.load("decay.toml"), jobs=1).save("fit.json")
    assert run("profile", "fit.json", "--json", "both.json", "--plot", "figure.png") == 0
    capsys.readouterr()
    kept = odefit.load_result("both.json").profiles
    assert kept is not None
    assert [p.key for p in kept.profiles] == ["k", "s"]
    assert (
        json.loads((folder / "both.json").read_text(encoding="utf-8"))["profiles"]["level"] == 0.95
    )
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_mistakes_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no unknown 'kk'" in refused(capsys, "profile", "decay.toml", "--only", "kk")
    assert "--jobs" in refused(capsys, "profile", "decay.toml", "--jobs", "0")
    assert "--memory: 1 MB is too little" in refused(
        capsys, "profile", "decay.toml", "--memory", "1MB"
    )
    assert "--level" in refused(capsys, "profile", "decay.toml", "--level", "95")
    message = refused(capsys, "profile", "decay.toml", "--expression", "k*q")
    assert "unknown name 'q'" in message


def test_a_time_limit_that_the_fit_has_taken_leaves_no_profiles(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odefit.fit(odefit.load("decay.toml"), jobs=1).save("fit.json")
    assert run("profile", "fit.json", "--time-limit", "1e-9") == 4
    assert "no profiles" in capsys.readouterr().err


@pytest.mark.slow
def test_a_fit_that_memory_has_ended_is_not_profiled(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def ended(problem: odefit.Problem, **options: Any) -> odefit.Result:
        given.append(options["memory"])
        found = odefit.fit(problem, jobs=1)
        return replace(found, status=odefit.Status.MEMORY_LIMIT, message="3 GB were in use")

    monkeypatch.setattr(sys.modules["odefit.fitting.fit"], "fit", ended)
    assert run("profile", "decay.toml", "--memory", "2GB") == 4
    captured = capsys.readouterr()
    assert given == ["2GB"]
    assert "Profile likelihood" not in captured.out
    assert "the fit: memory limit: 3 GB were in use" in captured.err


def test_a_second_text_after_one_option_leads_to_its_repetition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        odefit.cli.main(["profile", "r.json", "--expression", "A = k", "B = 2*k"])
    assert (
        '--expression takes one text and may be repeated: write --expression "A = k" '
        '--expression "B = 2*k"'
    ) in capsys.readouterr().err
