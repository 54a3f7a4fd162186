"""What child processes need of the operating system, where Linux, macOS and Windows differ.

On Linux the kernel ends a process with its parent. macOS and Windows have no such thing: there a
thread of the child watches the parent, which a compiled solver may keep from running until it is
done. Windows has no signals either: a fit in a child can be ended there, but not asked to stop.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    if sys.platform == "win32":
        Channel = connections.PipeConnection[Any, Any]
    else:
        Channel = Connection[Any, Any]

WATCH_INTERVAL = 1.0
"""Seconds between two looks at whether the parent still lives, where the system does not tell."""

WINDOWS_CRASH = 0xC0000000
"""Exit statuses from here on are those of crashes on Windows, such as 0xC0000005."""

CAN_INTERRUPT = sys.platform != "win32"
"""Whether a process can be asked to stop, and then gives its best so far."""

CAN_START = bool(sys.executable) and not getattr(sys, "frozen", False)
"""Whether Python can be started anew: not where it is part of another program."""


def start(
    code: str, handle: int, environment: Mapping[str, str], log: Any
) -> subprocess.Popen[Any]:
    """Start Python in a process that inherits one connection and gets no Ctrl-C of the terminal.

    Parameters
    ----------
    code
        What it runs, which may refer to the connection by `handle`.
    handle
        The file descriptor of the connection, or on Windows its handle.
    environment
        Its environment variables.
    log
        The file that takes all its output.
    """
    own: dict[str, Any]
    variables = dict(environment)
    if sys.platform == "win32":
        # In a virtual environment python.exe starts another process, which would be the child.
        executable = getattr(sys, "_base_executable", None) or sys.executable
        variables["__PYVENV_LAUNCHER__"] = sys.executable
        os.set_handle_inheritable(handle, True)
        own = {
            "startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]}),
            "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP,
        }
    else:
        executable = sys.executable
        own = {"pass_fds": [handle], "start_new_session": True}  # its children can be killed, too
    return subprocess.Popen(
        [executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=variables,
        **own,
    )


def opened(handle: int) -> Channel:
    """Return the connection that the parent has passed on, in the child."""
    if sys.platform == "win32":
        return connections.PipeConnection(handle)
    return Connection(handle)


def kill_tree(process: subprocess.Popen[Any]) -> None:
    """End a process of :func:`start` now, with all processes that it started."""
    if sys.platform == "win32":
        subprocess.run(
            ["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False
        )
        process.kill()
    else:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def interrupt(process: int) -> None:
    """Ask a process to stop, as Ctrl-C does; nothing happens if it is gone, or on Windows."""
    if CAN_INTERRUPT:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGINT)


def end_with(parent: int) -> None:
    """End this process when its parent dies, even by a signal; Ctrl-C is the parent's alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it died before that
    else:
        threading.Thread(target=watch, args=(parent,), daemon=True).start()


def limit_memory(memory: int) -> None:
    """Let an allocation beyond `memory` bytes fail: out of memory, the kernel ends anything.

    Windows has no such limit, and macOS takes note of it without holding to it.
    """
    if sys.platform != "win32" and memory > 0:
        with suppress(ValueError, OSError):  # not on this system
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def watch(parent: int) -> None:
    """Wait until the parent is gone, and end this process then."""
    if sys.platform == "win32":
        import _winapi

        try:
            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        except OSError:
            os._exit(1)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(WATCH_INTERVAL)
    os._exit(1)


def death_signal(code: int) -> str | None:
    """Return the name of what a process died of, from its exit status; None if it ended itself."""
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    if sys.platform == "win32" and code >= WINDOWS_CRASH:
        return f"{code:#x}"
    return None
