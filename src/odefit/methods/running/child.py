"""Functions in a child process that can be polled, limited and stopped at any moment.

A compiled solver may hang or crash; in a separate process it harms no other. No library for process
pools (concurrent.futures, loky, pebble) meets all these needs:

- Messages of a running call arrive at once, such as the best point of a solver that is killed.
- The last output of a process is part of the reason of its death.
- A process ends with its parent, and the processes that it started end with it.
- Its memory may be limited.
- A script that starts it needs no ``if __name__ == "__main__"``.
- A running function may be asked to stop, on every platform.

Independent work that ends by itself goes to loky's pool, see :mod:`odefit.methods.running.workers`.

The last part of the module contains all differences between Linux, macOS and Windows. On Linux the
kernel ends a process with its parent. On macOS and Windows a thread of the child watches the
parent, and a compiled solver may keep that thread from running until it has finished. Windows has
no signals: a fit in a child can be killed there, but not asked to stop.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from odefit.common.errors import InputError

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from multiprocessing import connection as connections
    from multiprocessing.connection import Connection

    if sys.platform == "win32":
        Channel = connections.PipeConnection[Any, Any]
    else:
        Channel = Connection[Any, Any]

KILLED = "SIGKILL"  # the signal that ends a process from outside, for example if memory is short

OUTPUT_TAIL = 300
"""Number of characters of a dead process's last output that become part of the reason."""

POLLING_INTERVAL = 0.2  # seconds between two checks of whether the user wants to stop

WATCH_INTERVAL = 1.0
"""Seconds between two checks of whether the parent still lives, if the system does not report
it."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that keep numerical libraries from starting their own threads."""

STOP = b"stop"  # message that asks a function to stop; no pickle begins with it

WINDOWS_CRASH = 0xC0000000
"""Exit statuses from here on belong to crashes on Windows, such as 0xC0000005."""

CAN_INTERRUPT = sys.platform != "win32"
"""True if a process can be asked to stop, and then returns its best so far."""

CAN_START = bool(sys.executable) and not getattr(sys, "frozen", False)
"""True if Python can be started again: not if it is embedded in another program."""

Send = Callable[[Any], None]
"""A function that sends a message from the child to its parent."""


@dataclass(frozen=True)
class Message:
    """A message from a child process, or the reason why none will come.

    The `content` of ``"sent"`` was sent by the function, which continues. That of ``"returned"`` is
    the value of the call; that of ``"raised"`` describes the exception that ended it; that of
    ``"died"`` is the reason of the process's death. For ``"late"`` and ``"stopped"``, see
    :meth:`Child.wait`.
    """

    kind: Literal["sent", "returned", "raised", "died", "late", "stopped"]
    content: Any = None


class Child:
    """A child process that calls functions, one after the other.

    Parameters
    ----------
    memory
        Bytes that the process may use; 0 for no limit.
    who
        Name of the process in the reason for its death.
    idle
        Seconds without a call after which the process ends by itself; 0 for never.
    """

    def __init__(self, memory: int = 0, who: str = "the process", idle: float = 0.0) -> None:
        from multiprocessing import Pipe  # a program that starts no process saves the import

        near_end, far_end = Pipe()
        self.connection: Channel = near_end
        """For :func:`multiprocessing.connection.wait`."""
        self.alive = True
        self.owner = os.getpid()
        self.exit_code: int | None = None
        """Exit status once the process has died by itself, minus the number of a signal."""
        self.output = ""
        """The last output of the process, once it has ended."""
        self._who = who
        # A file instead of a pipe: it can be read after the process has died, and never blocks it.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        environment = dict.fromkeys(ONE_THREAD, "1") | dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        environment.setdefault("MPLBACKEND", "Agg")
        numbers = [str(n) for n in (far_end.fileno(), os.getpid(), memory, idle)]
        code = f"from {__name__} import serve; serve({', '.join(numbers)})"
        self._process = start(code, far_end.fileno(), environment, self._log)
        far_end.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """True if the process has ended or was killed."""
        return not self.alive or self._process.poll() is not None

    @property
    def crashed(self) -> bool:
        """True if the process died from a signal that was not sent to stop it."""
        died_of = None if self.exit_code is None else death_signal(self.exit_code)
        return died_of not in (None, KILLED)

    def call(self, function: Callable[..., Any], *arguments: object, sends: bool = False) -> None:
        """Begin ``function(*arguments)``; :meth:`receive` returns its messages and its value.

        All of them are pickled, the function by its name. With `sends` the function gets a
        :class:`Line` as its last argument.
        """
        with suppress(OSError):  # the process is dead: receive will detect it
            self._log.seek(0)
            self._log.truncate()
            self.connection.send_bytes(pickle.dumps((function, arguments, sends)))

    def ask_to_stop(self) -> None:
        """Ask the running function to end soon, see :meth:`Line.asked_to_stop`."""
        with suppress(OSError):  # the process is dead: receive will detect it
            self.connection.send_bytes(STOP)

    def receive(self, seconds: float) -> Message | None:
        """Return the next message, or None if none arrives within `seconds`.

        Raises an InputError that the function raised.
        """
        try:
            if not self.connection.poll(seconds):
                return None
            kind, content = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            return Message("died", self._death_reason())
        if kind == "refused":
            raise InputError(content)
        return Message(kind, content)

    def wait(self, deadline: float, stop: Callable[[], bool]) -> Message:
        """Return the next message, however long it takes.

        The message is ``"late"`` when the clock of :func:`time.monotonic` has passed `deadline`
        and ``"stopped"`` when `stop` is true; the process then still runs.
        """
        while not stop():
            left = deadline - time.monotonic()
            if left <= 0:
                return Message("late")
            message = self.receive(min(left, POLLING_INTERVAL))
            if message is not None:
                return message
        return Message("stopped")

    def kill(self) -> None:
        """Kill the process and all processes that it started; a fork of its owner cannot."""
        if not self.alive or os.getpid() != self.owner:
            return
        self.alive = False
        kill_tree(self._process)
        self.connection.close()
        with self._log as log:
            log.seek(0)
            text = log.read().decode("utf-8", errors="replace")
        self.output = " ".join(text.split())[-OUTPUT_TAIL:]

    def _death_reason(self) -> str:
        """Return why the process closed its connection; the process is gone afterwards."""
        try:
            self.exit_code = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.exit_code = 0  # it closed its connection but still runs
        self.kill()
        reason = exit_reason(self.exit_code, self._who)
        return f"{reason}; it wrote: {self.output}" if self.output else reason


