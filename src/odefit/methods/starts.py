"""Start values of the unknowns: guesses, designs of many points, and the best of a few of them.

Points are integrated one by one, except by linear equations, whose closed form takes no steps. In
the lanes of heyoka's batches all points of a group take as many steps as the slowest, two to three
times the average. So almost nothing is gained, and an integrator for batches has to be compiled
first: ``evidence/speed/screening_in_lanes.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.option_checks import number
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.problem.variants.start_ranges import values_at
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED

Design = Literal["latin", "sobol"]


def check_start(start: object, method: str) -> None:
    """Refuse a method's option `start` unless it has numbers by name of unknown."""
    if start is None:
        return
    if not isinstance(start, Mapping):
        raise InputError(f"{method}, start: expected values by name of unknown, got {start!r}")
    for name, value in start.items():
        number(value, f"{method}, start, {name}")


def guess(problem: Problem) -> Array | None:
    """Return the user's guess, completed by the middles of ranges; None if there is no guess."""
    if all(u.parameter.guess is None for u in problem.unknowns):
        return None
    return completed_guess(problem)


def completed_guess(problem: Problem) -> Array:
    """Return the user's guess if there is one, and the middle of the range elsewhere."""
    known = [math.nan if u.parameter.guess is None else u.parameter.guess for u in problem.unknowns]
    (values,) = values_at(problem, np.full((1, len(known)), 0.5), np.array(known, dtype=float))
    return np.asarray(values)


def with_guess(problem: Problem, vector: Array) -> Problem:
    """Return the problem with another guess, for searches only; its definitions do not change.

    The middle of the range replaces NaN in the guess, shape (n,).
    """
    guessed = copy(problem)
    guessed.unknowns = tuple(
        replace(u, parameter=replace(u.parameter, guess=float(v) if math.isfinite(v) else None))
        for u, v in zip(problem.unknowns, vector, strict=True)
    )
    return guessed


def chosen(problem: Problem, values: Mapping[str, float] | None, seed: int = 0) -> Array:
    """Return the start values of a single start: the guess, or else a first sample.

    Values by name in `values` replace those; names other than unknowns are ignored.
    """
    base = guess(problem)
    if base is None:
        base = sample(problem, 0, 1, seed)[0]
    values = values or {}
    return np.array([values.get(k, v) for k, v in zip(problem.keys, base, strict=True)])


def sample(
    problem: Problem,
    block: int,
    count: int,
    seed: int,
    design: Design = "latin",
    part: float = 1.0,
) -> Array:
    """Return block number `block` of start values, shape (count, n).

    Each block is a separate design, so that any number of blocks can be drawn, in any order, by any
    process. Values come from the central `part` of each range.
    """
    n = len(problem.unknowns)
    rng = np.random.default_rng([seed, block])
    if design == "sobol":
        from scipy.stats import qmc

        u = qmc.Sobol(n, seed=rng).random_base2(math.ceil(math.log2(max(count, 2))))[:count]
    else:
        # One value in each of `count` equal cells of every axis.
        cells = rng.permuted(np.tile(np.arange(count), (n, 1)), axis=1).T
        u = (cells + rng.random((count, n))) / count
    if part < 1.0:
        u = 0.5 + part * (u - 0.5)
    return values_at(problem, u)


def lowest(projection: VariableProjection, points: Array, control: Control) -> tuple[Array, float]:
    """Return the point of the lowest cost (the first if all fail), and its cost.

    The points have the shape (count, n), in natural units. A single one is not evaluated.
    """
    if len(points) == 1:
        return points[0], 0.0  # nothing to choose
    along = projection.forward.trajectories_at(points)
    if len(projection.remaining) == points.shape[1]:
        costs = projection.forward.costs_along(points, along)
        if costs is not None:
            at = int(np.argmin(costs))
            return np.asarray(points[at]), float(costs[at])
    best, least = points[0], math.inf
    choice = UNDECIDED
    for x, known in zip(points, along, strict=True):
        if control.should_stop():
            break
        if known is not None:
            evaluation = projection.cost_along(x, known)
        else:
            evaluation = projection.evaluate_cost(x, choice)
        choice = evaluation.choice
        if isinstance(evaluation, Evaluation) and evaluation.cost < least:
            best, least = x, evaluation.cost
    return np.asarray(best), least
