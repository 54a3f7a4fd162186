"""The store of results: an SQLite file that survives a kill at any moment."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from evidence.commits import tree_version
from evidence.running.campaign import Campaign, Record, Task
from odefit.common.errors import InputError

FORMAT = "1"

_SCHEMA = """
create table if not exists about (name text primary key, value text not null);
create table if not exists results (
    key text primary key,
    task text not null,
    outcome text not null,
    result text,
    reason text not null,
    seconds real not null,
    version text not null,
    ended text not null default current_timestamp
);
"""


class Store:
    """The results of one campaign, in ``results.sqlite`` of a directory.

    Every record is a separate transaction, so that a kill loses at most the running tasks. Other
    programs may read the file at any time.
    """

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self.path = folder / "results.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder)
        except OSError as error:
            raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
        try:
            self._database = sqlite3.connect(self.path, timeout=30.0)
            try:
                self._database.execute("pragma journal_mode = wal")
                self._database.executescript(_SCHEMA)
                about = dict(self._database.execute("select name, value from about"))
            except sqlite3.DatabaseError:
                self._database.close()
                raise
        except sqlite3.DatabaseError as error:
            self._lock.close()
            raise InputError(
                f"{self.path}: cannot be used as a store of results: {error}; "
                "name another directory or remove it"
            ) from error
        mine = {"format": FORMAT, "campaign": campaign.name}
        if about and about != mine:
            self.close()
            raise InputError(
                f"{folder}: holds results of {about.get('campaign', 'something else')!r} "
                f"(format {about.get('format')}), not of {campaign.name!r}; name another directory"
            )
        with self._database:
            self._database.executemany("insert or ignore into about values (?, ?)", mine.items())

    def add(self, record: Record) -> None:
        """Store a record; it is on disk when the call returns."""
        result = None if record.result is None else to_json(record.result)
        row = (
            record.key,
            to_json(record.task),
            record.outcome,
            result,
            record.reason,
            record.seconds,
            tree_version(),
        )
        with self._database:
            self._database.execute(
                "insert or replace into results "
                "(key, task, outcome, result, reason, seconds, version) "
                "values (?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    def records(self, tasks: Iterable[Task]) -> list[Record]:
        """Return the stored records of `tasks`, in their order.

        A record whose task has the same key but other entries belongs to an older list of tasks,
        and is ignored.
        """
        rows = self._database.execute(
            "select key, task, outcome, result, reason, seconds from results"
        )
        stored = {row[0]: row[1:] for row in rows}
        found = []
        for task in tasks:
            row = stored.get(task["key"])
            if row is None or json.loads(row[0]) != json.loads(to_json(task)):
                continue
            _, outcome, result, reason, seconds = row
            found.append(
                Record(
                    task["key"],
                    task,
                    outcome,
                    None if result is None else json.loads(result),
                    reason,
                    seconds,
                )
            )
        return found

    def close(self) -> None:
        """Free the directory for others."""
        self._database.close()
        self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def to_json(value: Any) -> str:
    """Return JSON text, with null for numbers that are not finite and plain values for NumPy's."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _locked(folder: Path) -> IO[str]:
    """Return a lock that ends with this process in any case."""
    file = (folder / "running.lock").open("w", encoding="utf-8")
    with contextlib.suppress(ImportError):  # this system lacks these locks
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise InputError(f"{folder}: another run is writing its results there") from None
    return file
