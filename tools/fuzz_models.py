"""Run random valid models through all features: nothing crashes, and no answer is lost.

    python tools/fuzz_models.py [--from 0] [--count 5000] [--jobs 1] [--light] [--state FILE]
    python tools/fuzz_models.py --case 17 [--print]

`fuzz_grammar.py` draws a model for each number. Each goes through fit, tables, report, result file,
residuals, prediction, a profile, simulation and check; every fourth through the command line as
well. Warnings count as errors. Faults are: an exception other than `InputError`, a failed stage of
a fit, a NumPy warning, an undocumented exit status, a result that contradicts itself or lost what
the search found, values at the hidden truth that differ from SciPy's without a warning, more than
`LIMIT` seconds, and the end of the process. Refusals are counted, since a valid model should not be
refused. With `--state`, a file with a line of JSON for each case, a run continues where another one
stopped. The exit status is 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import math
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from consistency import contradictions, profile_contradictions
from fuzz_grammar import FuzzModel, UnusableError, fuzz_model

LIMIT = 60
"""Seconds of processor time after which a case counts as hanging."""

FIT_SECONDS, LIGHT_FIT_SECONDS = 3.0, 0.5
"""The time limits of a fit, in general and for a light case."""

COUNT_WORK = 5e7
"""Number of operations of the structural analysis by `odefit check`, about a second."""

APART = 1e-4
"""Difference from the values of SciPy, relative to the largest, that must be reported."""

AGREEMENT = 1e-5
"""Difference of two methods of SciPy, relative to the largest value, up to which both are
trusted."""

STATUSES = frozenset({0, 2, 3, 4})
"""Exit statuses that a command may have."""

UNABLE = "the simulation fails: "
"""The beginning of the error that a result raises if no engine can integrate its answer."""


class OverdueError(BaseException):
    """Raised for a case that takes too long; no `Exception`, so that only this tool catches it."""


@dataclass
class Outcome:
    """The outcome of a case.

    Attributes
    ----------
    number
        The number of the case.
    faults
        The faults, each with its step and a description.
    refusals
        The refused steps, each with the reason.
    status
        The status of the fit.
    seconds
        The duration of the case.
    """

    number: int
    faults: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    status: str = ""
    seconds: float = 0.0


class _Tracebacks(logging.Handler):
    """A log handler that stores the tracebacks of the package."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a traceback."""
        if record.exc_info:
            self.texts.append(self.format(record))


