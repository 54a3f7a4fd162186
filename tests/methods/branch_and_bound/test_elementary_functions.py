"""Branch and bound with elementary functions, from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from odefit import BranchAndBound, ForwardMap, Problem, fit
from odefit.common.arrays import Array
from odefit.simulation import Evaluation
from tests.enclosure.discretised.elementary_problems import MODELS, problem_of


def least(problem: Problem) -> float:
    """Return the least objective, by a grid and a local search from its best point."""
    forward = ForwardMap(problem)

    def residuals(vector: Array) -> Array:
        found = forward.evaluate(np.asarray(vector))
        return found.residuals if isinstance(found, Evaluation) else np.full(problem.size, 1e3)

    sides = [np.linspace(a, b, 25) for a, b in zip(problem.lower, problem.upper, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))
    start = min(grid, key=lambda v: float((residuals(v) ** 2).sum()))
    bounds = (problem.lower, problem.upper)
    return 2 * float(least_squares(residuals, start, bounds=bounds, xtol=1e-12, ftol=1e-12).cost)


MESH = {"scheme": "trapezoid", "mesh": 12}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in MODELS), ("exp", MESH), ("outflow", MESH)]
)
def test_the_gap_is_closed(name: str, options: dict[str, Any]) -> None:
    problem, _ = problem_of(name, 0.05)
    result = fit(problem, BranchAndBound(gap=0.01, **options), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.gap <= 0.01 + 1e-12
    if not options:
        best = least(problem)
        assert bounds.lower <= best * (1 + 1e-9)
        assert bounds.upper == pytest.approx(best, rel=1e-4)
