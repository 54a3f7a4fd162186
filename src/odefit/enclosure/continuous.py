"""Weighted residuals of a problem over boxes of unknowns, in continuous time.

Every condition is followed from its initial values through all events to its last measurement, by
three enclosures at once. The first has steps with Taylor polynomials in time
(:mod:`odefit.enclosure.flow`). The second, for linear stiff equations, has powers of an affine map
(:mod:`odefit.enclosure.affine_maps`). The third, where the series have failed, has intervals from
differential inequalities (:mod:`odefit.enclosure.differential_inequalities`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.enclosure.affine_maps import LinearODE, StiffAffineFlow
from odefit.enclosure.arithmetic.intervals import Interval, evaluated
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.differential_inequalities import DifferentialInequalities, StateIntervals
from odefit.enclosure.error_propagation import ErrorBound
from odefit.enclosure.flow import Flow, StepControl
from odefit.enclosure.likelihood.priors import PriorResiduals
from odefit.enclosure.likelihood.spreads import Spreads
from odefit.enclosure.residuals import (
    Residuals,
    ResidualsAtTime,
    influences,
    known_at,
    of_priors,
    variables,
)
from odefit.enclosure.sharpness import Sharpness
from odefit.enclosure.state_enclosure import StateEnclosure
from odefit.enclosure.system import System
from odefit.enclosure.taylor_step import StepMethod
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.registry import import_problem
from odefit.simulation.residuals.noise import sds_about

ORDER = 10
"""Number of coefficients of the Taylor polynomials in time."""

STABILITY_COST = 8.0
"""Number of steps for which a step counts that is short only for stability, if all states keep
their signs: intervals are then informative without any steps."""


class Enclosure:
    """The residuals of a problem over boxes, in continuous time.

    They are polynomials of `degree` in the unknowns, from Taylor polynomials with `order`
    coefficients in time, sharper by some levels (:mod:`odefit.enclosure.sharpness`). `lower_bound`
    of the objective holds for any unknowns. `unique_solution` is true if the equations have one
    solution for each value of the unknowns. `influence`, shape (R, n), is one where an unknown acts
    on a residual. The objective is the sum of squares plus `offset`; residuals `of_spreads`, shape
    (R,), belong to spreads that depend on unknowns. Those that are `composed` are functions of
    predictions, or of unknowns, whose polynomials may be replaced by ranges. Raises InputError if
    equations or noise cannot be enclosed.
    """

    scope = "continuous time"
    discretised = False
    lower_bound = 0.0
    unique_solution = True

    def __init__(
        self, problem: Problem, degree: int = 2, order: int = ORDER, level: int = 0
    ) -> None:
        self.problem = problem
        self._degree, self._order = degree, order
        self._sharper: dict[int, Enclosure | None] = {0: self}
        sharpness = Sharpness(degree).raised(level)
        self.monomials = Monomials.of(len(problem.unknowns), sharpness.degree)
        self._conditions = [
            _Condition(problem, c, self.monomials, order, sharpness) for c in problem.conditions
        ]
        self._priors = PriorResiduals(problem)
        self.size = sum(c.size for c in self._conditions) + self._priors.size
        self.offset = self._priors.offset + sum(c.spreads.offset for c in self._conditions)
        self.of_spreads = np.concatenate(
            [*(c.of_spreads for c in self._conditions), np.zeros(self._priors.size, dtype=bool)]
        )
        self.composed = np.concatenate(
            [*(c.composed for c in self._conditions), self._priors.composed]
        )
        self.influence = np.concatenate(
            [*(c.influence for c in self._conditions), self._priors.influence]
        )

    @cached_property
    def compiled(self) -> Enclosure:
        """Return the same enclosure by compiled code, which agrees to within rounding.

        It is many times faster. Its compilation takes some ten seconds, once on each computer.
        """
        twin = copy(self)
        twin._conditions = [condition.compiled() for condition in self._conditions]
        return twin

    def sharper(self, level: int) -> Enclosure | None:
        """Return an enclosure that is sharper by some levels; None with too many monomials."""
        if level not in self._sharper:
            try:
                enclosure: Enclosure | None = Enclosure(
                    self.problem, self._degree, self._order, level
                )
            except InputError:
                enclosure = None
            self._sharper[level] = enclosure
        return self._sharper[level]

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Return the residuals over boxes with these corners, shapes (B, n).

        Once the residuals exceed `radius` in a box, the others of the condition are not computed
        and remain unknown. So are all others after a cut-off
        (:mod:`odefit.simulation.engines.cut_off`).
        """
        models = variables(self.monomials, lower, upper)
        corners = [Interval(*ends) for ends in zip(lower.T, upper.T, strict=True)]
        squares = np.zeros(len(lower))
        with np.errstate(all="ignore"):
            parts = [
                _Traversal(c, models, corners, squares, radius**2).residuals()
                for c in self._conditions
            ]
            return Residuals.joined([*parts, of_priors(self._priors, models)])


