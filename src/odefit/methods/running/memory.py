"""Memory: the available amount, the use of a run, and its limit.

If memory runs out, Linux swaps until nothing moves, or kills a process. So a run looks ahead: it
ends with the best so far while there is still memory to write it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odefit.common.errors import InputError

UNITS = {"": 1, "b": 1}
UNITS |= {f"{k}b": 1000 ** (i + 1) for i, k in enumerate("kmgt")}
UNITS |= {f"{k}ib": 1024 ** (i + 1) for i, k in enumerate("kmgt")}
UNITS |= {k: 1000 ** (i + 1) for i, k in enumerate("kmgt")}
"""Bytes of each unit of memory, in small letters."""

LEAST_LIMIT = 100_000_000
"""The smallest sensible limit, in bytes: the interpreter with its libraries needs it."""

RESERVE_SHARE, MOST_RESERVE = 0.04, 500_000_000
"""Share of the memory below which a run without a limit ends, and the largest such reserve in
bytes."""

GUILTY_SHARE = 0.25  # it ends only if it uses at least this share of the memory itself
CGROUP = Path("/sys/fs/cgroup")  # where Linux shows the limits of a container


def memory_size(size_or_text: object, place: str = "memory") -> int:
    """Return a number of bytes from a number, or from a text such as ``"4GB"`` or ``"512 MiB"``.

    Raises InputError for anything else, or for too little for any fit.

    Examples
    --------
    >>> memory_size("1.5GB")
    1500000000
    """
    size = None
    if isinstance(size_or_text, (int, float)) and not isinstance(size_or_text, bool):
        size = float(size_or_text)
    elif isinstance(size_or_text, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][0-9]+)?)\s*([a-zA-Z]*)\s*", size_or_text)
        if match is not None and match[2].lower() in UNITS:
            size = float(match[1]) * UNITS[match[2].lower()]
    if size is None or not 0 < size < float("inf"):
        raise InputError(
            f'{place}: expected a number of bytes or a text such as "4GB" or "512MiB", '
            f"got {size_or_text!r}"
        )
    if size < LEAST_LIMIT:
        raise InputError(
            f"{place}: {in_words(size)} is too little for Python and its libraries; "
            f"give at least {in_words(LEAST_LIMIT)}"
        )
    return int(size)


def memory_limit(limit: int | str | None, place: str = "memory") -> int | None:
    """Return the number of bytes that :func:`memory_size` returns; None for no limit."""
    return None if limit is None else memory_size(limit, place)


def in_words(size: float) -> str:
    """Return a number of bytes in words for people, with three digits.

    Examples
    --------
    >>> in_words(4_000_000_000)
    '4 GB'
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


@dataclass(frozen=True)
class Machine:
    """The bytes of the machine or of its container, in total and available without swapping."""

    total: float
    available: float


def machine_memory(root: Path = Path("/"), cgroup: Path = CGROUP) -> Machine | None:
    """Return the memory of this machine or container; None if unknown, as on Windows.

    ``proc`` is in `root`, and the limits of the container are in `cgroup`.
    """
    try:
        text = (root / "proc/meminfo").read_text(encoding="utf-8")
    except OSError:
        return None
    lines = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, flags=re.MULTILINE))
    if "MemTotal" not in lines or "MemAvailable" not in lines:
        return None
    total, available = 1024.0 * int(lines["MemTotal"]), 1024.0 * int(lines["MemAvailable"])
    for folder, most, used, cached in _groups(root, cgroup):
        limit, current = _number(folder / most), _number(folder / used)
        if limit is None or current is None:
            continue
        with suppress(OSError):
            stat = (folder / "memory.stat").read_text(encoding="utf-8")
            match = re.search(rf"^{cached} (\d+)", stat, re.MULTILINE)
            current -= int(match[1]) if match else 0  # cached files can be dropped
        total, available = min(total, limit), min(available, max(limit - current, 0.0))
    return Machine(total, available)


def _groups(root: Path, cgroup: Path) -> Iterator[tuple[Path, str, str, str]]:
    """Yield the folders of this process's control groups, with the names of their files."""
    places = [("", "/")]
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, kind, path = line.split(":", 2)
            if kind in ("", "memory"):
                places.append((kind, path))
    known = set()
    for kind, path in [*places, ("memory", "/")]:
        base = cgroup / kind
        deepest = base / path.strip("/")
        for folder in (deepest, *deepest.parents):
            if folder in known or not folder.is_relative_to(base):
                continue
            known.add(folder)
            if kind == "memory":
                names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            else:
                names = "memory.max", "memory.current", "inactive_file"
            yield folder, *names


def _number(path: Path) -> float | None:
    """Return the number in a file; None without a file, or for a word such as "max"."""
    try:
        return float(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def used_memory(root: Path = Path("/proc"), number: int | None = None) -> int:
    """Return the bytes held by this process and those that it started; 0 if unknown.

    Shared pages are divided among them if the system reports it.
    """
    if sys.platform != "linux" and root == Path("/proc"):
        return 0
    number = os.getpid() if number is None else number
    return sum(_resident(root / str(n)) for n in _family(root, number))


def _family(root: Path, number: int) -> Iterable[int]:
    """Yield the numbers of a process and of all processes that it started."""
    waiting, known = [number], set()
    while waiting:
        process = waiting.pop()
        if process in known:
            continue
        known.add(process)
        yield process
        with suppress(OSError):
            for thread in (root / str(process) / "task").iterdir():
                waiting += [
                    int(n) for n in (thread / "children").read_text(encoding="utf-8").split()
                ]


def _resident(process: Path) -> int:
    with suppress(OSError, ValueError, IndexError):
        _, resident, shared = (process / "statm").read_text(encoding="utf-8").split()[:3]
        return max(int(resident) - int(shared), 0) * _PAGE
    return 0


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class MemoryWatch:
    """A watch that reports when a run, including its processes, uses more than `limit` bytes.

    Without a limit the run ends before the machine runs out of memory, if the run itself uses much.
    """

    limit: int | None = None
    used: Callable[[], int] = used_memory
    machine: Callable[[], Machine | None] = machine_memory

    def short(self) -> str:
        """Return why memory is short, in words; empty if it is not."""
        if self.limit is not None:
            used = self.used()
            if used > self.limit:
                return f"{in_words(used)} were in use, of {in_words(self.limit)} allowed"
        machine = self.machine()
        if machine is None or machine.available > self._reserve(machine):
            return ""
        used = self.used()
        if used < GUILTY_SHARE * machine.total:
            return ""
        left = in_words(machine.available)
        return f"{left} of {in_words(machine.total)} were left, and {in_words(used)} in use here"

    @staticmethod
    def _reserve(machine: Machine) -> float:
        return min(RESERVE_SHARE * machine.total, MOST_RESERVE)
