"""Finished sides of profiles on disk, so that they are not traced again after a kill."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np

from odefit.assessment.profiles.parts import End, Side
from odefit.methods.checkpoint import check_header, header, read_text
from odefit.problem.arrays import Array


class SideCheckpoint:
    """A file of finished sides: a header, then one side a line, all as JSON.

    Parameters
    ----------
    path
        Path of the file, which is made when the first side is added.
    identity
        What the profiles belong to.

    Raises
    ------
    InputError
        The file belongs to other profiles or is no checkpoint, or its directory does not exist.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity
        self._sides: dict[tuple[str, int, str], Side] = {}
        *complete, rest = read_text(path).split("\n")
        if not complete and header(identity).startswith(rest):
            path.unlink(missing_ok=True)
            return
        check_header(path, complete[0] if complete else "", identity)
        for line in complete[1:]:
            self._read(line)
        if rest:
            # The process was killed while writing: that side counts as not done.
            path.write_text("".join(f"{line}\n" for line in complete), encoding="utf-8")

    def find(self, key: str, sign: int, vector: Array) -> Side | None:
        """Return a finished side of the profile of `key` at this optimum."""
        return self._sides.get((key, sign, _digest(vector)))

    def add(self, key: str, sign: int, vector: Array, side: Side) -> None:
        """Add a finished side to the file."""
        fresh = not self._path.exists()
        record: dict[str, Any] = {"key": key, "sign": sign, "of": _digest(vector)}
        for field in fields(Side):
            value = getattr(side, field.name)
            record[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        with self._path.open("a", encoding="utf-8") as file:
            if fresh:
                file.write(header(self._identity) + "\n")
            file.write(json.dumps(record) + "\n")

    def _read(self, line: str) -> None:
        try:
            record = json.loads(line)
            of = str(record["key"]), int(record["sign"]), str(record["of"])
            at = np.array(record["at"], dtype=float)
            vectors = np.array(record["vectors"], dtype=float).reshape(len(at), -1)
            if record["end"] not in get_args(End):
                return
            self._sides[of] = Side(
                at,
                np.array(record["deviances"], dtype=float),
                np.array(record["slopes"], dtype=float),
                vectors,
                float(record["limit"]),
                record["end"],
                str(record["reason"]),
                np.array(record["better"], dtype=float),
                int(record["evaluations"]),
                int(record["minimisations"]),
            )
        except (KeyError, TypeError, ValueError):
            return  # a damaged line: the side counts as not done


def _digest(vector: Array) -> str:
    return hashlib.sha256(vector.tobytes()).hexdigest()[:16]
