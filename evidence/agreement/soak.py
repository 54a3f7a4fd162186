"""Soak: thousands of fits in one process, its memory, files, threads and children watched.

Every fit has another problem, either a random problem of the zoo or one of the library, read from
its file. The default and other methods take turns. So do other tasks: results are saved and loaded,
reports are written, and time limits are reached. Some problems cannot be integrated or are refused.
A few fits use two processes.

Memory is the resident set of the process after a garbage collection and after the C library has
returned its free blocks, which it would use again. Memory counts as flat if between fit 100 and the
last it grows by no more than `FLAT`. Open files, threads and children are those of before the first
fit, but for what libraries open once; the processes in which loky and Python track shared memory
are not counted. Neither is the process for transcription, which ends after a minute without work.
`--trace` reports by tracemalloc where Python's memory has grown between fit 200 and the last; the
resident set is then meaningless.
"""

from __future__ import annotations

import ctypes
import gc
import json
import tempfile
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from evidence.zoo.drawing import drawn
from evidence.zoo.fits import guessed
from odefit.methods.running import workers
from odefit.methods.solvers import guarded_solve
from odefit.problem import problem_from_mapping

FLAT = 0.05
WARM = 100  # number of fits after which memory may not grow
MILESTONES = (1, WARM, 200, 500, 1000, 1500, 2000)
TIME_LIMIT = 3.0  # seconds of fits from many starts, which a few random problems would exceed
REPORTS = 4  # a report is written of each n-th result that is saved and loaded
MATCHING = odefit.IntegralMatching(starts=2)

# As many as are met within the first `WARM` fits, so that all parts are loaded by then
LIBRARY = (
    *("alpha-pinene", "bbg", "bock", "fitzhugh-nagumo", "harmonic", "henon-heiles", "rikitake"),
    *("lotka-volterra-f", "mammillary-3-f", "sir"),
)


def random_of(number: int) -> odefit.Problem:
    """Return a random problem that no other fit has."""
    return problem_from_mapping(guessed(drawn(10_000 + number)))


