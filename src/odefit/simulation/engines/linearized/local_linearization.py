"""The Local Linearization integrator, many trajectories at once.

It follows section 3.1 of the paper on multiple shooting with local linearization. Over a step the
field is replaced by its linearisation in states and time, and one block exponential solves the
linear ODE exactly. The states are of order 2, equation (25), exact for a linear field, and stable
however stiff it is (A-stable). The sensitivities, equations (26) and (27), keep the field's
derivatives fixed over the step, and only need more columns in the same exponential; they are of
order 1.

With ``order=3`` both are corrected by the defect of the linearisation at the end of the step, which
is also the error estimate of the step. The states are then of order 3, the sensitivities of order
2, for one more evaluation of the field.

Every trajectory of a batch has its own time, step and list of output times; all of them step
together, in NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.errors import InputError
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.cut_off import REASON, cut_off
from odefit.simulation.engines.engine import (
    BatchFailure,
    BatchSolution,
    EngineFailure,
    InitialValueProblems,
    SegmentSolution,
    Values,
    magnitudes,
)
from odefit.simulation.engines.linearized.exponentials import damped, phi_product
from odefit.simulation.engines.linearized.linearization import (
    Linearization,
    LinearizedField,
    where,
)
from odefit.simulation.engines.segments import Segment

Order = Literal[2, 3]

STEP_SAFETY, MIN_STEP_FACTOR, MAX_STEP_FACTOR = 0.9, 0.2, 5.0
"""Factors of the step size control: the safety factor of the next step, and the smallest and
largest change of a step."""

MIN_STEP = 4e-16  # smallest step, relative to the time and to the time span of the problem

BLOW_UP_GROWTH, BLOW_UP_TIME = 1e6, 1e-8
"""A blow-up is detected if the states have grown by the first factor and double within the second
fraction of the time so far. Following it to overflow would take ten times as many steps.
"""


@dataclass(eq=False)
class _Active:
    """The trajectories of a batch that have not ended yet, one entry for each."""

    index: IntArray  # Numbers of the trajectories in the batch
    # The next and the last time to hit, as indices into the times of the whole batch.
    target: IntArray
    last: IntArray
    # The present and initial times of the trajectories.
    time: Array
    start: Array
    # The present values.
    states: Array
    sensitivities: Array
    step: Array  # Proposed steps
    shrunk: BoolArray  # Whether the last attempt failed: the next step must not grow
    size: Array  # Sizes of each state at the start
    largest: Array  # The largest absolute value of the states at the start
    polynomials: Array  # Inputs, as in :class:`InitialValueProblems`
    longest: Array  # The longest steps that may be taken

    def keep(self, chosen: BoolArray) -> None:
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name)[chosen])


class LocalLinearizationBatchIntegrator:
    """Adaptive Local Linearization of many initial value problems at once.

    The field may have kinks, but no algebraic variables that need solving (InputError). The
    relative tolerance applies to a step's error on the largest component; the absolute one is in
    units of each state's size at the start of its problem. The errors of sensitivities limit the
    steps only with order 3. A `step` is the length of fixed steps without error control, to measure
    orders. `longest` is the longest adaptive step, relative to the time of a problem: if functions
    may be flat, a longer step could miss a feature.
    """

    name = "local-linearization"

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        relative: float,
        absolute: float,
        *,
        order: Order = 2,
        step: float | None = None,
        longest: float = math.inf,
    ) -> None:
        if field.algebraic:
            raise InputError(
                "the local-linearization engine cannot solve algebraic equations; "
                "use engine='casadi'"
            )
        self._field = field
        self._n, self._m = len(field.states), pattern.directions
        self._active = np.array(sorted({j for j, _ in pattern.entries}), dtype=np.intp)
        self._nonautonomous = field.nonautonomous
        self._relative, self._absolute = relative, absolute
        self._coarse = relative ** (2 / 3)
        self._order, self._fixed, self._longest = order, step, longest

    def integrate(
        self, problems: InitialValueProblems, max_steps: int
    ) -> BatchSolution | BatchFailure:
        """See :class:`odefit.simulation.engines.engine.BatchIntegrator`."""
        with np.errstate(all="ignore"):
            return self._integrate(problems, max_steps)

    def _integrate(
        self, problems: InitialValueProblems, max_steps: int
    ) -> BatchSolution | BatchFailure:
        targets = np.concatenate([np.zeros(0), *problems.times])
        solution = BatchSolution(
            np.empty((len(targets), self._n)),
            np.empty((len(targets), self._n, self._m)),
            np.zeros(len(problems.starts), dtype=np.intp),
        )
        linear = Linearization(
            self._field, self._active, problems.scalars, problems.scalar_sensitivities
        )
        active = self._begun(problems)
        here = linear.at(active.time, active.states, active.polynomials)
        wrong = np.flatnonzero(~here.finite)
        if len(wrong):
            reason = "the right-hand side or its derivatives are not finite"
            time = float(active.time[wrong[0]])
            return BatchFailure(int(wrong[0]), EngineFailure(time, reason))
        spans = targets[active.last - 1] - active.time
        active.size = _sizes(active.states, here.rhs, spans)
        active.longest = self._longest * spans
        active.step = self._first_steps(active, here, targets, linear)
        while len(active.index):
            passed, here = self._step(active, here, targets, linear)
            solution.steps[active.index] += 1
            if passed.any():
                rows = active.target[passed]
                solution.states[rows] = active.states[passed]
                solution.sensitivities[rows] = active.sensitivities[passed]
                active.target = active.target + passed
                going = active.target < active.last
                if not going.all():
                    active.keep(going)
                    here = here.take(going)
            failure = self._failed(active, here, targets, solution.steps, max_steps)
            if failure is not None:
                return failure
        return solution

    def _begun(self, problems: InitialValueProblems) -> _Active:
        count = len(problems.starts)
        ends = np.cumsum([len(times) for times in problems.times], dtype=np.intp)
        sensitivities = np.broadcast_to(
            problems.sensitivities, (count, *problems.sensitivities.shape)
        )
        return _Active(
            index=np.arange(count),
            target=np.concatenate([np.zeros(1, dtype=np.intp), ends[:-1]])[:count],
            last=ends,
            time=np.array(problems.starts, dtype=float),
            start=np.array(problems.starts, dtype=float),
            states=np.array(problems.states, dtype=float),
            sensitivities=sensitivities.copy(),
            step=np.zeros(count),
            shrunk=np.zeros(count, dtype=bool),
            size=np.ones(problems.states.shape),
            largest=np.abs(problems.states).max(axis=1, initial=1e-300),
            polynomials=problems.polynomials,
            longest=np.full(count, math.inf),
        )

    def _step(
        self, active: _Active, here: LinearizedField, targets: Array, linear: Linearization
    ) -> tuple[BoolArray, LinearizedField]:
        """Take one step of every active trajectory.

        Returns `hits`, the trajectories that have reached their target, and `here`, the field
        linearised at the new points.
        """
        goal = targets[active.target]
        left = goal - active.time
        if self._fixed is None:
            hits = active.step >= left
            # Two steps of equal length rather than a tiny one at the end.
            h = np.where(hits, left, np.minimum(active.step, 0.5 * np.maximum(left, active.step)))
        else:
            hits = left <= self._fixed * (1 + 1e-9)
            h = np.where(hits, left, self._fixed)
        time = np.where(hits, goal, active.time + h)
        dx, dS = self._increments(here, h, active.sensitivities)
        states, sensitivities = active.states + dx, active.sensitivities + dS
        hJ = here.jacobian * h[:, None, None]
        then: LinearizedField | None = None
        if self._order == 2:
            then = linear.at(time, states, active.polynomials)
            rhs = then.rhs
        else:
            rhs = linear.rhs(time, states, active.polynomials)
        defect = rhs - here.rhs - _times(here.jacobian, dx) - h[:, None] * here.by_time
        error = damped(hJ, (h[:, None] * defect)[:, :, None] / 3)[:, :, 0]
        size = np.maximum(np.abs(active.states), np.abs(states))
        scaled = np.abs(error) / (self._absolute * active.size + self._relative * size)
        ratio = scaled.max(axis=1, initial=0.0)
        if then is None:
            states = states + error
            then = linear.at(time, states, active.polynomials)
            if self._m:
                missed = (then.jacobian - here.jacobian) @ sensitivities
                missed += then.by_scalars - here.by_scalars
                correction = damped(hJ, missed * (0.5 * h[:, None, None]))
                sensitivities += correction
                size = np.maximum(np.abs(sensitivities), (active.size + size)[:, :, None])
                scaled = (np.abs(correction) / (self._coarse * size)).max(axis=(1, 2))
                ratio = np.maximum(ratio, scaled**1.5)
        finite = then.finite & np.isfinite(ratio)
        good = finite & ((ratio <= 1.0) | (self._fixed is not None))
        factor = np.clip(STEP_SAFETY * ratio ** (-1 / 3), MIN_STEP_FACTOR, MAX_STEP_FACTOR)
        factor = np.where(active.shrunk, np.minimum(factor, 1.0), factor)
        factor = np.where(finite, factor, MIN_STEP_FACTOR)
        proposed = h * factor
        # A step shortened by a target does not rule out the longer one proposed before.
        keep = good & ~active.shrunk & (h < active.step)
        proposed = np.where(keep, np.maximum(proposed, active.step), proposed)
        active.step = np.minimum(proposed, active.longest)
        active.shrunk = ~good
        if good.all():
            active.time, active.states, active.sensitivities = time, states, sensitivities
            return hits, then
        active.time = np.where(good, time, active.time)
        active.states = where(good, states, active.states)
        active.sensitivities = where(good, sensitivities, active.sensitivities)
        return hits & good, then.where(good, here)

    def _increments(self, here: LinearizedField, h: Array, S: Array) -> tuple[Array, Array]:
        """Return the increments of states and sensitivities over a step, by one exponential.

        As x' = f + J (x - x0) + f_t (t - t0), (x, t) solves a linear ODE with constant
        coefficients. Its increment is h phi(h A) applied to its right-hand side at the start, A =
        [[J, f_t], [0, 0]]. So do the sensitivities with the right-hand side J S + f_p P.
        """
        n, m = self._n, self._m
        wide = n + 1 if self._nonautonomous else n
        A = np.zeros((len(h), wide, wide))
        R = np.zeros((len(h), wide, 1 + m))
        step = h[:, None, None]
        np.multiply(here.jacobian, step, out=A[:, :n, :n])
        np.multiply(here.rhs, h[:, None], out=R[:, :n, 0])
        if m:
            R[:, :n, 1:] = (here.jacobian @ S + here.by_scalars) * step
        if self._nonautonomous:
            by_time = here.by_time * h[:, None]
            # In a unit of time in which f_t is as large as J, so that it needs no squarings.
            size = np.abs(by_time).sum(axis=1)
            unit = np.maximum(np.abs(A).sum(axis=1).max(axis=1), 1e-2) / size
            unit[~np.isfinite(unit)] = 1.0
            A[:, :n, n] = by_time * unit[:, None]
            R[:, n, 0] = h / unit
        increments = phi_product(A, R)
        return increments[:, :n, 0], increments[:, :n, 1:]

    def _first_steps(
        self, active: _Active, here: LinearizedField, targets: Array, linear: Linearization
    ) -> Array:
        """Return the first steps, from the defect after a hundredth of the states' change."""
        span = targets[active.last - 1] - active.time
        if self._fixed is not None:
            return np.full(len(span), self._fixed)
        size = np.abs(active.states) + active.size
        speed = (np.abs(here.rhs) / size).max(axis=1, initial=0.0)
        probe = np.minimum(0.01 / np.maximum(speed, 1e-300), 0.01 * span)
        h = probe[:, None]
        second = _times(here.jacobian, here.rhs) + here.by_time
        states = active.states + h * here.rhs
        rhs = linear.rhs(active.time + probe, states, active.polynomials)
        defect = np.abs(rhs - here.rhs - h * second)
        scale = self._absolute * active.size + self._relative * np.abs(active.states)
        curvature = (defect / scale).max(axis=1, initial=0.0) / probe**2
        step = STEP_SAFETY * (3.0 / curvature) ** (1 / 3)
        first = np.where(np.isfinite(curvature), np.minimum(step, span), probe)
        return np.asarray(np.minimum(first, active.longest))

    def _failed(
        self,
        active: _Active,
        here: LinearizedField,
        targets: Array,
        steps: IntArray,
        max_steps: int,
    ) -> BatchFailure | None:
        """Return the failure of the first active trajectory that cannot continue."""
        if cut_off().reached:
            taken = int(steps[active.index[0]])
            ended = EngineFailure(float(active.time[0]), REASON, steps=max(taken, 1))
            return BatchFailure(int(active.index[0]), ended)
        elapsed = active.time - active.start
        largest = np.abs(active.states).max(axis=1, initial=0.0)
        speed = np.abs(here.rhs).max(axis=1, initial=0.0)
        lost = largest > BLOW_UP_GROWTH * active.largest
        lost &= largest < BLOW_UP_TIME * elapsed * speed
        if active.shrunk.any():
            ends = targets[active.last - 1]
            least = MIN_STEP * np.maximum(np.abs(active.time), 1e-3 * (ends - active.start))
            left = targets[active.target] - active.time
            lost |= active.shrunk & (active.step <= least) & (active.step < left)
        wrong = np.flatnonzero(lost | (steps[active.index] >= max_steps))
        if not len(wrong):
            return None
        i = wrong[0]
        index, time = int(active.index[i]), float(active.time[i])
        taken = int(steps[index])
        if lost[i]:
            reason = "the solution grows without bound or is not defined"
            return BatchFailure(index, EngineFailure(time, reason, steps=taken))
        ahead = float((targets[active.last[i] - 1] - time) / active.step[i])
        reason = f"more than {taken} steps are needed"
        return BatchFailure(
            index,
            EngineFailure(
                time=time, reason=reason, out_of_steps=True, steps=taken, steps_ahead=ahead
            ),
        )


