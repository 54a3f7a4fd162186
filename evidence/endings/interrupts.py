"""Long work that is ended at random moments: the answers it leaves, and their delay.

Each method, and each of profiles, bootstrap and posterior, is begun on problems of the library. It
is ended after a random time by a signal (SIGINT, SIGTERM) or by a time limit. Half of the moments
are within the first second, so that preparation and the first start are met. Every run is a
separate process, forked from a process that has imported all modules, so that imports are not
measured.

"Answer" is the share of runs with an answer: values of the unknowns with a finite objective, or
with the profiles and samples so far. "Said" is the share whose status reports the interruption, or
that had ended before. "Late" is the time from the signal, or from the time limit, to the end of the
process, with its result written.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit.methods.registry import as_method

KINDS = ("ctrl-c", "sigterm", "time limit")  # the ways to end a run
SIGNALS = {"ctrl-c": signal.SIGINT, "sigterm": signal.SIGTERM}  # signals by the kind of end

# Half of the moments are within the first number of seconds, all within the second
FIRST_SECOND, LATEST = 1.0, 5.0
LONGEST = 120.0  # seconds from the request to end a run until it is killed

# Problems of searches; each run takes the next
PROBLEMS = ("lotka-volterra-p", "alpha-pinene", "hiv-proteinase")
SMALL = ("lotka-volterra-p", "alpha-pinene")  # problems of methods that do not apply to all
NOISY = ("alpha-pinene",)  # problems of profiles and samples, which need noise

# Work on a problem with a time limit; returns the status and what was reached, or infinity
Work = Callable[[odefit.Problem, float | None], tuple[str, float]]


@dataclass(frozen=True)
class Case:
    """Work that is ended."""

    name: str  # its name in the table
    work: Work  # the work
    problems: tuple[str, ...] = PROBLEMS  # the problems on which it is done


def fitted(method: Any, problem: odefit.Problem, limit: float | None) -> tuple[str, float]:
    """Fit, and return status and objective."""
    result = odefit.fit(problem, method, jobs=1, time_limit=limit)
    return result.status.value, result.objective if result.solutions else math.inf


def assessed(
    what: str, problem: odefit.Problem, limit: float | None, options: dict[str, Any]
) -> tuple[str, float]:
    """Assess the answer of a fit made before, and return status and number of parts."""
    found = getattr(RESULTS[problem.name], what)(jobs=1, time_limit=limit, **options)
    if what == "profile":
        return found.status.value, float(sum(len(p.values) for p in found.profiles))
    size = found.chains.size if what == "sample" else found.vectors.size
    return found.status.value, float(size)


# results of fits by the name of the problem, for assessments
RESULTS: dict[str, odefit.Result] = {}


def _cases() -> list[Case]:
    """Return all kinds of work."""
    endless = 10**6
    found = [
        Case("Automatic", partial(fitted, odefit.Automatic(starts=endless))),
        Case("MultiStart", partial(fitted, odefit.MultiStart(starts=endless))),
        Case("SingleShooting", partial(fitted, odefit.SingleShooting())),
        Case("MultipleShooting", partial(fitted, odefit.MultipleShooting(starts=endless))),
        Case("IntegralMatching", partial(fitted, odefit.IntegralMatching(starts=endless)), SMALL),
        Case("Transcription (IPOPT)", partial(fitted, odefit.Transcription(starts=endless))),
        Case("Algebraic", partial(fitted, odefit.Algebraic()), SMALL),
        Case(
            "OuterApproximation",
            partial(fitted, odefit.OuterApproximation(bounds="propose")),
            SMALL,
        ),
        Case("BranchAndBound", partial(fitted, odefit.BranchAndBound()), SMALL),
    ]
    if find_spec("pyscipopt") is not None:
        solver = odefit.Transcription(solver="scip")
        found.append(Case("Transcription (SCIP)", partial(fitted, solver), SMALL))
    if find_spec("maingopy") is not None:
        solver = odefit.Transcription(solver="maingo", scheme="runge-kutta")
        found.append(Case("Transcription (MAiNGO)", partial(fitted, solver), SMALL))
    more = [("profile", {}), ("bootstrap", {"count": endless})]
    if find_spec("nutpie") is not None:
        more.append(("sample", {"draws": endless}))
    for what, options in more:
        found.append(Case(what, partial(_assess, what, options), NOISY))
    return found


def _assess(
    what: str, options: dict[str, Any], problem: odefit.Problem, limit: float | None
) -> tuple[str, float]:
    return assessed(what, problem, limit, options)


@dataclass(frozen=True)
class Run:
    """The outcome of a run: whether it left an answer and reported its end, and its delay."""

    answer: bool
    said: bool
    late: float
    message: str


def ended(case: Case, name: str, kind: str, moment: float) -> Run:
    """Run work in a separate process, and end it after this number of seconds."""
    problem = odefit.library.load(name)
    limit = moment if kind == "time limit" else None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        ready, begun = os.pipe()
        child = os.fork()
        if child == 0:
            _work(case.work, problem, limit, file, begun)
        os.close(begun)
        os.read(ready, 1)
        os.close(ready)
        began = time.perf_counter()
        if kind in SIGNALS:
            time.sleep(moment)
            os.kill(child, SIGNALS[kind])
        asked = began + moment
        killed = False
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.005)
            if time.perf_counter() > asked + LONGEST and not killed:
                os.kill(child, signal.SIGKILL)
                killed = True
        late = max(time.perf_counter() - asked, 0.0)
        if not file.is_file():
            return Run(False, False, late, "killed" if killed else "died")
        found = json.loads(file.read_text(encoding="utf-8"))
    early = ("time limit", "interrupted")
    # Work that had ended before, or was ended during its assessment, may report "converged".
    before = found["seconds"] < moment + 0.1 or kind == "time limit"
    said = found["status"] in early or before
    return Run(math.isfinite(found["reached"]), said, late, found["message"])


def _work(work: Work, problem: odefit.Problem, limit: float | None, file: Path, begun: int) -> None:
    """Do the work of a child process, and exit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    message = ""
    os.write(begun, b"1")
    began = time.perf_counter()
    try:
        status, reached = work(problem, limit)
    except KeyboardInterrupt:
        status, reached, message = "no answer", math.inf, "KeyboardInterrupt"
    except odefit.InputError as error:
        status, reached, message = "refused", math.inf, str(error)
    seconds = time.perf_counter() - began
    told = {"status": status, "reached": reached, "seconds": seconds, "message": message}
    file.write_text(json.dumps(told), encoding="utf-8")
    os._exit(0)


