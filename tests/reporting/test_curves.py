"""What is drawn of a fit is what was measured and what the model says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.fitting.fit import fit
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.experiment import Event, Experiment
from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.reporting.curves import (
    SEEN_COLUMNS,
    Curve,
    fine_times,
    fit_curves,
    seen,
    spreads_over_decades,
)
from odefit.reporting.figures.fit import plot_fit
from odefit.reporting.predictions import band_source
from odefit.reporting.spreads import standard_deviations
from tests.reporting import examples

TROUBLED = examples.troubled()


def curve(observable: str, experiment: str = "oral") -> Curve:
    return next(
        c for c in fit_curves(TROUBLED) if (c.observable, c.experiment) == (observable, experiment)
    )


def test_there_is_a_curve_for_everything_measured() -> None:
    found = [(c.experiment, c.observable) for c in fit_curves(TROUBLED)]
    assert found == [
        ("oral", "y_blood"),
        ("oral", "y_effect"),
        ("oral", "y_gut"),
        (examples.HOSTILE_RUN, "y_effect"),
    ]


def test_the_line_passes_through_the_simulated_data_times() -> None:
    found = curve("y_effect")
    table = TROUBLED.simulate(experiment="oral")
    at_data = np.isin(found.model_times, found.times)
    assert found.model[at_data] == pytest.approx(table["y_effect"].to_numpy(), rel=1e-6)


def test_a_dose_is_a_jump_in_the_line() -> None:
    found = curve("y_gut")
    assert found.events == (5.0,)
    before = found.model[found.model_times == 5.0][0]
    after = found.model[found.model_times > 5.0][0]
    assert after > before + 0.9


def test_a_sum_that_is_set_back_where_it_is_measured_is_a_series() -> None:
    # New cases of a day: a line of the sum itself would be the teeth of a saw.
    times = np.arange(1.0, 9.0)
    ends = 2.0 * np.exp(-0.3 * (times - 1.0)) * (1 - np.exp(-0.3)) / 0.3
    days = [Event(tuple(times), {"new": "0"})]
    data = Experiment("outbreak", {"t": times, "new": ends}, t0=0.0, events=days)
    problem = Problem(
        Model(ode={"x": "-k*x", "new": "x"}),
        parameters={"k": {"lower": 0.0, "upper": 1.0, "guess": 0.2}},
        initial={"x": 2.0, "new": 0.0},
        experiments=[data],
    )
    result = fit(problem, SingleShooting())
    (found,) = fit_curves(result, bands=band_source(result, "linear"))
    assert found.model_times.tolist() == times.tolist()
    assert found.model == pytest.approx(ends, rel=1e-4)
    assert found.band is not None
    assert found.band.times.tolist() == times.tolist()
    assert found.band.confidence.shape == (2, 8)


@pytest.mark.parametrize(("days", "is_series"), [((1.0, 2.0, 3.0), True), ((1.0, 2.0), False)])
def test_four_of_five_measured_sums_make_a_series(days: tuple[float, ...], is_series: bool) -> None:
    """The last measurement counts: nothing is seen of an event there."""
    times = np.arange(1.0, 6.0)
    problem = Problem(
        Model(ode={"new": "k"}),
        parameters={"k": {}},
        initial={"new": 0.0},
        experiments=[
            Experiment("run", {"t": times, "new": times}, 0.0, events=[Event(days, {"new": "0"})])
        ],
    )
    (found,) = fit_curves(examples.result_of(problem, np.array([1.0]), 0.0, None, ()))
    assert (found.model_times.tolist() == [*days, 5.0]) == is_series
    assert (len(found.model) > 100) != is_series


@pytest.mark.parametrize(
    ("observable", "expected"),
    [
        (
            "y_blood",
            lambda model: np.full(len(model), 0.04),
        ),  # the data's own, not the noise's 0.05
        ("y_effect", lambda model: 0.02 + 0.05 * model),
    ],
)
def test_the_spread_is_one_standard_deviation(
    observable: str, expected: Callable[[Array], Array]
) -> None:
    found = curve(observable)
    model = found.model[np.isin(found.model_times, found.times)]
    assert found.spread is not None
    half = 0.5 * (found.spread[1] - found.spread[0])
    assert half == pytest.approx(expected(model), rel=1e-6)


def test_the_spread_on_a_logarithmic_scale_is_a_factor() -> None:
    found = curve("y_gut")
    assert found.spread is not None
    assert found.spread[1] / found.measured == pytest.approx(10**0.08)
    assert found.measured / found.spread[0] == pytest.approx(10**0.08)


def test_plain_least_squares_has_no_spread() -> None:
    assert all(c.spread is None for c in fit_curves(examples.alpha_pinene()))


def test_a_relative_noise_and_a_number_are_spreads_too() -> None:
    data = {"t": [0.0, 1.0], "x": [2.0, 1.0]}
    for noise, expected in ((Noise(relative=0.1), [0.2, 0.1]), (Noise(sd=0.3), [0.3, 0.3])):
        problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": 2.0}, noise={"x": noise})
        sds = standard_deviations(problem, problem.conditions[0], "x", np.array([0.7]), {})
        assert sds == pytest.approx(expected)


@pytest.mark.slow
def test_a_failed_simulation_leaves_the_data_and_the_reason() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}), {"t": [0.0, 1.0, 3.0], "x": [1.0, 1.5, 2.0]}, {"k": {}},
        {"x": 1.0},
    )  # fmt: skip
    result = examples.result_of(problem, np.array([1.0]), 1.0, None, ())
    (found,) = fit_curves(result)
    assert found.measured.tolist() == [1.0, 1.5, 2.0]
    assert len(found.model) == 0
    assert "the simulation failed at t = 1" in found.failure
    assert "no residuals" in str(result.plot_residuals().axes[0].texts[0].get_text())
    with pytest.raises(RuntimeError, match='the simulation fails: experiment "data"'):
        result.simulate()


def test_without_a_solution_the_data_are_shown_alone() -> None:
    found = list(fit_curves(examples.failed()))
    assert len(found) == 5
    assert {c.failure for c in found} == {"no solution was found"}


def test_times_over_decades_are_drawn_on_a_logarithmic_axis() -> None:
    times = np.array([0.0, *np.geomspace(1e-3, 1e4, 12)])
    assert spreads_over_decades(times)
    assert not spreads_over_decades(np.linspace(0.0, 10.0, 30))
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[Experiment("long", {"t": times, "x": np.exp(-0.01 * times)}, t0=0.0)],
        parameters={"k": {}},
        initial={"x": 1.0},
    )
    grid = fine_times(problem.conditions[0], log_time=True)
    assert grid[0] == 1e-3
    assert grid[-1] == times[-1]
    assert (np.diff(grid) > 0).all()
    result = examples.result_of(problem, np.array([0.01]), 0.0, None, ())
    (axes,) = result.plot_fit().axes
    assert axes.get_xscale() == "log"


def test_a_single_time_is_enough() -> None:
    problem = Problem(Model(ode={"x": "-k*x"}), {"t": [0.0], "x": [1.0]}, {"k": {}}, {"x": 1.0})
    result = examples.result_of(problem, np.array([0.3]), 0.0, None, ())
    (found,) = fit_curves(result)
    assert found.model.tolist() == [1.0]
    result.plot_fit().draw_without_rendering()


def test_a_line_of_many_points_is_drawn_by_those_that_shape_it() -> None:
    times = np.linspace(0.0, 10.0, 50_000)
    values = np.sin(40.0 * times)
    values[31_234], values[777] = 5.0, -7.0  # peaks of a single point
    kept = seen(times, values)
    assert SEEN_COLUMNS < kept.sum() <= 4 * SEEN_COLUMNS
    assert kept[[0, -1, 31_234, 777]].all()
    assert seen(times[:1000], values[:1000]).all()
    later = np.append(np.geomspace(1e-6, 10.0, 50_000), np.inf)
    spread = seen(later, np.append(values, 0.0), log_time=True)
    assert spread[[0, 31_234, 777, -1]].all()
    assert spread.sum() <= 4 * SEEN_COLUMNS + 1


@pytest.mark.slow
def test_a_line_and_its_band_are_thinned_where_the_data_have_many_rows() -> None:
    result = examples.dense()
    (found,) = fit_curves(result, bands=band_source(result, "linear"))
    assert len(found.times) == 30_000
    assert len(found.model) <= 4 * SEEN_COLUMNS
    assert found.band is not None
    assert len(found.band.times) == len(found.model)
    assert found.model.max() == pytest.approx(1.0, abs=1e-3)


def test_a_panel_says_that_its_band_is_missing() -> None:
    times = [0.0, 1.0, 2.0, 3.0]
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "c"}, observables={"y": "x", "w": "z"}),
        {"t": times, "y": [1.0, 0.5, 0.3, 0.1]},
        {"k": {"lower": 0.0, "guess": 1.0}, "c": {"lower": 0.0, "guess": 1.0}},
        {"x": 1.0, "z": 0.0},
        noise={"y": {"sd": 0.05}},
    )
    told: list[str] = []
    result = fit(problem, SingleShooting())
    apart = {"t": [1.0, 2.0], "w": [1.0, 2.0]}
    figure = plot_fit(result, band="linear", validation=apart, say=told.append)
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["", "no band"]
    (said,) = told
    assert said.startswith("no band of w, where it changes with c, which the data do not determine")
