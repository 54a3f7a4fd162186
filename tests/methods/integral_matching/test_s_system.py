"""An S-system of 20 states with 20 candidate terms an equation."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odefit import Experiment, IntegralMatching, Model, Problem
from odefit.common.arrays import Array
from odefit.structure.linearity import interactions, linear_unknowns


@functools.cache
def s_system(states: int, noise: float, experiments: int = 7) -> tuple[Problem, Array]:
    """Loss x_i^0.8 and two gains x_j^0.5 an equation, of all possible gains; its coefficients."""
    random = np.random.default_rng(0)
    truth = np.diag(-random.uniform(0.5, 1.5, states))
    for i in range(states):
        others = [k for k in range(states) if k != i]
        truth[i, random.choice(others, 2, replace=False)] = random.uniform(0.3, 1.0, 2)
    orders = np.full((states, states), 0.5) + 0.3 * np.eye(states)
    names = [f"x{i}" for i in range(states)]
    ode = {
        s: " + ".join(f"c{i}_{j}*x{j}^{orders[i, j]:g}" for j in range(states))
        for i, s in enumerate(names)
    }
    times = np.linspace(0.0, 3.0, 21)

    def rhs(t: float, x: Array) -> Array:
        return np.asarray((truth * x**orders).sum(axis=1))

    runs = []
    for e in range(experiments):
        begin = random.uniform(0.2, 3.0, states)
        path = solve_ivp(rhs, (0, 3), begin, t_eval=times, rtol=1e-9, atol=1e-11).y
        path = path * (1 + noise * random.normal(size=path.shape))
        runs.append(Experiment(f"e{e}", {"t": times, **dict(zip(names, path, strict=True))}))
    parameters: dict[str, Any] = {f"c{i}_{j}": {} for i in range(states) for j in range(states)}
    free: dict[str, Any] = {s: {"per_experiment": True} for s in names}
    return Problem(Model(ode=ode), None, parameters, free, experiments=runs), truth


def coefficients(problem: Problem, states: int, **options: float) -> Array:
    match = IntegralMatching(**options).match(problem)  # type: ignore[arg-type]
    assert match.nonlinear == ()
    count = states * states
    assert problem.keys[count - 1] == f"c{states - 1}_{states - 1}"
    return match.vector[:count].reshape(states, states)


sizes = pytest.mark.parametrize("states", [6, pytest.param(20, marks=pytest.mark.slow)])


@sizes
def test_all_terms_are_linear_and_each_acts_in_its_equation(states: int) -> None:
    problem, _ = s_system(states, 0.0)
    assert len(problem.unknowns) == states**2 + 7 * states
    assert len(linear_unknowns(problem)) == states**2 + 7 * states
    assert not interactions(problem)[1].any()
    assert (interactions(problem)[0][0].sum(axis=1) == states + 1).all()


@sizes
def test_exact_data_give_all_coefficients(states: int) -> None:
    problem, truth = s_system(states, 0.0)
    assert np.abs(coefficients(problem, states) - truth).max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1e-5, 1e-4])
def test_lasso_finds_the_true_terms(weight: float) -> None:
    """Of 100 candidates 30 are there; least squares has them all, and is three times worse.

    Without the fit of what is kept, the penalty of the larger weight would cost 0.33.
    """
    problem, truth = s_system(10, 0.002)
    plain, found = coefficients(problem, 10), coefficients(problem, 10, lasso=weight)
    assert (plain != 0).all()
    assert (found[truth != 0] != 0).all()
    assert np.abs(found - truth).max() < 0.05
    assert np.linalg.norm(found - truth) < 0.5 * np.linalg.norm(plain - truth)
    assert (found != 0).sum() < 60
    large = np.abs(found) > 0.2
    assert (large == (truth != 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1e-8, 1e-6])
def test_a_little_ridge_keeps_what_is_not_determined_small(weight: float) -> None:
    """Two experiments do not tell 10 collinear terms apart."""
    problem, truth = s_system(10, 0.01, experiments=2)
    plain, found = coefficients(problem, 10), coefficients(problem, 10, ridge=weight)
    assert np.abs(found - truth).mean() < np.abs(plain - truth).mean()
