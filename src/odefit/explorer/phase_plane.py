"""The vector field and the nullclines of a model of two states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField

POINTS = 48
"""Number of points of the grid along each axis, on which nullclines are computed."""


@dataclass(frozen=True, eq=False)
class PhasePlane:
    """The right-hand sides of two states on a grid, shape (k, k), the rows along `y`.

    A nullcline is where one of them is zero.
    """

    x: Array
    y: Array
    dx: Array
    dy: Array


def why_no_field(field: VectorField, condition: Condition) -> str:
    """Return why the plane of two states has no vector field; empty if it has one."""
    if len(field.states) != 2 or field.model.algebraic:
        count = len(field.states) + len(field.model.algebraic)
        return (
            f"The model has {count} states and algebraic variables, and a vector field in the "
            "plane needs exactly two states: the trajectory is projected on this plane."
        )
    if field.nonautonomous:
        return "The equations depend on time, so the vector field changes along the way."
    if any(name not in field.states for assign in condition.assignments for name in assign):
        return "Events change constants of the equations, so the vector field changes."
    return ""


def phase_plane(
    field: VectorField,
    condition: Condition,
    vector: Array,
    names: tuple[str, str],
    box: tuple[float, float, float, float],
) -> PhasePlane:
    """Return the vector field of a model of two states on a grid.

    `names` are the states along the axes; `box` has the ends of the first axis, then of the second.
    """
    x, y = np.linspace(box[0], box[1], POINTS), np.linspace(box[2], box[3], POINTS)
    X, Y = np.meshgrid(x, y)
    values: dict[str, Array | float] = {
        name: bound_value(condition.scalars[name], condition.scalars, list(vector), NUMPY)
        for name in field.scalars
    }
    values |= {names[0]: X, names[1]: Y}
    with np.errstate(all="ignore"):
        rates = dict(zip(field.states, field.rhs(values, NUMPY), strict=True))
    dx, dy = (np.array(np.broadcast_to(rates[n], X.shape), dtype=float) for n in names)
    return PhasePlane(x, y, dx, dy)
