"""Residuals that are no noise are told of, above the estimates; those that are, seldom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Model, MultiStart, Problem, Result, library
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.fit_quality import goodness as goodness_module
from odefit.methods.fit_quality.goodness import assess_goodness
from odefit.methods.fit_quality.goodness_verdict import degrees_in_words
from odefit.reporting.documents.html import report_html
from odefit.reporting.sentences import verdict
from odefit.reporting.terminal import result_text
from odefit.simulation import Evaluation

TIMES = np.linspace(0.0, 4.0, 30)
DECAY = 10 * np.exp(-0.7 * TIMES)


def noise_of(seed: int, size: int = 30) -> Array:
    return np.random.default_rng(seed).normal(size=size)


def decay(values: Array, times: Array = TIMES, **noise: Any) -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"guess": 0.7}},
        {"x": {"guess": 10.0}},
        noise={"x": noise} if noise else {},
    )


def fitted(problem: Problem, **options: Any) -> Result:
    return odefit.fit(problem, MultiStart(starts=1), jobs=1, **options)


@cache
def incidence() -> Result:
    """Weekly cases of an epidemic with sd = sqrt(cases), and a model that cannot follow them."""
    weeks = np.arange(30.0)
    cases = np.round(3000 * np.exp(-(((weeks - 12) / 5) ** 2)) + 40 * np.exp(0.05 * weeks))
    model = Model(ode={"s": "-b*s*i", "i": "b*s*i - g*i"}, observables={"cases": "i"})
    return odefit.fit(
        Problem(
            model,
            {"t": weeks, "cases": cases, "cases_sd": np.sqrt(cases)},
            {
                "b": {"guess": 1.5e-4, "lower": 1e-6, "upper": 1e-2},
                "g": {"guess": 0.5, "lower": 0.01, "upper": 5.0},
            },
            {"s": 9000.0, "i": {"guess": 50.0, "lower": 1.0, "upper": 1000.0}},
        ),
        MultiStart(starts=3),
        jobs=1,
    )


@pytest.mark.slow
def test_residuals_above_the_given_noise_are_not_marked_as_good() -> None:
    """The issue's case: chi-square far above the number of values had a tick."""
    result = incidence()
    goodness = result.goodness
    assert goodness is not None
    assert goodness.bad
    assert goodness.chi_square > 1_000
    assert goodness.degrees_of_freedom == pytest.approx(27.0, abs=0.01)
    told = f"{result.message} {goodness.sentence}"
    assert "larger than the given noise" in told
    assert verdict(result).tone != "good"


@pytest.mark.slow
def test_the_verdict_is_printed_above_the_estimates() -> None:
    result = fitted(decay(DECAY + 0.4 * np.sin(3 * TIMES) + 0.3 * noise_of(1)))
    assert result.goodness is not None
    text = " ".join(result_text(result).split())
    assert "The model misses x: its residuals run in a pattern (p " in text
    assert "; the intervals assume a right model." in text
    assert text.index("The model misses x") < text.index("estimate")
    assert text.count("The model misses x") == 1
    assert verdict(result).sentences[0] == result.goodness.sentence
    assert result.goodness.sentence in result.warnings
    assert report_html(result).count("The model misses x") == 1


def test_the_residual_pattern_of_alpha_pinene_is_reported() -> None:
    result = fitted(library.load("alpha-pinene"))
    assert result.goodness is not None
    assert "The model misses y3 and y4: their residuals run in a pattern" in (
        result.goodness.sentence
    )
    assert verdict(result).tone == "caution"


def test_outliers_are_named() -> None:
    values = DECAY + 0.3 * noise_of(2)
    values[[7, 20]] += [3.0, -2.5]
    goodness = fitted(decay(values)).goodness
    assert goodness is not None
    assert goodness.bad
    assert {(o.observable, round(o.time, 6)) for o in goodness.outliers} == {
        ("x", round(TIMES[7], 6)),
        ("x", round(TIMES[20], 6)),
    }
    assert "2 outliers lie far from the model: x at t =" in goodness.sentence


def test_an_outlier_that_the_fit_follows_is_recognised_by_its_studentised_residual() -> None:
    times = np.append(np.linspace(0.0, 1.0, 24), 2.5)
    values = 1.0 + 0.5 * times + 0.1 * noise_of(4, size=25)
    values[-1] += 1.2
    design = np.column_stack([times, np.ones(25)])
    hat = design @ np.linalg.pinv(design)
    residuals = values - hat @ values
    assert abs(residuals[-1]) < 3.0 * residuals[:-1].std()  # by itself it does not stand out
    studentised = residuals / np.sqrt(1.0 - np.diag(hat))
    distance = studentised[-1] / np.sqrt(np.mean(studentised[:-1] ** 2))
    line = Problem(
        Model(ode={"x": "b"}), {"t": times, "x": values}, {"b": {"guess": 0.5}}, {"x": {"guess": 1}}
    )
    goodness = fitted(line).goodness
    assert goodness is not None
    (outlier,) = goodness.outliers
    assert outlier.time == 2.5
    assert outlier.distance == pytest.approx(distance, rel=1e-6)


