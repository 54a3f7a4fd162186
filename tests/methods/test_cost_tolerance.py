"""When two costs are the same, and when one is as good as zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from odefit import ForwardMap, Problem, Start, Status
from odefit.methods.cost_tolerance import NEGLIGIBLE_RESIDUAL, CostTolerance
from tests.methods.problems import decay
from tests.test_fit import scattered


def end(cost: float, index: int = 0, exact: bool = False) -> Start:
    nowhere = np.zeros(2)
    return Start(index, nowhere, nowhere, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost, exact=exact)


def tolerance(**more: Any) -> tuple[CostTolerance, float]:
    """Of the decay, and the sum of squares of its data."""
    problem = decay(**more)
    values = problem.data()["y"].to_numpy()
    return CostTolerance.of(ForwardMap(problem)), float(values @ values)


def test_fits_whose_residuals_no_measurement_could_tell_from_none_are_the_same() -> None:
    """Of 1e-9 of the data, where integration of chaotic trajectories cannot do better."""
    found, squares = tolerance()
    assert found.same(end(0.0), end(0.5 * (0.99 * NEGLIGIBLE_RESIDUAL) ** 2 * squares))
    assert not found.same(end(0.0), end(0.5 * (1.01 * NEGLIGIBLE_RESIDUAL) ** 2 * squares))


def test_the_unit_of_the_data_does_not_matter_for_that() -> None:
    times = np.linspace(0.0, 4.0, 9)
    found, squares = tolerance(data={"t": times, "y": 1e-6 * np.exp(-times)})
    assert found.same(end(0.0), end(0.5 * (0.99 * NEGLIGIBLE_RESIDUAL) ** 2 * squares))
    assert not found.same(end(0.0), end(1e-25))


def test_costs_that_differ_by_less_than_one_in_ten_thousand_are_the_same() -> None:
    found, _ = tolerance()
    assert found.same(end(1.0), end(1.00009))
    assert not found.same(end(1.0), end(1.00011))


def test_likelihoods_that_differ_by_less_than_a_thousandth_are_the_same() -> None:
    found = CostTolerance.of(ForwardMap(scattered()))
    assert found.same(end(-30.0), end(-30.0009))
    assert not found.same(end(-30.0), end(-30.0011))
    assert found.zero() == -math.inf


def test_with_given_noise_no_cost_is_zero_but_for_rounding() -> None:
    plain = decay()
    noisy = Problem(
        plain.model, plain.data(), plain.parameters, plain.initial, noise={"y": {"sd": 0.1}}
    )
    found = CostTolerance.of(ForwardMap(noisy))
    assert found.zero() == -math.inf
    assert not found.same(end(0.0), end(1e-30))


def test_a_less_accurate_integration_has_a_higher_zero() -> None:
    found, squares = tolerance()
    assert 0 < found.zero() < found.zero(1e-6)
    assert found.zero(1e-6) == pytest.approx(0.5 * 1e-10 * squares)


def test_exact_fits_are_at_one_level_and_the_best_is_the_first_of_the_lowest() -> None:
    found, _ = tolerance()
    starts = [end(2.0, 0), end(1e-12, 1, exact=True), end(1e-15, 2, exact=True), end(math.inf, 3)]
    best, hits = found.best(starts)
    assert best is starts[2]
    assert hits == 2
    assert found.best([end(math.inf)]) == (None, 0)
