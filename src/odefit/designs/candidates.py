"""Candidates: the possible measurements, with the information in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.designs.information import InformationMap
from odefit.designs.parts import Measurement, Run
from odefit.designs.weights import Atoms

GRID = 161
"""Number of equidistant times of a window from which refinement begins."""

EARLY = 30
"""Number of further times near its beginning, at equal ratios."""


@dataclass(frozen=True, eq=False)
class Window:
    """The possible times of a measurement: all from `low` to `high`, or only some."""

    low: float
    high: float
    times: Array | None = None

    @property
    def grid(self) -> Array:
        """Increasing times from which a search begins."""
        if self.times is not None:
            return self.times
        span = self.high - self.low
        even = np.linspace(self.low, self.high, GRID)
        early = self.low + span * np.geomspace(1e-5, 1.0 / GRID, EARLY)
        return np.unique(np.concatenate([even, early]))

    @property
    def check(self) -> Array:
        """Further times, between those of the grid, over which a design is checked."""
        if self.times is not None:
            return self.times
        return self.low + (self.high - self.low) * (np.arange(3 * GRID) + 0.37) / (3 * GRID)

    def near(self, time: float, reach: float) -> Array:
        """Return times within a reach of a time, including that time."""
        if self.times is not None:
            return np.array([time])
        times = time + reach * np.linspace(-1.0, 1.0, 9)
        return np.append(np.clip(times, self.low, self.high), time)


Places = Sequence[tuple[Run, Sequence[Array]]]
"""Runs, and the times of each group of observables there."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates in the order of runs, groups and times.

    Attributes
    ----------
    runs
        The runs.
    groups
        The observables that are measured together, mostly one.
    run, group, time
        The number of the run and of the group of each candidate, and its time, shape (m,).
    atoms
        The information in each of them.
    """

    runs: tuple[Run, ...]
    groups: tuple[tuple[str, ...], ...]
    run: IntArray
    group: IntArray
    time: Array
    atoms: Atoms

    @property
    def count(self) -> int:
        """The number of candidates."""
        return len(self.time)

    def index(self, run: Run, group: int, time: float) -> int | None:
        """Return the number of a candidate; None if it is not in the pool."""
        if run not in self.runs:
            return None
        at = self.runs.index(run)
        same = np.flatnonzero((self.run == at) & (self.group == group) & (self.time == time))
        return int(same[0]) if len(same) else None

    def points(self, design: Sequence[int] | IntArray) -> list[tuple[Run, int, float]]:
        """Return the run, the number of the group and the time of some candidates."""
        return [(self.runs[self.run[i]], int(self.group[i]), float(self.time[i])) for i in design]

    def measurement(self, number: int, count: int = 1) -> Measurement:
        """Return a candidate as a measurement of its run."""
        group = self.groups[self.group[number]]
        return Measurement(int(self.run[number]), group, float(self.time[number]), count)


@dataclass(frozen=True, eq=False)
class PoolMaker:
    """Makes pools of candidates.

    Attributes
    ----------
    information
        The information of measurements, by observable.
    groups
        The observables that are measured together.
    vectors
        Vectors of unknowns, shape (S, n).
    transform
        The coordinates of the search, shape (n, r): rows times this matrix.
    prior
        The existing information, in these coordinates, shape (S, r, r).
    costs
        The cost of a measurement of each group.
    """

    information: InformationMap
    groups: tuple[tuple[str, ...], ...]
    vectors: Array
    transform: Array
    prior: Array
    costs: Sequence[float]

    def pool(self, places: Places) -> Pool:
        """Return the candidates at some places that can be measured."""
        runs = [run for run, _ in places]
        times = [np.unique(np.concatenate(list(by_group))) for _, by_group in places]
        informations = [self.information.of(runs, times, vector) for vector in self.vectors]
        names = self.information.observables
        columns = [[names.index(name) for name in group] for group in self.groups]
        width = max(len(c) for c in columns)
        run, group, time = [], [], []
        rows: list[Array] = []
        r = self.transform.shape[1]
        for k, (_, by_group) in enumerate(places):
            for g, (asked, observed) in enumerate(zip(by_group, columns, strict=True)):
                at = np.searchsorted(times[k], np.unique(asked))
                possible = np.all(
                    [t[k].possible[:, observed].any(axis=1) for t in informations], axis=0
                )
                at = at[possible[at]]
                if not len(at):
                    continue
                block = np.zeros((len(informations), len(at), width, 2, r))
                for s, t in enumerate(informations):
                    block[s, :, : len(observed)] = t[k].rows[at][:, observed] @ self.transform
                rows.append(block.reshape(len(informations), len(at), 2 * width, r))
                run += [k] * len(at)
                group += [g] * len(at)
                time.append(times[k][at])
        if not rows:
            return self._of(runs, [], [], np.zeros(0), np.zeros((len(informations), 0, 1, r)))
        every = np.concatenate(rows, axis=1)
        used = np.any(every != 0.0, axis=(0, 1, 3))
        used[0] = True
        return self._of(runs, run, group, np.concatenate(time), every[:, :, used])

    def _of(
        self,
        runs: Sequence[Run],
        runs_of: Sequence[int],
        groups_of: Sequence[int],
        time: Array,
        rows: Array,
    ) -> Pool:
        run, group = np.array(runs_of, dtype=np.intp), np.array(groups_of, dtype=np.intp)
        costs = np.asarray(self.costs, dtype=float)[group]
        series = run * len(self.groups) + group
        atoms = Atoms(rows, costs, self.prior, series)
        return Pool(tuple(runs), self.groups, run, group, time, atoms)
