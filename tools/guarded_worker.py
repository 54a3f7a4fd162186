"""A process that reads possibly hostile inputs, with limited memory and audit hooks.

Python's audit hooks report forbidden actions of an input: connecting to another machine, starting a
program, loading objects by pickle, or opening a file that was not named.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import odefit
from input_kinds import Case, OutputError, WrongSuccessError
from kinds_of_inputs import KINDS

Verdict = Literal[
    "refused", "same", "another", "traceback", "wrong success", "output", "message", "forbidden",
    "memory", "hang", "crash",
]  # fmt: skip
FAULTS = ("traceback", "wrong success", "output", "message", "forbidden", "memory", "hang", "crash")

EXTRA_MEMORY = 2 << 30
"""Bytes that a case may use beyond those of the process before it, so that it cannot swap."""

PEAK_MEMORY, PEAK_FACTOR = 200_000_000, 20
"""Largest growth of the resident memory, in bytes and in bytes for each byte of a case's files."""

LONGEST_MESSAGE = 1500


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    Attributes
    ----------
    verdict
        The outcome in a word.
    text
        The message, or the fault.
    detail
        The change of the input.
    memory
        Growth of the resident memory at its peak, in bytes.
    seconds
        Processor time in seconds.
    """

    verdict: Verdict
    text: str
    detail: str
    memory: int
    seconds: float


class Watch:
    """Audit hooks, which cannot be removed but are inactive between cases."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.folder: Path | None = None
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments!r}"[:200])
        elif event == "open" and isinstance(arguments[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            near = str(self.folder.parent)
            outside = path.startswith(near) and not path.startswith(str(self.folder))
            if outside or path in ("/etc/passwd", "/dev/stdin") or "/environ" in path:
                self.seen.append(f"opened {path}")


_FORBIDDEN = frozenset(
    ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.system",
     "os.exec", "os.posix_spawn", "pickle.find_class", "urllib.Request", "os.fork")
)  # fmt: skip


def serve(connection: Connection, seed: int, keep: Path | None) -> None:
    """Run the cases whose numbers arrive, and send their outcomes, until the connection closes."""
    warnings.simplefilter("ignore")
    os.environ["ODEFIT_CACHE"] = tempfile.mkdtemp(prefix="cache-")
    place = Path(tempfile.mkdtemp(prefix="inputs-")).resolve()
    watch = Watch()
    prepared: dict[str, Any] = {}
    try:
        while True:
            name, number = connection.recv()
            kind = KINDS[name]
            if name not in prepared:
                folder = place / f"prepared-{len(prepared)}"
                folder.mkdir()
                prepared[name] = kind.prepare(folder)
            connection.send("ready")
            folder = place / "around" / "case"
            folder.mkdir(parents=True)
            rng = random.Random(f"{seed}:{name}:{number}")
            case = kind.make(prepared[name], rng, folder)
            if keep is not None:
                shutil.copytree(folder, keep / f"{name}-{number}", symlinks=True,
                                dirs_exist_ok=True)  # fmt: skip
            connection.send(outcome(case, folder, watch))
            shutil.rmtree(place / "around")
    except EOFError:
        return
    finally:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(os.environ["ODEFIT_CACHE"], ignore_errors=True)


def outcome(case: Case, folder: Path, watch: Watch) -> Outcome:
    """Run a case within its limits."""
    before = _forget_peak()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    limited = _limit_memory(EXTRA_MEMORY)
    began = os.times()
    watch.seen.clear()
    watch.folder = folder
    verdict: Verdict
    try:
        text = case.run()
        verdict = "same" if text == case.reference else "another"
        text = ""
        if case.expected == "refused" or (case.expected == "noticed" and verdict == "same"):
            verdict, text = "wrong success", f"expected: {case.expected}"
        elif case.expected == "same" and verdict != "same":
            verdict, text = "wrong success", "another problem"
    except odefit.InputError as error:
        verdict, text = "refused", error.messages[0] if error.messages else ""
        wrong = _wrong_message(error)
        if wrong:
            verdict, text = "message", wrong
        elif case.expected == "same":
            verdict, text = "wrong success", f"refused: {text}"
    except WrongSuccessError as error:
        verdict, text = "wrong success", str(error)
    except OutputError as error:
        verdict, text = "output", str(error)
    except MemoryError:
        verdict, text = "memory", traceback.format_exc(limit=-6)
    except BaseException:  # noqa: BLE001 (whatever it is, that is what is looked for)
        verdict, text = "traceback", traceback.format_exc(limit=-8)
    finally:
        watch.folder = None
        _limit_memory(None, limited)
    ended = os.times()
    memory = max(0, _peak() - before)
    if watch.seen and verdict not in FAULTS:
        verdict, text = "forbidden", watch.seen[0]
    if memory > PEAK_MEMORY + PEAK_FACTOR * size and verdict not in FAULTS:
        verdict, text = "memory", f"{memory / 2**20:.0f} MiB"
    seconds = ended.user + ended.system - began.user - began.system
    return Outcome(verdict, text, case.detail, memory, seconds)


def _wrong_message(error: odefit.InputError) -> str:
    """Return the fault of a message: it must name a place, and be a line of limited length."""
    if not error.messages:
        return "no message"
    for message in error.messages:
        if ": " not in message or not message.partition(": ")[2].strip():
            return f"no place or no reason: {message!r}"
        if not message.isprintable():
            return f"unprintable: {message!r}"
        if len(message) > LONGEST_MESSAGE:
            return f"{len(message)} characters: {message[:200]!r}"
    return ""


def _forget_peak() -> int:
    """Reset the record of the largest resident memory; return the present size in bytes."""
    with suppress(OSError):  # on other systems than Linux the peak is that of all cases so far
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return _peak()


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def _limit_memory(extra: int | None, before: tuple[int, int] | None = None) -> tuple[int, int]:
    """Limit the address space to the present size plus `extra` bytes, or restore `before`."""
    import resource

    now = resource.getrlimit(resource.RLIMIT_AS)
    if extra is None:
        resource.setrlimit(resource.RLIMIT_AS, before or now)
        return now
    try:
        used = (
            int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
            * resource.getpagesize()
        )
    except OSError:
        return now
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, now[1]))
    return now
