"""Validation and cross-validation: figures against their definitions, and rates of judgements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Experiment, InputError, Model, Problem, Result, Scenario, SingleShooting
from odefit.assessment.predictions.validation import _probability, runs_probability, validated
from odefit.assessment.predictions.validation_data import Undecided, Verdict
from odefit.reporting.validations import solutions_note

K, B, SD = 0.5, 2.0, 0.1
TIMES = np.linspace(0.5, 8.0, 10)


def exact(t: Any, u: float, start: float = 0.0, b: float = B) -> Any:
    return start * np.exp(-K * t) + b * u / K * (1 - np.exp(-K * t))


def table(random: np.random.Generator, u: float, **changes: float) -> dict[str, Any]:
    values = exact(TIMES, u, **changes) + SD * random.standard_normal(len(TIMES))
    return {
        "t": np.append(0.0, TIMES),
        "u": np.full(11, u),
        "x": np.append(np.nan, values),
    }


def fitted(seed: int, sd: Any = SD) -> Result:
    random = np.random.default_rng(seed)
    problem = Problem(
        Model(ode={"x": "b*u - k*x"}, inputs={"u": "constant"}),
        parameters={"b": {"guess": B}, "k": {"guess": K}},
        initial={"x": 0.0},
        noise={"x": {"sd": sd}},
        experiments=[Experiment(f"u = {u:g}", table(random, u)) for u in (1.0, 2.0, 3.0)],
    )
    return odefit.fit(problem, SingleShooting(), jobs=1)


@pytest.fixture(scope="module")
def result() -> Result:
    return fitted(1)


def test_figures_match_their_definitions(result: Result) -> None:
    new = table(np.random.default_rng(7), 1.5)
    found = result.validate(new)
    (one,) = found.series
    y, f = new["x"][1:], one.predicted
    np.testing.assert_allclose(one.measured, y)
    norm = np.linalg.norm
    assert one.fit_percent == pytest.approx(100 * (1 - norm(y - f) / norm(y - y.mean())))
    assert one.r_squared == pytest.approx(1 - norm(y - f) ** 2 / norm(y - y.mean()) ** 2)
    assert found.reduced_chi_square == pytest.approx(np.mean(((y - f) / SD) ** 2))
    assert found.coverage == pytest.approx(np.mean((one.low <= y) & (y <= one.high)))
    assert one.bias == pytest.approx(np.mean((y - f) / SD))
    rows = result.residuals["residual"]
    assert found.fitted == pytest.approx(np.sum((rows / SD) ** 2) / (len(rows) - 2))
    assert found.verdict is Verdict.AS_WELL
    assert found.sentence.startswith("The model predicts as well as it fits")


def test_another_gain_is_detected(result: Result) -> None:
    found = result.validate(Scenario("new", data=table(np.random.default_rng(7), 1.5, b=2.2)))
    assert found.verdict is Verdict.WORSE
    assert found.probability < 1e-6
    assert "does not predict as well as it fits" in str(found)
    assert "above their predictions" in str(found)


@pytest.mark.slow
def test_initial_values_are_freed_alone(result: Result) -> None:
    new = table(np.random.default_rng(7), 1.5, start=2.0)
    assert result.validate(new).verdict is Verdict.WORSE
    found = result.validate(new, free_initial=True)
    assert found.verdict is Verdict.AS_WELL
    # Least squares with one unknown, of which the model is linear.
    b, k = (result.best.parameters[n] for n in "bk")
    rest = new["x"][1:] - b * 1.5 / k * (1 - np.exp(-k * TIMES))
    slope = np.exp(-k * TIMES)
    assert found.freed["x[new data]"] == pytest.approx(rest @ slope / (slope @ slope), rel=1e-5)
    with pytest.raises(InputError, match="there is no state 'y'"):
        result.validate(new, free_initial=["y"])


def test_experiments_of_a_problem_are_compared(result: Result) -> None:
    other = result.problem.with_experiments(
        [Experiment("u = 1", table(np.random.default_rng(9), 1.0))]
    )
    found = result.validate(other)
    assert found.table()["experiment"].tolist() == ["u = 1 (new)"]
    assert len(found.measurements) == 10


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"t": [0.0, 1.0], "u": [1.0, 1.0]}, "there are no measurements"),
        ({"t": [0.0, 1.0], "x": [1.0, 1.0]}, "no column 'u' for this input"),
        (3, "expected a table with the column t"),
        ([], "there is nothing to compare with"),
        ("none.csv", "no such file"),
    ],
)
def test_data_that_cannot_be_used_are_refused(result: Result, data: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        result.validate(data)


@pytest.mark.slow
@pytest.mark.parametrize("sd", [SD, "estimate"])
def test_a_right_model_is_called_worse_in_five_of_a_hundred_cases(sd: Any) -> None:
    probabilities = []
    for seed in range(100):
        new = table(np.random.default_rng([seed, 1]), 1.5)
        probabilities.append(fitted(seed, sd).validate(new, one_step=False).probability)
    worse = int((np.array(probabilities) < 0.05).sum())
    assert worse <= 12  # more have a probability of 0.1 %
    assert abs(np.mean(probabilities) - 0.5) < 3.5 / math.sqrt(12 * 100)


def test_runs_of_signs_have_the_probability_of_wald_and_wolfowitz() -> None:
    # Five of each sign in ten runs: mean 6, variance 20/9.
    alternating = np.array([1.0, -1.0] * 5)
    z = (10 - 6) / math.sqrt(20 / 9)
    assert runs_probability(alternating) == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert math.isnan(runs_probability(np.ones(10)))


def test_without_an_experiment_the_estimates_are_those_of_the_others(result: Result) -> None:
    found = result.cross_validate(jobs=1)
    assert [fold.name for fold in found.folds] == ["u = 1", "u = 2", "u = 3"]
    rest = result.problem.with_experiments(result.problem.experiments[1:])
    alone = odefit.fit(rest, SingleShooting(), jobs=1)
    np.testing.assert_allclose(found.folds[0].vector, alone.best.vector, rtol=1e-5)
    b, k = found.folds[0].vector
    y = result.problem.conditions[0].series["x"].values
    np.testing.assert_allclose(
        found.folds[0].residuals, (y - b / k * (1 - np.exp(-k * TIMES))) / SD, rtol=1e-4, atol=1e-6
    )
    assert 30 * found.mean_square > 28 * found.fitted  # the sums of squares
    new = table(np.random.default_rng(7), 1.5)
    assert found.fitted == pytest.approx(result.validate(new, one_step=False).fitted)
    assert "Left out by experiment, 3 parts" in str(found)


def test_without_a_given_noise_residuals_are_in_standard_deviations_of_the_fit() -> None:
    random = np.random.default_rng(3)
    values = 1000 * np.exp(-K * TIMES) + 20 * random.standard_normal(10)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[Experiment("one", {"t": TIMES, "x": values}, t0=0.0)],
        parameters={"k": {"guess": K}},
        initial={"x": 1000.0},
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    sd = np.sqrt(result.objective / 9)
    found = result.cross_validate("block", 2, jobs=1)
    for fold in found.folds:
        np.testing.assert_allclose(fold.residuals, (fold.measured - fold.predicted) / sd)
    assert found.fitted == pytest.approx(1.0)
    assert 0.5 < found.mean_square < 3


def test_a_figure_has_the_curve_between_the_measurements(result: Result) -> None:
    new = table(np.random.default_rng(7), 1.5)
    (one,) = result.validate(new, one_step=False).series
    times, values, low, high = one.course
    b, k = (result.parameters["estimate"][name] for name in ("b", "k"))
    np.testing.assert_allclose(values, b * 1.5 / k * (1 - np.exp(-k * times)), atol=1e-6)
    assert times[0] == 0.0
    at = np.searchsorted(times, one.times)
    np.testing.assert_allclose([low[at], high[at]], [one.low, one.high])


def test_blocks_of_time_follow_one_another(result: Result) -> None:
    found = result.cross_validate("block", 2, jobs=1)
    assert sorted(set(found.folds[0].times)) == TIMES[:5].tolist()
    assert sorted(set(found.folds[1].times)) == TIMES[5:].tolist()
    assert sum(len(fold.times) for fold in found.folds) == 30
    assert found.table()["fold"].tolist() == ["block 1 of 2", "block 2 of 2"]


def test_processes_make_no_difference(result: Result) -> None:
    from concurrent.futures import ThreadPoolExecutor

    one = result.cross_validate("block", 3, jobs=1)
    with ThreadPoolExecutor(2) as executor:
        other = result.cross_validate("block", 3, executor=executor)
    for a, b in zip(one.folds, other.folds, strict=True):
        np.testing.assert_array_equal(a.vector, b.vector)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_folds_do_not_depend_on_a_cluster(result: Result, dask_cluster: Any) -> None:
    alone = result.cross_validate("experiment", jobs=1)
    with dask_cluster.get_client() as client:
        shared = result.cross_validate("experiment", executor=client.get_executor())
    assert shared.status is alone.status
    assert [fold.name for fold in shared.folds] == [fold.name for fold in alone.folds]
    for a, b in zip(shared.folds, alone.folds, strict=True):
        np.testing.assert_array_equal(a.vector, b.vector)
        np.testing.assert_array_equal(a.predicted, b.predicted)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"by": "blocks"}, "did you mean 'block'"),
        ({"folds": 1}, "expected a whole number from 2"),
        ({"folds": 4}, "4 parts of 3 experiments"),
        ({"by": "block", "folds": 11}, "too few for 11 blocks"),
    ],
)
def test_meaningless_arguments_are_refused(
    result: Result, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        result.cross_validate(**arguments, jobs=1)


def test_an_unknown_of_one_experiment_alone_cannot_be_predicted() -> None:
    problem = fitted(1).problem.with_parameters(b={"guess": B, "per_experiment": True})
    found = odefit.fit(problem, SingleShooting(), jobs=1)
    with pytest.raises(InputError, match=r"without u = 1, the data do not determine b\[u = 1\]"):
        found.cross_validate(jobs=1)


@pytest.mark.parametrize(
    ("noise", "reason", "words"),
    [
        ({"sd": SD, "lower_limit": 0.3}, Undecided.NOT_NORMAL, "the test needs normal noise"),
        ({"sd": SD, "correlation": "ou", "correlation_time": 1.0}, Undecided.CORRELATED, "in time"),
        ({"sd": SD}, None, "predicts as well"),
    ],
)
def test_the_absence_of_a_verdict_has_a_reason(
    noise: dict[str, Any], reason: Undecided | None, words: str
) -> None:
    random = np.random.default_rng(4)
    values = np.exp(-K * TIMES)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[Experiment("one", {"t": TIMES, "x": values}, t0=0.0)],
        parameters={"k": {"guess": K}},
        initial={"x": 1.0},
        noise={"x": noise},
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    new = {"t": TIMES, "x": values + 0.05 * random.standard_normal(10)}
    found = result.validate(Experiment("two", new, t0=0.0), one_step=False)
    assert found.undecided is reason
    assert (found.verdict is Verdict.UNKNOWN) == (reason is not None)
    assert words in found.sentence


def test_thousands_of_measurements_take_no_square_matrix(result: Result) -> None:
    """The probability is that of the dense covariance, without its memory."""
    import tracemalloc

    times = np.linspace(0.0, 8.0, 4001)
    random = np.random.default_rng(3)
    values = exact(times, 1.5) + SD * random.standard_normal(len(times))
    new = {"t": times, "u": np.full(len(times), 1.5), "x": values}
    tracemalloc.start()
    try:
        found = result.validate(new, one_step=False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4001**2 * 8 / 2
    assert found.count == 4001
    assert found.verdict is Verdict.AS_WELL


def test_the_probability_is_that_of_the_whole_covariance() -> None:
    from scipy.stats import chi2, f

    random = np.random.default_rng(5)
    factor, residuals = random.standard_normal((30, 3)), random.standard_normal(30)
    square = residuals @ np.linalg.solve(np.eye(30) + factor @ factor.T, residuals)
    found = _probability(factor, residuals, 30, math.inf)
    assert found == pytest.approx(chi2.sf(square, 30), rel=1e-10)
    found = _probability(factor, residuals, 30, 12.0)
    assert found == pytest.approx(f.sf(square / 30, 30, 12.0), rel=1e-10)
    assert math.isnan(_probability(np.full((30, 3), np.nan), residuals, 30, math.inf))


def test_tables_of_the_original_layout_are_read() -> None:
    """A new table may have the names of columns that the fitted one had."""
    import pandas as pd

    random = np.random.default_rng(1)
    names = {"t": "time_s", "u": "voltage", "x": "speed"}
    tables = [pd.DataFrame(table(random, u)).rename(columns=names) for u in (1.0, 2.0)]
    problem = Problem(
        Model(ode={"x": "b*u - k*x"}, inputs={"u": "constant"}),
        tables[0],
        {"b": {"guess": B}, "k": {"guess": K}},
        {"x": 0.0},
        noise={"x": {"sd": SD}},
        time="time_s",
        columns={"u": "voltage", "x": "speed"},
    )
    fit = odefit.fit(problem, SingleShooting(), jobs=1)
    ours = fit.validate(tables[1].rename(columns={v: k for k, v in names.items()}))
    laid_out = fit.validate(tables[1])
    assert laid_out.probability == ours.probability
    run = Experiment("b", tables[1], time="time_s", columns={"u": "voltage", "x": "speed"})
    assert fit.validate(run).probability == ours.probability


def mirrored(slope: float) -> tuple[Result, dict[str, Any]]:
    """Return a fit whose data show w^2 alone, and a run under the input 1, which shows the sign."""
    times, random = np.linspace(0.5, 5.0, 10), np.random.default_rng(3)

    def data(u: float) -> dict[str, Any]:
        values = (4.0 + slope * u) * times + 0.1 * random.standard_normal(10)
        return {"t": np.append(0.0, times), "u": np.full(11, u), "x": np.append(np.nan, values)}

    problem = Problem(
        Model(ode={"x": "w^2 + w*u"}, inputs={"u": "constant"}),
        data(0.0),
        {"w": (-5.0, 5.0)},
        {"x": 0.0},
        noise={"x": {"sd": 0.1}},
    )
    return odefit.fit(problem, seed=0, jobs=1), data(1.0)


@pytest.mark.parametrize("slope", [2.0, -2.0])
def test_new_measurements_tell_solutions_that_fit_apart(slope: float) -> None:
    fit, new = mirrored(slope)
    right = 1 + [abs(s.vector[0] - slope) < 0.1 for s in fit.fitting].index(True)
    assert len(fit.fitting) == 2
    found = fit.validate(new)
    (other,) = found.others
    assert other.number == 2
    assert (other.verdict is Verdict.AS_WELL) == (right == 2)
    assert (found.verdict is Verdict.AS_WELL) == (right == 1)
    text = str(found)
    assert f"note: of 2 solutions that fit, predict as well as they fit: {right} (p = " in text
    assert f"; do not: {3 - right} (p = " in text
    assert "The measurements tell solutions apart: fit them together with the others" in text


def test_a_solution_that_cannot_be_simulated_is_not_decided(result: Result) -> None:
    new = Scenario("new", data=table(np.random.default_rng(7), 1.5))
    vector = result.best.vector
    astray = np.array([1e6, -1e3])
    found = validated(result.problem, vector, [new], others=[(2, astray), (3, vector)])
    assert [o.verdict for o in found.others] == [Verdict.UNKNOWN, found.verdict]
    assert found.others[1].probability == pytest.approx(found.probability)
    assert "not decided: 2" in solutions_note(found)
    assert "apart" not in solutions_note(found)


def test_one_solution_has_no_note_on_solutions(result: Result) -> None:
    assert "solutions" not in str(result.validate(table(np.random.default_rng(7), 1.5)))