def warm_up() -> None:
    """Import the packages for fits, and make the results that profiles and samples begin from."""
    for name in NOISY:
        problem = odefit.library.load(name)
        RESULTS[problem.name] = odefit.fit(problem, odefit.MultiStart(starts=3), jobs=1)
    problem = odefit.library.load(SMALL[0])
    for name in (
        "automatic",
        "multiple-shooting",
        "integral-matching",
        "algebraic",
        "transcription",
    ):
        odefit.fit(problem, as_method(name), jobs=1, time_limit=3.0)
    next(iter(RESULTS.values())).bootstrap(count=2, jobs=1)
    if find_spec("nutpie") is not None:
        next(iter(RESULTS.values())).sample(draws=5, tune=5, chains=1, jobs=1)


OPTIONS = (
    Option("runs", 6, "runs of each kind of each case", least=1),
    Option("seed", 1, "seed of the moments"),
    Option("cases", (), "names of cases, all if none is named", lambda: [c.name for c in _cases()]),
    Option("kinds", KINDS, "the ways to end a run, e.g. sigterm", KINDS),
)


def tasks(runs: int, seed: int, cases: Sequence[str], kinds: Sequence[str]) -> list[Task]:
    names = cases or tuple(c.name for c in _cases())
    return [
        task for name in names for task in tasks_of("kind", kinds, case=name, runs=runs, seed=seed)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """End one kind of work at random moments."""
    if not RESULTS:
        warm_up()
    case = next(c for c in _cases() if c.name == task["case"])
    place = [c.name for c in _cases()].index(case.name), KINDS.index(task["kind"])
    rng = np.random.default_rng([task["seed"], *place])
    found = []
    for number in range(task["runs"]):
        moment = rng.uniform(0.0, LATEST if number % 2 else FIRST_SECOND)
        name = case.problems[number % len(case.problems)]
        one = ended(case, name, task["kind"], moment)
        found.append(vars(one) | {"problem": name, "moment": moment})
    return {"runs": found}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each case and way to end it, and the faulty runs."""
    rows, notes, everything = [], [], []
    for record in records:
        runs = (record.result or {}).get("runs", [])
        everything += runs
        rows.append(_row(record.task["case"], record.task["kind"], runs))
        notes += [
            f"{record.task['case']}, {record.task['kind']}: {r}"
            for r in runs
            if not (r["answer"] and r["said"]) or r["late"] > 2.0
        ]
    rows.append(_row("all", "", everything))
    head = ("work", "ended by", "runs", "answer", "said", "late, median [s]", "late, worst [s]")
    return {"interrupts": listed(head, rows, *notes)}


def _row(name: str, kind: str, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    late = [r["late"] for r in runs] or [math.nan]
    counts = [len(runs), *(sum(r[key] for r in runs) for key in ("answer", "said"))]
    return [name, kind, *map(str, counts), f"{statistics.median(late):.2f}", f"{max(late):.2f}"]
