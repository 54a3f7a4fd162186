"""Figures of the last fit of a page, or of the result that it began with, as SVG."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from odefit.common.errors import InputError, one_of
from odefit.common.packages import require
from odefit.result.result import Result

FORECAST = 0.5
"""Length of a forecast beyond the last measurement, relative to the longest experiment."""


def forecast(result: Result) -> Any:
    """Return the figure of a fit that extends beyond the data."""
    ends = [(c.t0, c.end) for c in result.problem.conditions]
    longest = max(end - start for start, end in ends)
    return result.plot_fit(until=max(end for _, end in ends) + FORECAST * longest, inputs=True)


FIGURES: dict[str, Callable[[Result], Any]] = {
    "overlay": lambda result: result.plot_fit(overlay=True),
    "ensemble": lambda result: result.plot_fit(band="linear", inputs=True),
    "forecast": forecast,
    "starts": lambda result: result.plot_starts(),
    "parallel": lambda result: result.plot_parallel(),
    "diagnostics": lambda result: result.plot_diagnostics("all"),
}
"""The figures by name; the page has their titles."""


def figure_svg(result: Result | None, kind: str) -> str:
    """Return a figure as SVG.

    Raises InputError without a result, for an unknown kind, and for a figure that cannot be drawn.
    """
    if result is None or not result.solutions:
        raise InputError("there is no fit yet: fit first, or start with --result FILE.json")
    if kind not in FIGURES:
        raise InputError(f"figure: {kind!r} is not known{one_of(kind, FIGURES)}")
    require("matplotlib")
    from odefit.reporting.figures.style import plain_style

    buffer = io.BytesIO()
    with plain_style():
        try:
            FIGURES[kind](result).savefig(buffer, format="svg")
        except RuntimeError as error:
            raise InputError(str(error)) from error
    return buffer.getvalue().decode()
