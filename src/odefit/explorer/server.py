"""A web server for this machine only, in a thread."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn

from odefit.common.errors import InputError
from odefit.explorer.access import Access
from odefit.explorer.application import application
from odefit.explorer.session import Session

ADDRESS = "127.0.0.1"
"""The address of the server, which no other machine can reach."""

PATIENCE = 5.0
"""Seconds that running requests have to finish when the server ends."""


class LocalServer:
    """A server of one session, which listens once it is made; port 0 takes a free one.

    Every request without the `token` is refused. Raises InputError if the port cannot be used.
    """

    def __init__(self, session: Session, port: int = 0) -> None:
        self._session = session
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self._leaving = threading.Event()
        access = Access(application(session, self._leaving.set), self.port)
        self._access = access
        self.token = access.token
        settings = uvicorn.Config(
            access,
            lifespan="off",
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=int(PATIENCE),
        )
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)

    @property
    def url(self) -> str:
        """The address of the page, with the token that becomes a cookie."""
        return f"http://{ADDRESS}:{self.port}/?token={self.token}"

    @property
    def frame_url(self) -> str:
        """The address of the page in a frame of a notebook, which gets no cookies."""
        return f"http://{ADDRESS}:{self.port}/t/{self.token}/"

    @property
    def running(self) -> bool:
        """True if it still answers."""
        return self._thread.is_alive() and not self._leaving.is_set()

    @property
    def opened(self) -> bool:
        """True once a browser has connected with the token."""
        return self._access.opened

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the page requests the end, and return whether it has."""
        return self._leaving.wait(seconds)

    def stop(self) -> None:
        """Stop the server and its running computations."""
        self._leaving.set()
        self._session.close()
        self._server.should_exit = True
        self._thread.join(timeout=2 * PATIENCE)
        self._socket.close()


def _listening(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"--port: expected a number from 0 to 65535, got {port}")
    # asyncio sends small packets at once (TCP_NODELAY) only if the protocol is named: answers in
    # two packets would take 40 ms more.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if port:
            # A port that was in use just before can be reused.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((ADDRESS, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"port {port} cannot be used: {error.strerror or error}; leave it out for a free one"
        ) from error
    return listening
