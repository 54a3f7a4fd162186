"""A problem of two unknowns with four local optima, whose residuals are enclosed exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.residuals import variables
from odefit.methods.branch_and_bound.tree import Node


class Quartic:
    """``d^4 - 2 d^2`` shifted, in each of two directions: four optima, one of them the best."""

    scope, size, lower_bound, unique_solution = "an example", 3, 0.0, True
    discretised = False
    influence = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    offset, of_spreads, composed = 0.0, np.zeros(3, dtype=bool), np.zeros(3, dtype=bool)

    def __init__(self, degree: int = 2, hidden: Callable[[Array], bool] | None = None) -> None:
        self.monomials = Monomials.of(2, degree)
        self.calls = 0
        self.fail_at = -1
        self._hidden = hidden

    @staticmethod
    def exact(x: Array, y: Array) -> Array:
        """The objective."""
        return np.asarray((x**2 - 1) ** 2 + (y**2 - 2) ** 2 + (0.5 + 0.1 * (x + y)) ** 2)

    @property
    def compiled(self) -> Quartic:
        return self

    def sharper(self, level: int) -> Quartic | None:
        return None if level else self

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        self.calls += 1
        if self.calls == self.fail_at:
            raise KeyboardInterrupt
        models = variables(self.monomials, lower, upper)
        m = self.monomials
        found = Residuals.zeros(3, len(m), len(lower))
        for i, (model, target) in enumerate(zip(models, (1.0, 2.0), strict=True)):
            c = model.c[:, 0]
            middle, radius_ = c[0], c[m.linear[i]]
            found.c[i, 0] = middle**2 - target
            found.c[i, m.linear[i]] = 2 * middle * radius_
            if m.degree >= 2:
                found.c[i, m.index(i, i)] = radius_**2
            else:
                found.remainder[i] = radius_**2
            found.remainder[i] += 1e-14 * (1 + middle**2)
        found.c[2] = 0.1 * (models[0].c[:, 0] + models[1].c[:, 0])
        found.c[2, 0] += 0.5
        found.remainder[2] += 1e-14
        if self._hidden is not None:
            lost = np.array([self._hidden((a + b) / 2) for a, b in zip(lower, upper, strict=True)])
            found.remainder[0, lost] = np.inf
        return found


LOWER, UPPER = np.array([-3.0, -3.0]), np.array([3.0, 4.0])
GRID = np.meshgrid(np.linspace(-3, 3, 1201), np.linspace(-3, 4, 1401))
BEST = float(Quartic.exact(*GRID).min())


def slices(count: int) -> list[Node]:
    """The whole box, cut along the first unknown."""
    edges = np.linspace(LOWER[0], UPPER[0], count + 1)
    found = []
    for i in range(count):
        lower, upper = LOWER.copy(), UPPER.copy()
        lower[0], upper[0] = edges[i], edges[i + 1]
        found.append(Node(0.0, i, lower, upper))
    return found
