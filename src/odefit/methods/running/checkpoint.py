"""Checkpoints: finished parts of long work, in an SQLite file that survives a kill at any moment.

A file holds several kinds of work, such as the starts of a fit and the sides of its profiles. Each
has the fingerprint of its problem and options. Finished parts are records: a key, and a value as
JSON, which preserves floats to the last bit. SQLite's rollback journal is used instead of its
write-ahead log, because checkpoints may be on network file systems.

A file may come from elsewhere: it is read as data, never executed, and all its contents are
checked. A damaged record counts as not done.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.errors import InputError
from odefit.common.packages import installed_version
from odefit.methods.running.run_log import LOGGER

if TYPE_CHECKING:
    from odefit.problem.problem import Problem

APPLICATION = 0x6F646663
"""The number by which SQLite files identify their application, here the letters "odfc"."""

FORMAT = 2
"""Version of the format, SQLite's ``user_version``; the earlier JSON lines were version 1."""

LEAST_FORMAT = 2  # the oldest version that is read

WORK_TABLE = (
    "CREATE TABLE work (kind TEXT PRIMARY KEY, identity TEXT NOT NULL, "
    "version TEXT NOT NULL, writer TEXT NOT NULL) WITHOUT ROWID"
)
"""The kinds of work, with fingerprint, version of odefit, and the writing process."""

