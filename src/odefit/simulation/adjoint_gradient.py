"""The gradient of the cost by the adjoint of the integration.

Its cost does not depend on the number of unknowns. It is the exact derivative of the computed cost,
for the steps that were taken. If a condition ends at a steady state or begins with a periodic one,
or events have to be located, there is no adjoint, and sensitivities are integrated instead. A
steady state with which a condition begins has its sensitivities without an integration of them.

The forward pass integrates states without sensitivities, and records its steps for the backward
pass. The backward pass turns the derivatives of a scalar with respect to the observed states into
those with respect to the unknowns. Each operation is the transpose of that in
:class:`odefit.simulation.trajectories.shared_map.SharedMap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.binding import Binding
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import Adjoint, EngineFailure, Values
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.evaluation import CostGradient, Evaluation
from odefit.simulation.events.event_assignments import EventAssignments
from odefit.simulation.modes.surfaces import Surfaces
from odefit.simulation.propagation.propagation import Propagation
from odefit.simulation.residuals.series_rows import ResidualSource
from odefit.simulation.trajectories.shared_segments import (
    SharedRows,
    groups_with_equal_starts,
    shared_segments,
)
from odefit.simulation.trajectories.trajectory import Trajectory, switched_scalars
from odefit.simulation.watched import Watched, Weights

ADJOINT_DIRECTIONS = 10
"""Least number of unknowns of the equations for which the adjoint computes the gradient.

