"""Ctrl-C ends a command early, not badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, HIV


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
