"""Finished starts in a checkpoint: those completed before a kill are not computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import BoundStep, Start, Status
from odefit.methods.running.checkpoint import Checkpoint, fingerprint
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import REASON
from odefit.simulation.nodes import Nodes


class StartCheckpoint:
    """The finished starts of one piece of work, by index.

    A start with another number of unknowns counts as not done.
    """

    def __init__(self, checkpoint: Checkpoint, unknowns: int) -> None:
        self.checkpoint = checkpoint
        self._unknowns = unknowns
        self.starts: dict[int, Start] = {}
        for key in checkpoint.records:
            start = self.find(key)
            if start is not None and key == str(start.index):
                self.starts[start.index] = start

    @classmethod
    def of(
        cls, control: Control, kind: str, problem: Problem, options: Mapping[str, Any]
    ) -> StartCheckpoint | None:
        """Return the starts of this kind in the file of a run; None if it has no file."""
        checkpoint = opened(control, kind, problem, options)
        return None if checkpoint is None else cls(checkpoint, len(problem.unknowns))

    def add(self, start: Start) -> None:
        """Store a finished start, unless its worker died before it had an end."""
        if len(start.start) == self._unknowns:
            self.starts[start.index] = start
            self.put(str(start.index), start)

    def find(self, key: str) -> Start | None:
        """Return the start under a key; None if it is missing or damaged."""
        record = self.checkpoint.records.get(key)
        return None if record is None else start_from_json(record, self._unknowns)

    def put(self, key: str, start: Start) -> None:
        """Store a start under a key other than its number."""
        self.checkpoint.put(key, start_to_json(start))

    def __enter__(self) -> StartCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.checkpoint.close()


def opened(
    control: Control, kind: str, problem: Problem, options: Mapping[str, Any]
) -> Checkpoint | None:
    """Return the records of one kind of work in the file of a run; None if it has no file."""
    if control.checkpoint is None:
        return None
    kind = f"{control.part}: {kind}" if control.part else kind
    return Checkpoint(control.checkpoint, kind, fingerprint(problem, options))


def start_to_json(start: Start) -> dict[str, Any]:
    """Return a start as a JSON value."""
    return {
        "index": start.index,
        "start": start.start.tolist(),
        "vector": start.vector.tolist(),
        "cost": float(start.cost),
        "objective": float(start.objective),
        "status": start.status.value,
        "message": start.message,
        "evaluations": int(start.evaluations),
        "seconds": float(start.seconds),
        "failures": {str(k): int(v) for k, v in start.failures.items()},
        "exact": bool(start.exact),
        "whole": True,
        "nodes": None if start.nodes is None else _nodes_to_json(start.nodes),
    }


def start_from_json(record: Any, unknowns: int) -> Start | None:
    """Return the start of a record; None if the record is damaged: it counts as not done."""
    try:
        start = Start(
            natural(record["index"]),
            numbers(record["start"], unknowns),
            numbers(record["vector"], unknowns),
            float(record["objective"]),
            Status(record["status"]),
            str(record["message"]),
            natural(record["evaluations"]),
            float(record["seconds"]),
            float(record["cost"]),
            {str(k): natural(v) for k, v in dict(record["failures"]).items()},
            record["exact"] is True,
            _nodes_from_json(record["nodes"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None
    if start.status is not Status.FAILED and np.isnan([*start.vector, start.cost]).any():
        return None
    # Earlier versions stored starts ended by a limit as failed.
    failed = start.status is Status.FAILED and record.get("whole") is not True
    return None if failed or start.failures.get(REASON) else start


def step_to_json(step: BoundStep) -> list[Any]:
    """Return a step of a search as a list of its fields."""
    return [step.stage, step.iteration, step.lower, step.upper, step.seconds]


def step_from_json(record: Any) -> BoundStep:
    """Return the step of a search from a list of its fields; raises ValueError for other values."""
    stage, iteration, *rest = record
    lower, upper, seconds = numbers(rest, 3).tolist()
    return BoundStep(str(stage), natural(iteration), lower, upper, seconds)


def numbers(values: Any, size: int | None = None) -> Array:
    """Return a list of numbers as an array, shape (size,); raises ValueError for anything else."""
    if not isinstance(values, list) or (size is not None and len(values) != size):
        raise ValueError("a list of another length was expected")
    if not all(type(v) in (int, float) for v in values):
        raise ValueError("a list of numbers was expected")
    return np.array(values, dtype=float)


def natural(value: Any) -> int:
    """Return a non-negative integer; raises ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError("a whole number was expected")
    return value


def _nodes_to_json(nodes: Nodes) -> dict[str, Any]:
    return {
        "times": [t.tolist() for t in nodes.times],
        "values": [v.tolist() for v in nodes.values],
        "constraints": list(nodes.constraints),
        "experiments": list(nodes.experiments),
    }


def _nodes_from_json(record: Any) -> Nodes | None:
    if record is None:
        return None
    times = tuple(numbers(t) for t in record["times"])
    values = tuple(_table(v, len(t)) for v, t in zip(record["values"], times, strict=True))
    if len({v.shape[1] for v in values}) > 1:
        raise ValueError("nodes of one width were expected")
    texts = tuple(map(str, record["constraints"])), tuple(map(str, record["experiments"]))
    return Nodes(times, values, *texts)


def _table(rows: Any, count: int) -> Array:
    """Return a list of equally long lists of numbers as an array, shape (count, n)."""
    if not isinstance(rows, list) or len(rows) != count or not rows:
        raise ValueError("a table was expected")
    return np.array([numbers(row, len(rows[0])) for row in rows])
