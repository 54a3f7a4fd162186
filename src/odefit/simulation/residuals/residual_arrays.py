"""Residuals of all conditions and their Jacobian, observable by observable in whole arrays.

The measurements of an observable in all conditions form one array. An expression is evaluated on it
once, with its derivatives with respect to the names in it. The chain rule to the unknowns is one
product with the sensitivities of the trajectories. Scales, offsets and noise parameters enter here:
they are not directions of the integration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.expressions.gradients import Gradient
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.failure import Failure
from odefit.simulation.residuals.correlation import squares_of
from odefit.simulation.residuals.noise import density_of, known_spreads
from odefit.simulation.residuals.observed_rows import ObservedRows, StackedTrajectories
from odefit.simulation.residuals.residual_groups import (
    Group,
    Numbers,
    Out,
    PlainStates,
    SeriesResiduals,
    SumsAtPoints,
    numbers,
)
from odefit.simulation.residuals.series_rows import SeriesLayout, SeriesRows
from odefit.simulation.trajectories.trajectory import Trajectory


class AssembledResiduals(NamedTuple):
    """Residuals of all measurements, see :class:`odefit.simulation.forward.Evaluation`.

    Without derivatives the Jacobian is zero. `log_sds` is the sum of the logarithms of the standard
    deviations that depend on unknowns (for densities other than the normal one, of their terms in
    the spread). They are part of the cost. `known_log_sds` is the sum for all others, and the
    normalisation of other densities. `information` has the shape (r, n), and information'
    information is the Fisher matrix; None if the Jacobian's squares are that matrix.
    """

    residuals: Array
    jacobian: Array
    squares: float
    log_sds: float
    known_log_sds: float
    information: Array | None


_Layout = dict[tuple[int, ...], list[PlainStates | Group]]
"""Conditions whose trajectories are stacked, and the groups of their measurements."""


class ResidualArrays:
    """The residuals of a problem as a function of the trajectories of all its conditions.

    Attributes
    ----------
    rows
        The rows of all series.
    count, sources, series_rows
        As in :class:`SeriesLayout`.
    """

    def __init__(self, problem: Problem, field: VectorField) -> None:
        self._problem = problem
        self._field = field
        self._layouts: dict[Any, _Layout] = {}
        self._estimated = {u.name: i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}
        self.rows = SeriesLayout(problem, self._estimated)
        self.series_rows, self.sources = self.rows.series_rows, self.rows.sources
        self.count = self.rows.count

    def __call__(
        self, vector: Array, trajectories: Sequence[Trajectory], derivatives: bool = True
    ) -> AssembledResiduals | None:
        """Return residuals and Jacobian; None if some of them are not finite.

        Parameters
        ----------
        vector
            Unknowns, shape (n,). It may be longer than the problem's: the Jacobian then has columns
            for the further sensitivities of the trajectories.
        trajectories
            Trajectories of all conditions, at their data times.
        derivatives
            Whether the Jacobian is needed.
        """
        residuals = np.empty(self.count)
        jacobian = np.zeros((self.count, len(vector)))
        information = np.zeros_like(jacobian) if derivatives and not self.rows.gaussian else None
        out = Out(residuals, jacobian, derivatives, information)
        squares = log_sds = known_log_sds = 0.0
        with np.errstate(all="ignore"):
            for group, stack in self._groups(trajectories):
                sums = group.fill(vector, stack, out)
                squares += sums.squares
                log_sds += sums.log_sds
                known_log_sds += sums.known_log_sds
            for one in self.rows.correlated.values():
                logs = one.fill(vector, residuals, jacobian, derivatives)
                log_sds += logs if one.depends else 0.0
                known_log_sds += 0.0 if one.depends else logs
            if self.rows.correlated:
                squares = squares_of(residuals, [b.rows for b in self.series_rows])
                self._inform(jacobian, information)
            # A finite sum shows that its terms are finite; an infinite one may have overflowed.
            finite = math.isfinite(squares) or bool(np.isfinite(residuals).all())
            if derivatives and finite:
                finite = math.isfinite(jacobian.sum()) or bool(np.isfinite(jacobian).all())
        if not (finite and math.isfinite(log_sds + known_log_sds)):
            return None
        return AssembledResiduals(residuals, jacobian, squares, log_sds, known_log_sds, information)

    def sums_at(self, points: Array, along: Sequence[Sequence[Trajectory]]) -> SumsAtPoints | None:
        """Return the sums of squares and of logarithms at many vectors, NaN where undefined.

        `along` are the trajectories at each. None is returned if each has to be evaluated alone.
        """
        if self.rows.correlated:
            return None
        squares, log_sds, known_log_sds = np.zeros((3, len(points)))
        with np.errstate(all="ignore"):
            for members, groups in self._layout(along[0]).items():
                states = np.array(
                    [np.concatenate([one[c].states for c in members]) for one in along]
                )
                for group in groups:
                    sums = group.sums_at(points, states)
                    if sums is None:
                        return None
                    squares += sums.squares
                    log_sds += sums.log_sds
                    known_log_sds += sums.known_log_sds
            undefined = ~np.isfinite(squares + log_sds + known_log_sds)
        squares[undefined] = log_sds[undefined] = np.nan
        return SumsAtPoints(squares, log_sds, known_log_sds)

    def _inform(self, jacobian: Array, information: Array | None) -> None:
        """Set the information of correlated values to that of their innovations."""
        if information is None:
            return
        for one in self.rows.correlated.values():
            for rows in (one.rows, one.lag_rows, one.sd_rows):
                if rows is not None:
                    information[rows] = jacobian[rows]

    # By series --------------------------------------------------------------------------------

    def by_series(
        self, vector: Array, trajectories: Sequence[Trajectory]
    ) -> Iterator[SeriesResiduals | Failure]:
        """Yield residuals by observable, condition by condition, or a failure."""
        every = np.zeros((5, self.count))
        with np.errstate(all="ignore"):
            for group, stack in self._groups(trajectories):
                rows, *values = group.compare(vector, stack)
                every[:, rows] = values
        parts = iter(self.series_rows)
        for number, condition in enumerate(self._problem.conditions):
            for name, series in condition.series.items():
                rows = _rows(series, parts)
                at = SeriesResiduals(rows, *every[:, rows])
                one = self.rows.correlated.get((number, name))
                if one is not None:
                    innovations = one.innovations(vector, at.residuals)
                    at = at._replace(residuals=innovations, pearson=innovations)
                yield self._fault(condition, name, at) or at

    def _fault(self, condition: Condition, name: str, at: SeriesResiduals) -> Failure | None:
        wrong = np.flatnonzero(~np.isfinite(at.residuals) | ~(at.sds > 0))
        if not len(wrong):
            return None
        value, sd = at.predicted[wrong[0]], at.sds[wrong[0]]
        noise = self._problem.noise.get(name, Noise())
        if not np.isfinite(value):
            reason = f"observable '{name}' is {value}"
        elif not sd > 0:
            reason = f"the standard deviation of '{name}' is {sd:g}, and must be positive"
            model = self._problem.model
            moving = {*model.states, *model.observables}
            if any(e.names & moving for e in noise.expressions):
                reason += f"; write sqrt(a^2 + (...)^2) with a > 0 if {name} may reach zero"
        else:
            need = noise.law.requirement or "it has no logarithm"
            reason = f"observable '{name}' is {value:g}: {need}"
        time = float(condition.times[condition.series[name].rows[wrong[0]]])
        return Failure(condition.name, time, reason)

    def fault(
        self, vector: Array, trajectories: Sequence[Trajectory], derivatives: bool
    ) -> Failure:
        """Return the reason why the residuals, or their derivatives, cannot be used."""
        for at in self.by_series(vector, trajectories):
            if isinstance(at, Failure):
                return at
        condition, subject = self._problem.conditions[0], "the residuals"
        if derivatives:
            jacobian = np.zeros((self.count, len(vector)))
            with np.errstate(all="ignore"):
                for group, stack in self._groups(trajectories):
                    group.fill(vector, stack, Out(np.empty(self.count), jacobian, True))
            for block in self.series_rows:
                if not np.isfinite(jacobian[block.rows]).all():
                    condition, subject = (
                        self._problem.conditions[block.condition],
                        f"'{block.name}'",
                    )
                    break
        return Failure(condition.name, condition.t0, f"the derivatives of {subject} are not finite")

    # Layout -----------------------------------------------------------------------------------

    def _groups(
        self, trajectories: Sequence[Trajectory]
    ) -> Iterator[tuple[PlainStates | Group, StackedTrajectories]]:
        """Yield the groups of measurements that are evaluated together, with their trajectories."""
        for members, groups in self._layout(trajectories).items():
            stack = StackedTrajectories.of([trajectories[c] for c in members])
            for group in groups:
                yield group, stack

    def _layout(self, trajectories: Sequence[Trajectory]) -> _Layout:
        key = tuple((t.unknowns, tuple(t.switched)) for t in trajectories)
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(key)
        return self._layouts[key]

    def _make_layout(self, key: Sequence[tuple[tuple[int, ...], tuple[str, ...]]]) -> _Layout:
        by_unknowns: dict[tuple[int, ...], list[int]] = {}
        for number, (unknowns, _) in enumerate(key):
            by_unknowns.setdefault(unknowns, []).append(number)
        layout: _Layout = {}
        for unknowns, members in by_unknowns.items():
            groups = layout[tuple(members)] = []
            together: dict[Any, list[SeriesRows]] = {}
            offsets = self._offsets(members)
            for block in self.series_rows:
                if block.condition in offsets:
                    switched = key[block.condition][1]
                    together.setdefault(self._kind(block, switched), []).append(block)
            for kind, blocks in together.items():
                if kind is None:
                    groups.append(self._plain_states(unknowns, blocks, offsets))
                else:
                    names = frozenset(kind[-1])
                    groups.append(self._group(unknowns, blocks, offsets, names))
        return layout

    def _offsets(self, members: Sequence[int]) -> dict[int, int]:
        lengths = [len(self._problem.conditions[c].times) for c in members]
        return dict(zip(members, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))

    def _kind(self, block: SeriesRows, switched: Sequence[str]) -> Any:
        """Return the common properties of series in one group; None for plain states."""
        known = known_spreads(block.noise, block.series) is not None
        expression = self._problem.model.observables[block.name]
        plain = known and block.noise.transform is None and expression.name in self._field.states
        if plain and density_of(block.noise, [block.series]) is None:
            return None
        names = self._names(block.name, None if known else block.noise)
        return (block.name, known, block.estimates_spread, tuple(n for n in switched if n in names))

    def _names(self, name: str, noise: Noise | None) -> set[str]:
        """Return the names in an observable, and in those that its noise model refers to."""
        observables = self._problem.model.observables
        names = set(observables[name].names)
        if noise is not None and isinstance(noise.spread, Expression):
            for n in noise.spread.names:
                names |= observables[n].names if n in observables else {n}
        if names & set(self._field.model.algebraic):
            names |= {n for e in self._field.model.algebraic.values() for n in e.names}
        return names

    def _plain_states(
        self,
        unknowns: tuple[int, ...],
        blocks: Sequence[SeriesRows],
        offsets: Mapping[int, int],
    ) -> PlainStates:
        """Return the group of some series of states with known weights."""
        observables, states = self._problem.model.observables, self._field.states
        columns = [
            np.full(len(b.series.rows), states.index(str(observables[b.name].name))) for b in blocks
        ]
        spreads = [known_spreads(b.noise, b.series) for b in blocks]
        sds = np.concatenate([sd for sd in spreads if sd is not None])
        return PlainStates(
            numbers(np.array(unknowns, dtype=np.intp)),
            np.concatenate([b.series.rows + offsets[b.condition] for b in blocks]),
            np.concatenate(columns).astype(np.intp),
            _indices([b.rows for b in blocks]),
            np.concatenate([b.series.values for b in blocks]),
            sds,
            None if (sds == 1.0).all() else 1.0 / sds,
            float(np.sum(np.log(sds))),
        )

    def _group(
        self,
        unknowns: tuple[int, ...],
        blocks: Sequence[SeriesRows],
        offsets: Mapping[int, int],
        switched: frozenset[str],
    ) -> Group:
        """Return the group of some series of one observable."""
        first = blocks[0]
        noise = first.noise
        conditions = [self._problem.conditions[b.condition] for b in blocks]
        rows = ObservedRows(
            self._field,
            conditions,
            [b.series.rows for b in blocks],
            np.concatenate([b.series.rows + offsets[b.condition] for b in blocks]),
            switched,
            unknowns,
            len(self._problem.unknowns),
        )
        observables = self._problem.model.observables
        gradients: dict[str, Gradient] = {}
        spread: Array | int | Gradient
        known = [known_spreads(b.noise, b.series) for b in blocks]
        if known[0] is not None:
            spread = np.concatenate([s for s in known if s is not None])
        elif isinstance(noise.spread, Expression) and (
            one := _unknown_named(noise.spread, conditions, switched)
        ):
            spread = one[0]
        elif isinstance(noise.spread, Expression):
            within = sorted(n for n in noise.spread.names if n in observables)
            gradients = {n: rows.gradient(observables[n]) for n in within}
            spread = rows.gradient(noise.spread, within)
        else:
            spread = self._estimated[noise.unknown(first.name)]
        measured = np.concatenate([b.series.values for b in blocks])
        if noise.transform is not None:
            with np.errstate(all="ignore"):
                measured = NUMPY.call(noise.transform, [measured])
        sd_rows = [b.sd_rows for b in blocks if b.sd_rows is not None and b.estimates_spread]
        return Group(
            rows,
            rows.gradient(observables[first.name]),
            noise.transform,
            gradients,
            spread,
            measured,
            _indices([b.rows for b in blocks]),
            _indices(sd_rows) if sd_rows else None,
            density_of(noise, [b.series for b in blocks]),
        )


def _unknown_named(
    spread: Expression, conditions: Sequence[Condition], switched: frozenset[str]
) -> list[int]:
    """Return the unknown whose name alone is the spread, if it is the same in all conditions."""
    name = spread.name
    if name is None or name in switched or name not in conditions[0].scalars:
        return []
    bounds = {c.scalars[name] for c in conditions}
    numbers_of_unknowns = [b for b in bounds if not isinstance(b, float | Expression)]
    return numbers_of_unknowns if len(bounds) == 1 else []


def _rows(series: Series, parts: Iterator[SeriesRows]) -> IntArray:
    """Return the rows of the residuals of a series, whose parts come next."""
    rows = np.empty(len(series.values), dtype=np.intp)
    for part in replace(series, values=np.arange(float(len(rows)))).by_source_of_sds():
        block = next(parts)
        rows[part.values.astype(np.intp)] = np.arange(block.rows.start, block.rows.stop)
    return rows


def _indices(slices: Sequence[slice]) -> Numbers:
    """Return the numbers in some slices, one after the other."""
    return numbers(np.concatenate([np.arange(s.start, s.stop) for s in slices]))
