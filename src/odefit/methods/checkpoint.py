"""Checkpoints on disk: starts that were finished before a kill are not computed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odefit.methods.estimate import Start, Status
from odefit.problem.errors import InputError
from odefit.problem.files import problem_to_mapping
from odefit.problem.problem import Problem
from odefit.simulation.nodes import Nodes

FORMAT = 1
"""Version of the format of checkpoints."""


def fingerprint(problem: Problem, options: Mapping[str, Any]) -> str:
    """Return a hash of what a checkpoint belongs to: the problem with its data, and the options."""
    import hashlib

    text = json.dumps([problem_to_mapping(problem), options], sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return an array as a list (its own text leaves out the middle), all else as a text."""
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


class ForeignCheckpointError(InputError):
    """Raised for a checkpoint that belongs to another fit."""


def header(identity: str) -> str:
    """Return the first line of a checkpoint of the fit with this :func:`fingerprint`."""
    return json.dumps({"odefit checkpoint": FORMAT, "of": identity})


def check_header(path: Path, line: str, identity: str) -> None:
    """Refuse a file whose first line is not the header of the fit with this identity.

    Raises
    ------
    ForeignCheckpointError
        The file belongs to another fit.
    InputError
        The file is no checkpoint.
    """
    found = _parse(line)
    if found is None or found.get("odefit checkpoint") != FORMAT:
        raise InputError(f"{path}: is no checkpoint; name another file or remove it")
    if found.get("of") != identity:
        raise ForeignCheckpointError(
            f"{path}: belongs to another problem, method or seed; name another file or remove it"
        )


def read_text(path: Path) -> str:
    """Return the text of a checkpoint; an empty text where there is no file yet.

    Raises
    ------
    InputError
        The file cannot be read, or its directory does not exist.
    """
    if not path.exists():
        if not path.parent.is_dir():
            raise InputError(f"{path}: the directory {path.parent} does not exist; make it first")
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a checkpoint: {error}") from error


class Checkpoint:
    """A file of finished starts: a header, then one start a line, all as JSON.

    Parameters
    ----------
    path
        Path of the file, which is made when the first start is added.
    identity
        :func:`fingerprint` of the fit.

    Attributes
    ----------
    starts
        The finished starts by index.

    Raises
    ------
    ForeignCheckpointError
        The file belongs to another fit.
    InputError
        The file is no checkpoint, or its directory does not exist.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self._identity = identity
        self.starts: dict[int, Start] = {}
        self._read()

    def add(self, start: Start) -> None:
        """Add a finished start to the file."""
        self.starts[start.index] = start
        fresh = not self.path.exists()
        with self.path.open("a", encoding="utf-8") as file:
            if fresh:
                file.write(header(self._identity) + "\n")
            file.write(json.dumps(_to_json(start)) + "\n")

    def _read(self) -> None:
        *complete, rest = read_text(self.path).split("\n")
        if not complete and header(self._identity).startswith(rest):
            # There is no file, or an empty one, or it was killed while writing the first line.
            self.path.unlink(missing_ok=True)
            return
        check_header(self.path, complete[0] if complete else "", self._identity)
        for line in complete[1:]:
            start = _from_json(_parse(line) or {})
            if start is not None:
                self.starts[start.index] = start
        if rest:
            # The process was killed while writing: that start counts as not done.
            self.path.write_text("".join(f"{line}\n" for line in complete), encoding="utf-8")


def _parse(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line; None where it has none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _to_json(start: Start) -> dict[str, Any]:
    return {
        "index": start.index,
        "start": [repr(float(v)) for v in start.start],
        "vector": [repr(float(v)) for v in start.vector],
        "cost": repr(start.cost),
        "objective": repr(start.objective),
        "status": start.status.value,
        "message": start.message,
        "evaluations": start.evaluations,
        "seconds": start.seconds,
        "failures": dict(start.failures),
        "exact": start.exact,
        "nodes": None if start.nodes is None else _nodes_to_json(start.nodes),
    }


def _from_json(record: dict[str, Any]) -> Start | None:
    """Return the start, or None where the line is damaged: the start then counts as not done."""
    try:
        return Start(
            int(record["index"]),
            np.array([float(v) for v in record["start"]]),
            np.array([float(v) for v in record["vector"]]),
            float(record["objective"]),
            Status(record["status"]),
            str(record["message"]),
            int(record["evaluations"]),
            float(record["seconds"]),
            float(record["cost"]),
            dict(record["failures"]),
            bool(record["exact"]),
            _nodes_from_json(record["nodes"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _nodes_to_json(nodes: Nodes) -> dict[str, Any]:
    return {
        "times": [t.tolist() for t in nodes.times],
        "values": [v.tolist() for v in nodes.values],
        "constraints": list(nodes.constraints),
        "experiments": list(nodes.experiments),
    }


def _nodes_from_json(record: dict[str, Any] | None) -> Nodes | None:
    if record is None:
        return None
    times = tuple(np.array(t, dtype=float) for t in record["times"])
    values = tuple(np.array(v, dtype=float) for v in record["values"])
    return Nodes(times, values, tuple(record["constraints"]), tuple(record["experiments"]))
