"""The streams of a program, which may be closed or full, and its memory limit."""

from __future__ import annotations

import atexit
import codecs
import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn


class _Outlet(io.FileIO):
    """A stream that drops output once its reader has gone, as with ``odefit ... | head``.

    So a closed pipe or terminal ends only the printing, and a command still writes its files. A
    full disk raises an error once.
    """

    shown = 0  # the width of the word that stands on the terminal until the first output
    gone = False
    terminal = False  # a terminal that is closed cannot be recognised as one any more

    def write(self, data: Any, /) -> int:
        if self.terminal and _Outlet.shown:
            width, _Outlet.shown = _Outlet.shown, 0
            self.write(b"\r" + b" " * width + b"\r")
        if not self.gone:
            try:
                return super().write(data)
            except OSError as error:
                self.gone = True
                closed = self.terminal and error.errno == errno.EIO
                if not (closed or isinstance(error, BrokenPipeError)):
                    raise
        return memoryview(data).nbytes


class _Aside(_Outlet):
    """Standard error that never ends the work: text that cannot be written is lost."""

    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def prepare_streams(program: bool) -> None:
    """Make standard output and error survive their readers, and output accept any text.

    In a `program`, closed streams are reopened. Otherwise the next file would get the number of
    a closed stream, and libraries would write their output to it.

    On Windows a pipe or a file has the region's encoding, without lines or Greek letters. There a
    question mark is better than a table that cannot be printed.
    """
    for number in range(3 if program else 0):
        try:
            os.fstat(number)
        except OSError:
            # Standard output is opened for reading, so that writing there fails, as main reports.
            os.open(os.devnull, os.O_RDWR if number == 2 else os.O_RDONLY)
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.errors == "strict":
            sys.stdout.reconfigure(errors="replace")
        elif sys.stdout.errors == "surrogateescape":  # Python's choice in the locales C and POSIX
            codecs.register_error(ANY_TEXT, _escaped_or_replaced)
            sys.stdout.reconfigure(errors=ANY_TEXT)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        original = stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper)
        outlet = _Outlet if number == 1 else _Aside
        terminal = stream is not None and stream.isatty()
        if original and not (
            terminal and sys.platform == "win32"
        ):  # a console has calls of its own
            stream.flush()
            raw = outlet(stream.fileno(), "w", closefd=False)
            raw.terminal = terminal
            setattr(sys, name, _outliving(stream, raw))
        elif stream is None and program:
            raw = outlet(number, "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "replace"))


def show_beginning(words: Sequence[str]) -> None:
    """Show on a terminal that a command reads its files, until its first output.

    Loading the modules that do so may take seconds.
    """
    raw = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    reads = len(words) > 1 and not {"-h", "--help"} & {*words}
    if reads and isinstance(raw, _Outlet) and raw.terminal:
        sys.stderr.write(BEGINNING)
        sys.stderr.flush()
        _Outlet.shown = len(BEGINNING)


def end_beginning() -> None:
    """Remove what :func:`show_beginning` has shown, if there was no output."""
    if _Outlet.shown:
        print(end="\r", file=sys.stderr, flush=True)


BEGINNING = "reading ..."

ANY_TEXT = "odefit-any-text"  # how standard output treats text that its encoding lacks


def _escaped_or_replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the bytes of a name that is not in the encoding, and a question mark for the rest."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("replace")(error)


def _outliving(stream: io.TextIOWrapper, outlet: _Outlet) -> io.TextIOWrapper:
    """Return a stream of the same kind that drops unread output."""
    return io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables with the number of threads of numerical libraries. The first also
acts on solvers, whose large matrices may benefit from several threads."""

LEAST_FREE = 10_000_000  # bytes of a disk below which it counts as full


def spare_bytecode() -> None:
    """Keep Python from writing bytecode that a full disk or a limit on file sizes would truncate.

    Python does not notice that its file is incomplete, and fails at every later import of that
    module. The first few modules are imported before this call. CPython 3.14 fixes it (issue
    126606).
    """
    if sys.platform == "win32":
        return
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    disk = os.statvfs(os.path.dirname(__file__))  # noqa: PTH120 - pathlib takes time to import
    if most != resource.RLIM_INFINITY or disk.f_bavail * disk.f_frsize < LEAST_FREE:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # for workers


LOADED = {
    "numpy": 130,
    "scipy.linalg": 150,
    "scipy.special": 150,
    "llvmlite": 350,
    "heyoka": 350,
    "pyarrow": 170,
}
"""Megabytes of address space that packages take when they are loaded and used, by name.

OpenBLAS, in the first three, never ends where its buffers of 32 MB do not fit, some of which come
at its first use. LLVM, in the next two, aborts the process; its part includes compiled kernels. So
does the system's loader while Pandas loads Arrow."""

DISPENSABLE = ("pyarrow",)  # Pandas works without it

SHARED = ("scipy.linalg", "scipy.special")  # they load the same OpenBLAS

EACH_THREAD = 40  # megabytes that OpenBLAS takes for each further thread


class Guard:
    """An importer that loads nothing: it refuses packages for which the memory does not suffice."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuse a package, as missing or for want of memory, if little address space is left."""
        if name not in LOADED or (name in SHARED and any(n in sys.modules for n in SHARED)):
            return
        needed = LOADED[name] + (EACH_THREAD * (_threads() - 1) if LOADED[name] < 200 else 0)
        left = self.allowed - _address_space()
        if left < needed:
            error = ModuleNotFoundError if name in DISPENSABLE else MemoryError
            raise error(
                f"{name} takes {needed} MB of address space, and {max(left, 0)} of the "
                f"{self.allowed} MB that this process is allowed (ulimit -v) are left"
            )


def spare_threads() -> None:
    """Let linear algebra take one thread unless the user has set a number.

    The matrices of a fit are small: several threads wait for each other longer than they compute,
    and compete with worker processes. Call this before NumPy is imported.
    """
    if not any(name in os.environ for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS[1:], "1"))


def spare_collections() -> None:
    """Let Python look for circular garbage after ten thousand new objects instead of 700.

    Most objects of a program that starts stay, and are looked through again and again: that took a
    tenth of the time of a small fit with its report.
    """
    gc.set_threshold(10_000, 10, 10)


def guard_memory() -> None:
    """Refuse packages that would hang or abort within a limit of the address space, if any."""
    allowed = memory_allowed()
    if allowed is not None and sys.platform == "linux":
        sys.meta_path.insert(0, Guard(allowed))


def _address_space() -> int:
    """Return the address space of this process in megabytes."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123 - as above
        sizes = dict(line.split(":", 1) for line in file)
    return int(sizes["VmSize"].split()[0]) * 1024 // 1_000_000


def _threads() -> int:
    """Return the number of threads that OpenBLAS starts."""
    if sys.platform != "linux":
        return 1
    most = len(os.sched_getaffinity(0))
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdecimal():
            return max(min(int(os.environ[name]), most), 1)
    return most


def leave(status: int) -> NoReturn:
    """End this process after its own clean-up, without Python's.

    Extension modules may crash while they are unloaded and no memory is left.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def leave_unfinished(status: int) -> None:
    """End this process if an abandoned compilation is still running."""
    background = sys.modules.get("odefit.common.background")  # loaded by now if there may be one
    if background is not None and background.still_running():
        leave(status)


def memory_allowed() -> int | None:
    """Return the address space limit of this process in megabytes; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most // 1_000_000
