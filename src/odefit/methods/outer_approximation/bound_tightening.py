"""Optimality-based bound tightening (OBBT) and probing: what is left of the bounds under a cutoff.

Bounds of a variable are the least and the largest value that it has in the relaxation; those,
in turn, tighten the relaxation. Where that comes to a halt, the ends of the parameters' ranges
are probed: a part at an end in which nothing is left is cut off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF
from odefit.methods.outer_approximation.fbbt import FBBT, Infeasible
from odefit.methods.outer_approximation.linear_programs import minimise
from odefit.methods.outer_approximation.master_problem import split_point
from odefit.methods.outer_approximation.relaxation import (
    HyperPlanes,
    StrengtheningCut,
    linear_relaxation,
    objective_coefficients,
)
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm

REBUILD_INTERVAL = 10
"""Number of variables after which the relaxation is built anew within a round of OBBT."""

LARGEST_PROBE, SMALLEST_PROBE = 0.5, 0.03
"""Parts of a range that a probe at its end may have."""

MAX_PROBES = 3
"""Largest number of probes in succession at the same end."""

PROBE_ROUNDS = 2
"""Rounds of OBBT of the parameters within a probe, before it counts as not empty."""

MAX_PLANE_ROUNDS = 12
"""Largest number of times that hyper-planes are added for one bound of the relaxation."""

PLANE_TOLERANCE = 1e-3
"""Largest distance of the residuals' squares from their hyper-planes, relative to the bound."""


@dataclass(eq=False)
class BoundTightening:
    """Bound tightening of a standard form, by all that the search has found out so far."""

    form: StandardForm
    fbbt: FBBT
    planes: HyperPlanes  # more are added where the relaxation's optimum lies
    stop: Callable[[], bool]
    cuts: Sequence[StrengtheningCut] = ()
    remaining: Callable[[], float] = lambda: math.inf  # seconds, for a linear program too
    turn: int = 0  # place of the variable with which the next round of OBBT begins
    probes: dict[tuple[int, bool], float] = field(default_factory=dict)
    """Parts of the range that next probes have, by parameter and whether at the upper end."""
    _done: int = 0

    def relaxation_bound(
        self, low: Array, high: Array, cutoff: float
    ) -> tuple[float, Array | None]:
        """Return a lower bound of the objective over the relaxation, and where it is reached.

        Here, and in all that follows, Infeasible says that no objective is below the cutoff.
        """
        best, x = -math.inf, None
        constant, r = self.form.constant, self.form.residuals
        cost = objective_coefficients(self.form)
        for _ in range(MAX_PLANE_ROUNDS):
            p = linear_relaxation(self.form, low, high, self.planes, cutoff, self.cuts)
            found = minimise(p, cost, self.remaining())
            if found.bound == math.inf:
                raise Infeasible
            best = max(best, found.bound + constant)
            if found.x is None:
                break
            x = found.x
            missing = float(x[r] @ x[r] - x[self.form.size :].sum())
            new = self.planes.add(x[r], low[r], high[r])
            if missing <= PLANE_TOLERANCE * abs(best) or not new or self.stop():
                break
        return best - 4 * UNIT_ROUNDOFF * (abs(best) + abs(constant)), x

    def tighten(self, low: Array, high: Array, cutoff: float, seconds: float) -> Bounds:
        """Return the bounds after one round of OBBT and of probing.

        Variables that are no parameters get so many seconds of OBBT.
        """
        return self.probe(*self.obbt(low, high, cutoff, seconds), cutoff)

    def obbt(self, low: Array, high: Array, cutoff: float, seconds: float = math.inf) -> Bounds:
        """Return the least and largest values of all factors in the relaxation, parameters first.

        The others get so many seconds; the next round goes on with those that are left.
        """
        own = self.form.parameters.tolist()
        low, high = self._obbt_of(low, high, cutoff, own)
        others = sorted(set(self.form.factors.tolist()) - set(own))
        if not others:
            return low, high
        self.turn %= len(others)
        turn = others[self.turn :] + others[: self.turn]
        self._done = 0
        low, high = self._obbt_of(low, high, cutoff, turn, time.monotonic() + seconds)
        self.turn += self._done
        return low, high

    def _obbt_of(
        self,
        low: Array,
        high: Array,
        cutoff: float,
        variables: Sequence[int],
        deadline: float = math.inf,
    ) -> Bounds:
        low, high = low.copy(), high.copy()
        direction = np.zeros(self.form.size + len(self.form.residuals))
        for start in range(0, len(variables), REBUILD_INTERVAL):
            p = linear_relaxation(self.form, low, high, self.planes, cutoff, self.cuts)
            for k in variables[start : start + REBUILD_INTERVAL]:
                if self.stop() or time.monotonic() > deadline:
                    return self.fbbt.tighten(low, high, cutoff)
                self._done += 1
                if not high[k] > low[k]:
                    continue
                for sign in (1.0, -1.0):
                    direction[k] = sign
                    bound = minimise(p, direction, self.remaining()).bound
                    if bound == math.inf:
                        raise Infeasible
                    if sign > 0:
                        low[k] = max(low[k], bound)
                    else:
                        high[k] = min(high[k], -bound)
                direction[k] = 0.0
            low, high = self.fbbt.tighten(low, high, cutoff)
        return low, high

    def probe(self, low: Array, high: Array, cutoff: float) -> Bounds:
        """Return the bounds without the ends of the parameters' ranges in which nothing is left."""
        low, high = low.copy(), high.copy()
        for k in self.form.parameters.tolist():
            for upper in (True, False):
                for _ in range(MAX_PROBES):
                    if self.stop() or not high[k] > low[k]:
                        return low, high
                    if not self._probe_end(low, high, k, upper, cutoff):
                        break
                    low, high = self.fbbt.tighten(low, high, cutoff)
        return low, high

    def _probe_end(self, low: Array, high: Array, k: int, upper: bool, cutoff: float) -> bool:
        """Probe one end and return whether it was cut off; `low` and `high` are changed."""
        part = self.probes.get((k, upper), LARGEST_PROBE)
        at = split_point(float(low[k]), float(high[k]), 1.0 - part if upper else part)
        if not low[k] < at < high[k]:
            return False
        inner_low, inner_high = low.copy(), high.copy()
        (inner_low if upper else inner_high)[k] = at
        try:
            inner_low, inner_high = self.fbbt.tighten(inner_low, inner_high, cutoff)
            for _ in range(PROBE_ROUNDS):
                inner_low, inner_high = self._obbt_of(
                    inner_low, inner_high, cutoff, self.form.parameters.tolist()
                )
        except Infeasible:
            (high if upper else low)[k] = at
            self.probes[k, upper] = min(1.5 * part, LARGEST_PROBE)
            return True
        self.probes[k, upper] = max(0.5 * part, SMALLEST_PROBE)
        # What is left of the probed part still says where it ends.
        if upper:
            high[k] = min(high[k], inner_high[k])
        else:
            low[k] = max(low[k], inner_low[k])
        return False
