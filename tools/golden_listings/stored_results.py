"""Result files of this version, which every later one has to read, draw and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import odefit
from golden_listings import problems
from odefit.result.result import Result

FOLDER = Path(__file__).parents[2] / "tests/results-format-1"

DECAY: Mapping[str, Any] = {
    "data": {
        "t": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
        "y": [2.01, 0.99, 0.52, 0.24, 0.13, 0.07, 0.02, 0.011],
    },
    "initial": {"x": 1.0},
    "name": "decay",
    "time_unit": "h",
}


def _decay(**changes: Any) -> odefit.Problem:
    model = odefit.Model(ode={"x": "-k*x"}, observables={"y": "s*x"})
    bounded = {"k": {"lower": 0.0, "upper": 5.0, "unit": "1/h"}, "s": {"lower": 0.0, "upper": 5.0}}
    return odefit.Problem(model, **({"parameters": bounded} | dict(DECAY) | changes))


def _events() -> odefit.Problem:
    return odefit.load(problems.FOLDER / "events.toml")


def _certified() -> Result:
    return odefit.fit(_decay(), "single-shooting", certify=True, seed=1, jobs=1)


def _refuted() -> Result:
    """Fit with too small a standard deviation, so that the result has a region and a refutation."""
    problem = _decay(noise={"y": {"sd": 0.005}})
    return odefit.fit(problem, "single-shooting", certify="region", seed=1, jobs=1)


def _profiled() -> Result:
    result = odefit.fit(_decay(noise={"y": {"sd": "estimate"}}), seed=1, jobs=1)
    return result.with_profiles(result.profile(jobs=1))


def _outliers() -> Result:
    data = {**DECAY["data"], "y": [2.01, 0.99, 1.9, 0.24, 0.13, 0.07, 0.02, 0.011]}
    problem = _decay(data=data, noise={"y": {"sd": 0.02, "loss": "student"}})
    return odefit.fit(problem, "multi-start", seed=1, jobs=1)


def _undetermined() -> Result:
    model = odefit.Model(ode={"x": "-a*b*x"}, observables={"y": "s*x"})
    parameters = {"a": [0.0, 5.0], "b": [0.0, 5.0], "s": [0.0, 1.5]}
    problem = odefit.Problem(model, **(dict(DECAY) | {"parameters": parameters}))
    return odefit.fit(problem, odefit.MultiStart(starts=3), seed=1, jobs=1, intervals="scaled")


def _failed() -> Result:
    model = odefit.Model(ode={"x": "k*x^2"})
    problem = odefit.Problem(
        model,
        data={"t": [0.0, 2.0], "x": [1.0, 1.0]},
        parameters={"k": {"lower": 1.0, "upper": 3.0}},
        initial={"x": 1.0},
        name="blow-up",
    )
    return odefit.fit(problem, odefit.MultiStart(starts=2), seed=1, jobs=1)


RESULTS: Mapping[str, Callable[[], Result]] = {
    "automatic": lambda: odefit.fit(_decay(), seed=1, jobs=1),
    "certified": _certified,
    "events": lambda: odefit.fit(_events(), odefit.MultiStart(starts=2), seed=1, jobs=1),
    "failed": _failed,
    "integral-matching": lambda: odefit.fit(_decay(), "integral-matching", seed=1, jobs=1),
    "outliers": _outliers,
    "profiles": _profiled,
    "region": _refuted,
    "single-shooting": lambda: odefit.fit(_decay(), "single-shooting", seed=1, jobs=1),
    "time-limit": lambda: odefit.fit(_decay(), "multi-start", seed=1, jobs=1, time_limit=1e-9),
    "transcription": lambda: odefit.fit(
        _decay(), odefit.Transcription(starts=1, scheme="trapezoid", mesh=20), seed=1, jobs=1
    ),
    "undetermined": _undetermined,
}
"""The stored results: every method, and every optional part of a result."""


def store() -> list[Path]:
    """Write the missing results of this version, and return their files."""
    version = ".".join(odefit.fit(_decay(), "single-shooting").versions["odefit"].split(".")[:2])
    added = []
    for name, fit in RESULTS.items():
        path = FOLDER / f"{version}-{name}.json"
        if not path.exists():
            fit().save(path)
            added.append(path)
    return added
