"""The forward map of one condition cut into intervals, each from a start of its own (4).

Everything that happens within an interval (events, corners of inputs, algebraic equations) is as
in :class:`ConditionMap`, which integrates an interval as a condition that begins there. Where
nothing happens, all intervals go through a compiled integrator together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from odefit.problem.arrays import Array
from odefit.problem.binding import Binding, dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.expressions import Expression
from odefit.problem.vector_field import Structure, VectorField
from odefit.simulation.engine import Broken, Stretches
from odefit.simulation.engines import BUDGET, EngineSwitch
from odefit.simulation.failure import Failure
from odefit.simulation.schedule import leg_of
from odefit.simulation.trajectory import ConditionMap, Trajectory


@dataclass(frozen=True, eq=False)
class Sweep:
    """All intervals of a condition integrated. N is the number of a node's values.

    Attributes
    ----------
    trajectory
        At the condition's times; its sensitivities are by the unknowns of the problem, numbers
        0 to n - 1, and by the values of the node that the time's interval begins with, numbers
        n to n + N - 1.
    first, first_slope
        The first node and its derivative by the unknowns, shapes (N,) and (N, n).
    ends
        Values at the end of each interval but the last, shape (K - 1, N).
    by_node, by_unknown
        Their derivatives, shapes (K - 1, N, N) and (K - 1, N, n): G and P of (12).
    """

    trajectory: Trajectory
    first: Array
    first_slope: Array
    ends: Array
    by_node: Array
    by_unknown: Array


Elsewhere = Callable[[Sequence[int], Array, Array], Iterable[Trajectory | Failure]]
"""Integrates the intervals of these numbers for a vector and all nodes, in other processes."""


class IntervalMap:
    """Trajectories of one condition on intervals.

    A node holds the differential states, and the constants that events assign.

    Parameters
    ----------
    field, condition, engines
        As of :class:`ConditionMap`.
    cuts
        Where intervals begin, shape (K,), increasing, the first at t0, the others before the
        last data time. An event at a cut happens after it; a measurement at a cut is one of
        the node.
    sizes
        Typical sizes of a node's values, shape (N,), for error control.
    unknowns
        How many the problem has.
    names
        Of a node's values, see :func:`odefit.simulation.nodes.node_names`.

    Attributes
    ----------
    elsewhere
        What integrates intervals that do not go through the lanes of one integrator; None for
        this process.
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: EngineSwitch,
        cuts: Array,
        sizes: Array,
        unknowns: int,
        names: tuple[str, ...],
    ) -> None:
        self.field = field
        self.condition = condition
        self.cuts = cuts
        self.elsewhere: Elsewhere | None = None
        self._engines = engines
        self._n = unknowns
        self.names = names
        self.switched = names[len(field.states) :]
        bounds = [condition.initial[s] for s in field.states]
        bounds += [condition.scalars[c] for c in self.switched]
        self._first = Binding(bounds, condition.scalars)
        self._scalars = Binding([condition.scalars[s] for s in field.scalars], condition.scalars)
        self._sizes = sizes
        self.interval = np.searchsorted(cuts, condition.times, side="right") - 1
        active = dynamic_unknowns(condition, field.scalars)
        self._active = tuple(sorted(active))
        # Every interval but the last ends at a cut, whether it is measured there or not.
        stops = [*cuts[1:], None]
        self._times = [
            _times(condition.times[self.interval == i], stop) for i, stop in enumerate(stops)
        ]

    def __call__(self, vector: Array, nodes: Array) -> Sweep | Failure:
        """Integrate.

        Parameters
        ----------
        vector
            Unknowns of the problem, shape (n,).
        nodes
            All but the first, shape (K - 1, N).
        """
        count, size, n = len(self.cuts), len(self.names), self._n
        width = n + size
        first = self._first(vector)
        slope = np.array(self._first.derivative(vector, np.arange(n)))
        nodes = np.concatenate([first[None], nodes])
        rows, a = len(self.condition.times), len(self.field.algebraic)
        states, sensitivities = np.empty((rows, size)), np.zeros((rows, size, width))
        algebraic, algebraic_sensitivities = np.empty((rows, a)), np.zeros((rows, a, width))
        ends, jacobian = np.empty((count - 1, size)), np.zeros((count - 1, size, width))
        starts_at = np.searchsorted(self.interval, np.arange(count + 1))
        together = self._together()
        if together:
            failure = self._bundled(
                together, vector, nodes, starts_at, states, sensitivities, ends, jacobian
            )
            if failure is not None and not failure[1]:
                return failure[0]
            if failure is not None:
                together = []  # stiff: one by one, the engine chosen for each
        apart = set(range(count)) - set(together)
        wanted = [i for i in sorted(apart) if len(self._times[i])]
        for i, at in zip(wanted, self._apart(wanted, vector, nodes), strict=False):
            if isinstance(at, Failure):
                return at
            columns = list(at.unknowns)
            here = slice(starts_at[i], starts_at[i + 1])
            kept = starts_at[i + 1] - starts_at[i]
            values, slopes = self._augmented(at, nodes[i])
            states[here] = values[:kept]
            sensitivities[here, :, columns] = slopes[:kept]
            algebraic[here] = at.algebraic[:kept]
            algebraic_sensitivities[here, :, columns] = at.algebraic_sensitivities[:kept]
            if i < count - 1:
                ends[i] = values[-1]
                jacobian[i][:, columns] = slopes[-1]
        trajectory = Trajectory(
            self.condition.times,
            states[:, : len(self.field.states)],
            algebraic,
            tuple(range(width)),
            sensitivities[:, : len(self.field.states)],
            algebraic_sensitivities,
            {
                name: (states[:, k], sensitivities[:, k])
                for k, name in enumerate(self.names)
                if name in self.switched
            },
        )
        return Sweep(trajectory, first, slope, ends, jacobian[:, :, n:], jacobian[:, :, :n])

    # Many at once -----------------------------------------------------------------------------

    def _together(self) -> list[int]:
        """Intervals that go through the lanes of one integrator."""
        field = self.field
        if field.algebraic or self.switched or self._engines.lanes(field, self._structure) is None:
            return []
        return self._eventless

    @cached_property
    def _eventless(self) -> list[int]:
        """Intervals in which nothing happens, and in which something is wanted."""
        found = []
        for i, times in enumerate(self._times):
            start = float(self.cuts[i])
            if not len(times) or (len(times) == 1 and times[0] == start):
                continue
            happens = any(start <= t < times[-1] for t, _ in self.condition.events)
            if not happens and not len(self._legs[i].knots):
                found.append(i)
        return found

    @cached_property
    def _legs(self) -> dict[int, _Leg]:
        found = {}
        for i, times in enumerate(self._times):
            after = times[times > self.cuts[i]]
            if len(after):
                leg = leg_of(self.condition, self.field.inputs, float(self.cuts[i]), after)
                found[i] = _Leg(leg.times, leg.knots, leg.polynomials[0])
        return found

    @cached_property
    def _structure(self) -> Structure:
        columns = {unknown: k for k, unknown in enumerate(self._active)}
        entries = {(j, columns[k]) for j, k in self._scalars.entries() if k in columns}
        return Structure(len(self._active) + len(self.names), frozenset(entries))

    def _bundled(
        self,
        together: Sequence[int],
        vector: Array,
        nodes: Array,
        starts_at: npt.NDArray[np.intp],
        states: Array,
        sensitivities: Array,
        ends: Array,
        jacobian: Array,
    ) -> tuple[Failure, bool] | None:
        """Integrate the intervals of `together` into the arrays.

        Returns a failure, and whether it was the effort alone that ran out.
        """
        lanes = self._engines.lanes(self.field, self._structure)
        assert lanes is not None
        size, active = len(self.names), np.array(self._active, dtype=np.intp)
        scales = np.abs(vector[active])
        scales[scales == 0.0] = 1.0
        scales = np.concatenate([scales, self._sizes])
        seeds = np.zeros((size, len(scales)))
        seeds[:, len(active) :] = np.diag(self._sizes)
        scalar_seeds = np.zeros((len(self.field.scalars), len(scales)))
        scalar_seeds[:, : len(active)] = (
            self._scalars.derivative(vector, active) * scales[: len(active)]
        )
        legs = [self._legs[i] for i in together]
        stretches = Stretches(
            self.cuts[list(together)],
            [leg.times for leg in legs],
            np.array([leg.polynomials for leg in legs]),
            nodes[list(together)],
            self._scalars(vector),
            seeds,
            scalar_seeds,
        )
        bundle = lanes.bundle(stretches, BUDGET)
        if isinstance(bundle, Broken):
            stop = bundle.stop
            return Failure(self.condition.name, stop.time, stop.reason), stop.out_of_steps
        slopes = bundle.sensitivities / scales
        columns = np.concatenate([active, self._n + np.arange(size)])
        # Where the values of the bundle go: rows of measurements, or the end of an interval.
        lengths = np.array([len(leg.times) for leg in legs])
        last = np.cumsum(lengths) - 1
        is_end = np.zeros(len(bundle.states), dtype=bool)
        inner = np.array([i < len(self.cuts) - 1 for i in together])
        is_end[last[inner]] = True
        index = np.array(together)[inner]
        ends[index] = bundle.states[last[inner]]
        jacobian[index[:, None, None], np.arange(size)[None, :, None], columns] = slopes[
            last[inner]
        ]
        identity = np.eye(size)
        rows = []
        for i in together:
            here = np.arange(starts_at[i], starts_at[i + 1])
            if len(here) and self.condition.times[here[0]] == self.cuts[i]:
                states[here[0]] = nodes[i]
                sensitivities[here[0], :, self._n :] = identity
                here = here[1:]
            rows.append(here)
        at = np.concatenate(rows)
        states[at] = bundle.states[~is_end]
        sensitivities[at[:, None, None], np.arange(size)[None, :, None], columns] = slopes[~is_end]
        return None

    # One at a time ----------------------------------------------------------------------------

    def _apart(
        self, intervals: Sequence[int], vector: Array, nodes: Array
    ) -> Iterable[Trajectory | Failure]:
        if self.elsewhere is not None and len(intervals) > 1:
            return self.elsewhere(intervals, vector, nodes)
        return (self.alone(i, vector, nodes[i]) for i in intervals)

    def alone(self, i: int, vector: Array, node: Array) -> Trajectory | Failure:
        """Interval number `i` from `node`, by the problem's unknowns and the node's values."""
        return self._maps[i](np.concatenate([vector, node]), self._times[i])

    @cached_property
    def _maps(self) -> list[ConditionMap]:
        """A condition for each interval, its initial values as further unknowns."""
        found = []
        own = {name: self._n + k for k, name in enumerate(self.names)}
        initial: dict[str, int | float | Expression] = {s: own[s] for s in self.field.states}
        scalars = {**self.condition.scalars, **{c: own[c] for c in self.switched}}
        least = np.concatenate([np.zeros(self._n), self._sizes])
        stops = [*self.cuts[1:], np.inf]
        for i, stop in enumerate(stops):
            start = float(self.cuts[i])
            events = tuple(e for e in self.condition.events if start <= e[0] < stop)
            condition = replace(
                self.condition,
                t0=start,
                times=self._times[i],
                scalars=scalars,
                initial=initial,
                events=events,
            )
            found.append(ConditionMap(self.field, condition, self._engines, least=least))
        return found

    def _augmented(self, at: Trajectory, node: Array) -> tuple[Array, Array]:
        """States and constants that events assign, with their sensitivities."""
        if not self.switched:
            return at.states, at.sensitivities
        rows, m = len(at.times), len(at.unknowns)
        values, slopes = np.empty((rows, len(self.names))), np.zeros((rows, len(self.names), m))
        n = len(self.field.states)
        values[:, :n], slopes[:, :n] = at.states, at.sensitivities
        for k, name in enumerate(self.switched, n):
            if name in at.switched:
                values[:, k], slopes[:, k] = at.switched[name]
            else:  # not in this interval
                values[:, k] = node[k]
                slopes[:, k, at.unknowns.index(self._n + k)] = 1.0
        return values, slopes


