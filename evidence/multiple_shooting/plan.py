"""The runs of the campaign `multiple-shooting`: three examples, their settings and their data.

After section 4 of Carbonell, Iturria-Medina and Jimenez, whose text lacks its numbers: we chose the
settings here, and the campaign does not reproduce their tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np

from evidence.running.campaign import Option, Task
from odefit import Failure, ForwardMap, InputError, Problem, library
from odefit.common.arrays import Array

# Largest negligible component of a step, relative to the sizes of unknowns and states: well below
# the smallest relative standard error that is compared, 4e-4
TOLERANCE = 1e-6
ITERATIONS = 50  # largest number of Gauss-Newton steps, as in the paper's third example

# The paper's numbers of distributions of times, and of draws of the noise for each
BATCHES, REALIZATIONS = 20, 50

# Number of blocks of realizations of Rikitake, which has one distribution of times
RIKITAKE_BLOCKS = 2
PART = 5  # divisor of the number of realizations where 1000 fits would add nothing

# Standard deviations and numbers of times of Henon-Heiles, which are combined
NOISE, SIZES = (0.01, 0.05, 0.1), (100, 200, 400)
USUAL = (0.05, 200)  # noise and number of times at which variants are compared
LONG = 50.0  # end of the longer interval of Henon-Heiles, that of the library's problem

# Numbers of nodes of Rikitake; 1 is the initial value approach
NODES = (100, 50, 40, 30, 20, 10, 5, 2, 1)
NODES_LOCAL = (100,)  # numbers of nodes with which Local Linearization is tried
FACTOR = 5.0  # largest factor between guess and truth of FitzHugh-Nagumo's parameters

# The name of runs of :class:`SingleShooting`, which has no states at nodes
SINGLE = "single shooting"


@dataclass(frozen=True)
class Example:
    """The settings that all runs of an example share."""

    problem: str  # in the library: model, true values and bounds
    # Of the parameters; those of FitzHugh-Nagumo are drawn. Measured states begin at their first
    # measurement, others at zero
    guess: Mapping[str, float]
    end: float  # end, noise, size: Interval from 0, standard deviation, number of times
    noise: float
    size: int
    nodes: int  # 0 for the method's own choice
    # Replace the library's bounds where these would cut off starts or estimates
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # Whether the optimum next to the truth is searched, as a reference for estimates
    searched: bool = False


EXAMPLES: Mapping[str, Example] = {
    "henon-heiles": Example(
        "henon-heiles", dict.fromkeys("abcd", 0.5), end=20.0, noise=0.05, size=200, nodes=50
    ),
    "fitzhugh-nagumo": Example(
        "fitzhugh-nagumo-v",
        {},
        end=20.0,
        noise=0.2,
        size=200,
        nodes=0,
        bounds={"a": (-5, 5), "b": (-5, 5), "c": (0.1, 20), "V": (-5, 5), "R": (-5, 5)},
        searched=True,
    ),
    "rikitake": Example(
        "rikitake", {"mu": 0.5, "a": 3.0}, end=20.0, noise=0.2, size=200, nodes=100
    ),
}


OPTIONS = (
    Option("examples", tuple(EXAMPLES), "examples, e.g. henon-heiles,rikitake", EXAMPLES),
    Option("batches", BATCHES, "how many distributions of times, e.g. 2", least=1),
    Option("realizations", REALIZATIONS, "how many draws of the noise for each, e.g. 5", least=1),
    Option("noise", NOISE, "standard deviations of Henon-Heiles, e.g. 0.01,0.1", above=0),
    Option("sizes", SIZES, "numbers of times of Henon-Heiles, e.g. 100", least=10),
)


def tasks(**options: Any) -> list[Task]:
    """Return a task for each batch, example by example and variant by variant."""
    return list(_Setting(**options).tasks())


@dataclass(frozen=True)
class _Setting:
    """The options chosen for a run of the campaign, see :data:`OPTIONS`."""

    examples: Sequence[str]
    batches: int
    realizations: int
    noise: Sequence[float]
    sizes: Sequence[int]

    def tasks(self) -> Iterator[Task]:
        made = {
            "henon-heiles": self._henon_heiles,
            "fitzhugh-nagumo": self._fitzhugh_nagumo,
            "rikitake": self._rikitake,
        }
        for name in self.examples:
            yield from made[name]()

    def _henon_heiles(self) -> Iterator[Task]:
        for noise in self.noise:
            for size in self.sizes:
                yield from self._batches("henon-heiles", "data", noise=noise, size=size)
        noise, size = USUAL
        if noise not in self.noise or size not in self.sizes:
            noise, size = self.noise[0], self.sizes[0]
        usual: dict[str, Any] = {"noise": noise, "size": size}
        yield from self._batches("henon-heiles", "relaxed", **usual)
        yield from self._batches("henon-heiles", "relaxed", **usual, end=LONG)
        few = self._part()
        yield from few._batches("henon-heiles", "data", **usual, end=LONG)
        for end in (EXAMPLES["henon-heiles"].end, LONG):
            yield from few._batches("henon-heiles", "data", **usual, end=end, nodes=1)
        yield from few._batches("henon-heiles", "data", **usual, integrator="local-linearization")

    def _fitzhugh_nagumo(self) -> Iterator[Task]:
        for states in ("relaxed", "data"):
            yield from self._batches("fitzhugh-nagumo", states)
        yield from self._part()._batches("fitzhugh-nagumo", SINGLE, nodes=1)

    def _rikitake(self) -> Iterator[Task]:
        for states in ("data", "relaxed"):
            for nodes in NODES:
                if nodes > 1 or states == "data":  # one node has nothing to relax
                    yield from self._blocks("rikitake", states, nodes=nodes)
        for nodes in NODES_LOCAL:
            local = "local-linearization"
            yield from self._blocks("rikitake", "data", nodes=nodes, integrator=local)

    def _part(self) -> _Setting:
        return replace(self, realizations=max(1, self.realizations // PART))

    def _batches(self, example: str, states: str, **changed: Any) -> Iterator[Task]:
        for batch in range(self.batches):
            yield fits_task(example, states, batch=batch, realizations=self.realizations, **changed)

    def _blocks(self, example: str, states: str, **changed: Any) -> Iterator[Task]:
        count = self.realizations
        for block in range(RIKITAKE_BLOCKS):
            first = block * count
            yield fits_task(example, states, first=first, realizations=count, **changed)


def fits_task(
    example: str,
    states: str,
    *,
    realizations: int,
    batch: int = 0,
    first: int = 0,
    integrator: str = "auto",
    **changed: Any,
) -> Task:
    """Return a task: some realizations on one distribution of times."""
    of = EXAMPLES[example]
    chosen = {name: changed.get(name, getattr(of, name)) for name in _CHANGEABLE}
    nodes = chosen["nodes"] or "chosen"
    what = (
        f"noise {chosen['noise']:g}, {chosen['size']} times in [0, {chosen['end']:g}], "
        f"{states}, nodes {nodes}, {integrator}"
    )
    which = f"batch {batch}, realizations {first} to {first + realizations - 1}"
    return {
        "key": f"{example}, {what}, {which}",
        "example": example,
        **chosen,
        "states": states,
        "integrator": integrator,
        "batch": batch,
        "first": first,
        "realizations": realizations,
    }


_CHANGEABLE = ("end", "noise", "size", "nodes")


class Data:
    """The data sets of a task: one distribution of times, noise for each realization.

    The same random numbers come at every level of noise, with any method and any nodes: columns of
    a table differ in method and nodes alone.
    """

    def __init__(self, task: Task) -> None:
        self.example = EXAMPLES[task["example"]]
        self._noise = task["noise"]
        self._seed = (crc32(task["example"].encode()), task["size"], task["batch"])
        known = library.load(self.example.problem)
        reference = library.reference(self.example.problem)
        values = {**reference.parameters, **reference.initial}
        # True values of the unknowns, shape (n,)
        self.true = np.array([values[key] for key in known.keys])
        bounds = {
            key: {"lower": low, "upper": high} for key, (low, high) in self.example.bounds.items()
        }
        self._given: dict[str, Any] = {
            "parameters": {k: bounds.get(k, v) for k, v in known.parameters.items()},
            "initial": {k: bounds.get(k, v) for k, v in known.initial.items()},
            "t0": 0.0,
            "name": task["example"],
        }
        self._model = known.model
        uniform = np.random.default_rng(self._seed).uniform(0.0, 1.0, task["size"])
        self.times = np.sort(task["end"] * uniform)
        blank = {name: np.zeros(task["size"]) for name in known.model.observables}
        timed = Problem(known.model, data={"t": self.times, **blank}, **self._given)
        self.exact = _simulated(timed, self.true)

    def problem(self, realization: int) -> Problem:
        """Return the problem with new noise of known standard deviation."""
        draws = self.draws(realization)
        data = {name: column + self._noise * draws[name] for name, column in self.exact.items()}
        noise = {name: {"sd": self._noise} for name in self.exact}
        return Problem(self._model, data={"t": self.times, **data}, noise=noise, **self._given)

    def draws(self, realization: int) -> dict[str, Array]:
        """Return the noise in units of its standard deviation."""
        random = np.random.default_rng([*self._seed, 1, realization])
        return {name: random.standard_normal(len(column)) for name, column in self.exact.items()}

    def start(self, problem: Problem, realization: int) -> dict[str, float]:
        """Return the start values, by key of unknown."""
        random = np.random.default_rng([*self._seed, 2, realization])
        drawn = FACTOR ** random.uniform(-1.0, 1.0, len(problem.keys))
        begin: dict[str, float] = dict(self.example.guess)
        series = problem.conditions[0].series
        for key, true, factor in zip(problem.keys, self.true, drawn, strict=True):
            if key in problem.initial:
                begin[key] = float(series[key].values[0]) if key in series else 0.0
            elif key not in begin:
                begin[key] = float(true * factor)
        return begin


def _simulated(problem: Problem, true: Array) -> dict[str, Array]:
    forward = ForwardMap(problem)
    trajectory = forward.trajectory(true, sensitivities=False)
    if isinstance(trajectory, Failure):
        raise InputError(f"the true trajectory has no data: {trajectory}")
    predicted = forward.predictions(problem.conditions[0], true, trajectory)
    count = len(problem.conditions[0].times)
    return {name: predicted[name].array(count) for name in problem.model.observables}
