"""A process that runs tasks: ``python -m odefit.bench.worker FD MEMORY PARENT``.

It reads a campaign and then tasks from the connection FD, and answers each with a result. What
tasks print goes to the file that the parent gives as standard output and error.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from odefit.bench.campaign import Campaign
from odefit.bench.store import to_json


def main(descriptor: int, memory: int, parent: int) -> None:
    """Serve tasks until the parent hangs up.

    Parameters
    ----------
    descriptor
        Of the connection.
    memory
        Bytes that the process may use; 0 for no limit.
    parent
        Its process number.
    """
    _die_with(parent)
    _limit_memory(memory)
    faulthandler.enable()
    connection: Connection[Any, Any] = Connection(descriptor)
    campaign: Campaign = pickle.loads(connection.recv_bytes())
    connection.send(("ready", "", ""))
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(_attempt(campaign, task))


def _attempt(campaign: Campaign, task: dict[str, Any]) -> tuple[str, str, str]:
    """Outcome, result as JSON, and reason."""
    try:
        return "done", to_json(campaign.run(task)), ""
    except MemoryError:
        return "out of memory", "", "the task needs more memory than it may use"
    except Exception as error:  # noqa: BLE001 - whatever a task raises is its outcome
        traceback.print_exc()
        sys.stderr.flush()
        return "error", "", f"{type(error).__name__}: {error}"


def _die_with(parent: int) -> None:
    """A parent that is killed must not leave tasks running."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before that


def _limit_memory(memory: int) -> None:
    """An allocation that fails ends a task; the kernel, out of memory, ends anything."""
    if memory > 0:
        with suppress(ImportError, ValueError, OSError):  # not on this system
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
