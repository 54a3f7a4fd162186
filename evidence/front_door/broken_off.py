"""Fits that are interrupted at random moments, and the answers they leave.

A first fit to the end gives the time and the answer. Then the same fit, in a separate process, is
interrupted after a random part of that time:

- by a time limit;
- by Ctrl-C, the signal SIGINT;
- by the signal SIGKILL, which no program can handle; the same fit is then called again and resumes
from its checkpoint.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from evidence.front_door.dense_data import DRAWS, SYSTEMS, dense_problem
from evidence.front_door.plan import DEFAULT
from evidence.front_door.problems import extent, warm_up
from evidence.library.fits import AS_LOW, EXACT
from evidence.running.campaign import Task
from odefit import Problem, Result, fit, library, load_result

LEVEL = 1e-2  # the noise of the dense series among the problems
BEGUN = b"begun\n"  # the line that the process of a fit prints when its problem is ready
LABELS = ("time limit", "interrupted")  # the statuses of an interrupted fit


def broken_off(task: Task) -> Mapping[str, Any]:
    """Interrupt a fit.

    ``returned``: whether there is an answer; ``status``; ``labelled``: whether the status reports
    the interruption, or answer and status are those of the whole fit; ``objective``, ``whole``: of
    this answer, and of the whole fit; ``seconds``: of the whole fit; ``after``: the seconds until
    the interruption; ``late``: the seconds from it to the end; ``message``: the fault.
    """
    problem = interrupted_problem(task)
    began = time.perf_counter()
    whole = fit(problem, seed=task["seed"], jobs=1, time_limit=task["limit"])
    seconds = time.perf_counter() - began
    after = task["moment"] * seconds
    found = {"seconds": seconds, "after": after, "whole": _objective(whole), "message": ""}
    if task["kind"] == "time limit":
        began = time.perf_counter()
        result = fit(problem, seed=task["seed"], jobs=1, time_limit=after)
        late = time.perf_counter() - began - after
        return found | _told(result) | {"late": late, "labelled": _labelled(result, whole)}
    with tempfile.TemporaryDirectory() as folder:
        number = signal.SIGINT if task["kind"] == "ctrl-c" else signal.SIGKILL
        late, said = _signalled(task, Path(folder), number, after)
        if task["kind"] == "kill":  # the delay is that of the call that resumes
            late, said = _signalled(task, Path(folder), None, 0.0)
        file = Path(folder) / "result.json"
        if not file.is_file():
            nothing = {"returned": False, "status": "none", "labelled": False, "late": late}
            return found | nothing | {"objective": math.inf, "message": said}
        result = load_result(file)
        return found | _told(result) | {"late": late, "labelled": _labelled(result, whole)}


def interrupted_problem(task: Task) -> Problem:
    """Return the problem of a task: a dense series, or one of the library."""
    if task["problem"] in SYSTEMS:
        return dense_problem(task["problem"], LEVEL, task["seed"] % DRAWS)[0]
    return library.load(task["problem"])


def fit_to_file(text: str, folder: str) -> None:
    """Fit the problem of a task, given as JSON, and save the result, in the separate process."""
    task = json.loads(text)
    assert task["method"] == DEFAULT
    problem = interrupted_problem(task)
    warm_up()
    os.write(1, BEGUN)
    result = fit(
        problem,
        seed=task["seed"],
        jobs=1,
        time_limit=task["limit"],
        checkpoint=Path(folder) / "checkpoint",
    )
    # The signal ends the fit, not the writing of its result.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    result.save(Path(folder) / "result.json")


def _signalled(
    task: Task, folder: Path, number: signal.Signals | None, after: float
) -> tuple[float, str]:
    """Run the fit in a process, and send it a signal; return its delay and a message."""
    code = (
        "import sys; from evidence.front_door.broken_off import fit_to_file; "
        "fit_to_file(*sys.argv[1:])"
    )
    environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with (
        (folder / "errors").open("w+b") as errors,
        subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(dict(task)), str(folder)],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            preexec_fn=_heed,
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()  # it has begun, or has died
        time.sleep(after)
        began = time.perf_counter()
        if number is not None:
            with suppress(ProcessLookupError):
                process.send_signal(number)
        process.wait()
        return time.perf_counter() - began, _end(errors)


def _heed() -> None:
    """Stop ignoring Ctrl-C, which a child inherits from its worker process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(errors: IO[bytes]) -> str:
    """Return the last line of the process's output, after the places of a traceback."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File ")]
    return "; ".join([*lines[-1:], *places[-3:]])


def _objective(result: Result) -> float:
    return result.objective if result.solutions else math.inf


def _labelled(result: Result, whole: Result) -> bool:
    """Return whether a status reports the interruption, or equals that of the same answer."""
    squares = extent(whole.problem)["squares"]
    best = (1 + AS_LOW) * _objective(whole) + EXACT**2 * squares
    same = result.status is whole.status and _objective(result) <= best
    return result.status.value in LABELS or same


def _told(result: Result) -> dict[str, Any]:
    return {
        "returned": bool(result.solutions),
        "status": result.status.value,
        "objective": _objective(result),
        "message": result.message,
    }
