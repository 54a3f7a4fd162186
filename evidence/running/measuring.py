"""Tools for measurements: processes, problems by name, a sentence on the machine."""

from __future__ import annotations

import json
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
from typing import TYPE_CHECKING, Any

from evidence.commits import tree_version

if TYPE_CHECKING:
    from odefit.problem.problem import Problem

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "evidence" / "peers"
PACKAGES = (
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
    """An ended process: exit status (None: stopped at the time limit), output, seconds."""

    status: int | None
    output: str
    errors: str
    seconds: float


def run_process(command: Sequence[str], limit: float, cache: Path | None = None) -> Finished:
    """Run a command in a new process group, and stop the whole group at `limit` seconds.

    Byte code may be written, because every process would otherwise compile its imports. `cache`
    replaces ``~/.cache``, where heyoka stores compiled models; an empty folder represents a model
    never fitted on this computer.
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
    """Return the command of that name in this Python's environment."""
    return str(Path(sys.executable).parent / name)


def processor() -> str:
    """Return the model of the processor and the number of its cores."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        for entry in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if entry.startswith("model name"):
                model = entry.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores"


def machine() -> str:
    """Return a sentence with date, processor, cores, load and versions."""
    versions = [f"odefit {tree_version()}"]
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    load = os.getloadavg()[0]
    return (
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M}, {processor()} "
        f"(load {load:.1f} at the end of the run), Python {platform.python_version()}, "
        + ", ".join(versions)
        + "."
    )


def seconds(value: float) -> str:
    """Seconds with a sensible number of digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def worst_error(found: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """Largest relative deviation of the unknowns."""
    return max(abs(found[k] - v) / abs(v) for k, v in reference.items())


def problem_named(name: str, *, guessed: bool = True) -> Problem:
    """Return a problem of the library, or of a file, which may be its mapping as JSON.

    Parameters of a mapping have guesses only if they are `guessed`.
    """
    from odefit import library, load
    from odefit.problem import problem_from_mapping

    if name.endswith(".json"):
        mapping = json.loads(Path(name).read_text(encoding="utf-8"))
        for fields in mapping["parameters"].values() if not guessed else ():
            fields.pop("guess", None)
        return problem_from_mapping(mapping)
    return load(name) if Path(name).is_file() else library.load(name)


def guesses(problem: Problem) -> dict[str, float]:
    """Return the guess of each unknown by its key, or 1 without a guess."""
    given = {u.key: u.parameter.guess for u in problem.unknowns}
    return {key: 1.0 if guess is None else guess for key, guess in given.items()}


def last_json(finished: Finished) -> dict[str, Any]:
    """Return the last JSON that a process has printed; empty if it has printed none."""
    lines = [line for line in finished.output.splitlines() if line.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else {}


def hide_heyoka() -> None:
    """Let this process integrate as if heyoka were not installed."""
    from odefit.simulation.engines.registry import import_problem

    sys.modules["heyoka"] = None  # type: ignore[assignment]  # as Python marks what is missing
    import_problem.cache_clear()
