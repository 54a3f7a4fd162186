"""The command ``odefit validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit import Model, Problem, SingleShooting, fit, save
from odefit.cli.main import main

TIMES = np.linspace(0.0, 5.0, 11)


def problem(start: float) -> Problem:
    values = start * np.exp(-0.6 * TIMES) + 0.02 * np.cos(9.0 * TIMES)
    return Problem(
        Model(ode={"c": "-k*c"}, observables={"C": "c"}),
        {"t": TIMES, "C": values},
        {"k": {"guess": 0.6}},
        {"c": {"guess": 4.0}},
        noise={"C": {"sd": 0.02}},
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("validate") / "fit.json"
    fit(problem(4.0), SingleShooting(), jobs=1).save(path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "other.csv"
    values = 6.0 * np.exp(-0.6 * TIMES) + 0.02 * np.sin(9.0 * TIMES)
    pd.DataFrame({"t": TIMES, "C": values}).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_a_freed_start_changes_the_finding(
    result: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(result), str(data)]) == 0
    assert "does not predict as well as it fits" in capsys.readouterr().out
    files = tmp_path / "v.json", tmp_path / "v.svg", tmp_path / "v.csv"
    options = ["--json", str(files[0]), "--plot", str(files[1]), "--csv", str(files[2])]
    page = tmp_path / "v.html"
    options += ["--report", str(page)]
    assert main(["validate", str(result), str(data), *options, "--free-initial"]) == 0
    assert "The model predicts as well as it fits" in capsys.readouterr().out
    found = json.loads(files[0].read_text(encoding="utf-8"))
    assert found["freed"]["c[other]"] == pytest.approx(6.0, abs=0.03)
    assert found["verdict"] == "as well"
    assert "<svg" in files[1].read_text(encoding="utf-8")
    assert len(pd.read_csv(files[2])) == 11
    assert found["one_step"]["sentence"] in page.read_text(encoding="utf-8")
    assert len(found["series"][0]["one_step"]) == 11


def test_a_problem_file_is_compared_too(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "again.toml"
    save(problem(4.0), path)
    assert main(["validate", str(result), str(path)]) == 0
    assert "11" in capsys.readouterr().out


def test_a_column_that_is_not_used_is_a_note(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "new.csv"
    data.write_text("t,C,remark\n0,4,ok\n1,3,late\n2,2.2,ok\n", encoding="utf-8")
    assert main(["validate", str(result), str(data)]) in (0, 3)
    said = capsys.readouterr()
    assert said.err == f"note: {data}, column remark: not used\n"
    assert "C" in said.out


def test_mistakes_of_all_files_are_reported(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("t,C\n0,x\n", encoding="utf-8")
    assert main(["validate", str(result), str(empty), str(tmp_path / "none.csv")]) == 2
    said = capsys.readouterr().err
    assert "column C, row 2: 'x' is not a number" in said
    assert "no such file" in said


@pytest.mark.parametrize("text", ["z = " + "[" * 50_000, ".".join("a" * 50_000) + " = 1"])
def test_nesting_without_end_is_refused(
    text: str, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text, encoding="utf-8")
    assert main(["validate", str(result), str(path)]) == 2
    assert "more than 100" in capsys.readouterr().err


@pytest.mark.slow
def test_parts_of_the_fitted_data_are_left_out_in_turn(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, page, numbers = (tmp_path / f"folds.{kind}" for kind in ("csv", "md", "json"))
    options = ["--cross", "block", "--folds", "3", "--jobs", "1", "-o", str(table)]
    options += ["--report", str(page), "--json", str(numbers), "--plot", str(tmp_path / "f.svg")]
    assert main(["validate", str(result), *options]) == 0
    printed = capsys.readouterr().out
    assert "Left out by block, 3 parts" in printed
    assert all(len(line) <= 80 for line in printed.split("\n\n")[0].splitlines())
    folds = pd.read_csv(table)
    assert list(folds["fold"]) == [f"block {k} of 3" for k in (1, 2, 3)]
    assert folds["measurements"].sum() == 11
    assert folds["k"].to_numpy() == pytest.approx(0.6, abs=0.02)
    kept = json.loads(numbers.read_text(encoding="utf-8"))
    assert [fold["estimates"]["k"] for fold in kept["folds"]] == folds["k"].tolist()
    assert sum(len(fold["predicted"]) for fold in kept["folds"]) == 11
    assert kept["sentence"] in page.read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "f.svg").read_text(encoding="utf-8")


def test_a_limit_before_the_first_part_has_its_own_status_and_files(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"none.{kind}" for kind in ("json", "csv", "html", "svg")]
    pairs = zip(("--json", "-o", "--report", "--plot"), map(str, files), strict=True)
    options = ["--cross", "block", "--jobs", "1", "--time-limit", "1e-9"]
    assert main(["validate", str(result), *options, *(one for pair in pairs for one in pair)]) == 4
    assert capsys.readouterr().out == (
        "Left out by block: no part was predicted.\n"
        "note: the work ended before all parts were predicted\n"
    )
    assert all(file.stat().st_size for file in files)
    kept = json.loads(files[0].read_text(encoding="utf-8"))
    assert (kept["status"], kept["folds"], kept["mean_square"]) == ("time limit", [], None)
    assert list(pd.read_csv(files[1]).columns)[-1] == "c"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a file of new measurements"),
        (["new.csv", "--cross", "block"], "give no other measurements"),
        (["--cross", "experiment"], "needs at least two experiments"),
        (["new.csv", "--dask", "here:8786"], "--dask: belongs to --cross"),
        (["--cross", "block", "--report", "v.pdf"], "a report is written as .html, .md"),
        (["new.csv", "--folds", "3"], "--folds: belongs to --cross"),
    ],
)
def test_options_of_cross_validation_are_checked(
    result: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(result), *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_cluster_gives_the_same_parts_as_this_process(
    result: Path, tmp_path: Path, dask_cluster: Any
) -> None:
    alone, shared = tmp_path / "alone.json", tmp_path / "shared.json"
    cross = ["validate", str(result), "--cross", "block", "--folds", "3", "--json"]
    assert main([*cross, str(alone), "--jobs", "1"]) == 0
    assert main([*cross, str(shared), "--dask", dask_cluster.scheduler_address]) == 0
    assert len(json.loads(shared.read_text(encoding="utf-8"))["folds"]) == 3
    assert shared.read_text(encoding="utf-8") == alone.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_table_fits_a_terminal_of_eighty_columns(
    result: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in ("80", "50"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["validate", str(result), str(data)]) == 0
        printed = capsys.readouterr().out
        assert all(len(line) <= int(columns) for line in printed.split("\n\n")[0].splitlines())
    assert "no room for" in printed


def test_a_table_may_have_the_layout_of_the_fitted_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`time`, `columns` and `by` of the problem file hold for new tables, from a saved result."""
    values = [4.0 * np.exp(-0.6 * TIMES), 3.0 * np.exp(-0.6 * TIMES)]
    rows = [
        f"{run},{t},{v + 0.02 * np.cos(9 * t)}"
        for run, column in zip("ab", values, strict=True)
        for t, v in zip(TIMES, column, strict=True)
    ]
    text = "\n".join(["Run,time_s,c (mg/L)", *rows]) + "\n"
    (tmp_path / "old.csv").write_text(text)
    (tmp_path / "new.csv").write_text(text)
    file = tmp_path / "p.toml"
    file.write_text(
        """
format = 1
[ode]
c = "-k*c"
[observables]
C = "c"
[parameters]
k = { guess = 0.6 }
[initial]
c = { guess = 4.0, per_experiment = true }
[noise]
C = { sd = 0.02 }
[[experiment]]
data = "old.csv"
time = "time_s"
by = "Run"
columns = { C = "c (mg/L)" }
"""
    )
    saved = tmp_path / "fit.json"
    assert main(["fit", str(file), "--json", str(saved), "--method", "single-shooting"]) == 0
    capsys.readouterr()
    out = tmp_path / "v.json"
    assert main(["validate", str(saved), str(tmp_path / "new.csv"), "--json", str(out)]) == 0
    series = json.loads(out.read_text())["series"]
    assert [s["experiment"] for s in series] == ["Run a (new)", "Run b (new)"]
    scenario = tmp_path / "s.toml"
    scenario.write_text('data = "one.csv"\n')
    (tmp_path / "one.csv").write_text("time_s,c (mg/L)\n1,2.2\n2,1.2\n")
    assert main(["validate", str(saved), str(scenario)]) == 0
