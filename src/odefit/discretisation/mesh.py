"""Meshes: the times at which a problem is discretised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.option_checks import number, whole
from odefit.discretisation.schemes import Relations, Scheme
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.experiment import Input


class Mesh(Protocol):
    """A choice of mesh points for every condition."""

    def points(self, condition: Condition, start: float, stop: float) -> Array:
        """Return the mesh points of the segment from `start` to `stop`, both included."""

    def end(self, condition: Condition) -> float:
        """Return the end of the mesh of a condition: its last data time, or later."""


def _last(condition: Condition) -> float:
    return float(condition.times[-1]) if len(condition.times) else condition.t0


@dataclass(frozen=True)
class UniformMesh:
    """Steps of equal length h from t0 on, M = (t_f - t_0) / h of them (section 2.1).

    The scheme's polynomial gives values at data times between mesh points; times of events and
    corners of inputs always become points.

    Attributes
    ----------
    steps
        Number of steps M, for every condition.
    final
        End t_f of the mesh; None for the last data time.
    """

    steps: int
    final: float | None = None

    def __post_init__(self) -> None:
        whole(self.steps, "UniformMesh, steps")
        if self.final is not None:
            number(self.final, "UniformMesh, final")

    def end(self, condition: Condition) -> float:
        """Return the given end, or else the last data time."""
        last = _last(condition)
        if self.final is not None and self.final < last:
            raise InputError(
                f"mesh: it ends at t = {self.final:g}, before the last measurement of "
                f'"{condition.name}" at t = {last:g}'
            )
        return last if self.final is None else self.final

    def points(self, condition: Condition, start: float, stop: float) -> Array:
        """Return the points of the equidistant grid in the segment, and its ends."""
        grid = np.linspace(condition.t0, self.end(condition), self.steps + 1)
        return _between(grid, start, stop)


@dataclass(frozen=True)
class DataMesh:
    """All data times, and equal steps between them.

    Attributes
    ----------
    steps
        Approximate total number of steps: each interval between data times gets its share by
        length, and at least as many as `least` says.
    least
        Least number of steps between two data times.
    """

    steps: int = 0
    least: int = 1

    def __post_init__(self) -> None:
        whole(self.steps, "DataMesh, steps", 0)
        whole(self.least, "DataMesh, least")

    def end(self, condition: Condition) -> float:
        """Return the last data time."""
        return _last(condition)

    def points(self, condition: Condition, start: float, stop: float) -> Array:
        """Return data times in the segment, its ends, and equal steps between them."""
        whole = self.end(condition) - condition.t0
        knots = _between(condition.times, start, stop)
        gaps = np.diff(knots)
        shares = np.maximum(np.round(self.steps * gaps / whole), self.least).astype(int)
        parts = [
            np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(knots, knots[1:], shares, strict=False)
        ]
        return np.append(np.concatenate(parts), stop)


@dataclass(frozen=True, eq=False)
class GivenMesh:
    """Given mesh points for each condition; ends and events are added.

    The `times` increase, by name of the experiment. Raises InputError if they do not, or if an
    experiment has none.
    """

    times: Mapping[str, Array]

    def __post_init__(self) -> None:
        for name, times in self.times.items():
            t = np.asarray(times, dtype=float)
            if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
                raise InputError(
                    f'GivenMesh, "{name}": expected times, finite and increasing, got {times!r}'
                )

    def _of(self, condition: Condition) -> Array:
        if condition.name not in self.times:
            have = ", ".join(f'"{n}"' for n in self.times)
            raise InputError(f'GivenMesh: no times for experiment "{condition.name}" (has {have})')
        return np.asarray(self.times[condition.name], dtype=float)

    def end(self, condition: Condition) -> float:
        """Return the last data time, or the last point if that is later."""
        return max(_last(condition), float(self._of(condition)[-1]))

    def points(self, condition: Condition, start: float, stop: float) -> Array:
        """Return the given points in the segment, and its ends."""
        return _between(self._of(condition), start, stop)


def _between(grid: Array, start: float, stop: float) -> Array:
    """Return the points of `grid` in [start, stop], with exactly these ends."""
    margin = 1e-9 * (stop - start)
    inside = grid[(grid > start + margin) & (grid < stop - margin)]
    return np.concatenate([[start], inside, [stop]])


def as_mesh(value: Mesh | int, owner: str) -> Mesh:
    """Return a mesh, which may be given as a number of equal steps; refuse anything else."""
    if isinstance(value, int | np.integer):
        whole(value, f"{owner}, mesh")
        return UniformMesh(int(value))
    if not hasattr(value, "points"):
        raise InputError(f"{owner}, mesh: expected a whole number or a mesh, got {value!r}")
    return value


@dataclass(frozen=True, eq=False)
class Segment:
    """A time span of one condition (a number) between two events or corners of inputs.

    The mesh points have shape (N + 1,); between two events at the same time there is only one.
    `relations` are the scheme's equations on the mesh, `assign` the new values that the event at
    its start assigns, by name. `signals` holds the inputs, with a number for a constant input.
    """

    condition: int
    mesh: Array
    relations: Relations
    assign: Mapping[str, Expression]
    signals: tuple[Input | float, ...] = field(default=())

    def inputs(self, times: Array) -> Array:
        """Return the values of the inputs, shape (times, inputs)."""
        columns = [
            np.full(len(times), g) if isinstance(g, float) else g(times) for g in self.signals
        ]
        return np.column_stack(columns) if columns else np.zeros((len(times), 0))


def segments(
    number: int, condition: Condition, inputs: Sequence[str], scheme: Scheme, mesh: Mesh
) -> Iterator[Segment]:
    """Yield the segments of a condition in the order of time.

    The first begins with the initial values. Events at the same time happen one after the other:
    between them are segments of a single point. Raises InputError if the scheme needs more steps
    than any segment has.
    """
    end = mesh.end(condition)
    events = [(t, assign) for t, assign in condition.events if t < end]
    signals = [condition.inputs[name] for name in inputs]
    corners = {float(t) for g in signals for t in _corners(g) if t < end}
    cuts = sorted(
        {t for t, _ in events} | {t for t in corners if t > condition.t0} | {condition.t0}
    )
    most = 0
    for start, stop in zip(cuts, [*cuts[1:], end], strict=True):
        happens: list[Mapping[str, Expression]] = [assign for t, assign in events if t == start]
        if start == condition.t0:
            happens.insert(0, {})
        for assign in happens[:-1]:
            yield _single_point(number, start, assign, signals)
        assign = happens[-1] if happens else {}
        if stop == start:
            yield _single_point(number, start, assign, signals)
            most = scheme.least_steps
            continue
        points = mesh.points(condition, start, stop)
        most = max(most, len(points) - 1)
        middle = np.array([(start + stop) / 2])
        known = tuple(float(g(middle)[0]) if g.interpolation == "constant" else g for g in signals)
        yield Segment(number, points, scheme.relations(points), assign, known)
    if most < scheme.least_steps:
        raise InputError(
            f'mesh: {scheme.name} needs at least {scheme.least_steps} steps, "{condition.name}" '
            f"has {most} between its events; give a finer mesh, or use the trapezoid scheme"
        )


def _corners(signal: Input) -> Array:
    """Return the times at which an input is not smooth; beyond its ends a cubic is constant."""
    return signal.times[[0, -1]] if signal.interpolation == "cubic" else signal.times


def _single_point(
    number: int, time: float, assign: Mapping[str, Expression], signals: Sequence[Input]
) -> Segment:
    nothing = csr_array((0, 1))
    relations = Relations(np.array([time]), np.zeros(1, dtype=np.intp), nothing, nothing)
    return Segment(number, np.array([time]), relations, assign, tuple(signals))
