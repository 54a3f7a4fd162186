"""What runs in a worker: it keeps what many tasks share, and does batches of these.

A parcel is a pickled object that is known by the hash of its bytes. A batch names the parcels that
it needs. A worker that lacks one says so, and gets the batch again with the parcel; so a problem
goes to each worker once, whatever the executor is.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, TypeVar

from odefit.common.packages import installed, installed_version

T = TypeVar("T")

KEPT_PARCELS = 64
"""Number of parcels that a worker process keeps, those that were used last."""

VERSIONS = ("odefit", "numpy", "scipy", "heyoka", "casadi", "numba")
"""Packages whose versions a worker tells: numbers depend on them."""


@dataclass(frozen=True)
class Work:
    """Work of one kind: functions that are called with one task after the other.

    Attributes
    ----------
    begin
        Makes what all tasks need, such as a compiled model; it is kept for each thread.
    run
        Does a task: it is called with that, and with the task.
    """

    begin: Callable[[], Any]
    run: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Parcel:
    """A pickled object.

    Attributes
    ----------
    name
        The hash of its bytes.
    content
        The bytes.
    """

    name: str
    content: bytes

    @classmethod
    def of(cls, thing: object) -> Parcel:
        """Return an object as a parcel."""
        content = _dumps(thing)
        return cls(hashlib.sha256(content).hexdigest(), content)


class Outcome(TypedDict):
    """What became of a task: its value, or the exception that it raised."""

    value: Any
    error: BaseException | None


class Reply(TypedDict):
    """What a worker answers to a batch; plain, so that other versions of odefit can read it.

    Attributes
    ----------
    worker
        Host and number of its process.
    versions
        Versions of Python and of packages there.
    missing
        Names of parcels that the worker lacks; nothing was done then.
    outcomes
        The pickled list of outcomes, in the order of the tasks; None if nothing was done.
    seconds, cpu_seconds
        Time that the tasks took, and how much of it the processor was busy with them.
    """

    worker: str
    versions: dict[str, str]
    missing: list[str]
    outcomes: bytes | None
    seconds: float
    cpu_seconds: float


def run_batch(
    version: str, names: tuple[str, str], parcels: Mapping[str, bytes], tasks: bytes
) -> Reply:
    """Do the tasks of a batch in this process.

    Parameters
    ----------
    version
        The version of odefit that has sent the batch: another one does nothing.
    names
        Names of the two parcels with the functions of the :class:`Work`.
    parcels
        Parcels by their name, as far as they come along.
    tasks
        The pickled list of tasks.
    """
    with _lock:
        for name, content in parcels.items():
            _kept[name] = content
        while len(_kept) > KEPT_PARCELS:
            _kept.popitem(last=False)
        missing = [name for name in names if name not in _kept]
        known = {name: _kept[name] for name in names if name in _kept}
        for name in known:
            _kept.move_to_end(name)
    reply = Reply(
        worker=this_worker(),
        versions=versions(),
        missing=missing,
        outcomes=None,
        seconds=0.0,
        cpu_seconds=0.0,
    )
    if missing or versions()["odefit"] != version:
        return reply
    outcomes: list[Outcome] = []
    try:
        first, second = names
        begun = remembered(first.encode(), lambda: pickle.loads(known[first])())
        run = _function(second, known[second])
        given = pickle.loads(tasks)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the outcome of each task
        count = len(pickle.loads(tasks))
        reply["outcomes"] = _pickled([Outcome(value=None, error=error)] * count)
        return reply
    began, began_cpu = time.perf_counter(), time.thread_time()
    with _at_work():
        for task in given:
            try:
                outcomes.append(Outcome(value=run(begun, task), error=None))
            except Exception as error:  # noqa: BLE001 - whatever it raises is the task's outcome
                outcomes.append(Outcome(value=None, error=error))
    reply["seconds"] = time.perf_counter() - began
    reply["cpu_seconds"] = time.thread_time() - began_cpu
    reply["outcomes"] = _pickled(outcomes)
    return reply


class _Memory(threading.local):
    """What a thread keeps: the object that it made last, and functions by their parcel."""

    key: bytes | None = None
    made: Any = None
    busy: bool = False

    def __init__(self) -> None:
        self.functions: OrderedDict[str, Callable[[Any, Any], Any]] = OrderedDict()


_memory = _Memory()
_kept: OrderedDict[str, bytes] = OrderedDict()
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
    """Note that this process hands out batches: it is no worker, though its threads may do some."""
    _senders.add(os.getpid())  # by its number, which a worker that is forked from it has not


def in_worker() -> bool:
    """Return whether this is a task that another process has sent: a crash costs a worker alone."""
    return _memory.busy and os.getpid() not in _senders


def remembered(key: bytes, make: Callable[[], T]) -> T:
    """Return what `make` makes, or made last in this thread for the same `key`.

    Worker processes keep compiled models with this from one task to the next, one for each thread
    because an integrator serves one thread at a time.
    """
    if _memory.key != key:
        _memory.made, _memory.key = make(), key
    found: T = _memory.made
    return found


def _function(name: str, content: bytes) -> Callable[[Any, Any], Any]:
    """Return the function of a parcel; those of a few are kept, as searches take turns."""
    kept = _memory.functions
    if name not in kept:
        kept[name] = pickle.loads(content)
        while len(kept) > 8:
            kept.popitem(last=False)
    kept.move_to_end(name)
    return kept[name]


def _dumps(thing: object) -> bytes:
    """Pickle an object, what a user defined in a script or a notebook included where possible."""
    if installed("cloudpickle"):
        import cloudpickle

        return bytes(cloudpickle.dumps(thing))
    return pickle.dumps(thing)


def _pickled(outcomes: list[Outcome]) -> bytes:
    """Pickle outcomes; an exception that cannot be pickled is told as a text."""
    try:
        return pickle.dumps(outcomes)
    except Exception:  # noqa: BLE001 - pickle lets through whatever an object's methods raise
        return pickle.dumps([_plain(outcome) for outcome in outcomes])


def _plain(outcome: Outcome) -> Outcome:
    """Return an outcome that pickle can take."""
    try:
        pickle.dumps(outcome)
    except Exception as trouble:  # noqa: BLE001 - see above
        error = outcome["error"]
        said = f"{type(error).__name__}: {error}" if error is not None else str(trouble)
        return Outcome(value=None, error=RuntimeError(said))
    return outcome


@cache
def _host() -> str:
    return socket.gethostname()


def this_worker() -> str:
    """Return the host and the number of this process."""
    return f"{_host()}/{os.getpid()}"


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which numbers depend."""
    found = {name: installed_version(name) or "none" for name in VERSIONS}
    return {"Python": platform.python_version()} | found
