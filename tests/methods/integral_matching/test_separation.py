"""Linear unknowns in closed form, with bounds and penalties; the others by variable projection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from odefit import IntegralMatching, Model, library
from odefit.common.arrays import Array
from odefit.methods.integral_matching.criterion import IntegralCriterion
from odefit.methods.integral_matching.lasso import lasso
from odefit.methods.integral_matching.separation import (
    EquationBlock,
    Penalty,
    PenaltyWeights,
    _reduced,
    penalty_weights_at,
    solve_block,
    solve_linear,
)
from odefit.methods.local.stopping import Tolerances
from tests.methods.integral_matching.problems import (
    SATURATED,
    T,
    chain,
    matched,
    saturated,
    worst,
)

NONE = Penalty()
NO_PENALTY = PenaltyWeights(np.zeros(4), np.zeros(4))
FREE = np.full(4, np.inf)
ALL = np.ones(4, dtype=bool)


def system(seed: int, rows: int = 30, count: int = 4, alike: float = 0.0) -> tuple[Array, Array]:
    """Columns, `alike` from 0 to 1, and a constant."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(rows, 1))
    columns = alike * common + (1 - alike) * random.normal(size=(rows, count))
    return columns * 10.0 ** random.uniform(-3, 3, count), random.normal(size=rows)


# Linear problems ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_without_bounds_it_is_least_squares(seed: int) -> None:
    columns, constant = system(seed)
    found, basis, singular = solve_linear(columns, constant, -FREE, FREE, NO_PENALTY)
    assert found == pytest.approx(np.linalg.lstsq(columns, -constant, rcond=None)[0], rel=1e-8)
    assert basis.T @ basis == pytest.approx(np.eye(4), abs=1e-12)
    assert columns - basis @ (basis.T @ columns) == pytest.approx(0 * columns, abs=1e-9)
    assert singular == ()


@pytest.mark.parametrize("alike", [0.0, 0.9])
@pytest.mark.parametrize("seed", range(8))
def test_within_bounds_it_is_scipys(seed: int, alike: float) -> None:
    columns, constant = system(seed, alike=alike)
    free = np.linalg.lstsq(columns, -constant, rcond=None)[0]
    random = np.random.default_rng(100 + seed)
    low = free + np.abs(free) * random.uniform(-1, 0.5, 4)
    high = low + np.abs(free) * random.uniform(0.1, 1, 4)
    found = solve_linear(columns, constant, low, high, NO_PENALTY)[0]
    exact = lsq_linear(columns, -constant, (low, high), method="trf", tol=1e-14, lsq_solver="exact")
    assert ((found >= low) & (found <= high)).all()
    cost = 0.5 * float(np.sum((columns @ found + constant) ** 2))
    assert cost <= exact.cost * (1 + 1e-9)


def test_an_unknown_at_its_bound_is_not_in_the_basis() -> None:
    columns, constant = system(0)
    free = np.linalg.lstsq(columns, -constant, rcond=None)[0]
    low = np.array([free[0] + abs(free[0]), -np.inf, -np.inf, -np.inf])
    found, basis, _ = solve_linear(columns, constant, low, FREE, NO_PENALTY)
    assert found[0] == pytest.approx(low[0])
    assert basis.shape[1] == 3


@pytest.mark.parametrize(
    ("columns", "singular"),
    [
        ([[1.0, 1, 0], [2, 2, 1], [3, 3, 5]], (0, 1)),
        ([[1.0, 0, 0], [2, 0, 1], [3, 0, 5]], (1,)),
        ([[1.0, 1e-8, 0], [2, 2e-8, 1], [3, 3e-8, 5]], (0, 1)),
        ([[1.0, 1, 2], [2, 0, 2], [3, 1, 4]], (0, 1, 2)),
    ],
)
def test_columns_that_the_others_replace_are_named(
    columns: list[list[float]], singular: tuple[int, ...]
) -> None:
    free = np.full(3, np.inf)
    right = np.array([1.0, 2.0, -1.0])
    weights = PenaltyWeights(np.zeros(3), np.zeros(3))
    found, _, named = solve_linear(np.array(columns), right, -free, free, weights)
    assert named == singular
    assert np.isfinite(found).all()


