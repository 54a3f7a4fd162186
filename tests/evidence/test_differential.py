"""Routes that share nothing but the problem find the same optimum.

``python -m evidence run differential`` does the same for more problems.
"""

from __future__ import annotations

import pytest

from evidence.agreement.differential import METHODS, SAME_VALUE, SCIPY, outcome
from evidence.agreement.random_problems import random_problem

SEEDS = (1, 3, 4, 5, 8, 12, 22, 23, 24, 25, 26, 27, 30, 33, 39)
"""Quick ones, with events, inputs, several experiments and most kinds of noise among them."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_three_methods_and_scipy_agree_on_the_optimum_of_a_random_problem(seed: int) -> None:
    routes = outcome(random_problem(seed))["routes"]
    assert {name: r["verdict"] for name, r in routes.items()} == dict.fromkeys(
        (*METHODS, SCIPY), "agrees"
    )
    assert max(routes[name]["value"] for name in METHODS) <= SAME_VALUE


def test_a_random_problem_is_that_of_its_seed() -> None:
    first, again, other = random_problem(7), random_problem(7), random_problem(8)
    assert first.mapping == again.mapping
    assert first.mapping != other.mapping


@pytest.mark.parametrize("seed", range(20, 40))
def test_the_truth_of_a_random_problem_lies_within_its_bounds(seed: int) -> None:
    drawn = random_problem(seed)
    assert all(low < drawn.truth[k] < high for k, (low, high) in drawn.bounds.items())
