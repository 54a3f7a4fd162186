"""The file of a checkpoint: exact, safe to kill, safe to share, and never believed unseen."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odefit import InputError
from odefit.methods.running.checkpoint import (
    APPLICATION,
    FORMAT,
    Checkpoint,
    CheckpointWarning,
    ForeignCheckpointError,
    fingerprint,
    remove_checkpoint,
)
from tests.methods.checkpoints import damaged, execute, records
from tests.methods.problems import decay


def checkpoint(path: Path, kind: str = "work", identity: str = "me") -> Checkpoint:
    return Checkpoint(path, kind, identity)


def keep(path: Path, **values: Any) -> None:
    with checkpoint(path) as file:
        for key, value in values.items():
            file.put(key, value)


def test_numbers_and_texts_come_back_to_the_last_bit(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 2**64, 2000, dtype=np.uint64)
    numbers = [v for v in bits.view(float).tolist() if not math.isnan(v)]
    numbers += [0.0, -0.0, math.inf, -math.inf, 5e-324, 0.1 + 0.2]
    text = "é\x00\n'\"\ud800"
    keep(tmp_path / "file", one={"numbers": numbers, "text": text}, none=math.nan)
    found = checkpoint(tmp_path / "file").records
    assert [v.hex() for v in found["one"]["numbers"]] == [v.hex() for v in numbers]
    assert found["one"]["text"] == text
    assert math.isnan(found["none"])


def test_nothing_is_written_before_there_is_something_to_keep(tmp_path: Path) -> None:
    checkpoint(tmp_path / "file").close()
    assert list(tmp_path.iterdir()) == []


def test_several_kinds_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path, "starts") as one, checkpoint(path, "sides", "other") as other:
        one.put("1", "start")
        other.put("1", "side")
        one.put("2", "start")
    assert checkpoint(path, "starts").records == {"1": "start", "2": "start"}
    assert checkpoint(path, "sides", "other").records == {"1": "side"}
    assert not checkpoint(path, "boxes").begun


def test_a_checkpoint_file_has_the_application_id_and_format(tmp_path: Path) -> None:
    keep(tmp_path / "file", a=1)
    raw = (tmp_path / "file").read_bytes()
    assert raw.startswith(b"SQLite format 3\x00")
    assert raw[18:20] == b"\x01\x01"  # a rollback journal, no write-ahead log
    assert int.from_bytes(raw[68:72]) == APPLICATION
    assert int.from_bytes(raw[60:64]) == FORMAT


# Files that are refused --------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"hello\n", b"{}\n", b"\xff\xfe\n", b"SQLite"])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a checkpoint"):
        checkpoint(path)
    assert path.read_bytes() == content


def test_earlier_lines_of_json_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"odefit checkpoint": 1, "of": "me"}\n{"index": 0}\n')
    with pytest.raises(ForeignCheckpointError, match="of an earlier version of odefit"):
        checkpoint(path)


def test_a_later_version_is_reported_and_its_file_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    keep(path, a=1)
    execute(path, f"PRAGMA user_version = {FORMAT + 1}", "CREATE TABLE more (x)")
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"a later version of odefit .format {FORMAT + 1}"):
        checkpoint(path)
    assert path.read_bytes() == before


def test_files_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    keep(path, a=1)
    execute(path, "UPDATE work SET version = '0.0.1'")
    assert checkpoint(path).records == {"a": 1}


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    execute(path, "CREATE TABLE work (kind)")
    with pytest.raises(InputError, match="is not a checkpoint"):
        checkpoint(path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS SELECT * FROM records",
        "CREATE TRIGGER more AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "DROP TABLE work",
        "ALTER TABLE work ADD COLUMN more",
    ],
)
def test_other_tables_are_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "file"
    keep(path, a=1)
    execute(path, statement)
    with pytest.raises(InputError, match="its tables are not those of a checkpoint"):
        checkpoint(path)


def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    """A view may compute for ever, or call functions: it is never looked into."""
    path = tmp_path / "file"
    keep(path, a=1)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n"
    execute(path, "DROP TABLE records", f"CREATE VIEW records AS {endless}")
    with pytest.raises(InputError, match="its tables are not those of a checkpoint"):
        checkpoint(path)


def test_places_that_are_not_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        checkpoint(tmp_path)
    with pytest.raises(InputError, match="is not a regular file"):
        checkpoint(Path(os.devnull))
    with pytest.raises(InputError, match="does not exist; make it first"):
        checkpoint(tmp_path / "nowhere" / "file")


def test_a_checkpoint_of_other_work_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    keep(path, a=1)
    with pytest.raises(ForeignCheckpointError, match="belongs to another problem, method or seed"):
        checkpoint(path, identity="you")


# Damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["2", '{"a"', "", None, 2, b"1", "[" * 100_000])
def test_a_damaged_record_counts_as_not_done(tmp_path: Path, value: object) -> None:
    path = tmp_path / "file"
    keep(path, a=1, b=1, c=1)
    if value is None:  # which the table refuses
        execute(path, "DELETE FROM records WHERE key = 'b'")
    else:
        damaged(path, "work", "b", value)
    assert checkpoint(path).records == {"a": 1, "c": 1}


def test_a_record_under_another_key_counts_as_not_done(tmp_path: Path) -> None:
    path = tmp_path / "file"
    keep(path, a=1, b=1)
    execute(path, "UPDATE records SET key = 'c' WHERE key = 'b'")
    assert checkpoint(path).records == {"a": 1}


@pytest.mark.slow
def test_changed_bytes_are_reported_or_count_as_not_done(tmp_path: Path) -> None:
    path, changed = tmp_path / "file", tmp_path / "changed"
    values = {f"k{i}": [i, 1 / (i + 1)] for i in range(120)}
    keep(path, **values)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    told = 0
    for trial in range(120):
        raw = bytearray(whole)
        if trial % 4 == 0:
            del raw[int(random.integers(1, len(raw))) :]
        else:
            for _ in range(int(random.integers(1, 20))):
                # The head of the file and of its pages, where a change does most, or anywhere.
                where = int(random.integers(0, (100, 2000, len(raw))[trial % 3]))
                raw[where] = int(random.integers(0, 256))
        changed.write_bytes(bytes(raw))
        try:
            found = checkpoint(changed)
        except InputError:
            told += 1
            continue
        assert found.records.items() <= values.items()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CheckpointWarning)  # it may say that it is read-only
            found.put("new", 1)
            found.close()
    assert 30 < told < 120


def test_an_empty_file_is_a_fresh_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    keep(path, a=1)
    assert checkpoint(path).records == {"a": 1}


def test_an_interrupted_transaction_leaves_no_trace(tmp_path: Path) -> None:
    """What a kill leaves: a file that is half changed, and the journal that undoes it."""
    path, left = tmp_path / "file", tmp_path / "left"
    keep(path, a=1)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN IMMEDIATE")
        for i in range(200):
            database.execute("INSERT INTO records VALUES ('work', ?, ?, 'x')", (f"{i}", "1" * 500))
        shutil.copy(path, left)
        shutil.copy(f"{path}-journal", f"{left}-journal")
        database.execute("ROLLBACK")
    assert left.stat().st_size > 50_000
    assert checkpoint(left).records == {"a": 1}
    assert len(records(left, "work")) == 1


def test_a_journal_goes_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    keep(path, a=1)
    (tmp_path / "file-journal").touch()
    remove_checkpoint(path)
    assert list(tmp_path.iterdir()) == []
    remove_checkpoint(path)


# Two processes -----------------------------------------------------------------------------------


def test_two_processes_add_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path) as one, checkpoint(path) as other:
        for i in range(4):
            (one if i % 2 else other).put(str(i), i)
        one.put("2", 2)  # both did it: it is there once
    assert checkpoint(path).records == {str(i): i for i in range(4)}


def test_the_later_of_two_searches_continues(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path) as one:
        one.save({"state": 1}, {"a": lambda: "one", "b": lambda: "one"})
        with checkpoint(path) as other:
            other.save({"state": 2}, {"a": lambda: "other"})
            with pytest.warns(CheckpointWarning, match="another process has taken over this"):
                one.save({"state": 3}, {"c": lambda: "one"})
            one.save({"state": 4})
            other.save({"state": 5}, {"d": lambda: "other"})
    assert checkpoint(path).records == {"state": 5, "d": "other"}


def test_the_state_of_a_search_is_written_as_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "file"
    made: list[str] = []

    def row(name: str) -> str:
        made.append(name)
        return name

    with checkpoint(path) as file:
        file.save({"n": 1}, {k: lambda k=k: row(k) for k in "abc"})  # type: ignore[misc]
        file.save({"n": 2}, {k: lambda k=k: row(k) for k in "bcd"})  # type: ignore[misc]
    assert sorted(made) == ["a", "b", "c", "d"]
    assert checkpoint(path).records == {"n": 2, "b": "b", "c": "c", "d": "d"}


# A disk that is full, read-only or gone ----------------------------------------------------------


class FullDisk:
    """A database whose transactions all fail, as on a full disk."""

    in_transaction = False

    def execute(self, statement: str, *_: object) -> None:
        if statement.startswith("BEGIN"):
            raise sqlite3.OperationalError("database or disk is full")

    def close(self) -> None: ...


@contextmanager
def full_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "_connect", lambda self: FullDisk())
        yield


def put(file: Checkpoint, **values: Any) -> None:
    for key, value in values.items():
        file.put(key, value)
    file.flush()


def test_a_full_disk_is_reported_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path) as file:
        with full_disk():
            with pytest.warns(CheckpointWarning, match="disk is full; the work continues"):
                put(file, a=1, b=2)
            put(file, c=3)
        put(file, d=4)  # there is room again
    assert checkpoint(path).records == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_the_state_of_a_search_is_whole_again_after_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path) as file:
        file.save({"n": 1}, {"a": lambda: 1, "b": lambda: 2})
        file.close()
        with full_disk(), pytest.warns(CheckpointWarning, match="full"):
            file.save({"n": 2}, {"b": lambda: 2, "c": lambda: 3})
        assert checkpoint(path).records == {"n": 1, "a": 1, "b": 2}
        file.save({"n": 3}, {"c": lambda: 3, "d": lambda: 4})
    assert checkpoint(path).records == {"n": 3, "c": 3, "d": 4}


def test_a_folder_that_vanishes_ends_no_work(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file = checkpoint(folder / "file")
    put(file, a=1)
    shutil.rmtree(folder)
    with pytest.warns(CheckpointWarning, match="cannot be written"):
        put(file, b=2)
    file.close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_read_only_folder_ends_no_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.warns(CheckpointWarning, match="cannot be written"):
            keep(tmp_path / "file", a=1)
    finally:
        tmp_path.chmod(0o700)


# What a checkpoint belongs to --------------------------------------------------------------------


def test_the_fingerprint_sees_every_datum() -> None:
    assert fingerprint(decay(), {}) == fingerprint(decay(), {})
    data = {name: np.array(column) for name, column in decay().data().items()}
    data["y"][3] = np.nextafter(data["y"][3], 9)
    assert fingerprint(decay(data=data), {}) != fingerprint(decay(), {})
    assert fingerprint(decay(initial={"x": 2.0}), {}) != fingerprint(decay(), {})
    assert fingerprint(decay(), {"seed": 1}) != fingerprint(decay(), {"seed": 2})


def test_records_are_json_that_others_can_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    keep(path, a=[0.1, None, "é"])
    with closing(sqlite3.connect(path)) as database:
        ((text,),) = database.execute("SELECT value FROM records").fetchall()
    assert json.loads(text) == [0.1, None, "é"]


def test_a_table_whose_definition_is_not_text_is_refused(tmp_path: Path) -> None:
    keep(tmp_path / "file", one=1)
    content = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(content.replace(b"version TEXT", b"version T\x82XT"))
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        checkpoint(tmp_path / "file")
