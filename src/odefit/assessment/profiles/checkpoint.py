"""Finished sides of profiles in a checkpoint, so that they are not traced again after a kill."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from odefit.assessment.profiles.parts import End, Side
from odefit.assessment.profiles.tasks import Task
from odefit.common.arrays import Array
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.start_checkpoint import numbers


class SideCheckpoint:
    """The finished sides of the profiles of one fit."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._added: dict[str, Side] = {}

    def find(self, task: Task, vector: Array) -> Side | None:
        """Return a finished side of a profile at this optimum, or None."""
        name = _name(task, vector)
        if name in self._added:
            return self._added[name]
        record = self._checkpoint.records.get(name)
        return None if record is None else _from_json(record, len(vector))

    def add(self, task: Task, vector: Array, side: Side) -> None:
        """Store a finished side, unless its worker died before it had an end."""
        if side.end == "stopped" or side.vectors.shape[1] != len(vector):
            return
        name = _name(task, vector)
        self._added[name] = side
        record: dict[str, Any] = {}
        for field in fields(Side):
            value = getattr(side, field.name)
            record[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        self._checkpoint.put(name, record)

    def __enter__(self) -> SideCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._checkpoint.close()


def _from_json(record: Any, n: int) -> Side | None:
    """Return the side of a record; None if the record is damaged: it counts as not done."""
    try:
        at = numbers(record["at"])
        rows = [numbers(row, n) for row in record["vectors"]]
        better = numbers(record["better"])
        if record["end"] not in get_args(End) or len(rows) != len(at) or len(better) not in (0, n):
            return None
        if not np.isfinite(at).all():
            return None
        return Side(
            at,
            numbers(record["deviances"], len(at)),
            numbers(record["slopes"], len(at)),
            np.array(rows).reshape(len(at), n),
            float(record["limit"]),
            record["end"],
            str(record["reason"]),
            better,
            int(record["evaluations"]),
            int(record["minimisations"]),
            np.array([numbers(row, n) for row in record["optima"]]).reshape(-1, n),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _name(task: Task, vector: Array) -> str:
    """Return the key of a record: the side or point, the optimum, and the start."""
    starts = [np.array(values).tobytes() for values in (task.start, task.fit)]
    digest = hashlib.sha256(vector.tobytes() + b"".join(starts)).hexdigest()[:16]
    where = f" at {task.at!r}" if task.fit else ""
    return f"{task.sign:+d} {digest} {task.key}{' inwards' * task.inward}{where}"
