"""A page in the browser or in a notebook with sliders for the unknowns of a problem."""

from __future__ import annotations

import os
import threading
from html import escape
from pathlib import Path

from odefit.explorer.server import LocalServer
from odefit.explorer.session import Session
from odefit.problem.habits import not_a_problem
from odefit.problem.problem import Problem
from odefit.result.result import Result

WARMING_SECONDS = 1.0
"""Seconds granted to the compilation for the first curves when the page ends."""


class Explorer:
    """A page being served; it ends with :meth:`stop`, or with the program.

    Attributes
    ----------
    url
        The address of the page. It contains a secret: anyone who has it, on this machine, can use
        the page.
    """

    def __init__(self, session: Session, port: int, height: int) -> None:
        self._session = session
        self._server = LocalServer(session, port)
        self._height = height
        self.url = self._server.url
        self._warming = threading.Thread(target=session.warm, daemon=True)
        self._warming.start()

    @property
    def values(self) -> dict[str, float]:
        """The values of the unknowns on the page, by key."""
        return dict(self._session.values)

    @property
    def fit(self) -> Result | None:
        """The result of the last fit made from the page; None without one."""
        return self._session.last_fit

    @property
    def running(self) -> bool:
        """True if the page is still served."""
        return self._server.running

    @property
    def opened(self) -> bool:
        """True once a browser has opened the address."""
        return self._server.opened

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the page is closed by its button, or for `seconds`.

        Returns
        -------
        Whether it was closed.
        """
        return self._server.wait(seconds)

    def stop(self) -> None:
        """End the server, and a fit that is still running."""
        self._server.stop()
        self._warming.join(timeout=WARMING_SECONDS)

    def __repr__(self) -> str:
        return f"Explorer({self.url})" if self.running else "Explorer(stopped)"

    def _repr_html_(self) -> str:
        if not self.running:
            return "<p>The page is no longer served.</p>"
        title = escape(f"Explore {self._session.problem.name}", quote=True)
        return (
            f'<iframe src="{self._server.frame_url}" title="{title}" width="100%" '
            f'height="{self._height}" style="border: 1px solid #cbd5e1; border-radius: 6px">'
            "</iframe>"
        )


def explore(
    problem: Problem | Result,
    *,
    result: Result | None = None,
    file: str | os.PathLike[str] | None = None,
    port: int = 0,
    height: int = 760,
) -> Explorer:
    """Serve a page on which the unknowns have sliders, and the curves move with them.

    In a notebook, the returned object shows itself as a frame; elsewhere, open its ``url``. It
    needs the extra ``odefit[explore]``. The server listens only on this machine, and only answers
    requests with the secret in the address.

    Parameters
    ----------
    problem
        The problem, or the result of a fit, whose best solution sets the sliders.
    result
        A result to compare with.
    file
        The problem file to which guesses may be written.
    port
        The port; 0 for any free one.
    height
        The height of the frame in a notebook, in pixels.

    Returns
    -------
    The page, which is served until :meth:`Explorer.stop`, or until the program ends.

    Raises
    ------
    odefit.InputError
        A package is missing, the problem has no unknowns, or the port cannot be used.
    """
    if isinstance(problem, Result):
        result, problem = problem, problem.problem
    if not isinstance(problem, Problem):
        raise not_a_problem("explore", problem)
    path = None if file is None else Path(os.fspath(file))
    return Explorer(Session(problem, result, path), port, height)
