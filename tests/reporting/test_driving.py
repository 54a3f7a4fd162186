"""Inputs, doses and constants that events change, as curves; and figures that show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import odefit
from odefit import Event, Experiment, InputError, Model, Problem, Result, SingleShooting
from odefit.reporting.driving import DrivingKind, driving
from odefit.reporting.figures.fit import driving_of
from odefit.reporting.figures.predictions import MANY_RUNS

TIMES = np.linspace(1.0, 10.0, 8)


def experiment(name: str, amount: float) -> Experiment:
    events = [
        Event((0.0, 4.0), {"gut": f"gut + F*{amount}"}),
        Event((6.0,), {"gut": "0.5*gut"}),
        Event((5.0,), {"e": "e + 2"}),
    ]
    values = amount * np.exp(-0.3 * TIMES) + 0.01 * np.cos(20 * TIMES)
    return Experiment(name, {"t": TIMES, "C": values, "u": TIMES / 10}, t0=0.0, events=events)


def problem(count: int = 2) -> Problem:
    return Problem(
        Model(
            ode={"gut": "-ka*gut", "C": "ka*gut - k*C + 0*e + 0*u"},
            constants={"e": 1.0, "F": 0.5},
            inputs={"u": "linear"},
        ),
        experiments=[experiment(f"run {k}", 2.0 + k) for k in range(count)],
        parameters={"ka": {"guess": 1.0, "lower": 0.1}, "k": {"guess": 0.3, "lower": 0.01}},
        initial={"gut": 0.0, "C": 0.0},
        noise={"C": {"sd": 0.5}},
        units={"gut": "mg"},
        time_unit="h",
    )


def curves(panel: Axes) -> list[Line2D]:
    """Return the curves of a panel, without measurements."""
    return [line for line in panel.lines if np.asarray(line.get_xdata()).size > 50]


@pytest.fixture(scope="module")
def result() -> Result:
    return odefit.fit(problem(), SingleShooting(), jobs=1)


def test_doses_equal_events_that_add_amounts(result: Result) -> None:
    found = {
        d.name: d for d in driving(result.problem, result.problem.conditions[1], np.ones(2), 12)
    }
    assert set(found) == {"u", "gut", "e"}
    doses = found["gut"]
    assert doses.kind is DrivingKind.DOSE
    assert doses.times.tolist() == [0.0, 4.0]  # halving the amount is no dose
    assert doses.values.tolist() == [1.5, 1.5]
    assert (doses.unit, doses.time_unit, doses.span) == ("mg", "h", (0.0, 12))
    level = found["e"]
    assert level.times.tolist() == [0.0, 5.0, 5.0, 12.0]
    assert level.values.tolist() == [1.0, 1.0, 3.0, 3.0]
    held = found["u"]
    assert np.interp(5.5, held.times, held.values) == pytest.approx(0.55)


def test_a_fit_has_panels_of_them_on_request(result: Result) -> None:
    titles = [axes.get_title("left") for axes in result.plot_fit(inputs=True).axes]
    assert titles == [
        "C · run 0", "C · run 1",
        "u · run 0", "doses into gut · run 0", "e · run 0",
        "u · run 1", "doses into gut · run 1", "e · run 1",
    ]  # fmt: skip
    assert len(result.plot_fit().axes) == 2


def test_experiments_are_overlaid_in_one_panel(result: Result) -> None:
    figure = result.plot_fit(overlay=True, until=15.0)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["C", "u", "doses into gut", "e"]
    panel = figure.axes[0]
    assert panel.get_ylabel() == "C"
    lines = curves(panel)
    assert len(lines) == 2
    assert all(np.asarray(line.get_xdata())[-1] == pytest.approx(15.0) for line in lines)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["run 0", "run 1"]
    with pytest.raises(InputError, match="overlay"):
        result.plot_fit(overlay=True, share_axes=True)


@pytest.mark.slow
def test_many_experiments_have_the_colours_of_a_scale() -> None:
    many = odefit.fit(problem(MANY_RUNS + 2), SingleShooting(), jobs=1)
    figure = many.plot_fit(overlay=True)
    lines = curves(figure.axes[0])
    assert len({line.get_color() for line in lines}) == MANY_RUNS + 2
    assert not figure.axes[0].collections  # bands would hide each other


@pytest.mark.slow
def test_the_report_has_inputs_doses_and_the_overlay(result: Result) -> None:
    from odefit.reporting.documents.html import report_html

    page = report_html(result)
    assert "gut in experiment run 0: dose" in page
    assert "All experiments together" in page
    assert driving_of(result, []) == []


def test_curves_extend_to_a_date(tmp_path: Path) -> None:
    """Dates are taken wherever a time is, in Python and on the command line."""
    from odefit.cli import main

    days = ["2021-05-01", "2021-05-03", "2021-05-06", "2021-05-09"]
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": days, "x": [1.0, 0.8, 0.62, 0.45]},
        {"k": {"guess": 0.1}},
        {"x": 1.0},
        t0="2021-05-01",
    )
    result = odefit.fit(problem, odefit.SingleShooting(), jobs=1)
    for overlay in (False, True):
        dated = result.plot_fit(until="2021-05-31", overlay=overlay)
        number = result.plot_fit(until=30.0, overlay=overlay)
        assert dated.axes[0].get_xlim() == number.axes[0].get_xlim()
    with pytest.raises(odefit.InputError, match="as a finite number, or a date such as"):
        result.plot_fit(until="soon")
    file = tmp_path / "r.json"
    result.save(file)
    out = tmp_path / "p.svg"
    assert main(["plot", str(file), "--until", "2021-05-31", "-o", str(out)]) == 0
    assert out.exists()
