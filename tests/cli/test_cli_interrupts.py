"""Ctrl-C ends a command early, not badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import HIV

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
    start: int, *arguments: str, by: signal.Signals = signal.SIGINT
) -> tuple[int, str, str]:
    """Run ``odefit fit`` and interrupt it in a start; exit status and both outputs."""
    process = subprocess.Popen(
        [sys.executable, "-c", ANNOUNCED, "fit", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line == f"start {start}\n":
            break
    process.send_signal(by)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_an_interrupt_gives_the_best_so_far_with_status_130(folder: Path) -> None:
    """Ctrl-C in the second of many starts: an answer, labelled as what it is."""
    options = ("--json", "r.json", "--jobs", "1", "--starts", "1000")
    status, out, err = interrupted(1, HIV.replace("hiv-proteinase", "alpha-pinene"), *options)
    assert status == 130, err
    assert "Traceback" not in err
    assert "interrupted" in out
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert found["objective"] > 0
    assert set(found["parameters"]) == {"p1", "p2", "p3", "p4", "p5"}


@pytest.mark.slow
@pytest.mark.parametrize(("by", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_within_the_first_start_gives_the_best_point_so_far(
    by: signal.Signals, expected: int, folder: Path
) -> None:
    status, out, err = interrupted(0, HIV, "--json", "r.json", by=by)
    assert status == expected, out + err
    assert "Traceback" not in err
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert found["objective"] > 0
    assert ("SIGTERM" if by is signal.SIGTERM else "Ctrl-C") in found["message"]
