"""Quadratic models: their minima within bounds and a radius, beside general optimisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import Bounds, NonlinearConstraint, lsq_linear, minimize

from odefit.common.arrays import Array
from odefit.methods.local import quadratic_models
from odefit.methods.local.decompositions import singular_value_decomposition
from odefit.methods.local.quadratic_models import (
    GaussNewtonModel,
    Region,
    SecondOrderModel,
    _Damped,
    norm,
)

LONGEST = 1.1
"""Length of a step over its radius, which is met to a tenth."""


def second_order(
    gradient: Array, hessian: Array, low: float = -np.inf, high: float = np.inf
) -> SecondOrderModel:
    n = len(gradient)
    zero, one = np.zeros(n), np.ones(n)
    return SecondOrderModel(gradient, hessian, Region(one, zero, np.full(n, low), np.full(n, high)))


def indefinite(seed: int, n: int) -> tuple[Array, Array]:
    """Return a random gradient, and a Hessian with eigenvalues of both signs."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.exp(rng.uniform(-3, 3, n)) * np.resize([1, -1], n)
    return rng.standard_normal(n), (basis * values) @ basis.T


def decreases_by_slsqp(
    gradient: Array, hessian: Array, radius: float, low: float, high: float, seed: int
) -> list[float]:
    """Return the decreases that another optimiser finds within a radius, from several starts."""
    n = len(gradient)
    rng = np.random.default_rng(seed)

    def model(d: Array) -> float:
        return float(gradient @ d + 0.5 * d @ hessian @ d)

    within = NonlinearConstraint(lambda d: d @ d, -np.inf, radius**2)
    found = []
    for _ in range(8):
        start = rng.standard_normal(n) * radius / np.sqrt(n)
        end = minimize(
            model,
            start,
            bounds=Bounds(np.full(n, low), np.full(n, high)),
            constraints=within,
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        found.append(-float(end.fun))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_step_with_an_indefinite_hessian_is_the_best_within_its_length(seed: int) -> None:
    gradient, hessian = indefinite(seed, 5)
    model = second_order(gradient, hessian)
    step = model.step(0.7)
    length = norm(step)
    assert length == pytest.approx(0.7, rel=0.1)
    best = max(decreases_by_slsqp(gradient, hessian, length, -np.inf, np.inf, seed))
    assert model.decrease(step) >= best * (1 - 1e-6)


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.slow if n > 3 else ()) for n in range(12)]
)
def test_bounds_and_radius_are_kept_and_the_model_falls(seed: int) -> None:
    gradient, hessian = indefinite(seed, 6)
    model = second_order(gradient, hessian, -0.2, 0.3)
    for radius in (0.1, 0.5, 2.0):
        step = model.step(radius)
        assert norm(step) <= LONGEST * radius
        assert ((step >= -0.2) & (step <= 0.3)).all()
        # The active set stops at a point that no single component improves, the best or not.
        others = decreases_by_slsqp(gradient, hessian, norm(step), -0.2, 0.3, seed)
        assert model.decrease(step) >= 0.9 * np.median(others)


