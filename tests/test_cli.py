"""The command line: exit statuses, what goes where, and a remedy for every mistake."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit.cli import main
from tests.methods.transcription.instances import needs

DECAY = """format = 1
name = "decay"
[ode]
x = "-k*x"
[observables]
y = "s*x"
[parameters]
k = { lower = 0.0, upper = 10.0 }
s = { lower = 0.0 }
[initial]
x = 1.0
[[experiment]]
data = "data.csv"
"""

DATA = "t,y\n0,2.01\n1,0.99\n2,0.52\n3,0.24\n4,0.13\n"

COMMAND = (sys.executable, "-m", "odefit")
HIV = str(odefit.library.path("hiv-proteinase"))

BLOW_UP = """format = 1
[ode]
x = "k*x^2"
[parameters]
k = { lower = 1.0, upper = 3.0 }
[initial]
x = 1.0
[[experiment]]
data = "blow_up.csv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with problem files, which is the working directory."""
    (tmp_path / "decay.toml").write_text(DECAY, encoding="utf-8")
    (tmp_path / "data.csv").write_text(DATA, encoding="utf-8")
    (tmp_path / "blow_up.toml").write_text(BLOW_UP, encoding="utf-8")
    (tmp_path / "blow_up.csv").write_text("t,x\n0,1\n2,1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    """The exit status, argparse's own included."""
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Standard error of a command that ends with status 2 and no traceback."""
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert captured.err.strip()
    return captured.err


# fit ---------------------------------------------------------------------------------------------


def test_a_fit_prints_its_table_and_ends_with_zero(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for word in ("decay", "k", "s", "0.69", "converged"):
        assert word in captured.out
    assert sorted(p.name for p in folder.iterdir()) == [
        "blow_up.csv",
        "blow_up.toml",
        "data.csv",
        "decay.toml",
    ]


def test_the_json_holds_what_the_design_says(folder: Path) -> None:
    assert run("fit", "decay.toml", "--json", "result.json", "--seed", "5") == 0
    found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert found["format"] == 1
    assert found["problem"] == "decay"
    assert found["method"] == "MultiStart(SingleShooting)"
    assert found["status"] == "converged"
    assert found["seed"] == 5
    assert found["seconds"] > 0
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert found["initial"] == {"x": 1.0}
    best = found["solutions"][0]
    assert best["parameters"] == found["parameters"]
    assert best["initial"] == found["initial"]
    assert best["objective"] == found["objective"] > 0
    assert found["log_likelihood"] is None
    assert found["assessment"]["local"]["optimal"] is True
    assert found["assessment"]["complete"] is None
    assert found["assessment"]["global"] is None
    assert found["uncertainty"]["standard_errors"]["k"] > 0
    assert {"odefit", "numpy"} <= set(found["versions"])
    assert isinstance(found["message"], str)
    assert not (folder / "result.json.checkpoint").exists()


def test_the_json_is_read_back(folder: Path) -> None:
    run("fit", "decay.toml", "--json", "result.json")
    result = odefit.load_result(folder / "result.json")
    direct = odefit.fit(odefit.load(folder / "decay.toml"))
    assert np.array_equal(result.best.vector, direct.best.vector)


def test_a_report_is_written_and_announced_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--report", "report.html", "--starts", "2") == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!")
    assert "<svg" in page
    assert capsys.readouterr().err == "report: report.html\n"


def test_one_start_of_single_shooting_may_be_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--method", "single-shooting", "--json", "r.json") == 0
    assert json.loads((folder / "r.json").read_text())["method"] == "SingleShooting"
    assert "SingleShooting" in capsys.readouterr().out


def test_no_acceptable_fit_is_status_three(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("fit", "blow_up.toml", "--starts", "3", "--json", "r.json", "--report", "r.html")
    assert code == 3
    captured = capsys.readouterr()
    assert "all 3 starts failed" in captured.out
    assert "no report: no solution was found" in captured.err
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "failed"
    assert found["solutions"] == []
    assert not (folder / "r.html").exists()


def test_a_time_limit_is_status_four_and_the_best_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--starts", "100000", "--time-limit", "1", "--jobs", "1")
    assert run("fit", "decay.toml", "--json", "r.json", "--report", "r.html", *options) == 4
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "time limit"
    assert found["parameters"]["k"] == pytest.approx(0.69, rel=0.02)
    assert (folder / "r.html").exists()
    assert "time limit" in capsys.readouterr().out
    # What was finished is kept for another day.
    assert (folder / "r.json.checkpoint").read_bytes().count(b"\n") > 2


def test_an_interrupted_fit_goes_on_from_its_checkpoint(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the time limit, the same command without it goes on, and cleans up."""
    run("fit", "decay.toml", "--json", "r.json", "--starts", "100000", "--time-limit", "0.5")
    stored = (folder / "r.json.checkpoint").read_bytes().count(b"\n") - 1
    assert run("fit", "decay.toml", "--json", "r.json", "--starts", str(stored)) == 0
    assert f"in {stored} starts" in capsys.readouterr().out
    assert not (folder / "r.json.checkpoint").exists()


def test_a_checkpoint_of_another_fit_beside_the_json_is_given_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fit", "decay.toml", "--json", "r.json", "--starts", "100000", "--time-limit", "0.5")
    assert run("fit", "decay.toml", "--json", "r.json", "--seed", "1") == 0
    assert "is of another fit, which is given up" in capsys.readouterr().err


def test_a_checkpoint_that_was_named_is_kept_and_defended(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--checkpoint", "mine") == 0
    kept = (folder / "mine").read_bytes()
    capsys.readouterr()
    error = refused(capsys, "fit", "decay.toml", "--checkpoint", "mine", "--seed", "1")
    assert "mine: belongs to another problem, method or seed" in error
    assert (folder / "mine").read_bytes() == kept


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_gives_the_best_so_far_with_status_130(folder: Path) -> None:
    """Ctrl-C in the middle of hiv-proteinase: an answer, labelled as what it is."""
    process = subprocess.Popen(
        [*COMMAND, "fit", HIV, "--json", "r.json", "--jobs", "1", "--starts", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(8.0)  # in the first start, or the one after
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert found["objective"] > 0
    assert set(found["parameters"]) > {"k3", "k42", "k22", "k52", "k6"}


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_before_any_result_is_no_traceback(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "fit", HIV, "--json", "r.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.0)  # somewhere between the imports and the first start
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in {130, -signal.SIGINT}, out + err
    if process.returncode == 130:
        assert "Traceback" not in err


# mistakes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit decay.toml --jobs 0", "--jobs: expected a positive number, got 0"),
        ("fit decay.toml --starts -1", "--starts: expected a positive number, got -1"),
        ("fit decay.toml --time-limit 0", "--time-limit: expected a positive number"),
        ("fit decay.toml --time-limit nan", "--time-limit: expected a positive number"),
        ("fit decay.toml --seed -1", "seed: expected a whole number, not negative"),
        ("fit decay.toml --seed x", "invalid int value: 'x'"),
        ("fit decay.toml --method multistart", "did you mean 'multi-start'?"),
        ("fit decay.toml --method x", "methods are: multi-start, single-shooting"),
        ("fit decay.toml --method single-shooting --starts 2", "--starts"),
        ("fit decay.toml --json .", "is a directory"),
        ("fit decay.toml --json no/r.json", "the directory no does not exist"),
        ("fit decay.toml --report no/r.html", "the directory no does not exist"),
        ("fit decay.toml --checkpoint no/c", "the directory no does not exist"),
        ("fit decay.toml --checkpoint .", "is a directory"),
        ("fit decay.toml --checkpoint data.csv", "is no checkpoint"),
        ("fit decay.toml --colour", "unrecognized arguments: --colour"),
        ("fit", "PROBLEM.toml"),
        ("fitt decay.toml", "invalid choice: 'fitt'"),
        ("", "COMMAND"),
        ("fit missing.toml", "missing.toml: "),
        ("fit .", ".: "),
        ("fit data.csv", "data.csv: "),
        ("check missing.toml", "missing.toml: "),
        ("simulate missing.toml", "missing.toml: "),
        ("simulate decay.toml --set k", "--set k: expected NAME=VALUE"),
        ("simulate decay.toml --set k=1 s=x", "--set s=x: expected NAME=VALUE"),
        ("simulate decay.toml --set K=1 s=1", "did you mean 'k'?"),
        ("simulate decay.toml --set k=1", "no value for s; give --set s=VALUE"),
        ("simulate decay.toml --set k=1 s=1 --times 0-9", "expected FROM:TO:COUNT"),
        ("simulate decay.toml --set k=1 s=1 --times=-1:1:3", "t0 = 0"),
        ("simulate decay.toml --set k=1 s=1 --csv no/c.csv", "the directory no does not exist"),
        ("simulate decay.toml --result data.csv", "data.csv"),
        ("simulate decay.toml --result missing.json", "missing.json"),
        ("simulate blow_up.toml --set k=1", "the simulation failed: "),
        ("bench run nothing", "there is no campaign 'nothing'"),
        ("bench run library --limit 0", "--limit: expected a positive number"),
        ("bench", "ACTION"),
    ],
)
def test_a_mistake_is_status_two_with_a_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    before = sorted(p.name for p in folder.iterdir())
    assert message.lower() in refused(capsys, *arguments.split()).lower()
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("replace", "by", "message"),
    [
        ("-k*x", "-kk*x", "'kk'"),
        ("-k*x", "-k*", "-k*"),
        ("-k*x", "__import__('os')", "__import__"),
        ("upper = 10.0", "upper = -1.0", "the bounds cross"),
        ("lower = 0.0 }", "units = 3 }", "units"),
        ("x = 1.0", "", "x"),
        ("[ode]", "[odes]", "odes"),
        ("data.csv", "none.csv", "none.csv"),
        ("format = 1", "format = 2", "format"),
        (
            "k = { lower = 0.0, upper = 10.0 }\ns = { lower = 0.0 }",
            "k = { fixed = 1.0 }\ns = { fixed = 2.0 }",
            "nothing to",
        ),
    ],
)
def test_a_bad_problem_file_is_status_two(
    folder: Path, capsys: pytest.CaptureFixture[str], replace: str, by: str, message: str
) -> None:
    assert replace in DECAY
    (folder / "decay.toml").write_text(DECAY.replace(replace, by), encoding="utf-8")
    assert message in refused(capsys, "fit", "decay.toml")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("t,y\n0,abc\n1,2\n", "abc"),
        ("t,z\n0,1\n1,2\n", "y"),
        ("y\n1\n2\n", "t"),
        ("", "data.csv"),
        ("t,y\n", "data.csv"),
        ("t,y\n0,\n1,\n", "y"),
        ("t,y\n0,1\n", "1 measurement"),
        ("t,y\n0,inf\n1,2\n", "inf"),
        ("t,y\nnan,1\n1,2\n", "t"),
    ],
)
def test_bad_data_are_status_two(
    folder: Path, capsys: pytest.CaptureFixture[str], data: str, message: str
) -> None:
    (folder / "data.csv").write_text(data, encoding="utf-8")
    assert message in refused(capsys, "fit", "decay.toml")


