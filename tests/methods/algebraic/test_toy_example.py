"""The toy example of the paper, section 2, with its four measurements of three digits."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import odefit
from odefit.methods.algebraic import Algebraic
from odefit.methods.algebraic.derivatives import Differentiation
from odefit.methods.algebraic.preparation import prepare
from odefit.methods.estimate import Estimate
from odefit.methods.smoothing import AAA
from tests.methods.algebraic.models import best, named, solved, toy


@functools.cache
def found() -> Estimate:
    return solved(toy())


def test_the_answer_is_that_of_the_paper() -> None:
    """The data are of mu = 0.5, x0 = 1, rounded; the paper gives (0.499, 1.000)."""
    values = named(toy(), best(found()).vector)
    assert values["mu"] == pytest.approx(0.5005, abs=1e-3)
    assert values["x"] == pytest.approx(1.0, abs=1e-3)


def test_the_answer_is_the_least_squares_fit() -> None:
    """y = x0^2 exp(-2 mu t) + x0 exp(-mu t) on a fine grid around the answer fits no better."""
    times, values = np.array([0.0, 0.333, 0.666, 1.0]), np.array([2.0, 1.563, 1.229, 0.974])
    mu, x = np.meshgrid(np.linspace(0.499, 0.503, 401), np.linspace(0.998, 1.002, 401))
    state = x[..., None] * np.exp(-mu[..., None] * times)
    errors = ((state**2 + state - values) ** 2).sum(axis=-1)
    assert best(found()).objective <= errors.min()
    assert best(found()).objective == pytest.approx(errors.min(), rel=1e-3)


def test_the_spurious_solution_is_shown_with_its_larger_error() -> None:
    """(0.249, -2.000) in the paper, whose error is 32 times as large."""
    others = [s for s in found().starts if s.vector[toy().keys.index("x")] < 0]
    assert others
    first = min(others, key=lambda s: s.objective)
    values = named(toy(), first.vector)
    assert 0.21 < values["mu"] < 0.26
    assert values["x"] == pytest.approx(-2.0, abs=0.02)
    assert first.objective > 500 * best(found()).objective


def test_derivatives_at_t0_give_the_numbers_of_the_paper() -> None:
    """Both solutions as the paper prints them, its interpolant being another one."""
    starts = solved(toy(), polish=False, complete=False, fractions=(0.0,)).starts
    plain = [named(toy(), s.vector) for s in starts if "refined" not in s.message]
    right, spurious = sorted(plain, key=lambda v: -v["x"])
    assert right == pytest.approx({"mu": 0.499, "x": 1.0}, abs=5e-3)
    assert spurious == pytest.approx({"mu": 0.249, "x": -2.0}, abs=5e-3)


def test_the_structure_has_one_solution_although_the_polynomial_system_has_two() -> None:
    preparation = prepare(toy())
    assert len(preparation.generic.solutions) == 2
    assert preparation.solution_count == 1
    counted = found().completeness
    assert counted is not None
    assert (counted.possible, counted.found, counted.real) == (1, 1, 1)
    assert found().message.startswith("2 solutions of the polynomial system")


def test_the_result_says_that_there_is_no_second_solution() -> None:
    result = odefit.fit(toy(), Algebraic())
    complete = result.assessment.complete
    assert complete is not None
    assert (complete.possible, complete.found) == (1, 1)
    assert complete.sentence.startswith("The equations admit no second solution")
    assert result.method == "Algebraic"


def test_a_start_says_where_it_comes_from() -> None:
    assert Differentiation(AAA(), 0.5).name == "AAA at 0.5 of the interval"
    assert Differentiation(AAA(), None).name == "AAA at t0"
    assert all("of the interval" in s.message for s in found().starts)
