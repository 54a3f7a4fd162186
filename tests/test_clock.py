"""No result depends on the clock: that is for limits of users, reports and logs."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Model, Problem, library
from odefit.fitting.solutions import COUNT_WORK, SEARCH_WORK
from odefit.structure.same_outputs import same_outputs

PACKAGE = Path(odefit.__file__).parent

REPORTS = """
assessment/profiles/profiling assessment/sampling/bootstrap explorer/fit_job
fitting/fit_result fitting/warm_start methods/automatic/matched_shooting
methods/automatic/by_experiment/two_stages
methods/automatic/populations
methods/best_so_far methods/branch_and_bound/branch_and_bound methods/branch_and_bound/search
methods/integral_matching/integral_matching methods/running/worker
methods/running/remote_conditions methods/shooting/search methods/single_shooting
methods/solvers/ampl methods/solvers/local_search methods/solvers/maingo methods/solvers/nlpsol
methods/solvers/reduced_space reporting/progress structure/homotopy/monodromy
structure/identifiability
""".split()
"""Modules that read the clock to tell how long something took, or when to tell it."""

LIMITS = """
assessment/sampling/chains assessment/sampling/posterior cli/profile fitting/fit
methods/automatic/algebraic_route
methods/bounded_problem methods/outer_approximation/algorithm
methods/outer_approximation/bound_tightening methods/outer_approximation/mixed_integer
methods/polish
methods/running/child methods/running/control methods/solvers/guarded_solve
methods/solvers/mesh_search methods/solvers/scip methods/transcription/transcription
structure/series/deadline
""".split()
"""Modules that keep a time limit of the fit, of the method or of the call, or share it out; and
that end processes which do not answer."""

WHERE = [
    "methods/running/checkpoint",
    "methods/running/workers",
    "simulation/trajectories/conditions",
]
"""Modules that ask the clock where work is done, or when it is stored: the work is the same."""

CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
"""Functions of the standard module time that tell the time."""


TIMES = np.linspace(0.0, 4.0, 20)


def exchangeable() -> Problem:
    """Absorption and elimination, whose rates can be exchanged: the other solution is searched."""
    model = Model(
        ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}
    )
    c = 4.0 * 1.5 / (0.5 * (1.5 - 0.1)) * (np.exp(-0.1 * TIMES) - np.exp(-1.5 * TIMES))
    noise = 0.01 * np.random.default_rng(1).normal(size=20)
    unknowns = {name: {"lower": 0.01, "upper": 10.0} for name in ("ka", "ke", "V")}
    return Problem(model, {"t": TIMES, "c": c + noise}, unknowns, {"gut": 4.0, "blood": 0.0})


def noisy() -> Problem:
    """A reaction that saturates, with so much noise that branch and bound divides many boxes."""
    times = np.linspace(0.0, 4.0, 6)
    noise = 0.05 * np.random.default_rng(1).normal(size=6)
    unknowns = {"v": {"lower": 0.5, "upper": 2.0}, "K": {"lower": 0.5, "upper": 2.0}}
    data = {"t": times, "x": np.exp(-0.6 * times) + noise}
    return Problem(Model(ode={"x": "-v*x/(K + x)"}), data, unknowns, {"x": 1.0})


FITS: dict[str, Callable[[], odefit.Result]] = {
    name: lambda name=name: odefit.fit(library.load(name), seed=1, jobs=1)
    for name in ("sir", "harmonic", "lotka-volterra-p", "fitzhugh-nagumo-v")
} | {
    "algebraic": lambda: odefit.fit(
        library.load("rational-fitzhugh-nagumo"), odefit.Algebraic(), seed=1
    ),
    "multi-start": lambda: odefit.fit(
        library.load("sir"), odefit.MultiStart(starts=6), seed=1, jobs=1
    ),
    "multiple shooting": lambda: odefit.fit(
        library.load("lotka-volterra-p"), odefit.MultipleShooting(starts=2), seed=1, jobs=1
    ),
    "integral matching": lambda: odefit.fit(
        library.load("lotka-volterra-p"), odefit.IntegralMatching(), seed=1
    ),
    "two solutions": lambda: odefit.fit(exchangeable(), seed=1, jobs=1),
    "certificate": lambda: odefit.fit(noisy(), seed=1, jobs=1, certify=True),
}
"""Ten fits by several methods, each of a second or less."""

QUICK = ("sir", "algebraic")
"""Those with the most that could hang on the clock, in the fast tests."""


def hold(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    """Let all clocks go so many times as fast."""
    for name in CLOCKS:
        monkeypatch.setattr(time, name, scaled(getattr(time, name), speed))


def scaled(clock: Callable[[], float], speed: float) -> Callable[[], float]:
    """A clock that shows the same now, and goes so many times as fast."""
    began = clock()
    return lambda: began + speed * (clock() - began)


def without_seconds(value: Any) -> Any:
    """The value without fields that tell how long something took."""
    if isinstance(value, dict):
        return {k: without_seconds(v) for k, v in value.items() if k != "seconds"}
    return [without_seconds(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in FITS],
)
def test_the_speed_of_the_clock_changes_no_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for speed in (1.0, 10.0, 0.1):
        with monkeypatch.context() as patch:
            patch.setenv("ODEFIT_CACHE", str(tmp_path / f"cache-{speed}"))
            hold(patch, speed)
            FITS[name]().save(tmp_path / f"{speed}.json")
        text = (tmp_path / f"{speed}.json").read_text(encoding="utf-8")
        files.append(json.dumps(without_seconds(json.loads(text))))
    assert files[1] == files[0]
    assert files[2] == files[0]


@pytest.mark.slow
def test_a_search_for_other_solutions_does_not_end_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes half a second for this model, which a fast clock makes five."""
    problem, reference = library.load("rational-seir"), library.reference("rational-seir")
    vector = problem.vector({**reference.parameters, **reference.initial})
    found = []
    for speed in (1.0, 10.0):
        with monkeypatch.context() as patch:
            patch.setenv("ODEFIT_CACHE", str(tmp_path / f"cache-{speed}"))
            hold(patch, speed)
            found.append(same_outputs(problem, vector, COUNT_WORK, SEARCH_WORK))
    one, other = found
    assert one is not None
    assert other is not None
    assert (one.possible, one.found) == (other.possible, other.found) == (2, 2)
    assert np.array_equal(one.real, other.real)


def read_by(path: Path) -> bool:
    """Whether a module reads the clock."""
    text = path.read_text(encoding="utf-8")
    if "import time" not in text and "from time" not in text:
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            return True
        if (
            isinstance(node, ast.Attribute)
            and node.attr in CLOCKS
            and isinstance(node.value, ast.Name)
            and node.value.id == "time"
        ):
            return True
    return False


def test_the_clock_is_read_for_limits_and_reports_alone() -> None:
    """A module that is new here says in which list it belongs, and why no result depends on it."""
    readers = {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if read_by(path)
    }
    assert readers == {*REPORTS, *LIMITS, *WHERE}
    assert len(readers) == len(REPORTS) + len(LIMITS) + len(WHERE)


def test_no_module_asks_for_the_time_of_day() -> None:
    """The clock on the wall is set, and goes on while a computer sleeps: no limit is kept by it."""
    asking = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "time.time(" in (text := path.read_text(encoding="utf-8")) or "time.time\n" in text
    ]
    assert asking == []
