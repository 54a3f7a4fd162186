"""A fit whose model has a smooth step: the data are simulated from a made-up truth."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import odefit
from odefit.cli import main

CASE = Path(__file__).parent / "data" / "cases" / "steep-sigmoid" / "p.toml"


@pytest.mark.slow
def test_a_fit_recognises_a_smooth_step_and_integrates_across_it() -> None:
    """SciPy's optimum: k 0.1030, a 1.0171, t1 5.3586, sum of squares 0.07291."""
    result = odefit.fit(odefit.load(CASE), seed=1, jobs=1)
    assert result.status.value == "converged"
    assert result.best.nodes is None
    assert result.objective == pytest.approx(0.07291, abs=2e-5)
    found = {**result.best.parameters}
    assert found["k"] == pytest.approx(0.1030, abs=1e-4)
    assert found["a"] == pytest.approx(1.0171, abs=2e-4)
    assert found["t1"] == pytest.approx(5.3586, abs=2e-4)
    assert not result.warnings


def test_the_simulation_of_the_command_line_sees_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SciPy's Radau at 1e-11: 0 up to t = 5, then rising to 7.70 at t = 20."""
    table = tmp_path / "x.csv"
    command = ["simulate", str(CASE), "--set", "k=0.1", "a=1", "t1=5.3"]
    assert main([*command, "--times", "0:20:21", "--csv", str(table)]) == 0
    x = pd.read_csv(table).set_index("t")["x"]
    assert x[4.0] == pytest.approx(0.0, abs=1e-9)
    assert x[5.0] == pytest.approx(1.2316835e-4, rel=1e-4)
    assert x[20.0] == pytest.approx(7.7006506, rel=1e-7)
    assert "note" not in capsys.readouterr().err
