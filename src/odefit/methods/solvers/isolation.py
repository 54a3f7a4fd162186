"""A solver in a process of its own: ``python -m odefit.methods.solvers.isolation``.

Solvers are compiled code of many hands: some overrun their time limit, some crash. Here that costs
no more than the one solve, and the best point and the bound that were reported before remain.
"""

from __future__ import annotations

import math
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Formulation
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import GivenMesh
from odefit.discretisation.schemes import Scheme
from odefit.methods.process import Child, die_with, end_in_words, limit_memory
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Report, Solver, answer
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.problem import Problem

STARTING = 120.0
"""Seconds that the process has to import what it needs and to discretise the problem."""

GRACE = 30.0
"""Seconds past the time limit, for a solver's preparation and its farewell."""

LEAST_AGAIN = 1.0
"""Seconds that must be left for another attempt after a crash."""

GLANCE = 0.2
"""Seconds between looks at whether the user wants to stop."""

Progress = Callable[[Array | None, Array | None, float | None], None]
"""Called with the best point so far, values and unknowns, None if it is as before, and with the
lower bound, None if there is none."""


class Event(Protocol):
    """As :class:`threading.Event`."""

    def is_set(self) -> bool:
        """Whether to stop."""


@runtime_checkable
class Reporting(Protocol):
    """A solver that says during the solve how far it is."""

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve, calling `progress`."""


def isolated(
    solver: Solver,
    instance: Instance,
    limits: Limits,
    report: Report | None = None,
    interrupted: Event | None = None,
    grace: float = GRACE,
    memory: int = 0,
) -> Answer:
    """What `solver` answers, from a process of its own.

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
    found = _once(solver, instance, limits, report, interrupted, grace, memory)
    left = None if limits.seconds is None else limits.seconds - (time.monotonic() - began)
    crashed = found.outcome is Outcome.FAILED and "died of" in found.message
    if crashed and isinstance(solver, Reporting) and (left is None or left > LEAST_AGAIN):
        # Watching is known to bring down SCIP now and then: once more, unwatched.
        rest = replace(limits, seconds=left)
        again = _once(Unwatched(solver), instance, rest, report, interrupted, grace, memory)
        if again.outcome is not Outcome.FAILED:
            return again
    return found


def _once(
    solver: Solver,
    instance: Instance,
    limits: Limits,
    report: Report | None,
    interrupted: Event | None,
    grace: float,
    memory: int,
) -> Answer:
    watch = _Watch(instance, limits, report, grace)
    child = Child("odefit.methods.solvers.isolation", [memory])
    try:
        with suppress(OSError):  # it has died: listening will find out
            child.connection.send_bytes(pickle.dumps(Job.of(solver, instance, limits)))
        return watch.listen(child, interrupted)
    except KeyboardInterrupt:
        return watch.stopped(Outcome.LIMIT, "interrupted")
    finally:
        child.kill()


@dataclass(frozen=True)
class Unwatched:
    """A solver that says nothing before it has ended."""

    solver: Solver

    @property
    def name(self) -> str:
        """That of the solver."""
        return self.solver.name

    @property
    def scope(self) -> Literal["local", "global"]:
        """That of the solver."""
        return self.solver.scope

    def missing(self) -> str | None:
        """As the solver."""
        return self.solver.missing()

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """As the solver."""
        return self.solver.solve(instance, limits)


@dataclass(frozen=True, eq=False)
class Job:
    """An instance as it travels: the discretisation is made anew on the other side.

    Attributes
    ----------
    solver, limits
        What to do.
    problem, scheme, mesh, formulation
        The equations.
    values, unknowns
        Where to start.
    """

    solver: Solver
    limits: Limits
    problem: Problem
    scheme: Scheme
    mesh: GivenMesh
    formulation: Formulation
    values: Array | None
    unknowns: Array | None

    @staticmethod
    def of(solver: Solver, instance: Instance, limits: Limits) -> Job:
        """`instance` made ready for the journey."""
        d = instance.discretisation
        times: dict[str, Array] = {}
        for number, condition in enumerate(d.problem.conditions):
            own = [p.segment.mesh for p in d.places if p.segment.condition == number]
            times[condition.name] = np.unique(np.concatenate(own))
        return Job(
            solver,
            replace(limits, stop=None),
            d.problem,
            d.scheme,
            GivenMesh(times),
            instance.formulation,
            instance.values,
            instance.unknowns,
        )

    def instance(self) -> Instance:
        """The instance, on the other side."""
        d = Discretisation(self.problem, self.scheme, self.mesh)
        return Instance(d, self.formulation, self.values, self.unknowns)


class _Watch:
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
        self._deadline = self._began + STARTING

    def listen(self, child: Child, interrupted: Event | None) -> Answer:
        """Until the process answers, or has to be ended."""
        while True:
            if interrupted is not None and interrupted.is_set():
                return self.stopped(Outcome.LIMIT, "interrupted")
            left = self._deadline - time.monotonic()
            if left <= 0:
                return self.stopped(Outcome.LIMIT, self._overdue())
            try:
                if not child.connection.poll(min(left, GLANCE)):
                    continue
                kind, *rest = child.connection.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                return self._died(child)
            if kind == "answer":
                found: Answer = rest[0]
                return found
            if kind == "refused":
                raise InputError(rest[0])
            if kind == "error":
                return self.stopped(Outcome.FAILED, f"the solver failed: {rest[0]}")
            self._note(kind, rest)

    def stopped(self, outcome: Outcome, message: str) -> Answer:
        """The best so far."""
        return answer(
            self._instance,
            outcome,
            self._values,
            self._unknowns,
            self._bound,
            time.monotonic() - self._began,
            message,
        )

    def _note(self, kind: str, rest: list[Any]) -> None:
        if kind == "solving":
            self._began = time.monotonic()
            seconds = self._limits.seconds
            self._deadline = math.inf if seconds is None else self._began + seconds + self._grace
            return
        values, unknowns, bound = rest
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
        if self._limits.seconds is None or self._deadline == self._began + STARTING:
            return f"the solver process did not start within {STARTING:g} s"
        return (
            f"the solver did not stop at its time limit of {self._limits.seconds:g} s; "
            f"its process was ended after {seconds:.1f} s"
        )

    def _died(self, child: Child) -> Answer:
        code = child.end()
        message = end_in_words(code, "the solver process")
        if child.last_words:
            message += f"; it wrote: {child.last_words}"
        return self.stopped(Outcome.FAILED, message)


def main(descriptor: int, parent: int, memory: int) -> None:
    """Do the one job that comes over the connection.

    Parameters
    ----------
    descriptor
        Of the connection.
    parent
        Its process number.
    memory
        Bytes that this process may use; 0 for no limit.
    """
    die_with(parent)
    limit_memory(memory)
    connection: Connection[Any, Any] = Connection(descriptor)

    def progress(values: Array | None, unknowns: Array | None, bound: float | None) -> None:
        connection.send(("progress", values, unknowns, bound))

    try:
        job: Job = pickle.loads(connection.recv_bytes())
        instance = job.instance()
        connection.send(("solving",))
        if isinstance(job.solver, Reporting):
            found = job.solver.follow(instance, job.limits, progress)
        else:
            found = job.solver.solve(instance, job.limits)
        connection.send(("answer", found))
    except InputError as error:
        connection.send(("refused", error.messages))
    except Exception as error:  # noqa: BLE001 - whatever a solver raises is its outcome
        traceback.print_exc()
        connection.send(("error", f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
