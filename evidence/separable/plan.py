"""The runs of the campaign `separable`: models, noise and starts of section 3.1 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from evidence.running.campaign import Option, Task
from evidence.separable import paper as paper
from odefit import Problem, library
from odefit.common.arrays import Array

RUNS = 500  # number of data sets of each setting, as in the paper
CHUNK = 50  # number of runs of a task

# Runs of each setting that are repeated with other smoothers, that are polished, and that the
# published program's optimisers repeat
FEWER = 100
SIZES = ("small", "large")

# The parts of the campaign: the measurements of a task, see :mod:`evidence.separable.runs`
PARTS = ("matched", "smoothed", "polished", "published")


@dataclass(frozen=True)
class Model:
    """The settings that all runs of a model share."""

    problem: str  # in the library
    samples: Mapping[str, int]  # numbers of times, small and large
    # Coefficients of variation of the starts of linear parameters by quality; that of the nonlinear
    # parameters is always "high"
    priors: Mapping[str, float]
    linear: tuple[str, ...]  # names of the linear parameters
    optimiser: str  # the authors' optimiser: "bfgs" or "nelder-mead"
    # Coefficient of variation of the starts of nonlinear parameters in the authors' program
    published_start: float
    # bounds in the authors' program, where they differ from the problem's
    published_bounds: Mapping[str, tuple[float, float]]


def _model(
    problem: str,
    samples: tuple[int, int],
    priors: tuple[float, float, float],
    linear: str,
    optimiser: str = "bfgs",
    published_start: float | None = None,
    published_bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Model:
    return Model(
        problem,
        dict(zip(SIZES, samples, strict=True)),
        dict(zip(("high", "medium", "low"), priors, strict=True)),
        tuple(linear.split()),
        optimiser,
        priors[0] if published_start is None else published_start,
        published_bounds or {},
    )


_RATES = "gamma11 gamma12 gamma13 gamma22 gamma32"

# The models by the paper's names
MODELS: Mapping[str, Model] = {
    "sir": _model("sir", (18, 36), (0.1, 0.2, 0.3), "beta"),
    "ltk": _model(
        "seasonal-lotka-volterra",
        (100, 200),
        (0.05, 0.1, 0.2),
        "alpha beta gamma delta",
        "nelder-mead",
    ),
    "gma": _model(
        "gma",
        (100, 200),
        (0.1, 0.3, 0.5),
        _RATES,
        published_start=0.001,
        published_bounds=dict.fromkeys(_RATES.split(), (-np.inf, np.inf)),
    ),
    "ftz": _model(
        "fitzhugh-nagumo-separable",
        (20, 40),
        (0.5, 1.0, 3.0),
        "a b",
        published_bounds={"a": (0.0, 2.0), "b": (0.0, 2.0)},
    ),
}

LEVELS = tuple(paper.NOISE.values())

OPTIONS = (
    Option("models", tuple(MODELS), "which of the four, e.g. sir,ltk", MODELS),
    Option("sizes", SIZES, "small,large or one of them", SIZES),
    Option("noise", LEVELS, "standard deviations over those of the states, e.g. 0.1", above=0),
    Option("runs", RUNS, "how many data sets of each setting, e.g. 50", least=1),
    Option("smoothed", FEWER, "how many are repeated with other smoothers, e.g. 0", least=0),
    Option("polished", FEWER, "how many are polished on the true trajectories, e.g. 0", least=0),
    Option("published", FEWER, "how many are repeated with the published optimisers", least=0),
)


def tasks(
    models: Sequence[str], sizes: Sequence[str], noise: Sequence[float], runs: int, **fewer: int
) -> list[Task]:
    """Return a task for each chunk of runs: the first runs of all settings, then the next."""
    counts = {p: runs if p == "matched" else fewer[p] for p in PARTS}
    return [
        task(part, model, size, level, first, min(first + CHUNK, count, runs))
        for first in range(0, runs, CHUNK)
        for part, count in counts.items()
        if min(count, runs) > first
        for model in models
        for size in sizes
        for level in noise
    ]


def task(part: str, model: str, size: str, noise: float, first: int, last: int) -> Task:
    """Return the task of runs `first` to `last` (not included) of a setting."""
    return {
        "key": f"{model} {part}, {size} sample, noise {noise:g}, runs {first} to {last - 1}",
        "part": part,
        "model": model,
        "size": size,
        "noise": noise,
        "first": first,
        "last": last,
    }


def exact(task: Task) -> Problem:
    """Return the problem of a task with data without noise."""
    model = MODELS[task["model"]]
    return library.load(model.problem, samples=model.samples[task["size"]])


def truth(task: Task, problem: Problem) -> Array:
    """Return the true values of the unknowns, shape (n,)."""
    known = library.reference(MODELS[task["model"]].problem)
    values = {**known.parameters, **known.initial}
    return np.array([values[key] for key in problem.keys])


def linear(task: Task, problem: Problem) -> list[int]:
    """Return the indices of the unknowns that enter linearly."""
    return [problem.keys.index(name) for name in MODELS[task["model"]].linear]


def data_set(task: Task, problem: Problem, run: int) -> Problem:
    """Return the problem with noisy data; both levels of noise have the same random numbers."""
    random = np.random.default_rng([_number(task), run, 0])
    (experiment,) = problem.experiments
    data: dict[str, Any] = {
        str(name): np.asarray(column, dtype=float) for name, column in experiment.data.items()
    }
    for name in problem.model.observables:
        sd = task["noise"] * float(np.std(data[name], ddof=1))
        data[name] = data[name] + sd * random.standard_normal(len(data[name]))
    return problem.with_data({experiment.name: data})


def starts(task: Task, problem: Problem, run: int, *, published: bool = False) -> dict[str, Array]:
    """Return start values by quality of the prior; nonlinear parameters are the same in all.

    They are Gaussian around the truth, drawn again until they lie within the bounds.
    """
    model, true = MODELS[task["model"]], truth(task, problem)
    lower, upper = problem.lower, problem.upper
    if published:
        positive = task["model"] == "ftz"
        lower = np.full(len(true), 0.0 if positive else -np.inf)
        upper = np.full(len(true), np.inf)
    own = linear(task, problem)
    others = [k for k in range(len(true)) if k not in own]
    random = np.random.default_rng([_number(task), run, 1])
    spread = model.published_start if published else model.priors["high"]
    common = _drawn(random, true, spread, lower, upper, others)
    found = {}
    for number, (quality, variation) in enumerate(model.priors.items()):
        random = np.random.default_rng([_number(task), run, 2 + number])
        drawn = _drawn(random, true, variation, lower, upper, own)
        found[quality] = np.where(np.isin(np.arange(len(true)), own), drawn, common)
    return found


def _drawn(
    random: np.random.Generator,
    true: Array,
    variation: float,
    lower: Array,
    upper: Array,
    which: list[int],
) -> Array:
    values = true.copy()
    for k in which:
        while True:
            values[k] = true[k] + variation * abs(true[k]) * random.standard_normal()
            if lower[k] <= values[k] <= upper[k]:
                break
    return values


def _number(task: Task) -> int:
    """Return the seed of a model and sample size."""
    return crc32(f"{task['model']} {task['size']}".encode())
