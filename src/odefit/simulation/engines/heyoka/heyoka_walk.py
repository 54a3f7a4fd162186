"""The Taylor method step by step, for cases in which its own error control is not enough.

heyoka's tolerance applies to the largest component alone, and is absolute if that is below one. So
states whose sizes differ much, or grow much, are integrated in units of their own size, which
change along the trajectory. A Taylor series also carries no information on a function that is flat
to all orders at the beginning of the step. So the defect x' - f(x) of each step's polynomial is
checked within the step: at fixed places, and where a watched term changes its sign
(:mod:`odefit.simulation.engines.narrow_features`). The integration continues from the last time
before the defect becomes visible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import heyoka as hy
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.heyoka.heyoka_equations import (
    VariationalEquations,
    failure_of,
    index_arrays,
)
from odefit.simulation.engines.segments import Segment
from odefit.simulation.engines.sign_changes import sign_changes

if TYPE_CHECKING:
    from odefit.problem.vector_field import SensitivityPattern, VectorField
    from odefit.simulation.engines.narrow_features import NarrowFeatures

GROWTH = 1e3  # growth of a state, in units of its size, after which the units are renewed
DEFECT = 1e-9  # largest defect of a step times its length, relative to the size of each component

PLACES = np.array([0.11, 0.29, 0.47, 0.64, 0.83, 0.97])
"""Places within a step at which its defect is checked."""

FINE = 48  # places within a step at which the beginning of a defect is sought
MAX_CENTRES = 400  # centres of features that are checked in one integration
SHORTER = 0.25  # longest next step, relative to one whose defect is visible from its beginning

FIRST_STEPS = 16
"""Number of steps taken before their defects are checked; more while these are small."""

PASSES = 5  # integrations of a segment with better sizes of states that begin at zero

TOO_LARGE = 1e3
"""Ratio of the size of a state to its largest value above which it is integrated with a better
size."""

FAINTEST = 1e-30
"""Smallest guessed size of a state that begins at zero, relative to the largest size."""

MAX_ROUNDS = 12
"""Largest number of states in a chain, each feeding the next, whose sizes are guessed from the
equations."""

MAX_RESTARTS = 5_000  # restarts of the integration of a segment
SHORTEST = 1e-12  # shortest step, relative to the segment, that resolves a defect


class HeyokaWalk:
    """Taylor integration in units of each state's own size, with checks of its defects."""

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        tolerance: float,
        features: NarrowFeatures | None,
    ) -> None:
        self._n, self._p, self._m = len(field.states), len(field.scalars), pattern.directions
        entries = sorted(pattern.entries)
        self._equations = VariationalEquations(field, self._m, entries, 1, tolerance, scaled=True)
        self._entries = index_arrays(entries)
        self._features = features

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engines.engine.Engine`."""
        steps = 0
        with np.errstate(all="ignore"):
            begin = np.abs(initial.states)
            guess = self._guess(segment, initial, begin) if not begin.all() else begin
            for _ in range(PASSES):
                sizes = guess.copy()
                seen = begin.copy()
                solution = self._integrate(segment, initial, (sizes, seen), max_steps - steps)
                if isinstance(solution, EngineFailure):
                    return replace(solution, steps=solution.steps + steps)
                steps += solution.steps
                wrong = (seen > 0.0) & (guess > begin) & (seen * TOO_LARGE < sizes)
                if not wrong.any():
                    break
                guess = np.where(wrong, np.maximum(seen, begin), guess)
        return replace(solution, steps=steps)

    def _integrate(
        self,
        segment: Segment,
        initial: Values,
        sizes: tuple[Array, Array],
        max_steps: int,
    ) -> SegmentSolution | EngineFailure:
        """Integrate with sizes of the states; update them and the largest values."""
        n, m = self._n, self._m
        count = len(segment.times)
        values = np.empty((count, n))
        sensitivities = np.empty((count, n, m))
        states = np.array(initial.states, dtype=float)
        columns = np.array(initial.sensitivities, dtype=float)
        done = steps = 0
        for start, times, polynomials, end_is_wanted in segment.smooth_parts:
            constants = np.concatenate([initial.scalars, polynomials.ravel()])
            part = self._part(
                start, times, states, columns, sizes, constants, initial, max_steps - steps
            )
            if isinstance(part, EngineFailure):
                return replace(part, steps=part.steps + steps)
            x, s, taken = part
            steps += taken
            stop = done + len(times) - (not end_is_wanted)
            values[done:stop] = x[: stop - done]
            sensitivities[done:stop] = s[: stop - done]
            states, columns = x[-1].copy(), s[-1].copy()
            done = stop
        return SegmentSolution.without_algebraic(values, sensitivities, steps)

    def _part(
        self,
        start: float,
        times: Array,
        states: Array,
        columns: Array,
        known_sizes: tuple[Array, Array],
        constants: Array,
        initial: Values,
        max_steps: int,
    ) -> tuple[Array, Array, int] | EngineFailure:
        """Integrate through a smooth part."""
        sizes, seen = known_sizes
        n, m = self._n, self._m
        equations = self._equations
        pars = equations.pars[:, 0]
        pars[: len(constants)] = constants
        multipliers = initial.scalar_sensitivities[self._entries]
        out = np.empty((len(times), n))
        out_columns = np.empty((len(times), n, m))
        end = float(times[-1])
        time, row, steps = start, 0, 0
        longest = math.inf
        together = FIRST_STEPS
        for _ in range(MAX_RESTARTS):
            scale = _powers_of_two(sizes)
            wide = np.maximum(np.abs(columns / scale[:, None]).max(axis=0, initial=0.0), 1.0)
            wide = _powers_of_two(wide)
            equations.set_scales(scale)
            pars[equations.first_multiplier : equations.first_scale] = (
                multipliers / wide[self._entries[1]]
            )
            begin = np.concatenate([states / scale, (columns / scale[:, None] / wide).T.ravel()])
            ta = equations.start(time, begin[:, None])
            limit = max(1, min(together, max_steps - steps))
            outcome, _, _, taken, output, *_ = ta.propagate_until(
                end, max_steps=limit, max_delta_t=longest, c_output=True
            )
            steps += taken
            ended = outcome not in (hy.taylor_outcome.time_limit, hy.taylor_outcome.step_limit)
            if output is None or not taken:
                at = float(ta.time) if math.isfinite(ta.time) else time
                return failure_of(outcome, at, steps, end, abs(float(ta.last_h)))
            reached, longest = self._accepted(
                output, time, end, longest, constants, pars, sizes / scale
            )
            whole = reached >= float(output.times[-1])
            together = together * 2 if whole else max(together // 2, FIRST_STEPS)
            if reached <= time:
                if longest < SHORTEST * (end - start):
                    reason = "the solution becomes too steep or has a jump"
                    return EngineFailure(time, reason, True, steps)
                continue
            last = int(np.searchsorted(times, reached, side="right"))
            at_times = np.array(output(np.append(times[row:last], reached)))
            x = at_times[:, :n] * scale
            s = (at_times[:, n:].reshape(len(x), m, n) * scale).transpose(0, 2, 1) * wide
            out[row:last], out_columns[row:last] = x[:-1], s[:-1]
            inside = np.abs(output.tcs[output.times[:-1] < reached, :n, 0]).max(axis=0, initial=0.0)
            seen[:] = np.maximum(seen, np.maximum(np.abs(x).max(axis=0), inside * scale))
            sizes[:] = np.maximum(sizes, seen)
            time, row, states, columns = reached, last, x[-1], s[-1]
            if not np.isfinite(states).all() or not np.isfinite(columns).all():
                return failure_of(hy.taylor_outcome.err_nf_state, time, steps, end, 0.0)
            if time >= end:
                return out, out_columns, steps
            if whole and (ended or steps >= max_steps):
                return failure_of(outcome, time, steps, end, abs(float(ta.last_h)))
        return EngineFailure(
            time=time,
            reason=f"more than {steps} steps are needed",
            out_of_steps=True,
            steps=steps,
            steps_ahead=math.inf,
        )

    def _accepted(
        self,
        output: Any,
        time: float,
        end: float,
        longest: float,
        constants: Array,
        pars: Array,
        units: Array,
    ) -> tuple[float, float]:
        """Return the time up to which an output's steps are kept, and the longest next step."""
        edges = np.array(output.times)
        coefficients = np.array(output.tcs)
        reached, n = float(edges[-1]), self._n
        grown = np.flatnonzero(
            (np.abs(coefficients[1:, :n, 0]) > GROWTH * units).any(axis=1)
            | ~np.isfinite(coefficients[1:, :n, 0]).all(axis=1)
        )
        if len(grown):
            reached = float(edges[grown[0] + 1])
        if not reached > time:
            return time, SHORTER * min(end - time, longest)
        if self._features is None:
            return reached, math.inf
        steps = int(np.searchsorted(edges, reached, side="left"))
        edges, coefficients = edges[: steps + 1], coefficients[:steps]
        visible = self._visible(output, edges, coefficients, constants, pars, units)
        if visible is None:
            return reached, math.inf if longest == math.inf else 4.0 * longest
        step, at = visible
        length = edges[step + 1] - edges[step]
        fine = edges[step] + (at - edges[step]) * np.arange(1, FINE + 1) / FINE
        here = np.array([step])
        seen = self._defects(output, edges, coefficients, here, fine[None], pars, units)[0]
        first = int(np.argmax(seen > 1.0)) if (seen > 1.0).any() else FINE - 1
        begins = edges[step] if first == 0 else float(fine[first - 1])
        if begins <= edges[step] and step == 0:
            return time, SHORTER * min(length, at - edges[0], longest)
        return float(begins), SHORTER * length

    def _visible(
        self,
        output: Any,
        edges: Array,
        coefficients: Array,
        constants: Array,
        pars: Array,
        units: Array,
    ) -> tuple[int, float] | None:
        """Return the first step with a visible defect, and a time in it, or None."""
        count = len(coefficients)
        times = edges[:-1, None] + np.diff(edges)[:, None] * PLACES
        every = slice(None)
        seen = self._defects(output, edges, coefficients, every, times, pars, units).ravel()
        steps, times = np.repeat(np.arange(count), len(PLACES)), times.ravel()
        centres = self._centres(output, edges, constants)
        if len(centres):
            places = np.clip(np.searchsorted(edges, centres, side="right") - 1, 0, count - 1)
            defects = self._defects(
                output, edges, coefficients, places, centres[:, None], pars, units
            )
            seen = np.concatenate([seen, defects.ravel()])
            steps, times = np.concatenate([steps, places]), np.concatenate([times, centres])
        wrong = np.flatnonzero(~(seen <= 1.0))
        if not len(wrong):
            return None
        step = int(steps[wrong].min())
        return step, float(times[wrong][steps[wrong] == step].min())

    def _centres(self, output: Any, edges: Array, constants: Array) -> Array:
        """Return the times at which a watched term changes its sign along the trajectory."""
        lengths = np.diff(edges)
        times = np.append(
            (edges[:-1, None] + lengths[:, None] * np.array([0.0, 0.3, 0.6])), edges[-1]
        )

        def at(moments: Array) -> Array:
            return self._watched(output, moments, constants)

        return sign_changes(times, at(times), at, MAX_CENTRES, iterations=5)

    def _watched(self, output: Any, times: Array, constants: Array) -> Array:
        assert self._features is not None
        states = np.array(output(times))[:, : self._n] * self._equations.scales
        values = [times, *states.T, *constants]
        return self._features.watching(values, len(times))

    def _defects(
        self,
        output: Any,
        edges: Array,
        coefficients: Array,
        steps: IntArray | slice,
        times: Array,
        pars: Array,
        units: Array,
    ) -> Array:
        """Return the defects of some steps at times in each, relative to the tolerated ones.

        The steps have shape (s,), their times and the result (s, k). A slice copies no
        coefficients.
        """
        rows = coefficients[steps]
        powers = np.arange(1, rows.shape[2])
        since = (times - edges[:-1][steps, None])[:, :, None]
        weights = powers * since ** (powers - 1)  # (s, k, orders)
        defect = weights @ rows[:, :, 1:].transpose(0, 2, 1)  # the slopes, (s, k, equations)
        moments = times.ravel()
        used = np.repeat(pars[: self._equations.used, None], len(moments), axis=1)
        rates = self._equations.rates(np.array(output(moments)), moments, used)
        defect -= rates.reshape(defect.shape)
        np.abs(defect, out=defect)
        n, m = self._n, self._m
        size = np.ones(n * (m + 1))
        size[:n] = units
        if m:
            largest = np.abs(coefficients[:, n:, 0]).reshape(-1, m, n).max(axis=(0, 2))
            size[n:] = np.repeat(np.maximum(largest, 1.0), n)
        defect /= size
        return np.asarray(defect.max(axis=2) * np.diff(edges)[steps, None] / DEFECT)

    def _guess(self, segment: Segment, initial: Values, sizes: Array) -> Array:
        """Return sizes of all states, from the equations for those that begin at zero.

        Each gets the value to which its equation alone would lead by the end of the segment. That
        is about T f / (1 + T d), with f its largest rate on the way and d its decay. States fed by
        others come after those. If the size is far too large, the integration shows it.
        """
        n = self._n
        begins = sizes == 0.0
        sizes = sizes.copy()
        span = float(segment.times[-1]) - segment.start
        times = segment.start + span * np.linspace(0.0, 1.0, 33)
        if self._features is not None:
            stopped = self._features.with_stops(segment, initial.scalars, centres=True)
            times = np.union1d(times, stopped.breakpoints)
        pars = self._equations.pars[:, 0].copy()
        pars[self._equations.first_scale :] = 1.0
        pars[: self._p] = initial.scalars
        parts = segment.smooth_parts
        which = np.searchsorted([part.start for part in parts[1:]], times, side="right")
        parameters = np.repeat(pars[:, None], len(times), axis=1)
        inputs = np.array([part.polynomials.ravel() for part in parts])
        parameters[self._p : self._equations.first_multiplier] = inputs[which].T
        at = np.zeros((len(times), self._equations.size))
        at[:, :n] = initial.states
        used = parameters[: self._equations.used]
        for _ in range(min(n, MAX_ROUNDS)):
            rates = self._equations.rates(at, times, used)[:, :n]
            largest = np.abs(rates).max(axis=0)
            fresh = (sizes == 0.0) & (largest > 0.0) & np.isfinite(largest)
            if not fresh.any():
                break
            at[:, :n] = np.where(fresh, span * largest, at[:, :n])
            changed = np.abs(self._equations.rates(at, times, used)[:, :n] - rates).max(axis=0)
            damping = np.where(np.isfinite(changed), largest / (largest + changed), 1.0)
            sizes = np.where(fresh, span * largest * damping, sizes)
            at[:, :n] = np.where(fresh, sizes, at[:, :n])
        known = sizes[sizes > 0.0]
        if not len(known):
            return np.ones(n)
        # A rate that is zero at all these places may still act later.
        sizes = np.where(begins, np.maximum(sizes, FAINTEST * known.max()), sizes)
        return np.where(sizes > 0.0, sizes, known.min())


def _powers_of_two(sizes: Array) -> Array:
    """Return the powers of two just below sizes: division by them is exact."""
    return np.asarray(2.0 ** np.floor(np.log2(np.clip(sizes, 1e-280, 1e280))))
