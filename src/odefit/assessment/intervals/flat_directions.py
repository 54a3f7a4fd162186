"""Unknowns that an undetermined direction hardly moves.

A null vector of the Jacobian involves nearly every unknown. For example, data after absorption do
not determine its rate, and the volume changes by a thousandth with that rate; only the rate is
undetermined. The null vector applies only to small changes, so the model itself shows how far the
other unknowns move: refits follow the direction both ways to the bounds
(:mod:`odefit.assessment.intervals.continuation`). The verdict is that on all values along it, so
that it does not depend on where a search ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from odefit.assessment.intervals.continuation import Continuation
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.directions import null_directions
from odefit.assessment.parts import Direction, Trouble
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import acting, undetermined
from odefit.common.errors import listed
from odefit.methods.local.scaling import bounds_touched
from odefit.methods.running.control import Control
from odefit.problem.inputs.issues import LARGEST
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part, separate_parts
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

SMALL_MOVE = 3.0
"""Span of an unknown along a flat direction, in standard errors, for which it has an interval.
The square of the largest change within the bounds is added to its variance, so that the interval
covers it."""

SMALL_PART = 0.5
"""Span relative to the smallest value along it for which it has an interval, too: standard errors
of a hundredth make every change many of them."""

ALIKE = 0.5
"""Smallest change of an unknown along a flat direction, relative to the largest, that makes the two
inseparable."""

EVALUATIONS = 300
"""Largest number of evaluations along a flat direction, both ways."""

ONE_STANDARD_ERROR = 1.0  # largest deviance of values along it

KEPT = 100
"""Number of directions that are kept of a problem, as several stages of a fit ask for the same."""


class FlatRidge(NamedTuple):
    """The values of all unknowns along a flat direction, shape (k, n), those of the answer first.

    There are no others if it is not flat. It is `whole` if it ends at bounds or in itself.
    """

    values: Array
    whole: bool


_known: WeakKeyDictionary[Problem, dict[tuple[bytes, int, float], FlatRidge]] = WeakKeyDictionary()


def small_moves(
    forward: ForwardMap,
    vector: Array,
    rows: Array,
    taking_part: BoolArray,
    errors: Array,
    variance: float,
) -> tuple[Array, list[FlatRidge | None]]:
    """Return the changes of unknowns along flat directions, in natural units, shape (n,).

    `rows` are these directions relative to the sizes of the unknowns, shape (d, n). `taking_part`
    marks the unknowns to examine, shape (n,). `errors` are the standard errors without these
    directions, shape (n,). Changes are infinite where they are unknown, or where the span along the
    whole direction is above both :data:`SMALL_MOVE` of these errors and :data:`SMALL_PART` of the
    smallest value. The directions that were followed are returned, too.
    """
    problem, moves = forward.problem, np.zeros(len(vector))
    usable = forward.nodes is None and math.isfinite(variance) and variance > 0.0
    parts = separate_parts(problem) if usable else ()
    ridges: list[FlatRidge | None] = []
    for row in rows:
        pivot = int(np.argmax(np.abs(row)))
        alike = np.abs(row) >= ALIKE * np.abs(row[pivot])
        moves[alike] = math.inf
        others = taking_part & ~alike
        ridge, changes = None, np.full(len(vector), math.inf)
        if usable and others.any():
            ridge = _followed(problem, parts, vector, row, variance)
        ridges.append(ridge)
        if ridge is not None and len(ridge.values) > 1:
            sizes = np.min([sizes_at(problem, one, part=0.0) for one in ridge.values], axis=0)
            most = np.maximum(SMALL_MOVE * errors, SMALL_PART * sizes)
            small = np.ptp(ridge.values, axis=0) <= most
            changes = np.where(small, np.abs(ridge.values - vector).max(axis=0), math.inf)
        moves[others] = np.hypot(moves[others], changes[others])
    return moves, ridges


def moved_by_flat_directions(
    forward: ForwardMap, vector: Array, evaluation: Evaluation
) -> BoolArray:
    """Return which unknowns directions that the data do not determine move far, shape (n,).

    They include unknowns without effect. Along such a direction all fits are equal, and count as
    one answer; where another unknown differs, the fit is another one.
    """
    sizes, information = sizes_at(forward.problem, vector), evaluation.information
    lost = undetermined(information, sizes)
    variance = Deviance.of(forward, vector, evaluation).variance if lost.any() else math.nan
    if not variance > 0.0:
        return lost
    _, effective = acting(information, sizes)
    rows = null_directions(forward.problem, vector, information, effective)
    if not len(rows):
        return lost
    none = np.zeros(len(vector))
    moves, _ = small_moves(forward, vector, rows, lost & effective, none, variance)
    return np.asarray(lost & (~effective | np.isinf(moves)))


def of_what_is_lost(
    directions: Sequence[Direction],
    trouble: Mapping[str, Trouble],
    ranges: Sequence[Mapping[str, tuple[float, float]]],
) -> tuple[Direction, ...]:
    """Return the directions with the words for one unknown where they move all others little.

    `ranges` are the values of unknowns that remain away from their bounds along each of them.
    """
    described = []
    for direction, within in zip(directions, ranges, strict=True):
        lost = [key for key in direction.keys if trouble.get(key) is Trouble.NOT_DETERMINED]
        others = [key for key in direction.keys if key not in trouble]
        words = direction.sentence
        if len(lost) == 1 and others:
            change = "change" if others[1:] else "changes"
            words = f"The data do not determine {lost[0]}, with which {listed(others)} hardly "
            words = f"{words}{change}."
        spans = [f"{k} from {within[k][0]:.2g} to {within[k][1]:.2g}" for k in lost if k in within]
        if spans:
            words = f"{words} Fits as good have about {listed(spans)}."
        described.append(replace(direction, sentence=words))
    return tuple(described)


def ranges_inside(problem: Problem, ridge: FlatRidge | None) -> dict[str, tuple[float, float]]:
    """Return the ranges along a ridge of the unknowns that remain away from their bounds there."""
    if ridge is None or not ridge.whole:
        return {}
    low, high = ridge.values.min(axis=0), ridge.values.max(axis=0)
    inside = ~(bounds_touched(problem, low) | bounds_touched(problem, high))
    return {key: (low[k], high[k]) for k, key in enumerate(problem.keys) if inside[k]}


def _followed(
    problem: Problem, parts: tuple[Part, ...], vector: Array, row: Array, variance: float
) -> FlatRidge:
    """Return what follows a flat direction, which is relative to the sizes of the unknowns.

    It has the answer alone where an unknown is too large to be held.
    """
    if np.abs(vector).max() > LARGEST:
        return FlatRidge(vector[None], False)
    pivot = int(np.argmax(np.abs(row)))
    known, key = _known.setdefault(problem, {}), (vector.tobytes(), pivot, variance)
    if key in known:
        return known[key]
    part = next((p for p in parts if pivot in p.unshared), None)
    places, alone = np.arange(len(vector)), problem
    if part is not None:
        held = {problem.keys[i]: float(vector[i]) for i in part.shared & set(part.places.tolist())}
        places, alone = part.unshared, part.problem.with_unknowns(fix=held)
    forward, here = ForwardMap(alone), vector[places]
    highest = forward.cost(here, UNDECIDED) + 0.5 * variance * ONE_STANDARD_ERROR
    direction = row[places] * sizes_at(problem, vector, part=0.0)[places]
    refits = Continuation(forward, Control(jobs=1), 0)
    ridge = refits.ridge(here, direction, highest, EVALUATIONS)
    values = np.tile(vector, (1 + len(ridge.places), 1))
    for values_there, (_, place) in zip(values[1:], ridge.places, strict=True):
        values_there[places] = place
    while len(known) >= KEPT:
        known.pop(next(iter(known)))
    known[key] = FlatRidge(values, ridge.whole)
    return known[key]
