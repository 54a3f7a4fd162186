"""What child processes ask of the operating system; how they work is in test_process.py."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from odefit.methods.running import process_platform
from odefit.methods.running.process_platform import death_signal, interrupt

PARENT = """
import os, subprocess, sys
child = (
    "import os; from odefit.methods.running.process_platform import watch; "
    "os.write(1, b'watching ')"
)
child += f"; watch({os.getpid()})"
process = subprocess.Popen([sys.executable, "-c", child])
sys.stdin.read()  # until the test has seen that the child watches
"""
"""A process that starts one which watches it, shares its output, and then ends."""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows is asked for the end of a process")
def test_a_child_that_watches_its_parent_ends_with_it() -> None:
    """As it has to where the kernel does not see to that: the pipe closes only once both ended."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    assert parent.stdout.read(9) == b"watching "
    parent.stdin.close()
    assert parent.stdout.read() == b""
    parent.stdout.close()
    parent.wait()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("code", "name"), [(-9, "SIGKILL"), (-11, "SIGSEGV"), (1, None), (0, None), (-4000, None)]
)
def test_an_exit_status_tells_what_a_process_died_of(code: int, name: str | None) -> None:
    assert death_signal(code) == name


def test_a_process_that_is_gone_cannot_be_interrupted_and_that_is_no_error() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    interrupt(gone.pid)


def test_on_windows_a_child_inherits_its_connection_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what can be seen from here: the calls, not what Windows makes of them."""
    calls: list[Any] = []
    fake = SimpleNamespace(
        Popen=lambda *a, **k: calls.append((a, k)),
        DEVNULL=subprocess.DEVNULL,
        CREATE_NEW_PROCESS_GROUP=512,
        STARTUPINFO=lambda lpAttributeList: lpAttributeList,
    )
    monkeypatch.setattr(process_platform, "sys", SimpleNamespace(platform="win32", executable="p"))
    monkeypatch.setattr(process_platform, "subprocess", fake)
    monkeypatch.setattr(os, "set_handle_inheritable", lambda *a: calls.append(a), raising=False)
    process_platform.start("pass", 7, {"A": "1"}, None)
    (handle, ((command,), arguments)) = calls
    assert handle == (7, True)
    assert command == ["p", "-c", "pass"]
    assert arguments["startupinfo"] == {"handle_list": [7]}
    assert arguments["env"] == {"A": "1", "__PYVENV_LAUNCHER__": "p"}
    assert not {"pass_fds", "start_new_session"} & set(arguments)


def test_on_windows_the_status_of_a_crash_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_platform, "sys", SimpleNamespace(platform="win32"))
    assert death_signal(0xC0000005) == "0xc0000005"
    assert death_signal(3) is None
