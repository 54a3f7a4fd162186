"""New measurements against their predictions, and their residuals against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from odefit.assessment.predictions.validation import ValidatedSeries, ValidationData
from odefit.common.arrays import Array
from odefit.reporting.figures import style
from odefit.reporting.figures.canvas import SCREEN, Canvas
from odefit.reporting.figures.fit import PANEL_SIZE


def plot_validation(found: ValidationData, canvas: Canvas = SCREEN) -> Figure:
    """Draw a parity panel and a residual panel for each observable, one colour a run.

    Bars are prediction bands; grey lines mark equality and two standard deviations.
    """
    observables = list(dict.fromkeys(one.observable for one in found.series))
    runs = list(dict.fromkeys(one.experiment for one in found.series))
    with style.plain_style():
        rows = canvas.panels(2 * len(observables), 2, PANEL_SIZE, more=0.3)
        panels = [axes for row in rows for axes in row]
        for k, observable in enumerate(observables):
            parity, residuals = panels[2 * k], panels[2 * k + 1]
            for one in (s for s in found.series if s.observable == observable):
                colour = style.SERIES[runs.index(one.experiment) % len(style.SERIES)]
                name = style.plain(style.shorten(one.experiment))
                known = np.isfinite(one.low)
                parity.vlines(
                    one.predicted[known], one.low[known], one.high[known], color=colour, alpha=0.35
                )
                points: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 3.8}
                points |= {"color": colour, "markerfacecolor": "none"}
                parity.plot(one.predicted, one.measured, label=name, **points)
                residuals.plot(one.times, one.residuals, **points)
            ends = _range([s for s in found.series if s.observable == observable])
            parity.plot(ends, ends, color=style.MUTED, linewidth=0.8, zorder=1)
            for height in (-2.0, 0.0, 2.0):
                dashes = "-" if height == 0 else (0, (3, 3))
                residuals.axhline(height, color=style.MUTED, linewidth=0.8, linestyle=dashes)
            parity.set_title(style.plain(observable), loc="left", fontsize=9.5, parse_math=False)
            parity.set_xlabel("predicted")
            parity.set_ylabel("measured")
            residuals.set_xlabel("time t")
            residuals.set_ylabel("residual / sd")
            style.dress(parity)
            style.dress(residuals)
        panels[0].legend(frameon=False, fontsize=style.SMALL_FONT)
        return canvas.finish(panels[0])


def _range(series: Sequence[ValidatedSeries]) -> Array:
    values = np.concatenate([v for s in series for v in (s.measured, s.predicted)])
    return np.array([values.min(), values.max()])