def exit_reason(code: int, who: str) -> str:
    """Return in words why a process ended, from its exit status."""
    died_of = death_signal(code)
    if died_of == KILLED:
        return f"{who} was killed, most likely because the machine ran out of memory"
    if died_of is not None:
        return f"{who} died of {died_of}"
    return f"{who} ended by itself with status {code}"


# In the child ---------------------------------------------------------------------------------


class Line:
    """A function's connection to the parent: a call sends a message."""

    def __init__(self, connection: Channel) -> None:
        self._connection = connection
        self._asked = False

    def __call__(self, content: Any) -> None:
        self._connection.send(("sent", content))

    def asked_to_stop(self) -> bool:
        """Return whether the parent has asked this call to end soon, or has disconnected."""
        try:
            while not self._asked and self._connection.poll(0):
                self._asked = self._connection.recv_bytes() == STOP
        except (EOFError, OSError):
            self._asked = True
        return self._asked


def serve(handle: int, parent: int, memory: int, idle: float) -> None:
    """Call the functions that arrive over a connection, until the parent closes it.

    The connection is given by its file descriptor, or on Windows its handle, and the parent by its
    process number. `memory` and `idle` are those of :class:`Child`.
    """
    end_with(parent)
    limit_memory(memory)
    from multiprocessing import connection as connections

    connection: Channel
    if sys.platform == "win32":
        connection = connections.PipeConnection(handle)
    else:
        connection = connections.Connection(handle)
    while True:
        try:
            if not connection.poll(idle or None):
                return
            received = connection.recv_bytes()
        except EOFError:
            return
        if received == STOP:
            continue  # it arrived when the call had just ended
        try:
            function, arguments, sends = pickle.loads(received)
            value = function(*arguments, Line(connection)) if sends else function(*arguments)
            connection.send(("returned", value))
        except InputError as error:
            connection.send(("refused", error.messages))
        except Exception as error:  # noqa: BLE001 - any exception is the outcome of the call
            traceback.print_exc()
            sys.stderr.flush()
            connection.send(("raised", f"{type(error).__name__}: {error}"))


# Linux, macOS and Windows ---------------------------------------------------------------------


def start(
    code: str, handle: int, environment: Mapping[str, str], log: Any
) -> subprocess.Popen[Any]:
    """Start Python in a process that inherits one connection and gets no Ctrl-C of the terminal.

    It runs `code`, which may refer to the connection by `handle`; its output goes to the file
    `log`.
    """
    platform_arguments: dict[str, Any]
    variables = dict(environment)
    if sys.platform == "win32":
        # In a virtual environment python.exe starts another process, which would be the child.
        executable = getattr(sys, "_base_executable", None) or sys.executable
        variables["__PYVENV_LAUNCHER__"] = sys.executable
        os.set_handle_inheritable(handle, True)
        platform_arguments = {
            "startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]}),
            "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP,
        }
    else:
        executable = sys.executable
        # A separate session, so that its children can be killed, too.
        platform_arguments = {"pass_fds": [handle], "start_new_session": True}
    return subprocess.Popen(
        [executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=variables,
        **platform_arguments,
    )


def kill_tree(process: subprocess.Popen[Any]) -> None:
    """Kill a process of :func:`start` and all processes that it started."""
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
    """Ask a process to stop, as Ctrl-C does; no effect if it is gone, or on Windows."""
    if CAN_INTERRUPT:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGINT)


def end_with(parent: int) -> None:
    """End this process when its parent dies, even from a signal; only the parent gets Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent died before that
    else:
        threading.Thread(target=watch, args=(parent,), daemon=True).start()


def ending_together(command: Sequence[str]) -> Sequence[str]:
    """Return a command that starts another program, which ends when this process dies.

    On Linux a short Python program takes the death signal, which stays with the program that
    replaces it. On other systems a program of others runs to its end or its own time limit.
    """
    if sys.platform != "linux":
        return command
    return (sys.executable, "-I", "-S", "-c", _REPLACED.format(os.getpid()), *command)


_REPLACED = """import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != {}:
    os._exit(1)
os.execv(sys.argv[1], sys.argv[1:])
"""


def watch(parent: int) -> None:
    """Wait until the parent is gone, and then end this process."""
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


def limit_memory(memory: int) -> None:
    """Make allocations beyond `memory` bytes fail; out of memory, the kernel kills any process.

    Windows has no such limit, and macOS accepts it without enforcing it.
    """
    if sys.platform != "win32" and memory > 0:
        with suppress(ValueError, OSError):  # not on this system
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def death_signal(code: int) -> str | None:
    """Return the cause of a process's death from its exit status; None if it exited."""
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    if sys.platform == "win32" and code >= WINDOWS_CRASH:
        return f"{code:#x}"
    return None
