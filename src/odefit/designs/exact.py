"""Exact designs: whole numbers of measurements, by exchange.

As in V. V. Fedorov, Theory of Optimal Experiments, 1972, each measurement in turn is replaced by
the candidate that adds most information to all others, until no exchange improves the design.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.designs.candidates import Pool
from odefit.designs.weights import Aims

BETTER = 1e-11
"""Gain of the criterion above which an exchange is made."""

PASSES = 60
"""The largest number of passes through the measurements."""

BEST_RUNS = 4
"""Number of the best single runs from which a design of a single run begins."""

CHUNK = 4_000_000
"""Largest number of matrix entries processed together."""


@dataclass(frozen=True)
class Limits:
    """The limits of a design.

    Attributes
    ----------
    effort
        The number of measurements, or the budget that their costs must not exceed.
    run_cost
        The cost of a run, in addition to those of its measurements.
    replicates
        The largest number of measurements of an observable at one time of a run; None for no limit.
    spacing
        The smallest distance between different times of an observable in a run.
    runs
        The largest number of runs; None for no limit.
    """

    effort: float
    run_cost: float = 0.0
    replicates: int | None = None
    spacing: float = 0.0
    runs: int | None = None


class Exchange:
    """Designs from a pool of candidates, as lists of their numbers."""

    def __init__(self, pool: Pool, aims: Aims, limits: Limits) -> None:
        self._pool = pool
        self._aims = aims
        self._limits = limits
        self._places = {
            key: i
            for i, key in enumerate(
                zip(pool.run.tolist(), pool.group.tolist(), pool.time.tolist(), strict=True)
            )
        }

    def value(self, design: Sequence[int]) -> float:
        """Return the criterion of a design."""
        matrices = self._matrices(design)
        return float(
            np.mean([a.values(m[None])[0] for a, m in zip(self._aims, matrices, strict=True)])
        )

    def cost(self, design: Sequence[int]) -> float:
        """Return the cost of a design."""
        of_measurements = float(self._pool.atoms.costs[list(design)].sum())
        return of_measurements + self._limits.run_cost * len(
            {int(self._pool.run[i]) for i in design}
        )

    def greedy(self, design: Sequence[int] = ()) -> list[int]:
        """Return a design extended greedily by the most informative candidates."""
        extended = list(design)
        while True:
            allowed = self.allowed(extended)
            if not allowed.any():
                return extended
            values = self._with_each(self._matrices(extended), allowed)
            if self._limits.run_cost or len(np.unique(self._pool.atoms.costs)) > 1:
                base = self.value(extended)
                cost = self._added_costs(extended)
                values = np.where(allowed, (values - base) / cost, -np.inf)
            extended.append(int(np.argmax(values)))

    def improved(self, design: Sequence[int]) -> list[int]:
        """Return a design after all exchanges that improve it."""
        exchanged = list(design)
        value = self.value(exchanged)
        for _ in range(PASSES):
            before = value
            for slot in range(len(exchanged)):
                rest = exchanged[:slot] + exchanged[slot + 1 :]
                allowed = self.allowed(rest)
                values = self._with_each(self._matrices(rest), allowed)
                best = int(np.argmax(values))
                if values[best] > value + BETTER:
                    exchanged[slot], value = best, float(values[best])
            exchanged = self.greedy(exchanged)
            exchanged, value = self._other_runs(exchanged, self.value(exchanged))
            if not value > before + BETTER:
                break
        return exchanged

    def _other_runs(self, design: list[int], value: float) -> tuple[list[int], float]:
        """Move all measurements of a run to another run, if that is better."""
        pool = self._pool
        if len(pool.runs) < 2:
            return design, value
        for run in sorted({int(pool.run[i]) for i in design}):
            for other in range(len(pool.runs)):
                moved = [self._moved(i, run, other) for i in design]
                if other == run or None in moved:
                    continue
                trial = [i for i in moved if i is not None]
                if self._holds(trial) and (new_value := self.value(trial)) > value + BETTER:
                    design, value, run = trial, new_value, other
        return design, value

    def _moved(self, number: int, run: int, other: int) -> int | None:
        pool = self._pool
        if pool.run[number] != run:
            return number
        return self._places.get((other, int(pool.group[number]), float(pool.time[number])))

    def _holds(self, design: Sequence[int]) -> bool:
        """Return whether a design is within the limits."""
        return all(self.allowed([*design[:k], *design[k + 1 :]])[i] for k, i in enumerate(design))

    # Limits -----------------------------------------------------------------------------------

    def _added_costs(self, design: Sequence[int]) -> Array:
        used = {int(self._pool.run[i]) for i in design}
        new = ~np.isin(self._pool.run, list(used))
        return np.asarray(self._pool.atoms.costs + self._limits.run_cost * new)

    def allowed(self, design: Sequence[int]) -> BoolArray:
        """Return the candidates that may be added to a design."""
        pool, limits = self._pool, self._limits
        spent = self.cost(design)
        allowed = spent + self._added_costs(design) <= limits.effort * (1 + 1e-12)
        used = {int(pool.run[i]) for i in design}
        if limits.runs is not None and len(used) >= limits.runs:
            allowed &= np.isin(pool.run, list(used))
        if limits.replicates is not None:
            for number, count in Counter(design).items():
                if count >= limits.replicates:
                    allowed[number] = False
        if limits.spacing > 0:
            for i in set(design):
                same = (pool.run == pool.run[i]) & (pool.group == pool.group[i])
                distance = np.abs(pool.time - pool.time[i])
                near = distance < limits.spacing * (1 - 1e-9)
                allowed &= ~(same & near & (distance > 0))
        return np.asarray(allowed)

    # Values -----------------------------------------------------------------------------------

    def _matrices(self, design: Sequence[int]) -> Array:
        numbers = np.bincount(np.asarray(design, dtype=np.intp), minlength=self._pool.count)
        return self._pool.atoms.information(numbers.astype(float))

    def _with_each(self, matrices: Array, allowed: BoolArray) -> Array:
        """Return the criterion with each candidate added, minus infinity if not allowed."""
        with_each = np.full(self._pool.count, -np.inf)
        which = np.flatnonzero(allowed)
        rows = self._pool.atoms.rows
        n = rows.shape[-1]
        step = max(1, CHUNK // (n * n))
        for first in range(0, len(which), step):
            part = which[first : first + step]
            total = np.zeros(len(part))
            for s, (aim, matrix) in enumerate(zip(self._aims, matrices, strict=True)):
                added = rows[s, part]
                total += aim.values(matrix + np.swapaxes(added, 1, 2) @ added)
            values = total / len(matrices)
            with_each[part] = np.where(np.isnan(values), -np.inf, values)
        return with_each


def best_exact(
    pool: Pool, aims: Aims, limits: Limits, begin: Sequence[Sequence[int]], restarts: int, seed: int
) -> tuple[list[int], float]:
    """Return the best design found by exchanges from some given and some random designs."""
    exchange = Exchange(pool, aims, limits)
    random = np.random.default_rng(seed)
    trials = [exchange.greedy(b) for b in begin] + [exchange.greedy()]
    if limits.runs == 1:
        alone = [exchange.greedy([i]) for i in _best_of_each_run(exchange, pool)]
        trials += sorted(alone, key=exchange.value, reverse=True)[:BEST_RUNS]
    for _ in range(restarts):
        some = random.integers(0, pool.count, size=max(1, len(trials[-1])))
        trials.append(exchange.greedy(within(exchange, some.tolist())))
    best: tuple[list[int], float] = [], -np.inf
    for trial in trials:
        improved = exchange.improved(trial)
        value = exchange.value(improved) if improved else -np.inf
        if value > best[1] + BETTER:
            best = improved, value
    return best


def _best_of_each_run(exchange: Exchange, pool: Pool) -> list[int]:
    """Return the most informative single candidate of each run."""
    values = exchange._with_each(exchange._matrices([]), np.ones(pool.count, dtype=bool))
    best = []
    for run in range(len(pool.runs)):
        in_run = np.flatnonzero(pool.run == run)
        if len(in_run):
            best.append(int(in_run[np.argmax(values[in_run])]))
    return best


def within(exchange: Exchange, design: Sequence[int]) -> list[int]:
    """Return as many of some measurements as the limits allow."""
    chosen: list[int] = []
    for i in design:
        if exchange.allowed(chosen)[i]:
            chosen.append(i)
    return chosen