class _Condition:
    """One condition, with all data that do not depend on the boxes.

    `stops` are times after t0 up to which the solution is smooth, or times of measurements;
    `linear` has the linear ODEs of modes, by the time at which they begin.
    """

    def __init__(
        self,
        problem: Problem,
        condition: Condition,
        monomials: Monomials,
        order: int,
        sharpness: Sharpness,
    ) -> None:
        self.condition, self.monomials = condition, monomials
        self.system = System(problem, condition)
        self.spreads = Spreads(self.system)
        self.measured = [
            ResidualsAtTime(self.system, row, self.spreads) for row in range(len(condition.times))
        ]
        self.size = condition.size + len(self.spreads.terms)
        self.of_spreads = np.arange(self.size) >= condition.size
        self.influence = influences(self.measured, self.size)
        self.composed = np.zeros(self.size, dtype=bool)
        self.lined = any(any(measured.lined) for measured in self.measured)
        for measured in self.measured:
            self.composed[measured.places] = measured.composed
        states = problem.model.states
        tolerance = np.full(len(states), sharpness.accuracy * self._smallest_deviation(problem))
        steps = sharpness.step_norm, sharpness.step_cost
        self._method = StepMethod(self.system, monomials, order, tolerance, *steps)
        self.flow = Flow(self._method)
        self.inequalities = DifferentialInequalities(self.system)
        self.events = [
            (time, *self.system.jump(assign, time))
            for time, assign in condition.events
            if any(name in states for name in assign)
        ]
        last = float(condition.times[-1])
        stops = {t for t in self.system.breaks if t < last} | {float(t) for t in condition.times}
        self.stops = sorted(t for t in stops if t > condition.t0)
        spans = [
            Fraction(b) - Fraction(a) for a, b in itertools.pairwise([condition.t0, *self.stops])
        ]
        self.linear = {
            mode.begin: LinearODE.of(self.system, mode, monomials, spans)
            for mode in self.system.modes
        }

    def compiled(self) -> _Condition:
        """Return the same condition with compiled code, where there is some for its operations."""
        if import_problem("numba"):
            return self
        # numba takes a second to import.
        from odefit.enclosure.kernels.comparison import highest
        from odefit.enclosure.kernels.flow import CompiledFlow

        twin = copy(self)
        twin.inequalities = DifferentialInequalities(self.system, highest)
        if CompiledFlow.suits(self._method):
            twin.flow = CompiledFlow(self._method)
        return twin

    def _smallest_deviation(self, problem: Problem) -> float:
        """Return the smallest standard deviation, or a tenth of the data's range without one."""
        deviations = []
        for name, series in self.condition.series.items():
            noise = problem.noise.get(name, Noise())
            sd = float(np.min(sds_about(noise, series, self.spreads.typical(name))))
            if noise.transform is not None:
                sd *= float(np.min(series.values)) * log_of_base(noise.transform)
            data_range = float(np.ptp(series.values)) or 1.0
            deviations.append(min(sd, data_range) if sd != 1.0 else 0.1 * data_range)
        return min(deviations)


