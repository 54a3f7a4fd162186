"""The forward map of one condition on shooting intervals, with separate initial values (4).

Events, breakpoints of inputs and algebraic equations within an interval are treated as in
:class:`ConditionMap`, which integrates an interval as a condition that begins there. Intervals
without them are integrated together, as one batch of initial value problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.binding import Binding, dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import BatchFailure, BatchIntegrator, InitialValueProblems
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.segments import Segment, segment_between
from odefit.simulation.nodes import Nodes, node_names
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

MAX_BATCH_STEPS = 2_000
"""Limit of steps per interval in a batch, after which intervals are integrated one by one."""


@dataclass(frozen=True, eq=False)
class IntervalSolution:
    """The solution of a condition on all its shooting intervals.

    There are K intervals, and a node has N values.
    """

    # The discontinuous trajectory at the condition's times. Its sensitivities are with respect to
    # the unknowns of the problem, numbers 0 to n - 1, and to the values of the node at the
    # beginning of the interval, numbers n to n + N - 1.
    trajectory: Trajectory
    # The first node and its derivatives with respect to the unknowns, shapes (N,) and (N, n).
    first_node: Array
    first_node_by_unknown: Array
    ends: Array  # Values at the end of each interval but the last, shape (K - 1, N)
    # Their derivatives by the node of their interval and by the unknowns, shapes (K - 1, N, N) and
    # (K - 1, N, n): G and P of (12).
    by_node: Array
    by_unknown: Array


RemoteIntegration = Callable[
    [Sequence[int], Array, Array, EngineChoice], Iterable[Trajectory | Failure]
]
"""Integrates the intervals with given numbers, for a vector and all nodes, in other processes."""


class _Rows:
    """Values at the rows of a trajectory and at the ends of intervals, filled in by interval.

    A node has N values, with sensitivities to n + N unknowns.
    """

    def __init__(self, rows: int, intervals: int, size: int, algebraic: int, width: int) -> None:
        self.states, self.sensitivities = np.empty((rows, size)), np.zeros((rows, size, width))
        self.algebraic = np.empty((rows, algebraic))
        self.algebraic_sensitivities = np.zeros((rows, algebraic, width))
        self.ends = np.empty((intervals - 1, size))
        self.end_sensitivities = np.zeros((intervals - 1, size, width))


@dataclass(frozen=True, eq=False)
class _BatchRows:
    """The places of the values of a batch of intervals."""

    intervals: IntArray  # Intervals that end at a node
    is_end: BoolArray  # The batch's values at the ends of these
    at_nodes: IntArray  # Rows of measurements at a node
    nodes: IntArray  # The numbers of these nodes
    at: IntArray  # Rows of all other measurements: the other values, in their order


class IntervalMap:
    """The forward map of one condition on shooting intervals.

    A node holds the differential states, and the scalars that events assign. Intervals begin at the
    nodes, whose times increase, the first at t0, the others before the last data time. An event at
    a node happens after it; a measurement at a node belongs to the node. `sizes` are typical sizes
    of a node's values, for error control. `remote` integrates intervals outside a batch in other
    processes.
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: Engines,
        node_times: Array,
        sizes: Array,
        unknowns: int,
        names: tuple[str, ...],
    ) -> None:
        self.field = field
        self.condition = condition
        self.node_times = node_times
        self.remote: RemoteIntegration | None = None
        self._engines = engines
        self._n = unknowns
        self.names = names
        self.switched = names[len(field.states) :]
        bounds = [condition.initial[s] for s in field.states]
        bounds += [condition.scalars[c] for c in self.switched]
        self._first = Binding(bounds, condition.scalars)
        self._scalars = Binding([condition.scalars[s] for s in field.scalars], condition.scalars)
        self._sizes = sizes
        self.interval = np.searchsorted(node_times, condition.times, side="right") - 1
        self._row_starts = np.searchsorted(self.interval, np.arange(len(node_times) + 1))
        self._active = tuple(sorted(dynamic_unknowns(condition, field.scalars)))
        # Every interval but the last ends at a node, whether it is measured there or not.
        measured = [condition.times[self.interval == i] for i in range(len(node_times))]
        self._times = [
            *(np.append(times, end) for times, end in zip(measured, node_times[1:], strict=False)),
            measured[-1],
        ]

    def __call__(
        self, vector: Array, nodes: Array, choice: EngineChoice = UNDECIDED
    ) -> IntervalSolution | Failure:
        """Integrate all intervals.

        `nodes`: all nodes but the first, shape (K - 1, N).
        """
        count, size, n = len(self.node_times), len(self.names), self._n
        first = self._first(vector)
        first_by_unknown = np.array(self._first.derivative(vector, np.arange(n)))
        nodes = np.concatenate([first[None], nodes])
        field, times = self.field, self.condition.times
        out = _Rows(len(times), count, size, len(field.algebraic), n + size)
        batch: list[int] = []
        if not field.algebraic and not self.switched:
            integrator = self._engines.batch_integrator(field, self._pattern, choice)
            if integrator is not None and self._without_events:
                batch = self._without_events
                failure = self._integrate_batch(integrator, vector, nodes, out)
                if failure is not None:
                    if not failure.failure.out_of_steps:
                        time, reason = failure.failure.time, failure.failure.reason
                        return Failure(self.condition.name, time, reason, choice)
                    batch = []  # stiff: one by one, with an engine chosen for each
        together = set(batch)
        alone = [i for i in range(count) if i not in together and len(self._times[i])]
        for i, at in zip(alone, self._one_by_one(alone, vector, nodes, choice), strict=False):
            if isinstance(at, Failure):
                return at
            choice = at.choice
            columns = list(at.unknowns)
            here = slice(self._row_starts[i], self._row_starts[i + 1])
            length = here.stop - here.start
            values, derivatives = self._node_values(at, nodes[i])
            out.states[here] = values[:length]
            out.sensitivities[here, :, columns] = derivatives[:length]
            out.algebraic[here] = at.algebraic[:length]
            out.algebraic_sensitivities[here, :, columns] = at.algebraic_sensitivities[:length]
            if i < count - 1:
                out.ends[i] = values[-1]
                out.end_sensitivities[i][:, columns] = derivatives[-1]
        states = len(field.states)
        trajectory = Trajectory(
            times=times,
            states=out.states[:, :states],
            algebraic=out.algebraic,
            unknowns=tuple(range(n + size)),
            sensitivities=out.sensitivities[:, :states],
            algebraic_sensitivities=out.algebraic_sensitivities,
            switched={
                name: (out.states[:, k], out.sensitivities[:, k])
                for k, name in enumerate(self.switched, states)
            },
            choice=choice,
        )
        by_node, by_unknown = out.end_sensitivities[:, :, n:], out.end_sensitivities[:, :, :n]
        return IntervalSolution(
            trajectory=trajectory,
            first_node=first,
            first_node_by_unknown=first_by_unknown,
            ends=out.ends,
            by_node=by_node,
            by_unknown=by_unknown,
        )

    @cached_property
    def _without_events(self) -> list[int]:
        """Numbers of the intervals with outputs but without events or breakpoints."""
        numbers = []
        for i, times in enumerate(self._times):
            start = float(self.node_times[i])
            if not len(times) or (len(times) == 1 and times[0] == start):
                continue
            last = float(times[-1]) if i == len(self.node_times) - 1 else -np.inf
            happens = any(start <= t < times[-1] for t, _ in self.condition.events)
            happens = happens or self.condition.sees_events(last)
            if not happens and not len(self._segments[i].breakpoints):
                numbers.append(i)
        return numbers

    @cached_property
    def _segments(self) -> dict[int, Segment]:
        """The segment through the times of each interval, by its number."""
        segments = {}
        for i, times in enumerate(self._times):
            start = float(self.node_times[i])
            after = times[times > start]
            if len(after):
                segments[i] = segment_between(self.condition, self.field.inputs, start, after)
        return segments

    @cached_property
    def _pattern(self) -> SensitivityPattern:
        columns = {unknown: k for k, unknown in enumerate(self._active)}
        entries = {(j, columns[k]) for j, k in self._scalars.entries() if k in columns}
        return SensitivityPattern(len(self._active) + len(self.names), frozenset(entries))

    def _integrate_batch(
        self, integrator: BatchIntegrator, vector: Array, nodes: Array, out: _Rows
    ) -> BatchFailure | None:
        """Integrate the intervals without events into the rows; return any failure."""
        batch = self._without_events
        size, active = len(self.names), np.array(self._active, dtype=np.intp)
        scales = np.abs(vector[active])
        scales[scales == 0.0] = 1.0
        scales = np.concatenate([scales, self._sizes])
        sensitivities = np.zeros((size, len(scales)))
        sensitivities[:, len(active) :] = np.diag(self._sizes)
        scalar_sensitivities = np.zeros((len(self.field.scalars), len(scales)))
        scalar_sensitivities[:, : len(active)] = (
            self._scalars.derivative(vector, active) * scales[: len(active)]
        )
        segments = [self._segments[i] for i in batch]
        problems = InitialValueProblems(
            starts=self.node_times[batch],
            times=[segment.times for segment in segments],
            polynomials=np.array([segment.polynomials[0] for segment in segments]),
            states=nodes[batch],
            scalars=self._scalars(vector),
            sensitivities=sensitivities,
            scalar_sensitivities=scalar_sensitivities,
        )
        solved = integrator.integrate(problems, MAX_BATCH_STEPS)
        if isinstance(solved, BatchFailure):
            return solved
        derivatives = solved.sensitivities / scales
        columns = np.concatenate([active, self._n + np.arange(size)])
        rows = self._batch_rows
        every = np.arange(size)[None, :, None]
        out.ends[rows.intervals] = solved.states[rows.is_end]
        at = rows.intervals[:, None, None]
        out.end_sensitivities[at, every, columns] = derivatives[rows.is_end]
        out.states[rows.at_nodes] = nodes[rows.nodes]
        out.sensitivities[rows.at_nodes, :, self._n :] = np.eye(size)
        out.states[rows.at] = solved.states[~rows.is_end]
        out.sensitivities[rows.at[:, None, None], every, columns] = derivatives[~rows.is_end]
        return None

    @cached_property
    def _batch_rows(self) -> _BatchRows:
        """The places of values of the batch: rows of measurements, or the ends of intervals."""
        batch = np.array(self._without_events)
        lengths = [len(self._segments[i].times) for i in self._without_events]
        inner = batch < len(self.node_times) - 1
        is_end = np.zeros(sum(lengths), dtype=bool)
        is_end[(np.cumsum(lengths) - 1)[inner]] = True
        rows = np.flatnonzero(np.isin(self.interval, batch))
        measured = self.condition.times[rows] == self.node_times[self.interval[rows]]
        at_nodes = rows[measured]
        return _BatchRows(
            intervals=batch[inner],
            is_end=is_end,
            at_nodes=at_nodes,
            nodes=self.interval[at_nodes],
            at=rows[~measured],
        )

    def _one_by_one(
        self, intervals: Sequence[int], vector: Array, nodes: Array, choice: EngineChoice
    ) -> Iterable[Trajectory | Failure]:
        if self.remote is not None and len(intervals) > 1:
            return self.remote(intervals, vector, nodes, choice)
        return self.integrate(intervals, vector, nodes[list(intervals)], choice)

    def integrate(
        self, intervals: Iterable[int], vector: Array, nodes: Iterable[Array], choice: EngineChoice
    ) -> Iterable[Trajectory | Failure]:
        """Integrate intervals in turn, each from its node; sensitivities include the node's."""
        for i, node in zip(intervals, nodes, strict=True):
            trajectory = self._maps[i](np.concatenate([vector, node]), self._times[i], choice)
            choice = trajectory.choice
            yield trajectory

    @cached_property
    def _maps(self) -> list[ConditionMap]:
        """A condition for each interval, with its initial values as further unknowns."""
        maps = []
        places = {name: self._n + k for k, name in enumerate(self.names)}
        initial: dict[str, int | float | Expression] = {s: places[s] for s in self.field.states}
        scalars = {**self.condition.scalars, **{c: places[c] for c in self.switched}}
        minimal_sizes = np.concatenate([np.zeros(self._n), self._sizes])
        for i, stop in enumerate([*self.node_times[1:], np.inf]):
            start = float(self.node_times[i])
            condition = replace(
                self.condition,
                t0=start,
                times=self._times[i],
                scalars=scalars,
                initial=initial,
                events=tuple(e for e in self.condition.events if start <= e[0] < stop),
            )
            maps.append(
                ConditionMap(self.field, condition, self._engines, minimal_sizes=minimal_sizes)
            )
        return maps

    def _node_values(self, at: Trajectory, node: Array) -> tuple[Array, Array]:
        """Return states and scalars that events assign, with their sensitivities."""
        if not self.switched:
            return at.states, at.sensitivities
        rows, m, n = len(at.times), len(at.unknowns), len(self.field.states)
        values = np.empty((rows, len(self.names)))
        derivatives = np.zeros((rows, len(self.names), m))
        values[:, :n], derivatives[:, :n] = at.states, at.sensitivities
        for k, name in enumerate(self.switched, n):
            if name in at.switched:
                values[:, k], derivatives[:, k] = at.switched[name]
            else:  # not in this interval
                values[:, k] = node[k]
                derivatives[:, k, at.unknowns.index(self._n + k)] = 1.0
        return values, derivatives