RECORD_TABLE = (
    "CREATE TABLE records (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
    "digest TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)
"""The records of each kind, with a digest that reveals damage."""

BUSY_SECONDS = 30.0
"""Seconds that a process waits for another one that is writing to the same file."""

WRITE_RATIO = 20.0
"""Smallest ratio of the time between two writes to the duration of the last one: work that finishes
more quickly is written together."""

MAX_VALUE = 64 * 2**20  # largest number of bytes of a record


class ForeignCheckpointError(InputError):
    """Raised for a checkpoint that belongs to another fit, or to an earlier version of odefit."""


class CheckpointWarning(UserWarning):
    """Issued when a checkpoint cannot be written; the work continues without it."""


class _TakenOverError(Exception):
    """Raised when another process has taken over a checkpoint that only one can write."""


def fingerprint(problem: Problem, options: Mapping[str, Any]) -> str:
    """Return a hash that identifies a checkpoint: the problem with its data, and the options."""
    from odefit.problem.toml.files import problem_to_mapping  # most commands write no checkpoint

    # The definition does not contain the guesses from which a fit continues.
    guesses = [u.parameter.guess for u in problem.unknowns]
    bounds = [problem.lower.tolist(), problem.upper.tolist()]  # a method may have narrowed them
    parts = [problem_to_mapping(problem), guesses, bounds, options]
    text = json.dumps(parts, sort_keys=True, default=_plain)
    return _sha256(text)


def _sha256(text: str) -> str:
    import hashlib  # most commands write no checkpoint and save the import

    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    """Return an array as a list (its own text omits the middle), and other objects as text."""
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


class Checkpoint:
    """The records of one kind of work in a checkpoint.

    The file is created with the first record. Two processes may use it. Both add records of
    finished work (:meth:`put`), each key once. Only the process that began last can write the state
    of a search (:meth:`save`); the other is notified, and continues without.

    A file that cannot be written (a full disk, a read-only or vanished folder) stops no work: a
    :class:`CheckpointWarning` reports it once, and writing resumes as soon as it succeeds. Raises
    :class:`ForeignCheckpointError` for a file of other work, or of an earlier version. Raises
    InputError for a file that is not a checkpoint, is damaged, was written by a later version, or
    has no directory.
    """

    def __init__(self, path: Path, kind: str, identity: str) -> None:
        self.path, self.kind, self._identity = path, kind, identity
        self._writer = os.urandom(8).hex()
        self._waiting: dict[str, Any] = {}
        self._next = -np.inf
        self._failing = False
        self._saved: set[str] | None = None
        self._taken_over = False
        self._connection: sqlite3.Connection | None = None
        self.records: dict[str, Any] = {}
        self.begun = False
        if not path.exists():
            if not path.parent.is_dir():
                parent = path.parent
                raise InputError(f"{path}: the directory {parent} does not exist; make it first")
            return
        self._refuse_others()
        try:
            with closing(self._connect()) as database:
                self._read(database)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}: cannot be read as a checkpoint: {error}; name another file or remove it"
            ) from error

    def beside(self, kind: str) -> Callable[[], Checkpoint]:
        """Return what opens the records of another kind of this work, also in other processes."""
        return partial(Checkpoint, self.path, f"{self.kind}: {kind}", self._identity)

    # Reading --------------------------------------------------------------------------------------

    def _refuse_others(self) -> None:
        """Refuse a file that is not in SQLite's format, and identify it."""
        if not self.path.is_file() and not self.path.is_dir():
            raise InputError(f"{self.path}: is not a regular file; name another one")
        try:
            with self.path.open("rb") as file:
                head = file.read(32)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{self.path}: cannot be read as a checkpoint: {reason}") from error
        if head.startswith(b'{"odefit checkpoint"'):
            raise ForeignCheckpointError(
                f"{self.path}: is the checkpoint of an earlier version of odefit, from which this "
                "one cannot continue; name another file or remove it"
            )
        if head and not head.startswith(b"SQLite format 3\x00"):
            raise InputError(f"{self.path}: is not a checkpoint; name another file or remove it")

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            # An absolute path: SQLite gives other paths special meanings.
            self.path.absolute(),
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # A file from elsewhere must not run functions, or have values of unlimited size.
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA cell_size_check = ON")
            database.execute("PRAGMA mmap_size = 0")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_VALUE)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _read(self, database: sqlite3.Connection) -> None:
        if not _check_format(database, self.path):
            return
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise InputError(f"{self.path}: is damaged ({verdict}); remove it to start again")
        row = database.execute(
            "SELECT identity, version FROM work WHERE kind = ?", (self.kind,)
        ).fetchone()
        if row is None:
            return
        if row[0] != self._identity:
            raise ForeignCheckpointError(
                f"{self.path}: belongs to another problem, method or seed; "
                "name another file or remove it"
            )
        self.begun = True
        rows = database.execute(
            "SELECT key, value, digest FROM records WHERE kind = ? AND typeof(key) = 'text' AND "
            "typeof(value) = 'text' AND length(value) <= ?",
            (self.kind, MAX_VALUE),
        )
        for key, text, digest in rows:
            value = _parsed(text) if digest == self._digest(key, text) else None
            if value is not None:
                self.records[key] = value
        LOGGER.info(
            "%s: %d records of %s, begun by odefit %s",
            self.path,
            len(self.records),
            self.kind,
            str(row[1])[:40],
        )

    def _digest(self, key: str, text: str) -> str:
        """Return the digest that a record must have, or it is damaged."""
        whole = f"{self._identity}\0{self.kind}\0{key}\0{text}"
        return _sha256(whole)[:16]

    # Writing --------------------------------------------------------------------------------------

    def _row(self, key: str, value: Any) -> tuple[str, str, str, str]:
        text = json.dumps(value)
        return self.kind, key, text, self._digest(key, text)

    @property
    def due(self) -> bool:
        """True if writing now takes little time compared with that since the last write."""
        return time.monotonic() >= self._next

    def put(self, key: str, value: Any) -> None:
        """Store a record of finished work, whose value is a JSON value.

        It is written at once or, if work finishes quickly, together with later records; it is on
        disk after :meth:`close` at the latest.
        """
        self._waiting[key] = value
        if self.due:
            self.flush()

    def save(
        self, head: Mapping[str, Any], rows: Mapping[str, Callable[[], Any]] | None = None
    ) -> None:
        """Replace the whole state of a search at once, in one transaction.

        Records of `head` change. Those of `rows` never change under their key: only new ones are
        added. Callers that save often check :attr:`due` first.
        """
        if self._taken_over:
            return
        rows = {} if rows is None else rows
        saved = self._saved

        def write(database: sqlite3.Connection) -> None:
            if saved is None:  # the first time: records of another process are removed
                database.execute("DELETE FROM records WHERE kind = ?", (self.kind,))
                gone: set[str] = set()
            else:
                gone = saved - rows.keys()
            database.executemany(
                "DELETE FROM records WHERE kind = ? AND key = ?", ((self.kind, k) for k in gone)
            )
            new = rows.keys() - (saved or set())
            values = {k: rows[k]() for k in new}
            database.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)",
                (self._row(k, v) for k, v in {**head, **values}.items()),
            )

        if self._transaction(write, alone=True, first=saved is None):
            self._saved = set(rows)

    def flush(self) -> None:
        """Write the pending records."""
        if not self._waiting:
            return
        waiting = [self._row(key, value) for key, value in self._waiting.items()]

        def write(database: sqlite3.Connection) -> None:
            # Work of two processes is stored once; a damaged record is replaced.
            database.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", waiting)

        if self._transaction(write):
            self._waiting.clear()

    def close(self) -> None:
        """Write the pending records, and close the file."""
        self.flush()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _transaction(
        self, write: Callable[[sqlite3.Connection], None], alone: bool = False, first: bool = False
    ) -> bool:
        """Write in one transaction; return False if the file cannot be written."""
        began = time.monotonic()
        try:
            if self._connection is None:
                self._connection = self._connect()
                # A separate journal for each transaction: a write-ahead log needs shared memory.
                self._connection.execute("PRAGMA journal_mode = DELETE")
            database = self._connection
            database.execute("BEGIN IMMEDIATE")
            try:
                self._enter(database, alone, first)
                write(database)
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            self._tell_failure(str(error))
            return False
        except InputError as error:  # the file has been replaced in the meantime
            self._tell_failure(str(error))
            return False
        except _TakenOverError:
            self._taken_over = True
            _warn(
                f"{self.path}: another process has taken over this checkpoint; this one "
                "continues without writing to it"
            )
            return False
        finally:
            ended = time.monotonic()
            self._next = ended + WRITE_RATIO * (ended - began)
        if self._failing:
            LOGGER.info("%s: the checkpoint can be written again", self.path)
        self._failing, self.begun = False, True
        return True

    def _enter(self, database: sqlite3.Connection, alone: bool, first: bool) -> None:
        """Create missing tables, and store the fingerprint of the records."""
        if not _check_format(database, self.path):
            for statement in (WORK_TABLE, RECORD_TABLE):
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute(
            "INSERT OR IGNORE INTO work VALUES (?, ?, ?, '')",
            (self.kind, self._identity, installed_version("odefit") or "unknown"),
        )
        identity, writer = database.execute(
            "SELECT identity, writer FROM work WHERE kind = ?", (self.kind,)
        ).fetchone()
        if identity != self._identity:
            raise InputError("it now belongs to other work")
        if alone and first:
            database.execute("UPDATE work SET writer = ? WHERE kind = ?", (self._writer, self.kind))
        elif alone and writer != self._writer:
            raise _TakenOverError

    def _tell_failure(self, reason: str) -> None:
        """Report once that the file cannot be written."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if not self._failing:
            self._failing = True
            _warn(
                f"{self.path}: the checkpoint cannot be written: {reason}; the work "
                "continues, and its results are not kept until the file can be written again"
            )


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint and the journal that a killed process may have left."""
    # The journal first: it would be mistaken for that of the next file of this name.
    path.with_name(path.name + "-journal").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _check_format(database: sqlite3.Connection, path: Path) -> bool:
    """Return whether the file has the tables; False if it is empty.

    Raises InputError for a file of another program or of a later version, or with other tables.
    """
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    # Only these tables are allowed: no foreign view or trigger is ever evaluated.
    tables = {
        sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    }
    if not tables and application == 0 and version == 0:
        return False
    if application != APPLICATION:
        raise InputError(f"{path}: is not a checkpoint; name another file or remove it")
    if version > FORMAT:
        raise InputError(
            f"{path}: was written by a later version of odefit (format {version}, this one reads "
            f"up to {FORMAT}); continue with that version, or name another file"
        )
    if version < LEAST_FORMAT or tables != {WORK_TABLE, RECORD_TABLE}:
        raise InputError(
            f"{path}: is damaged (its tables are not those of a checkpoint); remove it to begin "
            "again"
        )
    return True


def _parsed(text: str) -> Any:
    """Return a JSON value; None if the text is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _warn(message: str) -> None:
    LOGGER.warning("%s", message)
    warnings.warn(message, CheckpointWarning, stacklevel=2)
