"""Random and changed problems: independent routes agree on a few; the campaigns have more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from evidence.agreement.differential import METHODS, SAME_VALUE, SCIPY, outcome
from evidence.agreement.guises import OWN, Guise, other_guise, own_guise
from evidence.agreement.random_problems import random_problem
from evidence.agreement.special_models import FAMILIES, special_model
from evidence.agreement.special_starts import Judge, verdict
from evidence.agreement.units import Answer, answer, differences
from odefit import library
from odefit.problem import problem_from_mapping, problem_to_mapping
from odefit.simulation import Failure, ForwardMap

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


SPECIAL = (*range(2, 11), 12, 15)
"""Quick ones of all families."""


@pytest.mark.parametrize("seed", SPECIAL)
def test_nothing_false_is_said_of_models_from_special_values(seed: int) -> None:
    found = verdict(seed, seconds=20.0, search=False)
    assert found["false"] == []
    assert found["undecided"] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 6, 7, 9, 12, 15])
def test_as_many_solutions_are_counted_as_are_found(seed: int) -> None:
    found = verdict(seed)
    assert found["false"] == []
    assert found["found"] == found["solutions"]


def test_a_special_model_is_that_of_its_seed() -> None:
    assert special_model(7) == special_model(7)
    assert special_model(7) != special_model(16)
    assert {special_model(s).family for s in range(9)} == set(FAMILIES)


@pytest.mark.slow
def test_the_judge_sees_what_double_precision_hides() -> None:
    # Of the Hill chains some begin with powers of the time that doubles lose.
    model = special_model(0)
    judge = Judge(model, 0)
    values, derivatives = judge.outputs_at(judge.truth) or (None, None)
    assert values is not None
    assert derivatives is not None
    doubles = judge._in_doubles(values, derivatives)
    digits = judge._in_digits()
    assert digits.digits == 50
    if doubles is not None:
        assert (doubles.determined, doubles.effective) == (digits.determined, digits.effective)


CASES: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("michaelis-menten", {"a": 1e-15, "t": 1e-3}),
    ("lotka-volterra", {"a": 1e9, "b": 1e-9, "t": 1e5}),
    ("transport", {"a": 1e6, "b": 1e-6}),
    ("second-order", {"a": 1e13}),
)

MORE: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("logistic", {"a": 1e-12, "t": 1e9}),
    ("one-compartment", {"a": 1e-15, "dose": 1e13}),
    ("robertson-like", {"a": 1e-12}),
    ("production", {"a": 1e-12, "y": 1e12}),
    ("michaelis-menten", {"a": 1e13}),
    ("sir", {"a": 1e-15}),
    ("one-compartment", {"a": 1e6, "dose": 1e-6, "t": 1e-9}),
    ("lotka-volterra", {"a": 1e-6, "b": 1e6}),
    ("mass-action", {"a": 1e-15, "t": 1e3}),
    ("goodwin", {"a": 1e-6, "b": 1e6}),
    ("hill", {"a": 1e-9, "b": 1e9}),
)


@cache
def plain(name: str) -> Answer:
    return answer(own_guise(name, {}))


@pytest.mark.parametrize(("name", "units"), CASES)
def test_an_answer_is_the_same_in_other_units(name: str, units: Mapping[str, float]) -> None:
    assert not differences(plain(name), answer(own_guise(name, units)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "units"), MORE)
def test_more_answers_are_the_same_in_other_units(name: str, units: Mapping[str, float]) -> None:
    assert not differences(plain(name), answer(own_guise(name, units)))


@pytest.mark.slow
def test_the_answer_to_a_problem_of_the_library_is_the_same_in_other_units() -> None:
    given = problem_to_mapping(library.load("sir"))
    units = {"S": 1e9, "I": 1e9, "R": 1e9}
    found = answer(other_guise(given, units, time=1e-6))
    assert not differences(answer(Guise(given, {})), found)


def test_a_sum_of_states_is_observed_in_the_unit_of_its_data() -> None:
    given = problem_to_mapping(library.load("hiv-p"))
    guise = other_guise(given, dict.fromkeys("xyvwz", 1e12) | {"u": 1e-9}, time=1e-8)
    values = np.linspace(0.2, 0.4, 15)
    one, other = (problem_from_mapping(m) for m in (given, guise.mapping))
    factors = np.array([guise.factors.get(key, 1.0) for key in one.keys])
    expected = ForwardMap(one, "bdf").evaluate(values)
    found = ForwardMap(other, "bdf").evaluate(values * factors)
    assert not isinstance(expected, Failure)
    assert not isinstance(found, Failure)
    assert np.allclose(found.residuals / 1e12, expected.residuals, rtol=1e-6, atol=1e-6)


def test_what_differs_is_told() -> None:
    known = plain("second-order")
    wrong = replace(known, objective=known.objective * 1.01, trouble={"k": "no effect"})
    assert len(differences(known, wrong)) == 2


@pytest.mark.parametrize("name", OWN)
def test_each_model_has_a_unit_for_every_unknown(name: str) -> None:
    guise = own_guise(name, {"a": 1e-3, "t": 1e3})
    assert set(problem_from_mapping(guise.mapping).keys) == set(guise.factors)
