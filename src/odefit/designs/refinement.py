"""Refinement: times and settings of a design between the points of its initial grid.

The search continues on a finer grid around each measurement, and then on a finer one again. So
derivatives with respect to time are not needed, and events within the window are harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.designs.candidates import Pool, PoolMaker, Window
from odefit.designs.continuous import TOLERANCE, of_one_quantity, optimal_weights
from odefit.designs.cutting_planes import by_cutting_planes
from odefit.designs.exact import Exchange, Limits
from odefit.designs.factors import Factor, neighbours
from odefit.designs.parts import Run
from odefit.designs.weights import Aims, Atoms, Weights, judged

FINEST = 2e-6
"""The smallest step, relative to the window."""

FINER = 0.25
"""Ratio of the step of a grid to that of the previous grid."""

SAME = 2e-4
"""Distance, relative to the window, within which two times of a design are the same."""

AT_ONE_STEP = 6
"""Number of searches with the same step, once and again for each setting."""

REFINED = 1e-8
"""Excess of the largest derivative at which a step of refinement ends."""

LIGHT = 1e-4
"""Weight below which a point of a continuous design is not refined."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Places near those of a design: other times of each group of observables, and other runs."""

    windows: Sequence[Window]
    factors: Sequence[Factor]

    @property
    def span(self) -> float:
        """The length of the longest window."""
        return max((w.high - w.low for w in self.windows), default=0.0)

    def around(
        self, points: Sequence[tuple[Run, int, float]], step: float, share: float
    ) -> list[tuple[Run, list[Array]]]:
        """Return places near some points: other times, and other settings of their runs."""
        times: dict[int, list[list[Array]]] = {}
        runs: list[Run] = []
        for run, group, time in points:
            if run not in runs:
                runs.append(run)
            by_group = times.setdefault(runs.index(run), [[] for _ in self.windows])
            by_group[group].append(self.windows[group].near(time, step))
        places: list[tuple[Run, list[Array]]] = []
        for k, run in enumerate(runs):
            groups = [np.concatenate([*t, np.zeros(0)]) for t in times[k]]
            places.append((run, groups))
        for run, groups in list(places):
            for other in neighbours(run, self.factors, share):
                if all(other != known for known, _ in places):
                    places.append((other, groups))
        return places

    @property
    def steps(self) -> list[tuple[float, float]]:
        """The steps of times, and the shares of the ranges of settings."""
        free = any(w.times is None for w in self.windows)
        settings = any(not f.levels for f in self.factors)
        steps, step = [], 1.0
        finest = FINEST * (20 if settings else 160)
        while step > finest and (free or settings):
            # Settings begin with their whole range, as a grid of many settings is coarse.
            steps.append((step * self.span / 160, step))
            step *= FINER
        return steps


