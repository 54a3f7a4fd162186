"""Tests of partial files that killed programs leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odefit.common.errors import InputError
from odefit.common.partial_files import (
    partial_file,
    remove_left_over,
    write_atomically,
    write_together,
)

WRITES = """
import os, pathlib, sys
from odefit.common.partial_files import partial_file
path = partial_file(pathlib.Path(sys.argv[1]))
path.write_text("half")
print(path, flush=True)
os.kill(os.getpid(), 9)
"""

posix = pytest.mark.skipif(
    os.name != "posix", reason="only removed where processes can be asked for"
)


def test_temporary_names_are_new_hidden_and_beside_the_file(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    names = {partial_file(target) for _ in range(10)}
    assert len(names) == 10
    assert all(p.parent == tmp_path and p.name.startswith(".r.json.") for p in names)


@posix
@pytest.mark.parametrize("name", ["r.json", "r[1]*.json", "r" * 250 + ".json"])
def test_the_partial_file_of_a_killed_process_is_removed(tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    killed = subprocess.run(
        [sys.executable, "-c", WRITES, str(target)], capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip())
    assert left.read_text(encoding="utf-8") == "half"
    remove_left_over(target)
    assert not left.exists()


@posix
def test_files_of_running_processes_of_other_files_and_of_other_programs_stay(
    tmp_path: Path,
) -> None:
    target = tmp_path / "r.json"
    stay = [
        partial_file(target),  # of this process
        tmp_path / ".r.json.backup.tmp",
        tmp_path / ".r.json.0739dcff0f8c.tmp",
        partial_file(tmp_path / "other.json"),
    ]
    for path in stay:
        path.write_text("", encoding="utf-8")
    remove_left_over(target)
    assert all(path.exists() for path in stay)


@pytest.mark.parametrize("letter", ["r", "\u00e9"])
def test_a_file_of_the_longest_name_is_written(tmp_path: Path, letter: str) -> None:
    target = tmp_path / (letter * (250 // len(letter.encode())) + ".json")
    write_atomically(target, "whole")
    assert target.read_text(encoding="utf-8") == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_partial_files_of_two_long_names_differ(tmp_path: Path) -> None:
    one, other = (tmp_path / ("r" * 240 + end) for end in (".json", ".html"))
    beginnings = {partial_file(path).name.rpartition("-")[0] for path in (one, other)}
    assert len(beginnings) == 2


def _refuse(number: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_up_leaves_the_file_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "r.json"
    target.write_text("before", encoding="utf-8")
    monkeypatch.setattr(os, "fsync", _refuse)
    with pytest.raises(InputError, match=r"r\.json: cannot be written: No space left on device"):
        write_atomically(target, "after")
    assert target.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_several_files_are_written_in_their_order_and_folders_are_made(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("", encoding="utf-8")
    files: dict[Path, str | bytes] = {
        tmp_path / "new" / "a.csv": "t,y\n",
        tmp_path / "other" / "b.csv": b"",
        tmp_path / "new" / "names_both.toml": "",
    }
    with pytest.raises(InputError, match="other: cannot be made: "):
        write_together(files)
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["a.csv"]
    (tmp_path / "other").unlink()
    write_together(files)
    assert all(path.exists() for path in files)


def test_a_text_that_is_not_utf8_is_refused_and_leaves_the_file_from_before(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(InputError, match=r"problem.toml: cannot be written: .*udcff.* not UTF-8"):
        write_atomically(path, 'data = "\udcff.csv"')
    assert path.read_text(encoding="utf-8") == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["problem.toml"]
