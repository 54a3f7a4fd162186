"""Panels of estimated functions: of time, or over the state that they depend on."""

import numpy as np
import pytest

import odefit
from odefit.reporting.curves import fit_curves
from odefit.reporting.figures.function_curves import with_functions

TIMES = np.linspace(0.0, 6.0, 13)


@pytest.fixture(scope="module")
def result() -> odefit.Result:
    """A decay whose rate is estimated as a function of the state."""
    table = {"estimate": "linear", "of": "x", "knots": [0.0, 1.0, 2.0], "guess": 0.5}
    model = odefit.Model(ode={"x": "-k"}, observables={"y": "x"}, inputs={"k": table})
    y = 2.0 * np.exp(-0.5 * TIMES) + 0.01 * np.cos(17 * TIMES)
    noise = {"y": {"sd": 0.01}}
    p = odefit.Problem(model, data={"t": TIMES, "y": y}, initial={"x": 2.0}, noise=noise)
    return odefit.fit(p, odefit.SingleShooting())


def test_a_function_of_a_state_is_drawn_over_that_state_with_its_band(
    result: odefit.Result,
) -> None:
    curves = with_functions(list(fit_curves(result)), result)
    assert [curve.observable for curve in curves] == ["y", "k"]
    found = curves[1]
    assert found.argument == ("x", "")
    assert (np.diff(found.model_times) >= 0).all()
    # The truth is k = x/2, and x falls from 2.
    assert found.model == pytest.approx(0.5 * found.model_times, abs=0.03)
    assert found.band is not None
    assert np.array_equal(found.band.times, found.model_times)
    assert (found.band.confidence[0] <= found.model).all()


def test_figures_draw_functions_unless_others_are_asked_for(result: odefit.Result) -> None:
    titles = [axes.get_title(loc="left") for axes in result.plot_fit().axes]
    assert titles == ["y", "k"]
    assert [a.get_xlabel() for a in result.plot_fit(share_axes=True).axes] == ["time t", "x"]
    alone = result.plot_fit(observables=["y"])
    assert [axes.get_title(loc="left") for axes in alone.axes] == ["y"]


def test_knots_of_a_function_of_time_are_not_drawn_as_events() -> None:
    table = {"estimate": "linear", "knots": [0.0, 2.0, 4.0, 6.0], "guess": 0.5}
    model = odefit.Model(ode={"x": "-k*x"}, observables={"y": "x"}, inputs={"k": table})
    data = {"t": TIMES, "y": 2.0 * np.exp(-0.5 * TIMES) + 0.01 * np.cos(17 * TIMES)}
    p = odefit.Problem(
        model,
        initial={"x": 2.0},
        noise={"y": {"sd": 0.01}},
        experiments=[odefit.Experiment("one", data, events=[odefit.Event((3.0,), {"x": "x"})])],
    )
    found = odefit.fit(p, odefit.SingleShooting())
    assert [curve.events for curve in fit_curves(found)] == [(3.0,)]
    (axes, *_) = found.plot_predictions(observables=["y"]).axes
    ends = [np.asarray(line.get_xydata()) for line in axes.lines]
    marks = [both for both in ends if both.shape == (2, 2) and both[1, 1] == 0.03]
    assert [both[0, 0] for both in marks] == [3.0]
