"""What users see of a fit is what was optimised: -2 log L where there is a likelihood."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Model, MultiStart, Problem, Progress, Result, SingleShooting
from odefit.methods.fit_measure import FitMeasure
from odefit.reporting.documents.html import report_html
from odefit.reporting.terminal import result_text
from odefit.simulation import Evaluation

TIMES = np.linspace(0.0, 10.0, 41)
VALUES = np.cos(1.3 * TIMES) + 0.1 * np.random.default_rng(3).normal(size=41)


def model() -> Model:
    return Model(ode={"x": "v", "v": "-w^2*x"}, observables={"y": "x + c"})


def problem_with(noise: dict[str, Any] | None, **parameters: Any) -> Problem:
    """x'' = -w^2 x, of which the sum of squares has many local minima in w."""
    return Problem(
        model(),
        {"t": TIMES, "y": VALUES + 3.0},
        {"w": {"lower": 0.1, "upper": 6.0}, "c": {"guess": 3.0}} | parameters,
        {"x": 1.0, "v": 0.0},
        noise={"y": noise} if noise else {},
    )


@pytest.mark.parametrize(
    "noise",
    [
        {"sd": 0.2},
        {"sd": "estimate"},
        {"relative": 0.1},
        {"sd": "0.1 + s"},
        {"sd": 0.1, "transform": "log10"},
    ],
)
def test_twice_the_cost_and_a_constant_of_the_data_is_the_likelihood(noise: dict[str, Any]) -> None:
    more = {"s": {"guess": 0.1, "lower": 0.0}} if noise.get("sd") == "0.1 + s" else {}
    problem = problem_with(noise, **more)
    measure = FitMeasure.of(problem)
    forward = ForwardMap(problem)
    for factor in (0.7, 1.0, 1.2):
        vector = factor * np.array(
            [{"w": 1.3, "c": 3.0, "s": 0.1, "y_sd": 0.2}[k] for k in problem.keys]
        )
        at = forward.evaluate(vector)
        assert isinstance(at, Evaluation)
        assert at.log_likelihood is not None
        assert measure.name == "-2 log L"
        shown = measure.value(at.cost, at.objective)
        assert shown == pytest.approx(-2 * at.log_likelihood, rel=1e-10)


def test_plain_least_squares_shows_its_sum_of_squares() -> None:
    measure = FitMeasure.of(problem_with(None))
    assert measure == FitMeasure("objective", None)
    assert measure.value(3.0, 6.0) == 6.0


@cache
def estimated() -> tuple[Result, list[Progress]]:
    told: list[Progress] = []
    problem = problem_with({"sd": "estimate"}, c={"fixed": 3.0})
    method = MultiStart(SingleShooting(), starts=20, screening=1)
    return odefit.fit(problem, method, jobs=1, progress=told.append), told


@pytest.mark.slow
def test_solutions_with_the_same_weighted_squares_differ_in_what_is_shown() -> None:
    """The issue's case: 41 for eight solutions, whose likelihoods differ by dozens."""
    result, _ = estimated()
    assert len(result.solutions) >= 3
    assert [s.objective for s in result.solutions] == pytest.approx([41.0] * len(result.solutions))
    values = [result.value_of(s) for s in result.solutions]
    assert values == [-2 * s.log_likelihood for s in result.solutions if s.log_likelihood]
    assert values == sorted(values)
    assert values[1] - values[0] > 10


def test_starts_and_progress_show_the_likelihood_too() -> None:
    result, told = estimated()
    best = result.value_of(result.best)
    lowest = min(map(result.value_of, result.starts))
    assert lowest == pytest.approx(best, abs=1e-3)
    assert told[-1].measure == "-2 log L"
    assert told[-1].best == pytest.approx(best, abs=1e-3)
    axes = result.plot_starts().axes[0]
    assert axes.get_ylabel().startswith("-2 log L")
    drawn = axes.get_lines()[0].get_ydata()
    finite = sorted(v for v in map(result.value_of, result.starts) if math.isfinite(v))
    assert drawn == pytest.approx([max(v - finite[0], 1e-4) for v in finite])


@pytest.mark.slow
def test_terminal_report_and_repr_name_the_likelihood() -> None:
    result, _ = estimated()
    shown = f"{result.value_of(result.best):.4g}"
    assert f"-2 log L: {shown}" in result_text(result)
    assert f"-2 log L {shown}" in repr(result)
    page = report_html(result)
    assert "-2 log L" in page
    assert "The objective" not in page


@pytest.mark.slow
def test_priors_are_part_of_what_is_shown() -> None:
    problem = problem_with({"sd": 0.1}, w={"guess": 1.3, "prior": {"mean": 1.2, "sd": 0.01}})
    result = odefit.fit(problem, MultiStart(starts=2), jobs=1)
    assert result.measure == "-2 log L + priors"
    assert result.log_likelihood is not None
    w = result.best.parameters["w"]
    expected = -2 * result.log_likelihood + ((w - 1.2) / 0.01) ** 2
    assert result.value_of(result.best) == pytest.approx(expected)
    assert min(map(result.value_of, result.starts)) == pytest.approx(expected, abs=1e-4)
