"""Initial values as the only unknowns, everything else being a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.expressions.algebras import NUMPY
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter, Unknown
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap


def initial_values(
    measured: Problem, vector: Array, states: Sequence[str], control: Control
) -> dict[str, float]:
    """Return initial values of states that best fit new measurements, all else being fixed."""
    unknowns: list[Unknown] = []
    start: list[float] = []
    conditions = []
    for condition in measured.conditions:
        numbers = with_numbers(condition, vector)
        initial: dict[str, Any] = dict(numbers.initial)
        for state in states:
            start.append(float(initial[state]))
            initial[state] = len(unknowns)
            key = f"{state}[{condition.name}]"
            parameter = Parameter(guess=start[-1], per_experiment=True)
            unknowns.append(Unknown(state, "initial", condition.name, key, parameter))
        conditions.append(replace(numbers, initial=initial))
    problem = copy(measured)
    for name in ("lower", "upper"):
        vars(problem).pop(name, None)  # computed of other unknowns, and kept
    problem.unknowns, problem.conditions = tuple(unknowns), tuple(conditions)
    problem.noise = known_noise(measured, vector)
    ended = SingleShooting().run(ForwardMap(problem), 0, np.array(start), control)
    if not math.isfinite(ended.cost):
        raise InputError(f"the initial values cannot be fitted: {ended.message}")
    return dict(zip((u.key for u in unknowns), ended.vector.tolist(), strict=True))


def with_numbers(condition: Condition, vector: Array) -> Condition:
    """Return a condition without unknowns."""
    unknowns = list(vector)

    def number(bound: Any) -> float:
        return float(np.asarray(bound_value(bound, condition.scalars, unknowns, NUMPY)))

    located = tuple(
        replace(event, time=None if event.time is None else number(event.time))
        for event in condition.located
    )
    return replace(
        condition,
        scalars={name: number(bound) for name, bound in condition.scalars.items()},
        initial={name: number(bound) for name, bound in condition.initial.items()},
        located=located,
    )


def known_noise(problem: Problem, vector: Array) -> dict[str, Noise]:
    """Return the noise of a problem, with the estimates of its spreads as numbers."""
    values = dict(zip(problem.keys, vector.tolist(), strict=True))
    return {
        name: replace(noise, **{noise.law.spread_field: values[noise.unknown(name)]})
        if noise.spread == "estimate" and noise.unknown(name) in values
        else noise
        for name, noise in problem.noise.items()
    }
