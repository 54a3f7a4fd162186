"""Commands in separate processes, which campaigns attack, and the faults of their ends.

POSIX only; the signals that a process handles are read from Linux's /proc.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import odefit

PROBLEM = str(odefit.library.path("alpha-pinene"))
FIT = ("fit", PROBLEM, "--jobs", "1", "--json", "r.json")
TESTS = Path(__file__).parents[2] / "tests"
STORED = "stored.json"  # a result that is copied into each folder
COMMANDS: Mapping[str, Sequence[str]] = {
    "fit": FIT,
    "profile": ("profile", PROBLEM, "--jobs", "1", "--json", "r.json"),
    "check": ("check", PROBLEM),
    "methods": ("methods",),
    "explore": ("explore", PROBLEM, "--no-browser"),
    "show": ("show", STORED),
    "plot": ("plot", STORED, "-o", "fit.svg"),
    "residuals": ("residuals", STORED),
    "predict": ("predict", STORED, "--times", "0:4:9"),
    "compare": ("compare", STORED, STORED),
    "simulate": ("simulate", PROBLEM, "--set", *(f"p{i}=1e-5" for i in range(1, 6))),
    "new": ("new", "small.csv", "-o", "new.toml"),
    "convert": ("convert", PROBLEM, "other.toml"),
    "convert to MATLAB": ("convert", STORED, "model.m"),
    "predict a scenario": ("predict", STORED, "--scenario", "other.toml", "--quantity", "max(y)"),
    "validate": ("validate", STORED, "new.csv", "--json", "v.json"),
    "cross-validate": ("validate", STORED, "--cross", "block", "--folds", "3", "--jobs", "1"),
    "verify": ("verify", "certificate.json"),
    "design": ("design", STORED, "--times", "0:4", "--count", "2", "--json", "d.json"),
    "sensitivity": ("sensitivity", STORED, "--kind", "morris", "--json", "s.json"),
    "library": ("library", "sir", "--copy", "here"),
}
ENDING = tuple(name for name in COMMANDS if name != "explore")  # commands that end by themselves
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # in the order of their handlers
PATIENCE = 600.0  # seconds after which a run that should have ended counts as one that hangs
MEASURED = 1  # runs of which the median is the duration of a command

TEXTS: Mapping[str, str] = {
    "small.csv": "t,x\n0,1\n1,0.5\n2,0.3\n",
    "new.csv": "t,y\n0,1\n1,0.5\n2,0.3\n",
    "other.toml": "name = 'other'\ntimes = [0, 1, 2, 3, 4]\n",
}
"""Files that lie in each folder."""


def prepare(folder: Path) -> None:
    """Write the files that commands read."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(TESTS / "results-format-1" / "0.1-single-shooting.json", folder / STORED)
    shutil.copy(TESTS / "data" / "certificate.json", folder)


def command(
    arguments: Sequence[str],
    folder: Path,
    scratch: Path | None = None,
    first: Callable[[], object] = lambda: None,
    **more: Any,
) -> subprocess.Popen[str]:
    """Begin a command in a folder, after `first` in its process.

    Its temporary files lie below the folder, or below another folder.
    """

    def begun() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # workers of a campaign ignore it
        first()

    temporary = (scratch or folder) / "scratch"
    temporary.mkdir(exist_ok=True)
    if scratch is None:
        prepare(folder)
    environment = dict(os.environ) | {"TMPDIR": str(temporary)} | more.pop("env", {})
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen(
        [sys.executable, "-m", "odefit", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        preexec_fn=begun,
        **streams,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for the end of a command, and return its output."""
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def in_main(process: subprocess.Popen[str]) -> bool:
    """Wait until the first line of ``main`` has set its handlers; False if the process has ended.

    The system or Python itself handles an earlier signal.
    """
    while process.poll() is None:
        if has_signal(process.pid, "SigCgt", ENDING_SIGNALS[-1]):
            return True
        time.sleep(0.001)
    return False


def has_signal(process: int, mask: str, number: signal.Signals) -> bool:
    """Return whether a mask of signals of a process (SigCgt, SigIgn) contains one."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    lines = dict(line.split(":", 1) for line in text.splitlines())
    return bool(int(lines.get(mask, "0"), 16) >> (number - 1) & 1)


@cache
def seconds(arguments: Sequence[str]) -> float:
    """Return the seconds from the first line of ``main`` to the end of a command on its own.

    Its first run, which may compile, does not count. A command that does not end by itself gives 3.
    """
    if arguments[0] == "explore":
        return 3.0
    durations = []
    for _ in range(1 + MEASURED):
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            process = command(arguments, Path(folder))
            in_main(process)
            began = time.monotonic()
            ended(process)
            durations.append(time.monotonic() - began)
    return statistics.median(durations[1:])


def wrong(
    process: subprocess.Popen[str],
    err: str,
    folder: Path,
    allowed: Sequence[int],
    killed: bool = False,
) -> str:
    """Return the fault of a run that has ended in words; empty if it is right.

    Files that a `killed` run has left behind do not count.
    """
    scratch = folder / "scratch"
    temporary = scratch.iterdir() if scratch.is_dir() and not killed else ()
    left = [p.name for p in [*folder.glob("*.tmp"), *temporary]]
    if process.returncode not in allowed:
        return f"status {process.returncode}: {err[-200:]}"
    return "a traceback" if "Traceback" in err else f"left: {left}" if left else ""
