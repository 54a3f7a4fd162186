"""Known time courses that equations contain as ``piecewise``, for the sizes of their values."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import PIECEWISE, TIME, Expression, Instruction
from odefit.expressions.formulas import Part, joined, name, rewritten
from odefit.problem.problem import Problem

POINTS = 1000
"""Number of times between the first and the last at which time courses are evaluated."""


def sampled_times(problem: Problem) -> Array:
    """Return times from the first t0 to the last measurement, with all that are measured."""
    conditions = problem.conditions
    first, last = min(c.t0 for c in conditions), max(c.end for c in conditions)
    measured = [c.times[np.isfinite(c.times)] for c in conditions]
    return np.unique(np.concatenate([np.linspace(first, last, POINTS), *measured]))


def with_courses(expression: Expression, times: Array) -> tuple[Expression, dict[str, float]]:
    """Return an expression with names in place of known time courses, and their largest values.

    A known time course is a ``piecewise`` of numbers and time alone, as an interpolated input that
    is written out. Its size is the largest magnitude at `times`, shape (m,).
    """
    if not {PIECEWISE} & expression.functions or TIME not in expression.names:
        return expression, {}
    courses: dict[str, Array] = {}

    def write(instruction: Instruction, operands: list[Part]) -> Part:
        part = joined(instruction, operands)
        if instruction.text != PIECEWISE or not part.names <= {TIME, *courses}:
            return part
        with np.errstate(all="ignore"):
            values = part.expression().evaluate({TIME: times, **courses}, NUMPY)
        course = f"{PIECEWISE} {len(courses) + 1}"  # no name of a model contains a space
        courses[course] = np.broadcast_to(values, times.shape)
        return name(course)

    part = rewritten(expression.program, write)
    sizes = {n: np.abs(values[np.isfinite(values)]) for n, values in courses.items()}
    return part.expression(), {n: float(size.max(initial=0.0)) for n, size in sizes.items()}
