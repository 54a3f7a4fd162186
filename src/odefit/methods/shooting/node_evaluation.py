"""The evaluation of an answer on nodes, with the problem reduced to its unknowns alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.shooting.constraints import (
    Constraint,
    ParsedConstraint,
    node_times,
    parse_constraints,
    user_constraints,
)
from odefit.methods.shooting.linear_problem import LinearProblem
from odefit.methods.shooting.node_placing import node_sizes
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem
from odefit.problem.problem import Problem
from odefit.problem.variants.start_ranges import ranges
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.nodes import Nodes, node_names

SMALLEST_DEVIATION = 1e-7
"""Standard deviation, relative to the largest, for a direction that has none.

Directions determined by continuity alone, such as the unstable part of initial values, have the
standard deviation zero.
"""

ROUNDING_STEP = 1e-12
"""Step, relative to the sizes, below which it is mere rounding.

Standard errors can be far smaller, so that the rest of a step amounts to many of them.
"""


def evaluate_nodes(
    problem: Problem, vector: Array, nodes: Nodes
) -> tuple[Evaluation, float] | Failure:
    """Evaluate a problem at an answer on nodes, reduced to its unknowns alone.

    The Gauss-Newton matrix is that of the condensed problem, so that covariances respect continuity
    and constraints. The second value is the largest discontinuity, relative to the sizes of the
    states.
    """
    forward = ForwardMap(problem)
    pairs = zip(nodes.constraints, nodes.experiments, strict=True)
    constraints = parse_constraints(problem, [Constraint(text, name) for text, name in pairs])
    shooting = shooting_problem(forward, nodes.times, constraints, vector)
    point = Point(shooting.scaling.coordinates(vector), np.concatenate(list(nodes.values)))
    at = shooting.linearise(point)
    if isinstance(at, Failure):
        return at
    user = user_constraints(shooting, at, constraints)
    z = at.point.coordinates
    linear = LinearProblem(shooting, at, typical_sizes(shooting, z, z, 0.01), user)
    step = linear.step(at, user)
    return reduced_to_unknowns(shooting, at, linear, step), shooting.gap(at)


def shooting_problem(
    forward: ForwardMap,
    times: Sequence[Array],
    constraints: Sequence[ParsedConstraint],
    vector: Array,
    executor: Executor | None = None,
) -> ShootingProblem:
    """Return the problem on nodes at these times, including those of the constraints."""
    problem = forward.problem
    names = node_names(forward.field, problem.conditions)
    sizes = node_sizes(problem, names, vector)
    positions = [
        (i, int(np.argmin(np.abs(times[i] - t))))
        for i in range(len(times))
        for t in node_times(constraints, i)
    ]
    return ShootingProblem(forward, times, sizes, positions, executor)


def typical_sizes(
    shooting: ShootingProblem, coordinates: Array, first: Array, part: float
) -> Array:
    """Return typical sizes of coordinates, shape (n,).

    They are the magnitudes of the coordinates, but at least a `part` of the range of starts and of
    the coordinates `first`, at which the search began. Logarithmic coordinates have the size 1. The
    size of an initial value is at least that part of its state's size, as it may be zero.
    """
    middle = np.array([abs(float(r.at(np.array(0.5)))) for r in ranges(shooting.problem)])
    for k, unknown in enumerate(shooting.problem.unknowns):
        if unknown.kind == "initial" and unknown.name in shooting.names:
            middle[k] = max(middle[k], shooting.sizes[shooting.names.index(unknown.name)])
    sizes = np.maximum(np.abs(coordinates), part * np.maximum(middle, np.abs(first)))
    sizes[sizes == 0.0] = 1.0
    return np.where(shooting.scaling.logarithmic, 1.0, sizes)


def reduced_to_unknowns(
    shooting: ShootingProblem, at: Linearisation, problem: LinearProblem, step: Point
) -> Evaluation:
    """Return the evaluation whose Gauss-Newton matrix is that of the problem without its nodes.

    Its Jacobian and residuals have one row for each determined direction; its covariance is that of
    the condensed problem. `step` is the remaining increment at the point `at`.
    """
    n = len(at.point.coordinates)
    vector = shooting.scaling.natural(at.point.coordinates)
    slope = shooting.scaling.derivative(vector)
    inverse = problem.inverse
    root = inverse.covariance_root()[:n]
    lost = _basis(inverse.undetermined[:n])
    root = root - lost @ (lost.T @ root)
    u, s, _ = np.linalg.svd(root, full_matrices=True)
    seen = s > SMALLEST_DEVIATION * s.max(initial=0.0)
    # The remaining directions have no variance: the equations determine them.
    rest = u[:, np.append(~seen, np.ones(n - len(s), dtype=bool))]
    exact = _basis(rest - lost @ (lost.T @ rest))
    u = np.concatenate([u[:, : len(s)][:, seen], exact], axis=1)
    s = np.concatenate(
        [s[seen], np.full(exact.shape[1], SMALLEST_DEVIATION * (s.max(initial=0.0) or 1.0))]
    )
    jacobian = (u / s).T / problem.unit
    left = np.where(np.abs(step.coordinates) > ROUNDING_STEP * problem.unit, step.coordinates, 0.0)
    residuals = -(jacobian @ left)
    # The Fisher information has columns of the nodes. If noise is not normal, the condensed
    # Gauss-Newton matrix replaces it, which approaches it with more measurements.
    return replace(at.evaluation, residuals=residuals, jacobian=jacobian / slope, expected=None)


def determined_directions(problem: LinearProblem, unknowns: int) -> int:
    """Return the number of directions that data, continuity and constraints determine."""
    return unknowns - len(_basis(problem.inverse.undetermined[:unknowns]).T)


def _basis(directions: Array) -> Array:
    """Return an orthonormal basis of the span of the columns, up to rounding."""
    u, s, _ = np.linalg.svd(directions, full_matrices=False)
    return np.asarray(u[:, s > 1e-6])
