"""An axis always has labels to read a value from, and they do not touch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from odefit.reporting.figures import style
from odefit.reporting.figures.style import MOST_TICKS, LogLabels, log_ticks


@given(st.floats(-12, 12), st.floats(0.001, 14), st.integers(2, MOST_TICKS))
def test_a_logarithmic_axis_of_any_length_has_two_to_seven_labels(
    start: float, decades: float, most: int
) -> None:
    low, high = 10.0**start, 10.0 ** (start + decades)
    ticks = log_ticks(low, high, most)
    assert 2 <= len(ticks) <= MOST_TICKS + 1
    assert (np.diff(ticks) > 0).all()
    assert (ticks >= low * (1 - 1e-8)).all()
    assert (ticks <= high * (1 + 1e-8)).all()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.015, 0.3, [0.02, 0.05, 0.1, 0.2]),
        (1.0, 1e6, [1e0, 1e2, 1e4, 1e6]),
        (4.1, 4.9, [4.25, 4.5, 4.75]),
        (0.9, 110.0, [1.0, 10.0, 100.0]),
    ],
)
def test_labels_are_powers_of_ten_only_where_there_are_several(
    low: float, high: float, expected: list[float]
) -> None:
    np.testing.assert_allclose(log_ticks(low, high, most=4), expected)


def test_labels_are_written_as_a_reader_would() -> None:
    label = LogLabels()
    assert [label(v) for v in (0.02, 500.0, 3e4)] == ["0.02", "500", "30000"]
    assert [label(v) for v in (1e-5, 2e7)] == ["$10^{-5}$", r"$2\times10^{7}$"]


@pytest.mark.parametrize(
    "width",
    [1.3, pytest.param(1.8, marks=pytest.mark.slow), pytest.param(3.1, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("low", "high"), [(1e-9, 2.4e-9), (3e-3, 5e-3), (0.5, 40.0), (2e4, 9e7), (1e-14, 1e9)]
)
@pytest.mark.parametrize("logarithmic", [True, False])
def test_labels_do_not_touch_however_narrow_the_panel(
    width: float, low: float, high: float, logarithmic: bool
) -> None:
    with style.plain_style():
        figure, axes = style.panel_axes(width, 1.5, left=0.3)
        if logarithmic:
            axes.set_xscale("log")
        axes.plot([low, high], [low, high])
        style.dress(axes, log_x=logarithmic)
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    view = sorted(axes.get_xlim())
    shown = [
        t.get_window_extent()
        for t, at in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
        if view[0] <= at <= view[1] and t.get_text()
    ]
    assert len(shown) >= 2
    boxes = sorted(shown, key=lambda box: box.x0)
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_title_stays_on_linear_and_on_logarithmic_axes(logarithmic: bool) -> None:
    figure, axes = style.panel_axes(4.0, 3.0)
    axes.plot([1.0, 2.0, 3.0], [0.02, 0.5, 3.0])
    if logarithmic:
        axes.set_yscale("log")
    style.dress(axes, log_y=logarithmic)
    axes.set_title("y", loc="left")
    style.keep_title(axes)
    figure.draw_without_rendering()
    assert axes.get_title("left") == "y"
    assert height_of_title(axes) == 1.0


def height_of_title(axes: Axes) -> float:
    """Return the height of the title at the left over that of the panel."""
    title = next(t for t in axes.findobj(Text) if isinstance(t, Text) and t.get_text() == "y")
    return float(title.get_position()[1])