class _Traversal:
    """One condition over some boxes: from its initial values through all events to all data.

    The unknowns are given as Taylor models and as intervals. `squares`, shape (B,), are lower
    bounds of earlier residuals' sums of squares; a box is refuted from `limit` on.
    """

    def __init__(
        self,
        condition: _Condition,
        models: Sequence[TaylorModel],
        corners: Sequence[Interval],
        squares: Array,
        limit: float,
    ) -> None:
        self._condition, self._squares, self._limit = condition, squares, limit
        self._radius = limit**0.5
        system, run, boxes = condition.system, condition.condition, len(squares)
        self._system, self._boxes = system, boxes
        self._unknowns = dict(zip(system.unknowns, models, strict=True))
        self._ranges = dict(zip(system.unknowns, corners, strict=True))
        initial = system.initial
        start = initial.constants(condition.monomials, self._unknowns, boxes)
        ranges = evaluated(system.tape, initial.order, self._ranges, boxes)
        time = run.t0
        self._states = StateEnclosure.of([start[term.index] for term in initial.terms])
        self._intervals = condition.inequalities.start(
            [ranges[term.index] for term in initial.terms], time
        )
        self._time, self._smooth_until = time, -np.inf
        self._signs: list[Interval] = []
        span = float(run.times[-1]) - time
        first = np.full(boxes, span / 8 if span > 0 else 1.0)
        self._control = StepControl(first, np.zeros(boxes), np.ones(boxes))
        self._stiff: StiffAffineFlow | None = None

    def residuals(self) -> Residuals:
        """Return all residuals of the condition."""
        measured = self._condition.measured
        monomials = self._condition.monomials
        residuals_so_far = Residuals.zeros(
            self._condition.size, len(monomials), self._boxes, self._condition.lined
        )
        for stop in [self._time, *self._condition.stops]:
            if cut_off().reached:
                for left in measured:
                    residuals_so_far.remainder[left.places] = np.inf
                return residuals_so_far
            if stop > self._time:
                self._states.error.forget(self._squares > self._limit)
                self._jump()
                self._advance(stop)
            # A measurement at the time of an event observes the states before it.
            while measured and measured[0].time <= self._time:
                first, *measured = measured
                states = self._states.models(self._intervals.states)
                part_residuals = first.of(states, self._unknowns, monomials, self._radius)
                lost = first.uses @ ~np.isfinite(self._states.error.sizes).T > 0
                part_residuals = part_residuals.informative(lost)
                residuals_so_far.put(first.places, part_residuals)
                self._squares += part_residuals.squares_bound()
        return residuals_so_far

    def _advance(self, end: float) -> None:
        """Go to the next stop."""
        condition, begin = self._condition, self._time
        new_mode = begin in condition.linear
        if begin >= self._smooth_until:
            smooth = min([t for t in self._system.breaks if t > begin], default=np.inf)
            self._smooth_until = min(smooth, condition.stops[-1])
            self._signs = condition.inequalities.signs(
                self._intervals.states, self._ranges, begin, self._smooth_until
            )
            signed = np.all([s.signed for s in self._signs], axis=0)
            self._control.stability_cost = np.where(signed, STABILITY_COST, 1.0)
        if begin == condition.condition.t0 or new_mode:
            linear = condition.linear[self._system.mode_at(begin).begin]
            left = condition.stops[-1] - begin
            self._stiff = None
            if linear is not None:
                self._stiff = linear.stiff_flow(self._unknowns, self._boxes, left)
        if self._stiff is not None:
            self._stiff = self._stiff.without(self._squares > self._limit)
        arguments = self._states, self._unknowns, begin, end, self._control
        if self._stiff is None:
            self._states = condition.flow.advance(*arguments)
        else:
            self._states = self._stiff.advance(condition.flow, *arguments)
        self._intervals = self._intervals_at(end)
        self._time = end

    def _intervals_at(self, end: float) -> StateIntervals:
        """Return the intervals of the states at the next stop.

        Differential inequalities are used if series have failed for a state whose interval is
        bounded, and the box is not refuted.
        """
        inequalities, states = self._condition.inequalities, self._signs
        unknown = ~np.isfinite(self._states.error.sizes)
        bounded = np.stack(
            [np.isfinite(s.low) & np.isfinite(s.high) for s in self._intervals.states], axis=1
        )
        lost = (unknown & bounded).any(axis=1)
        boxes = np.flatnonzero((self._squares <= self._limit) & lost)
        if len(boxes):
            ranges = {i: r.take(boxes) for i, r in self._ranges.items()}
            start = self._intervals.take(boxes)
            after = inequalities.advance(start, ranges, self._time, end).states
            states = [
                s.put(boxes, s.take(boxes).within(a)) for s, a in zip(states, after, strict=True)
            ]
        states = [r.within(s) for r, s in zip(self._states.ranges(), states, strict=True)]
        if end in self._condition.linear:
            return inequalities.start(states, end)
        return StateIntervals(states, self._intervals.totals)

    def _jump(self) -> None:
        """Apply all events at the current time that set states."""
        system, monomials, boxes = self._system, self._condition.monomials, self._boxes
        time = self._time
        for at, places, program in self._condition.events:
            if at != time:
                continue
            states = self._states.models(self._intervals.states)
            known = known_at(system, states, self._unknowns, monomials, time)
            after = program.evaluate(monomials, known, boxes)
            c, sizes = self._states.c.copy(), self._states.error.sizes.copy()
            for place, term in zip(places, program.terms, strict=True):
                c[place] = after[term.index].c[:, 0]
                sizes[:, place] = after[term.index].remainder
            self._states = StateEnclosure(monomials, c, ErrorBound.of(sizes))
            within = self._ranges | dict(zip(system.states, self._intervals.states, strict=True))
            within[system.time] = Interval.number(Fraction(time), boxes)
            for name, entry in system.inputs.items():
                within[entry] = Interval.number(system.input_at(name, time), boxes)
            values = evaluated(system.tape, program.order, within, boxes)
            intervals, ranges = list(self._intervals.states), self._states.ranges()
            for place, term in zip(places, program.terms, strict=True):
                intervals[place] = ranges[place].within(values[term.index])
            self._intervals = self._condition.inequalities.start(intervals, time)
