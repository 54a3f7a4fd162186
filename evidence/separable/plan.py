"""The runs of the campaign `separable`: models, noise and starts of section 3.1 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from evidence.running.campaign import Task
from evidence.running.options import check_known, read_options
from evidence.separable import paper as paper
from odefit.common.errors import InputError

if TYPE_CHECKING:
    from odefit.common.arrays import Array
    from odefit.problem.problem import Problem

RUNS = 500  # number of data sets of each setting, as in the paper
CHUNK = 50  # number of runs of a task

# Runs of each setting that are repeated with other smoothers, that are polished, and that the
# published program's optimisers repeat
FEWER = 100
SIZES = ("small", "large")

# The parts of the campaign: what a task measures, see :mod:`evidence.separable.runs`
PARTS = ("matched", "smoothed", "polished", "published")


@dataclass(frozen=True)
class Model:
    """The settings that all runs of a model share."""

    problem: str  # in the library
    samples: Mapping[str, int]  # numbers of times, small and large
    # Coefficients of variation of the starts of linear parameters by quality; that of the nonlinear
    # ones, always, is "high"
    priors: Mapping[str, float]
    linear: tuple[str, ...]  # names of the linear parameters
    optimiser: str  # what the authors' program minimises with: "bfgs" or "nelder-mead"
    # Coefficient of variation of the starts of nonlinear parameters in the authors' program
    published_start: float
    # In the authors' program, where they are not those of the problem
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

# The options of the campaign: name and meaning
OPTIONS = (
    ("models", "which of the four, e.g. sir,ltk"),
    ("sizes", "small,large or one of them"),
    ("noise", "standard deviations over those of the states, e.g. 0.1"),
    ("runs", "how many data sets of each setting, e.g. 50"),
    ("smoothed", "how many of them are repeated with other smoothers, e.g. 0"),
    ("polished", "how many of them are polished on the true trajectories, e.g. 0"),
    ("published", "how many are repeated with the published program's optimisers, e.g. 0"),
)


@dataclass(frozen=True)
class Setting:
    """The options chosen for a run of the campaign, see :data:`OPTIONS`."""

    models: tuple[str, ...] = tuple(MODELS)
    sizes: tuple[str, ...] = SIZES
    noise: tuple[float, ...] = tuple(paper.NOISE.values())
    runs: int = RUNS
    smoothed: int = FEWER
    polished: int = FEWER
    published: int = FEWER

    def __post_init__(self) -> None:
        for option, given, known in (
            ("models", self.models, tuple(MODELS)),
            ("sizes", self.sizes, SIZES),
        ):
            check_known(option, given, known)
        if not all(0 < level < np.inf for level in self.noise):
            raise InputError(f"noise: expected positive numbers, got {list(self.noise)}")
        if self.runs < 1:
            raise InputError(f"runs: expected 1 or more, got {self.runs}")
        for option in PARTS[1:]:
            if getattr(self, option) < 0:
                raise InputError(f"{option}: expected 0 or more, got {getattr(self, option)}")

    def with_options(self, chosen: Mapping[str, str]) -> Setting:
        """Return the setting with some options replaced, given as text."""
        return replace(self, **read_options(chosen, dict(OPTIONS), _read))

    def tasks(self) -> Iterator[Task]:
        """Return a task for each chunk of runs: the first runs of all settings, then the next."""
        counts = {p: self.runs if p == "matched" else getattr(self, p) for p in PARTS}
        for first in range(0, self.runs, CHUNK):
            for part, count in counts.items():
                last = min(first + CHUNK, count, self.runs)
                if last <= first:
                    continue
                for model in self.models:
                    for size in self.sizes:
                        for level in self.noise:
                            yield task(part, model, size, level, first, last)


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


def _read(name: str, text: str) -> Any:
    """Return the value of an option, read from text."""
    if name in ("runs", *PARTS):
        return int(text)
    parts = tuple(part.strip() for part in text.split(","))
    return tuple(float(p) for p in parts) if name == "noise" else parts


def exact(task: Task) -> Problem:
    """Return the problem of a task with data without noise."""
    from odefit import library

    model = MODELS[task["model"]]
    return library.load(model.problem, samples=model.samples[task["size"]])


def truth(task: Task, problem: Problem) -> Array:
    """Return the true values of the unknowns, shape (n,)."""
    from odefit import library

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

    Gaussian around the truth, drawn again until within the bounds.
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
    """Return the number of a model and sample size, which have random numbers of their own."""
    return crc32(f"{task['model']} {task['size']}".encode())
