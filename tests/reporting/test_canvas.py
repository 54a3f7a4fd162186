"""Figures are as wide as a column of a journal, or stand where the user wants them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from odefit.common.errors import InputError
from odefit.reporting.figures.canvas import inches
from odefit.result.result import Result
from tests.reporting import examples
from tests.reporting.test_figures import texts

RESULT = examples.alpha_pinene()

PLOTS: dict[str, Callable[..., Figure]] = {
    "fit": Result.plot_fit,
    "residuals": Result.plot_residuals,
    "starts": Result.plot_starts,
    "parameters": Result.plot_parameters,
    "correlation": Result.plot_correlation,
}


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        ("single", 89 / 25.4),
        ("double", 183 / 25.4),
        ("8.5 cm", 8.5 / 2.54),
        ("89mm", 89 / 25.4),
        ("3.5 in", 3.5),
        (4, 4.0),
    ],
)
def test_a_width_is_a_column_a_text_with_its_unit_or_inches(
    width: str | float, expected: float
) -> None:
    assert inches(width) == pytest.approx(expected)


@pytest.mark.parametrize("width", ["triple", "8.5", "8.5 km", "..cm", True, float("nan"), None])
def test_an_invalid_width_is_refused_with_the_valid_ones(width: Any) -> None:
    with pytest.raises(InputError, match=re.escape('expected "single", "double", inches')):
        inches(width)


def test_an_unreadable_width_is_refused() -> None:
    with pytest.raises(InputError, match=r"1\.5 to 30 inches, got 0\.394 inches"):
        RESULT.plot_starts(width="1 cm")


@pytest.mark.parametrize("width", ["single", pytest.param("double", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PLOTS)
def test_text_in_a_column_is_complete_separate_and_readable(name: str, width: str) -> None:
    figure = PLOTS[name](RESULT, width=width)
    assert figure.get_figwidth() == pytest.approx(inches(width))
    placed = texts(figure)
    for i, (text, box) in enumerate(placed):
        assert 6.0 <= float(text.get_fontsize()) <= 8.5, text
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text
        for other, place in placed[:i]:
            apart = (
                box.x1 < place.x0 + 1
                or place.x1 < box.x0 + 1
                or box.y1 < place.y0 + 1
                or place.y1 < box.y0 + 1
            )
            assert apart, (text, other)


def test_a_figure_of_the_user_is_drawn_on_with_others() -> None:
    whole = Figure(layout="constrained")
    left, right = (whole.add_subfigure(GridSpec(1, 2, figure=whole)[k]) for k in (0, 1))
    assert RESULT.plot_fit(figure=left) is whole
    assert RESULT.plot_starts(figure=right) is whole
    assert len(left.axes) == 5
    assert len(right.axes) == 1


@pytest.mark.slow
def test_axes_of_the_user_hold_one_panel() -> None:
    axes = Figure().add_subplot()
    RESULT.plot_fit(observables=["y3"], ax=axes)
    assert axes.get_title(loc="left") == "y3"
    with pytest.raises(InputError, match="there are 5 panels, and axes hold one"):
        RESULT.plot_fit(ax=Figure().add_subplot())


def test_ambiguous_and_invalid_places_are_refused() -> None:
    figure = Figure()
    with pytest.raises(InputError, match="width, figure: give one of them"):
        RESULT.plot_fit(width="single", figure=figure)
    with pytest.raises(InputError, match="figure: expected a matplotlib Figure or SubFigure"):
        RESULT.plot_fit(figure=figure.add_subplot())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ax: expected matplotlib Axes, got list"):
        RESULT.plot_fit(ax=[1.0])  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_saved_figure_has_embedded_fonts_and_texts_that_are_text() -> None:
    figure = RESULT.plot_fit(observables=["y3"], width="single")
    pdf, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(pdf, format="pdf")
    figure.savefig(svg, format="svg")
    assert b"/FontFile2" in pdf.getvalue()  # TrueType, embedded
    assert b"/Type3" not in pdf.getvalue()
    assert b"<image" not in svg.getvalue()  # nothing is a picture
    assert re.search(rb"<text[^>]*>time \(min\)</text>", svg.getvalue())
