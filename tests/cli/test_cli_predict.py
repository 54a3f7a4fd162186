"""The command ``odefit predict`` with scenarios and quantities, and ``odefit plot`` of them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from odefit import Model, Problem, SingleShooting, fit
from odefit.cli.main import main


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    times = np.linspace(0.0, 5.0, 11)
    values = 4.0 * np.exp(-0.6 * times) + 0.02 * np.cos(9.0 * times)
    problem = Problem(
        Model(ode={"c": "-k*c/w"}, observables={"C": "c"}, constants={"w": 1.0}),
        {"t": times, "C": values},
        {"k": {"guess": 0.6}},
        {"c": {"guess": 4.0}},
        noise={"C": {"sd": 0.02}},
    )
    path = tmp_path_factory.mktemp("predict") / "fit.json"
    fit(problem, SingleShooting(), jobs=1).save(path)
    return path


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "double.toml"
    path.write_text('initial = { c = 8.0 }\ntimes = "0:10:3"\n', encoding="utf-8")
    return path


def test_scenarios_are_predicted_in_one_table(
    result: Path, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "heavy.csv"
    table.write_text("t,w\n0,2\n4,2\n", encoding="utf-8")
    assert main(["predict", str(result), "--scenario", str(scenario), str(table)]) == 0
    captured = capsys.readouterr()
    found = pd.read_csv(io.StringIO(captured.out)).query("name == 'C'")
    assert found["experiment"].tolist() == ["double"] * 3 + ["heavy"] * 2
    assert found["value"].iloc[0] == pytest.approx(8.0)
    assert 'note: scenario "double" extrapolates: it reaches 10' in captured.err
    assert 'note: scenario "heavy" extrapolates: w is 2, fitted 1' in captured.err


@pytest.mark.slow
def test_quantities_figures_and_json_come_at_once(
    result: Path, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure, data = tmp_path / "f.svg", tmp_path / "p.json"
    command = ["predict", str(result), "--scenario", str(scenario), "--quantity"]
    command += ["AUC = integral(C)", "half = log(2)*w/k"]
    assert main([*command, "--json", str(data), "--plot", str(figure)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"written: {figure}" in printed.err
    assert f"written: {data}" in printed.err
    found = json.loads(data.read_text(encoding="utf-8"))
    area, half = found["quantities"]
    k = 0.6
    assert area["value"] == pytest.approx(8.0 / k * (1 - np.exp(-10 * k)), rel=0.02)
    assert area["ci_low"] < area["value"] < area["ci_high"]
    assert half["value"] == pytest.approx(np.log(2) / k, rel=0.02)
    assert {"time", "initial value"} == {e["kind"] for e in found["extrapolations"]}
    assert len(found["predictions"]) == 2 * 3
    assert "<svg" in figure.read_text(encoding="utf-8")
    assert main(command) == 0
    assert list(pd.read_csv(io.StringIO(capsys.readouterr().out))["quantity"]) == ["AUC", "half"]


def test_bands_of_samples_have_their_number_and_seed(
    result: Path, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", str(result), "--scenario", str(scenario), "--by", "bootstrap"]
    assert main([*command, "--samples", "30", "--seed", "1", "--jobs", "1"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert (found["ci_low"] <= found["value"]).all()
    assert found["std_error"][1] > 0


@pytest.mark.slow
def test_plot_draws_scenarios(
    result: Path, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.svg"
    assert main(["plot", str(result), "--scenario", str(scenario), "-o", str(path)]) == 0
    assert "double" in path.read_text(encoding="utf-8")


def test_mistakes_in_all_files_are_reported_at_once(
    result: Path, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('initial = { cc = 1 }\nlike = "x"\n', encoding="utf-8")
    files = [str(wrong), str(tmp_path / "none.toml")]
    assert main(["predict", str(result), "--scenario", *files]) == 2
    said = capsys.readouterr().err
    for message in (
        "there is no state 'cc'; did you mean 'c'?",
        "like: there is no exp",
        "no such",
    ):
        assert message in said
    assert main(["predict", str(result), "--scenario", str(scenario), "--experiment", "x"]) == 2
    assert "a scenario names its experiment itself" in capsys.readouterr().err
    assert main(["predict", str(result), "--quantity", "max(D)"]) == 2
    assert "unknown name 'D'" in capsys.readouterr().err
