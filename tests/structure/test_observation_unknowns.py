"""Which unknowns have an explicit optimum, because they act on the observation alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Parameter, Problem
from odefit.problem.priors import Prior
from odefit.structure.observation_unknowns import observation_unknowns

TIMES = np.linspace(0.0, 2.0, 5)


def decay(observables: dict[str, str], noise: dict[str, Any] | None = None, **more: Any) -> Problem:
    """A decay that is observed in some way; the unknowns are k and the names in `more`."""
    return Problem(
        Model(ode={"x": "-k*x"}, observables=observables),
        {"t": TIMES, **{name: np.exp(-TIMES) for name in observables}},
        {"k": {"lower": 0.0}, **{name: {"lower": 0.0} | fields for name, fields in more.items()}},
        {"x": 1.0},
        noise=noise,
    )


def found(problem: Problem) -> tuple[set[str], set[str], dict[str, float]]:
    unknowns = observation_unknowns(problem)
    keys = problem.keys
    return (
        {keys[k] for k in unknowns.linear},
        {keys[k] for k in unknowns.logarithmic},
        {keys[k]: power for k, power in unknowns.deviations.items()},
    )


def units(problem: Problem) -> dict[str, float]:
    powers = observation_unknowns(problem).units
    return {problem.keys[k]: power for k, power in powers.items()}


def test_scales_and_offsets_are_linear() -> None:
    problem = decay({"y": "s*x + b", "z": "(b - x/4)*3 + c*t"}, s={}, b={}, c={})
    assert found(problem) == ({"s", "b", "c"}, set(), {})


def test_unknowns_of_trajectories_are_not_eliminated() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "a*x + k + d"}),
        parameters={"k": {}, "a": {}, "d": {}, "e": {}},
        initial={"x": "a"},
        experiments=[
            Experiment(
                "one",
                {"t": TIMES, "y": np.exp(-TIMES)},
                events=[Event((1.0,), {"x": "x + e", "d": "d + 1"})],
            )
        ],
    )
    assert found(problem) == (set(), set(), {})


def test_a_product_of_unknowns_loses_one_by_elimination() -> None:
    linear, _, _ = found(decay({"y": "s*(x + b)"}, s={}, b={}))
    assert len(linear) == 1


def test_the_choice_among_products_is_a_largest_one() -> None:
    problem = decay({"y": "s*(x + b + c*t)"}, s={}, b={}, c={})
    assert found(problem) == ({"b", "c"}, set(), {})


@pytest.mark.parametrize(
    "expression", ["x/s", "s^2*x", "exp(s)*x", "abs(s*x)", "max(s*x, 0)", "x^s", "s*x + s^2"]
)
def test_a_nonlinear_observation_unknown_is_kept(expression: str) -> None:
    assert found(decay({"y": expression}, s={})) == (set(), set(), {})


@pytest.mark.parametrize("expression", ["s*x", "x/s", "s*(x + b)", "sqrt(s*x)*2", "-x*(-s)^3"])
def test_a_factor_under_a_logarithm_is_linear_in_its_logarithm(expression: str) -> None:
    noise = {"y": {"sd": 0.1, "transform": "log10"}}
    more: dict[str, dict[str, float]] = {"b": {}} if "b" in expression else {}
    assert found(decay({"y": expression}, noise, s={}, **more)) == (set(), {"s"}, {})


@pytest.mark.parametrize("expression", ["s*x + 1", "s + x", "exp(s)*x", "s*x/s"])
def test_an_unknown_that_is_not_a_factor_under_a_logarithm_is_kept(expression: str) -> None:
    noise = {"y": {"sd": 0.1, "transform": "log"}}
    assert found(decay({"y": expression}, noise, s={})) == (set(), set(), {})


def test_a_factor_that_may_be_negative_has_no_logarithm() -> None:
    noise = {"y": {"sd": 0.1, "transform": "log"}}
    assert found(decay({"y": "s*x"}, noise, s={"lower": -1.0})) == (set(), set(), {})


def test_a_scale_of_a_logarithm_and_of_a_plain_value_is_kept() -> None:
    noise = {"y": {"sd": 0.1, "transform": "log"}, "z": {"sd": 0.1}}
    assert found(decay({"y": "s*x", "z": "s*x"}, noise, s={})) == (set(), set(), {})


def test_standard_deviations_are_factors_of_the_noise() -> None:
    noise = {"y": {"sd": "estimate"}, "z": {"sd": "sigma*z"}, "w": {"sd": "sqrt(v)"}}
    problem = decay({"y": "x", "z": "x*2", "w": "x"}, noise, sigma={}, v={})
    assert found(problem) == (set(), set(), {"y_sd": 1.0, "sigma": 1.0, "v": 0.5})


def test_a_sum_of_noises_has_no_explicit_optimum() -> None:
    problem = decay({"y": "x"}, {"y": {"sd": "a + b*y"}}, a={}, b={})
    assert found(problem) == (set(), set(), {})


def test_a_product_of_standard_deviations_loses_one_by_elimination() -> None:
    _, _, deviations = found(decay({"y": "x"}, {"y": {"sd": "a*b"}}, a={}, b={}))
    assert len(deviations) == 1


def test_a_scale_that_the_noise_depends_on_is_kept() -> None:
    problem = decay({"y": "s*x"}, {"y": {"sd": "sigma*y"}}, s={}, sigma={})
    assert found(problem) == (set(), set(), {"sigma": 1.0})


def test_a_scale_of_values_and_noise_alike_is_their_unit() -> None:
    noise = {"y": {"sd": "s*sigma"}, "z": {"sd": "0.1*s^2"}, "w": {"sd": "r*sigma"}}
    problem = decay({"y": "s*x", "z": "x*s", "w": "r*x"}, noise, s={}, r={}, sigma={})
    assert found(problem) == (set(), set(), {"sigma": 1.0})
    assert units(problem) == {"r": 1.0}
    both = decay({"y": "x/s"}, {"y": {"sd": "0.1/s"}}, s={})
    assert units(both) == {"s": -1.0}


@pytest.mark.parametrize(
    ("expression", "sd"), [("s*x + 1", "0.1*s"), ("s*x", "0.1 + s"), ("x", "s*y"), ("s*x", "s^2")]
)
def test_an_unknown_that_scales_values_and_noise_differently_is_not_a_unit(
    expression: str, sd: str
) -> None:
    assert units(decay({"y": expression}, {"y": {"sd": sd}}, s={})) == {}


def test_beside_a_unit_nothing_else_is_eliminated_from_an_observable() -> None:
    noise = {name: {"sd": "0.1*s"} for name in ("y", "z")}
    problem = decay({"y": "s*(x + b + c*t)", "z": "s*x"}, noise, s={}, b={}, c={})
    assert units(problem) == {}
    assert found(problem) == ({"b", "c"}, set(), {})


def test_priors_are_allowed_where_the_problem_stays_linear() -> None:
    prior = {"prior": {"mean": 1.0, "sd": 0.1}}
    noise = {"y": {"sd": "sigma"}, "z": {"sd": 1.0, "transform": "log"}}
    problem = decay({"y": "s*x", "z": "c*x"}, noise, s=prior, c=prior, sigma=prior)
    assert found(problem) == ({"s"}, set(), {})


def test_each_experiment_says_what_an_observable_depends_on() -> None:
    """A value of its own, an expression in others, measured deviations."""
    one = Experiment("one", {"t": TIMES, "y": np.exp(-TIMES)}, constants={"s": "a"})
    two = Experiment(
        "two", {"t": TIMES, "y": np.exp(-TIMES)}, constants={"s": "b^2"}, initial={"x": Parameter()}
    )
    three = Experiment(
        "three",
        {"t": TIMES, "y": np.exp(-TIMES), "y_sd": np.ones(5)},
        constants={"s": 2.0, "sigma": "a"},
    )
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "s*x + c"}),
        parameters={
            "k": {},
            "a": {},
            "b": {},
            "c": {"per_experiment": True},
            "sigma": {"lower": 0.0},
        },
        initial={"x": 1.0},
        noise={"y": {"sd": "sigma"}},
        experiments=[one, two, three],
    )
    linear, logarithmic, deviations = found(problem)
    assert linear == {"a", "c[one]", "c[two]", "c[three]"}
    assert (logarithmic, deviations) == (set(), {"sigma": 1.0})


def test_a_constant_may_be_the_exponent_of_a_factor() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "(s*x)^n"}, constants={"n": 2.0}),
        {"t": TIMES, "y": np.exp(-TIMES)},
        {"k": {}, "s": Parameter(lower=0.0)},
        {"x": 1.0},
        noise={"y": {"sd": 1.0, "transform": "log"}},
    )
    assert found(problem) == (set(), {"s"}, {})


def test_a_linear_unknown_may_have_a_prior_and_be_negative() -> None:
    fields = {"prior": Prior(1.0, 0.5), "lower": -1.0}
    assert found(decay({"y": "s*x"}, s=fields)) == ({"s"}, set(), {})