@pytest.mark.parametrize("seed", range(6))
def test_with_the_gauss_newton_hessian_both_models_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    residuals, jacobian = rng.standard_normal(9), rng.standard_normal((9, 4))
    weight, x = np.exp(rng.standard_normal(4)), rng.standard_normal(4)
    ends = x - rng.uniform(0.1, 3, 4), x + rng.uniform(0.1, 3, 4)
    one = GaussNewtonModel(residuals, jacobian, Region(weight, x, *ends))
    gradient, hessian = jacobian.T @ residuals, jacobian.T @ jacobian
    other = SecondOrderModel(gradient, hessian, Region(weight, x, *ends))
    for radius in (0.3, 3.0, 1e3):
        step = one.step(radius)
        np.testing.assert_allclose(other.step(radius), step, rtol=1e-6, atol=1e-9)
        assert other.decrease(step) == pytest.approx(one.decrease(step), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_model_promises_the_reduction_at_its_minimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    jacobian = rng.standard_normal((9, n)) * np.exp(rng.uniform(-4, 4, n))
    x = rng.uniform(-1.0, 1.0, n)
    x[:2] = -1.0, 1.0
    bounds = np.full(n, -1.0), np.ones(n)
    model = GaussNewtonModel(rng.standard_normal(9), jacobian, Region(np.ones(n), x, *bounds))
    most = model.decrease(model.step(np.inf))
    for share in (1e-12, 1e-3, 0.5, 0.999):
        assert model.promises(share * most)
    for share in (1.001, 2.0, 1e6):
        assert not model.promises(share * most)


def test_an_overflow_is_not_taken_for_a_minimum() -> None:
    one = np.ones(1)
    with np.errstate(all="ignore"):
        huge = np.full((1, 1), 1e200)
        model = GaussNewtonModel(np.full(1, 1e200), huge, Region(one, one, -9 * one, 9 * one))
        assert np.isnan(model.promised)
        assert model.promises(1e300)


def test_a_model_without_a_slope_promises_nothing() -> None:
    one = np.ones(1)
    model = GaussNewtonModel(np.zeros(1), np.ones((1, 1)), Region(one, one, -one, 2 * one))
    assert not model.promises(0.0)


def test_without_a_gradient_along_the_way_down_the_step_is_within_the_radius() -> None:
    """The hard case: the gradient says nothing of the direction in which the model falls."""
    model = second_order(np.array([1.0, 0.0]), np.diag([2.0, -1.0]))
    step = model.step(1.0)
    assert np.isfinite(step).all()
    assert norm(step) <= LONGEST
    assert model.decrease(step) > 0


UNITS = [2.0**k for k in (-600, -420, 0, 350, 450)]
"""Units of residuals and Jacobians; their squares vanish or overflow, but for the middle one."""


@pytest.mark.parametrize("radius", [0.01, 1.0, 1e5, np.inf])
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (-0.05, 0.3)])
def test_the_units_of_residuals_do_not_change_a_step(
    radius: float, bounds: tuple[float, float]
) -> None:
    """Powers of two change no digit, so that the steps are the same to the last one."""
    rng = np.random.default_rng(3)
    residuals, jacobian = rng.standard_normal(9), rng.standard_normal((9, 4))
    x, one = np.zeros(4), np.ones(4)
    low, high = np.full(4, bounds[0]), np.full(4, bounds[1])
    with np.errstate(all="ignore"):
        expected = GaussNewtonModel(residuals, jacobian, Region(one, x, low, high)).step(radius)
        for unit in UNITS:
            scaled = unit * residuals, unit * jacobian
            found = GaussNewtonModel(*scaled, Region(one, x, low, high)).step(radius)
            if abs(np.log2(unit)) < 500:  # beyond, the decrease itself vanishes
                assert found == pytest.approx(expected, rel=1e-12)
            assert np.isfinite(found).all()


@pytest.mark.parametrize("size", [1e-120, 1e-90, 1.0, 1e90, 1e140])
@pytest.mark.parametrize("wanted", [1e-120, 1e-12, 0.5, 1e12])
def test_a_step_is_as_long_as_its_radius(size: float, wanted: float) -> None:
    """Rat43 ended in a division by zero where squares of a short step vanished."""
    rng = np.random.default_rng(4)
    matrix, b = size * rng.standard_normal((3, 3)), rng.standard_normal(3)
    solver = _Damped(matrix)
    whole = float(np.linalg.norm(np.linalg.solve(matrix / size, b))) / size
    with np.errstate(all="ignore"):
        y = solver.solve(b, solver.damping(b, wanted * whole))
    length = float(np.linalg.norm(y / whole)) * whole
    assert length == pytest.approx(min(wanted, 1.0) * whole, rel=0.11)


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, 300])
def test_a_step_of_many_unknowns_takes_few_decompositions(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each of the bounds that hold it, about half of all unknowns, would take minutes."""
    rng = np.random.default_rng(count)
    jacobian = rng.normal(size=(2 * count, count))
    jacobian += rng.normal(size=(2 * count, 5)) @ rng.normal(size=(5, count))
    residuals = -jacobian @ (1.5 * rng.normal(size=count)) + rng.normal(size=2 * count)
    bound = np.ones(count)
    calls = 0

    def counted(a: Array) -> tuple[Array, Array, Array]:
        nonlocal calls
        calls += 1
        return singular_value_decomposition(a)

    monkeypatch.setattr(quadratic_models, "singular_value_decomposition", counted)
    weight = np.linalg.norm(jacobian, axis=0)
    region = Region(weight, np.zeros(count), -bound, bound)
    model = GaussNewtonModel(residuals, jacobian, region)
    step = model.step(math.inf)
    exact = lsq_linear(jacobian, -residuals, (-bound, bound), tol=1e-13).x
    assert model.decrease(step) == pytest.approx(model.decrease(exact), rel=1e-9)
    assert (np.abs(np.abs(exact) - 1.0) < 1e-4).sum() > count / 3
    assert calls < 4000 / count + 20
