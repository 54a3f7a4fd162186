"""Files that are written completely or not at all, also by a program that is killed."""

from __future__ import annotations

import glob
import os
import platform
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from odefit.common.errors import InputError
from odefit.common.processes import has_ended
from odefit.common.signals import unfinished

LONGEST_NAME, SHORTENED = 200, 100
"""The largest number of bytes of a file's name that is part of the name of its partial file, and
how many are part of it of a longer name. File systems allow 255."""


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file completely or not at all; an :class:`InputError` has the reason."""
    raw = _encoded(path, content) if isinstance(content, str) else content
    try:
        replace_file(Path(path), raw)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}; choose another place"
        ) from error


def _encoded(path: str | Path, content: str) -> bytes:
    """Return a text as UTF-8; refuse halves of characters, as names of files may hold them."""
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        around = content[max(error.start - 20, 0) : error.end + 20]
        raise InputError(
            f"{path}: cannot be written: {around!r} is not UTF-8; use other characters in names"
        ) from error


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Write several files in their order, each completely or not at all, and make their folders.

    A file that names others comes last, so that it never names one that is missing. Raises
    InputError with the reason.
    """
    for path, content in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{path.parent}: cannot be made: {error.strerror or error}; choose another place"
            ) from error
        write_atomically(path, content)


def replace_file(target: Path, raw: bytes) -> None:
    """Write a file under another name, and give it its own name once it is complete.

    Raises OSError; earlier contents then remain, and no partial file does.
    """
    if target.exists() and not target.is_file():  # a pipe or a device can't be replaced
        target.write_bytes(raw)
        return
    target = target.resolve()  # a link stays a link
    remove_left_over(target)
    beside = partial_file(target)
    try:
        with unfinished(beside):
            with beside.open("xb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def partial_file(target: Path) -> Path:
    """Return a new name beside a file under which this process writes it.

    The name holds the computer and the process, so that other processes can find out whether it
    still runs.
    """
    return target.with_name(f"{_beginning(target)}{os.getpid()}-{os.urandom(6).hex()}.tmp")


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
        if number.isdecimal() and has_ended(int(number)):
            with suppress(OSError):
                left.unlink()


def _beginning(target: Path) -> str:
    computer, name = zlib.crc32(platform.node().encode()), os.fsencode(target.name)
    if len(name) > LONGEST_NAME:
        name = b"%s~%08x" % (name[:SHORTENED], zlib.crc32(name))
    return f".{name.decode(errors='ignore')}.{computer:08x}-"
