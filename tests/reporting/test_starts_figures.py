"""Figures of the ends of all starts: by how much they are worse, and where they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odefit.methods.estimate import Status
from odefit.problem.experiment import Experiment
from odefit.reporting.figures.fit import plot_fit
from odefit.reporting.figures.starts import plot_parallel, plot_starts, solution_numbers
from odefit.result.result import Result
from tests.reporting import examples


def with_ends(factors: list[float], costs: list[float]) -> Result:
    """A result whose starts end at multiples of the best solution, with these objectives."""
    result = examples.alpha_pinene()
    first = result.starts[0]
    starts = [
        replace(
            first,
            index=k,
            vector=factor * result.best.vector,
            objective=cost,
            cost=cost / 2,
            status=Status.CONVERGED,
        )
        for k, (factor, cost) in enumerate(zip(factors, costs, strict=True))
    ]
    return replace(result, starts=starts)


def test_the_waterfall_shows_differences_from_the_best_on_a_logarithmic_axis() -> None:
    best = examples.alpha_pinene().best.objective
    result = with_ends([1.0, 1.0, 3.0], [best, best, best + 50.0])
    (axes,) = plot_starts(result).axes
    assert axes.get_yscale() == "log"
    heights = np.asarray(axes.lines[0].get_ydata())
    np.testing.assert_allclose(heights, [1e-4 * best, 1e-4 * best, 50.0], rtol=1e-6)
    assert solution_numbers(result, result.starts) == [0, 0, None]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["best solution", "other ends"]


def test_parallel_coordinates_lead_from_the_least_to_the_largest_end() -> None:
    best = examples.alpha_pinene().best.objective
    figure = plot_parallel(with_ends([1.0, 2.0, 3.0], [best, best + 1.0, best + 2.0]))
    lines = [line for line in figure.axes[0].lines if len(np.asarray(line.get_xdata())) == 5]
    for line, height in zip(lines, (1.0, 0.5, 0.0), strict=True):  # the best is drawn last
        np.testing.assert_allclose(np.asarray(line.get_ydata()), height, atol=0.14)
    np.testing.assert_allclose(np.asarray(lines[-1].get_ydata()), 0.0)


def test_a_forecast_leads_beyond_the_data_and_says_so() -> None:
    told: list[str] = []
    result = examples.alpha_pinene()
    figure = plot_fit(result, observables=["y1"], until=60000.0, share_axes=True, say=told.append)
    (axes,) = figure.axes
    end = result.problem.conditions[0].end
    line = max((line for line in axes.lines), key=lambda line: len(np.asarray(line.get_xdata())))
    times, values = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert times[-1] == 60000.0 > end
    k1, k2 = result.best.vector[:2]
    assert values[-1] == pytest.approx(100.0 * np.exp(-(k1 + k2) * 60000.0), rel=1e-6)
    assert any(f"after t = {end:g}" in sentence for sentence in told)
    assert axes.get_ylabel() == "y1"


def test_panels_of_an_observable_share_their_axes() -> None:
    result = examples.many(3, 2)
    assert isinstance(result.problem.experiments[0], Experiment)
    axes = result.plot_fit(share_axes=True).axes
    assert len({a.get_xlim() for a in axes}) == 1
    assert len({a.get_ylim() for a in axes[::2]}) == 1
