"""A fit in a separate process, with its progress, which can be stopped with its best so far."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from odefit.common.errors import InputError
from odefit.fitting.fit import fit
from odefit.methods.running.child import CAN_INTERRUPT, Child, Send, interrupt
from odefit.methods.running.control import Progress
from odefit.problem.problem import Problem
from odefit.result.result import Result

State = Literal["idle", "running", "stopping", "done", "failed"]

SIGNAL_INTERVAL = 0.5
"""Seconds between two requests to stop: the first may arrive before the fit listens."""

REPORT_INTERVAL = 0.2
"""The shortest time between two reports of progress, in seconds."""


@dataclass(frozen=True)
class Report:
    """The state of a fit.

    Fits are numbered from 1; 0 means before the first. `error` says why there is no result; it is
    empty if there is one.
    """

    number: int
    state: State
    seconds: float
    progress: Progress | None
    result: Result | None
    error: str


class FitJob:
    """One fit at a time, in a child process.

    Meanwhile the page continues to work, and a hanging fit affects nothing else.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._state: State = "idle"
        self._began = self._ended = 0.0
        self._progress: Progress | None = None
        self._result: Result | None = None
        self._error = ""
        self._stop = threading.Event()
        self._kill = threading.Event()
        self._thread: threading.Thread | None = None

    def start(
        self,
        problem: Problem,
        values: Mapping[str, float],
        method: str | None,
        limit: float | None,
    ) -> int:
        """Begin a fit at `values`, and return its number; InputError if another one is running."""
        with self._lock:
            if self._state in ("running", "stopping"):
                raise InputError("a fit is running; stop it first")
            self._number += 1
            self._state, self._error = "running", ""
            self._began, self._progress, self._result = time.monotonic(), None, None
            self._stop.clear()
            self._kill.clear()
            # The child ends with the thread that started it, so the thread waits for it.
            self._thread = threading.Thread(
                target=self._run, args=(problem, values, method, limit), daemon=True
            )
            self._thread.start()
            return self._number

    def stop(self) -> None:
        """Ask the fit to end with its best so far; a second request ends it at once."""
        with self._lock:
            if self._state == "stopping":
                self._kill.set()
            elif self._state == "running":
                self._state = "stopping"
                self._stop.set()

    def close(self) -> None:
        """End a running fit without an answer."""
        self._kill.set()
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def report(self) -> Report:
        """Return the state of the fit."""
        with self._lock:
            running = self._state in ("running", "stopping")
            end = time.monotonic() if running else self._ended
            return Report(
                self._number,
                self._state,
                end - self._began,
                self._progress,
                self._result,
                self._error,
            )

    def _run(
        self,
        problem: Problem,
        values: Mapping[str, float],
        method: str | None,
        limit: float | None,
    ) -> None:
        child = Child(who="the fit")
        result, error = None, ""
        try:
            child.call(fit_in_child, problem, values, method, limit, sends=True)
            result, error = self._followed(child)
        except InputError as refused:
            error = "; ".join(refused.messages)
        finally:
            child.kill()
            with self._lock:
                self._ended = time.monotonic()
                self._result, self._error = result, error
                self._state = "done" if result is not None else "failed"

    def _followed(self, child: Child) -> tuple[Result | None, str]:
        """Follow the messages of a fit to its end."""
        process, asked = 0, 0.0
        while True:
            if self._kill.is_set():
                return None, "The fit was ended before it had an answer."
            if self._stop.is_set() and process and time.monotonic() - asked > SIGNAL_INTERVAL:
                asked = time.monotonic()
                if not CAN_INTERRUPT:
                    return None, "The fit was ended without an answer, as always on Windows."
                interrupt(process)
            message = child.receive(REPORT_INTERVAL)
            if message is None:
                continue
            if message.kind == "returned":
                return message.content, ""
            if message.kind != "sent":
                return None, f"The fit has failed: {message.content}"
            if isinstance(message.content, Progress):
                with self._lock:
                    self._progress = message.content
            else:
                process = message.content


def fit_in_child(
    problem: Problem,
    values: Mapping[str, float],
    method: str | None,
    limit: float | None,
    send: Send,
) -> Result:
    """Run a fit, and send the number of this process to the parent, then its progress."""
    send(os.getpid())
    return fit(problem, method, start=values, time_limit=limit, progress=_seldom(send))


def _seldom(send: Send) -> Callable[[Progress], None]:
    """Return a function that sends at most a few reports of progress per second."""
    last = -REPORT_INTERVAL

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_INTERVAL:
            last = now
            send(progress)

    return report
