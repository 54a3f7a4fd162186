"""A Dask cluster, by the address of its scheduler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.methods.running.worker import versions
from odefit.methods.running.workers import other_version

CONNECT_SECONDS = 3.0  # seconds within which a scheduler must answer
WORKERS_SECONDS = 10.0  # seconds within which its first worker must be available


@contextmanager
def dask_cluster(address: str | None) -> Iterator[Executor | None]:
    """Connect to a Dask cluster, and yield its executor; None without an address.

    The address is that of the scheduler, such as ``"tcp://10.0.0.7:8786"``, or ``"tls://..."`` with
    the certificates that Dask's configuration names. Raises InputError if the package is missing,
    if no scheduler answers there, if it has no workers, or if one of these has no odefit or another
    version of it.
    """
    if address is None:
        yield None
        return
    require("distributed")
    with _quiet():
        client = _connected(address)
    try:
        _check(client, address)
        yield client.get_executor()
    finally:
        with _quiet():
            client.close(timeout=CONNECT_SECONDS)


def _connected(address: str) -> Any:
    """Return a client of the scheduler, after checking that one answers.

    The garbage collector would close a client that cannot be made, which takes ten seconds and
    writes a traceback.
    """
    import distributed

    connect: Any = distributed.Client
    try:
        asyncio.run(_probed(address))
        return connect(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        # The last error comes from servers other than schedulers: their first bytes are read as a
        # length.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"--dask {address}: no scheduler answers there ({reason}); is it running, and is the "
            "address the one that it prints, such as tcp://10.0.0.7:8786?"
        ) from error


async def _probed(address: str) -> None:
    """Connect to a scheduler, and close the connection."""
    import distributed
    from distributed.comm import core

    security: Any = distributed.Security
    connect: Any = core.connect
    arguments = security().get_connection_args("client")
    connection = await connect(address, timeout=CONNECT_SECONDS, **arguments)
    await connection.close()


def _check(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        installed = client.run(version, "odefit", on_error="return")
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"--dask {address}: the cluster has no workers; start some, for example by "
            f"'dask worker {address}'"
        ) from error
    wrong = []
    for worker, worker_version in sorted(installed.items()):
        worker_version = worker_version if isinstance(worker_version, str) else "none"
        if worker_version != versions()["odefit"]:
            wrong.append(
                f"--dask {address}: {other_version(f'the worker {worker}', worker_version)}"
            )
    if wrong:
        raise InputError(wrong[:3])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from logging failures for which we have our own messages."""
    loggers = [logging.getLogger(name) for name in ("distributed.comm", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