class PiecewiseMap:
    """The trajectory of one condition through given nodes, in place of :class:`ConditionMap`.

    Its sensitivities hold for fixed nodes.
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: Engines,
        nodes: tuple[Array, Array],
        unknowns: int,
        names: tuple[str, ...],
    ) -> None:
        self.condition = condition
        self._parts = (field, engines, unknowns, names)
        self._nodes = nodes

    def __call__(
        self, vector: Array, times: Array | None = None, choice: EngineChoice = UNDECIDED
    ) -> Trajectory | Failure:
        """See :meth:`ConditionMap.__call__`."""
        field, engines, unknowns, names = self._parts
        node_times, values = self._nodes
        condition = self.condition
        if times is not None:
            condition = replace(condition, times=times)
        sizes = np.abs(values).max(axis=0, initial=0.0)
        sizes[sizes == 0] = 1.0
        begun = len(condition.times) and node_times < condition.times[-1]
        node_times = node_times[: max(int(np.sum(begun)), 1)]
        intervals = IntervalMap(field, condition, engines, node_times, sizes, unknowns, names)
        with np.errstate(all="ignore"):
            solution = intervals(vector, values[1 : len(node_times)], choice)
        if isinstance(solution, Failure):
            return solution
        whole = solution.trajectory
        return replace(
            whole,
            unknowns=tuple(range(unknowns)),
            sensitivities=whole.sensitivities[:, :, :unknowns],
            algebraic_sensitivities=whole.algebraic_sensitivities[:, :, :unknowns],
            switched={k: (v, s[:, :unknowns]) for k, (v, s) in whole.switched.items()},
        )


class NodesMap:
    """The trajectories of all conditions through given nodes, like a :class:`ConditionsMap`."""

    units = 1

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        engines: Engines,
        nodes: Nodes,
        unknowns: int,
    ) -> None:
        names = node_names(field, conditions)
        self._single = [
            PiecewiseMap(field, condition, engines, (times, values), unknowns, names)
            for condition, times, values in zip(conditions, nodes.times, nodes.values, strict=True)
        ]

    def single(self, number: int) -> PiecewiseMap:
        """Return the forward map of one condition."""
        return self._single[number]

    def __call__(self, vector: Array, choice: EngineChoice) -> list[Trajectory] | Failure:
        """Return the trajectories of all conditions at their data times."""
        trajectories: list[Trajectory] = []
        for through_nodes in self._single:
            trajectory = through_nodes(vector, None, choice)
            if isinstance(trajectory, Failure):
                return trajectory
            choice = trajectory.choice
            trajectories.append(trajectory)
        return trajectories