def test_skewed_residuals_are_reported() -> None:
    times = np.linspace(0.0, 4.0, 150)
    noise = np.random.default_rng(3).exponential(size=150) - 1.0
    goodness = fitted(decay(10 * np.exp(-0.7 * times) + 0.3 * noise, times)).goodness
    assert goodness is not None
    assert goodness.bad
    assert any(c.kind == "normality" and c.p < 0.01 for c in goodness.checks)


def test_noise_looks_like_noise() -> None:
    result = fitted(decay(DECAY + 0.3 * noise_of(4), sd=0.3))
    assert result.goodness is not None
    assert not result.goodness.bad
    assert result.goodness.reduced_chi_square == pytest.approx(1.0, abs=0.6)
    assert "The residuals look like noise" in " ".join(result_text(result).split())
    assert verdict(result).tone == "good"


def test_verdicts_do_not_depend_on_the_size_of_a_batch_of_simulations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The random numbers are the same; what is computed of them differs by rounding."""
    problem = decay(DECAY + 0.3 * noise_of(4), sd=0.3)
    forward, vector = ForwardMap(problem), fitted(problem).solutions[0].vector
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    found = []
    for numbers in (1000, 10**9):
        monkeypatch.setattr("odefit.methods.fit_quality.goodness.NUMBERS_AT_A_TIME", numbers)
        goodness = assess_goodness(forward, vector, evaluation)
        assert goodness is not None
        found.append([goodness.p, *(c.p for c in goodness.checks)])
    assert found[0] == pytest.approx(found[1], abs=2e-4)


@pytest.mark.parametrize(("seed", "sd", "all_of_them"), [(4, 0.3, False), (4, 0.15, True)])
def test_simulations_end_where_the_verdict_is_clearly_good(
    seed: int, sd: float, all_of_them: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them change nothing but the last digits; a verdict that is not clear has them all."""
    problem = decay(DECAY + 0.3 * noise_of(seed), sd=sd)
    forward, vector = ForwardMap(problem), fitted(problem).solutions[0].vector
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    found, counts = [], []
    for clear in (goodness_module.CLEARLY_GOOD, 1.0):
        asked: list[int] = []
        of_each = goodness_module._statistics

        def counted(*given: Any, of_each: Any = of_each, asked: list[int] = asked) -> Any:
            asked.append(len(given[1]))
            return of_each(*given)

        monkeypatch.setattr(goodness_module, "_statistics", counted)
        monkeypatch.setattr(goodness_module, "CLEARLY_GOOD", clear)
        goodness = assess_goodness(forward, vector, evaluation)
        monkeypatch.undo()
        assert goodness is not None
        found.append(goodness)
        counts.append(sum(asked) - 1)
    first, last = found
    assert counts[1] == goodness_module.MAX_DRAWS
    assert counts[0] == (counts[1] if all_of_them else goodness_module.FIRST_DRAWS)
    assert first.bad is last.bad is all_of_them
    assert first.p == pytest.approx(last.p, abs=4 * np.sqrt(0.25 / goodness_module.FIRST_DRAWS))


def test_data_without_noise_give_no_remark() -> None:
    assert fitted(decay(DECAY)).goodness is None
    assert fitted(decay(np.round(DECAY, 7))).goodness is None
    for values in (DECAY, 1e-9 * DECAY, np.round(DECAY, 7)):
        result = fitted(decay(values, sd="estimate"))
        assert result.goodness is None
        assert not any("outlier" in warning for warning in result.warnings)


@pytest.mark.slow
def test_intervals_are_scaled_or_withheld_as_the_user_chooses() -> None:
    problem = decay(DECAY + noise_of(5), sd=0.3)
    plain, scaled, withheld = (
        fitted(problem, intervals=choice).uncertainty for choice in ("as-is", "scaled", "withheld")
    )
    assert plain is not None
    assert scaled is not None
    assert withheld is not None
    least = fitted(decay(DECAY + noise_of(5))).uncertainty  # the noise from the residuals
    assert least is not None
    assert scaled.intervals == pytest.approx(least.intervals, rel=1e-4)
    assert scaled.treatment == "scaled"
    assert "are scaled by" in scaled.sentence
    assert (scaled.standard_errors > 2 * plain.standard_errors).all()
    assert np.isnan(withheld.intervals).all()
    assert "withheld" in withheld.sentence
    table = fitted(problem, intervals="withheld").parameters
    assert table.loc["k", "note"] == "withheld: the residuals do not look like noise"


def test_intervals_of_a_good_fit_are_never_touched() -> None:
    problem = decay(DECAY + 0.3 * noise_of(4), sd=0.3)
    plain, withheld = fitted(problem).uncertainty, fitted(problem, intervals="withheld").uncertainty
    assert plain is not None
    assert withheld is not None
    assert withheld.intervals == pytest.approx(plain.intervals)


