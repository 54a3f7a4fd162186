"""``--method multiple-shooting``."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import odefit
from tests.cli.commands import refused, run


def test_multiple_shooting_can_be_chosen_with_its_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("heyoka")
    options = "--method multiple-shooting --nodes 3 --integrator heyoka --starts 1 --json r.json"
    assert run("fit", "decay.toml", *options.split()) == 0
    assert "MultipleShooting(heyoka)" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert "on 3 nodes" in found["starts"][0]["message"]
    assert len(found["starts"]) == 1


@pytest.mark.slow
def test_an_answer_on_nodes_is_written_simulated_and_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bock's unstable example, which no single integration follows."""
    bock = str(odefit.library.path("bock"))
    options = "--method multiple-shooting --starts 1 --json r.json --report r.md"
    assert run("fit", bock, *options.split()) == 0
    assert "Continuity" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"]["p"] == pytest.approx(np.pi)
    assert found["assessment"]["continuity"]["fine"] is True
    assert len(found["solutions"][0]["nodes"]["times"][0]) > 1
    assert "where it is continuous" in (folder / "r.md").read_text(encoding="utf-8")
    assert run("simulate", bock, "--result", "r.json", "--times", "0:1:101") == 0
    table = pd.read_csv(StringIO(capsys.readouterr().out))
    exact = np.sin(np.pi * table["t"].to_numpy())
    assert table["x1"].to_numpy() == pytest.approx(exact, abs=1e-5)
    # Other values are another trajectory: by a single integration.
    assert run("simulate", bock, "--result", "r.json", "--set", "p=3", "--times", "0:0.1:2") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--method multiple-shooting --nodes 0", "nodes: expected a whole number of at least 1"),
        ("--method multiple-shooting --nodes -4", "nodes: expected a whole number"),
        ("--method multiple-shooting --nodes x", "--nodes: invalid int value"),
        ("--method multiple-shooting --integrator rk4", "integrator: expected one of auto"),
        ("--method multiple-shooting --starts 0", "starts: expected"),
        ("--method multiple-shooting --mesh 4", "--mesh: is an option of --method transcription"),
        ("--method multi-shooting", "multiple-shooting"),
        ("--nodes 4", "--nodes: is an option of --method multiple-shooting"),
        ("--integrator casadi", "--integrator: is an option of --method multiple-shooting"),
        (
            "--method transcription --nodes 4",
            "--nodes: is an option of --method multiple-shooting",
        ),
    ],
)
def test_a_wrong_option_of_multiple_shooting_is_one_message(
    folder: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    said = refused(capsys, "fit", "decay.toml", *options.split())
    assert message in said
    assert said.count("expected") + said.count("option of") + said.count("invalid") <= 1
