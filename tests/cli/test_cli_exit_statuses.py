"""Each exit status, and what goes where, as a shell script sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND

BAD = 'format = 1\n[ode]\nx = "-q*x"\n[initial]\nx = 1.0\n[[experiment]]\ndata = "data.csv"\n'


def ran(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a process of its own."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env=dict(os.environ) | {"PYTHONIOENCODING": "utf-8"},
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_unusable_input_is_status_two_with_one_message_for_each_mistake(folder: Path) -> None:
    (folder / "bad.toml").write_text(BAD, encoding="utf-8")
    status, out, err = ran(folder, "fit", "bad.toml", "--json", "r.json")
    assert status == 2
    assert out == ""
    assert all(line.startswith("error: bad.toml") for line in err.splitlines())
    assert "unknown name 'q'" in err
    assert not (folder / "r.json").exists()


@pytest.mark.slow
def test_a_wrong_option_is_status_two(folder: Path) -> None:
    status, out, err = ran(folder, "fit", "decay.toml", "--sead", "3")
    assert (status, out) == (2, "")
    assert "--sead" in err


@pytest.mark.slow
def test_success_has_exit_status_zero_and_prints_results_on_standard_output(folder: Path) -> None:
    status, out, err = ran(folder, "fit", "decay.toml", "--starts", "1", "--json", "r.json")
    assert (status, err) == (0, "")
    assert "converged" in out
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["status"] == "converged"


@pytest.mark.slow
def test_no_acceptable_fit_is_status_three_and_the_result_is_there(folder: Path) -> None:
    status, out, err = ran(folder, "fit", "blow_up.toml", "--starts", "2", "--json", "r.json")
    assert status == 3
    assert "all 2 starts failed" in out
    assert "Traceback" not in err
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["status"] == "failed"


@pytest.mark.slow
def test_a_time_limit_is_status_four_and_the_result_is_there(folder: Path) -> None:
    options = ("--time-limit", "1e-9", "--json", "r.json")
    status, _, err = ran(folder, "fit", "decay.toml", *options)
    assert status == 4
    assert "Traceback" not in err
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["status"] == "time limit"


ENDLESS = """
import os, sys
from odefit.cli import main
from odefit.methods.multi_start import MultiStart
run = MultiStart.run
def announced(method, forward, index, control):
    if index == 1:
        print("in a start", file=sys.stderr, flush=True)
    return run(method, forward, index, control)
MultiStart.run = announced
sys.exit(main(sys.argv[1:]))
"""
"""The command line, which says on standard error when its first start is done."""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_sets_the_status_and_the_best_so_far_is_written(
    folder: Path, number: signal.Signals, status: int
) -> None:
    options = ("--method", "multi-start", "--starts", "1000000", "--jobs", "1", "--json", "r.json")
    process = subprocess.Popen(
        [COMMAND[0], "-c", ENDLESS, "fit", "decay.toml", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "in a start\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == status, err
    assert "Traceback" not in err
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert found["parameters"]["k"] == pytest.approx(0.69, rel=0.02)
