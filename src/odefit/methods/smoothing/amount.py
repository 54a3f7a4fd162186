"""How much a penalised spline smooths: candidates, and those that are likely."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from odefit.methods.smoothing.banded import Penalised, Series, Solution
from odefit.methods.smoothing.expansion import members
from odefit.methods.smoothing.smoother import EPS
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError

Criterion = Literal["reml", "gcv"]

LOW, HIGH = -18.0, 27.0
"""Logarithm of the amount of smoothing: from interpolation to the limit of rounding, both for
data that are evenly spread."""

COARSE = 3.0
"""Between the first candidates."""

HALVINGS = 3
"""Of that distance around the best."""

WEIGHT = 0.01
"""Of a candidate, below which it is left out of the mean."""

FEWEST = 8
"""Pieces of a spline to which the search for a smoother curve goes down."""

COARSER = 3
"""Times fewer pieces where smoothing as strong as rounding allows is not strong enough."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Amounts of smoothing that are likely for one penalty.

    Attributes
    ----------
    problem
        The penalised problem.
    solutions
        By amount, the best first.
    weights
        Of these, sum 1.
    sds
        Noise by amount.
    score
        The best criterion.
    saturated
        Whether smoothing is as strong as rounding allows with so many splines.
    """

    problem: Penalised = field(repr=False)
    solutions: list[Solution] = field(repr=False)
    weights: Array
    sds: Array
    score: float
    saturated: bool

    @property
    def parameters(self) -> float:
        """Effective number of parameters of the best."""
        return self.problem.parameters(self.solutions[0].ratio)

    def mean(self) -> Array:
        """Coefficients, averaged over the amounts."""
        found = np.array([solution.coefficients for solution in self.solutions])
        return np.asarray(self.weights @ found, dtype=float)


def choose(problem: Penalised, criterion: Criterion, near: float | None = None) -> Choice:
    """The best amount; with likelihood, all likely ones are kept.

    Parameters
    ----------
    problem
        The penalised problem.
    criterion
        What is best.
    near
        Ratio from which to search downhill; None for a search of all amounts.

    Raises
    ------
    InputError
        Rounding prevents a solution for any amount.
    """
    measure = problem.likelihood if criterion == "reml" else problem.cross_validation
    high = HIGH + float(np.log(problem.unevenness))
    known: dict[float, tuple[float, float, Solution]] = {}

    def score(log: float) -> float:
        if log not in known:
            found = problem.solve(float(np.exp(log))) if LOW <= log <= high else None
            if found is None:
                return np.inf
            known[log] = (*measure(found), found)
        return known[log][0]

    everywhere = [float(log) for log in np.arange(LOW, high + COARSE, COARSE)]
    best = min(everywhere, key=score) if near is None else float(np.log(near))
    if score(best) == np.inf:
        best = min(everywhere, key=score)
    step = COARSE
    for _ in range(HALVINGS + 1):
        while score(beside := min(best - step, best + step, key=score)) < score(best):
            best = beside
        step /= 2
    if not known:
        raise InputError(
            f"spline of order {problem.order}: times or standard deviations are too uneven; take "
            f"a lower order, or leave out points that hardly count"
        )
    ordered = sorted(known)
    scores = np.array([known[log][0] for log in ordered])
    if criterion == "reml" and len(ordered) > 1:
        chosen, weights = members(scores, np.gradient(np.array(ordered)))
        chosen, weights = chosen[weights > WEIGHT], weights[weights > WEIGHT]
    else:
        chosen, weights = np.array([int(np.argmin(scores))]), np.ones(1)
    kept = [known[ordered[i]] for i in chosen]
    return Choice(
        problem,
        [found for _, _, found in kept],
        weights / weights.sum(),
        np.array([max(sd, EPS) for _, sd, _ in kept]),
        float(scores.min()),
        best > ordered[-1] - COARSE,
    )


def resolved(series: Series, order: int, criterion: Criterion) -> Choice:
    """With a piece between any two points, or with fewer where that smooths too little.

    Beginning with few would be no cheaper, and takes fast oscillations for noise.
    """
    pieces = len(series.x) - 1
    while True:
        found = choose(Penalised.in_pieces(series, order, pieces), "reml")
        if not found.saturated or pieces <= FEWEST:
            break
        pieces = max(pieces // COARSER, FEWEST)
    return found if criterion == "reml" else cross_validated(found)


def cross_validated(choice: Choice) -> Choice:
    """The minimum of generalised cross-validation downhill from the likeliest amount.

    It has several, and the lowest interpolates at times.
    """
    return choose(choice.problem, "gcv", choice.solutions[0].ratio)


def check_criterion(criterion: str, name: str) -> None:
    """Refuse what is no criterion.

    Raises
    ------
    InputError
        Naming the smoother.
    """
    if criterion not in ("reml", "gcv"):
        raise InputError(f"{name}, criterion: expected 'reml' or 'gcv', got {criterion!r}")
