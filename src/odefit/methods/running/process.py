"""Functions in child processes that can be ended at any moment.

A compiled solver may hang or crash; in a process of its own it takes nobody with it. None of the
libraries for pools of processes (concurrent.futures, loky, pebble) does all that this needs:

- What a call sends before it has ended arrives at once: the best point of a solver that is killed.
- The end of what a process wrote is part of the reason of its death.
- A process ends with its parent, and the processes that it started end with it.
- Its memory may be limited.
- A script that starts it needs no ``if __name__ == "__main__"``.
- A function that is called may be asked to stop by itself, on every platform.

Independent work that ends by itself goes to loky's pool, see
:mod:`odefit.methods.running.executors.workers`.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any, Literal

from odefit.common.errors import InputError
from odefit.methods.running.process_platform import (
    death_signal,
    end_with,
    kill_tree,
    limit_memory,
    opened,
    start,
)

if TYPE_CHECKING:
    from odefit.methods.running.process_platform import Channel

KILLED = "SIGKILL"
"""The signal by which a process is ended from outside, as where memory is short."""

OUTPUT_TAIL = 300
"""Characters of what a process wrote before it died that become part of the reason."""

POLLING_INTERVAL = 0.2
"""Seconds between two checks of whether the user wants to stop."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that keep numerical libraries from starting threads of their own."""

STOP = b"stop"
"""What the parent sends to ask a function to stop; no pickle begins with it."""

Send = Callable[[Any], None]
"""A function that sends a message from the child to its parent."""


@dataclass(frozen=True)
class Message:
    """A message from a child process, or why none will come.

    Attributes
    ----------
    kind
        ``"sent"``: the function sent `content` and goes on. ``"returned"``: `content` is the value
        of the call. ``"raised"``: the call ended with an exception, which `content` describes.
        ``"died"``: the process is gone, and `content` says why. ``"late"`` and ``"stopped"``: see
        :meth:`Child.wait`.
    content
        A value or a sentence; None for ``"late"`` and ``"stopped"``.
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

    Attributes
    ----------
    connection
        The connection to the process, for :func:`multiprocessing.connection.wait`.
    alive
        Whether the process has not been ended.
    exit_code
        Exit status of the process when it has died by itself, minus the number of a signal.
    output
        The end of what the process wrote, when it has ended.
    """

    def __init__(self, memory: int = 0, who: str = "the process", idle: float = 0.0) -> None:
        mine, theirs = Pipe()
        self.connection: Channel = mine
        self.alive = True
        self.exit_code: int | None = None
        self.output = ""
        self._who = who
        # A file, not a pipe: it can be read when the process is dead, and never blocks it.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        environment = dict.fromkeys(ONE_THREAD, "1") | dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        environment.setdefault("MPLBACKEND", "Agg")
        numbers = [str(n) for n in (theirs.fileno(), os.getpid(), memory, idle)]
        code = f"from {__name__} import serve; serve({', '.join(numbers)})"
        self._process = start(code, theirs.fileno(), environment, self._log)
        theirs.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Whether the process has ended, by itself or by others."""
        return not self.alive or self._process.poll() is not None

    def call(self, function: Callable[..., Any], *arguments: object, sends: bool = False) -> None:
        """Begin ``function(*arguments)``; its messages and its value come by :meth:`receive`.

        Parameters
        ----------
        function, arguments
            Anything that pickle can take; the function is found by its name in its module.
        sends
            Whether the function takes one more argument, a :data:`Send`: it is a :class:`Line`.
        """
        with suppress(OSError):  # the process is dead: receive will find out
            self._log.seek(0)
            self._log.truncate()
            self.connection.send_bytes(pickle.dumps((function, arguments, sends)))

    def ask_to_stop(self) -> None:
        """Ask the function that is running to end soon, see :meth:`Line.asked_to_stop`."""
        with suppress(OSError):  # the process is dead: receive will find out
            self.connection.send_bytes(STOP)

    def receive(self, seconds: float) -> Message | None:
        """Return the next message, or None if there is none within so many seconds.

        Raises
        ------
        InputError
            The function has raised it.
        """
        try:
            if not self.connection.poll(seconds):
                return None
            kind, content = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            return Message("died", self._reason())
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
        """End the process now, with all processes that it started."""
        if not self.alive:
            return
        self.alive = False
        kill_tree(self._process)
        self.connection.close()
        self._log.seek(0)
        text = self._log.read().decode("utf-8", errors="replace")
        self.output = " ".join(text.split())[-OUTPUT_TAIL:]
        self._log.close()

    @property
    def crashed(self) -> bool:
        """Return whether the process has died by a signal that was not sent to end it."""
        died_of = None if self.exit_code is None else death_signal(self.exit_code)
        return died_of not in (None, KILLED)

    def _reason(self) -> str:
        """Return why the process has hung up; it is gone afterwards."""
        try:
            self.exit_code = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.exit_code = 0  # it closed its connection and lives on
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
    """What a function in a child is given to speak with the parent; calling it sends a message.

    Parameters
    ----------
    connection
        The connection to the parent, which sends nothing but :data:`STOP` during a call.
    """

    def __init__(self, connection: Channel) -> None:
        self._connection = connection
        self._asked = False

    def __call__(self, content: Any) -> None:
        self._connection.send(("sent", content))

    def asked_to_stop(self) -> bool:
        """Return whether the parent has asked this call to end soon, or has hung up."""
        try:
            while not self._asked and self._connection.poll(0):
                self._asked = self._connection.recv_bytes() == STOP
        except (EOFError, OSError):
            self._asked = True
        return self._asked


def serve(descriptor: int, parent: int, memory: int, idle: float) -> None:
    """Call the functions that come over a connection, until the parent hangs up.

    Parameters
    ----------
    descriptor
        File descriptor of the connection, or on Windows its handle.
    parent
        Process number of the parent.
    memory
        Bytes that this process may use; 0 for no limit.
    idle
        Seconds to wait for the next call; 0 for no limit.
    """
    end_with(parent)
    limit_memory(memory)
    connection = opened(descriptor)
    while True:
        try:
            if not connection.poll(idle or None):
                return
            received = connection.recv_bytes()
        except EOFError:
            return
        if received == STOP:
            continue  # it came when the call had just ended
        try:
            function, arguments, sends = pickle.loads(received)
            value = function(*arguments, Line(connection)) if sends else function(*arguments)
            connection.send(("returned", value))
        except InputError as error:
            connection.send(("refused", error.messages))
        except Exception as error:  # noqa: BLE001 - whatever it raises is the outcome of the call
            traceback.print_exc()
            sys.stderr.flush()
            connection.send(("raised", f"{type(error).__name__}: {error}"))
