"""Discretisation errors of a mesh, a refined mesh, and a solution interpolated on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.common.option_checks import number, whole
from odefit.discretisation.discretisation import Discretisation, PlacedSegment
from odefit.discretisation.instance import variable_sizes
from odefit.discretisation.mesh import GivenMesh

ZERO_VALUE = 1e-10
"""Values below this fraction of the size of their variable count as zero: solvers are no more
accurate."""

MAX_SPLIT = 8
"""Largest number of steps into which one step is split in one refinement."""


@dataclass(frozen=True)
class AdaptiveMesh:
    """Data times and equal steps between them; steps with too large an error are split.

    Attributes
    ----------
    tolerance
        Largest discretisation error of a step, relative to the largest value of each state.
    steps
        Approximate initial number of steps.
    most
        Largest number of steps of all conditions together.
    rounds
        Largest number of refinements.
    """

    tolerance: float = 1e-4
    steps: int = 40
    most: int = 5000
    rounds: int = 8

    def __post_init__(self) -> None:
        number(self.tolerance, "AdaptiveMesh, tolerance", least=1e-14, most=1.0)
        whole(self.steps, "AdaptiveMesh, steps", 0)
        whole(self.most, "AdaptiveMesh, most")
        whole(self.rounds, "AdaptiveMesh, rounds", 0)


def step_errors(d: Discretisation, values: Array, unknowns: Array) -> list[Array]:
    """Return the error of each step, relative to the size of the states, by segment.

    It is the defect of the scheme's polynomial p, the integral of ``|p' - f(t, p)|`` over the step,
    by a Gauss rule finer than the scheme.
    """
    nodes, weights = np.polynomial.legendre.leggauss(5)
    rhs = _right_hand_sides(d, values, unknowns)
    n = len(d.field.states)
    largest = np.maximum(np.abs(values), ZERO_VALUE * variable_sizes(d))[:, :n]
    size = [largest[d.condition_of == c].max(axis=0) for c in range(len(d.problem.conditions))]
    by_segment = []
    for placed in d.segments:
        mesh = placed.segment.mesh
        h = np.diff(mesh)
        if not len(h):
            by_segment.append(np.zeros(0))
            continue
        times = (mesh[:-1, None] + h[:, None] * (nodes + 1) / 2).ravel()
        states = _interpolated(d, placed, values, rhs, times)
        rates = _interpolated(d, placed, values, rhs, times, derivative=True)[:, :n]
        residual = np.abs(rates - _rhs_at(d, placed, states, unknowns, times))
        integral = np.tensordot(
            residual.reshape(len(h), len(nodes), n), weights / 2, axes=([1], [0])
        )
        error = np.max(integral * h[:, None] / size[placed.segment.condition], axis=1)
        by_segment.append(np.where(np.isfinite(error), error, np.inf))
    return by_segment


def refine_mesh(d: Discretisation, errors: list[Array], mesh: AdaptiveMesh) -> GivenMesh | None:
    """Return the mesh with inaccurate steps split; None if it has too many steps."""
    points: dict[str, list[Array]] = {}
    total = 0
    for placed, error in zip(d.segments, errors, strict=True):
        pieces = points.setdefault(d.problem.conditions[placed.segment.condition].name, [])
        grid = placed.segment.mesh
        pieces.append(grid[:1])
        if len(grid) < 2:
            continue
        ratio = np.minimum(error / mesh.tolerance, 1e12)
        parts = np.ceil(ratio ** (1.0 / d.scheme.local_order))
        parts = np.clip(np.where(ratio <= 1, 1, parts), 1, MAX_SPLIT).astype(int)
        total += int(parts.sum())
        if total > mesh.most:
            return None
        step = np.repeat(np.arange(len(parts)), parts)
        number = np.arange(len(step)) - np.repeat(np.cumsum(parts) - parts, parts) + 1
        share = number / parts[step]
        inner = grid[step] + share * np.diff(grid)[step]
        pieces.append(np.where(number == parts[step], grid[step + 1], inner))
    return GivenMesh({name: np.unique(np.concatenate(parts)) for name, parts in points.items()})


def interpolate_solution(
    source: Discretisation, values: Array, unknowns: Array, target: Discretisation
) -> Array:
    """Return values of `source` at the points of `target`, by the scheme's polynomial."""
    rhs = _right_hand_sides(source, values, unknowns)
    interpolated = np.empty((target.points, len(target.variables)))
    for old, new in zip(source.segments, target.segments, strict=True):
        rows = slice(new.first, new.first + new.count)
        interpolated[rows] = _interpolated(source, old, values, rhs, target.times[rows])
    for placed, points, times in target.interpolated:
        old = source.segments[target.segments.index(placed)]
        interpolated[points] = _interpolated(source, old, values, rhs, times)
    return interpolated


def _interpolated(
    d: Discretisation,
    placed: PlacedSegment,
    values: Array,
    rhs: Array,
    times: Array,
    derivative: bool = False,
) -> Array:
    """Return all variables or their derivatives at `times` within a segment, (times, variables)."""
    segment = placed.segment
    rows = slice(placed.first, placed.first + placed.count)
    x = values[rows]
    if len(segment.mesh) < 2:
        return np.repeat(x[:1], len(times), axis=0)
    a, b = d.scheme.interpolation(segment.mesh, segment.relations, times, derivative)
    result = np.asarray(a @ x + b @ rhs[rows])
    # Algebraic variables have no right-hand sides: straight lines between mesh points.
    for k, name in enumerate(d.variables):
        if name in d.field.algebraic:
            result[:, k] = np.interp(times, segment.mesh, x[segment.relations.boundary, k])
    return result


def _right_hand_sides(d: Discretisation, values: Array, unknowns: Array) -> Array:
    """Return right-hand sides at all points, zero for variables without one."""
    rates = np.zeros(values.shape)
    for placed in d.segments:
        rows = slice(placed.first, placed.first + placed.count)
        rhs = _rhs_at(d, placed, values[rows], unknowns, d.times[rows])
        rates[rows, : rhs.shape[1]] = rhs
    return rates


def _rhs_at(
    d: Discretisation, placed: PlacedSegment, values: Array, unknowns: Array, times: Array
) -> Array:
    equations = d.equations[placed.segment.condition]
    points = np.arange(len(times))
    block = equations.rhs_block(points, times, placed.segment.inputs(times))
    return np.column_stack(d.outputs(block, values, unknowns))
