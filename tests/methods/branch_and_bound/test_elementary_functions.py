"""Branch and bound with elementary functions: on meshes, and from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from odefit import BranchAndBound, ForwardMap, Model, Problem, fit
from odefit.problem.arrays import Array
from odefit.simulation import Evaluation
from tests.enclosure.discretised.test_discretised_residuals import checked

TIMES = np.array([0.0, 0.5, 1.0, 1.6, 2.4])

MODELS: dict[str, tuple[dict[str, str], dict[str, float], dict[str, float]]] = {
    "exp": ({"x": "c*exp(-k*x) - x"}, {"c": 1.5, "k": 0.8}, {"x": 0.2}),
    "Hill": ({"x": "1.2*x^n/(K^n + x^n) - 0.4*x"}, {"K": 0.7, "n": 2.4}, {"x": 0.6}),
    "rhythm": ({"x": "a*sin(w*t) - x"}, {"a": 1.1, "w": 1.9}, {"x": 0.5}),
    "outflow": ({"x": "u - k*sqrt(x)"}, {"u": 0.3, "k": 0.9}, {"x": 1.4}),
    "power law": ({"x": "-k*x^g"}, {"k": 0.7, "g": 1.6}, {"x": 1.5}),
}


def problem_of(name: str, noise: float = 0.0, width: float = 1.5) -> tuple[Problem, Array]:
    ode, values, initial = MODELS[name]
    data = {"t": TIMES, "x": np.zeros(len(TIMES))}
    known = Problem(Model(ode=ode), data, {k: {} for k in values}, initial)
    truth = known.vector(values)
    path = ForwardMap(known).trajectory(truth, sensitivities=False)
    rng = np.random.default_rng(len(name))
    x = path.states[:, 0] + noise * rng.normal(size=len(TIMES))  # type: ignore[union-attr]
    bounds = {k: {"lower": v / width, "upper": v * width} for k, v in values.items()}
    return Problem(Model(ode=ode), {"t": TIMES, "x": x}, bounds, initial), truth


@pytest.mark.parametrize("scheme", ["trapezoid", "legendre", "simpson"])
@pytest.mark.parametrize("name", MODELS)
def test_solutions_of_the_equations_are_inside(name: str, scheme: str) -> None:
    problem, vector = problem_of(name)
    found = checked(problem, scheme, 6, vector, [0.0, 1e-5, 0.03, 0.3], 6)
    assert np.isfinite(found[2].remainder).all()
    assert found[0].remainder.max() <= 1e-9


def least(problem: Problem) -> float:
    """By a grid, and from its best point."""
    forward = ForwardMap(problem)

    def residuals(vector: Array) -> Array:
        found = forward.evaluate(np.asarray(vector))
        return found.residuals if isinstance(found, Evaluation) else np.full(problem.size, 1e3)

    sides = [np.linspace(a, b, 25) for a, b in zip(problem.lower, problem.upper, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))
    start = min(grid, key=lambda v: float((residuals(v) ** 2).sum()))
    bounds = (problem.lower, problem.upper)
    return 2 * float(least_squares(residuals, start, bounds=bounds, xtol=1e-12, ftol=1e-12).cost)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [{}, {"scheme": "trapezoid", "mesh": 12}])
def test_the_gap_is_closed(name: str, options: dict[str, Any]) -> None:
    problem, _ = problem_of(name, 0.05)
    result = fit(problem, BranchAndBound(gap=0.01, seconds=60, **options), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.gap <= 0.01 + 1e-12
    if not options:
        best = least(problem)
        assert bounds.lower <= best * (1 + 1e-9)
        assert bounds.upper == pytest.approx(best, rel=1e-4)