def test_an_unknown_treatment_of_intervals_is_refused() -> None:
    with pytest.raises(InputError, match='intervals: expected one of "as-is", "scaled", "with'):
        odefit.fit(decay(DECAY), intervals="halved")  # type: ignore[arg-type]


def test_the_goodness_of_fit_is_in_the_file(tmp_path: Path) -> None:
    result = fitted(decay(DECAY + noise_of(5), sd=0.3), intervals="scaled")
    result.save(tmp_path / "result.json")
    back = odefit.load_result(tmp_path / "result.json")
    assert back.goodness == result.goodness
    assert back.uncertainty is not None
    assert back.uncertainty.treatment == "scaled"


def called_bad(problems: Sequence[Problem], vector: Array, steps: int) -> float:
    """Return the share of data sets whose fit is called bad, after some steps of scoring."""
    bad = 0
    forward = ForwardMap(problems[0])
    for problem in problems:
        at, here = forward.of(problem), vector
        for _ in range(steps):
            evaluation = at.evaluate(here)
            assert isinstance(evaluation, Evaluation)
            gradient = evaluation.jacobian.T @ evaluation.residuals
            here = here - np.linalg.solve(
                evaluation.information.T @ evaluation.information, gradient
            )
        evaluation = at.evaluate(here)
        assert isinstance(evaluation, Evaluation)
        goodness = assess_goodness(at, here, evaluation)
        assert goodness is not None
        bad += goodness.bad
    return bad / len(problems)


@pytest.mark.slow
def test_right_models_are_seldom_called_bad() -> None:
    """A twentieth, but for chance; evidence/intervals/goodness_of_fit.py has thousands."""
    generator = np.random.default_rng(6)
    problems = [decay(DECAY + 0.4 * generator.normal(size=30)) for _ in range(100)]
    bad = called_bad(problems, np.array([0.7, 10.0]), steps=4)
    assert 0.0 < bad < 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(problems))


SKEWED: dict[str, dict[str, Any]] = {
    "poisson": {"distribution": "poisson"},
    "negative binomial": {"distribution": "negative-binomial", "dispersion": 1.0},
    "censored": {"sd": 1.0, "lower_limit": 1.5},
}
"""Noise whose residuals have a mean other than zero."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SKEWED)
def test_right_models_of_skewed_residuals_are_seldom_called_bad(name: str) -> None:
    """The mean of their deviance residuals is no correlation of neighbours."""
    generator = np.random.default_rng(7)
    times = np.linspace(0.0, 1.0, 200)
    means = 2.0 * np.exp(-0.7 * times)
    draw: dict[str, Callable[[], Any]] = {
        "poisson": lambda: generator.poisson(means),
        "negative binomial": lambda: generator.negative_binomial(1.0, 1 / (1 + means)),
        "censored": lambda: means + generator.normal(size=200),
    }
    problems = [decay(np.asarray(draw[name](), float), times, **SKEWED[name]) for _ in range(300)]
    bad = called_bad(problems, np.array([0.7, 2.0]), steps=6)
    assert 0.0 < bad < 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(problems))


def test_a_pattern_in_counts_is_reported() -> None:
    times = np.linspace(0.0, 4.0, 40)
    means = 40 * np.exp(-0.3 * times) * (1 + 0.6 * np.sin(3 * times))
    counts = np.random.default_rng(8).poisson(means)
    problem = decay(counts.astype(float), times, distribution="poisson")
    goodness = fitted(problem).goodness
    assert goodness is not None
    assert "The model misses x: its residuals run in a pattern" in goodness.sentence


def test_an_offset_of_counts_is_reported() -> None:
    """The mean that is taken off the residuals is that of a right model, not their own."""
    times = np.linspace(0.0, 4.0, 40)
    generator = np.random.default_rng(9)
    y, z = generator.poisson(10.0, 40), generator.poisson(15.0, 40)
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x", "z": "x"}),
        {"t": times, "y": 1.0 * y, "z": 1.0 * z},
        {"k": {"guess": 0.1}},
        {"x": {"guess": 10.0, "lower": 0.0}},
        noise={"y": {"distribution": "poisson"}, "z": {"distribution": "poisson"}},
    )
    goodness = fitted(problem).goodness
    assert goodness is not None
    assert goodness.bad
    assert {c.observable for c in goodness.checks if c.p < 0.05} == {"y", "z"}


@pytest.mark.parametrize(
    ("degrees", "words"),
    [(1796.0, "1796 degrees of freedom"), (9.256, "9.26 degrees of freedom"),
     (171.4, "171 degrees of freedom"), (1.0, "1 degree of freedom")],
)  # fmt: skip
def test_degrees_of_freedom_are_counted_exactly(degrees: float, words: str) -> None:
    assert degrees_in_words(degrees) == words
