"""Signals end a program at once, and leave nothing in parts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odefit.common.signals import Ended, end_program, signals_end

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")

SCRIPT = """
import signal, sys
from pathlib import Path
from odefit.common.signals import signals_end, unfinished
assert "numpy" not in sys.modules
file, folder = Path(sys.argv[1]) / "half.tmp", Path(sys.argv[1]) / "scratch"
file.write_text("half"), folder.mkdir(), (folder / "page").write_text("x")
with signals_end(True), unfinished(file), unfinished(folder):
    try:
        signal.raise_signal(int(sys.argv[2]))
    except BaseException:
        pass  # as a callback would do
print("it went on")
"""


@pytest.mark.parametrize(("number", "told"), [(2, "interrupted"), (15, "ended by SIGTERM")])
def test_no_code_can_swallow_the_end_and_nothing_unfinished_stays(
    number: int, told: str, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(number)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", f"{told}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_calls_the_command_line_gets_an_exception_and_its_handlers_back() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with signals_end(False):
        assert signal.getsignal(signal.SIGTERM) is not end_program
        with pytest.raises(Ended, match="ended by SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