class LocalLinearizationEngine:
    """Local Linearization of one trajectory after the other.

    Raises InputError if the field has algebraic equations.
    """

    name = "local-linearization"

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        relative: float,
        absolute: float,
        *,
        order: Order = 2,
        longest: float = math.inf,
    ) -> None:
        self._batch = LocalLinearizationBatchIntegrator(
            field, pattern, relative, absolute, order=order, longest=longest
        )

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engines.engine.Engine`."""
        states, sensitivities = initial.states, initial.sensitivities
        rows: list[Array] = []
        columns: list[Array] = []
        steps = 0
        for start, times, polynomials, end_is_wanted in segment.smooth_parts:
            problem = InitialValueProblems(
                starts=np.array([start]),
                times=[times],
                polynomials=polynomials[None],
                states=states[None],
                scalars=initial.scalars,
                sensitivities=sensitivities,
                scalar_sensitivities=initial.scalar_sensitivities,
            )
            solution = self._batch.integrate(problem, max(max_steps - steps, 1))
            if isinstance(solution, BatchFailure):
                return replace(solution.failure, steps=solution.failure.steps + steps)
            steps += int(solution.steps[0])
            states, sensitivities = solution.states[-1], solution.sensitivities[-1]
            count = len(times) if end_is_wanted else len(times) - 1
            rows.append(solution.states[:count])
            columns.append(solution.sensitivities[:count])
        return SegmentSolution.without_algebraic(
            np.concatenate(rows), np.concatenate(columns), steps
        )


def _sizes(states: Array, rates: Array, ahead: Array) -> Array:
    """Return the units of the absolute tolerances, shape (k, n); see :func:`magnitudes`."""
    rows = zip(states, rates, ahead, strict=True)
    return np.array([magnitudes(*row) for row in rows]).reshape(states.shape)


def _times(matrices: Array, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