class _Case:
    """The steps of one model; a light case takes the long steps only occasionally."""

    def __init__(self, model: FuzzModel, folder: Path, light: bool) -> None:
        self.model, self.folder, self.light = model, folder, light
        self.outcome = Outcome(model.number)

    def due(self, every: int) -> bool:
        """Return whether a light case takes a step that one in a number of cases takes."""
        return not self.light or self.model.number % every == 0

    def step(self, name: str, run: Callable[[], Any]) -> Any:
        """Run a step; return its value, or None."""
        import odefit

        handler = _Tracebacks()
        logger = logging.getLogger("odefit")
        logger.addHandler(handler)
        found = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = run()
        except odefit.InputError as error:
            self.outcome.refusals.append((name, str(error)))
        except RuntimeError as error:
            if str(error).startswith(UNABLE):
                self.outcome.refusals.append((name, str(error)))
            else:
                self.fault(name, traceback.format_exc())
        except Exception:  # noqa: BLE001 - whatever it is, it is a fault, and the next case follows
            self.outcome.faults.append((name, traceback.format_exc()))
        finally:
            logger.removeHandler(handler)
        self.outcome.faults += [(f"{name}: log", text) for text in handler.texts]
        return found

    def fault(self, step: str, text: str) -> None:
        self.outcome.faults.append((step, text))

    @property
    def seconds(self) -> float:
        """The time limit of a fit."""
        return LIGHT_FIT_SECONDS if self.light else FIT_SECONDS

    def run(self) -> Outcome:
        """Run all steps of the model."""
        import odefit
        from odefit.problem import problem_from_mapping

        began = time.perf_counter()
        problem = self.step("read", lambda: problem_from_mapping(self.model.mapping))
        if problem is not None:
            self._whole(problem)
            result = self._fitted(problem) if self.model.truth else None
            if result is not None:
                self._result(result, odefit)
            if self.due(3):
                self.step("check", lambda: self._check(problem))
            if self.model.number % (12 if self.light else 4) == 0:
                self._commands(bool(self.model.truth))
        self.outcome.seconds = time.perf_counter() - began
        return self.outcome

    def _whole(self, problem: Any) -> None:
        """Simulate at the hidden truth, if SciPy can: odefit must give the same values."""
        vector = self._truth(problem)
        if vector is None:
            return
        found = self.step("simulate", lambda: self._observables(problem, vector))
        if isinstance(found, str):
            self.outcome.refusals.append(("simulate", found))
        elif found is not None:
            self._beside_scipy(problem, vector, found)

    def _truth(self, problem: Any) -> Any:
        """Return the hidden values of all unknowns; None if the truth lacks one."""
        known = {key: self.model.truth.get(key) for key in problem.keys}
        for unknown in problem.unknowns:
            if unknown.kind == "noise":
                known[unknown.key] = 1.0  # does not act on the trajectory
        return None if None in known.values() else np.array(list(known.values()), dtype=float)

    def _observables(self, problem: Any, vector: Any) -> Any:
        """Return the observables of each experiment, or the reason why they are missing."""
        import odefit

        found = []
        for condition in problem.conditions:
            simulated = odefit.simulate(problem, vector, experiment=condition.name)
            if isinstance(simulated, odefit.Failure):
                return str(simulated)
            found.append(simulated.observables)
        return found

    def _beside_scipy(self, problem: Any, vector: Any, found: Any) -> None:
        if _difference(found, self.model.curves)[0] <= APART:
            return
        try:
            sure = self.model.followed()
        except (UnusableError, ArithmeticError, ValueError):
            return  # the second method of SciPy cannot
        apart, where = _difference(found, sure)
        if apart <= APART or _difference(self.model.curves, sure)[0] > AGREEMENT:
            return
        what = f"{where} differs from SciPy by {apart:.1e} of its largest value"
        values = dict(zip(problem.keys, vector.tolist(), strict=True))
        said = self.step("simulate again", lambda: self._confirmed(problem, values, sure))
        if said:
            self.fault("simulate", f"{what}\nand {said}")
        else:
            self.outcome.refusals.append(("simulate", f"{what}, and that is told"))

    def _confirmed(self, problem: Any, values: dict[str, float], sure: Any) -> str:
        """Return the fault after a second opinion; empty if that opinion reports it."""
        from odefit.simulation.simulations import confirmed_simulation

        table, opinion = confirmed_simulation(problem, values)
        if opinion is None or opinion.agrees:
            return "the second opinion agrees with what is wrong"
        if opinion.better is None:
            return ""  # it reports that no engines agree
        several = len(problem.conditions) > 1
        parts = [
            table[table["experiment"] == c.name] if several else table for c in problem.conditions
        ]
        apart, where = _difference(parts, sure)
        return f"what is found better differs in {where} by {apart:.1e}" if apart > APART else ""

    def _fitted(self, problem: Any) -> Any:
        import odefit

        two, one = odefit.MultiStart(starts=2), odefit.SingleShooting()
        methods: tuple[Any, ...] = (None, two, one, one if self.light else None)
        method = methods[self.model.number % len(methods)]
        result = self.step(
            "fit",
            lambda: odefit.fit(
                problem, method, seed=self.model.number, jobs=1, time_limit=self.seconds
            ),
        )
        if result is None:
            return None
        self.outcome.status = result.status.value
        ends = [s for s in result.starts if s.status.value != "failed" and math.isfinite(s.cost)]
        if ends and not result.solutions:
            self.fault("fit", f"an answer was lost: {result.message}")
        if result.solutions and not math.isfinite(result.objective):
            self.fault("fit", f"objective {result.objective}")
        return result

    def _result(self, result: Any, odefit: Any) -> None:
        path = self.folder / "result.json"
        self.step("text", lambda: f"{result}{result!r}")
        self.step("save", lambda: result.save(path))
        loaded = self.step("load", lambda: odefit.load_result(path)) if path.exists() else None
        if loaded is not None and str(loaded.objective) != str(result.objective):
            self.fault("load", f"objective {loaded.objective}, was {result.objective}")
        if not result.solutions:
            return
        self.step("parameters", lambda: result.parameters)
        self.step("summary", result.summary)
        self.step("residuals", lambda: result.residuals)
        self.step("simulate a result", result.simulate)
        self.step("predict", result.predict)
        for text in self.step("contradictions", lambda: contradictions(result)) or ():
            self.fault("contradictions", text)
        if self.due(7):
            self.step("report", lambda: result.report(self.folder / "report.html"))
        if not self.due(5):
            return
        keys = list(result.problem.keys)
        key = keys[self.model.number % len(keys)]
        profiles = self.step("profile", lambda: result.profile([key], jobs=1, time_limit=1.0))
        for text in () if profiles is None else profile_contradictions(result, profiles):
            self.fault("profile", text)

    def _check(self, problem: Any) -> None:
        from rich.console import Console

        from odefit.reporting import description

        description.COUNT_WORK = COUNT_WORK
        description.print_description(problem, console=Console(file=io.StringIO(), width=100))

    def _commands(self, unknown: bool) -> None:
        path = self.folder / "problem.toml"
        path.write_text(self.model.toml, encoding="utf-8")
        result, report = self.folder / "cli.json", self.folder / "cli.html"
        if unknown:
            limits = ["--jobs", "1", "--time-limit", str(self.seconds), "--starts", "2"]
            files = ["--json", str(result), "--report", str(report)]
            self._command("fit", str(path), "--method", "multi-start", *limits, *files)
            if result.exists():
                self._command("residuals", str(result))
                self._command("predict", str(result))
                self._command("show", str(result))
        else:
            self._command("residuals", str(path))
        values = [f"{key}={value!r}" for key, value in self.model.truth.items()]
        self._command("simulate", str(path), *(["--set", *values] if values else []))
        self._command("check", str(path))

    def _command(self, *arguments: str) -> None:
        from odefit.cli.main import main

        out, err = io.StringIO(), io.StringIO()

        def run() -> int:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                return main(arguments)

        name = f"odefit {arguments[0]}"
        status = self.step(name, run)
        said = err.getvalue()
        if status is not None and status not in STATUSES:
            self.fault(name, f"exit status {status}: {said}")
        if status == 2:
            self.outcome.refusals.append((name, said))
        if re.search(r"Warning|Traceback", said):
            self.fault(name, said)


