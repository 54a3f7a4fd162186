"""``odefit design`` by real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odefit.cli.main import main
from odefit.formats.files import save
from tests.designs.problems import box_lucas, scaled


@pytest.mark.slow
def test_the_command_prints_a_design_and_writes_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "problem.toml"
    save(box_lucas(), problem)
    target, picture, table = (tmp_path / name for name in ("d.json", "d.svg", "d.csv"))
    status = main(
        [
            "design", str(problem), "--set", "k1=0.7", "k2=0.2", "--observable", "y", "--times",
            "0:20", "--count", "2", "--json", str(target), "--plot", str(picture), "--csv",
            str(table),
        ]
    )  # fmt: skip
    assert status == 0
    design = json.loads(target.read_text(encoding="utf-8"))
    assert design["times"] == pytest.approx([1.2295, 6.8577], abs=1e-3)
    assert design["continuous"]["excess"] < 1e-3
    assert "Measuring y at 1.23 and 6.86 h determines k1 within" in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    assert table.read_text(encoding="utf-8").splitlines()[0] == "run,experiment,observable,t,count"


def test_wrong_use_has_the_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = tmp_path / "problem.toml"
    save(box_lucas(), problem)
    for more in (["--times", "0-20"], ["--vary", "a"], ["--sd", "y"], ["--count", "0"]):
        assert main(["design", str(problem), "--set", "k1=1", "k2=2", *more]) == 2
        told = capsys.readouterr().err
        assert len(told.strip().splitlines()) == 1, told


def test_unreachable_unknowns_have_the_status_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "problem.toml"
    save(scaled(), problem)
    values = ["k1=0.7", "k2=0.2", "s=1", "A=1"]
    assert main(["design", str(problem), "--set", *values, "--times", "0:20"]) == 3
    assert "If a (or b) is measured as well" in capsys.readouterr().out
