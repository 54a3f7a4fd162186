"""A child process answers, or its parent learns in time why it does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odefit.common.errors import InputError
from odefit.methods.running import child as child_module
from odefit.methods.running.child import Child, Line, Message, Send, death_signal, interrupt

FOREVER = 60.0


@pytest.fixture
def child() -> Iterator[Child]:
    process = Child()
    yield process
    process.kill()


def answered(child: Child) -> Message:
    return child.wait(time.monotonic() + FOREVER, lambda: False)


def counted(last: int, send: Send) -> int:
    for number in range(last):
        send(number)
    return last


def patient(line: Line) -> str:
    line("waits")
    while not line.asked_to_stop():
        time.sleep(0.001)
    return "stopped"


def refuse() -> None:
    raise InputError(["no", "and no"])


def allocate(size: int) -> int:
    return len(bytearray(size))


def die() -> None:
    os.write(2, b"out of ideas")
    os.abort()


def nested() -> int:
    """Start a process that nobody waits for, and return its number."""
    return subprocess.Popen(["sleep", str(FOREVER)]).pid


def ends(pid: int) -> bool:
    """Whether a process ends within a minute; a zombie has."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(6000):
        if not stat.exists() or stat.read_text(encoding="utf-8").rsplit(")")[-1].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_messages_come_before_the_value_and_calls_one_after_the_other(child: Child) -> None:
    for last in (2, 1):
        child.call(counted, last, sends=True)
        assert [answered(child) for _ in range(last)] == [Message("sent", n) for n in range(last)]
        assert answered(child) == Message("returned", last)


def test_an_exception_is_a_sentence_and_the_process_lives_on(child: Child) -> None:
    child.call(int, "one")
    message = answered(child)
    assert message.kind == "raised"
    assert message.content.startswith("ValueError: invalid literal")
    child.call(int, "1")
    assert answered(child) == Message("returned", 1)


@pytest.mark.slow
def test_a_refusal_is_raised_in_the_parent(child: Child) -> None:
    child.call(refuse)
    with pytest.raises(InputError) as caught:
        answered(child)
    assert caught.value.messages == ("no", "and no")


def test_a_death_has_a_reason_and_last_words(child: Child) -> None:
    child.call(die)
    words = "the process died of SIGABRT; it wrote: out of ideas"
    assert answered(child) == Message("died", words)
    assert child.exit_code == -signal.SIGABRT
    assert not child.alive


def test_a_call_can_be_ended_when_late_or_no_longer_needed(child: Child) -> None:
    child.call(time.sleep, FOREVER)
    assert child.wait(time.monotonic(), lambda: False) == Message("late")
    assert child.wait(time.monotonic() + FOREVER, lambda: True) == Message("stopped")
    child.kill()
    assert not child.alive


def test_a_request_to_stop_holds_for_one_call_alone(child: Child) -> None:
    for _ in range(2):
        child.call(patient, sends=True)
        assert answered(child) == Message("sent", "waits")
        child.ask_to_stop()
        assert answered(child) == Message("returned", "stopped")
        child.ask_to_stop()  # too late


@pytest.mark.slow
def test_a_process_may_end_by_itself_when_it_has_nothing_to_do() -> None:
    idle = Child(idle=0.001)
    assert answered(idle) == Message("died", "the process ended by itself with status 0")
    assert idle.gone


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_memory_may_be_limited() -> None:
    limited = Child(2**30)
    limited.call(allocate, 2**34)
    assert answered(limited) == Message("raised", "MemoryError: ")
    limited.kill()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_processes_started_by_a_process_end_with_it(child: Child) -> None:
    child.call(nested)
    grandchild = answered(child).content
    child.kill()
    assert ends(grandchild)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and signals at a parent's death")
def test_a_script_needs_no_guard_and_takes_its_child_with_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal\n"
        "from odefit.methods.running.child import Child\n"
        "child = Child()\n"
        "child.call(os.getpid)\n"
        "print(child.receive(60).content, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
        encoding="utf-8",
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL
    assert ends(int(run.stdout))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and signals at a parent's death")
def test_a_foreign_program_ends_with_the_process_that_needs_it() -> None:
    script = (
        "import os, signal, subprocess\n"
        "from odefit.methods.running.child import ending_together\n"
        f"command = ending_together(['/bin/sh', '-c', 'echo on; exec sleep {FOREVER}'])\n"
        "program = subprocess.Popen(command, stdout=subprocess.PIPE)\n"
        "program.stdout.readline()\n"
        "print(program.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert ends(int(run.stdout))


PARENT = """
import os, subprocess, sys
child = (
    "import os; from odefit.methods.running.child import watch; "
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
def test_an_exit_status_gives_the_cause_of_a_death(code: int, name: str | None) -> None:
    assert death_signal(code) == name


def test_interrupting_an_ended_process_raises_no_error() -> None:
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
    monkeypatch.setattr(child_module, "sys", SimpleNamespace(platform="win32", executable="p"))
    monkeypatch.setattr(child_module, "subprocess", fake)
    monkeypatch.setattr(os, "set_handle_inheritable", lambda *a: calls.append(a), raising=False)
    child_module.start("pass", 7, {"A": "1"}, None)
    (handle, ((command,), arguments)) = calls
    assert handle == (7, True)
    assert command == ["p", "-c", "pass"]
    assert arguments["startupinfo"] == {"handle_list": [7]}
    assert arguments["env"] == {"A": "1", "__PYVENV_LAUNCHER__": "p"}
    assert not {"pass_fds", "start_new_session"} & set(arguments)


def test_on_windows_the_status_of_a_crash_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "sys", SimpleNamespace(platform="win32"))
    assert death_signal(0xC0000005) == "0xc0000005"
    assert death_signal(3) is None
