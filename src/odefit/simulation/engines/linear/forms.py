"""The forms in which the linear equations of several fields are solved, and the choice of one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import Integration, SegmentSolution
from odefit.simulation.engines.linear.closed_form import MOST_STATES, ClosedForm, time_of
from odefit.simulation.engines.registry import EXPLICIT, TAYLOR, import_problem

if TYPE_CHECKING:
    from odefit.simulation.engines.linear.equations import LinearEquations
    from odefit.simulation.engines.linear.recursion import Recursion

OUTPUTS_IN_CLOSED_FORM = 100
"""Least number of outputs for which fast linear equations are solved in closed form at once.
Outputs raise the step limit of explicit methods, which then take many steps."""

FAST = 1e3
"""Product of an eigenvalue and the time above which explicit methods take hundreds of steps."""

SHARE = 0.5
"""Product of an eigenvalue and the time, over the number of outputs, below which outputs cost more
than explicit steps."""

MANY_PARTS, FEW_PARTS = 32, 6
"""Least number of parts of a segment for which linear equations with inputs are solved step by
step: if the Taylor method is installed, and if not. With fewer parts the preparation would take
longer."""

PART, PART_VALUE = 5_000.0, 150.0
"""Time of the Taylor method for a part, and for each state or sensitivity in it, in ns."""

MANY_STATES, OUTPUT = 5, 2_000.0
"""Least number of states for which many outputs are computed step by step without the Taylor
method, and the largest time for each output, in ns. Eigenvectors of so many states take longer."""

SLOWER = 8.0  # the explicit engine's time for a part, relative to that of the Taylor method

FEWEST = 4
"""Smallest number of conditions, with equally many unknowns, that are computed together: fewer are
faster by the engines."""

Key = tuple[VectorField, SensitivityPattern]


class LinearForms:
    """The forms of linear equations, each made at its first use.

    None is made unless `allowed`: the choice of an engine must be free.
    """

    def __init__(self, *, allowed: bool) -> None:
        self._allowed = allowed
        self._linear: dict[VectorField, bool] = {}
        self._closed: dict[Key, ClosedForm | None] = {}
        self._recursions: dict[Key, Recursion | None] = {}

    def closed(self, field: VectorField, pattern: SensitivityPattern) -> ClosedForm | None:
        """Return the closed form of a field; None if its equations have no closed form."""
        key = field, pattern
        if key not in self._closed:
            equations = self._equations(field) if self._may_be_closed(field) else None
            self._closed[key] = None if equations is None else ClosedForm(equations, pattern)
        return self._closed[key]

    def _may_be_closed(self, field: VectorField) -> bool:
        """Return whether equations seem to have a closed form, which is not made yet."""
        if field not in self._linear:
            few = len(field.states) <= MOST_STATES and not field.inputs
            possible = few and self._allowed and not import_problem("casadi")
            self._linear[field] = possible and seem_linear(field)
        return self._linear[field]

    def need_no_taylor(self, field: VectorField) -> bool:
        """Return whether equations that may have a closed form are never compiled for heyoka.

        odefit's own explicit engine integrates them in few steps, and the closed form replaces
        many. For few states, compilation takes as long as ten thousand such integrations.
        """
        few = len(field.states) <= MANY_STATES
        return few and self._may_be_closed(field) and not EXPLICIT.problem

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
        if self.need_no_taylor(problem.field) or TAYLOR.problem:
            return True
        return fast > max(FAST, SHARE * len(problem.segment.times))

    def time(self, problem: Integration) -> float:
        """Return the time of a solution in closed form, in ns; infinite without such a form."""
        may_be = self._may_be_closed(problem.field)
        return time_of(len(problem.segment.times)) if may_be else math.inf

    def solution(self, problem: Integration) -> SegmentSolution | None:
        """Return the solution of a segment; None if another engine has to integrate it."""
        form = self.closed(problem.field, problem.pattern)
        return None if form is None else form.integrate(problem.segment, problem.initial)

    def step_by_step(self, problem: Integration) -> SegmentSolution | None:
        """Return the solution of a segment with many parts or outputs; None if there are few."""
        if not self._allowed:
            return None
        field, outputs = problem.field, len(problem.segment.times)
        parts = len(problem.segment.polynomials)
        absent = self.need_no_taylor(field) or bool(TAYLOR.problem)
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
            if equations is not None and not import_problem("llvmlite"):
                from odefit.simulation.engines.linear.recursion import Recursion

                self._recursions[key] = Recursion(equations, pattern)
        return self._recursions[key]

    def _equations(self, field: VectorField) -> LinearEquations | None:
        if not self._allowed or import_problem("casadi"):
            return None
        from odefit.simulation.engines.linear.equations import linear_equations

        return linear_equations(field)


def seem_linear(field: VectorField) -> bool:
    """Return whether equations without inputs seem linear in the states, at all times alike.

    This needs a few evaluations at random points, whereas the coefficients need CasADi.
    """
    if field.algebraic or not field.smooth:
        return False
    rng = np.random.default_rng(0)
    scalars = dict(zip(field.scalars, rng.uniform(0.5, 2.0, len(field.scalars)), strict=True))
    x, y = rng.uniform(0.5, 2.0, (2, len(field.states)))

    def rates(states: Array, time: float = 0.7) -> Array:
        values: dict[str, Any] = dict(zip(field.states, states, strict=True))
        return np.array(field.rhs({**values, **scalars, TIME: time}, NUMPY), dtype=float)

    with np.errstate(all="ignore"):
        at_x, at_y, at_both, at_zero = rates(x), rates(y), rates(x + y), rates(np.zeros(len(x)))
        later = rates(x, 2.3)
        linear = np.allclose(at_both + at_zero, at_x + at_y, rtol=1e-9, atol=1e-12)
        return bool(linear and np.allclose(at_x, later, rtol=1e-9, atol=1e-12))
