"""What the benchmarks share: running processes, describing the machine, Markdown tables."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "peers"
PACKAGES = (
    "odefit",
    "numpy",
    "scipy",
    "casadi",
    "heyoka",
    "numba",
    "copasi-basico",
    "python-copasi",
)


@dataclass(frozen=True)
class Finished:
    """A process that has ended: exit status (None: stopped at the time limit), output, seconds."""

    status: int | None
    output: str
    errors: str
    seconds: float


def run_process(command: Sequence[str], limit: float, cache: Path | None = None) -> Finished:
    """Run a command in a process group of its own, and stop all of the group at `limit` seconds.

    Byte code may be written: without it every process would compile what it imports. `cache`
    takes the place of ``~/.cache``, where heyoka keeps what it has compiled: an empty folder is a
    model that was never fitted on this computer.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if cache is not None:
        environment["XDG_CACHE_HOME"] = str(cache)
    began = time.perf_counter()
    with subprocess.Popen(
        list(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            return Finished(None, output, errors, time.perf_counter() - began)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return Finished(process.returncode, output, errors, time.perf_counter() - began)


def console_script(name: str) -> str:
    """The command of that name which belongs to this Python."""
    return str(Path(sys.executable).parent / name)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, columns padded; the first is text, the others are numbers."""
    widths = [max(len(r[k]) for r in [header, *rows]) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(c.rjust(w) for c, w in others)]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if k == 0 else ":") for k, w in enumerate(widths))
    return "\n".join([line(header), rule + "|", *(line(r) for r in rows)])


def machine() -> str:
    """One sentence: date, processor, cores, load, versions."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        for entry in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if entry.startswith("model name"):
                model = entry.split(":", 1)[1].strip()
                break
    versions = []
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    load = os.getloadavg()[0]
    return (
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M}, {model}, {os.cpu_count()} cores "
        f"(load {load:.1f} at the end of the run), Python {platform.python_version()}, "
        + ", ".join(versions)
        + "."
    )


def publish(text: str, out: Path | None) -> None:
    """Print a report, and write it if asked to."""
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n", encoding="utf-8")


def seconds(value: float) -> str:
    """Seconds with a sensible number of digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def worst_error(found: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """Largest relative deviation of the unknowns."""
    return max(abs(found[k] - v) / abs(v) for k, v in reference.items())