It then takes at most half the time of the sensitivities; with fewer unknowns, these are as good.
"""

_NOTHING = np.zeros(0)
_NO_UNKNOWNS = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Passage:
    """An integration from which the backward pass begins."""

    vector: Array
    # Trajectories by condition. They have sensitivities with respect to the watched values, at each
    # time with respect to the values at that time.
    trajectories: Mapping[int, Trajectory]
    # For each segment the values before each of the events at its start.
    before: Sequence[Sequence[Values]]
    # The adjoint of each segment; None if nothing was integrated.
    adjoints: Sequence[Adjoint | None]
    # Sensitivities of the initial states, shape (states, unknowns), if they are a steady state.
    at_rest: Array | None


class AdjointTree:
    """The forward map of conditions that begin with the same values, and its adjoint."""

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        engines: Engines,
        members: Sequence[int],
        watched: Watched,
    ) -> None:
        self._field = field
        self._engines = engines
        self._conditions = {c: conditions[c] for c in members}
        self._watched = watched
        self._pattern = SensitivityPattern(0, frozenset())
        self._segments = shared_segments(field, conditions, members)
        self._children: list[list[int]] = [[] for _ in self._segments]
        for number, shared in enumerate(self._segments):
            if shared.parent >= 0:
                self._children[shared.parent].append(number)
        first = conditions[members[0]]
        self._rests = first.steady_start
        directions = tuple(range(watched.unknowns)) if self._rests else ()
        self._root = Propagation(field, first, engines, directions)
        self._initial = Binding([first.initial[s] for s in field.states], first.scalars)
        self._scalars = Binding([first.scalars[s] for s in field.scalars], first.scalars)
        self._every = np.arange(watched.unknowns)
        self._forwards, self._backwards = (
            [
                [EventAssignments(field, conditions[s.conditions[0]], a, u) for a in s.events]
                for s in self._segments
            ]
            for u in (_NO_UNKNOWNS, self._every)
        )
        self._switched = {c: switched_scalars(field, conditions[c]) for c in members}
        self._directions = tuple(range(watched.unknowns, watched.unknowns + watched.count))
        self._by_states = np.zeros((len(field.states), watched.count))
        self._by_states[watched.states, watched.directions] = 1.0

    def integrate(self, vector: Array) -> Passage | EngineFailure:
        """Integrate all conditions at their data times, or return why one has no trajectory."""
        begun = self._root.begin(vector, sizes := self._root.sizes(vector))
        if isinstance(begun, EngineFailure):
            return begun
        first = begun.values
        at_rest = first.sensitivities / sizes if self._rests else None
        first = first._replace(
            sensitivities=first.sensitivities[:, :0],
            scalar_sensitivities=first.scalar_sensitivities[:, :0],
        )
        trajectories = {c: self._empty(c) for c in self._conditions}
        for c, row in self._rows_at_start():
            self._store(trajectories[c], row, first.states[None], first)
        begins = {0: first}
        before: list[list[Values]] = []
        adjoints: list[Adjoint | None] = []
        for number, shared in enumerate(self._segments):
            now = begins[number]
            before.append([])
            adjoints.append(None)
            for event in self._forwards[number]:
                before[-1].append(now)
                now = event(shared.start, vector, _NOTHING, now, None)
            for rows in shared.rows_after:
                self._store(trajectories[rows.condition], rows, now.states[None], now)
            states = now.states[None]
            if shared.segment is not None:
                solved = self._engines.recorded(self._field, self._pattern, shared.segment, now)
                if isinstance(solved, EngineFailure):
                    return solved
                states, adjoints[-1] = solved[0].states, solved[1]
                for rows in shared.rows:
                    self._store(trajectories[rows.condition], rows, states, now)
            for child in self._children[number]:
                position = self._segments[child].position
                begins[child] = now if position < 0 else now._replace(states=states[position])
        return Passage(vector, trajectories, before, adjoints, at_rest)

    def pull_back(self, passage: Passage, weights: Mapping[int, Array]) -> Array | None:
        """Return the derivatives of a scalar with respect to the unknowns, shape (n,).

        `weights` are derivatives of the scalar with respect to the watched values, by condition,
        shape (times, states and scalars). Returns None if the adjoint of a segment fails.
        """
        n, p = len(self._field.states), len(self._field.scalars)
        s = len(self._watched.states)
        at_starts = np.zeros((len(self._segments), n))
        by_scalars = np.zeros((len(self._segments), p))
        by_values = [
            np.zeros((0 if shared.segment is None else len(shared.segment.times), n))
            for shared in self._segments
        ]
        gradient = np.zeros(len(passage.vector))
        for number in reversed(range(len(self._segments))):
            shared = self._segments[number]
            for rows, out in [
                *((r, by_values[number]) for r in shared.rows),
                *((r, at_starts[number : number + 1]) for r in shared.rows_after),
            ]:
                row_weights = weights[rows.condition][rows.rows]
                # All positions differ, as all states do.
                out[_grid(rows.positions, self._watched.states)] += row_weights[:, :s]
                self._add_scalars(by_scalars[number], rows.condition, row_weights[:, s:])
            by_states = at_starts[number]
            adjoint = passage.adjoints[number]
            if adjoint is not None:
                pulled = adjoint.pull_back(by_values[number])
                if pulled is None:
                    return None
                by_states += pulled[0]
                by_scalars[number] += pulled[1]
            events = zip(self._backwards[number], passage.before[number], strict=True)
            for event, before in reversed(list(events)):
                gradient += event.pull_back(
                    shared.start, passage.vector, before, by_states, by_scalars[number]
                )
            if shared.parent < 0:
                break
            by_scalars[shared.parent] += by_scalars[number]
            if shared.position < 0:
                at_starts[shared.parent] += by_states
            else:
                by_values[shared.parent][shared.position] += by_states
        for c, rows in self._rows_at_start():
            row_weights = weights[c][rows.rows]
            at_starts[0, self._watched.states] += row_weights[0, :s]
            self._add_scalars(by_scalars[0], c, row_weights[:, s:])
        at_start = passage.at_rest
        if at_start is None:
            at_start = self._initial.derivative(passage.vector, self._every)
        gradient += at_starts[0] @ at_start
        gradient += by_scalars[0] @ self._scalars.derivative(passage.vector, self._every)
        return gradient

    def _add_scalars(self, by_scalars: Array, condition: int, by_own: Array) -> None:
        for k, name in enumerate(self._watched.scalars):
            if name in self._switched[condition]:
                by_scalars[self._switched[condition][name]] += by_own[:, k].sum()

    def _rows_at_start(self) -> list[tuple[int, SharedRows]]:
        """Return the rows with the values at t0, before any event, by condition."""
        return [
            (c, SharedRows(c, slice(0, 1), slice(0, 1)))
            for c, condition in self._conditions.items()
            if len(condition.times)
            and condition.times[0] == condition.t0
            and not condition.sees_events(condition.t0)
        ]

    def _empty(self, number: int) -> Trajectory:
        """Return the trajectory of a condition, to be filled."""
        times = self._conditions[number].times
        count, n, q = len(times), len(self._field.states), self._watched.count
        switched = {}
        for k, name in enumerate(self._watched.scalars):
            if name in self._switched[number]:
                by_watched = np.zeros((count, q))
                by_watched[:, self._watched.shared + k] = 1.0
                switched[name] = np.empty(count), by_watched
        return Trajectory(
            times=times,
            states=np.empty((count, n)),
            algebraic=np.zeros((count, 0)),
            unknowns=self._directions,
            sensitivities=np.broadcast_to(self._by_states, (count, n, q)),
            algebraic_sensitivities=np.zeros((count, 0, q)),
            switched=switched,
        )

    def _store(
        self, trajectory: Trajectory, shared: SharedRows, states: Array, now: Values
    ) -> None:
        """Store the rows of one condition that lie in a segment."""
        trajectory.states[shared.rows] = states[shared.positions]
        for name, (values, _) in trajectory.switched.items():
            values[shared.rows] = now.scalars[self._switched[shared.condition][name]]


def _grid(rows: IntArray | slice, columns: IntArray) -> tuple[IntArray | slice, IntArray]:
    return (rows if isinstance(rows, slice) else rows[:, None]), columns


Assemble = Callable[
    [Array, Sequence[Trajectory]], tuple[Evaluation, list[ResidualSource]] | Failure
]
"""Residuals and their Jacobian from trajectories, see
:meth:`odefit.simulation.forward.ForwardMap.assemble`."""


class AdjointGradient:
    """The gradient of a problem's cost by the adjoint.

    The backward pass needs residuals of single times, which are `uncorrelated`. `exists` is true in
    that case, if all conditions consist of segments between events at known times. `may_pay` is
    true if, in addition, there are enough unknowns.
    """

    def __init__(
        self,
        problem: Problem,
        field: VectorField,
        engines: Engines,
        assemble: Assemble,
        uncorrelated: bool = True,
    ) -> None:
        conditions = problem.conditions
        self._field, self._engines = field, engines
        self._size = directions_and_outputs(problem)
        self._assemble = assemble
        self._unknowns = len(problem.unknowns)
        self._lengths = [len(c.times) for c in conditions]
        smooth = uncorrelated and not field.algebraic and Surfaces.of(field) is None
        self.exists = smooth and all(_plain(c) for c in conditions)
        self.may_pay = self.exists and self._size[0] >= ADJOINT_DIRECTIONS
        if not self.exists:
            return
        self._watched = Watched.of(problem, field)
        groups = groups_with_equal_starts(field, conditions)
        self._weights: Weights | None = None
        self._trees = [AdjointTree(field, conditions, engines, g, self._watched) for g in groups]

    def pays(self, choice: EngineChoice) -> bool:
        """Return whether it is predicted to take less work than sensitivities."""
        return self._engines.has_adjoint(self._field, *self._size, choice)

    def __call__(self, vector: Array, choice: EngineChoice) -> CostGradient | None:
        """Return cost and gradient at `vector`, shape (n,); None if the adjoint fails."""
        with np.errstate(all="ignore"):
            passages = []
            trajectories: dict[int, Trajectory] = {}
            for tree in self._trees:
                passage = tree.integrate(vector)
                if isinstance(passage, EngineFailure):
                    return None
                passages.append(passage)
                trajectories.update(passage.trajectories)
            longer = np.concatenate([vector, np.zeros(self._watched.count)])
            assembled = self._assemble(longer, [trajectories[c] for c in range(len(trajectories))])
            if isinstance(assembled, Failure):
                return None
            evaluation, sources = assembled
            gradient = evaluation.residuals @ evaluation.jacobian[:, : self._unknowns]
            if self._weights is None:
                self._weights = Weights(self._watched, self._lengths, sources)
            weights = self._weights(evaluation.residuals, evaluation.jacobian)
            for tree, passage in zip(self._trees, passages, strict=True):
                part = tree.pull_back(passage, weights)
                if part is None:
                    return None
                gradient += part
        if not np.isfinite(gradient).all():
            return None
        return CostGradient(
            cost=evaluation.cost,
            gradient=gradient,
            objective=evaluation.objective,
            log_likelihood=evaluation.log_likelihood,
            choice=choice,
            adjoint=True,
        )


def _plain(condition: Condition) -> bool:
    """Return whether a condition consists of segments between events at known times."""
    endless = len(condition.times) > 0 and bool(np.isinf(condition.times[-1]))
    return not (condition.located or condition.repeated is not None or endless)


def directions_and_outputs(problem: Problem) -> tuple[int, int]:
    """Return the number of unknowns of the equations, and the total number of times."""
    directions = sum(u.kind != "noise" for u in problem.unknowns)
    return directions, sum(len(c.times) for c in problem.conditions)
