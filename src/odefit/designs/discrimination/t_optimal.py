"""T-optimal designs: measurements that the other model cannot fit, however its unknowns are chosen.

A. C. Atkinson and V. V. Fedorov, The design of experiments for discriminating between two rival
models, Biometrika 62, 1975, 57-70. The right model's predictions are fitted by the other, and the
smallest sum of squares is made as large as possible. Over shares of effort this is a linear program
with a constraint for each value of the other model's unknowns, solved by adding the closest ones in
turn. It bounds the sum of squares of every design from above, as the equivalence theorem does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.designs.candidates import Pool
from odefit.designs.discrimination.rivals import Field, Rivals
from odefit.designs.exact import Exchange, Limits
from odefit.designs.parts import Run
from odefit.designs.refinement import Neighbourhood

ROUNDS = 60
"""Largest number of values of the unknowns in the linear program of a continuous design."""

CLOSE = 1e-4
"""Relative distance of the sum of squares from its bound at which a design is optimal."""

PASSES = 40
"""Largest number of passes through the measurements."""

REFITS = 12
"""Largest number of fits of the other model between exchanges on one grid."""

BETTER = 1e-9
"""Relative gain above which an exchange is made."""

LIGHT = 1e-4
"""Weight below which a point of a continuous design is left out."""

STEPS = 5
"""Number of finer and finer grids around the measurements."""


@dataclass(frozen=True, eq=False)
class Divided:
    """A continuous T-optimal design.

    Attributes
    ----------
    support, weights
        Candidates and their shares of the effort.
    value
        The smallest sum of squares of the other model.
    bound
        The upper bound of this for every design of the candidates.
    relative
        The derivative of the criterion by a measurement of each candidate, relative to the mean.
    """

    support: IntArray
    weights: Array
    value: float
    bound: float
    relative: Array


class Closest:
    """Values of the other model's unknowns that were closest for some design, at a pool."""

    def __init__(self, pool: Pool, field: Field) -> None:
        self.pool, self.field = pool, field
        self.squares: list[Array] = []
        self.data: list[float] = []
        other = field.rivals.other
        begun = other.data_residuals(other.vector)[0]
        self._base = float(begun @ begun)
        for vector in [other.vector, *field.rivals.ends]:
            self.add(vector, remember=False)

    def add(self, vector: Array, *, remember: bool = True) -> bool:
        """Add values of the unknowns; return whether the model can be integrated there."""
        squares = self.field.squares(vector)
        if squares is None:
            return False
        residuals = self.field.rivals.other.data_residuals(vector)[0]
        self.squares.append(squares)
        self.data.append(max(float(residuals @ residuals) - self._base, 0.0))
        if remember:
            self.field.remember(vector)
        return True

    def value(self, design: Sequence[int]) -> float:
        """Return the smallest sum of squares of a design over these values."""
        return float(np.min(self.totals(design)))

    def totals(self, design: Sequence[int]) -> Array:
        """Return the sum of squares of a design at each of these values."""
        rows = np.array([one[list(design)].sum() for one in self.squares])
        return np.asarray(rows + np.array(self.data))


def divided(closest: Closest, effort: float) -> Divided:
    """Return the best continuous design of an effort, see the module."""
    from scipy.optimize import linprog

    pool = closest.pool
    best: Divided | None = None
    for _ in range(ROUNDS):
        per_cost = np.array(closest.squares) * effort / pool.atoms.costs
        scale = max(float(per_cost.max()), 1e-300)
        constraints = np.column_stack([-per_cost / scale, np.ones(len(per_cost))])
        goal = np.zeros(pool.count + 1)
        goal[-1] = -1.0
        sums = np.append(np.ones(pool.count), 0.0)[None]
        solution: Any = linprog(
            goal,
            A_ub=constraints,
            b_ub=np.array(closest.data) / scale,
            A_eq=sums,
            b_eq=[1.0],
            bounds=[(0.0, 1.0)] * pool.count + [(0.0, None)],
            method="highs",
        )
        if solution.status != 0:
            break
        bound = float(solution.x[-1]) * scale
        weights = np.clip(solution.x[:-1], 0.0, 1.0)
        support = np.flatnonzero(weights > 1e-9)
        numbers = {int(i): float(weights[i]) * effort / pool.atoms.costs[i] for i in support}
        vector, value = closest.field.closest(numbers)
        if best is None or value > best.value:
            shares = np.maximum(-np.asarray(solution.ineqlin.marginals), 0.0)
            shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(shares), 1.0)
            along = shares @ per_cost
            mean = float(weights @ along)
            relative = along / mean if mean > 0 else np.zeros(pool.count)
            best = Divided(support, weights[support], value, bound, relative)
        best = Divided(
            best.support, best.weights, best.value, min(bound, best.bound), best.relative
        )
        if bound - best.value <= CLOSE * bound or not closest.add(vector):
            break
    assert best is not None
    return best


def exact(closest: Closest, limits: Limits, begin: Sequence[int]) -> tuple[list[int], float]:
    """Return whole measurements by exchange, and the smallest sum of squares of the other model."""
    exchange = Exchange(closest.pool, (), limits)
    best: tuple[list[int], float] = [], -1.0
    design = _filled(exchange, closest, list(begin))
    for _ in range(REFITS):
        design = _exchanged(exchange, closest, design)
        vector, value = closest.field.closest(dict(Counter(design)))
        if value > best[1]:
            best = list(design), value
        if value >= closest.value(design) * (1 - 1e-6) or not closest.add(vector):
            break
    return best


def _filled(exchange: Exchange, closest: Closest, design: list[int]) -> list[int]:
    """Return a design with measurements added until the limits."""
    squares = np.array(closest.squares)
    while True:
        allowed = exchange.allowed(design)
        if not allowed.any():
            return design
        base = closest.totals(design)[:, None] if design else np.array(closest.data)[:, None]
        totals = base + squares
        # The smallest first; if it is zero for every candidate, the mean distinguishes them.
        values = totals.min(axis=0) + 1e-6 * totals.mean(axis=0)
        design = [*design, int(np.argmax(np.where(allowed, values, -np.inf)))]


def _exchanged(exchange: Exchange, closest: Closest, design: list[int]) -> list[int]:
    squares = np.array(closest.squares)
    value = closest.value(design)
    for _ in range(PASSES):
        before = value
        for slot in range(len(design)):
            rest = design[:slot] + design[slot + 1 :]
            base = closest.totals(rest) if rest else np.array(closest.data)
            allowed = exchange.allowed(rest)
            values = np.where(allowed, (base[:, None] + squares).min(axis=0), -np.inf)
            at = int(np.argmax(values))
            if values[at] > value * (1 + BETTER):
                design, value = [*rest[:slot], at, *rest[slot:]], float(values[at])
        if not value > before * (1 + BETTER):
            break
    return design


def refined(
    rivals: Rivals,
    near: Neighbourhood,
    limits: Limits,
    points: Sequence[tuple[Run, int, float]],
    value: float,
) -> tuple[Pool, Field, list[int], float] | None:
    """Return a design with times and settings between those of the grid; None if none is better."""
    best: tuple[Pool, Field, list[int], float] | None = None
    here = list(points)
    for step, share in near.steps[:STEPS]:
        pool, field = rivals.pool(near.around(here, step, share))
        mapped = [pool.index(*point) for point in here]
        begin = [i for i in mapped if i is not None]
        if len(begin) < len(mapped):
            break
        design, new_value = exact(Closest(pool, field), limits, begin)
        if new_value > value:
            best, value = (pool, field, design, new_value), new_value
            here = pool.points(design)
    return best
