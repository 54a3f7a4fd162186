"""Tests of partial files that killed programs leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odefit.common.partial_files import partial_file, remove_left_over

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


def test_names_are_new_hidden_and_beside_the_file(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    names = {partial_file(target) for _ in range(10)}
    assert len(names) == 10
    assert all(p.parent == tmp_path and p.name.startswith(".r.json.") for p in names)


@posix
@pytest.mark.parametrize("name", ["r.json", "r[1]*.json"])
def test_what_a_killed_process_has_left_is_removed(tmp_path: Path, name: str) -> None:
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
