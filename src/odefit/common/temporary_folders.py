"""Temporary folders that are removed after use, also those of programs that were killed.

A program that is killed cannot remove its folder. The next one does, by the name of the folder,
which identifies the process that made it. Systems other than Linux keep remaining folders.
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

from odefit.common.processes import has_ended, start_of, this_boot, this_namespace
from odefit.common.signals import unfinished

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
    return f"odefit-{purpose}-{this_boot()}-{this_namespace()}-{number}-{start_of(number)}-"


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
    boot, space = this_boot(), this_namespace()
    if not (boot and space):
        return False
    if folder.stat().st_uid != os.getuid():
        return False
    if named[1] != boot:
        return True  # the computer has been restarted since
    return named[2] == space and has_ended(int(named[3]), named[4])
