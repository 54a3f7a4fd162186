"""The workers of a run: an executor of the user, or local processes once they save time."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from odefit.common.errors import InputError
from odefit.common.packages import installed, require
from odefit.methods.running.child import end_with
from odefit.methods.running.control import Control
from odefit.methods.running.run_log import LOGGER
from odefit.methods.running.worker import (
    Outcome,
    Parcel,
    Reply,
    Work,
    note_sender,
    run_batch,
    versions,
)

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

T = TypeVar("T")

IDLE_SECONDS = 30.0  # seconds without work after which a worker process ends

POOL_AFTER_SECONDS = 3.0
"""Seconds of work in this process after which others are started; each takes about a second to
start."""

HELPED_AFTER_SECONDS = 1.5
"""Seconds of work in this process after which others are started, if it continues meanwhile."""

LOOK_SECONDS = 2.0  # seconds between two counts of a cluster's workers

EMPTY_SECONDS = 30.0
"""Seconds without any worker after which a cluster is given up; killed workers are replaced within
a few seconds."""

NEW_TIME_WEIGHT = 0.3  # weight of the next batch in the mean time of a task


@dataclass
class _Sent:
    """The parcels of one kind of work, how often they were sent, and the time of a task."""

    work: Work
    parcels: tuple[Parcel, Parcel]
    carried: int = 0
    seconds: float | None = None


@dataclass
class _Share:
    """The number of tasks that one worker process has done, and their total time."""

    tasks: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


class Workers:
    """A context in which independent work may go to an executor.

    A user's executor is used from the start, left open, and given up if it breaks. Without one,
    processes are started once the work in this process has taken :data:`POOL_AFTER_SECONDS`
    seconds. If this process is `helping`, it does tasks as one of them, and alone until the others
    are ready.
    """

    def __init__(self, control: Control, *, helping: bool = False) -> None:
        self._helping = helping
        self._prepared: Work | None = None
        self._starting: list[Future[Reply]] = []
        self._users_executor = control.executor
        self._remarks = control.remarks
        self._processes = installed("loky")
        self._jobs = control.jobs or (self._processes and os.cpu_count()) or 1
        if self._jobs > 1 and self._users_executor is None and not self._processes:
            require("loky")
        self._pool: ProcessPoolExecutor | None = None
        self._spent = 0.0
        self._lost = False
        self._health: tuple[Executor, Health] | None = None
        self._made: dict[tuple[int, ...], tuple[tuple[object, ...], Any]] = {}
        self._shares: dict[str, _Share] = {}
        self._sent: dict[int, _Sent] = {}
        self._begins: dict[int, tuple[object, Parcel]] = {}
        self.batches = self.carried = 0
        """Number of batches sent, and bytes of the parcels among them."""
        self.fruitless = 0
        """Number of failed batches since the executor began; -1 once it has completed one.
        """

    # Who does the work ------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Number of tasks that run at the same time."""
        if self._users_executor is None:
            return max(self._jobs - self.helped, 1)
        return self.health(self._users_executor).workers() or self._jobs

    @property
    def helped(self) -> bool:
        """True if this process does tasks beside its workers; not after one of them has died."""
        return self._helping and self._users_executor is None and not self._lost

    def cores_of(self, position: int, total: int | None) -> int:
        """Return the number of cores for a task of several that are done together.

        The last tasks, if they are fewer than the workers, share all cores of this computer.
        """
        last = 0 if total is None else total % self._jobs
        if total is None or not last or self._users_executor is not None:
            return 1
        return self._jobs // last if position >= total - last else 1

    def health(self, executor: Executor) -> Health:
        """Return the state of an executor."""
        if self._health is None or self._health[0] is not executor:
            self._health = executor, Health(executor)
        return self._health[1]

    def executor(self) -> Executor | None:
        """Return the executor for the next task; None for this process."""
        if self._users_executor is not None:
            return self._users_executor
        # A task that kills its process may have broken the executor: do not run it here.
        worth = HELPED_AFTER_SECONDS if self._helping else POOL_AFTER_SECONDS
        pays = self._jobs > 1 and self._spent > worth
        if self._pool is None and self._processes and (pays or self._lost):
            self._pool = self._started()
            self._begin(self._pool)
        if self.helped and not all(future.done() for future in self._starting):
            return None
        return self._pool

    def prepare(self, work: Work) -> None:
        """Let all workers make the object of this work as soon as they exist; nothing waits."""
        self._prepared = work
        self._begin(self._users_executor)

    def _begin(self, executor: Executor | None) -> None:
        """Send a batch without tasks to each worker."""
        self._starting = []
        if executor is None or self._prepared is None:
            return
        try:
            count = self.number
            self._starting = [self.send(executor, self._prepared, []) for _ in range(count)]
        except (RuntimeError, OSError) as error:  # told when tasks are sent
            LOGGER.debug("no worker could be prepared: %s", error)

    def _started(self) -> ProcessPoolExecutor | None:
        """Return new worker processes; None for good if the system has no semaphores for them.

        These are files in memory, which some containers lack and limits of file sizes forbid.
        """
        from loky import ProcessPoolExecutor

        try:
            return ProcessPoolExecutor(
                max_workers=self.number,
                timeout=IDLE_SECONDS,
                initializer=end_with,
                initargs=(os.getpid(),),
            )
        except OSError as error:
            remark = f"no worker process can be started, and the work went on here: {error}"
            LOGGER.warning(remark)
            self._remarks.append(remark)
            self._processes = False
            return None

    def lose(self, executor: Executor, reason: str) -> None:
        """Give up an executor and replace it by processes of our own.

        An executor that was given up before is ignored.
        """
        if self.lose_own(executor, reason):
            pass
        elif executor is self._users_executor:
            remark = f"the executor was abandoned, and the work continued in this process: {reason}"
            LOGGER.warning(remark)
            self._remarks.append(remark)
            self._users_executor = None
        else:
            return
        self._lost = True
        self.fruitless = 0

    def lose_own(self, executor: Executor, reason: str) -> bool:
        """End the local processes and return True, if they are this executor."""
        if self._pool is None or executor is not self._pool:
            return False
        LOGGER.warning("the worker processes are replaced: %s", reason)
        pool: ProcessPoolExecutor = self._pool
        pool.shutdown(wait=False, kill_workers=True)
        self._pool, self._lost = None, True
        return True

    def made_once(self, make: Callable[[], T], *of: object) -> T:
        """Return the object that `make` makes of these, made once so that it is sent once."""
        key = tuple(map(id, of))
        if key not in self._made:
            self._made[key] = of, make()  # holds them, so that their numbers are not reused
        made: T = self._made[key][1]
        return made

    def timed(self, work: Callable[[], T]) -> T:
        """Run a task in this process, and add its duration to the total."""
        began = time.perf_counter()
        result = work()
        self.count(time.perf_counter() - began)
        return result

    def count(self, seconds: float) -> None:
        """Add the duration of work in this process to the total."""
        self._spent += seconds
        if self.helped:
            self.executor()  # others start meanwhile

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker, share in sorted(self._shares.items()):
            LOGGER.info(
                "worker %s: %d tasks, %.4g s, processor %.4g s",
                worker,
                share.tasks,
                share.seconds,
                share.cpu_seconds,
            )
        if self._pool is not None:
            # Running starts are no longer useful.
            self._pool.shutdown(wait=True, kill_workers=True)

    # Batches and replies ----------------------------------------------------------------------

    def send(
        self, executor: Executor, work: Work, tasks: list[Any], whole: bool = False
    ) -> Future[Reply]:
        """Submit a batch.

        The parcels are sent with the first batches, one for each worker, and with batches returned
        for lack of them (`whole`).
        """
        note_sender()
        health, sent = self.health(executor), self._of(work)
        first = sent.carried < (health.workers() or 1)
        sent.carried += first
        content = {p.name: p.content for p in sent.parcels} if whole or first else {}
        self.batches += 1
        self.carried += sum(map(len, content.values()))
        names = sent.parcels[0].name, sent.parcels[1].name
        future: Future[Reply] = executor.submit(
            run_batch, versions()["odefit"], names, content, pickle.dumps(tasks), **health.options
        )
        return future

    def read(self, work: Work, reply: Reply, count: int) -> list[Outcome] | None:
        """Return the outcomes of a batch of `count` tasks; None if the worker lacked parcels.

        Raises InputError for a worker with another version of odefit.
        """
        sent, worker = self._of(work), reply["worker"]
        if worker not in self._shares:
            self._compare(worker, reply["versions"])
        if reply["outcomes"] is None:
            return None
        mean = reply["seconds"] / count
        known = mean if sent.seconds is None else sent.seconds
        sent.seconds = (1 - NEW_TIME_WEIGHT) * known + NEW_TIME_WEIGHT * mean
        share = self._shares.setdefault(worker, _Share())
        share.tasks += count
        share.seconds += reply["seconds"]
        share.cpu_seconds += reply["cpu_seconds"]
        outcomes: list[Outcome] = pickle.loads(reply["outcomes"])
        return outcomes

    def seconds(self, work: Work) -> float | None:
        """Return the time of a task; None while it is unknown."""
        return self._of(work).seconds

    def _of(self, work: Work) -> _Sent:
        """Return the record of work; it is pickled once, and so is a `begin` shared by several.

        The objects are held, so that the numbers that identify them are not reused.
        """
        if id(work) not in self._sent:
            if id(work.begin) not in self._begins:
                self._begins[id(work.begin)] = work.begin, Parcel.of(work.begin)
            parcels = self._begins[id(work.begin)][1], Parcel.of(work.run)
            self._sent[id(work)] = _Sent(work, parcels)
        return self._sent[id(work)]

    def _compare(self, worker: str, worker_versions: dict[str, str]) -> None:
        """Refuse workers with another odefit, and report other packages that differ."""
        ours = versions()
        if worker_versions.get("odefit") != ours["odefit"]:
            raise InputError(
                other_version(f"the worker {worker}", worker_versions.get("odefit", "none"))
            )
        differ = [k for k in ours if k != "odefit" and worker_versions.get(k) != ours[k]]
        if differ:
            listed = ", ".join(f"{k} {worker_versions[k]} (here {ours[k]})" for k in differ)
            remark = f"workers have other versions: {listed}; last digits may differ"
            if remark not in self._remarks:
                self._remarks.append(remark)


