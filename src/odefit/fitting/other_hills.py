"""Places where other optima may lie, derived from the answer for every seed.

The motion may run at another speed (:mod:`odefit.fitting.other_speeds`). Unknowns with like roles
may have been exchanged, and an unknown at a bound may belong far from it, or another one at its own
bound. An unknown that the data
do not determine here may have another optimum where they do: absorption that is over at the first
sample may also be slower than elimination.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from odefit.assessment.intervals.directions import null_directions
from odefit.assessment.intervals.flat_directions import ALIKE
from odefit.common.arrays import Array
from odefit.common.effects import acting
from odefit.fitting.other_speeds import other_speeds
from odefit.fitting.places import Candidate, refitted
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.problem import Problem
from odefit.problem.variants.exchanges import exchanged
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

EXCHANGES, FEW_EXCHANGES = 10, 4
"""Largest number of pairs of unknowns that are exchanged, and the number after a short search."""

MANY = 15
"""Fewest evaluations allowed after the search for taking unknowns off their bounds."""

PARTS = 0.8, 0.6, 0.4, 0.2
"""Parts of the way from a bound to an unknown that is flat, in its logarithm if it is positive, at
which others are refitted; and the bound itself."""

MOST_SIMPLER = 12  # largest number of unknowns of which each is tried at its bounds

MOST_FLAT = 10
"""Largest number of unknowns that are tried so."""


def candidates(
    forward: ForwardMap,
    vector: Array,
    fits: Callable[[float], bool],
    budget: float,
    stop: Callable[[], bool],
) -> list[Candidate]:
    """Return places where other optima may lie, the most promising first.

    `fits` returns whether a place with a cost promises to fit. `budget` is the number of
    evaluations allowed after the search: exchanges take one each, and unknowns off their bounds
    many.
    """
    exchanges = int(np.clip(budget, FEW_EXCHANGES, EXCHANGES))
    ordered = [
        *other_speeds(forward, vector, fits),
        *exchanged_places(forward, vector, exchanges, stop),
    ]
    ordered.sort(key=lambda candidate: candidate.cost)
    return ordered + (off_bounds(forward.problem, vector) if budget >= MANY else [])


def exchanged_places(
    forward: ForwardMap, vector: Array, most: int, stop: Callable[[], bool]
) -> list[Candidate]:
    """Return answers with two unknowns of the same kind, unit and experiment exchanged."""
    problem, places = forward.problem, []
    for place in exchanged(problem, vector, max(most, 0)):
        at = None if stop() else forward.evaluate(place, UNDECIDED)
        if isinstance(at, Evaluation):
            cost, start = refitted(problem, place, at)
            places.append(Candidate(start, cost))
    return places


def off_bounds(problem: Problem, vector: Array) -> list[Candidate]:
    """Return copies of the answer with one unknown moved from its bound to mid-range."""
    places, middle = [], _mid_range(problem)
    for k in np.flatnonzero(bounds_touched(problem, vector) & np.isfinite(middle)):
        place = vector.copy()
        place[k] = middle[k]
        places.append(Candidate(place, math.inf, int(k)))
    return places


def simpler_models(problem: Problem, vector: Array) -> list[Candidate]:
    """Return places in mid-range with one unknown at a bound, if the answer has any at one.

    A term that vanishes at a bound leaves a simpler model, which may fit within the noise with
    other values of all others. Random starts seldom come close to bounds.
    """
    places, middle = [], _mid_range(problem)
    usable = len(vector) <= MOST_SIMPLER and np.isfinite(middle).all()
    if not (usable and bounds_touched(problem, vector).any()):
        return []
    for k in range(len(vector)):
        for bound in (problem.lower[k], problem.upper[k]):
            place = middle.copy()
            place[k] = bound
            places.append(Candidate(place, math.inf, k))
    return places


def _mid_range(problem: Problem) -> Array:
    """Return the middle between the bounds, geometric for positive unknowns, shape (n,).

    It is not finite where a bound is missing.
    """
    low, high = problem.lower, problem.upper
    with np.errstate(invalid="ignore"):
        return np.where(low > 0, np.sqrt(np.maximum(low, 0.0) * high), 0.5 * (low + high))


def along_flat_unknowns(problem: Problem, vector: Array, information: Array) -> list[Candidate]:
    """Return copies of the answer with one unknown that is flat at values up to its bounds.

    It is without effect, or a direction that the data do not determine changes it alone.

    `information` is that of the answer, see :class:`odefit.simulation.Evaluation`.
    """
    places = []
    free = ~bounds_touched(problem, vector)
    _, effective = acting(information, sizes_at(problem, vector))
    flat = np.flatnonzero(free & ~effective).tolist()
    free &= effective
    if free.any():
        for row in np.abs(null_directions(problem, vector, information, free)):
            alike = np.flatnonzero(row >= ALIKE * row.max())
            flat += alike.tolist() if len(alike) == 1 else []
    for k in flat[:MOST_FLAT]:
        for bound in (problem.lower[k], problem.upper[k]):
            if not math.isfinite(bound):
                continue
            for part in (*PARTS, 0.0):
                place = vector.copy()
                if min(bound, vector[k]) > 0:
                    place[k] = bound * (vector[k] / bound) ** part
                else:
                    place[k] = bound + part * (vector[k] - bound)
                places.append(Candidate(place, math.inf, k))
    return places