@dataclass(frozen=True, eq=False)
class _Leg:
    times: Array
    knots: Array
    polynomials: Array


class PiecewiseMap:
    """The trajectory of one condition through given nodes, in place of :class:`ConditionMap`.

    Its sensitivities are those with the nodes held.
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: EngineSwitch,
        nodes: tuple[Array, Array],
        unknowns: int,
        names: tuple[str, ...],
    ) -> None:
        self.condition = condition
        self._parts = (field, engines, unknowns, names)
        self._nodes = nodes

    def __call__(self, vector: Array, times: Array | None = None) -> Trajectory | Failure:
        """As :meth:`ConditionMap.__call__`."""
        field, engines, unknowns, names = self._parts
        cuts, values = self._nodes
        condition = self.condition
        if times is not None:
            condition = replace(condition, times=times)
        sizes = np.abs(values).max(axis=0, initial=0.0)
        sizes[sizes == 0] = 1.0
        begun = len(condition.times) and cuts < condition.times[-1]
        cuts = cuts[: max(int(np.sum(begun)), 1)]
        pieces = IntervalMap(field, condition, engines, cuts, sizes, unknowns, names)
        with np.errstate(all="ignore"):
            sweep = pieces(vector, values[1 : len(cuts)])
        if isinstance(sweep, Failure):
            return sweep
        whole = sweep.trajectory
        return replace(
            whole,
            unknowns=tuple(range(unknowns)),
            sensitivities=whole.sensitivities[:, :, :unknowns],
            algebraic_sensitivities=whole.algebraic_sensitivities[:, :, :unknowns],
            switched={k: (v, s[:, :unknowns]) for k, (v, s) in whole.switched.items()},
        )


def _times(wanted: Array, stop: float | None) -> Array:
    """Times of an interval: what is measured there, and its end."""
    return wanted if stop is None else np.append(wanted, stop)
