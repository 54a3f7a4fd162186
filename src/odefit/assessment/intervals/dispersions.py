"""Dispersions of negative binomial counts, estimated from few of them.

The maximum likelihood estimate is too small, because the means were fitted to the same counts, and
its distribution is skewed. The adjusted profile likelihood of D. R. Cox and N. Reid (Journal of the
Royal Statistical Society B 49, 1987, 1-39) subtracts half the logarithm of the determinant of the
information on the other unknowns. Restricted likelihood does the same for normal noise. Genetics
uses this estimate for dispersions from few replicates (D. J. McCarthy, Y. Chen and G. K. Smyth,
Nucleic Acids Research 40, 2012, 4288-4297). Means and dispersion are orthogonal, so that the means
stay where they are. The interval has all dispersions whose adjusted likelihood ratio is below the
limit of chi-square.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.effects import column_space
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap

LEAST, MOST = 1e-8, 1e8
"""Range of dispersions; the smallest represents Poisson counts."""

GRID = 80
"""Number of dispersions in the first search for the best one."""


@dataclass(frozen=True, eq=False)
class Counted:
    """The m counts that share one dispersion, and the extent to which their means follow them.

    `rows` are those of the counts among the residuals, `basis` their rows of an orthonormal basis
    of the information on all other unknowns, shape (m, rank).
    """

    law: NoiseDistribution
    means: Array
    counts: Array
    dispersion: float
    rows: IntArray
    basis: Array

    def cost(self, dispersion: float) -> float:
        """Return the negative log-likelihood without constants."""
        spreads = np.full(len(self.counts), dispersion)
        terms = self.law.terms(self.means, self.counts, spreads)
        return float(np.sum(0.5 * terms.residuals**2 + terms.scale_terms))

    def weights(self, dispersion: float) -> Array:
        """Return the information on the means relative to that at the maximum, shape (m,).

        Maximum likelihood underestimates the scatter of the counts.
        """
        return (1 + self.dispersion * self.means) / (1 + dispersion * self.means)

    def adjusted(self, dispersion: float) -> float:
        """Return the negative log-likelihood adjusted for the fitted means."""
        change = self.weights(dispersion) - 1
        matrix = np.eye(self.basis.shape[1]) + (self.basis.T * change) @ self.basis
        return self.cost(dispersion) + 0.5 * float(np.linalg.slogdet(matrix)[1])


@dataclass(frozen=True, eq=False)
class AdjustedDispersion:
    """A dispersion by its adjusted profile likelihood.

    The interval is open where it is zero or infinite. `limits` are those of the deviance of the
    plain profile likelihood on both sides of its maximum, at which its interval has these ends.
    """

    index: int
    estimate: float
    lower: float
    upper: float
    limits: tuple[float, float]
    counts: Counted


def adjusted_dispersions(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, level: float
) -> list[AdjustedDispersion]:
    """Return the estimated dispersions, except those at a bound."""
    return [
        _adjusted(index, counted, level) for index, counted in _counted(forward, vector, evaluation)
    ]


def _counted(
    forward: ForwardMap, vector: Array, evaluation: Evaluation
) -> list[tuple[int, Counted]]:
    """Return the counts of each unknown dispersion."""
    problem = forward.problem
    numbers = {u.name: i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}
    bound = bounds_touched(problem, vector)
    rows: dict[int, list[tuple[int, str, IntArray]]] = {}
    laws: dict[int, NoiseDistribution] = {}
    for block in forward.series_rows:
        index = numbers.get(block.noise.unknown(block.name))
        if block.noise.dispersion == "estimate" and index is not None and not bound[index]:
            places = np.arange(block.rows.start, block.rows.stop)
            rows.setdefault(index, []).append((block.condition, block.name, places))
            laws[index] = block.noise.law
    if not rows or forward.nodes is not None:
        return []
    predicted = _predicted(forward, vector)
    if predicted is None:
        return []
    others = np.setdiff1d(np.flatnonzero(~bound), list(numbers.values()))
    sizes = sizes_at(problem, vector)
    basis = column_space(evaluation.information[:, others], sizes[others])
    counts = []
    for index, several in rows.items():
        places = np.concatenate([r for _, _, r in several])
        series = [problem.conditions[c].series[name] for c, name, _ in several]
        counted = Counted(
            laws[index],
            np.concatenate([predicted[c, name] for c, name, _ in several]),
            np.concatenate([s.values for s in series]),
            float(vector[index]),
            places,
            basis[places],
        )
        counts.append((index, counted))
    return counts


def _predicted(forward: ForwardMap, vector: Array) -> dict[tuple[int, str], Array] | None:
    trajectories = forward.trajectories(vector)
    if isinstance(trajectories, Failure):
        return None
    blocks = forward.series_residuals(vector, trajectories)
    predicted = {}
    for number, condition in enumerate(forward.problem.conditions):
        for name in condition.series:
            block = next(blocks)
            if isinstance(block, Failure):
                return None
            predicted[number, name] = block.predicted
    return predicted


def _adjusted(index: int, counted: Counted, level: float) -> AdjustedDispersion:
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaincinv

    def adjusted(logarithm: float) -> float:
        return counted.adjusted(math.exp(logarithm))

    grid = np.linspace(math.log(LEAST), math.log(MOST), GRID)
    costs = np.array([adjusted(x) for x in grid])
    place = int(costs.argmin())
    around = grid[max(place - 1, 0)], grid[min(place + 1, GRID - 1)]
    best = minimize_scalar(adjusted, bounds=around, method="bounded", options={"xatol": 1e-8})
    at, least = (best.x, best.fun) if best.fun < costs[place] else (grid[place], costs[place])
    allowed = float(least + gammaincinv(0.5, level))
    lower = _crossing(adjusted, grid[0], float(at), allowed)
    upper = _crossing(adjusted, grid[-1], float(at), allowed)
    ends = math.exp(lower or grid[0]), math.exp(upper or grid[-1])
    plain = counted.cost(counted.dispersion)
    deviances = [max(2 * (counted.cost(end) - plain), 0.0) for end in ends]
    return AdjustedDispersion(
        index,
        math.exp(at),
        0.0 if lower is None else ends[0],
        math.inf if upper is None else ends[1],
        (
            deviances[0] if ends[0] < counted.dispersion else 0.0,
            deviances[1] if ends[1] > counted.dispersion else 0.0,
        ),
        counted,
    )


def _crossing(
    function: Callable[[float], float], far: float, near: float, allowed: float
) -> float | None:
    """Return the point at which a function reaches a value beyond its minimum, or None."""
    from scipy.optimize import brentq

    if function(far) <= allowed or far == near:
        return None
    return float(brentq(lambda x: function(x) - allowed, far, near, xtol=1e-10))
