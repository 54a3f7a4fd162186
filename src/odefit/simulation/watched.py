"""Values of trajectories on which measurements depend, and derivatives of the cost by them.

The residuals of an observable depend on few of the states. So states that occur together in no
observable share a direction. Residuals then have as many derivatives as the largest observable has
states, instead of one for every state of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.residuals.series_rows import ResidualSource
from odefit.simulation.trajectories.trajectory import switched_scalars


@dataclass(frozen=True, eq=False)
class Watched:
    """Values of trajectories on which measurements depend, and their directions.

    A direction is a column of derivatives besides those of the unknowns.
    """

    states: IntArray  # Numbers of the states, shape (s,)
    scalars: tuple[str, ...]  # The scalars that events assign, by name
    unknowns: int  # Number of unknowns of the problem; the directions count from there
    directions: IntArray  # Direction of each of the states, shape (s,)
    by_observable: Mapping[str, IntArray]  # Places in `states` of those in each observable

    @classmethod
    def of(cls, problem: Problem, field: VectorField) -> Watched:
        """Return the values on which the measurements of a problem may depend."""
        names = {name: _names(problem, name) for name in problem.model.observables}
        every = {n for used_names in names.values() for n in used_names}
        states = [i for i, name in enumerate(field.states) if name in every]
        place = {name: k for k, name in enumerate(n for n in field.states if n in every)}
        switched = {n for c in problem.conditions for n in switched_scalars(field, c)}
        places = {
            name: np.array(sorted(place[n] for n in used_names if n in place), dtype=np.intp)
            for name, used_names in names.items()
        }
        return cls(
            np.array(states, dtype=np.intp),
            tuple(sorted(switched & every)),
            len(problem.unknowns),
            _directions(len(states), list(places.values())),
            places,
        )

    @property
    def shared(self) -> int:
        """Number of directions of the states."""
        return int(self.directions.max(initial=-1)) + 1

    @property
    def count(self) -> int:
        """Number of directions of states and scalars."""
        return self.shared + len(self.scalars)


class Weights:
    """The derivatives of the cost with respect to the watched values, from those of the residuals.

    `lengths` are the numbers of times of the conditions, `sources` those of the residuals.
    """

    def __init__(
        self, watched: Watched, lengths: Sequence[int], sources: Sequence[ResidualSource]
    ) -> None:
        self._shapes = [(length, len(watched.states) + len(watched.scalars)) for length in lengths]
        sizes = [rows * columns for rows, columns in self._shapes]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        scalars = np.arange(len(watched.scalars))
        places: list[tuple[IntArray, IntArray, IntArray]] = []
        start = 0
        for source in sources:
            rows = np.arange(start, start + len(source.times))
            start += len(source.times)
            if source.condition < 0:
                continue
            states_of = watched.by_observable[source.name]
            columns = np.concatenate([states_of, len(watched.states) + scalars])
            directions = np.concatenate([watched.directions[states_of], watched.shared + scalars])
            width = self._shapes[source.condition][1]
            into = self._starts[source.condition] + source.times[:, None] * width + columns
            places.append(
                (
                    np.repeat(rows, len(columns)),
                    np.tile(watched.unknowns + directions, len(rows)),
                    into.ravel(),
                )
            )
        nothing = (np.zeros(0, dtype=np.intp),) * 3
        self._rows, self._columns, self._into = (
            np.concatenate(part) for part in zip(nothing, *places, strict=True)
        )

    def __call__(self, residuals: Array, jacobian: Array) -> dict[int, Array]:
        """Return them by condition, each of the shape (times, states and scalars)."""
        by_residual = residuals[self._rows] * jacobian[self._rows, self._columns]
        every: Array = np.zeros(int(self._starts[-1]))
        np.add.at(every, self._into, by_residual)
        return {
            c: every[self._starts[c] : self._starts[c + 1]].reshape(shape)
            for c, shape in enumerate(self._shapes)
        }


def _names(problem: Problem, observable: str) -> set[str]:
    """Return the names on which measurements of an observable, and their spread, may depend."""
    model = problem.model
    names = set(model.observables[observable].names)
    spread = problem.noise.get(observable, Noise()).spread
    if isinstance(spread, Expression):
        for name in spread.names:
            names |= model.observables[name].names if name in model.observables else {name}
    if names & set(model.algebraic):
        names |= {n for e in model.algebraic.values() for n in e.names}
    return names


def _directions(count: int, together: Sequence[IntArray]) -> IntArray:
    """Return a direction for each of some states; states that occur together get different ones."""
    taken: list[set[int]] = [set() for _ in together]
    groups_of: list[list[int]] = [[] for _ in range(count)]
    for number, group in enumerate(together):
        for state in group:
            groups_of[state].append(number)
    directions = np.zeros(count, dtype=np.intp)
    for state, groups in enumerate(groups_of):
        used = set().union(*(taken[g] for g in groups))
        directions[state] = next(d for d in range(len(used) + 1) if d not in used)
        for g in groups:
            taken[g].add(int(directions[state]))
    return directions
