"""Signals that end the program at once, unless some work handles them and returns its best.

This module only needs Python itself, so that it is available before anything else is imported.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HANG_UP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none

ENDING = (signal.SIGINT, signal.SIGTERM, *([HANG_UP] if HANG_UP else []))
"""The signals by which users, batch systems and closed terminals end a program."""

_unfinished: set[Path] = set()


class Ended(KeyboardInterrupt):
    """Raised by a signal in a program that has called the command line as a function."""

    def __init__(self, number: int) -> None:
        super().__init__(message_of(number))
        self.number = number


def message_of(number: int) -> str:
    """Return in words how a signal has ended a program."""
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def end_program(number: int, frame: FrameType | None) -> None:
    """Remove partial files, and end this program with status 128 plus the signal, as shells do.

    An exception would be lost in a callback, or change into another one in an import.
    """
    for path in list(_unfinished):
        with suppress(OSError):
            _remove(path)
    with suppress(OSError):
        os.write(2, f"{message_of(number)}\n".encode())
    os._exit(128 + number)


def _remove(path: Path) -> None:
    if not path.is_dir():
        path.unlink()
        return
    import shutil  # loaded long before there is a folder; here it would delay the first handler

    shutil.rmtree(path)


def raise_ended(number: int, frame: FrameType | None) -> None:
    """Raise :class:`Ended`."""
    raise Ended(number)


DEFAULTS = (signal.SIG_DFL, signal.default_int_handler, end_program, raise_ended)
"""The default handlers of Python and of the system."""


@contextmanager
def signals_end(program: bool) -> Iterator[None]:
    """Let signals end the program within the block, or a function that it calls.

    After the block of a `program` they are ignored, since its work is done. Other handlers are
    unchanged, also in threads other than the main one.
    """
    before = {number: signal.getsignal(number) for number in ENDING}
    ours = [number for number in ENDING if before[number] in DEFAULTS]
    with suppress(ValueError):
        for number in ours:
            signal.signal(number, end_program if program else raise_ended)
    try:
        yield
    finally:
        with suppress(ValueError):
            for number in ours:
                signal.signal(number, signal.SIG_IGN if program else before[number])


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Remove a file or a folder if a signal ends the program within the block."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _unfinished.discard(path)
