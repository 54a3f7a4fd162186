"""Models of the same data compared: published formulas, classical tests, refusals."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import odefit
from odefit import InputError, Model, MultiStart, Problem, Result
from odefit.assessment.criteria import Criteria
from odefit.cli import main

TIMES = np.linspace(0.0, 5.0, 20)
VALUES = 1.0 + 2.0 * TIMES + 0.3 * np.random.default_rng(4).normal(size=20)


@cache
def line(slope: float | None = None, noise: str = "", shift: float = 0.0) -> Result:
    """x = a + b t, with b fixed or not."""
    given: dict[str, Any] = {"estimate": {"sd": "estimate"}, "given": {"sd": 0.3}}
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": VALUES + shift},
        {"b": {"guess": 2.0} if slope is None else {"fixed": slope}},
        {"x": {"guess": 1.0}},
        noise={"x": given[noise]} if noise else {},
        name="line" if slope is None else f"slope {slope:g}",
    )
    return odefit.fit(problem, MultiStart(starts=1), jobs=1)


def test_the_criteria_are_those_of_the_books() -> None:
    """K. P. Burnham and D. R. Anderson, 2002, sections 2.2 to 2.4."""
    criteria = Criteria(10.0, 3, 20)
    assert criteria.aic == 16.0
    assert criteria.aicc == pytest.approx(16.0 + 24.0 / 16.0)
    assert criteria.bic == pytest.approx(10.0 + 3 * math.log(20))
    assert Criteria(10.0, 3, 4).aicc == math.inf


def test_plain_least_squares_is_the_likelihood_with_an_estimated_variance() -> None:
    plain, estimated = line(), line(noise="estimate")
    assert estimated.log_likelihood is not None
    assert plain.criteria.parameters == estimated.criteria.parameters == 3
    assert plain.aic == pytest.approx(estimated.aic, abs=1e-4)
    expected = 20 * math.log(plain.objective / 20) + 20 * (math.log(2 * math.pi) + 1) + 6
    assert plain.aic == pytest.approx(expected)


def test_nested_models_of_plain_least_squares_have_the_f_test_of_regression() -> None:
    smaller, larger = line(1.9), line()
    comparison = odefit.compare(smaller, larger)
    (test,) = comparison.tests
    ratio = (smaller.objective - larger.objective) / (larger.objective / 18)
    assert test.kind == "F"
    assert test.statistic == pytest.approx(ratio)
    assert test.p == pytest.approx(stats.f(1, 18).sf(ratio))
    assert test.sentence.startswith("line fits ")


def test_nested_models_with_given_noise_have_the_likelihood_ratio_test() -> None:
    smaller, larger = line(1.0, "given"), line(noise="given")
    (test,) = odefit.compare(larger, smaller).tests
    assert test.kind == "likelihood ratio"
    assert test.statistic == pytest.approx(smaller.objective - larger.objective)
    assert test.p < 1e-6
    assert "line fits better than slope 1" in test.sentence


def test_an_estimated_standard_deviation_has_the_same_test_as_plain_least_squares() -> None:
    (plain,) = odefit.compare(line(1.9), line()).tests
    (estimated,) = odefit.compare(line(1.9, "estimate"), line(noise="estimate")).tests
    assert estimated.kind == "F"
    assert estimated.p == pytest.approx(plain.p, rel=1e-4)


def test_indistinguishable_models_are_named() -> None:
    alike = odefit.compare(line(2.0), line(1.99))
    assert alike.tests == ()
    assert "do not distinguish slope 2 from slope 1.99: their AICc differ by" in alike.remarks[0]
    assert odefit.compare(line(1.0), line(2.0)).remarks == ()


def test_the_weights_are_those_of_akaike() -> None:
    results = line(1.9), line(2.0), line()
    comparison = odefit.compare(*results)
    relative = np.exp(-0.5 * np.array([r.aicc for r in results]))
    assert comparison.weights == pytest.approx(relative / relative.sum())
    assert comparison.table["difference"].iloc[0] == 0.0
    assert comparison.table.index[0] == comparison.names[int(np.argmax(comparison.weights))]


def test_models_with_other_equations_are_not_tested_unless_the_user_says_so() -> None:
    problem = Problem(
        Model(ode={"x": "b*exp(-c*t)"}),
        {"t": TIMES, "x": VALUES},
        {"b": {"guess": 2.0}, "c": {"guess": 0.01}},
        {"x": {"guess": 1.0}},
    )
    curve = odefit.fit(problem, MultiStart(starts=1), jobs=1)
    assert odefit.compare(line(), curve).tests == ()
    assert len(odefit.compare(line(), curve, nested=True).tests) == 1
    assert odefit.compare(line(1.9), line(), nested=False).tests == ()


def test_results_of_different_data_are_refused() -> None:
    with pytest.raises(InputError, match="line and slope 2 were fitted to different data"):
        odefit.compare(line(), line(2.0, shift=0.1))
    with pytest.raises(InputError, match="expected two results or more, got 1"):
        odefit.compare(line())


def test_the_command_line_compares_result_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line(1.0, "given").save(tmp_path / "small.json")
    line(noise="given").save(tmp_path / "large.json")
    assert main(["compare", str(tmp_path / "small.json"), str(tmp_path / "large.json")]) == 0
    said = capsys.readouterr().out
    assert "AICc" in said
    assert "large fits better than small (likelihood ratio test:" in said
    line(1.0, "given", 0.5).save(tmp_path / "other.json")
    assert main(["compare", str(tmp_path / "small.json"), str(tmp_path / "other.json")]) == 2
    assert "were fitted to different data" in capsys.readouterr().err


def test_a_summary_has_the_numbers_by_which_models_are_compared() -> None:
    result = line(noise="given")
    summary = result.summary()
    assert summary["-2 log L"] == pytest.approx(-2 * (result.log_likelihood or math.nan))
    assert summary["AICc"] == result.aicc
    assert summary["degrees of freedom"] == 18
    assert summary["reduced chi-square"] == pytest.approx(result.objective / 18, rel=1e-6)
    assert line().summary()["sum of squares"] == line().objective


def test_residuals_are_a_table_of_the_measurements() -> None:
    table = line(noise="given").residuals
    assert table["residual"].to_numpy() == pytest.approx(
        (table["measured"] - table["predicted"]).to_numpy()
    )
    assert table["measured"].to_numpy() == pytest.approx(VALUES)
    assert (table["sd"] == 0.3).all()
    assert table["weighted"].to_numpy() == pytest.approx(table["residual"].to_numpy() / 0.3)
    plain = line().residuals
    assert np.sum(plain["weighted"] ** 2) == pytest.approx(18.0)


def test_nested_models_of_equal_size_are_not_tested_with_a_reason() -> None:
    """A slope held at its bound is no parameter more than a slope that is known."""
    bounded = Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": VALUES},
        {"b": {"lower": 0.0, "upper": 1.5}},
        {"x": {"guess": 1.0}},
        name="bounded",
    )
    comparison = odefit.compare(odefit.fit(bounded, MultiStart(starts=1), jobs=1), line(1.5))
    assert comparison.tests == ()
    (remark,) = comparison.remarks
    assert remark.startswith("bounded is not tested against slope 1.5: of its 2 unknowns the data")
    assert str(comparison).endswith(remark)
    assert odefit.compare(line(1.9), line()).remarks == ()


@cache
def exact(slope: float | None) -> Result:
    """x = a + b t, with data that are 3 throughout."""
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": np.full(20, 3.0)},
        {"b": {"guess": 0.0} if slope is None else {"fixed": slope}},
        {"x": {"guess": 1.0}},
        name="line" if slope is None else f"slope {slope:g}",
    )
    return odefit.fit(problem, MultiStart(starts=1), jobs=1)


def test_models_that_reproduce_the_data_are_equal_and_better_than_all_others() -> None:
    right, wrong, larger = exact(0.0), exact(1.0), exact(None)
    comparison = odefit.compare(wrong, right, larger)
    assert comparison.weights.tolist() == [0.0, 0.5, 0.5]
    assert comparison.differences.tolist() == [math.inf, 0.0, 0.0]
    (test,) = comparison.tests
    assert (test.smaller, test.larger) == ("slope 1", "line")
    assert test.p < 1e-100
    (remark,) = comparison.remarks
    assert remark.startswith("slope 0 reproduces the data to rounding, so no test can show")
    assert odefit.compare(right, right).weights.tolist() == [0.5, 0.5]


def test_residuals_of_data_that_are_reproduced_have_no_weights() -> None:
    table = exact(0.0).residuals
    assert (table["residual"] == 0.0).all()
    assert (table["sd"] == 0.0).all()
    assert table["weighted"].isna().all()


def test_names_of_files_are_read_and_other_values_refused(tmp_path: Path) -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.62, 0.35]},
        {"k": {"guess": 0.5}},
        {"x": 1.0},
        name="decay",
    )
    result = odefit.fit(problem, odefit.SingleShooting(), jobs=1)
    file = tmp_path / "r.json"
    result.save(file)
    assert odefit.compare(result, str(file)).weights.tolist() == [0.5, 0.5]
    assert odefit.compare(file, result).names == ("decay (1)", "decay (2)")
    with pytest.raises(InputError, match="expected a result or the name of its file, got 3 in"):
        odefit.compare(result, 3)  # type: ignore[arg-type]


def test_the_command_takes_that_models_are_nested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, result in (("a", line(2.0, "given")), ("b", line(None, "given"))):
        files.append(str(tmp_path / f"{name}.json"))
        result.save(files[-1])
    assert main(["compare", *files, "--no-nested"]) == 0
    assert "test:" not in capsys.readouterr().out
    assert main(["compare", *files, "--nested"]) == 0
    assert "test:" in capsys.readouterr().out
