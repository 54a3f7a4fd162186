"""What tests do with the files of checkpoints."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def records(path: Path, kind: str) -> dict[str, Any]:
    """Return the records of one kind, as the file has them; none where there is no file yet."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT key, value FROM records WHERE kind = ?", (kind,))
            return {key: json.loads(value) for key, value in rows}
    except sqlite3.OperationalError:
        return {}


def damaged(path: Path, kind: str, key: str, value: object) -> None:
    """Change a record."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE records SET value = ? WHERE kind = ? AND key = ?", (value, kind, key)
        )


def execute(path: Path, *statements: str) -> None:
    """Change a file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)
