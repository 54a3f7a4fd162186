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


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A problem whose times are days from a date."""
    folder = tmp_path_factory.mktemp("dated")
    days = [f"2021-05-{day:02}" for day in range(3, 30, 3)]
    rows = [f"{day},{10 * 0.8**k:.3f}" for k, day in enumerate(days)]
    (folder / "data.csv").write_text("\n".join(["t,y", *rows, ""]), encoding="utf-8")
    problem = folder / "problem.toml"
    problem.write_text(
        """format = 1
[ode]
y = "-k*y"
[parameters]
k = { lower = 0.0, upper = 2.0 }
[initial]
y = { lower = 0.0, upper = 50.0 }
[noise]
y = { sd = 0.1 }
[[experiment]]
t0 = 2021-05-01
data = "data.csv"
""",
        encoding="utf-8",
    )
    return problem


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ("2021-05-09:2021-05-30", {"2021-05-09", "2021-05-19"}),
        ("2021-05-09:2021-05-30:8", {"2021-05-09", "2021-05-18"}),
        ("2021-05-09,2021-05-16,2021-05-23", {"2021-05-09", "2021-05-16"}),
        ("y=2021-05-09 12:00:2021-05-30 12:00:22", {"2021-05-09 12:00", "2021-05-19 12:00"}),
        ("8:29", {"2021-05-09", "2021-05-19"}),
    ],
)
def test_windows_and_lists_of_times_are_dates(
    times: str, found: set[str], dated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A date was read as a difference of numbers, 2021 - 5 - 9 = 2007, without a word."""
    values = ["--set", "k=0.1", "y=12", "--count", "2"]
    target = dated.with_suffix(".json")
    assert main(["design", str(dated), *values, "--times", times, "--json", str(target)]) == 0
    measured = json.loads(target.read_text(encoding="utf-8"))["measurements"]
    assert {m["date"][: len(max(found, key=len))] for m in measured} == found
    assert f"Measuring y at {measured[0]['date']}" in capsys.readouterr().out


def test_dates_are_refused_where_times_are_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "problem.toml"
    save(box_lucas(), problem)
    given = ["design", str(problem), "--set", "k1=0.7", "k2=0.2"]
    for more in (
        ["--times", "2021-05-09:2021-05-30"],
        ["--times", "2021-05-09:2021-05-30:4"],
        ["--vary", "a=0:1@2021-05-09,2021-05-12"],
    ):
        assert main([*given, *more]) == 2
        assert "is a date, but the times of experiment" in capsys.readouterr().err
    for more in (
        ["--times", "2021-05-09 12:00Z:2021-05-30:4"],  # with and without a time zone
        ["--set", "k1=2021-05-09"],
        ["--sd", "y=2021-05-09"],
        ["--vary", "a=2021-05-09:5"],
    ):
        assert main([*given, *more]) == 2
        assert "expected" in capsys.readouterr().err


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