def _difference(found: Sequence[Any], curves: Sequence[Any]) -> tuple[float, str]:
    """Return the largest difference relative to the largest value, and the observable."""
    worst, where = 0.0, ""
    for name in curves[0]:
        size = max(float(np.abs(np.array(c[name])).max()) for c in curves) or 1.0
        for own, right in zip(found, curves, strict=True):
            apart = float(np.abs(np.asarray(own[name]) - np.asarray(right[name])).max()) / size
            if not apart <= worst:
                worst, where = apart, name
    return worst, where


def run_case(number: int, light: bool = False) -> Outcome:
    """Run all steps of the model with a number."""

    def overdue(_: int, __: FrameType | None) -> None:
        raise OverdueError

    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        case = _Case(fuzz_model(number), Path(folder), light)
        alarm = hasattr(signal, "SIGPROF")
        if alarm:
            signal.signal(signal.SIGPROF, overdue)
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            return case.run()
        except OverdueError:
            text = "".join(traceback.format_exc().splitlines(keepends=True)[-60:])
            case.fault("hang", f"more than {LIMIT} s\n{text}")
            case.outcome.seconds = time.perf_counter() - began
            return case.outcome
        finally:
            if alarm:
                signal.setitimer(signal.ITIMER_PROF, 0)


# Many cases -------------------------------------------------------------------------------------


