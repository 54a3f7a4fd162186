"""Trajectories of all conditions of a problem, each segment that they share integrated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from odefit.problem.arrays import Array, IntArray
from odefit.problem.binding import dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engine import EngineFailure, SegmentSolution
from odefit.simulation.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines import Engines
from odefit.simulation.failure import Failure
from odefit.simulation.propagation import Propagation, Values, sensitivity_pattern
from odefit.simulation.shared_segments import (
    SharedRows,
    groups_with_equal_starts,
    shared_segments,
)
from odefit.simulation.trajectory import ConditionMap, Trajectory, switched_scalars


class ConditionsMap:
    """The forward map of all conditions at their data times.

    Parameters
    ----------
    field
        The equations.
    conditions
        The conditions.
    engines
        Engines, shared by all conditions.
    sensitivities
        Whether sensitivities are wanted.
    """

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        engines: Engines,
        sensitivities: bool = True,
    ) -> None:
        self._arguments = field, conditions, engines, sensitivities
        self._single: dict[int, ConditionMap] = {}
        self._parts: list[tuple[tuple[int, ...], ConditionMap | SharedMap]] = []
        for group in groups_with_equal_starts(field, conditions):
            made: ConditionMap | SharedMap
            if len(group) == 1:
                made = self.single(group[0])
            else:
                made = SharedMap(field, conditions, group, engines, sensitivities)
            self._parts.append((group, made))

    def single(self, number: int) -> ConditionMap:
        """Return the forward map of one condition."""
        if number not in self._single:
            field, conditions, engines, sensitivities = self._arguments
            self._single[number] = ConditionMap(field, conditions[number], engines, sensitivities)
        return self._single[number]

    def __call__(
        self, vector: Array, choice: EngineChoice = UNDECIDED
    ) -> list[Trajectory] | Failure:
        """Return the trajectories of all conditions in their order, or why one has none.

        Parameters
        ----------
        vector
            Unknowns of the problem, shape (unknowns,).
        choice
            The choice of an engine, as the integration before has returned it.
        """
        if len(self._parts) == 1:
            return self._parts[0][1].all(vector, choice)
        found: dict[int, Trajectory] = {}
        for numbers, part in self._parts:
            own = part.all(vector, choice)
            if isinstance(own, Failure):
                return own
            choice = own[-1].choice
            found |= zip(numbers, own, strict=True)
        trajectories = [found[number] for number in range(len(found))]
        if trajectories[-1].choice is choice:
            return trajectories
        # The last one tells what is known now.
        trajectories[-1] = replace(trajectories[-1], choice=choice)
        return trajectories


class _Branch(NamedTuple):
    """What integrates a shared segment.

    Attributes
    ----------
    propagation
        Events and engines, with sensitivities by the unknowns that act on all its conditions.
    directions
        Number m of these.
    columns
        The parent's directions among them; None if they are the same.
    rows
        The rows that lie in it, with the directions among those of the condition, shape (m,).
    following
        Numbers of the segments that follow.
    """

    propagation: Propagation
    directions: int
    columns: IntArray | None
    rows: Sequence[tuple[SharedRows, IntArray | None]]
    following: list[int]


class SharedMap:
    """The forward map of conditions that begin with the same values.

    A segment that several conditions share has sensitivities by the unknowns that act on all of
    them. Others come in at its end, where their sensitivities are zero.

    Parameters
    ----------
    field, conditions, engines, sensitivities
        The arguments are those of :class:`ConditionsMap`.
    members
        Numbers of the conditions.
    """

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        members: Sequence[int],
        engines: Engines,
        sensitivities: bool = True,
    ) -> None:
        self._field = field
        self._conditions = {c: conditions[c] for c in members}
        self._unknowns: dict[int, tuple[int, ...]] = {}
        for c, condition in self._conditions.items():
            active = dynamic_unknowns(condition, field.scalars) if sensitivities else set()
            self._unknowns[c] = tuple(sorted(active))
        self._switched = {c: switched_scalars(field, conditions[c]) for c in members}
        guesses = conditions[members[0]].algebraic_guess
        self._guess = np.array([guesses[z] for z in field.algebraic])
        self._segments = shared_segments(field, conditions, members)
        self._branches: list[_Branch] = []
        directions: list[tuple[int, ...]] = []
        for number, shared in enumerate(self._segments):
            parts = [conditions[c] for c in shared.conditions]
            common = set.intersection(*(set(self._unknowns[c]) for c in shared.conditions))
            unknowns = tuple(sorted(common))
            directions.append(unknowns)
            columns = None
            if shared.parent >= 0:
                self._branches[shared.parent].following.append(number)
                columns = _positions(directions[shared.parent], unknowns)
            pattern = sensitivity_pattern(field, parts, unknowns)
            propagation = Propagation(field, parts[0], engines, unknowns, None, pattern)
            rows = [(r, _positions(unknowns, self._unknowns[r.condition])) for r in shared.rows]
            self._branches.append(_Branch(propagation, len(unknowns), columns, rows, []))

    def all(self, vector: Array, choice: EngineChoice) -> list[Trajectory] | Failure:
        """Return the trajectories of the conditions in their order, or why one has none."""
        with np.errstate(all="ignore"):
            return self._run(vector, choice)

    def _run(self, vector: Array, choice: EngineChoice) -> list[Trajectory] | Failure:
        out = {c: self._empty(c) for c in self._conditions}
        root = self._branches[0].propagation
        started = self._start(root, vector, out)
        if isinstance(started, EngineFailure):
            return Failure(root.condition.name, started.time, started.reason, choice)
        begins = {0: started}
        for number, (shared, branch) in enumerate(zip(self._segments, self._branches, strict=True)):
            propagation = branch.propagation
            now, guess = begins.pop(number)
            for assignment in shared.events:
                now = propagation.after_event(assignment, shared.start, vector, now)
            solution = None
            if shared.segment is not None:
                found, choice = propagation.integrate(shared.segment, now, guess, choice)
                if isinstance(found, EngineFailure):
                    reason = propagation.explain(found, vector, now, shared.segment)
                    name = propagation.condition.name
                    return Failure(name, float(found.time), reason, choice)
                solution = found
                sizes = propagation.sizes(vector)
                for rows, columns in branch.rows:
                    self._store(out[rows.condition], rows, columns, solution, now, sizes)
            for child in branch.following:
                position = self._segments[child].position
                at, its_guess = now, guess
                if solution is not None and position >= 0:
                    at = now._replace(
                        states=solution.states[position],
                        sensitivities=solution.sensitivities[position],
                    )
                    its_guess = solution.algebraic[position]
                below = self._branches[child]
                begins[child] = _with_directions(at, below.columns, below.directions), its_guess
        return [replace(trajectory, choice=choice) for trajectory in out.values()]

    def _empty(self, number: int) -> Trajectory:
        """Return the trajectory of a condition, to be filled."""
        condition, unknowns = self._conditions[number], self._unknowns[number]
        count, m = len(condition.times), len(unknowns)
        n, a = len(self._field.states), len(self._field.algebraic)
        return Trajectory(
            condition.times,
            np.empty((count, n)),
            np.empty((count, a)),
            unknowns,
            np.zeros((count, n, m)),
            np.zeros((count, a, m)),
            {name: (np.empty(count), np.zeros((count, m))) for name in self._switched[number]},
        )

    def _start(
        self, root: Propagation, vector: Array, out: Mapping[int, Trajectory]
    ) -> tuple[Values, Array] | EngineFailure:
        """Return the values at t0, and store them where they are wanted."""
        sizes = root.sizes(vector)
        now = root.start(vector, sizes)
        if isinstance(now, EngineFailure):
            return now
        guess, by_unknown = self._guess, np.zeros((len(self._guess), len(sizes)))
        if len(guess):
            solved = root.consistent(vector, now, guess)
            if isinstance(solved, EngineFailure):
                return solved
            guess, by_unknown = solved
        first = SegmentSolution(
            now.states[None], now.sensitivities[None], guess[None], by_unknown[None], 0
        )
        unknowns = root.unknowns
        for c, trajectory in out.items():
            if len(trajectory.times) and trajectory.times[0] == root.condition.t0:
                rows = SharedRows(c, slice(0, 1), slice(0, 1))
                columns = _positions(unknowns, trajectory.unknowns)
                self._store(trajectory, rows, columns, first, now, sizes)
        return now, guess

    def _store(
        self,
        own: Trajectory,
        shared: SharedRows,
        columns: IntArray | None,
        solution: SegmentSolution,
        now: Values,
        sizes: Array,
    ) -> None:
        """Store the rows of one condition that lie in a segment."""
        rows, at = shared.rows, shared.positions
        every = slice(None) if columns is None else columns
        own.states[rows] = solution.states[at]
        own.sensitivities[rows][..., every] = solution.sensitivities[at] / sizes
        if len(self._guess):
            own.algebraic[rows] = solution.algebraic[at]
            own.algebraic_sensitivities[rows][..., every] = (
                solution.algebraic_sensitivities[at] / sizes
            )
        for name, j in self._switched[shared.condition].items():
            values, by_unknown = own.switched[name]
            values[rows] = now.scalars[j]
            by_unknown[rows][..., every] = now.scalar_sensitivities[j] / sizes


def _positions(some: Sequence[int], every: Sequence[int]) -> IntArray | None:
    """Return where some numbers stand among others; None if they are the same."""
    if tuple(some) == tuple(every):
        return None
    return np.searchsorted(np.array(every, dtype=np.intp), np.array(some, dtype=np.intp))


def _with_directions(at: Values, columns: IntArray | None, count: int) -> Values:
    """Return values with further directions, along which nothing has changed so far."""
    if columns is None:
        return at
    sensitivities = np.zeros((len(at.states), count))
    sensitivities[:, columns] = at.sensitivities
    scalar_sensitivities = np.zeros((len(at.scalars), count))
    scalar_sensitivities[:, columns] = at.scalar_sensitivities
    return Values(at.states, at.scalars, sensitivities, scalar_sensitivities)
