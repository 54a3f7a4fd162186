"""Values beyond limits, and what is refused of noise that is not normal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.problem.toml.files import problem_from_mapping, problem_to_mapping

TIMES = [0.0, 1.0, 2.0, 3.0]


def problem(noise: Any, values: Any = (1.0, 0.5, 0.2, 0.05), **columns: Any) -> odefit.Problem:
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        data={"t": TIMES, "y": list(values), **columns},
        parameters={"k": {"lower": 0}},
        initial={"x": 1.0},
        noise={"y": noise},
    )


def series(of: odefit.Problem) -> Any:
    return of.conditions[0].series["y"]


def test_values_at_or_below_the_limit_are_censored_there() -> None:
    found = series(problem({"sd": 0.1, "lower_limit": 0.2}))
    assert found.censored.tolist() == [0, 0, 1, 1]
    assert found.values.tolist() == [1.0, 0.5, 0.2, 0.2]


def test_values_at_or_above_the_upper_limit_are_censored_there() -> None:
    found = series(problem({"sd": 0.1, "lower_limit": 0.1, "upper_limit": 0.6}))
    assert found.censored.tolist() == [-1, 0, 0, 1]
    assert found.values.tolist() == [0.6, 0.5, 0.2, 0.1]


def test_a_column_marks_censored_values_and_an_empty_cell_marks_nothing() -> None:
    found = series(problem({"sd": 0.1}, y_cens=[-1, 0, np.nan, 1]))
    assert found.censored.tolist() == [-1, 0, 0, 1]
    assert found.values.tolist() == [1.0, 0.5, 0.2, 0.05]


def test_a_column_of_zeros_has_no_effect() -> None:
    assert series(problem({"sd": 0.1}, y_cens=[0, 0, 0, 0])).censored is None


def test_a_limit_below_all_values_changes_nothing() -> None:
    assert series(problem({"sd": 0.1, "lower_limit": 0.01})).censored is None


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "codes": ({"sd": 0.1}, {"y_cens": [0, 2, 0, 0]}, "column y_cens: expected 1 .below.*got 2 at"),
    "no scale": ({}, {"y_cens": [0, 0, 0, 1]}, "values are censored.*give sd = a number"),
    "limits crossed": (
        {"sd": 1.0, "lower_limit": 2, "upper_limit": 1},
        {},
        "lower_limit = 2 is not below upper_limit = 1",
    ),
    "limit without logarithm": (
        {"sd": 1.0, "transform": "log", "lower_limit": -1},
        {},
        "lower_limit: must be positive to have a logarithm",
    ),
    "marked on the other side": (
        {"sd": 1.0, "lower_limit": 0.1},
        {"y_cens": [0, 0, 0, -1]},
        "marked as above 0.05, but .* lower_limit = 0.1",
    ),
    "censored with a loss": (
        {"sd": 1.0, "loss": "huber"},
        {"y_cens": [0, 0, 0, 1]},
        'censored values need normal or log-normal noise, but .* "huber"',
    ),
    "limits with a loss": (
        {"sd": 1.0, "loss": "student", "lower_limit": 0.1},
        {},
        'which "student" is not',
    ),
    "limits of counts": (
        {"distribution": "poisson", "lower_limit": 0.1},
        {"y": [3, 2, 1, 0]},
        'lower_limit: contradicts distribution = "poisson"',
    ),
    "fractions": ({"distribution": "poisson"}, {}, "is for counts, but the value at t = 1 is 0.5"),
    "negative counts": (
        {"distribution": "negative-binomial", "dispersion": 0.1},
        {"y": [3, -2, 1, 0]},
        "the value at t = 1 is -2; give whole numbers",
    ),
    "sd of counts": (
        {"distribution": "poisson", "sd": 0.1},
        {"y": [3, 2, 1, 0]},
        "sd: contradicts distribution",
    ),
    "column of sds for counts": (
        {"distribution": "poisson"},
        {"y": [3, 2, 1, 0], "y_sd": [1, 1, 1, 1]},
        "column y_sd: contradicts distribution",
    ),
    "no dispersion": (
        {"distribution": "negative-binomial"},
        {"y": [3, 2, 1, 0]},
        'needs a dispersion, e.g. dispersion = "estimate"',
    ),
    "dispersion of Poisson counts": (
        {"distribution": "poisson", "dispersion": 0.1},
        {"y": [3, 2, 1, 0]},
        'dispersion: contradicts distribution = "poisson", which has none',
    ),
    "dispersion of normal noise": ({"dispersion": 0.1}, {}, "dispersion: belongs to distribution"),
    "loss without a scale": ({"loss": "huber"}, {}, "recognises outliers by the noise; give sd"),
    "Laplace without a scale": ({"distribution": "laplace"}, {}, "has a scale; give sd"),
    "loss of Laplace noise": (
        {"sd": 1.0, "loss": "huber", "distribution": "laplace"},
        {},
        "contradict each other; a loss is a distribution of its own",
    ),
    "threshold of Student's loss": (
        {"sd": 1.0, "loss": "student", "threshold": 2},
        {},
        'threshold: belongs to loss = "huber"',
    ),
    "two logarithms": (
        {"sd": 1.0, "distribution": "log-normal", "transform": "log10"},
        {},
        "takes natural logarithms",
    ),
    "unknown loss": ({"sd": 1.0, "loss": "cauchy"}, {}, 'expected "huber" or "student", got'),
    "unknown distribution": (
        {"distribution": "gamma"},
        {},
        'expected "normal", "log-normal", "laplace", "poisson" or "negative-binomial"',
    ),
    "relative log-normal noise": (
        {"relative": 0.1, "distribution": "log-normal"},
        {},
        "contradict each other; on that scale give sd",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_nonsensical_entries_are_refused_with_a_remedy(case: str) -> None:
    noise, columns, message = WRONG[case]
    with pytest.raises(odefit.InputError, match=message):
        problem(noise, columns.pop("y", (1.0, 0.5, 0.2, 0.05)), **columns)


@pytest.mark.parametrize(
    "noise",
    [
        {"sd": 0.1, "loss": "huber", "threshold": 2.0},
        {"sd": "estimate", "loss": "student", "degrees": 3.0},
        {"sd": "0.1*y", "distribution": "laplace"},
        {"sd": 0.1, "distribution": "log-normal", "lower_limit": 0.1, "upper_limit": 0.7},
        {"distribution": "negative-binomial", "dispersion": "k/10"},
        {"distribution": "negative-binomial", "dispersion": "estimate"},
        {"distribution": "poisson"},
    ],
)
def test_noise_survives_the_problem_file(noise: dict[str, Any]) -> None:
    counts = "binomial" in str(noise) or "poisson" in str(noise)
    first = problem(noise, (9, 4, 2, 0) if counts else (1.0, 0.5, 0.2, 0.05))
    second = problem_from_mapping(problem_to_mapping(first))
    assert second.noise == first.noise
    assert second.keys == first.keys
    censored = [series(p).censored for p in (first, second)]
    assert np.array_equal(*censored) or censored == [None, None]


def test_marks_of_censored_values_survive_the_problem_file() -> None:
    first = problem({"sd": 0.1}, y_cens=[0, 0, 0, 1])
    second = problem_from_mapping(problem_to_mapping(first))
    assert series(second).censored.tolist() == [0, 0, 0, 1]


def test_an_estimated_dispersion_is_an_unknown_of_its_own_name() -> None:
    noise = {"distribution": "negative-binomial", "dispersion": "estimate"}
    assert problem(noise, (9, 4, 2, 0)).keys == ("k", "y_dispersion")