def _serve(connection: Connection, light: bool) -> None:
    """Run the cases whose numbers arrive, in a process of their own."""
    while (number := connection.recv()) is not None:
        connection.send(run_case(number, light))


class _Worker:
    """A process that runs one case after another, and is restarted if it ends."""

    def __init__(self, light: bool) -> None:
        self.number, self.light = -1, light
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self.light), daemon=True)
        self._process.start()
        other.close()

    def begin(self, number: int) -> None:
        self.number = number
        self.connection.send(number)

    def received(self) -> Outcome:
        try:
            found = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            self._start()
            return Outcome(self.number, [("crash", f"the process ended with status {code}")])
        assert isinstance(found, Outcome)
        return found

    def end(self) -> None:
        self.connection.send(None)
        self._process.join()


def outcomes(numbers: list[int], jobs: int, light: bool = False) -> Iterator[Outcome]:
    """Yield the outcomes of the cases, in the order in which they end."""
    pending = iter(numbers)
    busy = [_Worker(light) for _ in range(min(jobs, len(numbers)))]
    for worker in busy:
        worker.begin(next(pending))
    while busy:
        arrived = wait([w.connection for w in busy])
        for worker in [w for w in busy if w.connection in arrived]:
            yield worker.received()
            number = next(pending, None)
            if number is None:
                worker.end()
                busy.remove(worker)
            else:
                worker.begin(number)


def shown(outcome: Outcome) -> str:
    """Return the faults of a case as text."""
    return "\n".join(f"FAULT case {outcome.number}, {s}:\n{text}\n" for s, text in outcome.faults)


def table(found: list[Outcome]) -> str:
    """Return the outcomes of all cases as text."""
    faulty = sum(bool(o.faults) for o in found)
    lines = [f"{len(found)} cases, {faulty} with faults, {sum(o.seconds for o in found):.0f} s"]
    for title, counts in (
        ("faults", Counter(f"{s}: {_sort(t)}" for o in found for s, t in o.faults)),
        ("refusals", Counter(f"{s}: {_sort(t)}" for o in found for s, t in o.refusals)),
        ("fits", Counter(o.status for o in found if o.status)),
    ):
        lines += ["", f"{title}: {counts.total()}"]
        lines += [f"{n:6} {sort}" for sort, n in counts.most_common(40)]
    return "\n".join(lines)


def _sort(text: str) -> str:
    """Return the last line of a text without its numbers."""
    lines = [line for line in text.strip().splitlines() if line.strip()] or [""]
    return re.sub(r"[-+]?\d+\.?\d*(e[-+]?\d+)?", "#", lines[-1])[:160]


def main(arguments: list[str] | None = None) -> int:
    """Draw the models, run them, and print the outcomes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first number")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--state", type=Path, help="keep outcomes here, and go on from them")
    parser.add_argument("--case", type=int, help="run this one alone, in this process")
    parser.add_argument(
        "--light", action="store_true", help="take cases as the tests do, twice as fast"
    )
    parser.add_argument("--print", action="store_true", help="print the model of --case as TOML")
    options = parser.parse_args(arguments)
    if options.case is not None:
        if options.print:
            print(fuzz_model(options.case).toml)
        found = [run_case(options.case, options.light)]
        print(shown(found[0]))
    else:
        found = _campaign(options)
    print(table(found))
    return 1 if any(o.faults for o in found) else 0


def _campaign(options: argparse.Namespace) -> list[Outcome]:
    """Run all missing cases of a range; return the outcomes of all."""
    found: dict[int, Outcome] = {}
    if options.state is not None and options.state.exists():
        for line in options.state.read_text(encoding="utf-8").splitlines():
            done = Outcome(**json.loads(line))
            found[done.number] = done
    wanted = range(options.first, options.first + options.count)
    for outcome in outcomes([n for n in wanted if n not in found], options.jobs, options.light):
        found[outcome.number] = outcome
        if outcome.faults:
            print(shown(outcome), flush=True)
        if options.state is not None:
            with options.state.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
        if len(found) % 100 == 0:
            print(f"{len(found)} cases", file=sys.stderr, flush=True)
    return [found[n] for n in wanted if n in found]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.exit(main())