class Health:
    """The number of workers of any executor, and whether they still work; Dask reports more."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        module = type(executor).__module__.partition(".")[0]
        self._client: Any = getattr(executor, "_client", None) if module == "distributed" else None
        self._count = 0
        self._looked = -float("inf")
        self._seen = time.monotonic()

    @property
    def options(self) -> dict[str, Any]:
        """Options of submission: by default, Dask treats equal tasks as one."""
        return {} if self._client is None else {"pure": False}

    def workers(self) -> int | None:
        """Return the number of tasks that run at the same time; None if it is not reported."""
        if self._client is None:
            for name in ("_max_workers", "num_workers"):
                count = getattr(self._executor, name, None)
                if isinstance(count, int) and count > 0:
                    return count
            return None
        self._look()
        return max(self._count, 1)

    def trouble(self) -> str:
        """Return in words why no further reply is expected; empty if one is."""
        if self._client is None:
            return ""
        if self._client.status != "running":
            return "the connection to the scheduler is lost"
        self._look()
        if self._count == 0 and time.monotonic() - self._seen > EMPTY_SECONDS:
            return f"the cluster has had no workers for {EMPTY_SECONDS:g} s"
        return ""

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS or self._client.status != "running":
            return
        self._looked = now
        try:
            self._count = sum(self._client.nthreads().values())
        except (OSError, TimeoutError):
            return  # the scheduler has just gone: the client will report it
        if self._count:
            self._seen = time.monotonic()


def other_version(who: str, version: str) -> str:
    """Return the sentence that a worker has another version of odefit."""
    ours = versions()["odefit"]
    has = "has no odefit" if version == "none" else f"has odefit {version}"
    return f"{who} {has}, this process {ours}: install odefit {ours} there"
