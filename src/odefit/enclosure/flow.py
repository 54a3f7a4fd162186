"""Solutions over whole boxes of unknowns: Taylor models that hold in continuous time.

One step after the other (:mod:`odefit.enclosure.taylor_step`) leads from one time to another. Every
box has its own steps, which are halved if the polynomials in time are not accurate or the error
bound does not hold, and lengthened if both are easy. States that would need too many steps are
given up, with all states that depend on them: they become unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.enclosure.arithmetic.taylor_models import TaylorModel
from odefit.enclosure.state_enclosure import StateEnclosure
from odefit.enclosure.taylor_step import HOPED_GROWTH, StepMethod, TaylorStep, dependent
from odefit.simulation.engines.cut_off import cut_off

SHORTEST_STEP = 2.0**-12
"""Shortest step, relative to a time span: such steps are accepted without further halving."""

MAX_STEPS = 400
"""Number of steps tried in a box; if that is not enough, everything later is unknown."""

MAX_UNCONFIRMED = 2
"""Number of short steps without a confirmed error bound after which everything is unknown."""


@dataclass(eq=False)
class StepControl:
    """Step sizes and counts of B boxes, updated by every step.

    `sizes` are tried next, `tried` counts steps; a step that is short only for stability counts as
    `stability_cost` steps.
    """

    sizes: Array
    tried: Array
    stability_cost: Array

    def take(self, boxes: IntArray) -> StepControl:
        """Return the control of the selected boxes."""
        return StepControl(self.sizes[boxes], self.tried[boxes], self.stability_cost[boxes])

    def put(self, boxes: IntArray, other: StepControl) -> None:
        """Replace the control of the selected boxes."""
        self.sizes[boxes], self.tried[boxes] = other.sizes, other.tried


class Flow:
    """The solutions of a system over boxes."""

    def __init__(self, method: StepMethod) -> None:
        self._method = method

    def advance(
        self,
        states: StateEnclosure,
        unknowns: Mapping[int, TaylorModel],
        begin: float,
        end: float,
        control: StepControl,
    ) -> StateEnclosure:
        """Return the states at a later time, without events or input knots on the way."""
        boxes, method = states.boxes, self._method
        mode = method.system.mode_at(begin)
        constants = method.constants(mode, unknowns, boxes)
        unknown = dependent(~np.isfinite(states.error.sizes), mode.dependence)
        c = np.where(unknown.T[:, None], 0.0, states.c)
        error = states.error.without(unknown)
        span = end - begin
        now = np.where(unknown.all(axis=1), end, begin)
        shortest = max(SHORTEST_STEP * span, 4 * float(np.spacing(max(abs(begin), abs(end)))))
        while True:
            active = np.flatnonzero(now < end)
            if cut_off().reached:
                unknown[active] = True
                active = active[:0]
            if not len(active):
                return StateEnclosure(states.monomials, c, error.unknown(unknown))
            ends = _step_ends(now[active], end, control.sizes[active])
            h = ends - now[active]
            part = StateEnclosure(states.monomials, c[:, :, active], error.take(active))
            active_constants = constants if len(active) == boxes else constants.take(active)
            step = TaylorStep(
                method, mode, active_constants, part, unknown[active], begin, now[active], h, span
            )
            cost = np.where(step.stability_limited, control.stability_cost[active], 1.0)
            cost = cost * method.step_cost
            control.tried[active] += np.where(step.unconfirmed, MAX_STEPS / MAX_UNCONFIRMED, cost)
            # Steps of this size would be too many, which is better detected now.
            ahead = control.tried[active] + cost * (end - ends) / (HOPED_GROWTH * h)
            exhausted = ahead > MAX_STEPS
            taken = step.accurate | (h <= shortest) | exhausted
            done = active[taken]
            c[:, :, done] = step.end.c[:, :, taken]
            error.put(done, step.end.error.take(np.flatnonzero(taken)))
            now[done] = ends[taken]
            control.sizes[active[~taken]] = h[~taken] / 2
            easy = taken & step.easy
            control.sizes[active[easy]] = np.maximum(control.sizes[active[easy]], 1.5 * h[easy])
            # If steps are exhausted, states are given up with all that depend on them: those for
            # which this step is too long, or else those that limit longer steps, or all.
            given_up = step.unknown | (exhausted[:, None] & step.too_long)
            for others in (step.limiting, True):
                none = exhausted & ~(given_up & ~unknown[active]).any(axis=1)
                given_up |= none[:, None] & others
            given_up = dependent(given_up, mode.dependence) & taken[:, None]
            fewer = (given_up & ~unknown[active]).any(axis=1)
            if fewer.any():
                rest = active[fewer]
                unknown[rest] |= given_up[fewer]
                c[:, :, rest] = np.where(unknown[rest].T[:, None], 0.0, c[:, :, rest])
                error.put(rest, error.take(rest).without(unknown[rest]))
                control.sizes[rest] = span
                control.tried[rest] = np.minimum(control.tried[rest], MAX_STEPS / 2)
                now[rest[unknown[rest].all(axis=1)]] = end


def _step_ends(now: Array, end: float, sizes: Array) -> Array:
    """Return the ends of the next steps: as many equal steps remain as the sizes allow.

    Steps go from one floating-point number to another, so that no time is lost by rounding.
    """
    left = end - now
    count = np.ceil(left / sizes - 1e-9)
    ends = now + left / np.maximum(count, 1)
    ends = np.maximum(ends, np.nextafter(now, np.inf))
    return np.where(count <= 1, end, np.minimum(ends, end))
