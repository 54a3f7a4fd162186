"""Processes of this computer: whether one has ended, also if another has its number now.

Numbers of processes are used again, after a restart of the computer and in containers. Linux says
more of them, in the folder :data:`PROCESSES`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PROCESSES = Path("/proc")
"""The folder in which Linux describes its processes."""


def has_ended(number: int, start: str | None = None) -> bool:
    """Return whether a process of this number has certainly ended.

    `start` is its start as :func:`start_of` returned it; then another process of the same number is
    recognised, on Linux. Without it a process of this number that runs is taken for the same.
    """
    if start is not None:
        return start != start_of(number)
    try:
        os.kill(number, 0)  # no signal: it only asks
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def start_of(number: int) -> str:
    """Return the start of a process, in ticks since boot; empty if there is no such process."""
    try:
        text = (PROCESSES / str(number) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]  # field 22, the second being "(name)"


def this_boot() -> str:
    """Return an identifier of this computer's boot; empty if unknown."""
    try:
        text = (PROCESSES / "sys/kernel/random/boot_id").read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.strip().replace("-", "")[:12]


def this_namespace() -> str:
    """Return the number of the namespace of this process's number; empty if unknown."""
    try:
        return re.sub(r"\D", "", str((PROCESSES / "self/ns/pid").readlink()))
    except OSError:
        return ""
