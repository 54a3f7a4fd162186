"""Figures can be read: nothing is cut off, nothing overlaps, any name is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from odefit.methods.estimate import Start, Status
from odefit.problem.experiment import Experiment
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.reporting.curves import SEEN_COLUMNS, fit_curves
from odefit.reporting.documents.svg import drawing
from odefit.reporting.figures import correlation, diagnostics, fit, parameters, starts
from odefit.reporting.figures.residual_data import residuals_of
from odefit.reporting.figures.residuals import Setting
from odefit.reporting.figures.style import Plot, plain
from odefit.result.result import Result
from tests.reporting import examples

PLOTS: list[Callable[[Result], Figure]] = [
    fit.plot_fit,
    *(
        partial(diagnostics.plot_diagnostic, kind=kind)
        for kind in (*diagnostics.DIAGNOSTICS, "all")
    ),
    starts.plot_starts,
    starts.plot_parallel,
    parameters.plot_parameters,
    correlation.plot_correlation,
]


def many_unknowns(count: int) -> Result:
    keys = [f"rate_constant_{i}" for i in range(count)]
    problem = Problem(
        Model(ode={"x": "*".join(["-x", *keys])}),
        {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]},
        {key: {} for key in keys},
        {"x": 1.0},
    )
    vector = np.full(count, 0.9)
    correlation = np.full((count, count), 0.5) + 0.5 * np.eye(count)
    uncertainty = examples.uncertainty_of(keys, vector, 0.1 * vector, correlation, 3.0)
    return examples.result_of(problem, vector, 1e-19, uncertainty, ())


RESULTS = {
    "alpha-pinene": examples.alpha_pinene(),
    "troubled": examples.troubled(),
    "failed": examples.failed(),
    "six by two": examples.many(6, 2),
    "thirty unknowns": many_unknowns(30),
}


def test_many_events_are_marks_that_hide_no_curve() -> None:
    curve = next(fit_curves(examples.troubled()))
    inside = np.linspace(min(curve.times), max(curve.times), fit.MANY_EVENTS)
    for events, across in ((inside, False), (inside[1:], True)):
        drawn = fit.panel_figure(replace(curve, events=tuple(events)))
        lines = drawn.figure.axes[0].lines
        heights = [
            np.asarray(line.get_ydata()).max() for line in lines if line.get_linewidth() == 0.7
        ]
        assert len(heights) == len(events)
        assert all((height == 1.0) == across for height in heights)


def render(figure: Figure) -> None:
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]


def texts(figure: Figure) -> list[tuple[Text, Bbox]]:
    """Every text that is really drawn, with its place in pixels."""
    drawn: list[Text] = []
    draw = Text.draw

    def record(text: Text, renderer: RendererBase) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        draw(text, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", record)
        render(figure)
    return [(text, text.get_window_extent()) for text in dict.fromkeys(drawn)]


@pytest.mark.slow
@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("name", RESULTS)
def test_no_text_is_cut_off_or_covers_another(plot: Callable[[Result], Figure], name: str) -> None:
    figure = plot(RESULTS[name])
    placed = texts(figure)
    whole = figure.bbox
    for text, box in placed:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= whole.x1 + 1 and box.y1 <= whole.y1 + 1
        assert inside, f"{text.get_text()!r} is cut off"
    for i, (one, box) in enumerate(placed):
        for other, other_box in placed[i + 1 :]:
            overlap = Bbox.intersection(box, other_box)
            if overlap is not None and overlap.width > 1.5 and overlap.height > 1.5:
                pytest.fail(f"{one.get_text()!r} covers {other.get_text()!r}")


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_panels_of_the_report_hold_all_their_text(name: str) -> None:
    for curve in fit_curves(RESULTS[name]):
        figure = fit.panel_figure(curve)
        for text, box in texts(figure):
            inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1
            assert inside, f"{text.get_text()!r} is cut off"


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-12, 1e-5, 0.03, 1.0, 4321.0, 1e7, 1e12, -250.0, 0.0])
def test_values_of_any_size_have_readable_ticks(size: float) -> None:
    times = np.linspace(0.0, 5.0, 8) * max(abs(size), 1.0)
    values = size * (1.0 + 0.2 * np.sin(np.arange(8.0)))
    problem = Problem(
        Model(ode={"x": "1e-12*k*x"}),
        {"t": times, "x": values},
        {"k": {}},
        {"x": size},
        time_unit="min",
    )
    result = examples.result_of(problem, np.array([1.0]), 1.0, None, ())
    (curve,) = fit_curves(result)
    panels = [fit.panel_figure(curve)]
    found = residuals_of(result)
    setting = Setting.of(problem, found)
    panels += [
        diagnostics.panel_figure(kind, "x", found, setting) for kind in diagnostics.DIAGNOSTICS
    ]
    for figure in panels:
        for text, box in texts(figure):
            inside = box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 + 1
            assert inside, f"{text.get_text()!r} is cut off"


def test_a_constant_series_is_a_flat_line_without_offset() -> None:
    problem = Problem(
        Model(ode={"x": "1e-12*k*x"}),
        {"t": [0.0, 1.0, 2.0], "x": [1e5, 1e5 + 1e-6, 1e5]},
        {"k": {}},
        {"x": 1e5},
    )
    result = examples.result_of(problem, np.array([1.0]), 1.0, None, ())
    (axes,) = result.plot_fit().axes
    low, high = axes.get_ylim()
    assert high - low > 1e4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["$x", "α-β µ", "実験 7", "a_b^c{d}", "\\frac{"])
def test_any_name_of_an_experiment_is_drawn(name: str) -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[
            Experiment(run, {"t": [0.0, 1.0], "x": [1.0, 0.5]}, initial={"x": 1.0})
            for run in (name, "other")
        ],
        parameters={"k": {"per_experiment": True, "unit": name}},
        initial={"x": 1.0},
        time_unit=name,
    )
    vector = np.array([0.7, 0.6])
    uncertainty = examples.uncertainty_of(problem.keys, vector, 0.1 * vector, np.eye(2), 5.0)
    result = examples.result_of(problem, vector, 0.1, uncertainty, ())
    for plot in PLOTS:
        render(plot(result))


def test_characters_that_the_font_lacks_are_boxes() -> None:
    assert plain("a実µ\n") == "a□µ "


def test_the_layout_follows_experiments_and_observables() -> None:
    assert fit.column_count(list(fit_curves(examples.many(1, 5)))) == 3
    assert fit.column_count(list(fit_curves(examples.many(5, 1)))) == 3
    assert fit.column_count(list(fit_curves(examples.many(20, 1)))) == 4
    assert fit.column_count(list(fit_curves(examples.many(7, 3)))) == 3
    assert fit.column_count(list(fit_curves(examples.many(1, 1)))) == 1


@pytest.mark.slow
def test_one_experiment_or_some_observables_can_be_shown_alone() -> None:
    result = examples.many(3, 2)
    assert len(result.plot_fit(experiment="run 2").axes) == 2
    assert len(result.plot_fit(observables=["y2"]).axes) == 3
    assert "nothing" in result.plot_fit(observables=[]).axes[0].texts[0].get_text()


def test_equal_ends_of_starts_are_a_flat_line() -> None:
    result = RESULTS["alpha-pinene"]
    same = [
        Start(i, s.start, s.vector, 19.872166934 * (1 + 1e-12 * i), Status.CONVERGED, "", 1, 0.1)
        for i, s in enumerate(result.starts)
    ]
    (axes,) = starts.plot_starts(replace(result, starts=same)).axes
    low, high = axes.get_ylim()
    assert high - low > 1.0


def test_an_interval_that_is_too_wide_ends_in_arrows() -> None:
    (axes, *_) = parameters.plot_parameters(RESULTS["troubled"]).axes
    markers = [line.get_marker() for line in axes.lines]
    assert markers.count("<") == markers.count(">") == 1
    assert axes.get_xlim()[1] == pytest.approx(110.0)


def test_missing_intervals_show_their_reason() -> None:
    (axes, *_) = parameters.plot_parameters(RESULTS["troubled"]).axes
    said = [text.get_text() for text in axes.texts]
    assert said == ["not determined", "not determined", "at lower bound", "no effect", "no effect"]


def test_cells_between_two_unknowns_show_their_correlation() -> None:
    """Those on the diagonal, and those of unknowns without standard error, show nothing."""
    result = RESULTS["alpha-pinene"]
    assert result.uncertainty is not None
    matrix = np.array(result.uncertainty.correlation)
    matrix[4], matrix[:, 4] = np.nan, np.nan
    uncertainty = replace(result.uncertainty, correlation=matrix)
    (axes, *_) = correlation.plot_correlation(replace(result, uncertainty=uncertainty)).axes
    shown = {tuple(map(int, text.get_position())): text.get_text() for text in axes.texts}
    assert set(shown) == {(i, j) for i in range(4) for j in range(4) if i != j}
    assert shown[0, 1] == shown[1, 0] == "−.21"
    assert shown[2, 3] == ".62"


@pytest.mark.slow
def test_a_drawing_takes_colours_and_ids_from_the_page() -> None:
    drawn = drawing(fit.plot_fit(RESULTS["alpha-pinene"]), "one", "A <title>")
    assert 'id="one-' in drawn.content
    assert "figure_1" not in drawn.content
    assert "var(--model)" in drawn.content
    assert "#0072b2" not in drawn.content
    assert "<style" not in drawn.content


@pytest.mark.slow
def test_drawing_leaves_the_users_settings_alone() -> None:
    before = dict(matplotlib.rcParams)
    for plot in PLOTS:
        figure = plot(RESULTS["alpha-pinene"])
        assert isinstance(figure, Plot)
        figure._repr_png_()
    assert dict(matplotlib.rcParams) == before


def test_thousands_of_points_are_drawn_as_their_density() -> None:
    result = examples.dense()
    for figure in (fit.plot_fit(result), result.plot_residuals()):
        (axes,) = figure.axes
        (mesh,) = (c for c in axes.collections if isinstance(c, QuadMesh))
        assert mesh.get_rasterized()
        assert all(np.size(line.get_xdata()) <= 4 * SEEN_COLUMNS for line in axes.lines)
        low, high = axes.get_ylim()
        box = mesh.get_datalim(axes.transData)
        assert low < box.y0
        assert high > box.y1


@pytest.mark.slow
def test_a_report_of_many_rows_is_small(tmp_path: Path) -> None:
    examples.dense().report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(text) < 500_000
    assert "data:image/png;base64," in text
    assert "the darker, the more measurements" in text
    assert "their mean over windows of time" in " ".join(text.split()).replace("shows ", "")
