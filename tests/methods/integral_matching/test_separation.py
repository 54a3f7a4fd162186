"""Linear unknowns in closed form, with bounds and penalties; the others by variable projection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from odefit import IntegralMatching, Model
from odefit.methods.integral_matching.criterion import Criterion
from odefit.methods.integral_matching.lasso import lasso
from odefit.methods.integral_matching.separation import (
    Block,
    Penalty,
    _reduced,
    separated,
    solve_linear,
)
from odefit.methods.trust_region import Tolerances
from odefit.problem.algebras import Array
from tests.methods.integral_matching.courses import (
    SATURATED,
    T,
    chain,
    matched,
    saturated,
    worst,
)

NONE = Penalty()
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
    found, basis, singular = solve_linear(columns, constant, -FREE, FREE, NONE, ALL)
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
    found = solve_linear(columns, constant, low, high, NONE, ALL)[0]
    exact = lsq_linear(columns, -constant, (low, high), method="trf", tol=1e-14, lsq_solver="exact")
    assert ((found >= low) & (found <= high)).all()
    cost = 0.5 * float(np.sum((columns @ found + constant) ** 2))
    assert cost <= exact.cost * (1 + 1e-9)


def test_what_is_held_by_a_bound_is_not_in_the_basis() -> None:
    columns, constant = system(0)
    free = np.linalg.lstsq(columns, -constant, rcond=None)[0]
    low = np.array([free[0] + abs(free[0]), -np.inf, -np.inf, -np.inf])
    found, basis, _ = solve_linear(columns, constant, low, FREE, NONE, ALL)
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
    every = np.ones(3, dtype=bool)
    right = np.array([1.0, 2.0, -1.0])
    found, _, named = solve_linear(np.array(columns), right, -free, free, NONE, every)
    assert named == singular
    assert np.isfinite(found).all()


@pytest.mark.parametrize("weight", [1e-6, 0.1, 10.0])
def test_ridge_is_its_closed_form_and_leaves_initial_values_alone(weight: float) -> None:
    columns, constant = system(1)
    free = np.array([True, False, True, True])
    found = solve_linear(columns, constant, -FREE, FREE, Penalty(ridge=weight), free)[0]
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


def test_a_heavy_lasso_leaves_what_is_not_penalised() -> None:
    columns, constant = system(2)
    kept = np.array([False, True, True, False])
    found = solve_linear(columns, constant, -FREE, FREE, Penalty(lasso=10.0), kept)[0]
    assert (found[kept] == 0).all()
    rest = np.linalg.lstsq(columns[:, ~kept], -constant, rcond=None)[0]
    assert found[~kept] == pytest.approx(rest, rel=1e-8)


# Variable projection --------------------------------------------------------------------------


def blocks_of(problem: Any, **options: Any) -> tuple[Criterion, Block]:
    matching = IntegralMatching(**options).matching(problem)
    criterion = matching._criterion
    linear = matching._linear
    rest = tuple(k for k in range(criterion.size) if k not in linear)
    return criterion, Block(tuple(range(len(criterion.equations))), linear, rest)


def reduced(criterion: Criterion, block: Block, k: float, **bounds: Array) -> tuple[float, Array]:
    """Reduced criterion at k, and its Gauss-Newton gradient, from one evaluation."""
    size = criterion.size
    lower, upper = bounds.get("lower", np.full(size, -np.inf)), np.full(size, np.inf)
    end = _reduced(criterion, block, np.full(size, k), lower, upper, NONE)
    assert end is not None
    return end.cost, end.jacobian.T @ end.residuals


@pytest.mark.parametrize("at", [0.2, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("bounded", [False, True])
def test_the_gradient_of_the_reduced_criterion_is_exact(at: float, bounded: bool) -> None:
    """Kaufman's Jacobian has the exact gradient, also where a linear unknown is at a bound."""
    criterion, block = blocks_of(saturated(noise=0.1))
    lower = np.full(criterion.size, -np.inf)
    if bounded:
        lower[block.linear[0]] = 5.0
    h = 1e-5
    _, gradient = reduced(criterion, block, at, lower=lower)
    up, _ = reduced(criterion, block, at + h, lower=lower)
    down, _ = reduced(criterion, block, at - h, lower=lower)
    assert gradient[0] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-9)


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
    criterion = IntegralMatching().matching(problem)._criterion

    def cost(vector: Array) -> float:
        return 0.5 * sum(float(v @ v) for v in criterion.residuals(vector, [])[0])

    assert cost(match.vector) == pytest.approx(match.cost, rel=1e-10)
    again = minimize(cost, match.vector, method="Nelder-Mead", options={"maxiter": 300})
    assert again.fun > match.cost * (1 - 1e-6)


def test_equation_by_equation_is_the_joint_solution() -> None:
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
    criterion = matching._criterion
    parts = matching._blocks(criterion, range(criterion.size))
    assert sorted(len(b.equations) for b in parts) == [1, 1, 1]
    match, found = matched(problem)
    size = criterion.size
    free = np.full(size, np.inf)
    joint = separated(
        criterion,
        Block((0, 1, 2), tuple(range(size)), ()),
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
    assert len(matching._blocks(matching._criterion, range(4))) == 1


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
