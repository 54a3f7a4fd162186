"""Batches of tasks in a worker, which caches the objects that many tasks share.

A parcel is a pickled object with the hash of its bytes as its name. A batch names the parcels that
it needs. A worker that lacks one does nothing, and gets the batch again with the parcels; so a
problem is sent to each worker once, whatever the executor.
"""

from __future__ import annotations

import os
import pickle
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, TypeVar

from odefit.common.packages import installed, numeric_versions

T = TypeVar("T")

KEPT_PARCELS = 64  # number of parcels that a worker process caches, the last ones used
KEPT_FUNCTIONS = 8  # number of unpickled functions that a thread caches, as searches take turns


@dataclass(frozen=True)
class Work:
    """Work of one kind: functions that are called with one task after another."""

    begin: Callable[[], Any]
    """Makes the object that all tasks need, such as a compiled model; each thread caches it."""
    run: Callable[[Any, Any], Any]
    """Does a task: it is called with that object and the task."""


@dataclass(frozen=True)
class Parcel:
    """A pickled object; its name is the hash of the bytes."""

    name: str
    content: bytes

    @classmethod
    def of(cls, payload: object) -> Parcel:
        """Return an object as a parcel, even if a user defined it in a script or notebook."""
        if installed("cloudpickle"):
            import cloudpickle

            content = bytes(cloudpickle.dumps(payload))
        else:
            content = pickle.dumps(payload)
        import hashlib  # a program that sends no work saves the import

        return cls(hashlib.sha256(content).hexdigest(), content)


class Outcome(TypedDict):
    """The value of a task, or the exception that it raised."""

    value: Any
    error: BaseException | None


class Reply(TypedDict):
    """The answer of a worker to a batch, in plain types that other versions of odefit can read."""

    worker: str
    versions: dict[str, str]
    outcomes: bytes | None
    """The pickled list of outcomes, in the order of the tasks; None if nothing was done."""
    seconds: float
    cpu_seconds: float


def run_batch(
    version: str, names: tuple[str, str], parcels: Mapping[str, bytes], tasks: bytes
) -> Reply:
    """Do a pickled list of tasks in this process.

    `version` is that of the odefit that sent the batch: another version does nothing. `names` are
    those of the two parcels of the :class:`Work`; `parcels` holds those that were sent along.
    """
    with _lock:
        _parcels.update(parcels)
        while len(_parcels) > KEPT_PARCELS:
            _parcels.popitem(last=False)
        known = {name: _parcels[name] for name in names if name in _parcels}
        for name in known:
            _parcels.move_to_end(name)
    reply = Reply(
        worker=this_worker(), versions=versions(), outcomes=None, seconds=0.0, cpu_seconds=0.0
    )
    first, second = names
    if not {first, second} <= known.keys() or versions()["odefit"] != version:
        return reply
    try:
        begun = remembered(first.encode(), lambda: pickle.loads(known[first])())
        run = _function(second, known[second])
        unpickled = pickle.loads(tasks)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the outcome of each task
        failed = [Outcome(value=None, error=error)] * len(pickle.loads(tasks))
        reply["outcomes"] = _pickled(failed)
        return reply
    outcomes: list[Outcome] = []
    began, began_cpu = time.perf_counter(), time.thread_time()
    with _at_work():
        for task in unpickled:
            try:
                outcomes.append(Outcome(value=run(begun, task), error=None))
            except Exception as error:  # noqa: BLE001 - whatever it raises is the task's outcome
                outcomes.append(Outcome(value=None, error=error))
    reply["seconds"] = time.perf_counter() - began
    reply["cpu_seconds"] = time.thread_time() - began_cpu
    reply["outcomes"] = _pickled(outcomes)
    return reply


class _Memory(threading.local):
    """The cache of a thread: the object that it made last, and functions by parcel."""

    key: bytes | None = None
    made: Any = None
    busy: bool = False

    def __init__(self) -> None:
        self.functions: OrderedDict[str, Callable[[Any, Any], Any]] = OrderedDict()


_memory = _Memory()
_parcels: OrderedDict[str, bytes] = OrderedDict()
_lock = threading.Lock()
_senders: set[int] = set()


@contextmanager
def _at_work() -> Iterator[None]:
    _memory.busy = True
    try:
        yield
    finally:
        _memory.busy = False


def note_sender() -> None:
    """Record that this process sends batches; it is not a worker, even if its threads run some."""
    _senders.add(os.getpid())  # by its number, which a worker forked from it does not share


def in_worker() -> bool:
    """Return whether another process has sent this task: a crash then costs only a worker."""
    return _memory.busy and os.getpid() not in _senders


def remembered(key: bytes, make: Callable[[], T]) -> T:
    """Return the object that `make` makes, or that this thread made last for the same `key`.

    Worker processes use this to cache compiled models between tasks, one for each thread because an
    integrator serves one thread at a time.
    """
    if _memory.key != key:
        _memory.made, _memory.key = make(), key
    made: T = _memory.made
    return made


def _function(name: str, content: bytes) -> Callable[[Any, Any], Any]:
    """Return the function of a parcel."""
    functions = _memory.functions
    if name not in functions:
        functions[name] = pickle.loads(content)
        while len(functions) > KEPT_FUNCTIONS:
            functions.popitem(last=False)
    functions.move_to_end(name)
    return functions[name]


def _pickled(outcomes: list[Outcome]) -> bytes:
    """Pickle outcomes; an exception that cannot be pickled is replaced by its text."""
    try:
        return pickle.dumps(outcomes)
    except Exception:  # noqa: BLE001 - pickle lets through whatever an object's methods raise
        return pickle.dumps([_plain(outcome) for outcome in outcomes])


def _plain(outcome: Outcome) -> Outcome:
    """Return an outcome that can be pickled."""
    try:
        pickle.dumps(outcome)
    except Exception as trouble:  # noqa: BLE001 - see above
        error = outcome["error"]
        text = f"{type(error).__name__}: {error}" if error is not None else str(trouble)
        return Outcome(value=None, error=RuntimeError(text))
    return outcome


def this_worker() -> str:
    """Return the host and the number of this process."""
    return f"{platform.node()}/{os.getpid()}"


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which numbers depend."""
    return {"Python": platform.python_version()} | numeric_versions()
