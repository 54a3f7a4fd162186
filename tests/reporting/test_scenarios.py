"""Scenarios of a result: predictions, quantities, figures, and what is beyond the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit import Experiment, InputError, Model, Problem, Result, Scenario, SingleShooting

TIMES = np.linspace(0.0, 10.0, 11)
K, B = 0.5, 2.0


@pytest.fixture(scope="module")
def result() -> Result:
    random = np.random.default_rng(1)
    experiments = [
        Experiment(
            f"u = {u:g}",
            {
                "t": TIMES,
                "u": np.full(11, u),
                "x": B * u / K * (1 - np.exp(-K * TIMES)) + 0.1 * random.standard_normal(11),
            },
        )
        for u in (1.0, 2.0)
    ]
    problem = Problem(
        Model(ode={"x": "b*u - k*x"}, inputs={"u": "linear"}),
        parameters={"b": {"guess": 2.0}, "k": {"guess": 0.5}},
        initial={"x": 0.0},
        noise={"x": {"sd": 0.1}},
        experiments=experiments,
    )
    return odefit.fit(problem, SingleShooting(), jobs=1)


STEP = Scenario("step", inputs={"u": 1.5}, initial={"x": 1.0}, times=[0.0, 2.0, 6.0])


def test_the_curve_and_its_error_are_those_of_the_closed_form(result: Result) -> None:
    row = result.predict(experiment=STEP).query("t == 6").iloc[0]
    b, k = (result.best.parameters[n] for n in "bk")
    e = np.exp(-6 * k)
    value = e + b * 1.5 / k * (1 - e)
    slopes = np.array([1.5 / k * (1 - e), -6 * e + 1.5 * b * (6 * e / k - (1 - e) / k**2)])
    covariance = result.uncertainty.covariance  # type: ignore[union-attr]
    error = np.sqrt(slopes @ covariance @ slopes)
    assert row["value"] == pytest.approx(value, rel=1e-8)
    assert row["std_error"] == pytest.approx(error, rel=1e-5)
    assert row["pi_high"] - row["value"] == pytest.approx(1.96 * np.hypot(error, 0.1), rel=1e-3)


def test_a_scenario_without_changes_has_the_bands_of_its_experiment(result: Result) -> None:
    one = result.predict([1.0, 5.0], experiment="u = 2")
    same = result.predict([1.0, 5.0], experiment=Scenario("same", like="u = 2"))
    pd.testing.assert_frame_equal(one, same, rtol=1e-7)
    assert same.attrs["notes"] == []


@pytest.mark.slow
@pytest.mark.parametrize("by", ["profile", "bootstrap"])
def test_other_bands_agree_with_linear_ones_where_the_model_is_nearly_linear(
    result: Result, by: Any
) -> None:
    kind = result.bootstrap(60, jobs=1) if by == "bootstrap" else by
    linear, other = (result.predict(experiment=STEP, by=b).iloc[-1] for b in ("linear", kind))
    widths = [row["ci_high"] - row["ci_low"] for row in (linear, other)]
    assert widths[1] == pytest.approx(widths[0], rel=0.02 if by == "profile" else 0.35)


def test_one_table_holds_several_runs(result: Result) -> None:
    table = result.predict([1.0], experiment=["u = 1", STEP])
    assert table["experiment"].tolist() == ["u = 1", "step"]


def test_simulations_take_changes_too(result: Result) -> None:
    table = result.simulate([6.0], inputs={"u": 1.5}, initial={"x": 1.0})
    predicted = result.predict([6.0], experiment=STEP)
    assert table["x"].iloc[0] == pytest.approx(predicted["value"].iloc[0], rel=1e-9)
    other = result.simulate([6.0], STEP, constants={"k": 0.0})
    assert other["x"].iloc[0] == pytest.approx(1.0 + 9.0 * result.best.parameters["b"])


def test_extrapolation_beyond_the_fitted_experiments_is_reported(result: Result) -> None:
    beyond = Scenario("far", inputs={"u": 3.0}, initial={"x": -1.0}, times=[30.0])
    table = result.predict(experiment=beyond)
    assert table.attrs["notes"] == [
        'scenario "far" extrapolates: it reaches 30 after its beginning, the measurements 10',
        'scenario "far" extrapolates: input u is 3, fitted 1 to 2',
        'scenario "far" extrapolates: initial value of x is -1, fitted 0',
    ]
    assert [one["kind"] for one in table.attrs["extrapolations"]] == [
        "time", "input", "initial value",
    ]  # fmt: skip
    assert table.attrs["extrapolations"][1]["fitted"] == [1.0, 2.0]
    dosed = Scenario("dosed", doses=[{"time": 0, "amount": 2, "into": "x"}])
    (note,) = result.predict(experiment=dosed).attrs["notes"]
    assert note.endswith("it has doses of x (2), the fitted experiments have none")


def test_quantities_have_errors_like_predictions(result: Result) -> None:
    table = result.quantities(["x@6", "gain = b/k", "never = first(x > 99)"], experiment=STEP)
    row = result.predict(experiment=STEP).query("t == 6").iloc[0]
    first = table.iloc[0]
    for name in ("value", "std_error", "ci_low", "ci_high"):
        assert first[name] == pytest.approx(row[name], rel=1e-7)
    covariance = result.uncertainty.covariance  # type: ignore[union-attr]
    b, k = (result.best.parameters[n] for n in "bk")
    slopes = np.array([1 / k, -b / k**2])
    assert table["std_error"][1] == pytest.approx(np.sqrt(slopes @ covariance @ slopes), rel=1e-5)
    assert np.isnan(table["value"][2])
    assert "does not become true" in table.attrs["notes"][-1]


@pytest.mark.slow
def test_a_profile_of_a_quantity_over_time_reaches_the_limit(result: Result) -> None:
    both = [
        result.quantities("area = integral(x)", experiment=STEP, by=by).iloc[0]
        for by in ("linear", "profile")
    ]
    assert both[1]["ci_low"] == pytest.approx(both[0]["ci_low"], rel=1e-3)
    assert both[1]["ci_high"] == pytest.approx(both[0]["ci_high"], rel=1e-3)
    profile = result.profile(expressions="area = integral(x) in [u = 2]", jobs=1)
    assert profile.profiles[0].key == "area"


def test_mistakes_in_quantities_are_reported_together(result: Result) -> None:
    with pytest.raises(InputError) as caught:
        result.quantities(["max(z)", "max(x"])
    assert len(caught.value.messages) == 2


@pytest.mark.slow
def test_a_figure_shows_runs_inputs_and_new_measurements(result: Result, tmp_path: Path) -> None:
    table = {"t": [0.0, 3.0, 6.0], "u": [1.0, 2.0, 1.0], "x": [np.nan, 4.0, 5.0]}
    figure = result.plot_predictions(["u = 1", Scenario("new", data=table)])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["x", "u"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["u = 1", "new"]
    squares = [line for line in figure.axes[0].lines if line.get_marker() == "s"]
    assert np.isfinite(np.asarray(squares[0].get_ydata(), dtype=float)).sum() == 2
    figure.savefig(tmp_path / "figure.svg")


def test_new_measurements_are_not_drawn_beside_the_trajectory_of_another_input(
    result: Result,
) -> None:
    table = {"t": [0.0, 3.0], "u": [3.0, 3.0], "x": [0.0, 4.0]}
    with pytest.raises(InputError, match="the input is 3 at t = 0, but 1 in the experiment"):
        result.plot_fit(experiment="u = 1", validation=table)
    result.plot_fit(experiment="u = 1", validation=table | {"u": [1.0, 1.0]})


def test_standard_deviations_that_are_the_same_in_all_data_hold_for_scenarios() -> None:
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.61, 0.36], "x_sd": [0.1, 0.1, 0.1]}
    model = Model(ode={"x": "-k*x"})
    new = Scenario("new", initial={"x": 2.0}, times=[1.0])
    for sds, known in (([0.1, 0.1, 0.1], True), ([0.1, 0.1, 0.2], False)):
        problem = Problem(model, data | {"x_sd": sds}, {"k": {"guess": 0.5}}, {"x": 1.0})
        table = odefit.fit(problem, SingleShooting(), jobs=1).predict(experiment=new)
        assert np.isfinite(table["pi_low"][0]) == known
        assert any("are in the data and differ" in n for n in table.attrs["notes"]) != known
