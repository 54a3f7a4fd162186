"""The figure of bounds shows both against time, their gap, and of what they are."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import odefit
from odefit.methods.estimate import BoundStep, Certificate
from odefit.reporting.documents.html import environment, report_values
from odefit.reporting.figures.bounds import SCOPE_LINES, plot_bounds
from odefit.reporting.figures.style import DATA, MODEL
from odefit.result.result import Result
from tests.reporting import examples
from tests.reporting.test_figures import texts

LONG = "discretised (Legendre collocation, 5 elements x 5 points; " + ", ".join(
    f"S{i} in [-4.948e-05, 37.5]" for i in range(9)
)


def history(*steps: tuple[float, float, float]) -> tuple[BoundStep, ...]:
    return tuple(BoundStep("boxes", i, a, b, s) for i, (s, a, b) in enumerate(steps, 1))


def result(steps: tuple[BoundStep, ...], scope: str = "continuous time") -> Result:
    lower, upper = (steps[-1].lower, steps[-1].upper) if steps else (0.0, 1.0)
    bounds = Certificate(lower, upper, scope, "Nothing is below.", True, steps)
    found = examples.alpha_pinene()
    return replace(found, assessment=replace(found.assessment, bounds=bounds))


USUAL = history((0.4, 0.0, 19.9), (1.5, 3.0, 19.9), (6.0, 15.0, 19.88), (26.0, 19.86, 19.88))

RESULTS = {
    "usual": result(USUAL),
    "long scope": result(USUAL, LONG),
    "one step": result(history((0.2, 0.0, 1e-9))),
    "optimum of zero": result(history((0.2, 0.0, 0.5), (3.0, 0.0, 0.0))),
    "no upper bound at first": result(history((0.0, -math.inf, math.inf), (3.0, 1e-5, 2e-5))),
    "far off at first": result(history((0.1, 0.0, 1e7), (40.0, 0.5, 1.0))),
    "negative": result(history((0.1, -9.0, -2.0), (4.0, -3.0, -2.5))),
    "many": result(history(*((0.1 * i, 1 - 1 / i, 1.0) for i in range(1, 60)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_no_text_is_cut_off_or_covers_another(name: str) -> None:
    figure = plot_bounds(RESULTS[name])
    placed = texts(figure)
    for i, (text, box) in enumerate(placed):
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text
        for other, other_box in placed[i + 1 :]:
            apart = (
                box.x1 <= other_box.x0 + 1.5
                or other_box.x1 <= box.x0 + 1.5
                or box.y1 <= other_box.y0 + 1.5
                or other_box.y1 <= box.y0 + 1.5
            )
            assert apart, f"{text.get_text()!r} covers {other.get_text()!r}"


def test_lines_are_steps_through_the_log() -> None:
    upper, lower = plot_bounds(RESULTS["usual"]).axes[0].lines
    for line, colour, name in ((upper, DATA, "upper"), (lower, MODEL, "lower")):
        assert line.get_drawstyle() == "steps-post"
        assert line.get_color() == colour
        np.testing.assert_array_equal(line.get_xdata(), [s.seconds for s in USUAL])
        np.testing.assert_array_equal(line.get_ydata(), [getattr(s, name) for s in USUAL])


def test_the_gap_is_in_per_cent_on_a_scale_that_shows_its_end() -> None:
    figure = plot_bounds(RESULTS["usual"])
    (line,) = figure.axes[1].lines
    assert figure.axes[1].get_yscale() == "log"
    expected = [100 * s.gap for s in USUAL]
    np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=float), expected)


def test_an_optimum_of_zero_and_no_upper_bound_are_drawn() -> None:
    def limits(name: str) -> tuple[float, float]:
        return plot_bounds(RESULTS[name]).axes[0].get_ylim()

    assert limits("optimum of zero")[0] < 0 < limits("optimum of zero")[1]
    assert limits("no upper bound at first")[1] < 1e-4
    assert limits("far off at first")[1] < 2.0
    low, high = limits("negative")
    assert low < -9.0
    assert high > -2.5


def test_time_is_logarithmic_where_it_spans_much() -> None:
    assert plot_bounds(RESULTS["usual"]).axes[0].get_xscale() == "log"
    assert plot_bounds(RESULTS["optimum of zero"]).axes[0].get_xscale() == "linear"


def test_the_scope_is_reported_in_a_few_lines() -> None:
    assert plot_bounds(RESULTS["usual"]).get_suptitle() == "continuous time"
    told = plot_bounds(RESULTS["long scope"]).get_suptitle().split("\n")
    assert len(told) == SCOPE_LINES
    assert told[0].startswith("discretised (Legendre collocation")
    assert told[-1].endswith("…")


def test_without_bounds_or_log_a_sentence_says_so() -> None:
    def said(figure: Figure) -> list[str]:
        return [t.get_text() for axes in figure.axes for t in axes.texts]

    assert said(plot_bounds(examples.alpha_pinene())) == ["no lower bound was computed"]
    assert said(plot_bounds(result(()))) == ["the method keeps no log of its bounds"]


def trust(result: Result) -> str:
    """The section of the report."""
    return environment().get_template("trust.html").render(report_values(result))


@pytest.mark.slow
def test_the_report_has_it_where_there_is_a_log() -> None:
    assert "How the bounds came together" in trust(RESULTS["usual"])
    assert "How the bounds came together" not in trust(result(()))
    assert "How the bounds came together" not in trust(examples.alpha_pinene())


def test_a_saved_result_keeps_its_log(tmp_path: Path) -> None:
    of = RESULTS["no upper bound at first"]
    of.save(tmp_path / "result.json")
    again = odefit.load_result(tmp_path / "result.json")
    assert again.assessment.bounds == of.assessment.bounds
    assert len(again.plot_bounds().axes) == 2
