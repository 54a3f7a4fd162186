"""A process that runs tasks: ``python -m studies.worker FD PARENT MEMORY``.

It reads a campaign and then tasks from the connection FD, and answers each with a result. What
tasks print goes to the file that the parent gives as standard output and error.
"""

from __future__ import annotations

import faulthandler
import pickle
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from odefit.methods.process import die_with, limit_memory
from studies.campaign import Campaign
from studies.store import to_json


def main(descriptor: int, parent: int, memory: int) -> None:
    """Serve tasks until the parent hangs up.

    Parameters
    ----------
    descriptor
        Of the connection.
    parent
        Its process number.
    memory
        Bytes that the process may use; 0 for no limit.
    """
    die_with(parent)
    limit_memory(memory)
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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
