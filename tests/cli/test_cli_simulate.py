"""``odefit check`` and ``odefit simulate``."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import odefit
from tests.cli.commands import DECAY, refused, run


def test_check_describes_and_says_what_the_data_determine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", "decay.toml") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "decay" in captured.out
    assert "All 2 unknowns are determined" in captured.out
    ridge = DECAY.replace("x = 1.0", "x = { lower = 0.0 }")
    (folder / "decay.toml").write_text(ridge, encoding="utf-8")
    assert run("check", "decay.toml") == 0
    assert "product" in capsys.readouterr().out


def test_simulate_writes_a_table_to_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("simulate", "decay.toml", "--set", "k=0.5", "s=2", "--times", "0:4:5") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    table = pd.read_csv(StringIO(captured.out))
    assert list(table.columns) == ["t", "x", "y"]
    assert table["y"].to_numpy() == pytest.approx(2 * np.exp(-0.5 * np.arange(5)))


def test_simulate_takes_data_times_without_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("simulate", "decay.toml", "--set", "k=0.5", "--set", "s=2") == 0
    table = pd.read_csv(StringIO(capsys.readouterr().out))
    assert table["t"].tolist() == [0, 1, 2, 3, 4]


def test_simulate_takes_values_from_a_result(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--json", "r.json") == 0
    capsys.readouterr()
    assert run("simulate", "decay.toml", "--result", "r.json", "--csv", "out.csv") == 0
    assert capsys.readouterr().out == ""
    table = pd.read_csv(folder / "out.csv")
    best = odefit.load_result(folder / "r.json").best.parameters
    assert table["y"].to_numpy() == pytest.approx(best["s"] * np.exp(-best["k"] * np.arange(5)))
    assert run("simulate", "decay.toml", "--result", "r.json", "--set", "s=0") == 0
    assert (pd.read_csv(StringIO(capsys.readouterr().out))["y"] == 0).all()


def test_a_result_without_a_solution_cannot_be_simulated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fit", "blow_up.toml", "--starts", "1", "--json", "r.json")
    capsys.readouterr()
    assert "no solution" in refused(capsys, "simulate", "blow_up.toml", "--result", "r.json")


@pytest.mark.parametrize("known", ["[constants]\nc = 2.0", "[parameters]\nc = { fixed = 2.0 }"])
def test_simulate_and_residuals_need_nothing_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str], known: str
) -> None:
    text = f'format = 1\n[ode]\nS = "-S"\n{known}\n[initial]\nS = "3/c"\n'
    text += "[[experiment]]\ndata = { t = [0.0, 1.0, 2.0], S = [1.5, 0.55, 0.2] }\n"
    (folder / "known.toml").write_text(text, encoding="utf-8")
    exact = 1.5 * np.exp(-np.arange(3.0))
    assert run("simulate", "known.toml") == 0
    table = pd.read_csv(StringIO(capsys.readouterr().out))
    assert table["S"].to_numpy() == pytest.approx(exact, rel=2e-7)
    assert run("residuals", "known.toml") == 0
    table = pd.read_csv(StringIO(capsys.readouterr().out))
    assert table["residual"].to_numpy() == pytest.approx(table["measured"] - exact, abs=1e-7)
