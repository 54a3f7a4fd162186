"""Unknowns that an undetermined direction hardly moves.

A null vector of the Jacobian involves nearly every unknown. For example, data after absorption do
not determine its rate, and the volume changes by a thousandth with that rate; only the rate is
undetermined. The null vector applies only to small changes, so the model itself shows how far the
other unknowns move. The unknown that the direction moves most is held at other values, and all
others of its experiments are refitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.directions import null_directions
from odefit.assessment.parts import Direction, Trouble
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import acting, undetermined
from odefit.common.errors import listed
from odefit.methods.estimate import Start, Status
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH
from odefit.problem.inputs.issues import LARGEST
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part, separate_parts
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

SMALL_MOVE = 3.0
"""Change of an unknown along a flat direction, in standard errors, for which it has an interval.
The square of the largest change within the bounds is added to its variance, so that the interval
covers it."""

SMALL_PART = 0.5
"""Change relative to the size of the unknown for which it has an interval, too: standard errors of
a hundredth make every change many of them."""

ALIKE = 0.5
"""Smallest change of an unknown along a flat direction, relative to the largest, that makes the two
inseparable."""

FACTORS = (1.5, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Factors that change the most affected unknown both ways, smallest first."""

BISECTIONS = 3
"""Number of bisections between the farthest value that fits as well and the next one."""

ONE_STANDARD_ERROR = 1.0  # largest deviance of such a change


KEPT = 100
"""Number of walks of a problem that are kept, since several stages of a fit ask for the same."""

_known: WeakKeyDictionary[Problem, dict[tuple[bytes, int, float], Array]] = WeakKeyDictionary()


def small_moves(
    forward: ForwardMap,
    vector: Array,
    rows: Array,
    taking_part: BoolArray,
    errors: Array,
    variance: float,
) -> Array:
    """Return the changes of unknowns along flat directions, in natural units, shape (n,).

    `rows` are these directions relative to the sizes of the unknowns, shape (d, n). `taking_part`
    marks the unknowns to examine, shape (n,). `errors` are the standard errors without these
    directions, shape (n,). Changes above both :data:`SMALL_MOVE` of these errors and
    :data:`SMALL_PART` of the unknown, and unknown changes, are infinite.
    """
    moves = np.zeros(len(vector))
    sizes = sizes_at(forward.problem, vector, part=0.0)
    small = np.maximum(SMALL_MOVE * errors, SMALL_PART * sizes)
    usable = forward.nodes is None and math.isfinite(variance) and variance > 0.0
    parts = separate_parts(forward.problem) if usable else ()
    for row in rows:
        pivot = int(np.argmax(np.abs(row)))
        alike = np.abs(row) >= ALIKE * np.abs(row[pivot])
        moves[alike] = math.inf
        others = taking_part & ~alike
        if not others.any():
            continue
        if not usable:
            moves[others] = math.inf
            continue
        changes = _moves_with(forward.problem, parts, vector, pivot, variance)
        changes = np.where(changes <= small, changes, math.inf)
        moves[others] = np.hypot(moves[others], changes[others])
    return moves


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
    moves = small_moves(forward, vector, rows, lost & effective, none, variance)
    return np.asarray(lost & (~effective | np.isinf(moves)))


def of_what_is_lost(
    directions: Sequence[Direction], trouble: Mapping[str, Trouble]
) -> tuple[Direction, ...]:
    """Return the directions with the words for one unknown where they move all others little."""
    described = []
    for direction in directions:
        lost = [key for key in direction.keys if trouble.get(key) is Trouble.NOT_DETERMINED]
        others = [key for key in direction.keys if key not in trouble]
        if len(lost) == 1 and others:
            change = "change" if others[1:] else "changes"
            words = f"The data do not determine {lost[0]}, with which {listed(others)} hardly "
            words = f"{words}{change}."
            direction = replace(direction, sentence=words)
        described.append(direction)
    return tuple(described)


def _moves_with(
    problem: Problem, parts: tuple[Part, ...], vector: Array, pivot: int, variance: float
) -> Array:
    """Return the largest changes of all unknowns while one takes values that fit as well.

    They are infinite, since they cannot be found, where an unknown is too large to be held.
    """
    if np.abs(vector).max() > LARGEST:
        return np.full(len(vector), math.inf)
    part = next((p for p in parts if pivot in p.unshared), None)
    moves = np.zeros(len(vector))
    if part is None:
        vector_of, places, alone = vector, np.arange(len(vector)), problem
    else:
        held = {problem.keys[i]: float(vector[i]) for i in part.shared & set(part.places.tolist())}
        vector_of, places, alone = (
            vector[part.unshared],
            part.unshared,
            part.problem.with_unknowns(fix=held),
        )
    here = int(np.flatnonzero(places == pivot)[0])
    rest = np.arange(len(places)) != here
    name = alone.keys[here]
    unknown = problem.unknowns[pivot].parameter
    known = _known.setdefault(problem, {})
    key = vector.tobytes(), pivot, variance
    if key in known:
        return known[key]
    least = ForwardMap(alone).cost(vector_of, UNDECIDED)

    def refitted(value: float, start: Array) -> Array | None:
        """Return the others with the unknown at a value; None if they do not fit as well."""
        end = _refitted(alone, {name: value}, start)
        if end is None or not 2.0 * (end.cost - least) / variance <= ONE_STANDARD_ERROR:
            return None
        return end.vector

    for values in _values(float(vector[pivot]), unknown.lower, unknown.upper):
        # Each refit begins at the one before, so that the walk stays on the hill of the answer.
        inside, beyond, at = float(vector[pivot]), math.nan, vector_of[rest]
        for value in values:
            end = refitted(value, at)
            if end is None:
                beyond = value
                break
            inside, at = value, end
            moves[places[rest]] = np.maximum(moves[places[rest]], np.abs(at - vector_of[rest]))
        if beyond == next(iter(values), math.nan):
            moves[:] = math.inf  # it ends at once: the direction is not flat
            break
        for _ in range(0 if math.isnan(beyond) else BISECTIONS):
            middle = 0.5 * (inside + beyond)
            end = refitted(middle, at)
            if end is None:
                beyond = middle
                continue
            inside, at = middle, end
            moves[places[rest]] = np.maximum(moves[places[rest]], np.abs(at - vector_of[rest]))
    while len(known) >= KEPT:
        known.pop(next(iter(known)))
    known[key] = moves
    return moves


def _values(value: float, lower: float, upper: float) -> Iterator[list[float]]:
    """Yield values below and above a value within the bounds, nearest first."""
    for sign, bound in ((-1, lower), (1, upper)):
        factors = [value * factor**sign if value else sign * factor for factor in FACTORS]
        inside = [v for v in factors if lower <= v <= upper and abs(v) <= LARGEST]
        if abs(bound) <= LARGEST and bound != value:
            inside.append(bound)
        yield inside


def _refitted(problem: Problem, held: dict[str, float], start: Array) -> Start | None:
    """Return the best fit near a start with one unknown held; None if it fails."""
    forward = ForwardMap(problem.with_unknowns(fix=held))
    end = START_SEARCH.run(forward, 0, start, Control(jobs=1))
    return None if end.status is Status.FAILED or not math.isfinite(end.cost) else end
