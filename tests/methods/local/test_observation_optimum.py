"""The optimum of scales, offsets, standard deviations and units, beside independent formulas."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap
from odefit.methods.local.variable_projection import Projection, VariableProjection
from tests.methods.observed_chain import (
    TIMES,
    A,
    B,
    chain,
    factors,
    noisy,
    problem_of,
    projected,
    projected_by,
)


def test_a_scale_is_the_regression_of_the_data_on_the_trajectory() -> None:
    pytest.importorskip("heyoka")
    problem = problem_of({"y": "s*a"}, {"y": noisy(3 * A, 1)}, {"s": {}})
    found = projected_by("heyoka", problem, {"k": 0.8, "m": 0.6})
    x, y = chain(TIMES, 0.8, 0.6)[0], problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx(x @ y / (x @ x), rel=1e-12)
    assert found.evaluation.cost == ForwardMap(problem, "heyoka").cost(found.vector)


def test_a_deviation_is_the_root_mean_square_of_its_residuals() -> None:
    problem = problem_of({"y": "a"}, {"y": noisy(A, 1)}, {}, {"y": {"sd": "estimate"}})
    found = projected(problem, k=0.8, m=0.6)
    residuals = chain(TIMES, 0.8, 0.6)[0] - problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-12)


def test_a_factor_under_a_logarithm_is_a_geometric_mean() -> None:
    problem = problem_of(
        {"y": "s*b"},
        {"y": factors(3 * B, 1)},
        {"s": {"lower": 0.0}},
        {"y": {"sd": 0.1, "transform": "log10"}},
    )
    found = projected(problem, k=0.8, m=0.6)
    ratio = problem.data()["y"].to_numpy() / chain(TIMES, 0.8, 0.6)[1]
    assert found.vector[2] == pytest.approx(np.exp(np.mean(np.log(ratio))), rel=1e-12)


def test_one_unit_of_values_and_noise_has_the_ratio_of_squares_to_products() -> None:
    """Without a known size of the noise, log(s sigma) + |x - y/s|^2/(2 n sigma^2) is least."""
    problem = problem_of(
        {"y": "s*a"},
        {"y": factors(3 * A, 1)},
        {"s": {"lower": 0.0}, "sigma": {"lower": 0.0}},
        {"y": {"sd": "s*sigma"}},
    )
    found = projected(problem, k=0.8, m=0.6)
    x, y = chain(TIMES, 0.8, 0.6)[0], problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx((x @ y) / (x @ x), rel=1e-9)
    residuals = x - y / found.vector[2]
    assert found.vector[3] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-9)


def test_a_scale_far_from_one_keeps_its_digits() -> None:
    """Its linear problem is set up at zero, not at its start value."""
    problem = problem_of(
        {"y": "s*a"}, {"y": noisy(3e-9 * A, 1, 1e-10)}, {"s": {"lower": 1e-12, "upper": 1e12}}
    )
    forward = ForwardMap(problem)
    found = VariableProjection(forward).evaluate(np.array([0.8, 0.6, 1e12]))
    assert isinstance(found, Projection)
    x, y = chain(TIMES, 0.8, 0.6)[0], problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx(x @ y / (x @ x), rel=1e-12)


def test_several_bounds_are_active_as_in_the_reference_solver() -> None:
    from scipy.optimize import lsq_linear

    y = noisy(3 * A + 2 + 0.5 * TIMES - 0.1 * TIMES**2, 1)
    fields = {
        "s": {"lower": 0.0, "upper": 2.0},
        "c": {"lower": 2.5},
        "d": {"upper": 0.3},
        "e": {"lower": -0.05},
    }
    found = projected(problem_of({"y": "s*a + c + d*t + e*t^2"}, {"y": y}, fields), k=0.8, m=0.6)
    columns = np.column_stack([chain(TIMES, 0.8)[0], np.ones(12), TIMES, TIMES**2])
    low, high = [0.0, 2.5, -np.inf, -0.05], [2.0, np.inf, 0.3, np.inf]
    reference = lsq_linear(columns, y, (low, high), method="bvls", tol=1e-15)
    assert found.vector[2:] == pytest.approx(reference.x, rel=1e-9)
    assert 0 < np.count_nonzero(reference.active_mask) < 4


def test_the_scale_of_a_zero_observable_stays_unchanged() -> None:
    found = projected(problem_of({"y": "s*(a - a) + b"}, {"y": B}, {"s": {}}), k=1.0, m=0.5)
    assert found.vector[2] == 1.234
    assert found.evaluation.cost == pytest.approx(0.0, abs=1e-20)


def test_scale_and_offset_of_a_constant_are_found() -> None:
    found = projected(problem_of({"y": "s*a/a + c"}, {"y": 0 * A + 5.0}, {"s": {}, "c": {}}))
    assert found.vector[2] + found.vector[3] == pytest.approx(5.0, rel=1e-12)
    assert np.isfinite(found.jacobian).all()


def test_data_without_noise_leave_a_deviation_that_is_not_zero() -> None:
    problem = problem_of({"y": "a"}, {"y": A}, {}, {"y": {"sd": "estimate"}})
    found = projected(problem, k=1.0, m=0.5)
    assert 0 < found.vector[2] < 1e-10
    assert np.isfinite(found.evaluation.cost)


def test_the_deviation_of_measurements_in_several_units_is_found_to_the_last_digits() -> None:
    """Units and their common deviation depend on each other, strongly where the fit is poor. The
    reference minimises over the deviation alone."""
    pytest.importorskip("heyoka")
    from scipy.optimize import minimize_scalar

    data = {name: factors(3 * B[::-1] + k, k) for k, name in enumerate(("y", "z", "w"), 1)}
    scales = {"y": "s", "z": "r", "w": "q"}
    found = projected_by(
        "heyoka",
        problem_of(
            {name: f"{scale}*b" for name, scale in scales.items()},
            data,
            {name: {"lower": 0.0} for name in (*scales.values(), "sigma")},
            {name: {"sd": f"{scale}*sigma"} for name, scale in scales.items()},
        ),
        {"k": 0.8, "m": 0.6},
    )
    b = chain(TIMES, 0.8, 0.6)[1]

    def reciprocal(y: np.ndarray, sigma: float) -> float:
        """The positive root of y'y u^2 - b'y u - n sigma^2."""
        return float(max(np.roots([y @ y, -b @ y, -len(y) * sigma**2])))

    def cost(log_sigma: float) -> float:
        sigma, total = np.exp(log_sigma), 0.0
        for y in data.values():
            u = reciprocal(y, sigma)
            total += 0.5 * np.sum((b - u * y) ** 2) / sigma**2 + len(y) * np.log(sigma / u)
        return float(total)

    reference = minimize_scalar(cost, bracket=(-3.0, 1.0), tol=1e-14)
    assert found.evaluation.cost == pytest.approx(reference.fun, rel=1e-13)
    assert found.vector[5] == pytest.approx(np.exp(reference.x), rel=1e-6)
    units = [1 / reciprocal(y, found.vector[5]) for y in data.values()]
    assert found.vector[2:5] == pytest.approx(units, rel=1e-10)
