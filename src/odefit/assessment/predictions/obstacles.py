"""Obstacles to predictions one step ahead: runs that cannot restart at each measurement."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem

MOST_STEPS = 600
"""Largest number of measured times of a run."""


class Obstacle(StrEnum):
    """The reasons why there are no predictions one step ahead."""

    ALGEBRAIC = "algebraic"
    TRIGGERED = "triggered"
    PERIODIC = "periodic"
    STEADY = "steady"
    AT_INFINITY = "at infinity"
    LONG = "long"
    CHANGED = "changed"
    CENSORED = "censored"
    NOISE = "noise"
    CORRELATED = "correlated"
    FAILED = "failed"


@dataclass(frozen=True)
class NoOneStep:
    """The reason for the absence of predictions one step ahead.

    `name` is that of the observable, or of the constant that an event changes; it may be empty.
    """

    obstacle: Obstacle
    experiment: str
    name: str = ""


def obstacle_of(problem: Problem, condition: Condition) -> NoOneStep | None:
    """Return the reason why a run cannot restart at each measurement; None if it can."""
    states = set(problem.model.states)
    noises = {name: problem.noise.get(name, Noise()) for name in condition.series}
    changed = _not_followed(condition, states)
    censored = [name for name, one in condition.series.items() if one.censored is not None]
    correlated = [name for name, noise in noises.items() if noise.correlation is not None]
    other = [name for name, noise in noises.items() if not noise.gaussian]
    obstacles: list[tuple[Obstacle, bool | list[str]]] = [
        (Obstacle.ALGEBRAIC, bool(problem.model.algebraic)),
        (Obstacle.TRIGGERED, bool(condition.located)),
        (Obstacle.PERIODIC, condition.repeated is not None),
        (Obstacle.STEADY, bool(condition.steady_start)),
        (Obstacle.AT_INFINITY, not np.isfinite(condition.times).all()),
        (Obstacle.LONG, len(condition.times) > MOST_STEPS),
        (Obstacle.CHANGED, changed),
        (Obstacle.CENSORED, censored),
        (Obstacle.CORRELATED, correlated),
        (Obstacle.NOISE, other),
    ]
    for obstacle, instances in obstacles:
        if instances:
            name = instances[0] if isinstance(instances, list) else ""
            return NoOneStep(obstacle, condition.name, name)
    return None


def _not_followed(condition: Condition, states: Collection[str]) -> list[str]:
    """Return names that events set by states, or on which other scalars depend."""
    known = condition.scalars.keys()
    changed = {
        name: value
        for _, assign in condition.events
        for name, value in assign.items()
        if name not in states
    }
    bases = [bound.names for bound in condition.scalars.values() if isinstance(bound, Expression)]
    return [
        name
        for name, value in changed.items()
        if not value.names <= known or any(name in names for names in bases)
    ]
