"""A problem with some quantities fixed, freed, or with other bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import odefit
from odefit import Experiment, InputError, Model, Parameter, Problem
from odefit.problem.noise import Noise
from odefit.problem.parameters import Unknown
from odefit.problem.priors import Prior

PETAB = Path(__file__).parents[2] / "data" / "petab" / "suite" / "v1" / "0001" / "_0001.yaml"
DATA = {"t": [0.0, 1.0, 2.0, 3.0], "y": [2.0, 1.2, 0.8, 0.5]}


def made(**changes: Any) -> Problem:
    """A decay, with a parameter of every kind."""
    given: dict[str, Any] = {
        "data": DATA,
        "parameters": {
            "k": {"lower": 0.0, "upper": 10.0, "guess": 0.5, "prior": {"mean": 0.4, "sd": 0.1}},
            "s": {"fixed": 2.0, "lower": 0.0},
        },
        "initial": {"x": 1.0},
        "noise": {"y": {"sd": "estimate"}},
        **changes,
    }
    return Problem(Model(ode={"x": "-k*x"}, observables={"y": "s*x"}), **given)


def two(**changes: Any) -> Problem:
    """The same in two experiments."""
    experiments = [Experiment("one", DATA), Experiment("two", DATA)]
    return made(**{"data": None, "experiments": experiments, **changes})


def unknown(problem: Problem, key: str) -> Unknown:
    return problem.unknowns[problem.keys.index(key)]


def message(problem: Problem, **revision: Any) -> str:
    with pytest.raises(InputError) as caught:
        problem.with_unknowns(**revision)
    return str(caught.value)


def test_a_fixed_parameter_is_not_an_unknown_and_has_its_value() -> None:
    problem = made().with_unknowns(fix={"k": 0.3})
    assert problem.keys == ("y_sd",)
    assert problem.conditions[0].scalars["k"] == 0.3


def test_a_freed_parameter_begins_at_the_value_that_it_had() -> None:
    problem = made().with_unknowns(free=["s"])
    assert problem.keys == ("k", "s", "y_sd")
    assert unknown(problem, "s").parameter.guess == 2.0


def test_a_freed_initial_value_begins_at_the_value_that_it_had() -> None:
    problem = made().with_unknowns(free="x")
    assert unknown(problem, "x").kind == "initial"
    assert unknown(problem, "x").parameter.guess == 1.0


def test_bounds_and_guesses_change_and_priors_stay() -> None:
    parameter = unknown(
        made().with_unknowns(bounds={"k": (0.1, None)}, guess={"k": 3.0}), "k"
    ).parameter
    assert (parameter.lower, parameter.upper, parameter.guess) == (0.1, math.inf, 3.0)
    assert parameter.prior == Prior(mean=0.4, sd=0.1)


def test_a_guess_outside_new_bounds_moves_to_the_nearest() -> None:
    assert unknown(made().with_unknowns(bounds={"k": (1.0, 2.0)}), "k").parameter.guess == 1.0


def test_an_initial_value_is_fixed_freed_and_bounded_together() -> None:
    problem = made().with_unknowns(free=["x"], bounds={"x": (0.0, 5.0)}, fix={"k": 0.3})
    assert problem.keys == ("x", "y_sd")
    assert unknown(problem, "x").parameter.upper == 5.0
    assert problem.with_unknowns(fix={"x": 2.0}).keys == ("y_sd",)


def test_a_known_initial_value_is_replaced() -> None:
    assert made().with_unknowns(fix={"x": 3.0}).conditions[0].initial["x"] == 3.0


def test_an_estimated_standard_deviation_is_fixed_and_freed() -> None:
    fixed = made().with_unknowns(fix={"y_sd": 0.1})
    assert fixed.keys == ("k",)
    assert fixed.noise["y"] == Noise(sd=0.1)
    assert fixed.with_unknowns(free=["y_sd"]).keys == ("k", "y_sd")


def test_one_experiment_is_fixed_alone() -> None:
    problem = two(parameters={"k": {"per_experiment": True, "lower": 0.0}, "s": 2.0})
    assert problem.keys == ("k[one]", "k[two]", "y_sd")
    fixed = problem.with_unknowns(fix={"k[two]": 0.3})
    assert fixed.keys == ("k[one]", "y_sd")
    assert fixed.condition("two").scalars["k"] == 0.3
    assert fixed.with_unknowns(free=["k[two]"]).keys == problem.keys
    assert problem.with_unknowns(fix={"k[one]": 0.2, "k[two]": 0.3}).keys == ("y_sd",)
    assert problem.with_unknowns(fix={"k": 0.3}).keys == ("y_sd",)


def test_one_experiment_is_freed_alone_while_the_others_keep_their_value() -> None:
    problem = two().with_unknowns(free=["s[one]"])
    assert problem.keys == ("k", "s[one]", "y_sd")
    assert problem.condition("two").scalars["s"] == 2.0


def test_the_initial_value_of_one_experiment_is_freed_bounded_and_fixed() -> None:
    freed = two().with_unknowns(free=["x[two]"], bounds={"x[two]": (0.0, 3.0)})
    assert freed.keys == ("k", "x[two]", "y_sd")
    assert unknown(freed, "x[two]").parameter == Parameter(0.0, 3.0, guess=1.0, per_experiment=True)
    assert freed.condition("one").initial["x"] == 1.0
    assert freed.with_unknowns(fix={"x[two]": 0.5}).condition("two").initial["x"] == 0.5
    assert freed.with_unknowns(fix={"x": 0.5}).keys == ("k", "y_sd")


def test_equal_bounds_are_opened_by_others() -> None:
    closed = made(parameters={"k": {"lower": 1.0, "upper": 1.0}, "s": 2.0})
    assert closed.keys == ("y_sd",)
    assert "the bounds of 'k' are equal, 1, which fixes it" in message(closed, free=["k"])
    assert closed.with_unknowns(free=["k"], bounds={"k": (0.0, 2.0)}).keys == ("k", "y_sd")


def test_the_given_problem_is_not_changed() -> None:
    problem = made()
    problem.with_unknowns(fix={"k": 1.0, "y_sd": 1.0}, free=["s"])
    assert problem.keys == ("k", "y_sd")


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ({"fix": {"kk": 1.0}}, "fix: unknown name 'kk'; did you mean 'k'?"),
        ({"free": ["y_sdd"]}, "free: unknown name 'y_sdd'; did you mean 'y_sd'?"),
        ({"fix": {"k": "a"}}, "fix k: expected a number, got 'a'"),
        ({"fix": {"k": 1.0}, "free": ["k"]}, "free: 'k' is also fixed; keep one of the two"),
        ({"bounds": {"k": 3.0}}, "bounds k: expected a pair such as (0.0, 1.0)"),
        ({"bounds": {"k": (3.0, 1.0)}}, "the bounds cross"),
        ({"bounds": {"x": (0.0, 1.0)}}, "bounds: 'x' is a known initial value; free it as well"),
        ({"guess": {"y_sd": 1.0}}, "'y_sd' belongs to the noise and is positive"),
        ({"fix": {"k[one]": 1.0}}, "'k' has one value for all experiments"),
        ({"fix": {"k[three]": 1.0}}, "unknown experiment in 'k[three]'"),
        ({"guess": {"k[one]": 1.0}}, "the guess of a parameter hold"),
    ],
)
def test_mistakes_are_reported_with_a_remedy(revision: dict[str, Any], words: str) -> None:
    assert words in message(two(), **revision)


def test_all_mistakes_are_reported_at_once() -> None:
    assert len(message(made(), fix={"a": 1.0}, free=["b"], guess={"c": 1.0}).splitlines()) == 3


def test_an_initial_value_given_by_an_expression_is_not_freed_by_itself() -> None:
    text = message(made(initial={"x": "2*s"}), free=["x"])
    assert "the initial value of 'x' is '2*s'; free the names in that expression" in text


def test_a_constant_of_the_model_is_distinguished() -> None:
    model = Model(ode={"x": "-k*c*x"}, constants={"c": 2.0})
    problem = Problem(model, {"t": [0, 1, 2], "x": [1, 0.5, 0.2]}, {"k": {}}, {"x": 1.0})
    assert "'c' is a constant of the model" in message(problem, free=["c"])


def test_problems_of_petab_and_of_the_library_are_revised() -> None:
    for name in ("alpha-pinene", "lotka-volterra-f"):
        problem = odefit.library.load(name)
        first = problem.keys[0]
        assert problem.with_unknowns(fix={first: 0.1}).keys == problem.keys[1:]
    pytest.importorskip("libsbml")
    problem = odefit.load(PETAB)
    assert problem.with_unknowns(fix={problem.keys[0]: 0.1}).keys == problem.keys[1:]
