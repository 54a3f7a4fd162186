"""When two costs are the same, and when one is as good as zero."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odefit import ForwardMap, Problem, Start, Status
from odefit.methods.local.cost_tolerance import (
    NEGLIGIBLE_RESIDUAL,
    UNKNOWN_ROUNDING,
    CostTolerance,
    exact_at,
    same_values,
)
from odefit.simulation.nodes import Nodes
from tests.fitting.test_fit import scattered
from tests.methods.problems import decay


def end(cost: float, index: int = 0, exact: bool = False) -> Start:
    nowhere = np.zeros(2)
    return Start(index, nowhere, nowhere, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost, exact=exact)


def tolerance(**more: Any) -> tuple[CostTolerance, float]:
    """Of the decay, and the sum of squares of its data."""
    problem = decay(**more)
    values = problem.data()["y"].to_numpy()
    return CostTolerance.of(ForwardMap(problem)), float(values @ values)


def test_fits_with_unmeasurably_small_residuals_are_equal() -> None:
    """Of 1e-9 of the data, where integration of chaotic trajectories cannot do better."""
    found, squares = tolerance()
    assert found.same(end(0.0), end(0.5 * (0.99 * NEGLIGIBLE_RESIDUAL) ** 2 * squares))
    assert not found.same(end(0.0), end(0.5 * (1.01 * NEGLIGIBLE_RESIDUAL) ** 2 * squares))


def test_cost_tolerances_do_not_depend_on_the_unit_of_the_data() -> None:
    times = np.linspace(0.0, 4.0, 9)
    found, squares = tolerance(data={"t": times, "y": 1e-6 * np.exp(-times)})
    assert found.same(end(0.0), end(0.5 * (0.99 * NEGLIGIBLE_RESIDUAL) ** 2 * squares))
    assert not found.same(end(0.0), end(1e-25))


def test_costs_that_differ_by_less_than_one_in_ten_thousand_are_the_same() -> None:
    found, _ = tolerance()
    assert found.same(end(1.0), end(1.00009))
    assert not found.same(end(1.0), end(1.00011))


def test_likelihoods_within_a_thousandth_are_equal() -> None:
    found = CostTolerance.of(ForwardMap(scattered()))
    assert found.same(end(-30.0), end(-30.0009))
    assert not found.same(end(-30.0), end(-30.0011))
    assert found.zero() == -math.inf


def with_noise(**noise: Any) -> Problem:
    plain = decay()
    return Problem(plain.model, plain.data(), plain.parameters, plain.initial, noise={"y": noise})


@pytest.mark.parametrize("sd", [1e-9, 0.1, 1e9])
def test_cost_tolerances_scale_with_the_given_noise(sd: float) -> None:
    """It is a unit of the residuals."""
    plain, squares = tolerance()
    given = CostTolerance.of(ForwardMap(with_noise(sd=sd)))
    assert given.zero() == pytest.approx(plain.zero() / sd**2)
    assert given.absolute == pytest.approx(plain.absolute / sd**2)
    assert given.squares == pytest.approx(squares / sd**2)


def test_residuals_of_logarithms_are_compared_by_relative_changes() -> None:
    """Nine values that are wrong by 1e-9 of themselves, at an sd of 0.1 of the logarithm."""
    found = CostTolerance.of(ForwardMap(with_noise(sd=0.1, transform="log")))
    assert found.absolute == pytest.approx(0.5 * 9 * (1e-9 / 0.1) ** 2)


def test_residuals_that_the_last_digit_of_an_unknown_makes_are_rounding() -> None:
    """But never where they are as large as a millionth of the data."""
    found, squares = tolerance()
    size = math.sqrt(squares)
    vector = np.array([2.0])

    def exact(residual: float, effect: float) -> bool:
        return found.exact(0.5 * residual**2, 1e-12, np.array([[effect]]), vector)

    digit = 2.0 * UNKNOWN_ROUNDING
    assert not exact(1e-8 * size, effect=size)
    assert exact(1e-8 * size, effect=1.1e-8 * size / digit)
    assert not exact(1e-8 * size, effect=0.9e-8 * size / digit)
    assert not exact(1e-4 * size, effect=size / digit)


def test_the_noise_of_a_cost_is_what_the_errors_of_the_integration_make_of_it() -> None:
    """|r + e|^2/2 - |r|^2/2, with e along r and against it."""
    found, squares = tolerance()
    r, e = 0.3, 1e-6 * math.sqrt(squares)
    noise = found.noise(0.5 * r**2, 1e-6, np.zeros((1, 1)), np.ones(1))
    assert noise == pytest.approx(0.5 * (r + e) ** 2 - 0.5 * r**2, rel=1e-9)


def test_a_less_accurate_integration_has_a_higher_zero() -> None:
    found, squares = tolerance()
    assert 0 < found.zero() < found.zero(1e-6)
    assert found.zero(1e-6) == pytest.approx(0.5 * 1e-10 * squares)


def test_a_fine_integration_sees_an_error_that_a_coarse_one_takes_for_rounding() -> None:
    """A rate that is wrong by 1e-5 of itself."""
    forward, vector = ForwardMap(decay(noise=0.0), "bdf"), np.array([0.7 * (1 + 1e-5), 2.0])
    assert exact_at(forward.with_accuracy(1e-5), vector)
    assert not exact_at(forward, vector)


def test_exact_fits_are_at_one_level_and_the_best_is_the_first_of_the_lowest() -> None:
    found, _ = tolerance()
    starts = [end(2.0, 0), end(1e-12, 1, exact=True), end(1e-15, 2, exact=True), end(math.inf, 3)]
    best, hits = found.best(starts)
    assert best is starts[2]
    assert hits == 2
    assert found.best([end(math.inf)]) == (None, 0)


class TestSameValues:
    @staticmethod
    def at(*values: float) -> Start:
        return replace(end(1.0), vector=np.array(values))

    def test_every_unknown_counts_in_its_own_size(self) -> None:
        assert same_values(self.at(1e-6, 1e6), self.at(1.00005e-6, 1.00005e6))
        assert not same_values(self.at(1e-6, 1e6), self.at(1.001e-6, 1e6))
        assert same_values(self.at(0.0, 1.0), self.at(0.0, 1.0))

    def test_ends_on_nodes_are_more_than_their_unknowns(self) -> None:
        nodes = Nodes((np.zeros(1),), (np.zeros((1, 1)),))
        assert not same_values(replace(self.at(1.0), nodes=nodes), self.at(1.0))
