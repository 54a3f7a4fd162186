"""The explicit engine: a Runge-Kutta method of order 8 on states and sensitivities."""

from __future__ import annotations

import numpy as np

from odefit.simulation.engines.bdf.integration import FINISHED
from odefit.simulation.engines.bdf.kernel_engine import KernelEngine, PartToSolve, SolvedPart
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine import ABSOLUTE_OVER_RELATIVE, Values
from odefit.simulation.engines.passages import Passed, Stretches
from odefit.simulation.engines.runge_kutta.events import Jumps, integrate_through
from odefit.simulation.engines.runge_kutta.integration import integrate
from odefit.simulation.engines.runge_kutta.stages import METHOD

SEARCH_TOLERANCE = 1e-9
"""Relative tolerance of passages through many events during a search: less than half the steps."""

TOGETHER = 3_000_000
"""Number of values, such as stages of sensitivities, that a call of the kernel may hold."""


class RungeKuttaEngine(KernelEngine):
    """The pair of Dormand & Prince of order 8, with dense output of order 7."""

    name = "runge-kutta"

    def _solve(self, part: PartToSolve) -> SolvedPart:
        status, time, steps, step = integrate(
            self._equations,
            METHOD,
            part.start,
            part.times,
            part.horizon,
            part.ahead,
            part.states,
            part.constants,
            part.sensitivities,
            part.terms,
            part.sizes,
            part.places,
            self._absolute * self._tolerance,
            self._tolerance,
            self._controlled,
            part.watching > 0,
            part.proposed,
            part.max_steps,
            cut_off().flag,
            part.out,
            part.out_sensitivities,
        )
        return SolvedPart(status, time, steps, step, np.zeros((0, 0)))

    def through(self, stretches: Stretches, initial: Values, *, searching: bool) -> Passed | None:
        """See :class:`odefit.simulation.engines.passages.PassingEngine`."""
        if self._features is not None:
            return None
        order, m = self._order, self._m
        n, tiles, width = len(order), self._tiles, self._width
        events = stretches.events
        moves = np.zeros((len(events.number), tiles, width))
        for event in np.flatnonzero(events.moving):
            padded = np.zeros(tiles * width)
            padded[:m] = events.moves[event]
            moves[event] = padded.reshape(tiles, width)
        along = [self._in_tiles(change) for change in events.along]
        jumps = Jumps(
            starts=stretches.starts,
            first=events.first,
            number=events.number,
            moving=events.moving,
            moves=moves,
            after=stretches.after,
            begin=stretches.begin,
            times=stretches.times,
            rows=stretches.rows,
            matrix=np.ascontiguousarray(events.matrix[:, order][:, :, order]),
            constant=np.ascontiguousarray(events.constant[:, order]),
            along=np.array(along).reshape(len(along), tiles, n, width),
        )
        states = np.asarray(initial.states, dtype=float)[order]
        sensitivities = self._in_tiles(initial.sensitivities)
        rows = stretches.count
        out = np.empty((rows, n))
        out_sensitivities = np.empty((tiles, rows, n, width))
        terms = self._scalar_terms(initial.scalar_sensitivities)
        constants = np.asarray(initial.scalars, dtype=float)
        tolerance = max(self._tolerance, SEARCH_TOLERANCE) if searching else self._tolerance
        at_once = max(TOGETHER // (40 * n * (1 + tiles * width)), 1)
        steps = 0
        for begin in range(0, len(stretches.starts), at_once):
            status, tried = integrate_through(
                self._equations,
                METHOD,
                jumps,
                begin,
                min(begin + at_once, len(stretches.starts)),
                states,
                constants,
                sensitivities,
                terms,
                self._places,
                self._absolute * tolerance,
                tolerance,
                self._controlled,
                self._absolute < ABSOLUTE_OVER_RELATIVE,
                stretches.most_steps,
                cut_off().flag,
                out,
                out_sensitivities,
            )
            steps += tried
            if status != FINISHED:
                return Passed(out, out_sensitivities, None, steps)
        values, derivatives = np.empty((rows, n)), np.empty((rows, n, m))
        values[:, order] = out
        for tile in range(tiles):
            at = tile * width
            derivatives[:, order, at : at + width] = out_sensitivities[tile][:, :, : m - at]
        last = np.empty(n), np.empty((n, m))
        last[0][order] = states
        for tile in range(tiles):
            at = tile * width
            last[1][order, at : at + width] = sensitivities[tile][:, : m - at]
        last_values = initial._replace(states=last[0], sensitivities=last[1])
        return Passed(values, derivatives, last_values, steps)
