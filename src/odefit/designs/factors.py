"""Factors: quantities that a run may vary, such as initial values, constants, doses and inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from odefit.common.errors import InputError, did_you_mean, shown
from odefit.designs.parts import Run
from odefit.problem.calendars import dates_as_times
from odefit.problem.condition import Condition
from odefit.problem.experiment import Event, Experiment, Input
from odefit.problem.problem import Problem

FIELDS = ("lower", "upper", "levels", "at")
"""The fields of a factor."""

MOST_RUNS = 60
"""Approximate number of runs on the grid from which refinement begins."""


@dataclass(frozen=True)
class Factor:
    """A quantity that a run may set within limits.

    Attributes
    ----------
    name
        A state, whose initial value is set or which receives doses; a constant; or an input.
    lower, upper
        The limits.
    levels
        The possible values, if not all values between the limits are possible.
    at
        The times at which pieces begin, or at which doses are given; empty for one value that holds
        from the beginning.
    """

    name: str
    lower: float
    upper: float
    levels: tuple[float, ...] = ()
    at: tuple[float, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of its settings: one, or one for each piece or dose."""
        return tuple(f"{self.name}@{t:g}" for t in self.at) or (self.name,)


def factors_of(
    problem: Problem, vary: Mapping[str, Any], experiments: Sequence[str]
) -> tuple[Factor, ...]:
    """Return the factors that a user wants to vary in some experiments.

    Raises InputError for mistakes.
    """
    model = problem.given
    known = [*model.states, *model.constants, *model.inputs]
    factors = []
    for name, description in vary.items():
        place = f"vary {name}"
        if name not in known:
            raise InputError(
                f"{place}: there is no state, constant or input '{name}'"
                f"{did_you_mean(str(name), known)}"
            )
        described = description
        if isinstance(description, Mapping) and "at" in description:
            at = dates_as_times(description["at"], problem, experiments)
            described = {**description, "at": at}
        factor = _factor(name, described, place)
        if name in model.inputs and not factor.at:
            factor = replace(factor, at=(min(c.t0 for c in problem.conditions),))
        factors.append(factor)
    return tuple(factors)


def _factor(name: str, description: Any, place: str) -> Factor:
    expected = (
        "expected a pair of limits such as (0, 10), a list of levels, or a mapping of "
        "lower, upper, levels and at"
    )
    fields: dict[str, Any] = {}
    if isinstance(description, Mapping):
        fields = dict(description)
        for key in fields:
            if key not in FIELDS:
                raise InputError(f"{place}: unknown field '{key}'; {expected}")
    elif isinstance(description, tuple) and len(description) == 2:
        fields = {"lower": description[0], "upper": description[1]}
    elif isinstance(description, Sequence) and not isinstance(description, str):
        fields = {"levels": description}
    else:
        raise InputError(f"{place}: {expected}, got {shown(description)}")
    levels = _numbers(fields.get("levels", ()), f"{place}.levels")
    at = _numbers(fields.get("at", ()), f"{place}.at")
    if levels:
        lower, upper = min(levels), max(levels)
    else:
        limits = [fields.get("lower"), fields.get("upper")]
        if any(v is None for v in limits):
            raise InputError(f"{place}: {expected}; there are no limits and no levels")
        lower, upper = _numbers(limits, place)
    if not lower < upper and len(levels) != 1:
        raise InputError(f"{place}: the lower limit {lower:g} is not below the upper {upper:g}")
    if any(b <= a for a, b in pairwise(at)):
        raise InputError(f"{place}.at: times must increase")
    return Factor(name, lower, upper, tuple(sorted(levels)), at)


def _numbers(values: Any, place: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(v) for v in np.atleast_1d(np.asarray(values, dtype=float)))
    except (TypeError, ValueError):
        raise InputError(f"{place}: expected numbers, got {shown(values)}") from None
    if not all(math.isfinite(v) for v in numbers):
        raise InputError(f"{place}: expected finite numbers")
    return numbers


def runs_on_a_grid(experiments: Sequence[str], factors: Sequence[Factor]) -> list[Run]:
    """Return the initial runs of a search: all combinations of a few levels."""
    count = sum(len(f.keys) for f in factors)
    most = 9 if count == 0 else max(2, min(9, int((MOST_RUNS / len(experiments)) ** (1 / count))))
    ladders = [
        f.levels or tuple(np.linspace(f.lower, f.upper, most).tolist())
        for f in factors
        for _ in f.keys
    ]
    keys = [key for f in factors for key in f.keys]
    combinations = list(product(*ladders))
    if len(combinations) > 4 * MOST_RUNS:
        random = np.random.default_rng(0)
        some = random.choice(len(combinations), 4 * MOST_RUNS, replace=False)
        combinations = [combinations[i] for i in sorted(some)]
    return [
        Run(e, dict(zip(keys, values, strict=True))) for e in experiments for values in combinations
    ]


def neighbours(run: Run, factors: Sequence[Factor], share: float) -> list[Run]:
    """Return runs in which one setting is moved by a share of its range, within its limits."""
    runs: list[Run] = []
    for f in factors:
        for key in f.keys:
            if f.levels:
                continue
            for step in (-1.0, -0.5, 0.5, 1.0):
                value = run.settings[key] + step * share * (f.upper - f.lower)
                value = min(max(value, f.lower), f.upper)
                if value != run.settings[key]:
                    runs.append(replace(run, settings={**run.settings, key: value}))
    return runs


def realised(
    problem: Problem, experiment: Experiment, name: str, run: Run, factors: Sequence[Factor]
) -> Experiment:
    """Return an experiment of the problem with the settings of a run, under another name."""
    initial, constants = dict(experiment.initial), dict(experiment.constants)
    events = list(experiment.events)
    t0 = problem.condition(experiment.name).t0
    for f in factors:
        values = [run.settings[key] for key in f.keys]
        if f.name in problem.given.inputs:
            continue  # see with_pieces
        if f.name in problem.given.states and f.at:
            events += [
                Event((t,), {f.name: f"{f.name} + {v!r}"})
                for t, v in zip(f.at, values, strict=True)
            ]
        elif f.name in problem.given.states:
            initial[f.name] = values[0]
        else:
            start = [v for t, v in zip(f.at, values, strict=False) if t <= t0]
            constants[f.name] = start[-1] if start else values[0]
            events += [
                Event((t,), {f.name: v}) for t, v in zip(f.at, values, strict=False) if t > t0
            ]
    return replace(experiment, name=name, initial=initial, constants=constants, events=events)


def with_pieces(condition: Condition, run: Run, factors: Sequence[Factor]) -> Condition:
    """Return a condition whose inputs are held constant on the pieces that a run sets."""
    inputs = dict(condition.inputs)
    for f in factors:
        if f.name in inputs:
            values = np.array([run.settings[key] for key in f.keys])
            inputs[f.name] = Input(np.array(f.at), values, "constant")
    return replace(condition, inputs=inputs)