def test_all_mistakes_are_told_at_once_one_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DECAY.replace("-k*x", "-kk*x").replace("upper = 10.0", "upper = -1.0")
    (folder / "decay.toml").write_text(text, encoding="utf-8")
    lines = refused(capsys, "check", "decay.toml").splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("error: decay.toml: ") for line in lines)


def test_data_before_t0_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = DECAY.replace('data = "data.csv"', 'data = "data.csv"\nt0 = 0.5')
    (folder / "decay.toml").write_text(text, encoding="utf-8")
    assert "the data start at t = 0, before t0 = 0.5" in refused(capsys, "fit", "decay.toml")


def test_a_guess_at_which_the_model_blows_up_is_no_obstacle(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BLOW_UP.replace("lower = 1.0, upper = 3.0", "lower = 0.0, upper = 3.0, guess = 2.0")
    (folder / "blow_up.toml").write_text(text, encoding="utf-8")
    (folder / "blow_up.csv").write_text("t,x\n0,1\n1,1.25\n2,1.66\n", encoding="utf-8")
    assert run("fit", "blow_up.toml") == 0
    assert "1 of" in capsys.readouterr().out  # starts failed, and that is said


# the other commands -----------------------------------------------------------------------------


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


def test_campaigns_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("alpha-pinene ") for line in lines)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("odefit 0.")


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_needs_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom odefit.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print(*sorted(set(sys.modules) & {'casadi', 'heyoka', 'matplotlib', 'numpy', 'pandas', "
        "'rich', 'scipy'}), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout
    assert set(ran.stderr.split()) <= {"numpy"}  # of `import odefit` itself


def test_results_go_to_standard_output_and_all_else_to_standard_error(folder: Path) -> None:
    ran = subprocess.run(
        [*COMMAND, "fit", "decay.toml", "--report", "r.html", "--starts", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stderr == "report: r.html\n"
    assert "report: r.html" not in ran.stdout
    assert "\x1b" not in ran.stdout  # no colours where there is no terminal


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    ran = subprocess.run(
        f"{shlex.join(COMMAND)} simulate decay.toml --set k=1 s=1 --times 0:9:200000 | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )
    assert ran.stdout == "t,x,y\n"
    assert "Traceback" not in ran.stderr
    assert "Error" not in ran.stderr


# transcription -----------------------------------------------------------------------------------

TRANSCRIPTION = "fit decay.toml --method transcription --scheme trapezoid --starts 1"


def test_a_discretised_fit_says_how_far_mesh_and_truth_are_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = f"{TRANSCRIPTION} --mesh 100 --json r.json --report r.html"
    assert run(*options.split()) == 0
    assert "Transcription(trapezoid, Baseline, Ipopt)" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert found["assessment"]["global"] is None
    mesh = found["assessment"]["discretisation"]
    assert (mesh["scheme"], mesh["steps"]) == ("trapezoid", 100)
    assert 0 < mesh["error"] < 1e-3
    assert 0 < mesh["shift"] < 1e-2
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "differ from the integrated ones by" in page


@needs("pyscipopt")
def test_a_certified_fit_says_what_its_bound_is_a_bound_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = f"{TRANSCRIPTION} --mesh 4 --solver scip --json r.json --report r.html"
    assert run(*options.split(), "--time-limit", "30") == 0
    scope = "discretised (trapezoid, M = 4)"
    assert scope in " ".join(capsys.readouterr().out.split())
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    bounds = found["assessment"]["global"]
    assert bounds["scope"] == scope
    assert bounds["closed"] is True
    assert 0 < bounds["lower"] <= bounds["upper"]
    assert bounds["gap"] == pytest.approx(1 - bounds["lower"] / bounds["upper"])
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "does not speak of continuous time" in page
    assert "differ from the integrated ones by" in page
    # What was written is read back.
    result = odefit.load_result(folder / "r.json")
    assert result.assessment.bounds is not None
    assert result.assessment.bounds.lower == bounds["lower"]
    assert result.assessment.discretisation is not None
    assert result.assessment.discretisation.steps == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--scheme trapezoid", "--scheme: is an option of --method transcription"),
        ("--mesh 10", "--mesh: is an option of --method transcription"),
        ("--solver scip --method multi-start", "--solver: is an option of --method transcription"),
        ("--method transcription --scheme trapez", "unknown scheme 'trapez'; did you mean"),
        ("--method transcription --solver ipop", "unknown solver 'ipop'; did you mean 'ipopt'?"),
        ("--method transcription --mesh 0", "expected a whole number of at least 1, got 0"),
        ("--method transcription --mesh x", "invalid int value: 'x'"),
        (
            "--method transcription --mesh 2 --scheme adams-moulton",
            "Adams-Moulton needs at least 3 steps",
        ),
    ],
)
def test_a_mistake_about_transcription_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    before = sorted(p.name for p in folder.iterdir())
    error = refused(capsys, "fit", "decay.toml", *arguments.split())
    assert message in error
    assert len([line for line in error.splitlines() if "error: " in line]) == 1
    assert sorted(p.name for p in folder.iterdir()) == before


# The algebraic method -----------------------------------------------------------------------------

TOY = """format = 1
name = "toy"
[ode]
x = "-mu*x"
[observables]
y = "x^2 + x"
[parameters]
mu = {}
[initial]
x = {}
[[experiment]]
data = "toy.csv"
"""
TOY_DATA = "t,y\n0,2.000\n0.333,1.563\n0.666,1.229\n1,0.974\n"


@pytest.fixture
def toy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example of the algebraic paper, and a cache in which nothing is."""
    (folder / "toy.toml").write_text(TOY, encoding="utf-8")
    (folder / "toy.csv").write_text(TOY_DATA, encoding="utf-8")
    monkeypatch.setenv("ODEFIT_CACHE", str(folder / "cache"))
    return folder


def test_the_algebraic_method_needs_no_guess(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "toy.toml", "--method", "algebraic", "--json", "r.json") == 0
    found = json.loads((toy / "r.json").read_text(encoding="utf-8"))
    assert found["method"] == "Algebraic"
    assert found["parameters"]["mu"] == pytest.approx(0.5005, abs=1e-3)
    assert found["initial"]["x"] == pytest.approx(1.0, abs=1e-3)
    complete = found["assessment"]["complete"]
    assert (complete["possible"], complete["found"]) == (1, 1)
    printed = capsys.readouterr().out
    assert "Algebraic" in printed
    assert "no second solution" in printed
    assert list((toy / "cache").glob("*.npz"))


def test_the_algebraic_method_has_no_starts(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic", "--starts", "3")
    assert error.strip() == (
        "error: --starts: the algebraic method has none: it finds all solutions"
    )


@pytest.mark.parametrize("option", ["--scheme trapezoid", "--mesh 20", "--solver ipopt"])
def test_the_algebraic_method_has_no_options_of_transcription(
    toy: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic", *option.split())
    assert "is an option of --method transcription" in error


def test_too_few_measurements_for_the_algebraic_method_are_unusable_input(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (toy / "toy.csv").write_text("t,y\n0,2.0\n1,0.974\n", encoding="utf-8")
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic")
    assert "y: the algebraic method needs its derivatives up to order 1" in error
    assert "there are 2" in error


@pytest.mark.parametrize("slope", ["-mu*abs(x)", "-mu*min(x, 1)"])
def test_a_model_with_a_kink_is_unusable_for_the_algebraic_method(
    toy: Path, capsys: pytest.CaptureFixture[str], slope: str
) -> None:
    (toy / "toy.toml").write_text(TOY.replace("-mu*x", slope), encoding="utf-8")
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraic")
    assert "has a kink: it has no Taylor series there" in error


def test_a_time_limit_of_the_algebraic_method_is_status_four(toy: Path) -> None:
    options = ("--method", "algebraic", "--time-limit", "0.001", "--json", "r.json")
    assert run("fit", "toy.toml", *options) == 4
    assert json.loads((toy / "r.json").read_text())["status"] == "time limit"


def test_methods_are_named_where_one_is_unknown(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, "fit", "toy.toml", "--method", "algebraik")
    assert 'Did you mean "algebraic"?' in error or "did you mean" in error.lower()
    assert "transcription, algebraic" in error


# multiple shooting -------------------------------------------------------------------------------


def test_multiple_shooting_may_be_asked_for_with_its_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--method multiple-shooting --nodes 3 --integrator heyoka --starts 1 --json r.json"
    assert run("fit", "decay.toml", *options.split()) == 0
    assert "MultipleShooting(heyoka)" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert "on 3 nodes" in found["starts"][0]["message"]
    assert len(found["starts"]) == 1


def test_an_answer_on_nodes_is_written_simulated_and_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bock's unstable example, which no single integration follows."""
    bock = str(odefit.library.path("bock"))
    options = "--method multiple-shooting --starts 1 --json r.json --report r.html"
    assert run("fit", bock, *options.split()) == 0
    assert "Continuity" in capsys.readouterr().out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"]["p"] == pytest.approx(np.pi)
    assert found["assessment"]["continuity"]["fine"] is True
    assert len(found["solutions"][0]["nodes"]["times"][0]) > 1
    assert "continuous there" in (folder / "r.html").read_text(encoding="utf-8")
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


# integral matching -------------------------------------------------------------------------------


def test_integral_matching_may_be_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
