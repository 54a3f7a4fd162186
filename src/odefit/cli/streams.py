"""Standard output and error: any text can be written, and a closed pipe is no failure."""

from __future__ import annotations

import io
import sys
from typing import Any


class _Outlet(io.FileIO):
    """A stream whose reader may go away, as with ``odefit ... | head``: the rest is dropped.

    So a closed pipe ends printing alone, and a command still writes its files. That a disk is full
    is raised once.
    """

    gone = False

    def write(self, data: Any, /) -> int:
        if not self.gone:
            try:
                return super().write(data)
            except OSError as error:
                self.gone = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes


def prepare_streams() -> None:
    """Let standard output and error outlive their readers, and output take any text.

    On Windows a pipe or a file has the encoding of the region, without lines or Greek letters;
    there a question mark is better than a fit whose table cannot be printed.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        own = stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper)
        if own and not stream.isatty():
            setattr(sys, name, _outliving(stream))


def _outliving(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a stream to the same place and of the same kind that drops what nobody reads."""
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Outlet(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
