"""Unknowns that an undetermined direction hardly moves.

A null vector of the Jacobian involves nearly every unknown. For example, data after absorption do
not determine its rate, and the volume changes by a thousandth with that rate; only the rate is
undetermined. The null vector applies only to small changes, so the model itself shows how far the
other unknowns move. The unknown that the direction moves most is held at other values, and all
others of its experiments are refitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.estimate import Start, Status
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH
from odefit.problem.inputs.issues import LARGEST
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part, separate_parts
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

SMALL_MOVE = 3.0
"""Largest change of an unknown along a flat direction, in standard errors, for which it has an
interval. The square of the largest change within the bounds is added to its variance, so that the
interval covers it."""

ALIKE = 0.5
"""Smallest change of an unknown along a flat direction, relative to the largest, that makes the two
inseparable."""

FACTORS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.5)
"""Factors that change the most affected unknown both ways, largest first."""

BISECTIONS = 3
"""Number of bisections between the farthest value that fits as well and the next one."""

ONE_STANDARD_ERROR = 1.0  # largest deviance of such a change


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
    directions, shape (n,). Changes above :data:`SMALL_MOVE` of these errors, and unknown changes,
    are infinite.
    """
    moves = np.zeros(len(vector))
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
        changes = np.where(changes <= SMALL_MOVE * errors, changes, math.inf)
        moves[others] = np.hypot(moves[others], changes[others])
    return moves


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
    least = ForwardMap(alone).cost(vector_of, UNDECIDED)

    def changed(value: float) -> Array | None:
        """Return the changes of the others with the unknown at a value that fits as well."""
        end = _refitted(alone, {name: value}, vector_of[rest])
        if end is None or not 2.0 * (end.cost - least) / variance <= ONE_STANDARD_ERROR:
            return None
        return np.asarray(np.abs(end.vector - vector_of[rest]))

    for values in _values(float(vector[pivot]), unknown.lower, unknown.upper):
        beyond, inside = math.nan, math.nan
        for value in values:
            changes = changed(value)
            if changes is not None:
                inside = value
                moves[places[rest]] = np.maximum(moves[places[rest]], changes)
                break
            beyond = value
        if values and math.isnan(inside):
            return np.full(len(vector), math.inf)
        for _ in range(0 if math.isnan(beyond) else BISECTIONS):
            middle = 0.5 * (inside + beyond)
            changes = changed(middle)
            if changes is None:
                beyond = middle
            else:
                inside = middle
                moves[places[rest]] = np.maximum(moves[places[rest]], changes)
    return moves


def _values(value: float, lower: float, upper: float) -> Iterator[list[float]]:
    """Yield values below and above a value within the bounds, farthest first."""
    for sign, bound in ((-1, lower), (1, upper)):
        factors = [value * factor**sign if value else sign * factor for factor in FACTORS]
        inside = [v for v in factors if lower <= v <= upper and abs(v) <= LARGEST]
        if abs(bound) <= LARGEST and bound != value:
            inside = [bound, *inside]
        yield inside


def _refitted(problem: Problem, held: dict[str, float], start: Array) -> Start | None:
    """Return the best fit near a start with one unknown held; None if it fails."""
    forward = ForwardMap(problem.with_unknowns(fix=held))
    end = START_SEARCH.run(forward, 0, start, Control(jobs=1))
    return None if end.status is Status.FAILED or not math.isfinite(end.cost) else end