@dataclass(frozen=True, eq=False)
class Refinement:
    """The refinement of the times of each group of observables, and of the factors of runs."""

    maker: PoolMaker
    near: Neighbourhood

    # Exact designs ----------------------------------------------------------------------------

    def exact(
        self, pool: Pool, design: Sequence[int], aims: Aims, limits: Limits
    ) -> tuple[Pool, list[int], float]:
        """Return a pool and a design of it that is at least as good as the one of the grid."""
        best_pool, best = pool, list(design)
        value = Exchange(pool, aims, limits).value(best)
        for step, share in self.near.steps:
            for _ in range(AT_ONE_STEP * (1 + sum(len(f.keys) for f in self.near.factors))):
                points = best_pool.points(best)
                local = self.maker.pool(self.near.around(points, step, share))
                mapped = [local.index(*point) for point in points]
                if None in mapped:
                    return best_pool, best, value
                exchange = Exchange(local, aims, limits)
                improved = exchange.improved([i for i in mapped if i is not None])
                new = exchange.value(improved)
                gain = new - value
                if gain > 0:
                    best_pool, best, value = local, improved, new
                if not gain > 1e-9:
                    break
        return self._merged(best_pool, best, aims, limits, value)

    def _merged(
        self, pool: Pool, design: list[int], aims: Aims, limits: Limits, value: float
    ) -> tuple[Pool, list[int], float]:
        """Return a design in which times that hardly differ are merged, if that costs nothing."""
        before = pool.points(design)
        points = self._with_equal_runs(before, [1.0] * len(before))
        times = _clustered(points, [1.0] * len(points), SAME * self.near.span)
        same = points == before and times == [t for *_, t in points]
        if limits.replicates is not None or same:
            return pool, design, value
        merged = [(run, group, t) for (run, group, _), t in zip(points, times, strict=True)]
        other = self.maker.pool(self.near.around(merged, 0.0, 0.0))
        mapped = [other.index(*point) for point in merged]
        if None in mapped:
            return pool, design, value
        reduced = [i for i in mapped if i is not None]
        new = Exchange(other, aims, limits).value(reduced)
        return (other, reduced, new) if new > value - 1e-7 else (pool, design, value)

    def _with_equal_runs(
        self, points: Sequence[tuple[Run, int, float]], weights: Sequence[float]
    ) -> list[tuple[Run, int, float]]:
        """Return points in which runs with almost equal settings become the heaviest of them."""
        total: dict[tuple[str, tuple[tuple[str, float], ...]], float] = {}
        runs: list[Run] = []
        for (run, *_), weight in zip(points, weights, strict=True):
            if run not in runs:
                runs.append(run)
            total[_hashable(run)] = total.get(_hashable(run), 0.0) + weight
        distinct: list[Run] = []
        for run in sorted(runs, key=lambda r: -total[_hashable(r)]):
            if not any(self._alike(run, other) for other in distinct):
                distinct.append(run)
        moved = []
        for run, group, time in points:
            same = next(other for other in distinct if other == run or self._alike(run, other))
            moved.append((same, group, time))
        return moved

    def _alike(self, run: Run, other: Run) -> bool:
        return run.experiment == other.experiment and all(
            abs(run.settings[key] - other.settings[key]) <= 10 * SAME * (f.upper - f.lower)
            for f in self.near.factors
            for key in f.keys
        )

    # Continuous designs -----------------------------------------------------------------------

    def continuous(
        self, pool: Pool, weights: Weights, aims: Aims, effort: float
    ) -> tuple[Pool, Weights]:
        """Return a pool and a continuous design of it, checked over times between the grid's."""
        best_pool, best = pool, weights
        for step, share in self.near.steps:
            heavy = best.weights > LIGHT
            support, shares = best.support[heavy], best.weights[heavy]
            points = best_pool.points(support)
            local = self.maker.pool(self.near.around(points, step, share))
            # Linear programs start afresh each time, with candidates near the support only.
            both: Pool = local
            numbers: IntArray | None = np.zeros(0, dtype=np.intp)
            if not (len(aims) == 1 and aims[0].by_cutting_planes):
                both, numbers = _joined(local, pool, points)
            if numbers is None:
                break
            begin = numbers, shares / shares.sum()
            improved = optimal_weights(both.atoms, aims, effort, begin, REFINED)
            best_pool, best = both, improved
        return self._checked(best_pool, best, aims, effort)

    def _checked(
        self, pool: Pool, weights: Weights, aims: Aims, effort: float
    ) -> tuple[Pool, Weights]:
        """Return a design with the times of its support merged, checked over further candidates."""
        heavy = weights.weights > LIGHT / 10
        shares_of_points = weights.weights[heavy]
        points = self._with_equal_runs(
            pool.points(weights.support[heavy]), shares_of_points.tolist()
        )
        checked, judgement = self._judged(
            pool, points, shares_of_points, weights, aims, effort, 10 * SAME
        )
        if judgement.excess <= max(10 * weights.excess, TOLERANCE):
            return checked, judgement
        # If a design leaves directions undetermined, close points may both be needed.
        apart, other = self._judged(pool, points, shares_of_points, weights, aims, effort, 0.0)
        if other.excess < judgement.excess:
            checked, judgement = apart, other
        if judgement.excess > TOLERANCE and of_one_quantity(aims):
            support, shares = judgement.support, judgement.weights
            other = by_cutting_planes(checked.atoms, aims[0], effort, support, shares)
            judgement = min(judgement, other, key=lambda each: each.excess)
        return checked, judgement

    def _judged(
        self,
        pool: Pool,
        points: Sequence[tuple[Run, int, float]],
        shares_of_points: Array,
        weights: Weights,
        aims: Aims,
        effort: float,
        reach: float,
    ) -> tuple[Pool, Weights]:
        """Return a design with points within a reach, relative to the span, merged."""
        times = _clustered(points, shares_of_points.tolist(), reach * self.near.span)
        merged: dict[tuple[int, int, float], float] = {}
        runs = list(dict.fromkeys(_hashable(run) for run, *_ in points))
        for (run, group, _), time, weight in zip(points, times, shares_of_points, strict=True):
            key = runs.index(_hashable(run)), group, time
            merged[key] = merged.get(key, 0.0) + float(weight)
        by_run = {_hashable(run): run for run, *_ in points}
        support = [(by_run[runs[k]], group, time) for k, group, time in merged]
        shares = np.array(list(merged.values()))
        places = [(run, [w.check for w in self.near.windows]) for run in pool.runs]
        places += self.near.around(support, 0.0, 0.0)
        checked = self.maker.pool(places)
        mapped = [_last(checked, *point) for point in support]
        if None in mapped:
            return pool, weights
        numbers = np.array([i for i in mapped if i is not None], dtype=np.intp)
        judgement = judged(
            checked.atoms, aims, effort, numbers, shares / shares.sum(), weights.kink
        )
        return checked, judgement


