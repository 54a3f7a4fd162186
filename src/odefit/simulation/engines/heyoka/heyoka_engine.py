"""Explicit engine: heyoka's Taylor method on the variational equations.

Compact mode at optimisation level 1 was measured best from process start to result. It takes 0.07
to 0.17 s to compile (full optimisation 0.2 to 7 s), at 1.2 to 2 times its run time. Accuracy costs
a Taylor method little, so the tolerance is well below the needs of fits: between 1e-9 and 1e-12 a
step grows by a quarter.

heyoka's batch mode integrates as many problems at once as a vector of the processor has lanes:

- :class:`HeyokaEngine` spreads many directions of one trajectory over the lanes, each of which
  integrates the states and its share of the sensitivities. Measured, this makes Crauste's 18
  directions 3 times and a chain's 50 directions 4 times faster; a handful of directions gains
  nothing.
- :mod:`odefit.simulation.engines.heyoka.heyoka_batches` has one initial value problem in each lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import heyoka as hy
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine import (
    LOST_DIGITS,
    UNSEEN,
    Engine,
    EngineFailure,
    SegmentSolution,
    Values,
    smallest_share,
)
from odefit.simulation.engines.heyoka.heyoka_equations import (
    LANES,
    VariationalEquations,
    failure_of,
    index_arrays,
    multiplier_places,
)
from odefit.simulation.engines.heyoka.heyoka_walk import HeyokaWalk
from odefit.simulation.engines.segments import Segment
from odefit.simulation.engines.steps import DIRECTIONS_IN_LANES

WALKED_STEPS = 10
"""Number of steps to which a step in units of each state's own size is equivalent, when engines are
compared."""

SUBSTITUTE_STEPS = 2  # steps of the substitute that take as long as one of this engine

HOPELESS_STEPS = 1e9
"""Number of steps that the substitute would still need beyond which it stands at a singularity."""

SMALL = 0.1
"""Largest magnitude of states below which they are integrated in a common unit of their size. The
tolerance of heyoka is absolute below 1, and an answer must not depend on the unit.
"""

if TYPE_CHECKING:
    from odefit.simulation.engines.narrow_features import NarrowFeatures

LONG_INTEGRATION = 1_500_000
"""Steps times equations above which the integrator checks after each step whether to stop: such an
integration takes half a second, and the checks add at most 8 %. Shorter integrations are not
checked."""


class HeyokaEngine:
    """Taylor integration of states and sensitivities along one segment after the other.

    The field is smooth and has no algebraic variables. The tolerance is relative and absolute, on
    the largest component; small states are integrated in a common unit of their size. If that is
    not enough for a state that is small compared with others, each is integrated in its own unit.
    If digits may be lost by a larger factor `lost` than usual, as in searches, states are assumed
    to be at least as large as measured. A `substitute`, whose error control sees each component,
    integrates such problems in place of this engine, unless it fails.
    """

    name = "heyoka"

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        tolerance: float,
        features: NarrowFeatures | None = None,
        measured: Sequence[float] = (),
        lost: float = LOST_DIGITS,
        substitute: Callable[[], Engine | None] = lambda: None,
    ) -> None:
        self._substitute = substitute
        self._lost = lost
        self._measured = np.array(measured) if measured else np.zeros(len(field.states))
        self._arguments = field, pattern, tolerance, features
        self._n, self._p = len(field.states), len(field.scalars)
        self._m = pattern.directions
        self._lanes = LANES if self._m >= DIRECTIONS_IN_LANES else 1
        # Direction k is column k % columns of lane k // columns.
        self._columns = math.ceil(self._m / self._lanes)
        self._entries = index_arrays(sorted(pattern.entries))

    @cached_property
    def _walk(self) -> HeyokaWalk:
        return HeyokaWalk(*self._arguments)

    @cached_property
    def _plain_equations(self) -> VariationalEquations:
        return self._equations(scaled=False)

    @cached_property
    def _scaled_equations(self) -> VariationalEquations:
        return self._equations(scaled=True)

    @cached_property
    def _entries_in_lanes(self) -> list[tuple[int, int]]:
        """The pairs of a scalar and a column of any lane whose sensitivities may not be zero."""
        return sorted({(j, k % self._columns) for j, k in self._arguments[1].entries})

    def _equations(self, *, scaled: bool) -> VariationalEquations:
        field, _, tolerance, _ = self._arguments
        shape = self._columns, self._entries_in_lanes, self._lanes
        return VariationalEquations(field, *shape, tolerance, scaled=scaled)

    def _equations_in(self, unit: float) -> VariationalEquations:
        """Return the equations of states and sensitivities in a unit."""
        if unit == 1.0:
            return self._plain_equations
        self._scaled_equations.set_scales(np.full(self._n, unit))
        return self._scaled_equations

    def _unit(self, states: Array) -> float:
        """Return the unit in which the largest state is about 1, or 1 for larger states."""
        largest = float(max(np.abs(states).max(), self._measured.max()))
        return 2.0 ** math.floor(math.log2(largest)) if 0.0 < largest < SMALL else 1.0

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Rows and lanes of the sensitivities of scalars among the parameters, in any unit."""
        field, pattern, *_ = self._arguments
        place, columns = multiplier_places(field, self._entries_in_lanes), self._columns
        entries = sorted(pattern.entries)
        return index_arrays([(place[j, k % columns], k // columns) for j, k in entries])

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engines.engine.Engine`."""
        unit = self._unit(initial.states)
        begin = smallest_share(initial.states / unit)
        if begin < UNSEEN or self._watched(initial.scalars):
            return self._walked(segment, initial, max_steps)
        solution = self._in_unit(unit, segment, initial, max_steps)
        if isinstance(solution, SegmentSolution):
            reached = np.abs(solution.states).max(axis=0)
            sizes = np.maximum(np.abs(initial.states), reached)
            if self._lost > LOST_DIGITS:
                sizes = np.maximum(sizes, self._measured)
            if smallest_share(sizes / unit) * self._lost >= 1.0:
                return solution
        elif solution.out_of_steps or begin * self._lost >= 1.0:
            # Series of x^3 are not defined at x = 0, where the derivatives are.
            at_start = solution.steps == 0 and not initial.states.all()
            other = self._by_substitute(segment, initial, max_steps) if at_start else None
            return solution if other is None else other
        return self._walked(segment, initial, max_steps)

    def _walked(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """Integrate by the substitute, else in units of each state's own size, step by step."""
        solved = self._by_substitute(segment, initial, max_steps)
        if solved is not None:
            return solved
        solution = self._walk.integrate(segment, initial, max_steps)
        # Checks in Python take several times as long as a step.
        return replace(solution, steps=WALKED_STEPS * solution.steps)

    def _by_substitute(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure | None:
        """Integrate by the substitute; None without one, or if it stands at a singularity."""
        if (substitute := self._substitute()) is None:
            return None
        solved = substitute.integrate(segment, initial, SUBSTITUTE_STEPS * max_steps)
        if isinstance(solved, SegmentSolution) or (
            solved.out_of_steps and solved.steps_ahead < HOPELESS_STEPS
        ):
            return replace(solved, steps=math.ceil(solved.steps / SUBSTITUTE_STEPS))
        return None

    def _watched(self, scalars: Array) -> bool:
        features = self._arguments[3]
        return features is not None and features.acts(scalars)

    def _in_unit(
        self, unit: float, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """Integrate in one unit of all states, under heyoka's own error control."""
        n, m, p = self._n, self._m, self._p
        equations = self._equations_in(unit)
        pars = equations.pars
        pars[:p] = initial.scalars[:, None]
        pars[self._places] = initial.scalar_sensitivities[self._entries]
        state = np.zeros((equations.size, self._lanes))
        state[:n] = initial.states[:, None] / unit
        state[n:] = self._by_lane(initial.sensitivities) / unit
        rows: list[Array] = []
        steps = 0
        parts = segment.smooth_parts
        if self._lanes == 1 and len(parts) > 1 and all(len(part.times) == 1 for part in parts):
            done = self._from_knot_to_knot(equations, segment, state, max_steps)
            if isinstance(done, EngineFailure):
                return done
            (values, steps), parts = done, []
            rows.append(values[[part.end_is_wanted for part in segment.smooth_parts], :, None])
        for start, times, polynomials, end_is_wanted in parts:
            pars[p : equations.first_multiplier] = polynomials.reshape(-1, 1)
            out, taken, stopped = self._propagate(equations, start, times, state, max_steps - steps)
            steps += taken
            if stopped is not None:
                outcome, time, step = stopped
                return failure_of(outcome, time, steps, segment.times[-1], step)
            rows.append(out[1:] if end_is_wanted else out[1:-1])
            state = out[-1].copy()
            state[:n] = out[-1, :n, :1]
        values = rows[0] if len(rows) == 1 else np.concatenate(rows)
        if unit != 1.0:
            values = unit * values
        count = len(values)
        # (time, column, state, lane) to (time, state, lane, column): lanes hold consecutive shares.
        columns = values[:, n:].reshape(count, self._columns, n, self._lanes).transpose(0, 2, 3, 1)
        sensitivities = columns.reshape(count, n, self._lanes * self._columns)[:, :, :m]
        return SegmentSolution.without_algebraic(values[:, :n, 0], sensitivities, steps)

    def _from_knot_to_knot(
        self, equations: VariationalEquations, segment: Segment, state: Array, max_steps: int
    ) -> tuple[Array, int] | EngineFailure:
        """Integrate parts without outputs inside them; return values at their ends, and steps.

        At a knot nothing but the inputs is set again, and no grid is made: these would take four
        times as long as the integration.
        """
        ends = np.append(segment.breakpoints, segment.times[-1])
        inputs = segment.polynomials.reshape(len(ends), -1)
        equations.pars[self._p : equations.first_multiplier, 0] = inputs[0]
        ta = equations.start(segment.start, state)
        # The integrator has no places for inputs that the equations do not use.
        present, parameters = ta.state, ta.pars[self._p : equations.first_multiplier]
        inputs = inputs[:, : len(parameters)]
        values, steps, ended = np.empty((len(ends), len(state))), 0, cut_off()
        for k, end in enumerate(ends.tolist()):
            parameters[:] = inputs[k]
            outcome, _, _, taken, *_ = ta.propagate_until(end, max_steps=max(1, max_steps - steps))
            steps += taken
            values[k] = present
            if ended.reached:
                outcome = hy.taylor_outcome.cb_stop
            if outcome != hy.taylor_outcome.time_limit:
                time = float(ta.time) if math.isfinite(ta.time) else float(segment.start)
                last = float(segment.times[-1])
                return failure_of(outcome, time, steps, last, abs(float(ta.last_h)))
        if not np.isfinite(values[-1]).all():
            last = float(segment.times[-1])
            return failure_of(hy.taylor_outcome.err_nf_state, last, steps, last, 0.0)
        return values, steps

    def _by_lane(self, sensitivities: Array) -> Array:
        """Return sensitivities, shape (n, m), as lanes hold them, shape (columns * n, lanes)."""
        full = np.zeros((self._n, self._lanes * self._columns))
        full[:, : self._m] = sensitivities
        shares = full.reshape(self._n, self._lanes, self._columns).transpose(2, 0, 1)
        return shares.reshape(self._columns * self._n, self._lanes)

    def _propagate(
        self,
        equations: VariationalEquations,
        start: float,
        times: Array,
        state: Array,
        max_steps: int,
    ) -> tuple[Array, int, tuple[Any, float, float] | None]:
        """Integrate from `start` through `times`.

        Returns the solution at `start` and `times`, shape (k, size, lanes), as `values` and the
        number of steps taken as `steps`. If the integration stopped early, `stopped` has heyoka's
        outcome, the time, and the length of the last step.
        """
        ta = equations.start(start, state)
        # heyoka's grid begins at the integrator's present time.
        grid = np.concatenate([[start], times])
        limit = max(1, max_steps)
        asking: dict[str, Any] = {}
        if limit * equations.size >= LONG_INTEGRATION:
            ended = cut_off()
            asking["callback"] = lambda _: not ended.reached
        if self._lanes == 1:
            outcome, _, _, steps, _, out = ta.propagate_grid(grid, max_steps=limit, **asking)
            results = [(outcome, steps)]
            out = out[:, :, None]
            ends, lengths = [ta.time], [ta.last_h]
        else:
            _, out = ta.propagate_grid(
                np.repeat(grid[:, None], self._lanes, axis=1), max_steps=limit, **asking
            )
            results = [(outcome, steps) for outcome, _, _, steps in ta.propagate_res]
            ends, lengths = ta.time, ta.last_h
        steps = max(taken for _, taken in results)
        for (outcome, _), end, length in zip(results, ends, lengths, strict=True):
            if outcome != hy.taylor_outcome.time_limit:
                time = float(end) if math.isfinite(end) else start
                return out, steps, (outcome, time, float(abs(length)))
        if len(out) < len(grid) or not np.isfinite(out[-1]).all():
            return out, steps, (hy.taylor_outcome.err_nf_state, float(times[-1]), 0.0)
        return out, steps, None
