"""A solver in a process of its own.

Solvers are compiled code of many hands: some overrun their time limit, some crash. Here that costs
no more than the one solve, and the best point and the bound that were reported before remain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from odefit.common.arrays import Array
from odefit.discretisation.instance import Instance
from odefit.methods.running.process import Child, Message, Send
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Report, Solver, make_answer

START_UP_SECONDS = 120.0
"""Seconds that the process has to import what it needs and to discretise the problem."""

GRACE_PERIOD = 30.0
"""Seconds past its time limit after which a solver is ended from outside."""

LEAST_RETRY_SECONDS = 1.0
"""Seconds of the time limit that must be left for another attempt after a crash."""

Progress = Callable[[Array | None, Array | None, float | None], None]
"""A function that is called with the best point so far (values at points and unknowns, None if it
is as before) and with the lower bound, None if there is none."""


class Event(Protocol):
    """The part of :class:`threading.Event` that is needed here."""

    def is_set(self) -> bool:
        """Return whether to stop."""


@runtime_checkable
class ReportingSolver(Protocol):
    """A solver that says during the solve how far it is."""

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve, calling `progress`."""


def solve_isolated(
    solver: Solver,
    instance: Instance,
    limits: Limits,
    report: Report | None = None,
    interrupted: Event | None = None,
    grace: float = GRACE_PERIOD,
    memory: int = 0,
) -> Answer:
    """Return what `solver` answers in a process of its own.

    Parameters
    ----------
    solver, instance, limits
        As for :meth:`Solver.solve`.
    report
        Called with the best objective (infinite without a point) and the lower bound (minus
        infinity without one) whenever the solver says something new.
    interrupted
        When it is set, or at Ctrl-C, the process is ended and the best so far is the answer.
    grace
        Seconds past the time limit after which the process is ended from outside.
    memory
        Bytes that the process may use; 0 for no limit.

    Returns
    -------
    Answer
        ``LIMIT`` if the process was ended from outside, ``FAILED`` if it died, each with the best
        point and the bound that it had reported, and a message that says so.

    Raises
    ------
    InputError
        The solver refuses the problem or its options.
    """
    began = time.monotonic()

    def once(limits: Limits, watched: bool) -> tuple[Answer, bool]:
        """Return the answer of one process, and whether that has crashed."""
        run = _Run(instance, limits, report, grace)
        child = Child(memory, "the solver process")
        try:
            unstopped = replace(limits, stop=None)
            child.call(_solve, solver, instance, unstopped, watched, sends=True)
            found = run.listen(child, interrupted)
            return found, child.crashed
        except KeyboardInterrupt:
            return run.stopped(Outcome.LIMIT, "interrupted"), False
        finally:
            child.kill()

    watched = isinstance(solver, ReportingSolver)
    found, crashed = once(limits, watched)
    left = None if limits.seconds is None else limits.seconds - (time.monotonic() - began)
    if crashed and watched and (left is None or left > LEAST_RETRY_SECONDS):
        # Watching is known to bring down SCIP now and then: once more, unwatched.
        again, _ = once(replace(limits, seconds=left), watched=False)
        if again.outcome is not Outcome.FAILED:
            return again
    return found


class _Run:
    """The parent's side: what the process has reported, and until when it may run."""

    def __init__(
        self, instance: Instance, limits: Limits, report: Report | None, grace: float
    ) -> None:
        self._instance = instance
        self._limits = limits
        self._report = report
        self._grace = grace
        self._values: Array | None = None
        self._unknowns: Array | None = None
        self._objective = math.inf
        self._bound: float | None = None
        self._began = time.monotonic()
        self._deadline = self._began + START_UP_SECONDS

    def listen(self, child: Child, interrupted: Event | None) -> Answer:
        """Return the answer of the process, or the best so far if it has to be ended."""
        stop = (lambda: False) if interrupted is None else interrupted.is_set
        while True:
            message = child.wait(self._deadline, stop)
            if message.kind == "returned":
                found: Answer = message.content
                return found
            if message.kind != "sent":
                return self._ended(message)
            self._note(message.content)

    def _ended(self, message: Message) -> Answer:
        if message.kind == "stopped":
            return self.stopped(Outcome.LIMIT, "interrupted")
        if message.kind == "late":
            return self.stopped(Outcome.LIMIT, self._overdue())
        reason = message.content
        if message.kind == "raised":
            reason = f"the solver failed: {reason}"
        return self.stopped(Outcome.FAILED, reason)

    def stopped(self, outcome: Outcome, message: str) -> Answer:
        """Return the best point and bound so far."""
        seconds = time.monotonic() - self._began
        point = self._values, self._unknowns
        return make_answer(self._instance, outcome, *point, self._bound, seconds, message)

    def _note(self, sent: tuple[Any, ...] | None) -> None:
        if sent is None:  # the solver starts now
            self._began = time.monotonic()
            seconds = self._limits.seconds
            self._deadline = math.inf if seconds is None else self._began + seconds + self._grace
            return
        values, unknowns, bound = sent
        if values is not None and unknowns is not None:
            objective = self._instance.discretisation.objective(values, unknowns)
            if math.isfinite(objective):
                self._values, self._unknowns, self._objective = values, unknowns, objective
        if bound is not None and math.isfinite(bound):
            self._bound = bound if self._bound is None else max(bound, self._bound)
        if self._report is not None:
            self._report(self._objective, -math.inf if self._bound is None else self._bound)

    def _overdue(self) -> str:
        seconds = time.monotonic() - self._began
        if self._limits.seconds is None or self._deadline == self._began + START_UP_SECONDS:
            return f"the solver process did not start within {START_UP_SECONDS:g} s"
        return (
            f"the solver did not stop at its time limit of {self._limits.seconds:g} s; "
            f"its process was ended after {seconds:.1f} s"
        )


def _solve(solver: Solver, instance: Instance, limits: Limits, watched: bool, send: Send) -> Answer:
    """Solve in the child, sending best points and bounds as they come."""
    send(None)
    if watched and isinstance(solver, ReportingSolver):
        return solver.follow(instance, limits, lambda *found: send(found))
    return solver.solve(instance, limits)