@pytest.mark.parametrize("weight", [1e-6, 0.1, 10.0])
def test_ridge_is_its_closed_form_and_leaves_initial_values_alone(weight: float) -> None:
    columns, constant = system(1)
    free = np.array([True, False, True, True])
    weights = PenaltyWeights.of(Penalty(ridge=weight), columns, constant, free)
    found = solve_linear(columns, constant, -FREE, FREE, weights)[0]
    sizes = np.sum(columns**2, axis=0) * free
    exact = np.linalg.solve(columns.T @ columns + weight * np.diag(sizes), -columns.T @ constant)
    assert found == pytest.approx(exact, rel=1e-6)


def is_optimal(
    columns: Array, right: Array, low: Array, high: Array, thresholds: Array, y: Array
) -> bool:
    """The Karush-Kuhn-Tucker conditions, by one-sided derivatives."""
    gradient = columns.T @ (columns @ y - right)
    slack = 1e-8 * np.abs(columns.T @ right).max()
    up = gradient + np.where(y >= 0, thresholds, -thresholds)
    down = gradient + np.where(y <= 0, -thresholds, thresholds)
    inside = bool(((y >= low) & (y <= high)).all())
    return inside and bool(
        ((up >= -slack) | (y >= high)).all() & ((down <= slack) | (y <= low)).all()
    )


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.9, 0.999]),
    st.sampled_from([1e-4, 0.05, 0.5, 2.0]),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_lasso_meets_its_optimality_conditions(
    seed: int, count: int, alike: float, weight: float, bounded: bool
) -> None:
    columns, right = system(seed, 20, count, alike)
    columns = columns / np.linalg.norm(columns, axis=0)
    random = np.random.default_rng(seed)
    thresholds = weight * np.linalg.norm(right) * (random.random(count) < 0.8)
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    if bounded:
        low = random.choice([-np.inf, 0.0, -0.3, 0.1], count)
        high = random.choice([np.inf, 0.2, 0.5], count)
    found = lasso(columns, right, low, high, thresholds)
    assert is_optimal(columns, right, low, high, thresholds, found)


def test_lasso_of_orthogonal_columns_is_soft_thresholding() -> None:
    right = np.array([3.0, -2.0, 0.5, 1.0])
    free = np.full(4, np.inf)
    found = lasso(np.eye(4), right, -free, free, np.full(4, 1.0))
    assert found == pytest.approx([2.0, -1.0, 0.0, 0.0])


def test_a_strong_lasso_leaves_unpenalised_unknowns_unchanged() -> None:
    columns, constant = system(2)
    kept = np.array([False, True, True, False])
    weights = PenaltyWeights.of(Penalty(lasso=10.0), columns, constant, kept)
    found = solve_linear(columns, constant, -FREE, FREE, weights)[0]
    assert (found[kept] == 0).all()
    rest = np.linalg.lstsq(columns[:, ~kept], -constant, rcond=None)[0]
    assert found[~kept] == pytest.approx(rest, rel=1e-8)


# Variable projection --------------------------------------------------------------------------


def blocks_of(problem: Any, **options: Any) -> tuple[IntegralCriterion, EquationBlock]:
    matching = IntegralMatching(**options).matching(problem)
    criterion = matching.criterion
    linear = matching.linear
    rest = tuple(k for k in range(criterion.size) if k not in linear)
    return criterion, EquationBlock(tuple(range(len(criterion.equations))), linear, rest)


PENALTIES = [
    NONE,
    Penalty(ridge=0.01),
    Penalty(ridge=0.3),
    Penalty(lasso=1e-3),
    Penalty(lasso=0.05),
    Penalty(ridge=0.01, lasso=0.01),
]


