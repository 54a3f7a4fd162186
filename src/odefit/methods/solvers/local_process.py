"""Local solvers in a process that is kept from one solve to the next.

IPOPT and its like are compiled code too, and may crash or hang within an iteration. A process for
each solve would be too slow, as a method with many starts has hundreds that take some hundredths of
a second: here a process is started once and told of a discretised problem once. It ends with the
thread or the process that uses it, and where it is not used for a while.

In a worker process the solver runs directly: a crash there costs the worker, of which
:mod:`odefit.methods.running.executors.dispatch` makes a start that has failed.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Formulation
from odefit.discretisation.instance import Instance
from odefit.methods.running.executors.batch import in_worker
from odefit.methods.running.process import Child, Line
from odefit.methods.running.process_platform import CAN_START
from odefit.methods.running.run_log import LOGGER
from odefit.methods.solvers.isolation import START_UP_SECONDS, ReportingSolver
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Solver, make_answer

GRACE_SECONDS = 2.0
"""Seconds past its time limit, or after it was asked to stop, that a solver has to answer."""

IDLE_SECONDS = 60.0
"""Seconds without a solve after which the process ends; the next one starts another."""

LOOK_SECONDS = 0.05
"""Seconds between two looks of the solver at whether it is asked to stop."""

MOST_KEPT = 8
"""Number of discretised problems that the process keeps at most."""

MOST_FAILURES = 2
"""Number of processes that may fail to start before no more are tried."""


def solve_locally(
    solver: Solver, instance: Instance, limits: Limits, grace: float = GRACE_SECONDS
) -> Answer:
    """Return what ``solver.solve(instance, limits)`` returns, to the last bit, whatever happens.

    Local solvers that ship with CasADi run in the kept process of this thread. Others run here, and
    so do all in a worker process, where no process can be started, and where pickle cannot take
    the problem or the solver.

    Parameters
    ----------
    solver, instance, limits
        As for :meth:`Solver.solve`.
    grace
        Seconds past the time limit, or after ``limits.stop``, at which the process is ended.

    Returns
    -------
    Answer
        ``FAILED`` with the reason and without a point if the process died; ``LIMIT`` with the last
        iterate that it has told, or the start, if it had to be ended.

    Raises
    ------
    InputError
        The solver refuses its options.
    """
    if not _kept_for(solver):
        return solver.solve(instance, limits)
    try:
        content = pickle.dumps(instance.discretisation)
        pickle.dumps((solver, instance.formulation))
    except Exception:  # noqa: BLE001 - pickle lets through whatever an object's methods raise
        return solver.solve(instance, limits)
    run = _Run(solver, instance, limits, grace, content)
    found = run.answer()
    return solver.solve(instance, limits) if found is None else found


def start_early(solver: Solver) -> None:
    """Start the process of this thread, if there is none and `solver` will soon need it."""
    if _kept_for(solver):
        _mine.process()


def _kept_for(solver: Solver) -> bool:
    """Return whether a solver runs in the kept process, if there can be one."""
    return solver.scope == "local" and isinstance(solver, ReportingSolver) and not in_worker()


def process_number() -> int | None:
    """Return the number of the process that this thread keeps, or None if it has none."""
    kept = _mine.kept
    return None if kept is None or kept.child.gone else kept.child.pid


class _Process:
    """A process, and what it knows."""

    def __init__(self) -> None:
        self.child = Child(who="its process", idle=IDLE_SECONDS)
        self.child.call(_ready)
        self.ready = False
        self.owner = os.getpid()
        self.known: dict[bytes, weakref.ref[Discretisation]] = {}
        # At the end of the thread whose it is, or of this process.
        weakref.finalize(self, _end, self.child, self.owner)

    def outdated(self) -> list[bytes]:
        """Return what it need not keep any more, which is not known to it from then on."""
        names = [name for name, of in self.known.items() if of() is None]
        kept = [name for name in self.known if name not in names]
        names += kept[: max(len(kept) - MOST_KEPT, 0)]
        for name in names:
            del self.known[name]
        return names


class _Mine(threading.local):
    """The process of a thread: on Linux it would end with the thread that has started it."""

    kept: _Process | None = None
    failures: int = 0

    def process(self) -> _Process | None:
        """Return the process, started if need be; None where that cannot be done."""
        if self.kept is not None and self.kept.owner != os.getpid():
            _strangers.append(self.kept)  # this process was forked; that one is its parent's
            self.kept = None
        if self.kept is not None and self.kept.child.gone:
            self.end()
        if self.kept is None and CAN_START and self.failures < MOST_FAILURES:
            try:
                self.kept = _Process()
            except OSError as error:
                self.failed(str(error))
        return self.kept

    def end(self) -> None:
        """End the process."""
        if self.kept is not None:
            self.kept.child.kill()
        self.kept = None

    def failed(self, reason: str) -> None:
        """Note that a process could not be started."""
        self.failures += 1
        LOGGER.warning("no process could be started for local solvers: %s", reason)
        self.end()


_mine = _Mine()
_strangers: list[_Process] = []
"""Processes of the process that this one was forked from, held so that nobody ends them."""


def _end(child: Child, owner: int) -> None:
    if os.getpid() == owner:
        child.kill()


class _Run:
    """One solve, seen from here."""

    def __init__(
        self, solver: Solver, instance: Instance, limits: Limits, grace: float, content: bytes
    ) -> None:
        self._solver, self._instance, self._limits = solver, instance, limits
        self._grace, self._content = grace, content
        self._name = hashlib.sha256(content).digest()
        self._last = instance.values, instance.unknowns
        self._stop = limits.stop or (lambda: False)
        self._again = False
        self._began = time.monotonic()
        self._deadline = math.inf
        if limits.seconds is not None:
            self._deadline = self._began + limits.seconds + grace

    def answer(self) -> Answer | None:
        """Return the answer; None if there is no process that could give one."""
        while True:
            process = _mine.process()
            if process is None:
                return None
            early = None if process.ready else self._started(process)
            if early is not None or not process.ready:
                return early
            try:
                self._ask(process)
                found = self._listen(process)
            except InputError:
                raise  # its answer
            except BaseException:  # such as a second Ctrl-C: it still solves
                _mine.end()
                raise
            if found != "again":
                return found

    def _started(self, process: _Process) -> Answer | None:
        """Wait until the process is ready; return an answer if that takes too long."""
        latest = time.monotonic() + START_UP_SECONDS
        message = process.child.wait(min(self._deadline, latest), self._stop)
        if message.kind == "returned":
            process.ready = True
            _mine.failures = 0
        elif message.kind == "late" and latest < self._deadline:
            _mine.failed(f"it was not ready after {START_UP_SECONDS:g} s")
        elif message.kind in ("late", "stopped"):  # it may be ready for the next one
            return self._ended(Outcome.LIMIT, "interrupted before it began")
        else:
            _mine.failed(str(message.content))
        return None

    def _ask(self, process: _Process) -> None:
        known = self._name in process.known
        process.known.pop(self._name, None)
        process.known[self._name] = weakref.ref(self._instance.discretisation)  # used last
        seconds = self._limits.seconds
        if seconds is not None:
            seconds = max(seconds - (time.monotonic() - self._began), 0.0)
        process.child.call(
            _solve,
            process.outdated(),
            self._name,
            None if known else self._content,
            self._solver,
            self._instance.formulation,
            self._instance.values,
            self._instance.unknowns,
            replace(self._limits, seconds=seconds, stop=None),
            sends=True,
        )

    def _listen(self, process: _Process) -> Answer | Literal["again"] | None:
        """Return the answer of the process, or what takes its place; None if it cannot solve it."""
        child, asked = process.child, False
        while True:
            message = child.wait(self._deadline, (lambda: False) if asked else self._stop)
            if message.kind == "returned":
                found: Answer = message.content
                return found
            if message.kind == "sent":
                self._last = message.content
            elif message.kind == "stopped":
                child.ask_to_stop()
                self._deadline = min(self._deadline, time.monotonic() + self._grace)
                asked = True
            elif message.kind == "late":
                _mine.end()
                return self._ended(Outcome.LIMIT, self._overdue(asked))
            elif message.kind == "raised":
                del process.known[self._name]
                return None  # it cannot be loaded there, or fails here as well
            elif child.exit_code == 0 and not self._again:
                self._again = True
                return "again"  # its time without work was up just when it was asked
            else:
                reason = message.content
                LOGGER.warning("%s: %s; another one is started", self._solver.name, reason)
                return self._ended(Outcome.FAILED, reason)

    def _ended(self, outcome: Outcome, message: str) -> Answer:
        values, unknowns = (None, None) if outcome is Outcome.FAILED else self._last
        seconds = time.monotonic() - self._began
        return make_answer(self._instance, outcome, values, unknowns, None, seconds, message)

    def _overdue(self, asked: bool) -> str:
        seconds = time.monotonic() - self._began
        what = "when it was asked to" if asked else f"at its limit of {self._limits.seconds:g} s"
        return f"it did not stop {what}; its process was ended after {seconds:.1f} s"


# In the child ---------------------------------------------------------------------------------

_kept: dict[bytes, Discretisation] = {}


def _ready() -> None:
    """Do nothing: importing this module is what takes time."""


def _solve(
    outdated: Iterable[bytes],
    name: bytes,
    content: bytes | None,
    solver: ReportingSolver,
    formulation: Formulation,
    values: Array | None,
    unknowns: Array | None,
    limits: Limits,
    line: Line,
) -> Answer:
    """Solve in the child.

    Parameters
    ----------
    outdated
        Names of discretised problems that are not needed any more.
    name, content
        Name of the discretised problem, and itself if it is new.
    solver, formulation, values, unknowns, limits
        As for :meth:`Solver.solve`.
    line
        Takes iterates, and tells whether to stop.
    """
    for other in outdated:
        _kept.pop(other, None)
    if content is not None:
        _kept[name] = pickle.loads(content)

    def tell(values: Array | None, unknowns: Array | None, _: float | None) -> None:
        if values is not None and unknowns is not None:
            line((values, unknowns))

    instance = Instance(_kept[name], formulation, values, unknowns)
    return solver.follow(instance, replace(limits, stop=_now_and_then(line.asked_to_stop)), tell)


def _now_and_then(look: Callable[[], bool]) -> Callable[[], bool]:
    """Return what `look` returned last, which costs a system call and is done now and then."""
    due, last = time.monotonic(), False

    def stop() -> bool:
        nonlocal due, last
        now = time.monotonic()
        if now >= due:
            due, last = now + LOOK_SECONDS, look()
        return last

    return stop
