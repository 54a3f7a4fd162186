"""How good a mesh is, a better one, and a solution carried over to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from odefit.discretisation.discretisation import Discretisation, PlacedSegment
from odefit.discretisation.mesh import GivenMesh
from odefit.discretisation.scales import variable_sizes
from odefit.problem.arrays import Array
from odefit.problem.option_checks import number, whole

ZERO_VALUE = 1e-10
"""Values this small, relative to the size of their variable, are what solvers leave of zero."""

MAX_SPLIT = 8
"""A step is split into so many at most in one refinement."""


@dataclass(frozen=True)
class AdaptiveMesh:
    """Data times and equal steps between them, then steps split where the error asks for it.

    Attributes
    ----------
    tolerance
        Of the discretisation error of a step, relative to the largest value of each state.
    steps
        About so many in all to begin with.
    most
        Steps of all conditions together that are not exceeded.
    rounds
        Refinements at most.
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
    """Error that each step adds, relative to the size of the states.

    The scheme's polynomial p is put into the differential equation: the integral of
    ``|p' - f(t, p)|`` over the step, by a Gauss rule finer than the scheme.

    Returns
    -------
    By place, shape (steps,).
    """
    nodes, weights = np.polynomial.legendre.leggauss(5)
    slopes = _slopes(d, values, unknowns)
    n = len(d.field.states)
    largest = np.maximum(np.abs(values), ZERO_VALUE * variable_sizes(d))[:, :n]
    size = [largest[d.condition_of == c].max(axis=0) for c in range(len(d.problem.conditions))]
    found = []
    for place in d.segments:
        mesh = place.segment.mesh
        h = np.diff(mesh)
        if not len(h):
            found.append(np.zeros(0))
            continue
        times = (mesh[:-1, None] + h[:, None] * (nodes + 1) / 2).ravel()
        states = _interpolated(d, place, values, slopes, times)
        rates = _interpolated(d, place, values, slopes, times, derivative=True)[:, :n]
        residual = np.abs(rates - _field(d, place, states, unknowns, times))
        integral = np.tensordot(
            residual.reshape(len(h), len(nodes), n), weights / 2, axes=([1], [0])
        )
        error = np.max(integral * h[:, None] / size[place.segment.condition], axis=1)
        found.append(np.where(np.isfinite(error), error, np.inf))
    return found


def refine_mesh(d: Discretisation, errors: list[Array], mesh: AdaptiveMesh) -> GivenMesh | None:
    """The mesh with steps split where the error is too large; None if that is not allowed."""
    points: dict[str, list[Array]] = {}
    total = 0
    for place, error in zip(d.segments, errors, strict=True):
        own = points.setdefault(d.problem.conditions[place.segment.condition].name, [])
        grid = place.segment.mesh
        own.append(grid[:1])
        if len(grid) < 2:
            continue
        ratio = np.minimum(error / mesh.tolerance, 1e12)
        pieces = np.ceil(ratio ** (1.0 / d.scheme.local_order))
        pieces = np.clip(np.where(ratio <= 1, 1, pieces), 1, MAX_SPLIT).astype(int)
        total += int(pieces.sum())
        if total > mesh.most:
            return None
        step = np.repeat(np.arange(len(pieces)), pieces)
        number = np.arange(len(step)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + 1
        share = number / pieces[step]
        inner = grid[step] + share * np.diff(grid)[step]
        own.append(np.where(number == pieces[step], grid[step + 1], inner))
    return GivenMesh({name: np.unique(np.concatenate(parts)) for name, parts in points.items()})


def interpolate_solution(
    source: Discretisation, values: Array, unknowns: Array, target: Discretisation
) -> Array:
    """Values of `source` at the points of `target`, by the scheme's polynomial."""
    slopes = _slopes(source, values, unknowns)
    found = np.empty((target.points, len(target.variables)))
    for old, new in zip(source.segments, target.segments, strict=True):
        own = slice(new.first, new.first + new.count)
        found[own] = _interpolated(source, old, values, slopes, target.times[own])
    for place, points, times in target.interpolated:
        old = source.segments[target.segments.index(place)]
        found[points] = _interpolated(source, old, values, slopes, times)
    return found


def _interpolated(
    d: Discretisation,
    place: PlacedSegment,
    values: Array,
    slopes: Array,
    times: Array,
    derivative: bool = False,
) -> Array:
    """All variables (or their rates) at `times` within a place, shape (times, variables)."""
    segment = place.segment
    own = slice(place.first, place.first + place.count)
    x = values[own]
    if len(segment.mesh) < 2:
        return np.repeat(x[:1], len(times), axis=0)
    a, b = d.scheme.interpolation(segment.mesh, segment.relations, times, derivative)
    result = _times(a, x) + _times(b, slopes[own])
    # Algebraic variables have no slopes: straight lines between mesh points.
    for k, name in enumerate(d.variables):
        if name in d.field.algebraic:
            result[:, k] = np.interp(times, segment.mesh, x[segment.relations.boundary, k])
    return result


def _times(matrix: csr_array, x: Array) -> Array:
    return np.asarray(matrix @ x)


def _slopes(d: Discretisation, values: Array, unknowns: Array) -> Array:
    """Right-hand sides at all points of all places, zero for what has none."""
    found = np.zeros(values.shape)
    for place in d.segments:
        own = slice(place.first, place.first + place.count)
        slopes = _field(d, place, values[own], unknowns, d.times[own])
        found[own, : slopes.shape[1]] = slopes
    return found


def _field(
    d: Discretisation, place: PlacedSegment, values: Array, unknowns: Array, times: Array
) -> Array:
    equations = d.equations[place.segment.condition]
    points = np.arange(len(times))
    block = equations.rhs_block(points, times, place.segment.inputs(times))
    return np.column_stack(d.outputs(block, values, unknowns))