def from_library(number: int) -> odefit.Problem:
    """Return a problem of the library, from its file, with new bounds and a new name."""
    return odefit.library.load(LIBRARY[number // 10 % len(LIBRARY)])


def explosive(number: int) -> odefit.Problem:
    """Return a problem whose trajectories end before its last measurement from every start."""
    times = [0.0, 1.0, 2.0 + number % 7]
    return odefit.Problem(
        odefit.Model(ode={"x": f"k*x^2 + {number}e-9"}),
        {"t": times, "x": [1.0, 1.1, 1.3]},
        {"k": {"lower": 5.0, "upper": 9.0}},
        {"x": 1.0},
    )


def saved(number: int, folder: Path) -> odefit.Result:
    """Fit, save and load the result, and occasionally write a report."""
    result = odefit.fit(random_of(number), odefit.SingleShooting())
    result.save(folder / "result.json")
    loaded = odefit.load_result(folder / "result.json")
    if number % (REPORTS * len(JOBS)) < len(JOBS):
        loaded.report(folder / "report.html")
    return loaded


def read(number: int, folder: Path) -> odefit.Problem:
    """A problem from files that are written for it."""
    mapping = {**guessed(drawn(10_000 + number))}
    path = folder / "problem.json"
    path.write_text(json.dumps(mapping), encoding="utf-8")
    return problem_from_mapping(json.loads(path.read_text(encoding="utf-8")))


Job = Callable[[int, Path], odefit.Result]
JOBS: dict[str, Job] = {
    "single shooting": lambda k, _: odefit.fit(random_of(k), odefit.SingleShooting()),
    "default": lambda k, _: odefit.fit(random_of(k), jobs=1, time_limit=TIME_LIMIT),
    "transcription": lambda k, _: odefit.fit(random_of(k), odefit.Transcription(starts=1)),
    "multiple shooting": lambda k, _: odefit.fit(random_of(k), odefit.MultipleShooting(starts=1)),
    "library": lambda k, _: odefit.fit(from_library(k), odefit.SingleShooting()),
    "integral matching": lambda k, _: odefit.fit(random_of(k), MATCHING, time_limit=TIME_LIMIT),
    "time limit": lambda k, _: odefit.fit(random_of(k), jobs=1, time_limit=0.1),
    "cannot be integrated": lambda k, _: odefit.fit(explosive(k), odefit.SingleShooting()),
    "saved, loaded, report": saved,
    "read from a file": lambda k, folder: odefit.fit(read(k, folder), odefit.SingleShooting()),
}
FAULT = "FAULT"  # the outcome of a fit that raised an exception other than InputError
TWO_PROCESSES = 100  # each n-th fit has two processes


@dataclass(frozen=True)
class State:
    """The memory, files, threads and children of the process."""

    fits: int
    memory: float  # resident set in MB
    files: int  # files, threads, children: numbers of open files, threads and child processes
    threads: int
    children: int
    seconds: float


def state(fits: int, began: float) -> State:
    """Return the memory, files, threads and children of the process now."""
    gc.collect()
    with suppress(OSError, AttributeError):  # the GNU C library has this function
        ctypes.CDLL(None).malloc_trim(0)
    process = psutil.Process()
    kept = guarded_solve.process_number()
    children = [p for p in process.children(recursive=True) if p.pid != kept and not _is_tracker(p)]
    held = process.memory_info().rss / 1e6
    spent = time.perf_counter() - began
    return State(fits, held, process.num_fds(), process.num_threads(), len(children), spent)


def _is_tracker(process: psutil.Process) -> bool:
    """Return whether loky or multiprocessing keeps a child as long as its parent lives."""
    with suppress(psutil.Error):
        return any("resource_tracker" in part for part in process.cmdline())
    return True  # it has ended


def fit_number(k: int, folder: Path) -> tuple[str, str]:
    """Return the kind of fit number `k`, and its outcome."""
    name = list(JOBS)[k % len(JOBS)]
    job = JOBS[name]
    if k % TWO_PROCESSES == TWO_PROCESSES // 2:
        name = "two processes"
        job = lambda k, _: odefit.fit(random_of(k), odefit.MultiStart(starts=8), jobs=2)  # noqa: E731
    try:
        return name, job(k, folder).status.value
    except odefit.InputError:
        return name, "refused"
    except Exception:  # noqa: BLE001 (whatever it is, that is a fault, and the others go on)
        return name, f"{FAULT}: {traceback.format_exc(limit=-3)}"


OPTIONS = (
    Option("fits", 2000, "number of fits", least=1),
    Option("trace", False, "where memory grows, by tracemalloc, yes or no"),
    Option("only", "", "one kind of fit alone", ["", *JOBS]),
)


def tasks(fits: int, **options: Any) -> list[Task]:
    return tasks_of("fits", [fits], **options)


def run(task: Task) -> dict[str, Any]:
    """Fit, and record memory, files, threads and children."""
    began = time.perf_counter()
    workers.POOL_AFTER_SECONDS = 0.0  # small fits would end before they start processes
    states = [state(0, began)]
    endings: Counter[tuple[str, str]] = Counter()
    first: tracemalloc.Snapshot | None = None
    grown: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k in range(task["fits"]):
            number = 10 * k + list(JOBS).index(task["only"]) if task["only"] else k
            endings[fit_number(number, folder)] += 1
            done = k + 1
            if task["trace"] and done == WARM:
                tracemalloc.start(12)
            if task["trace"] and done == 2 * WARM:
                gc.collect()
                first = tracemalloc.take_snapshot()
            if done in MILESTONES or done % 50 == 0 or done == task["fits"]:
                states.append(state(done, began))
        if first is not None:
            gc.collect()
            most = tracemalloc.take_snapshot().compare_to(first, "traceback")[:15]
            grown = [" ".join([str(g), *g.traceback.format()[-8:]]) for g in most]
    return {
        "states": [s.__dict__ for s in states],
        "endings": [[*kind, count] for kind, count in endings.items()],
        "grown": grown,
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the memory and counts at milestones, and the outcomes of the fits."""
    found = next((r.result for r in records if r.result is not None), None)
    states = [State(**s) for s in found["states"]] if found else []
    shown = [s for s in states if s.fits in (0, *MILESTONES, states[-1].fits)]
    rows = [
        [str(s.fits), f"{s.memory:.0f}", str(s.files), str(s.threads), str(s.children)]
        for s in shown
    ]
    notes = list(found["grown"]) if found else []
    if states:
        warm = next((s for s in states if s.fits >= WARM), states[0])
        growth = states[-1].memory / warm.memory - 1
        verdict = f"{'flat' if growth <= FLAT else 'NOT flat'} within {100 * FLAT:.0f} %"
        said = f"Memory from fit {warm.fits} to the last: {100 * growth:+.1f} %, {verdict}."
        notes.insert(0, said)
    endings = {(kind, end): count for kind, end, count in (found["endings"] if found else [])}
    names = sorted({end for _, end in endings})
    ended = [
        [kind, *(str(endings.get((kind, n), 0)) for n in names)]
        for kind in sorted({kind for kind, _ in endings})
    ]
    head = ("fits", "resident MB", "open files", "threads", "children")
    return {"states": listed(head, rows, *notes), "endings": listed(["fits", *names], ended)}
