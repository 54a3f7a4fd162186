"""Trajectories of one condition, with sensitivities, by whichever engine suits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array
from odefit.problem.binding import Binding, dynamic_unknowns, scalar_value
from odefit.problem.condition import Condition
from odefit.problem.expressions import TIME, Expression
from odefit.problem.vector_field import Structure, VectorField
from odefit.simulation.algebraic import consistent
from odefit.simulation.engine import Leg, Path, Seed, Stop
from odefit.simulation.engines import EngineSwitch
from odefit.simulation.failure import Failure
from odefit.simulation.schedule import Stage, schedule


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States of one condition at some times.

    Attributes
    ----------
    times
        Shape (k,).
    states
        Shape (k, n); algebraic variables that an engine solved for, shape (k, a).
    unknowns
        Indices of the unknowns that the sensitivities are with respect to, shape (m,).
    sensitivities
        Of the states, shape (k, n, m), and of the algebraic variables, shape (k, a, m).
    switched
        Constants that events assign: values, shape (k,), and their sensitivities, shape (k, m).
    """

    times: Array
    states: Array
    algebraic: Array
    unknowns: tuple[int, ...]
    sensitivities: Array
    algebraic_sensitivities: Array
    switched: Mapping[str, tuple[Array, Array]]


class ConditionMap:
    """The forward map of one condition.

    Parameters
    ----------
    field
        The equations.
    condition
        Initial values, scalars, inputs and events.
    engines
        Shared by all conditions of a problem.
    sensitivities
        Whether they are wanted.
    least
        Sizes below which no unknown counts for error control, shape (unknowns,).
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: EngineSwitch,
        sensitivities: bool = True,
        least: Array | None = None,
    ) -> None:
        self.field = field
        self.condition = condition
        self._engines = engines
        self._initial = Binding([condition.initial[s] for s in field.states], condition.scalars)
        self._scalars = Binding([condition.scalars[s] for s in field.scalars], condition.scalars)
        active = sorted(dynamic_unknowns(condition, field.scalars)) if sensitivities else []
        self.unknowns = tuple(active)
        self._columns = np.array(active, dtype=np.intp)
        self._least = 0.0 if least is None else least[self._columns]
        column = {unknown: k for k, unknown in enumerate(active)}
        entries = {(j, column[k]) for j, k in self._scalars.entries() if k in column}
        self._switched = {
            name: field.scalars.index(name)
            for _, event in condition.events
            for name in event
            if name in field.scalars
        }
        for j in self._switched.values():
            entries |= {(j, k) for k in range(len(active))}
        self._structure = Structure(len(active), frozenset(entries))
        self._plain = not condition.events and not field.algebraic
        self._guess = np.array([condition.algebraic_guess[z] for z in field.algebraic])
        self._schedules: dict[bytes, tuple[int, list[Stage]]] = {}

    def __call__(self, vector: Array, times: Array | None = None) -> Trajectory | Failure:
        """The trajectory at `times` (the data times), or why there is none.

        Parameters
        ----------
        vector
            Unknowns of the problem, shape (unknowns,).
        times
            Increasing, not before t0.
        """
        with np.errstate(all="ignore"):
            return self._run(vector, self.condition.times if times is None else times)

    def _run(self, vector: Array, times: Array) -> Trajectory | Failure:
        field, condition, m = self.field, self.condition, len(self.unknowns)
        key = times.tobytes()
        if key not in self._schedules:
            self._schedules[key] = schedule(condition, field.inputs, times)
        at_start, stages = self._schedules[key]
        sizes = self._sizes(vector)
        at = _Point(
            self._initial(vector),
            self._scalars(vector),
            self._initial.derivative(vector, self._columns) * sizes,
            self._scalars.derivative(vector, self._columns) * sizes,
        )
        if not np.isfinite(at.states).all():
            name = field.states[int(np.flatnonzero(~np.isfinite(at.states))[0])]
            return self._failure(condition.t0, f"the initial value of {name} is not finite")
        if self._plain and len(stages) == 1 and stages[0].leg is not None:
            return self._single_leg(vector, times, at_start, stages[0].leg, at, sizes)
        count, n, a = len(times), len(field.states), len(field.algebraic)
        out = Trajectory(
            times,
            np.empty((count, n)),
            np.empty((count, a)),
            self.unknowns,
            np.empty((count, n, m)),
            np.empty((count, a, m)),
            {name: (np.empty(count), np.empty((count, m))) for name in self._switched},
        )
        guess = self._guess
        if at_start:
            out.states[0], out.sensitivities[0] = at.states, at.seeds
            self._store_switched(out, slice(0, 1), at)
        if a:
            values = self._values(condition.t0, vector, at)
            solved = consistent(field, values, guess, condition.t0, m)
            if isinstance(solved, Stop):
                return self._failure(solved.time, solved.reason)
            guess = solved[0]
            if at_start:
                out.algebraic[0], out.algebraic_sensitivities[0] = solved
        now = condition.t0
        for stage in stages:
            for assignment in stage.assignments:
                at = self._jump(assignment, now, vector, at)
            leg = stage.leg
            if leg is None:
                continue
            now = float(leg.times[-1])
            seed = Seed(at.states, at.scalars, at.seeds, at.scalar_seeds, guess)
            path = self._engines.integrate(field, self._structure, leg, seed)
            if isinstance(path, Stop):
                return self._failure(path.time, self._explain(path, vector, at, leg))
            kept = [row for row in stage.rows if row >= 0]
            if kept:
                rows = slice(kept[0], kept[-1] + 1)
                _store(out, path, rows, len(kept))
                self._store_switched(out, rows, at)
            at = _Point(path.states[-1], at.scalars, path.sensitivities[-1], at.scalar_seeds)
            if a:
                guess = path.algebraic[-1]
        out.sensitivities[...] /= sizes
        out.algebraic_sensitivities[...] /= sizes
        for _, sensitivities in out.switched.values():
            sensitivities /= sizes
        return out

    def _single_leg(
        self, vector: Array, times: Array, at_start: int, leg: Leg, at: _Point, sizes: Array
    ) -> Trajectory | Failure:
        """The common case, without events and algebraic variables: no copies but one."""
        seed = Seed(at.states, at.scalars, at.seeds, at.scalar_seeds, self._guess)
        path = self._engines.integrate(self.field, self._structure, leg, seed)
        if isinstance(path, Stop):
            return self._failure(path.time, self._explain(path, vector, at, leg))
        states, sensitivities = path.states, path.sensitivities
        if at_start:
            states = np.concatenate([at.states[None], states])
            sensitivities = np.concatenate([at.seeds[None], sensitivities])
        count, m = len(times), len(self.unknowns)
        return Trajectory(
            times,
            states,
            np.zeros((count, 0)),
            self.unknowns,
            sensitivities / sizes,
            np.zeros((count, 0, m)),
            {},
        )

    def _store_switched(self, out: Trajectory, rows: slice, at: _Point) -> None:
        for name, j in self._switched.items():
            values, sensitivities = out.switched[name]
            values[rows], sensitivities[rows] = at.scalars[j], at.scalar_seeds[j]

    def _jump(
        self, assignment: Mapping[str, Expression], time: float, vector: Array, at: _Point
    ) -> _Point:
        """The point after an event, all new values from the values before."""
        field, m = self.field, len(self.unknowns)
        values = self._values(time, vector, at)
        new = _Point(*(part.copy() for part in (at.states, at.scalars, at.seeds, at.scalar_seeds)))
        for name, expression in assignment.items():
            value = expression.evaluate(values, DUAL)
            if name in field.states:
                i = field.states.index(name)
                new.states[i], new.seeds[i] = value.value, value.gradient(m)
            elif name in field.scalars:
                i = field.scalars.index(name)
                new.scalars[i], new.scalar_seeds[i] = value.value, value.gradient(m)
        return new

    def _values(self, time: float, vector: Array, at: _Point) -> dict[str, Dual]:
        """Every name but the algebraic variables, with derivatives in the scaled directions."""
        column = {unknown: k for k, unknown in enumerate(self.unknowns)}
        values = {}
        for name in self.condition.scalars:
            scalar = scalar_value(name, self.condition.scalars, vector)
            partials = {
                column[k]: d * self._sizes(vector)[column[k]]
                for k, d in scalar.partials.items()
                if k in column
            }
            values[name] = Dual(scalar.value, partials)
        for i, name in enumerate(self.field.scalars):
            values[name] = Dual(at.scalars[i], dict(enumerate(at.scalar_seeds[i])))
        for i, name in enumerate(self.field.states):
            values[name] = Dual(at.states[i], dict(enumerate(at.seeds[i])))
        for name, given in self.condition.inputs.items():
            values[name] = Dual(given(np.array([time]))[0])
        values[TIME] = Dual(time)
        return values

    def _sizes(self, vector: Array) -> Array:
        """What a unit step along each direction is: the unknown's own size.

        The error control then sees numbers of the states' own size.
        """
        sizes = np.maximum(np.abs(vector[self._columns]), self._least)
        sizes[sizes == 0.0] = 1.0
        return sizes

    def _explain(self, stop: Stop, vector: Array, at: _Point, leg: Leg) -> str:
        """The reason, with the state at fault where the start of the leg shows it."""
        if not self.field.algebraic:
            slopes = self.field.rhs(self._values(leg.start, vector, at), DUAL)
            for name, slope in zip(self.field.states, slopes, strict=True):
                if not np.isfinite(slope.value):
                    return f"the right-hand side of {name} is not finite at t = {leg.start:g}"
        return stop.reason

    def _failure(self, time: float, reason: str) -> Failure:
        return Failure(self.condition.name, float(time), reason)


class _Point(NamedTuple):
    """Where a trajectory stands: values, and their changes along the scaled directions."""

    states: Array
    scalars: Array
    seeds: Array
    scalar_seeds: Array


def _store(out: Trajectory, path: Path, rows: slice, count: int) -> None:
    out.states[rows] = path.states[:count]
    out.sensitivities[rows] = path.sensitivities[:count]
    out.algebraic[rows] = path.algebraic[:count]
    out.algebraic_sensitivities[rows] = path.algebraic_sensitivities[:count]