def _hashable(run: Run) -> tuple[str, tuple[tuple[str, float], ...]]:
    return run.experiment, tuple(run.settings.items())


def _last(pool: Pool, run: Run, group: int, time: float) -> int | None:
    """Return the number of a candidate, whichever of equal runs it belongs to."""
    for at in range(len(pool.runs) - 1, -1, -1):
        if pool.runs[at] == run:
            same = np.flatnonzero((pool.run == at) & (pool.group == group) & (pool.time == time))
            if len(same):
                return int(same[0])
    return None


def _joined(
    local: Pool, pool: Pool, points: Sequence[tuple[Run, int, float]]
) -> tuple[Pool, IntArray | None]:
    """Return the union of two pools, and the numbers of some points in it."""
    shift = len(local.runs)
    groups = max(len(local.groups), 1)
    width = max(local.atoms.rows.shape[2], pool.atoms.rows.shape[2])
    rows = [
        np.pad(p.atoms.rows, ((0, 0), (0, 0), (0, width - p.atoms.rows.shape[2]), (0, 0)))
        for p in (local, pool)
    ]
    run = np.concatenate([local.run, pool.run + shift])
    group = np.concatenate([local.group, pool.group])
    atoms = Atoms(
        np.concatenate(rows, axis=1),
        np.concatenate([local.atoms.costs, pool.atoms.costs]),
        local.atoms.prior,
        run * groups + group,
    )
    time = np.concatenate([local.time, pool.time])
    both = Pool(local.runs + pool.runs, local.groups, run, group, time, atoms)
    mapped = [local.index(*point) for point in points]
    if None in mapped:
        return both, None
    return both, np.array([i for i in mapped if i is not None], dtype=np.intp)


def _clustered(
    points: Sequence[tuple[Run, int, float]], weights: Sequence[float], reach: float
) -> list[float]:
    """Return the times of points, with times of one run and group within a reach averaged."""
    times = [time for *_, time in points]
    order = sorted(range(len(points)), key=lambda i: times[i])
    clusters: list[list[int]] = []
    for i in order:
        for cluster in clusters:
            last = cluster[-1]
            same = points[last][:2] == points[i][:2]
            if same and times[i] - times[last] <= reach:
                cluster.append(i)
                break
        else:
            clusters.append([i])
    averaged = list(times)
    for cluster in clusters:
        if len(cluster) > 1 and len({times[i] for i in cluster}) > 1:
            total = sum(weights[i] for i in cluster)
            mean = sum(weights[i] * times[i] for i in cluster) / total
            for i in cluster:
                averaged[i] = mean
    return averaged
