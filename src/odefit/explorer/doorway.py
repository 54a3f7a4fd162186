"""The file that leads a browser to the page, in a temporary folder that is removed with it.

All users of the machine could read an address in the command line of a browser, so the browser gets
a file that only its user can read. The file is removed as soon as the page is open. A program that
is killed before cannot remove it; the next one does, by the name of the folder, which identifies
the process that made it.
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
from types import TracebackType
from typing import Self

from odefit.common.signals import unfinished

PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>odefit explore</title>
<meta http-equiv="refresh" content="0;url={url}">
<p><a href="{url}">odefit explore</a></p></html>
"""

PROCESSES = Path("/proc")
"""The folder in which Linux describes its processes; other systems keep remaining folders."""

_NAME = re.compile(r"odefit-explore-([0-9a-f]+)-([0-9]+)-([0-9]+)-([0-9]+)-")


@contextmanager
def doorway(url: str) -> Iterator[Doorway]:
    """Make a file that leads to an address; it is removed after the block, or by a signal.

    Files of this user's killed processes are removed first.
    """
    remove_left()
    with Doorway(url) as made, unfinished(made.folder):
        yield made


class Doorway:
    """A file that leads to an address, in a folder that only this user can read."""

    def __init__(self, url: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=folder_prefix()))
        self.file = self.folder / "explore.html"
        self.file.write_text(PAGE.format(url=url), encoding="utf-8")

    def remove(self) -> None:
        """Remove file and folder, if they are still there."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()


def folder_prefix(pid: int | None = None) -> str:
    """Return the beginning of a process's folder names: computer, space, number, start."""
    number = os.getpid() if pid is None else pid
    return f"odefit-explore-{_boot()}-{_space()}-{number}-{_begun(number)}-"


def remove_left() -> None:
    """Remove the folders of this user whose processes are gone."""
    for folder in Path(tempfile.gettempdir()).glob("odefit-explore-*"):
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
