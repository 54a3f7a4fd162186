"""The forms in which the linear equations of several fields are solved, and the choice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import Integration, SegmentSolution
from odefit.simulation.engines.linear.closed_form import MOST_STATES, ClosedForm
from odefit.simulation.engines.registry import TAYLOR, import_problem

if TYPE_CHECKING:
    from odefit.simulation.engines.linear.equations import LinearEquations
    from odefit.simulation.engines.linear.recursion import Recursion

OUTPUTS_IN_CLOSED_FORM = 100
"""Outputs from which on linear equations that move fast are solved in closed form at once: where
explicit methods take many steps anyway, their usual limit of steps does not stop them."""

FAST = 1e3
"""Product of an eigenvalue and the time from which on explicit methods take hundreds of steps."""

SHARE = 0.5
"""Product of an eigenvalue and the time, over the number of outputs, below which outputs cost more
than explicit steps."""

MANY_PARTS, FEW_PARTS = 32, 6
"""Parts of a segment from which on linear equations with inputs are solved step by step, with the
Taylor method and without it: fewer parts take it no longer than what has to be computed before."""

PART, PART_VALUE = 5_000.0, 150.0
"""Time of a part by the Taylor method, and for each state or sensitivity besides, in ns."""

MANY_STATES, OUTPUT = 5, 2_000.0
"""States from which on many outputs are computed step by step where the Taylor method is missing,
in at most this time each, in ns: eigenvectors take longer for them."""

SLOWER = 8.0  # the explicit engine's time for a part, relative to that of the Taylor method

FEWEST = 4
"""Smallest number of conditions, with as many unknowns each, that are computed together: fewer take
the engines less time."""

Key = tuple[VectorField, SensitivityPattern]


class LinearForms:
    """The forms of linear equations, each made when it is first asked for.

    No form is made unless they are `allowed`, which they are where the choice of an engine is free.
    """

    def __init__(self, *, allowed: bool) -> None:
        self._allowed = allowed
        self._closed: dict[Key, ClosedForm | None] = {}
        self._recursions: dict[Key, Recursion | None] = {}

    def closed(self, field: VectorField, pattern: SensitivityPattern) -> ClosedForm | None:
        """Return the closed form of a field; None where its equations have none."""
        key = field, pattern
        if key not in self._closed:
            few = len(field.states) <= MOST_STATES and not field.inputs
            equations = self._equations(field) if few else None
            self._closed[key] = None if equations is None else ClosedForm(equations, pattern)
        return self._closed[key]

    def pay(self, problem: Integration) -> bool:
        """Return whether a solution with many outputs takes explicit methods longer."""
        if len(problem.segment.times) < OUTPUTS_IN_CLOSED_FORM:
            return False
        form = self.closed(problem.field, problem.pattern)
        vectors = None if form is None else form.eigenvectors(problem.initial)
        if vectors is None:
            return False
        span = float(problem.segment.times[-1]) - problem.segment.start
        fast = float(np.abs(vectors.values).max()) * span
        return bool(TAYLOR.problem) or fast > max(FAST, SHARE * len(problem.segment.times))

    def solution(self, problem: Integration) -> SegmentSolution | None:
        """Return the solution of a segment; None where another engine has to integrate it."""
        form = self.closed(problem.field, problem.pattern)
        return None if form is None else form.integrate(problem.segment, problem.initial)

    def step_by_step(self, problem: Integration) -> SegmentSolution | None:
        """Return the solution of a segment of many parts or outputs; None where there are few."""
        field, outputs = problem.field, len(problem.segment.times)
        parts, absent = len(problem.segment.polynomials), bool(TAYLOR.problem)
        values = len(field.states) * (1 + problem.pattern.directions)
        if parts >= (FEW_PARTS if absent else MANY_PARTS):
            most = parts * (PART + PART_VALUE * values) * (SLOWER if absent else 1.0)
        elif absent and len(field.states) >= MANY_STATES and outputs >= OUTPUTS_IN_CLOSED_FORM:
            most = outputs * OUTPUT
        else:
            return None
        recursion = self._recursion(field, problem.pattern)
        return None if recursion is None else recursion.integrate(problem, most)

    def _recursion(self, field: VectorField, pattern: SensitivityPattern) -> Recursion | None:
        key = field, pattern
        if key not in self._recursions:
            equations = self._equations(field)
            self._recursions[key] = None
            if equations is not None and not import_problem("numba"):
                from odefit.simulation.engines.linear.recursion import Recursion

                self._recursions[key] = Recursion(equations, pattern)
        return self._recursions[key]

    def _equations(self, field: VectorField) -> LinearEquations | None:
        if not self._allowed or import_problem("casadi"):
            return None
        from odefit.simulation.engines.linear.equations import linear_equations

        return linear_equations(field)


def seem_linear(field: VectorField) -> bool:
    """Return whether equations without inputs are linear in the states at random points.

    It takes a few evaluations, where the coefficients take CasADi.
    """
    if field.algebraic or not field.smooth:
        return False
    rng = np.random.default_rng(0)
    scalars = dict(zip(field.scalars, rng.uniform(0.5, 2.0, len(field.scalars)), strict=True))
    x, y = rng.uniform(0.5, 2.0, (2, len(field.states)))

    def rates(states: Array) -> Array:
        values: dict[str, Any] = dict(zip(field.states, states, strict=True))
        return np.array(field.rhs({**values, **scalars, TIME: 0.7}, NUMPY), dtype=float)

    with np.errstate(all="ignore"):
        at_x, at_y, at_both, at_zero = rates(x), rates(y), rates(x + y), rates(np.zeros(len(x)))
        return bool(np.allclose(at_both + at_zero, at_x + at_y, rtol=1e-9, atol=1e-12))
