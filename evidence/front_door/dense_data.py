"""Dense series of the systems in dense_systems.toml: true values drawn, measurements simulated."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np

from odefit import Event, Experiment, Failure, InputError, Model, Problem
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.simulation import simulated

# Standard deviations of the noise over the mean absolute value of each observable
LEVELS = (0.0, 1e-6, 1e-4, 1e-2)
DRAWS = 8  # number of draws of each system at each level
TRUE_VALUES = (0.1, 0.9)  # the range of true values
BOUNDS = (1e-5, 10.0)  # the bounds of all unknowns

# Smallest standard deviation of an observable over its mean absolute value: with less, the system
# of a draw is at rest, and the next draw replaces it
LIVELY = 0.05
LARGEST = 100.0  # largest absolute value of an observable, for the same reason
INPUT_EVERY = 20  # inputs are measured at every n-th time
MOST_DRAWS = 100  # number of true values that are tried before a system counts as unusable


@dataclass(frozen=True)
class DenseSystem:
    """A system that is measured at many times."""

    name: str
    field_of_use: str  # the field of the system
    ode: Mapping[str, str]
    observed: Sequence[str]  # the states that are measured
    end: float  # the last time; the first is 0
    points: int = 1001
    known: Mapping[str, float] = field(default_factory=dict)  # initial values that are known
    constants: Mapping[str, float] = field(default_factory=dict)
    events: Sequence[tuple[Sequence[float], Mapping[str, str]]] = ()  # times, and assignments
    # The interpolation of each input, and its values as an expression in the time
    inputs: Mapping[str, tuple[Literal["linear", "cubic"], str]] = field(default_factory=dict)


_ENTRIES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("dense_systems.toml").read_text(encoding="utf-8")
)
SYSTEMS = {name: DenseSystem(name, **entry) for name, entry in _ENTRIES.items()}


def dense_problem(system: str, noise: float, draw: int) -> tuple[Problem, dict[str, float]]:
    """Return the problem of a system with simulated data, and the true values of its unknowns."""
    known = SYSTEMS[system]
    random = np.random.default_rng([draw, crc32(system.encode())])
    empty = _empty(known)
    for _ in range(MOST_DRAWS):
        values = random.uniform(*TRUE_VALUES, len(empty.keys))
        series = _simulated(empty, values)
        if series is not None and all(_lively(series[name]) for name in known.observed):
            break
    else:
        raise InputError(f"{system}: none of {MOST_DRAWS} draws gives usable data")
    data = {"t": series["t"], **_inputs(known, series["t"])}
    levels = {}
    for name in known.observed:
        levels[name] = noise * float(np.mean(np.abs(series[name])))
        data[name] = series[name] + levels[name] * random.standard_normal(known.points)
    sd = {name: {"sd": level} for name, level in levels.items()} if noise > 0 else {}
    return _problem(known, data, sd), dict(zip(empty.keys, values.tolist(), strict=True))


def _empty(system: DenseSystem) -> Problem:
    """Return the problem with zeros for data."""
    times = np.linspace(0.0, system.end, system.points)
    data = {"t": times, **_inputs(system, times)}
    return _problem(system, data | {name: np.zeros(system.points) for name in system.observed}, {})


def _problem(
    system: DenseSystem, data: Mapping[str, Array], noise: Mapping[str, Mapping[str, float]]
) -> Problem:
    lower, upper = BOUNDS
    unknown = {"lower": lower, "upper": upper}
    model = Model(
        ode=dict(system.ode),
        observables={name: name for name in system.observed},
        constants=dict(system.constants),
        inputs={name: kind for name, (kind, _) in system.inputs.items()},
    )
    experiment = Experiment(
        "data", data, t0=0.0, events=tuple(Event(tuple(t), what) for t, what in system.events)
    )
    return Problem(
        model,
        parameters=dict.fromkeys(parameters(system), unknown),
        initial={state: system.known.get(state, unknown) for state in system.ode},
        noise=noise,
        experiments=[experiment],
        name=system.name,
    )


def parameters(system: DenseSystem) -> list[str]:
    """Return the names in the equations that are neither states, constants, inputs nor time."""
    known = {*system.ode, *system.constants, *system.inputs, "t"}
    names = (name for text in system.ode.values() for name in sorted(parse(text).names))
    return [name for name in dict.fromkeys(names) if name not in known]


def _inputs(system: DenseSystem, times: Array) -> dict[str, Array]:
    """Return the values of the inputs, each with shape (times,): NaN without a measurement."""
    measured = np.arange(len(times)) % INPUT_EVERY == 0
    return {
        name: np.where(measured, parse(text).evaluate({"t": times}, NUMPY), np.nan)
        for name, (_, text) in system.inputs.items()
    }


def _simulated(problem: Problem, values: Array) -> dict[str, Array] | None:
    """Return the times and all observables; None where the trajectory does not reach the end."""
    found = simulated(problem, values)
    if isinstance(found, Failure):
        return None
    return {"t": np.asarray(found.times), **found.observables}


def _lively(series: Array) -> bool:
    size = float(np.mean(np.abs(series)))
    return bool(np.abs(series).max() <= LARGEST and np.std(series) >= LIVELY * size)