@pytest.mark.slow
@pytest.mark.parametrize("at", [0.2, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_gradient_of_the_reduced_criterion_is_exact(
    at: float, bounded: bool, penalty: Penalty
) -> None:
    """Kaufman's Jacobian has the exact gradient, also where a linear unknown is at a bound."""
    criterion, block = blocks_of(saturated(noise=0.1))
    size = criterion.size
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    if bounded:
        lower[block.linear[0]] = 5.0
    weights = penalty_weights_at(criterion, block, np.ones(size), penalty)

    def reduced(k: float) -> tuple[float, float]:
        end = _reduced(criterion, block, np.full(size, k), lower, upper, weights)
        assert end is not None
        assert len(end.residuals) == len(end.jacobian)
        return end.cost, float((end.jacobian.T @ end.residuals)[0])

    h = 1e-5
    difference_quotient = (reduced(at + h)[0] - reduced(at - h)[0]) / (2 * h)
    assert reduced(at)[1] == pytest.approx(difference_quotient, rel=1e-4, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_search_ends_at_the_minimum_over_all_unknowns_together(penalty: Penalty) -> None:
    """By another algorithm, without any separation; magnitudes as differences y+ - y-."""
    criterion, block = blocks_of(saturated(noise=0.1))
    size, linear, count = criterion.size, list(block.linear), len(block.linear)
    (k,) = block.nonlinear
    start = np.ones(size)
    weights = penalty_weights_at(criterion, block, start, penalty)

    def whole(z: Array) -> tuple[float, Array]:
        vector = np.zeros(size)
        vector[linear], vector[k] = z[:count] - z[count:-1], z[-1]
        values, derivatives = criterion.residuals(vector, range(size))
        residuals = np.concatenate(values)
        gradient = np.concatenate(derivatives).T @ residuals
        y, sums = vector[linear], z[:count] + z[count:-1]
        own = gradient[linear] + weights.squares * y
        cost = (
            0.5 * residuals @ residuals + 0.5 * weights.squares @ y**2 + weights.magnitudes @ sums
        )
        both = [own + weights.magnitudes, -own + weights.magnitudes, gradient[[k]]]
        return float(cost), np.concatenate(both)

    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    lower[k], upper[k] = 0.01, 5.0
    tight = Tolerances(cost=1e-12, step=1e-12)
    found = solve_block(
        criterion, block, start, lower, upper, penalty, tight, lambda: False, relax=False
    )
    ends = [
        minimize(
            whole,
            np.concatenate([np.ones(count), np.zeros(count), [begin]]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * count) + [(0.01, 5.0)],
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10},
        )
        for begin in (0.5, 2.0)
    ]
    best = min(ends, key=lambda end: float(end.fun))
    penalised = found.cost + weights.cost(found.vector[linear])
    assert found.converged
    assert penalised == pytest.approx(best.fun, rel=1e-6)
    assert penalised <= best.fun * (1 + 1e-9)
    assert found.vector[k] == pytest.approx(best.x[-1], rel=1e-2)


def test_the_cost_of_a_match_is_the_criterion_without_penalties() -> None:
    problem = saturated(noise=0.05)
    for options in ({"ridge": 0.1}, {"lasso": 0.01}):
        match, _ = matched(problem, **options)
        values, _ = IntegralMatching().matching(problem).criterion.residuals(match.vector, [])
        assert match.cost == pytest.approx(0.5 * sum(float(v @ v) for v in values), rel=1e-10)


@pytest.mark.parametrize("bounded", [False, True])
def test_terms_selected_by_the_lasso_are_fitted_without_its_penalty(bounded: bool) -> None:
    """As if the terms it dropped had never been candidates."""
    bounds = {"v": {"upper": 1.5 if bounded else np.inf}}
    rates: dict[str, Any] = {"k": {"lower": 0.01, "upper": 5.0, "guess": 1.0}, "f": {}, "e": {}}
    model = Model(ode={"x": "f - v*x/(k + x) + g*w", "w": "v*x/(k + x) - e*w + h*w^2"})
    problem = saturated(0.02, model=model, parameters={**bounds, **rates, "g": {}, "h": {}})
    match, found = matched(problem, lasso=0.003)
    dropped = {key for key, value in found.items() if value == 0}
    assert {"g", "h"} & dropped
    assert not {"v", "x", "w"} & dropped
    fixed: Any = {key: {"fixed": 0.0} for key in dropped}
    plain, without = matched(problem.with_parameters(**fixed), start={"k": found["k"]})
    assert {k: found[k] for k in without} == pytest.approx(without, rel=1e-3)
    assert match.cost == pytest.approx(plain.cost, rel=1e-6)
    assert not bounded or found["v"] <= 1.5


@pytest.mark.parametrize("c", [1e-4, 1e-2, 1.0, 9.9])
def test_one_nonlinear_unknown_is_found_from_far_away(c: float) -> None:
    """Gauss-Newton steps alone would double it, so that four decades took some 25 evaluations."""
    problem = library.load("fitzhugh-nagumo-separable")
    match = IntegralMatching(start={"c": c}).match(problem)
    found = dict(zip(problem.keys, match.vector, strict=True))
    assert found["c"] == pytest.approx(2.35474, rel=1e-4)
    assert match.nonlinear == ("c",)
    assert match.evaluations <= 20


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_separable_and_not_separable_have_the_same_minimum(noise: float) -> None:
    start = {k: v * 1.1 for k, v in SATURATED.items()}
    separable, one = matched(saturated(noise))
    whole, other = matched(saturated(noise), separable=False, start=start)
    assert separable.cost == pytest.approx(whole.cost, rel=1e-6, abs=1e-12)
    assert worst(one, other) < 1e-3
    assert set(separable.linear) == {"v", "f", "e", "x", "w"}
    assert separable.nonlinear == ("k",)
    assert set(whole.nonlinear) == set(SATURATED)
    assert "matched by nonlinear least squares (6 unknowns)" in whole.message


def test_no_other_algorithm_finds_less() -> None:
    problem = saturated(noise=0.05)
    match, _ = matched(problem)
    criterion = IntegralMatching().matching(problem).criterion

    def cost(vector: Array) -> float:
        return 0.5 * sum(float(v @ v) for v in criterion.residuals(vector, [])[0])

    assert cost(match.vector) == pytest.approx(match.cost, rel=1e-10)
    again = minimize(cost, match.vector, method="Nelder-Mead", options={"maxiter": 300})
    assert again.fun > match.cost * (1 - 1e-6)


def test_matching_equation_by_equation_gives_the_joint_solution() -> None:
    """Three equations that share nothing: the blocks' answers are those of one block."""
    random = np.random.default_rng(0)
    model = Model(ode={"x": "a*x + b*y", "y": "c*x + d*z", "z": "e*y + f*z*x"})
    data = {
        "t": T,
        **{s: np.sin(T + i) + 1.5 + 0.02 * random.normal(size=41) for i, s in enumerate("xyz")},
    }
    problem = chain(
        model=model,
        data=data,
        parameters={p: {} for p in "abcdef"},
        initial={s: {} for s in "xyz"},
    )
    matching = IntegralMatching().matching(problem)
    criterion = matching.criterion
    parts = matching.blocks(criterion, range(criterion.size))
    assert sorted(len(b.equations) for b in parts) == [1, 1, 1]
    match, found = matched(problem)
    size = criterion.size
    free = np.full(size, np.inf)
    joint = solve_block(
        criterion,
        EquationBlock((0, 1, 2), tuple(range(size)), ()),
        np.zeros(size),
        -free,
        free,
        NONE,
        Tolerances(),
        lambda: False,
    )
    assert match.cost == pytest.approx(joint.cost, rel=1e-9)
    assert list(found.values()) == pytest.approx(joint.vector[: len(found)], rel=1e-6, abs=1e-9)


def test_a_shared_parameter_joins_its_equations() -> None:
    matching = IntegralMatching().matching(chain())
    assert len(matching.blocks(matching.criterion, range(4))) == 1


def test_bounds_keep_rates_where_they_belong() -> None:
    """Least squares would have f negative."""
    problem = saturated(
        noise=0.05,
        parameters={
            "v": {"lower": 0.0, "upper": 1.5},
            "k": {"lower": 0.01, "upper": 5.0},
            "f": {"lower": 0.0},
            "e": {"lower": 0.5},
        },
    )
    _, found = matched(problem)
    assert found["v"] <= 1.5
    assert found["f"] >= 0.0
    assert found["e"] >= 0.5
    assert min(1.5 - found["v"], found["f"], found["e"] - 0.5) == pytest.approx(0.0, abs=1e-12)
