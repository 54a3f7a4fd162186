"""Ctrl-C ends a command early, not badly."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import odefit
from odefit.cli.command_table import COMMANDS
from odefit.common.signals import ENDING
from tests.cli.commands import COMMAND, HIV

PINENE = str(odefit.library.path("alpha-pinene"))
STORED = str(Path(__file__).parents[1] / "results-format-1" / "0.1-single-shooting.json")
CERTIFICATE = str(Path(__file__).parents[1] / "data" / "certificate.json")

ANNOUNCED = """
import sys
from odefit.cli import main
from odefit.methods.multi_start import MultiStart
run = MultiStart.run
def announced(method, forward, index, control):
    print("start", index, file=sys.stderr, flush=True)
    return run(method, forward, index, control)
MultiStart.run = announced
sys.exit(main(sys.argv[1:]))
"""
"""The command line, which says on standard error when a start begins."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")


def interrupted(
    start: int,
    *arguments: str,
    by: signal.Signals = signal.SIGINT,
    before: Callable[[], object] | None = None,
) -> tuple[int, str, str]:
    """Run ``odefit`` and interrupt it in a start of a fit; exit status and both outputs."""
    process = subprocess.Popen(
        [sys.executable, "-c", ANNOUNCED, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line == f"start {start}\n":
            break
    process.send_signal(by)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.mark.slow
def test_an_interrupt_gives_the_best_so_far_with_status_130(folder: Path) -> None:
    """Ctrl-C in the second of many starts: an answer, labelled as what it is."""
    options = ("--json", "r.json", "--jobs", "1", "--starts", "1000")
    status, out, err = interrupted(1, "fit", PINENE, *options)
    assert status == 130, err
    assert "Traceback" not in err
    assert "interrupted" in out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert found["objective"] > 0
    assert set(found["parameters"]) == {"p1", "p2", "p3", "p4", "p5"}


@pytest.mark.slow
@pytest.mark.parametrize("by", ENDING)
def test_a_signal_within_the_first_start_gives_the_best_point_so_far(
    by: signal.Signals, folder: Path
) -> None:
    status, out, err = interrupted(0, "fit", HIV, "--json", "r.json", by=by)
    assert status == 128 + by, out + err
    assert "Traceback" not in err
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert found["objective"] > 0
    assert ("Ctrl-C" if by is signal.SIGINT else by.name) in found["message"]


OTHERS = {
    "fit": ("decay.toml", "--jobs", "1", "--json", "r.json"),
    "profile": ("decay.toml", "--jobs", "1", "--json", "r.json"),
    "show": (STORED,),
    "plot": (STORED, "-o", "fit.svg"),
    "residuals": (STORED,),
    "predict": (STORED, "--times", "0:4:9"),
    "compare": (STORED, STORED),
    "design": ("decay.toml", "--set", "k=1", "s=2", "--times", "0:4", "--count", "2"),
    "check": ("decay.toml",),
    "simulate": ("decay.toml", "--set", "k=1", "s=2"),
    "explore": ("decay.toml", "--no-browser"),
    "new": ("data.csv", "-o", "new.toml"),
    "convert": ("decay.toml", "other.toml"),
    "validate": (STORED, "data.csv"),
    "verify": (CERTIFICATE,),
    "sensitivity": ("decay.toml", "--set", "k=1", "s=2"),
    "methods": (),
    "library": (),
}
"""The arguments with which each command is ended."""

AT_A_LINE = """
import os, signal, sys
moment, number = int(sys.argv[1]), int(sys.argv[2])
del sys.argv[1:3]
lines = 0
def traced(frame, event, argument):
    global lines
    lines += 1
    if lines == moment:
        sys.setprofile(None)
        signal.raise_signal(number)
from odefit.cli import main
sys.setprofile(traced)
code = main()
sys.setprofile(None)
print("calls:", lines, file=sys.stderr)
sys.exit(code)
"""
"""The command line, which has a signal at so many calls and returns of functions."""


def ended_at(moment: int, number: int, command: str, folder: Path) -> tuple[int, str, str]:
    """Run a command that has a signal at a moment; exit status and both outputs."""
    script = [sys.executable, "-c", AT_A_LINE, str(moment), str(number), command, *OTHERS[command]]
    ran = subprocess.run(
        script, capture_output=True, text=True, check=False, cwd=folder, timeout=300
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_every_command_is_ended_in_the_tests() -> None:
    assert OTHERS.keys() == {command.name for command in COMMANDS}


@pytest.mark.parametrize("command", ["methods", *(pytest.param(c, marks=pytest.mark.slow)
                                                  for c in OTHERS if c != "methods")])  # fmt: skip
def test_a_signal_at_any_moment_ends_a_command_without_a_traceback(
    command: str, folder: Path
) -> None:
    """Its moment is drawn, the first within the imports. A fit leaves its result once begun."""
    drawn = random.Random(f"38 {command}")
    for most in (1_000, 100_000, 500_000, 1_000_000)[: 2 if command == "methods" else 4]:
        moment, number = drawn.randrange(1, most), drawn.choice(ENDING)
        (folder / "r.json").unlink(missing_ok=True)
        status, out, err = ended_at(moment, number, command, folder)
        what = f"{command} {moment} {number!r}: {status} {out} {err}"
        assert "Traceback" not in err, what
        finished = (command == "explore" and number == signal.SIGINT) or "calls:" in err
        assert status == 128 + number or finished, what
        assert not list(folder.glob("*.tmp")), what
        if "r.json" in OTHERS[command] and status == 128 + number and out:
            assert json.loads((folder / "r.json").read_text(encoding="utf-8")), what


def test_a_closed_terminal_ends_a_fit_that_writes_its_result(folder: Path) -> None:
    """Nothing can be printed any more, neither the summary nor the progress."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    options = ("--json", "r.json", "--jobs", "1", "--starts", "1000")
    process = subprocess.Popen(
        [sys.executable, "-c", ANNOUNCED, "fit", PINENE, *options],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    printed = b""
    while b"start 1" not in printed:
        printed += os.read(ours, 4096)
    os.close(ours)  # the kernel sends SIGHUP
    assert process.wait(timeout=120) == 128 + signal.SIGHUP
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert (found["status"], "SIGHUP" in found["message"]) == ("interrupted", True)


def test_nohup_keeps_a_fit_from_a_closed_terminal(folder: Path) -> None:
    options = ("--json", "r.json", "--jobs", "1", "--starts", "3")
    status, _, err = interrupted(
        0, "fit", PINENE, *options, by=signal.SIGHUP,
        before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    assert status != 128 + signal.SIGHUP, err
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["status"] != "interrupted"


@pytest.mark.slow
def test_a_signal_within_the_fit_of_a_profile_leaves_its_result(folder: Path) -> None:
    status, out, err = interrupted(0, "profile", PINENE, "--jobs", "1", "--json", "r.json")
    assert status == 130, err
    assert "Traceback" not in err
    assert "no profiles: the fit: interrupted" in err
    assert "alpha-pinene" in out
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["status"] == "interrupted"


def test_a_time_limit_of_a_profile_that_its_fit_takes_up_leaves_the_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cli.commands import run

    status = run("profile", "decay.toml", "--jobs", "1", "--time-limit", "1e-9", "--json", "r.json")
    assert status == 4
    assert "no profiles" in capsys.readouterr().err
    assert (folder / "r.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_loses_no_result(closed: str, folder: Path) -> None:
    call = " ".join([*COMMAND, "fit", "decay.toml", "--jobs", "1", "--starts", "2"])
    ran = subprocess.run(
        f"{call} --json r.json {closed}>&-", shell=True, capture_output=True, text=True, check=False
    )
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["status"] == "converged"
    told = "error: standard output: cannot be written: Bad file descriptor\n"
    assert (ran.returncode, ran.stderr) == ((2, told) if closed == "1" else (0, ""))
