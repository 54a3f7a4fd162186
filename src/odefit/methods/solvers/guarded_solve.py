"""Solvers in separate processes: a crash or a hang costs no more than one solve.

Solvers are compiled code from many authors: some overrun their time limit, some crash, and IPOPT
and similar solvers may hang within an iteration. A global solver gets a process for each solve
(:func:`solve_isolated`). That would be too slow for local solvers, as a method with many starts has
hundreds of solves of some hundredths of a second. So a thread keeps one process for them
(:func:`solve_locally`), which receives each discretised problem once.

In a worker process a local solver runs directly: a crash there kills the worker, and
:mod:`odefit.methods.running.dispatch` reports a failed start.
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

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Formulation
from odefit.discretisation.instance import Instance
from odefit.methods.running.child import CAN_START, Child, Line, Send
from odefit.methods.running.run_log import LOGGER
from odefit.methods.running.worker import in_worker
from odefit.methods.solvers.solver import (
    Answer,
    Limits,
    Outcome,
    Report,
    ReportingSolver,
    Solver,
    make_answer,
)

START_UP_SECONDS = 120.0
"""Seconds that a process may take to import its packages and discretise the problem."""

GRACE_PERIOD = 30.0  # seconds past its limit after which a global solver is stopped

LEAST_RETRY_SECONDS = 1.0
"""Remaining seconds of the time limit required for another attempt after a crash."""

GRACE_SECONDS = 2.0
"""Seconds past its time limit, or after a request to stop, that a local solver has to answer."""

IDLE_SECONDS = 60.0
"""Seconds without a solve after which the kept process ends; the next one starts another."""

LOOK_SECONDS = 0.05  # seconds between two checks of a local solver for a request to stop
MOST_KEPT = 8  # largest number of discretised problems in the kept process
MOST_FAILURES = 2  # number of failed starts of kept processes after which no more are tried


class _Solve:
    """One solve as its parent sees it: the last point and bound, and its latest end."""

    def __init__(self, instance: Instance, limits: Limits, grace: float) -> None:
        self.instance, self.limits, self.grace = instance, limits, grace
        self.point: tuple[Array | None, Array | None] = (None, None)
        self.bound: float | None = None
        self.begin()

    def begin(self) -> None:
        """Begin the time limit now."""
        self.began = time.monotonic()
        seconds = self.limits.seconds
        self.deadline = math.inf if seconds is None else self.began + seconds + self.grace

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    def ended(self, outcome: Outcome, message: str) -> Answer:
        """Return the last point and bound as the answer."""
        point, seconds = self.point, self.seconds
        return make_answer(self.instance, outcome, *point, self.bound, seconds, message)


def solve_isolated(
    solver: Solver,
    instance: Instance,
    limits: Limits,
    report: Report | None = None,
    stop: Callable[[], bool] = lambda: False,
    grace: float = GRACE_PERIOD,
    memory: int = 0,
) -> Answer:
    """Return the answer of `solver` in a separate process, which may use `memory` bytes.

    The answer is ``LIMIT`` if the process was stopped from outside, by `stop`, Ctrl-C or `grace`
    seconds past the time limit, and ``FAILED`` if it died. Both contain the best point and bound
    reported so far, and the reason. A solver that refuses the problem or its options raises
    InputError. `report` is called with the best objective (infinite without a point) and the lower
    bound (minus infinity without one) whenever the solver reports.
    """
    began = time.monotonic()

    def once(limits: Limits, reporting: bool) -> tuple[Answer, bool]:
        """Return the answer of one process, and whether it has crashed."""
        solve = _Solve(instance, limits, grace)
        solve.deadline = time.monotonic() + START_UP_SECONDS
        child = Child(memory, "the solver process")
        try:
            sent = replace(limits, stop=None)
            child.call(_solve_alone, solver, instance, sent, reporting, sends=True)
            return _followed(solve, child, report, stop), child.crashed
        except KeyboardInterrupt:
            return solve.ended(Outcome.LIMIT, "interrupted"), False
        finally:
            child.kill()

    reporting = isinstance(solver, ReportingSolver)
    answer, crashed = once(limits, reporting)
    left = None if limits.seconds is None else limits.seconds - (time.monotonic() - began)
    if crashed and reporting and (left is None or left > LEAST_RETRY_SECONDS):
        # Reports are known to crash SCIP occasionally: try once more without them.
        again, _ = once(replace(limits, seconds=left), reporting=False)
        if again.outcome is not Outcome.FAILED:
            return again
    return answer


def _followed(
    solve: _Solve, child: Child, report: Report | None, stop: Callable[[], bool]
) -> Answer:
    """Return the answer of the process, or the best so far if it has to be stopped."""
    objective, started = math.inf, False
    while True:
        message = child.wait(solve.deadline, stop)
        content = message.content
        if message.kind == "returned":
            answer: Answer = content
            return answer
        if message.kind == "stopped":
            return solve.ended(Outcome.LIMIT, "interrupted")
        if message.kind == "late":
            text = f"the solver process did not start within {START_UP_SECONDS:g} s"
            if started:
                text = (
                    f"the solver did not stop at its time limit of {solve.limits.seconds:g} s; "
                    f"its process was ended after {solve.seconds:.1f} s"
                )
            return solve.ended(Outcome.LIMIT, text)
        if message.kind == "raised":
            return solve.ended(Outcome.FAILED, f"the solver failed: {content}")
        if message.kind == "died":
            return solve.ended(Outcome.FAILED, content)
        if content is None:  # the solver starts now
            started = True
            solve.begin()
            continue
        values, unknowns, bound = content
        if values is not None and unknowns is not None:
            reached = solve.instance.discretisation.objective(values, unknowns)
            if math.isfinite(reached):
                solve.point, objective = (values, unknowns), reached
        if bound is not None and math.isfinite(bound):
            solve.bound = bound if solve.bound is None else max(bound, solve.bound)
        if report is not None:
            report(objective, -math.inf if solve.bound is None else solve.bound)


def _solve_alone(
    solver: Solver, instance: Instance, limits: Limits, reporting: bool, send: Send
) -> Answer:
    """Solve in the child, sending best points and bounds as they come."""
    send(None)
    if reporting and isinstance(solver, ReportingSolver):
        return solver.follow(instance, limits, lambda *progress: send(progress))
    return solver.solve(instance, limits)


def solve_locally(
    solver: Solver, instance: Instance, limits: Limits, grace: float = GRACE_SECONDS
) -> Answer:
    """Return the answer of ``solver.solve(instance, limits)``, to the last bit, in any case.

    Local solvers that ship with CasADi run in the kept process of this thread. All others run here,
    and so do problems that cannot be pickled, or all if no process can be started. The answer is
    ``FAILED`` without a point if the process died. It is ``LIMIT`` with the last iterate, or the
    start, if the process was stopped `grace` seconds after the time limit or ``limits.stop``.
    """
    if not _runs_in_kept_process(solver):
        return solver.solve(instance, limits)
    try:
        content = pickle.dumps(instance.discretisation)
        pickle.dumps((solver, instance.formulation))
    except Exception:  # noqa: BLE001 - pickle lets through whatever an object's methods raise
        return solver.solve(instance, limits)
    answer = _LocalSolve(solver, instance, limits, grace, content).answer()
    return solver.solve(instance, limits) if answer is None else answer


def start_early(solver: Solver) -> None:
    """Start the process of this thread if `solver` will soon need it."""
    if _runs_in_kept_process(solver):
        _of_thread.process()


def process_number() -> int | None:
    """Return the number of the process that this thread keeps, or None if it has none."""
    process = _of_thread.running
    return None if process is None or process.child.gone else process.child.pid


def _runs_in_kept_process(solver: Solver) -> bool:
    return solver.scope == "local" and isinstance(solver, ReportingSolver) and not in_worker()


class _KeptProcess:
    """A process, and the discretised problems that it knows, by their hash."""

    def __init__(self) -> None:
        self.child = Child(who="its process", idle=IDLE_SECONDS)
        self.child.call(_ready)
        self.ready = False
        self.known: dict[bytes, weakref.ref[Discretisation]] = {}
        # At the end of its thread, or of this process.
        weakref.finalize(self, self.child.kill)

    def forget(self) -> list[bytes]:
        """Return the names of problems that the process may forget; remove them from `known`."""
        used = [name for name, problem in self.known.items() if problem() is not None]
        outdated = [name for name in self.known if name not in used[-MOST_KEPT:]]
        for name in outdated:
            del self.known[name]
        return outdated


class _OfThread(threading.local):
    """The process of a thread: on Linux it would end with the thread that started it."""

    running: _KeptProcess | None = None
    failures = 0

    def process(self) -> _KeptProcess | None:
        """Return the process, started if need be; None if that is impossible."""
        if self.running is not None and self.running.child.owner != os.getpid():
            _of_parent.append(
                self.running
            )  # this process was forked; the other belongs to its parent
            self.running = None
        if self.running is not None and self.running.child.gone:
            self.end()
        if self.running is None and CAN_START and self.failures < MOST_FAILURES:
            try:
                self.running = _KeptProcess()
            except OSError as error:
                self.failed(str(error))
        return self.running

    def end(self) -> None:
        """End the process."""
        if self.running is not None:
            self.running.child.kill()
        self.running = None

    def failed(self, reason: str) -> None:
        """Record that a process could not be started."""
        self.failures += 1
        LOGGER.warning("no process could be started for local solvers: %s", reason)
        self.end()


_of_thread = _OfThread()
_of_parent: list[_KeptProcess] = []
"""Processes of the process from which this one was forked, held so that no warning is raised."""


class _LocalSolve(_Solve):
    """One solve by the kept process."""

    def __init__(
        self, solver: Solver, instance: Instance, limits: Limits, grace: float, content: bytes
    ) -> None:
        super().__init__(instance, limits, grace)
        self._solver = solver
        self._content, self._name = content, hashlib.sha256(content).digest()
        self.point = instance.values, instance.unknowns
        self._stop = limits.stop or (lambda: False)
        self._repeated = False

    def answer(self) -> Answer | None:
        """Return the answer; None if there is no process that could give it."""
        process = _of_thread.process()
        if process is None:
            return None
        early = None if process.ready else self._started(process)
        if early is not None or not process.ready:
            return early
        try:
            self._ask(process)
            return self._listen(process)
        except InputError:
            raise  # its answer
        except BaseException:  # such as a second Ctrl-C: the process still solves
            _of_thread.end()
            raise

    def _started(self, process: _KeptProcess) -> Answer | None:
        """Wait until the process is ready; return an answer if that takes too long."""
        latest = time.monotonic() + START_UP_SECONDS
        message = process.child.wait(min(self.deadline, latest), self._stop)
        if message.kind == "returned":
            process.ready = True
            _of_thread.failures = 0
        elif message.kind == "late" and latest < self.deadline:
            _of_thread.failed(f"it was not ready after {START_UP_SECONDS:g} s")
        elif message.kind in ("late", "stopped"):  # it may be ready for the next solve
            return self.ended(Outcome.LIMIT, "interrupted before it began")
        else:
            _of_thread.failed(str(message.content))
        return None

    def _ask(self, process: _KeptProcess) -> None:
        known = self._name in process.known
        process.known.pop(self._name, None)
        process.known[self._name] = weakref.ref(self.instance.discretisation)  # used last
        seconds = self.limits.seconds
        if seconds is not None:
            seconds = max(seconds - self.seconds, 0.0)
        process.child.call(
            _solve_kept,
            process.forget(),
            self._name,
            None if known else self._content,
            self._solver,
            self.instance.formulation,
            self.point,
            replace(self.limits, seconds=seconds, stop=None),
            sends=True,
        )

    def _listen(self, process: _KeptProcess) -> Answer | None:
        """Return the answer of the process or a substitute; None if it cannot solve the problem."""
        child, asked = process.child, False
        while True:
            message = child.wait(self.deadline, (lambda: False) if asked else self._stop)
            if message.kind == "returned":
                answer: Answer = message.content
                return answer
            if message.kind == "sent":
                self.point = message.content
            elif message.kind == "stopped":
                child.ask_to_stop()
                self.deadline = min(self.deadline, time.monotonic() + self.grace)
                asked = True
            elif message.kind == "late":
                _of_thread.end()
                when = (
                    "when it was asked to"
                    if asked
                    else f"at its limit of {self.limits.seconds:g} s"
                )
                text = f"it did not stop {when}; its process was ended after {self.seconds:.1f} s"
                return self.ended(Outcome.LIMIT, text)
            elif message.kind == "raised":
                del process.known[self._name]
                return None  # the problem cannot be loaded there, or fails here as well
            elif child.exit_code == 0 and not self._repeated:
                self._repeated = True
                return self.answer()  # its idle time expired just when it was called
            else:
                reason = message.content
                LOGGER.warning("%s: %s; another one is started", self._solver.name, reason)
                self.point = None, None
                return self.ended(Outcome.FAILED, reason)


_kept_in_child: dict[bytes, Discretisation] = {}


def _ready() -> None:
    """Do nothing: the import of this module is what takes time."""


def _solve_kept(
    outdated: Iterable[bytes],
    name: bytes,
    content: bytes | None,
    solver: ReportingSolver,
    formulation: Formulation,
    start: tuple[Array | None, Array | None],
    limits: Limits,
    line: Line,
) -> Answer:
    """Solve in the child a discretised problem that is known by `name`, or sent as `content`."""
    for other in outdated:
        _kept_in_child.pop(other, None)
    if content is not None:
        _kept_in_child[name] = pickle.loads(content)

    def send(values: Array | None, unknowns: Array | None, _: float | None) -> None:
        if values is not None and unknowns is not None:
            line((values, unknowns))

    due, asked = time.monotonic(), False

    def stop() -> bool:
        nonlocal due, asked
        now = time.monotonic()
        if now >= due:  # a check costs a system call
            due, asked = now + LOOK_SECONDS, line.asked_to_stop()
        return asked

    instance = Instance(_kept_in_child[name], formulation, *start)
    return solver.follow(instance, replace(limits, stop=stop), send)
