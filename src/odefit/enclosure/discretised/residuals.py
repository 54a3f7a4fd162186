"""Residuals of a discretised problem over boxes of unknowns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.mesh import Mesh, segments
from odefit.discretisation.schemes import Scheme
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.discretised.krawczyk import PointEnclosure
from odefit.enclosure.discretised.projection_bound import Readout, projection_bound
from odefit.enclosure.discretised.right_hand_sides import depends_on_states
from odefit.enclosure.discretised.segment_enclosure import OpenBoxes, SegmentEnclosure
from odefit.enclosure.likelihood.priors import PriorResiduals
from odefit.enclosure.residuals import (
    Residuals,
    ResidualsAtTime,
    influences,
    of_priors,
    variables,
)
from odefit.enclosure.system import System
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import cut_off


class DiscretisedEnclosure:
    """Encloses a discretised problem's residuals, like :class:`odefit.enclosure.Enclosure`."""

    discretised = True

    def __init__(self, problem: Problem, scheme: Scheme, mesh: Mesh, degree: int = 2) -> None:
        for name, noise in problem.noise.items():
            if noise.transform is not None:
                raise InputError(
                    f'noise.{name}, transform = "{noise.transform}": residuals of logarithms can '
                    "be enclosed in continuous time only; leave out scheme, or take the logarithms "
                    "as the data"
                )
        self.problem = problem
        self.monomials = Monomials.of(len(problem.unknowns), degree)
        self._conditions = [
            _Condition(problem, number, scheme, mesh, self.monomials)
            for number in range(len(problem.conditions))
        ]
        self._priors = PriorResiduals(problem)
        self.size = problem.size + self._priors.size
        self.offset, self.of_spreads = self._priors.offset, np.zeros(self.size, dtype=bool)
        self.composed = self.of_spreads
        self.influence = np.concatenate(
            [*(c.influence for c in self._conditions), self._priors.influence]
        )
        self.lower_bound = sum(c.projection_bound() for c in self._conditions)
        steps = sum(c.steps for c in self._conditions)
        self.scope = f"discretised ({scheme.name}, M = {steps})"
        self.unique_solution = all(c.unique_solution for c in self._conditions)

    @property
    def compiled(self) -> DiscretisedEnclosure:
        """Return the enclosure itself, which has no compiled code."""
        return self

    def sharper(self, level: int) -> DiscretisedEnclosure | None:
        """Return the enclosure itself for no levels more; None for others."""
        return None if level else self

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Return the residuals over boxes with these corners, shapes (B, n).

        Once the residuals of a box exceed `radius`, all later ones have infinite remainders. So
        have all that would be computed after a cut-off (:mod:`odefit.simulation.engines.cut_off`).
        """
        models = variables(self.monomials, lower, upper)
        squares = np.zeros(len(lower))
        with np.errstate(all="ignore"):
            parts = [condition(models, squares, radius**2) for condition in self._conditions]
            parts.append(of_priors(self._priors, models))
        return Residuals.joined(parts)


class _Condition:
    """One condition, from its initial values to its last measurement."""

    def __init__(
        self, problem: Problem, number: int, scheme: Scheme, mesh: Mesh, monomials: Monomials
    ) -> None:
        condition = problem.conditions[number]
        self.system, self._monomials = System(problem, condition), monomials
        measured = [ResidualsAtTime(self.system, row) for row in range(len(condition.times))]
        self.influence = influences(measured, condition.size)
        # At an initial time that is measured.
        self._initial = measured[0] if measured and measured[0].time == condition.t0 else None
        self._segments: list[SegmentEnclosure] = []
        self.steps = 0
        for segment in segments(number, condition, list(problem.model.inputs), scheme, mesh):
            self.steps += len(segment.mesh) - 1
            first, last = segment.mesh[0], segment.mesh[-1]
            measured_here = [m for m in measured if first < m.time <= last]
            self._segments.append(
                SegmentEnclosure(self.system, monomials, segment, scheme, measured_here)
            )
        nonlinear = any(depends_on_states(self.system, mode) for mode in self.system.modes)
        self.unique_solution = not nonlinear or all(s.explicit for s in self._segments)

    def projection_bound(self) -> float:
        """Return a lower bound of the sum of squares, for any unknowns."""
        system, bound_so_far = self.system, 0.0
        # The equations express states by right-hand sides: fewer values, which are not always
        # independent, and exceed the measurements if there are more points.
        few = sum(segment.points for segment in self._segments) <= system.condition.size
        for by_right_hand_sides in (False, True) if few else (False,):
            pairs = [
                (residual, (number, readout))
                for number, segment in enumerate(self._segments)
                for residual, readout in segment.readouts(by_right_hand_sides)
            ]
            if self._initial is not None and self._segments and self._segments[0].continuous:
                pairs.append((self._initial, (0, Readout({0: 1.0}, {}))))
            measured = [residual for residual, _ in pairs]
            readouts = [readout for _, readout in pairs]
            bound = projection_bound(measured, readouts, system.states, system.unknowns)
            bound_so_far = max(bound_so_far, bound)
        return bound_so_far

    def __call__(self, models: Sequence[TaylorModel], squares: Array, limit: float) -> Residuals:
        """Return the residuals of the condition, as polynomials in boxes.

        `squares`, shape (B,), are sums of earlier residuals; a box is excluded above `limit`.
        """
        system = self.system
        boxes = OpenBoxes(system, self._monomials, models, squares, limit)
        begun = system.initial.constants(self._monomials, boxes.unknowns, len(squares))
        point = PointEnclosure.of([begun[term.index] for term in system.initial.terms])
        if self._initial is not None:
            boxes.measure(self._initial, point)
        for segment in self._segments:
            point = segment(segment.after_event(point, boxes.unknowns), boxes)
            if not len(boxes) or cut_off().reached:
                break
        return boxes.residuals
