"""Temporary folders that are removed after use, also those of programs that were killed.

A program that is killed cannot remove its folder. The next one does, by the name of the folder,
which identifies the process that made it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from odefit.common.signals import unfinished

PROCESSES = Path("/proc")
"""The folder in which Linux describes its processes; other systems keep remaining folders."""

_NAME = re.compile(r"odefit-[a-z]+-([0-9a-f]+)-([0-9]+)-([0-9]+)-([0-9]+)-")


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Make a folder that only this user can read; it is removed after the block, or by a signal.

    The `purpose`, a word, becomes part of its name. Folders of this user's killed processes are
    removed first.
    """
    remove_left()
    folder = Path(tempfile.mkdtemp(prefix=folder_prefix(purpose)))
    try:
        with unfinished(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def folder_prefix(purpose: str, pid: int | None = None) -> str:
    """Return the beginning of a process's folder names: computer, space, number, start."""
    number = os.getpid() if pid is None else pid
    return f"odefit-{purpose}-{_boot()}-{_space()}-{number}-{_begun(number)}-"


def remove_left() -> None:
    """Remove the folders of this user whose processes are gone."""
    for folder in Path(tempfile.gettempdir()).glob("odefit-*"):
        with suppress(OSError):
            if _left(folder):
                shutil.rmtree(folder)


def _left(folder: Path) -> bool:
    """Return whether the process that made a folder of this user has certainly ended."""
    if sys.platform == "win32":
        return False
    named = _NAME.match(folder.name)
    if named is None or folder.is_symlink():
        return False
    boot, space = _boot(), _space()
    if not (boot and space):
        return False
    if folder.stat().st_uid != os.getuid():
        return False
    if named[1] != boot:
        return True  # the computer has been restarted since
    return named[2] == space and named[4] != _begun(int(named[3]))


def _boot() -> str:
    """Return an identifier of this computer's boot; empty if unknown."""
    try:
        text = (PROCESSES / "sys/kernel/random/boot_id").read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.strip().replace("-", "")[:12]


def _space() -> str:
    """Return the number of the process namespace; empty if unknown."""
    try:
        return re.sub(r"\D", "", str((PROCESSES / "self/ns/pid").readlink()))
    except OSError:
        return ""


def _begun(pid: int) -> str:
    """Return the start of a process, in ticks since boot; empty if there is no such process."""
    try:
        text = (PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]  # field 22, the second being "(name)"
