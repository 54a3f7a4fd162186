"""Temporary folders go with what needed them, and with programs that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odefit.common.temporary_folders import folder_prefix, remove_left, temporary_folder
from tests.common.temporary import LINUX, place

__all__ = ["place"]

ENDED = """
import os, sys
from odefit.common.signals import signals_end
from odefit.common.temporary_folders import temporary_folder
with signals_end(program=True), temporary_folder("solver") as folder:
    (folder / "problem.nl").write_text("half")
    print(folder, flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
    sys.stdin.read()
"""


def _ended(place: Path, number: signal.Signals) -> Path:
    """Return the folder of a process that is ended while it uses it."""
    process = subprocess.run(
        [sys.executable, "-c", ENDED, str(int(number))],
        capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(place)},
    )  # fmt: skip
    folder = Path(process.stdout.strip())
    assert folder.parent == place, process.stderr
    return folder


def test_a_folder_is_removed_with_its_block_whatever_happens(place: Path) -> None:
    with temporary_folder("solver") as folder:
        (folder / "problem.nl").write_text("", encoding="utf-8")
        assert list(place.iterdir()) == [folder]
    assert not list(place.iterdir())
    with pytest.raises(ZeroDivisionError), temporary_folder("solver"):
        _ = 1 / 0
    assert not list(place.iterdir())


@LINUX
def test_a_signal_removes_it(place: Path) -> None:
    assert not _ended(place, signal.SIGTERM).exists()


@LINUX
def test_the_next_folder_of_any_purpose_removes_that_of_a_killed_process(
    place: Path,
) -> None:
    left = _ended(place, signal.SIGKILL)
    assert (left / "problem.nl").exists()
    with temporary_folder("explore") as folder:
        assert list(place.iterdir()) == [folder]


@LINUX
def test_the_folders_of_others_stay(place: Path) -> None:
    seed = "38 temporary folders"
    number = random.Random(seed).randrange(1, 2**31)
    mine = folder_prefix("explore")
    boot, space, pid, begun = mine.removeprefix("odefit-explore-").split("-")[:4]
    stay = [
        f"{mine}alive",
        f"odefit-explore-{boot}-{space}{number}-{pid}-1-elsewhere",
        "odefit-explore-notes",
        "odefit-other",
        f"odefit-two-words-{mine.removeprefix('odefit-explore-')}other",
    ]
    go = [
        f"odefit-explore-{boot}-{space}-{pid}-{int(begun) + number}-another-process-since",
        f"odefit-solver-{boot}-{space}-{2**22 + number}-17-no-such-process",
        f"odefit-explore-{'0' * 12}-{space}-{pid}-{begun}-before-the-last-start",
    ]
    for name in (*stay, *go):
        (place / name).mkdir()
    target = place / "target"
    target.mkdir()
    link = place / go[0].replace("another", "linked")
    link.symlink_to(target)
    remove_left()
    assert {p.name for p in place.iterdir()} == {*stay, "target", link.name}, seed
