"""Child processes that talk over a connection and can be ended at any moment.

A task that hangs or crashes inside compiled code takes only its own process with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

LAST_WORDS = 300
"""Characters of what a process wrote before it died, as part of the reason."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Child:
    """``python -m MODULE FD PARENT ...``, seen from its parent.

    The process should call :func:`die_with` first, and reach us by the connection FD.

    Parameters
    ----------
    module
        Dotted name.
    arguments
        What follows the numbers of the connection and of the parent process.

    Attributes
    ----------
    connection
        To the process.
    alive
        It has not been ended.
    last_words
        The end of what it wrote, when it has ended.
    """

    def __init__(self, module: str, arguments: Sequence[object] = ()) -> None:
        mine, theirs = Pipe()
        self.connection: Connection[Any, Any] = mine
        self.alive = True
        self.last_words = ""
        # A file, not a pipe: it can be read when the process is dead, and never blocks it.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        environment = dict.fromkeys(ONE_THREAD, "1") | dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        environment.setdefault("MPLBACKEND", "Agg")
        numbers = [str(n) for n in (theirs.fileno(), os.getpid(), *arguments)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *numbers],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=environment,
            start_new_session=True,  # a Ctrl-C is the parent's; and its children can be killed
        )
        theirs.close()

    def forget(self) -> None:
        """Empty the file of what it wrote."""
        self._log.seek(0)
        self._log.truncate()

    def kill(self) -> None:
        """End it now, with all processes that it started."""
        if not self.alive:
            return
        self.alive = False
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.connection.close()
        self._log.seek(0)
        text = self._log.read().decode("utf-8", errors="replace")
        self.last_words = " ".join(text.split())[-LAST_WORDS:]
        self._log.close()

    def end(self) -> int:
        """Its exit status after it has hung up, minus a signal's number; then it is gone."""
        try:
            code = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            code = 0  # it closed its connection and lives on
        self.kill()
        return code


def end_in_words(code: int, who: str = "the process") -> str:
    """Why a process ended, from its exit status."""
    if code == -signal.SIGKILL:
        return f"{who} was killed, most likely because the machine ran out of memory"
    if code < 0:
        with suppress(ValueError):
            return f"{who} died of {signal.Signals(-code).name}"
    return f"{who} ended by itself with status {code}"


def die_with(parent: int) -> None:
    """A parent that is killed must not leave this process running; Ctrl-C is the parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before that


def limit_memory(memory: int) -> None:
    """An allocation that fails ends a task; the kernel, out of memory, ends anything.

    Parameters
    ----------
    memory
        Bytes that this process may use; 0 for no limit.
    """
    if memory > 0:
        with suppress(ImportError, ValueError, OSError):  # not on this system
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
