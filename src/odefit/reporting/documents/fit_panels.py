"""The panels of a report's section on the fit: curves, inputs and doses, and the overlay."""

from __future__ import annotations

from collections.abc import Sequence

from odefit.common.errors import InputError
from odefit.reporting.curves import Curve
from odefit.reporting.documents.svg import Drawing, drawing
from odefit.reporting.figures import fit
from odefit.reporting.figures.predictions import MOST_RUNS, plot_overlay
from odefit.result_data import ResultData


def fit_panels(curves: Sequence[Curve]) -> list[tuple[str, list[Drawing]]]:
    """Return the panels of each experiment."""
    groups: dict[str, list[Drawing]] = {}
    for index, curve in enumerate(curves):
        title = f"{curve.observable} in experiment {curve.experiment}: data and fitted model"
        drawn = drawing(fit.panel_figure(curve), f"fit{index}", title)
        groups.setdefault(curve.experiment, []).append(drawn)
    return list(groups.items())


def driving_panels(result: ResultData, curves: Sequence[Curve]) -> dict[str, list[Drawing]]:
    """Return the panels of inputs and doses by experiment."""
    groups: dict[str, list[Drawing]] = {}
    for index, one in enumerate(fit.driving_of(result, curves)[: fit.MAX_PANELS]):
        title = f"{one.name} in experiment {one.experiment}: {one.kind}"
        drawn = drawing(fit.driving_figure(one), f"driving{index}", title)
        groups.setdefault(one.experiment, []).append(drawn)
    return groups


def overlay(result: ResultData) -> Drawing | None:
    """Return all experiments in one panel for each observable; None for one or too many."""
    count = len(result.problem.conditions)
    if result.uncertainty is None or result.best.nodes is not None or not 1 < count <= MOST_RUNS:
        return None
    try:
        figure = plot_overlay(result)
    except (InputError, RuntimeError):
        return None  # the panels of each experiment say why
    return drawing(figure, "overlay", "All experiments together")
