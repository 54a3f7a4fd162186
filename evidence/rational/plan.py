"""The runs of the campaign `rational`: models, true values and data (section 5.3 of the paper).

True values are drawn as the paper's were: ``numpy.random.seed(0)``, then ``uniform(0.1, 0.9)``
for the parameters and the initial values of one data set after the other, rounded to three
digits. That gives the paper's data sets 0 to 4, which the library has, exactly, and so 5 to 9 too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from evidence.running.campaign import Task
from evidence.running.options import check_known, read_options
from odefit.common.errors import InputError

if TYPE_CHECKING:
    from odefit.common.arrays import Array
    from odefit.problem.problem import Problem

# The models in the order of the paper's Table 1; the last three are identifiable locally only
MODELS = tuple(
    f"rational-{name}"
    for name in (
        *("harmonic", "van-der-pol", "fitzhugh-nagumo", "hiv", "mammillary-3"),
        *("lotka-volterra", "crauste", "biohydrogenation", "mammillary-4", "seir"),
    )
)

SETS = 10  # number of data sets of the paper for each model
GIVEN = 5  # number of data sets that the library has

# Draws whose trajectory ends in a singularity: the next draw took their place (section 5.3)
DISCARDED: Mapping[str, tuple[int, ...]] = {"rational-biohydrogenation": (7,)}

# Levels of the noise: its standard deviation over the mean of the output
LEVELS = (1e-8, 1e-6, 1e-4, 1e-2)
POINTS = 21
INTERVAL = (-0.5, 0.5)  # the interval of the paper's times
TOLERANCE = 1e-16  # tolerance of the simulation of data

# The options of the campaign: name and meaning
OPTIONS = (
    ("noise", "standard deviations over the mean of each output, e.g. 0,1e-4"),
    ("points", "numbers of times, e.g. 21,1001"),
    ("interval", "of the times, e.g. -0.5:0.5"),
    ("sets", f"how many data sets, at most {SETS}"),
    ("models", "which of the ten, e.g. harmonic,seir"),
)


@dataclass(frozen=True)
class Setting:
    """The options chosen for a run of the campaign, see :data:`OPTIONS`."""

    noise: tuple[float, ...] = (0.0,)  # noise, points: Every level with every number of points
    points: tuple[int, ...] = (POINTS,)
    interval: tuple[float, float] = INTERVAL  # start and end
    sets: int = SETS  # the first so many
    models: tuple[str, ...] = MODELS  # names in the library

    def __post_init__(self) -> None:
        if not all(0 <= level < np.inf for level in self.noise):
            raise InputError(f"noise: expected numbers of 0 or more, got {list(self.noise)}")
        if not all(count >= 2 for count in self.points):
            raise InputError(f"points: expected numbers of 2 or more, got {list(self.points)}")
        if not self.interval[0] < self.interval[1] < np.inf:
            raise InputError(f"interval: expected a start before its end, got {self.interval}")
        if not 1 <= self.sets <= SETS:
            raise InputError(f"sets: expected 1 to {SETS}, got {self.sets}")
        shown = [m.removeprefix("rational-") for m in MODELS]
        check_known("models", self.models, MODELS, shown)

    def with_options(self, chosen: Mapping[str, str]) -> Setting:
        """Return the setting with some options replaced, given as text."""
        return replace(self, **read_options(chosen, dict(OPTIONS), _read))

    def tasks(self) -> Iterator[Task]:
        """Return a task for each fit: all models on the first data set, then on the second, ..."""
        for points in self.points:
            for level in self.noise:
                for number in range(self.sets):
                    for model in self.models:
                        yield run_task(model, number, level, points, self.interval)

    def preparations(self) -> Iterator[Task]:
        """Return a task for each model, which measures how long its preparation takes."""
        for model in self.models:
            yield {"key": f"{_short(model)}, preparation", "what": "preparation", "problem": model}


def run_task(
    model: str, number: int, noise: float, points: int, interval: tuple[float, float]
) -> Task:
    """Return the task of one fit."""
    start, end = interval
    what = f"noise {noise:g}, {points} points, [{start:g}, {end:g}]"
    return {
        "key": f"{_short(model)}, set {number}, {what}",
        "what": "run",
        "problem": model,
        "set": number,
        "noise": noise,
        "points": points,
        "start": start,
        "end": end,
    }


def _short(model: str) -> str:
    return model.removeprefix("rational-")


def _read(name: str, text: str) -> Any:
    """Return the value of an option, read from text."""
    if name == "interval":
        start, end = (float(part) for part in text.split(":"))
        return start, end
    if name == "sets":
        return int(text)
    parts = [part.strip() for part in text.split(",")]
    if name == "models":
        return tuple(p if p.startswith("rational-") else f"rational-{p}" for p in parts)
    return tuple(int(p) for p in parts) if name == "points" else tuple(float(p) for p in parts)


def truth(model: str, number: int) -> dict[str, float]:
    """Return the true parameters and initial values of a data set."""
    from odefit import library

    known = library.reference(model)
    names = (*known.parameters, *known.initial)
    random = np.random.RandomState(0)
    draws = (np.round(random.uniform(0.1, 0.9, len(names)), 3) for _ in range(2 * SETS))
    kept = [d for i, d in enumerate(draws) if i not in DISCARDED.get(model, ())]
    return dict(zip(names, kept[number].tolist(), strict=True))


def given(task: Task) -> bool:
    """Whether the data are the paper's own, which the library has; others are simulated."""
    usual = (task["points"], (task["start"], task["end"])) == (POINTS, INTERVAL)
    return bool(usual and task["noise"] == 0 and task["set"] < GIVEN)


def data_set(task: Task) -> tuple[Problem, Array]:
    """Return the problem of a task with its data, and the true values of its unknowns."""
    from odefit import library

    model, number = task["problem"], task["set"]
    problem = library.load(model)
    values = truth(model, number)
    true = np.array([values[key] for key in problem.keys])
    if given(task):
        return library.load(model, dataset=number), true
    exact = _simulated(problem, true, np.linspace(task["start"], task["end"], task["points"]))
    # The same random numbers at every level: levels differ in size alone.
    random = np.random.default_rng([number, crc32(model.encode())])
    data = {"t": exact.pop("t")}
    for name, column in exact.items():
        sd = task["noise"] * abs(float(np.mean(column)))
        data[name] = column + sd * random.standard_normal(len(column))
    return _with_data(problem, data), true


def _simulated(problem: Problem, true: Array, times: Array) -> dict[str, Array]:
    from odefit.simulation import Failure, ForwardMap

    empty = {name: np.zeros(len(times)) for name in problem.model.observables}
    timed = _with_data(problem, {"t": times, **empty})
    forward = ForwardMap(timed)
    forward.engines.tolerances["heyoka"] = TOLERANCE
    trajectory = forward.trajectory(true, sensitivities=False)
    if isinstance(trajectory, Failure):
        raise InputError(f"the true trajectory has no data: {trajectory}")
    predicted = forward.predictions(timed.conditions[0], true, trajectory)
    return {"t": times, **{name: predicted[name].array(len(times)) for name in empty}}


def _with_data(problem: Problem, data: Mapping[str, Array]) -> Problem:
    """Return the problem with data from another first time, to which initial values belong."""
    from dataclasses import replace

    from odefit.problem import Problem

    experiment = replace(problem.experiments[0], data=data, t0=float(data["t"][0]), source=None)
    return Problem(
        problem.model,
        parameters=problem.parameters,
        initial=problem.initial,
        experiments=[experiment],
        name=problem.name,
    )
