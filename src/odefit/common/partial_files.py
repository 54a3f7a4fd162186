"""Names of files that are being written, and removal of those that a killed program has left."""

from __future__ import annotations

import glob
import os
import platform
import secrets
import zlib
from contextlib import suppress
from pathlib import Path


def partial_file(target: Path) -> Path:
    """Return a new name beside a file under which this process writes it.

    The name holds the computer and the process, so that others can tell whether it still runs.
    """
    return target.with_name(f"{_beginning(target)}{os.getpid()}-{secrets.token_hex(6)}.tmp")


def remove_left_over(target: Path) -> None:
    """Remove partial files of a file whose processes have ended on this computer.

    A process that is killed cannot remove its own. On Windows nothing is removed: no call there
    asks for a process without ending it.
    """
    if os.name != "posix":
        return
    beginning = _beginning(target)
    for left in target.parent.glob(f"{glob.escape(beginning)}*.tmp"):
        number = left.name.removeprefix(beginning).partition("-")[0]
        if number.isdecimal() and not _runs(int(number)):
            with suppress(OSError):
                left.unlink()


def _beginning(target: Path) -> str:
    computer = zlib.crc32(platform.node().encode())
    return f".{target.name}.{computer:08x}-"


def _runs(number: int) -> bool:
    """Return whether a process of this number runs, as far as can be known."""
    try:
        os.kill(number, 0)  # no signal: it only asks
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
