"""Contraction of bounds: what an objective under the cut leaves of every variable.

Bounds of a variable are the least and the largest value that it has in the relaxation; those,
in turn, tighten the relaxation. Where that comes to a halt, the ends of the parameters' ranges
are tried: a slab at an end in which nothing is left is cut off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from odefit.methods.outer_approximation.linear_programs import minimum
from odefit.methods.outer_approximation.propagation import Infeasible, Propagation
from odefit.methods.outer_approximation.relaxation import GroupCut, HyperPlanes, cost, relaxed
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm
from odefit.problem.arrays import Array

REBUILD = 10
"""Variables between new relaxations within a round."""

LOGARITHMIC = 4.0
"""Ranges whose ends have a larger ratio are divided by their logarithm."""

WIDEST, NARROWEST = 0.5, 0.03
"""Parts of a range that a slab at its end may have."""

TRIES = 3
"""Slabs in succession at the same end."""

REFUTING = 2
"""Rounds over the parameters within a slab, before it counts as not empty."""

FLAT = 1e-3
"""Residuals' squares and their hyper-planes agree, relative to the objective."""


@dataclass(eq=False)
class Contraction:
    """The tools, and what they remember.

    Attributes
    ----------
    form, propagation
        The problem.
    planes
        Hyper-planes of the objective; more are added where the relaxation's optimum lies.
    groups
        Lower bounds of parts of the objective.
    stop
        Whether to return early with what is there.
    left
        Seconds that are left, for a linear program too.
    """

    form: StandardForm
    propagation: Propagation
    planes: HyperPlanes
    stop: Callable[[], bool]
    groups: Sequence[GroupCut] = ()
    left: Callable[[], float] = lambda: math.inf
    _next: int = 0
    _done: int = 0
    _slabs: dict[tuple[int, bool], float] = field(default_factory=dict)

    def bound(
        self, low: Array, high: Array, cut: float, rounds: int = 12
    ) -> tuple[float, Array | None]:
        """Lower bound of the objective over the relaxation, and where it is.

        Raises
        ------
        Infeasible
            No objective is below the cut.
        """
        best, x = -math.inf, None
        r = self.form.residuals
        for _ in range(rounds):
            p = relaxed(self.form, low, high, self.planes, cut, self.groups)
            found = minimum(p, cost(self.form), self.left())
            if found.bound == math.inf:
                raise Infeasible
            best = max(best, found.bound + self.form.constant)
            if found.x is None:
                break
            x = found.x
            missing = float(x[r] @ x[r] - x[self.form.size :].sum())
            new = self.planes.add(x[r], low[r], high[r])
            if missing <= FLAT * abs(best) or not new or self.stop():
                break
        return _less(best, self.form), x

    def round(self, low: Array, high: Array, cut: float, seconds: float = math.inf) -> Bounds:
        """Least and largest values of all factors, parameters first.

        Parameters
        ----------
        seconds
            Limit for the others; the next round goes on with those that are left.

        Raises
        ------
        Infeasible
            No objective is below the cut.
        """
        own = self.form.parameters.tolist()
        low, high = self._extremes(low, high, cut, own)
        others = sorted(set(self.form.factors.tolist()) - set(own))
        if not others:
            return low, high
        self._next %= len(others)
        turn = others[self._next :] + others[: self._next]
        self._done = 0
        low, high = self._extremes(low, high, cut, turn, time.monotonic() + seconds)
        self._next += self._done
        return low, high

    def _extremes(
        self,
        low: Array,
        high: Array,
        cut: float,
        targets: Sequence[int],
        deadline: float = math.inf,
    ) -> Bounds:
        low, high = low.copy(), high.copy()
        n = self.form.size + len(self.form.residuals)
        for start in range(0, len(targets), REBUILD):
            p = relaxed(self.form, low, high, self.planes, cut, self.groups)
            for k in targets[start : start + REBUILD]:
                if self.stop() or time.monotonic() > deadline:
                    return self.propagation(low, high, cut)
                self._done += 1
                if not high[k] > low[k]:
                    continue
                direction = np.zeros(n)
                for sign in (1.0, -1.0):
                    direction[k] = sign
                    found = minimum(p, direction, self.left())
                    if found.bound == math.inf:
                        raise Infeasible
                    if sign > 0:
                        low[k] = max(low[k], found.bound)
                    else:
                        high[k] = min(high[k], -found.bound)
            low, high = self.propagation(low, high, cut)
        return low, high

    def shave(self, low: Array, high: Array, cut: float) -> Bounds:
        """Slabs at the ends of the parameters' ranges, cut off where nothing is left in them.

        Raises
        ------
        Infeasible
            No objective is below the cut.
        """
        low, high = low.copy(), high.copy()
        for k in self.form.parameters.tolist():
            for top in (True, False):
                for _ in range(TRIES):
                    if self.stop() or not high[k] > low[k]:
                        return low, high
                    if not self._slab(low, high, k, top, cut):
                        break
                    low, high = self.propagation(low, high, cut)
        return low, high

    def _slab(self, low: Array, high: Array, k: int, top: bool, cut: float) -> bool:
        """Try one; whether it could be cut off. `low` and `high` are changed."""
        part = self._slabs.get((k, top), WIDEST)
        at = divided(float(low[k]), float(high[k]), 1.0 - part if top else part)
        if not low[k] < at < high[k]:
            return False
        inner_low, inner_high = low.copy(), high.copy()
        (inner_low if top else inner_high)[k] = at
        try:
            inner_low, inner_high = self.propagation(inner_low, inner_high, cut)
            for _ in range(REFUTING):
                inner_low, inner_high = self._extremes(
                    inner_low, inner_high, cut, self.form.parameters.tolist()
                )
        except Infeasible:
            (high if top else low)[k] = at
            self._slabs[k, top] = min(1.5 * part, WIDEST)
            return True
        self._slabs[k, top] = max(0.5 * part, NARROWEST)
        # What is left of the slab still says where it ends.
        if top:
            high[k] = min(high[k], inner_high[k])
        else:
            low[k] = max(low[k], inner_low[k])
        return False


def divided(low: float, high: float, part: float) -> float:
    """The place at `part` of a range, by its logarithm if it spans much."""
    if low > 0 and high / low > LOGARITHMIC:
        return float(low * (high / low) ** part)
    return low + (high - low) * part


def _less(bound: float, form: StandardForm) -> float:
    """A bound after the constant was added, rounded down."""
    return bound - 4e-16 * (abs(bound) + abs(form.constant))
