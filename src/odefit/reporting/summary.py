"""A result in a few numbers, and its residuals as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from odefit.common.arrays import Array
from odefit.common.packages import require
from odefit.problem.calendars import date_column
from odefit.problem.problem import Problem
from odefit.result_data import ResultData
from odefit.simulation import Failure, SimulationError, residual_table
from odefit.simulation.nodes import Nodes
from odefit.simulation.simulations import Residuals

if TYPE_CHECKING:
    import pandas as pd


def summary_series(result: ResultData) -> pd.Series:
    """Return the numbers by which models are compared, by name.

    They are -2 log L (or the sum of squares), the reduced chi-square for known noise, AIC, AICc,
    BIC, and the numbers of parameters, degrees of freedom and measurements.
    """
    require("pandas")
    import pandas as pd

    criteria, goodness = result.criteria, result.goodness
    first = "sum of squares" if result.log_likelihood is None else "-2 log L"
    plain = result.log_likelihood is None
    numbers = {
        first: result.best.objective if plain else criteria.deviance,
        "reduced chi-square": math.nan if goodness is None else goodness.reduced_chi_square,
        "AIC": criteria.aic,
        "AICc": criteria.aicc,
        "BIC": criteria.bic,
        "parameters": criteria.parameters,
        "degrees of freedom": criteria.measurements - criteria.parameters + plain,
        "measurements": criteria.measurements,
    }
    return pd.Series(numbers, name=result.problem.name, dtype=float)


def residual_frame(result: ResultData) -> pd.DataFrame:
    """Return a row for each measurement.

    The columns are ``experiment``, ``observable``, ``t``, ``measured``, ``predicted``, ``residual``
    (measured minus predicted, natural units), ``weighted`` and ``sd``. ``weighted`` is the residual
    in standard deviations, on the scale of the noise model, and NaN where these are zero. ``sd`` is
    the standard deviation on that scale, estimated from the residuals for plain least squares. A
    simulation that fails raises a RuntimeError.
    """
    plain = result.log_likelihood is None and result.uncertainty is not None
    scale = math.sqrt(result.uncertainty.variance) if plain and result.uncertainty else 1.0
    return residuals_at(result.problem, result.best.vector, result.best.nodes, scale)


def residuals_at(
    problem: Problem, vector: Array, nodes: Nodes | None = None, scale: float = 1.0
) -> pd.DataFrame:
    """Return the table of :func:`residual_frame` at given unknowns, shape (n,).

    ``scale`` is the standard deviation for plain least squares, if known.
    """
    require("pandas")
    import pandas as pd

    table = residual_table(problem, vector, nodes)
    if isinstance(table, Failure):
        raise SimulationError(table)
    parts = [
        pd.DataFrame(
            {
                "experiment": e.experiment,
                "observable": e.observable,
                "t": e.times,
                **date_column(problem, problem.condition(e.experiment), e.times),
                "measured": e.measured,
                "predicted": e.predicted,
                "residual": e.measured - e.predicted,
                "weighted": _weighted(e, scale),
                "sd": e.sds * scale,
            }
        )
        for e in table
    ]
    return pd.concat(parts, ignore_index=True)


def _weighted(residuals: Residuals, scale: float) -> Array:
    """Return residuals over their standard deviations; NaN where the fit is exact.

    There the standard deviation estimated from the residuals is zero as well.
    """
    if not scale > 0.0:
        return np.full(len(residuals.measured), np.nan)
    # The optimiser uses the opposite sign; innovations have their own signs.
    return -residuals.standardized / scale
