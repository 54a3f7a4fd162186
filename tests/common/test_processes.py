"""Whether a process has ended, also if another has its number now."""

from __future__ import annotations

import os
import subprocess
import sys

from odefit.common.processes import has_ended, start_of
from tests.common.temporary import LINUX


@LINUX
def test_a_process_has_ended_once_it_was_awaited() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = start_of(process.pid)
    assert start
    assert not has_ended(process.pid)
    assert not has_ended(process.pid, start)
    process.communicate()
    assert has_ended(process.pid)
    assert has_ended(process.pid, start)


@LINUX
def test_another_process_of_the_same_number_is_recognised_by_its_start() -> None:
    assert not has_ended(os.getpid(), start_of(os.getpid()))
    assert has_ended(os.getpid(), "1")
