"""``--method integral-matching``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import DECAY, refused, run


def test_integral_matching_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = np.linspace(0.0, 4.0, 21)
    rows = "".join(f"{t:g},{2 * np.exp(-0.7 * t):.6f}\n" for t in times)
    (folder / "data.csv").write_text("t,y\n" + rows, encoding="utf-8")
    known = DECAY.replace('y = "s*x"', 'y = "x/3"').replace("s = { lower = 0.0 }\n", "")
    text = known.replace("x = 1.0", "x = {}")
    (folder / "decay.toml").write_text(text, encoding="utf-8")
    options = "--method integral-matching --json r.json"
    assert run("fit", "decay.toml", *options.split()) == 0
    assert "IntegralMatching" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"]["k"] == pytest.approx(0.7, rel=1e-4)
    assert found["initial"]["x"] == pytest.approx(6.0, rel=1e-4)
    assert "2 unknowns in closed form" in found["starts"][0]["message"]


def test_too_few_points_for_integral_matching_are_unusable_input(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "data.csv").write_text("t,y\n0,2.01\n1,0.99\n2,0.52\n", encoding="utf-8")
    text = DECAY.replace('y = "s*x"', 'y = "x"').replace("s = { lower = 0.0 }\n", "")
    (folder / "decay.toml").write_text(text, encoding="utf-8")
    error = refused(capsys, "fit", "decay.toml", "--method", "integral-matching")
    assert "y from t = 0 to 2: smoothing spline: needs at least 4 points, got 3" in error
