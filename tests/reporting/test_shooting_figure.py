"""The figure of an iteration shows the trajectory in its pieces, its nodes, and the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import odefit
from odefit import Event, Experiment, InputError, Model, MultipleShooting, Problem
from odefit.common.arrays import Array
from odefit.methods.multiple_shooting import History
from odefit.reporting.figures.fit import PANEL_SIZE
from odefit.reporting.figures.shooting import MAX_SINGLE_COLUMN_PANELS, plot_shooting
from odefit.reporting.figures.style import DATA, MODEL
from odefit.simulation import Simulation
from tests.reporting.test_figures import texts


def followed(name: str, nodes: int = 8) -> History:
    return MultipleShooting(nodes=nodes, states="data").follow(odefit.library.load(name))


@pytest.fixture(scope="module")
def partly() -> History:
    """V is measured, R is not."""
    return followed("fitzhugh-nagumo-v")


def two_runs() -> Problem:
    """Two experiments, an event, a known standard deviation, states that are no observables."""
    times = np.linspace(0.0, 4.0, 9)
    data = {"t": times, "double": 2 * np.exp(-0.7 * times)}
    dose = Event((2.0,), {"y": "y + 1"})
    return Problem(
        Model(ode={"x": "-k*x", "y": "k*x - y"}, observables={"double": "2*x"}),
        experiments=[Experiment("first", data, events=[dose]), Experiment("second", data)],
        parameters={"k": {"lower": 0.1, "upper": 2.0}},
        initial={"x": {"lower": 0.0, "upper": 5.0, "per_experiment": True}, "y": 0.0},
        noise={"double": odefit.Noise(sd=0.1)},
        time_unit="h",
    )


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def line(figure: Figure, panel: int) -> tuple[Array, Array]:
    """What the trajectory is drawn as."""
    (found,) = (k for k in figure.axes[panel].lines if k.get_linewidth() == pytest.approx(1.4))
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def marks(figure: Figure, panel: int, colour: str) -> tuple[Array, Array]:
    """Markers of a colour: nodes or data."""
    found = [
        k
        for k in figure.axes[panel].lines
        if k.get_marker() == "o" and k.get_markeredgecolor() == colour
    ]
    return (
        np.concatenate([np.zeros(0), *(np.asarray(k.get_xdata(), float) for k in found)]),
        np.concatenate([np.zeros(0), *(np.asarray(k.get_ydata(), float) for k in found)]),
    )


def test_a_state_that_is_not_measured_has_a_panel_without_data(partly: History) -> None:
    figure = plot_shooting(partly, 0)
    assert titles(figure) == ["V", "R"]
    series = partly.problem.conditions[0].series["V"]
    times, values = marks(figure, 0, DATA)
    np.testing.assert_array_equal(values, series.values)
    np.testing.assert_array_equal(times, partly.problem.conditions[0].times[series.rows])
    assert len(marks(figure, 1, DATA)[0]) == 0


def test_rings_mark_the_nodes_of_the_iteration(partly: History) -> None:
    for iteration in (0, -1):
        figure = plot_shooting(partly, iteration)
        nodes = partly.nodes(iteration)
        for panel in (0, 1):
            times, values = marks(figure, panel, MODEL)
            np.testing.assert_array_equal(times, nodes.times[0])
            np.testing.assert_allclose(values, nodes.values[0][:, panel], rtol=1e-9, atol=1e-12)


def test_the_line_is_broken_at_every_node_but_the_first(partly: History) -> None:
    times, values = line(plot_shooting(partly, 0), 0)
    breaks = times[np.isnan(values)]
    np.testing.assert_array_equal(breaks, partly.nodes(0).times[0][1:])


def test_jumps_are_those_of_the_first_iteration_and_gone_in_the_last(partly: History) -> None:
    def largest_jump(iteration: int) -> float:
        _, values = line(plot_shooting(partly, iteration), 1)
        at = np.flatnonzero(np.isnan(values))
        return float(np.max(np.abs(values[at + 1] - values[at - 1])))

    assert largest_jump(0) > 0.1
    assert largest_jump(-1) < 1e-6


def test_the_title_says_which_iteration_it_is(partly: History) -> None:
    last = len(partly.iterations) - 1
    assert plot_shooting(partly).get_suptitle().startswith(f"iteration {last} of {last}: ")
    assert plot_shooting(partly, 1).get_suptitle().startswith(f"iteration 1 of {last}: ")


def test_a_few_panels_are_wide_and_many_in_two_columns(partly: History) -> None:
    wide = plot_shooting(partly)
    assert len(wide.axes) <= MAX_SINGLE_COLUMN_PANELS
    assert wide.get_size_inches()[0] > PANEL_SIZE[0]
    four = plot_shooting(followed("henon-heiles", nodes=30), 0)
    assert titles(four) == ["x", "y", "px", "py"]
    spec = four.axes[0].get_subplotspec()
    assert spec is not None
    assert spec.get_gridspec().get_geometry() == (2, 2)


@pytest.mark.parametrize("experiment", ["first", "second"])
def test_each_experiment_has_its_own_figure(experiment: str) -> None:
    problem = two_runs()
    history = MultipleShooting(nodes=4, states="data").follow(problem)
    figure = plot_shooting(history, 0, experiment)
    assert titles(figure) == ["double", "x", "y"]
    assert figure.get_suptitle().startswith(f"{experiment} · iteration 0 of ")
    assert figure.axes[-1].get_xlabel() == "time (h)"
    # the trajectory, its nodes, the data, and the event
    assert len(figure.axes[0].lines) == (4 if experiment == "first" else 3)
    # bars of standard deviations where there are data
    assert [len(axes.collections) for axes in figure.axes] == [1, 0, 0]


@pytest.mark.slow
def test_text_is_complete_and_does_not_overlap() -> None:
    history = MultipleShooting(nodes=4, states="data").follow(two_runs())
    figure = plot_shooting(history, 0)
    placed = texts(figure)
    for i, (text, box) in enumerate(placed):
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        for other, other_box in placed[i + 1 :]:
            apart = (
                box.x1 <= other_box.x0 + 1
                or other_box.x1 <= box.x0 + 1
                or box.y1 <= other_box.y0 + 1
                or other_box.y1 <= box.y0 + 1
            )
            assert apart, f"{text.get_text()!r} covers {other.get_text()!r}"


@pytest.mark.parametrize("iteration", [99, -99])
def test_an_iteration_that_does_not_exist_is_refused(partly: History, iteration: int) -> None:
    last = len(partly.iterations) - 1
    with pytest.raises(InputError, match=f"expected 0 to {last}, or -1 for the last, got"):
        plot_shooting(partly, iteration)


def test_a_trajectory_that_cannot_be_integrated_is_reported(
    partly: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Simulation:
        raise RuntimeError("the trajectory cannot be integrated: too far")

    history = replace(partly)
    monkeypatch.setattr(History, "trajectory", fail)
    figure = plot_shooting(history)
    assert [t.get_text() for axes in figure.axes for t in axes.texts] == [
        "the trajectory cannot be integrated: too far"
    ]
