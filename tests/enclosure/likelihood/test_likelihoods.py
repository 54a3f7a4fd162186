"""Squares over boxes are twice the cost of a fit, less a constant, for every noise and prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit.common.errors import InputError
from odefit.enclosure import Enclosure
from odefit.methods.branch_and_bound.local_minima import objective_at
from odefit.methods.branch_and_bound.node_bounds import NodeBounder
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from tests.enclosure.likelihood.noisy_problems import (
    NOISE,
    PRIORS,
    TOLERANCE,
    VALUES,
    box_about,
    built,
    decay,
    drawn,
    noisy,
    twice_the_cost,
)

KINDS = (*NOISE, *(f"{kind} prior" for kind in PRIORS))


@pytest.mark.parametrize("name", KINDS)
def test_the_squares_are_twice_the_cost_less_a_constant(name: str) -> None:
    problem = built(name)
    enclosure, forward = Enclosure(problem), ForwardMap(problem)
    rng = np.random.default_rng(1)
    for _ in range(8):
        v = drawn(problem, rng)
        squares = objective_at(enclosure, v)
        true = twice_the_cost(forward, v)
        assert squares + enclosure.offset == pytest.approx(true, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("name", KINDS)
def test_bounds_over_boxes_are_below_the_cost(name: str) -> None:
    problem = built(name)
    enclosure, forward = Enclosure(problem), ForwardMap(problem)
    rng = np.random.default_rng(2)
    informative = 0
    for _ in range(12):
        v = drawn(problem, rng)
        a, b = box_about(problem, v, 10 ** rng.uniform(-3, -0.3))
        found = enclosure(a[None], b[None], 30.0)
        norm = NodeBounder(enclosure.monomials)(found, 30.0).norm[0]
        least = max(found.squares_bound()[0], min(norm, 30.0) ** 2) + enclosure.offset
        informative += least > enclosure.offset
        for _ in range(6):
            true = twice_the_cost(forward, rng.uniform(a, b))
            assert least <= true + TOLERANCE * (1 + abs(true))
    assert informative > 6


def test_measurements_that_share_a_spread_have_one_residual_of_it() -> None:
    one, all_ = Enclosure(noisy("estimated")), Enclosure(noisy("combined"))
    assert one.of_spreads.sum() == 1
    assert all_.of_spreads.sum() == len(VALUES)
    assert not Enclosure(noisy("Poisson")).of_spreads.any()


@pytest.mark.parametrize(
    ("noise", "more"),
    [
        ({"sd": "estimate"}, {"y_sd": (0.0, 5.0)}),
        ({"sd": "a"}, {"a": {"lower": 0.0, "upper": 1.0}}),
        ({"sd": "a*y", "loss": "student"}, {"a": {"lower": 0.1, "upper": 1.0}}),
    ],
)
def test_a_spread_that_may_vanish_is_refused(noise: dict[str, Any], more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"noise\.y\.sd: the likelihood has no lower bound"):
        Enclosure(decay(noise, VALUES, more))


def test_a_relative_spread_of_a_value_of_zero_is_refused() -> None:
    data = np.concatenate([VALUES[:-1], [0.0]])
    with pytest.raises(InputError, match="has no lower bound"):
        Enclosure(decay({"sd": "a*y"}, data, {"a": {"lower": 0.1, "upper": 1.0}}))


def test_a_dispersion_without_a_positive_bound_is_refused() -> None:
    noise = {"distribution": "negative-binomial", "dispersion": "estimate"}
    with pytest.raises(InputError, match="give positive bounds"):
        Enclosure(decay(noise, np.round(VALUES), {"y_dispersion": (0.0, 1.0)}))


def test_the_influence_of_a_spread_alone_is_small() -> None:
    problem: Problem = noisy("estimated")
    rows = Enclosure(problem).influence
    place = problem.keys.index("y_sd")
    assert 0 < rows[0, place] < rows[0, problem.keys.index("k")] == 1.0
    assert rows[-1, place] == 1.0
