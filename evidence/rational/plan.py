"""The runs of the campaign `rational`: models, true values and data (section 5.3 of the paper).

True values are drawn as the paper's were: ``numpy.random.seed(0)``, then ``uniform(0.1, 0.9)`` for
the parameters and the initial values of one data set after the other, rounded to three digits. That
gives the paper's data sets 0 to 4, which the library has, exactly, and so data sets 5 to 9 too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from evidence.running.campaign import Option, Task
from odefit import Failure, ForwardMap, InputError, Problem, library
from odefit.common.arrays import Array

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

# Draws whose trajectory ends in a singularity; the next draw replaced them (section 5.3)
DISCARDED: Mapping[str, tuple[int, ...]] = {"rational-biohydrogenation": (7,)}

# Levels of the noise: its standard deviation over the mean of the output
LEVELS = (1e-8, 1e-6, 1e-4, 1e-2)
POINTS = 21
INTERVAL = (-0.5, 0.5)  # the interval of the paper's times
TOLERANCE = 1e-16  # tolerance of the simulation of data


def _interval(text: str) -> tuple[float, ...]:
    start, end = (float(part) for part in text.split(":"))
    if not start < end < np.inf:
        raise InputError(f"interval: expected a start before its end, got {text}")
    return start, end


def _model(name: str) -> str:
    return name if name.startswith("rational-") else f"rational-{name}"


OPTIONS = (
    Option("noise", (0.0,), "standard deviations over the mean of outputs, e.g. 0,1e-4", least=0),
    Option("points", (POINTS,), "numbers of times, e.g. 21,1001", least=2),
    Option("interval", INTERVAL, "start and end of the times, e.g. -0.5:0.5", whole=_interval),
    Option("sets", SETS, f"how many data sets, at most {SETS}", least=1, most=SETS),
    Option("models", MODELS, "which of the ten, e.g. harmonic,seir", MODELS, kind=_model),
)


def tasks(
    noise: Sequence[float],
    points: Sequence[int],
    interval: tuple[float, float],
    sets: int,
    models: Sequence[str],
) -> list[Task]:
    """Return a task for each fit: all models on the first data set, then on the second, ...

    Preparations of the models come first, because the runs reuse their results; their time is
    measured with data without noise.
    """
    found: list[Task] = []
    if 0 in noise:
        found += [
            {"key": f"{_short(model)}, preparation", "what": "preparation", "problem": model}
            for model in models
        ]
    found += [
        run_task(model, number, level, count, interval)
        for count in points
        for level in noise
        for number in range(sets)
        for model in models
    ]
    return found


def run_task(
    model: str, number: int, noise: float, points: int, interval: tuple[float, float]
) -> Task:
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


def truth(model: str, number: int) -> dict[str, float]:
    """Return the true parameters and initial values of a data set."""
    known = library.reference(model)
    names = (*known.parameters, *known.initial)
    random = np.random.RandomState(0)
    draws = (np.round(random.uniform(0.1, 0.9, len(names)), 3) for _ in range(2 * SETS))
    kept = [d for i, d in enumerate(draws) if i not in DISCARDED.get(model, ())]
    return dict(zip(names, kept[number].tolist(), strict=True))


def given(task: Task) -> bool:
    """Return whether the library has the data, the paper's own; others are simulated."""
    usual = (task["points"], (task["start"], task["end"])) == (POINTS, INTERVAL)
    return bool(usual and task["noise"] == 0 and task["set"] < GIVEN)


def data_set(task: Task) -> tuple[Problem, Array]:
    """Return the problem of a task with its data, and the true values of its unknowns."""
    model, number = task["problem"], task["set"]
    problem = library.load(model)
    values = truth(model, number)
    true = np.array([values[key] for key in problem.keys])
    if given(task):
        return library.load(model, dataset=number), true
    exact = _simulated(problem, true, np.linspace(task["start"], task["end"], task["points"]))
    # Every level has the same random numbers, so that levels differ in size alone.
    random = np.random.default_rng([number, crc32(model.encode())])
    data = {"t": exact.pop("t")}
    for name, column in exact.items():
        sd = task["noise"] * abs(float(np.mean(column)))
        data[name] = column + sd * random.standard_normal(len(column))
    return _with_data(problem, data), true


def _simulated(problem: Problem, true: Array, times: Array) -> dict[str, Array]:
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
    """Return the problem with data from another first time, that of the initial values."""
    experiment = replace(problem.experiments[0], data=data, t0=float(data["t"][0]), source=None)
    return Problem(
        problem.model,
        parameters=problem.parameters,
        initial=problem.initial,
        experiments=[experiment],
        name=problem.name,
    )
