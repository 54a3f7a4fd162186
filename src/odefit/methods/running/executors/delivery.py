"""What the sender knows of its workers: who has which parcel, how long tasks take, who did what."""

from __future__ import annotations

import pickle
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

from odefit.common.errors import InputError
from odefit.methods.running.executors.batch import (
    Parcel,
    Reply,
    Work,
    note_sender,
    run_batch,
    versions,
)
from odefit.methods.running.executors.health import Health
from odefit.methods.running.executors.sizes import updated


@dataclass
class Share:
    """What one worker process has done.

    Attributes
    ----------
    tasks
        Number of tasks.
    seconds, cpu_seconds
        Time that they took there, and how much of it the processor was busy with them.
    """

    tasks: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class _Sent:
    """What is known of one kind of work: its parcels, who has them, and the time of a task."""

    work: Work
    parcels: tuple[Parcel, Parcel]
    holders: set[str] = field(default_factory=set)
    carried: int = 0
    seconds: float | None = None


class Delivery:
    """Sends batches to executors, and reads the replies.

    Parameters
    ----------
    remarks
        Takes what users have to know of the workers, as sentences.

    Attributes
    ----------
    shares
        What each worker process has done, by host and process number.
    batches
        Number of batches that were sent.
    carried
        Bytes of parcels among them.
    """

    def __init__(self, remarks: list[str]) -> None:
        self.shares: dict[str, Share] = {}
        self.batches = self.carried = 0
        self._remarks = remarks
        self._sent: dict[int, _Sent] = {}
        self._begins: dict[int, tuple[object, Parcel]] = {}

    def send(
        self, executor: Executor, health: Health, work: Work, tasks: list[Any], whole: bool = False
    ) -> Future[Reply]:
        """Submit a batch.

        The parcels come along with the first batches, one for each worker, and with those that
        a worker could not do without them (`whole`).
        """
        note_sender()
        sent = self._known(work)
        first = sent.carried < (health.workers() or 1)
        carries = whole or first
        sent.carried += first
        content = {p.name: p.content for p in sent.parcels} if carries else {}
        self.batches += 1
        self.carried += sum(map(len, content.values()))
        names = sent.parcels[0].name, sent.parcels[1].name
        future: Future[Reply] = executor.submit(
            run_batch, versions()["odefit"], names, content, pickle.dumps(tasks), **health.options
        )
        return future

    def seconds(self, work: Work) -> float | None:
        """Return the time of a task; None while it is not known."""
        return self._known(work).seconds

    def read(self, work: Work, reply: Reply, count: int) -> list[Any] | None:
        """Return the outcomes of a batch; None if the worker lacked parcels.

        Raises
        ------
        InputError
            The worker has another version of odefit.
        """
        sent, worker = self._known(work), reply["worker"]
        self._compare(worker, reply["versions"])
        if reply["outcomes"] is None:
            return None
        sent.holders.add(worker)
        sent.seconds = updated(sent.seconds, reply["seconds"], count)
        share = self.shares.setdefault(worker, Share())
        share.tasks += count
        share.seconds += reply["seconds"]
        share.cpu_seconds += reply["cpu_seconds"]
        found: list[Any] = pickle.loads(reply["outcomes"])
        return found

    def _known(self, work: Work) -> _Sent:
        """Return what is known of work; it is pickled once, and `begin` once for all that share it.

        The objects are held, so that the numbers by which they are known stay theirs.
        """
        if id(work) not in self._sent:
            if id(work.begin) not in self._begins:
                self._begins[id(work.begin)] = work.begin, Parcel.of(work.begin)
            parcels = self._begins[id(work.begin)][1], Parcel.of(work.run)
            self._sent[id(work)] = _Sent(work, parcels)
        return self._sent[id(work)]

    def _compare(self, worker: str, theirs: dict[str, str]) -> None:
        """Refuse workers with another odefit, and remark on other packages that differ."""
        if worker in self.shares:
            return
        ours = versions()
        if theirs.get("odefit") != ours["odefit"]:
            raise InputError(other_version(f"the worker {worker}", theirs.get("odefit", "none")))
        differ = [k for k in ours if k != "odefit" and theirs.get(k) != ours[k]]
        other = [f"{k} {theirs[k]} (here {ours[k]})" for k in differ]
        if other:
            said = f"workers have other versions: {', '.join(other)}; last digits may differ"
            if said not in self._remarks:
                self._remarks.append(said)


def other_version(who: str, theirs: str) -> str:
    """Return the sentence that somebody has another version of odefit."""
    ours = versions()["odefit"]
    has = "has no odefit" if theirs == "none" else f"has odefit {theirs}"
    return f"{who} {has}, this process {ours}: install odefit {ours} there"
