"""Quantities over time with their intervals as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.assessment.functionals.over_time import OverTime, over_time
from odefit.assessment.predictions.bands import Interval, NoBand
from odefit.assessment.predictions.extrapolation import Extrapolation, extrapolations
from odefit.assessment.predictions.prediction_runs import Run, refused_on_nodes, runs_of
from odefit.assessment.predictions.quantity_intervals import (
    linear_intervals,
    profiled_intervals,
    sampled_intervals,
)
from odefit.assessment.sampling.bootstrap import Bootstrap
from odefit.assessment.sampling.posterior import Posterior
from odefit.common.errors import InputError
from odefit.common.option_checks import check_level
from odefit.methods.running.control import Control
from odefit.reporting.prediction_notes import extrapolation_notes, why_no_band
from odefit.reporting.predictions import BandKind, as_mapping, band_source
from odefit.result_data import ResultData
from odefit.simulation.other_integrations import able_to_integrate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Quantities:
    """Quantities of some runs with their intervals, and sentences on missing values."""

    quantities: Sequence[OverTime]
    intervals: Sequence[Interval]
    notes: Sequence[str]
    extrapolations: Sequence[Extrapolation]


def quantity_table(
    result: ResultData,
    texts: Sequence[str] | str,
    experiment: Any = None,
    times: Any = None,
    level: float = 0.95,
    by: BandKind = "linear",
    control: Control | None = None,
) -> pd.DataFrame:
    """Return quantities as a table, see :meth:`odefit.Result.quantities`."""
    import pandas as pd

    answer = quantities_of(result, texts, experiment, times, level, by, control)
    table = pd.DataFrame(
        [
            {
                "experiment": quantity.experiment,
                "quantity": quantity.key,
                "value": one.value,
                "std_error": one.error,
                "ci_low": one.low,
                "ci_high": one.high,
            }
            for quantity, one in zip(answer.quantities, answer.intervals, strict=True)
        ]
    )
    table.attrs["level"] = level
    table.attrs["notes"] = list(answer.notes)
    table.attrs["extrapolations"] = [as_mapping(one) for one in answer.extrapolations]
    return table


def quantities_of(
    result: ResultData,
    texts: Sequence[str] | str,
    experiment: Any = None,
    times: Any = None,
    level: float = 0.95,
    by: BandKind = "linear",
    control: Control | None = None,
) -> Quantities:
    """Return quantities of some runs with their intervals.

    Raises InputError with every mistake in the texts, or for an invalid argument.
    """
    check_level(level)
    problem, runs = runs_of(result.problem, experiment, times)
    best = result.best
    if best.nodes is not None:
        raise refused_on_nodes("quantities over time")
    quantities = _read(problem, runs, [texts] if isinstance(texts, str) else texts)
    forward = able_to_integrate(problem, best.vector)
    fitting = [(s.vector, s.deviance or 0.0) for s in result.fitting if s.nodes is None]
    solutions = fitting if len(fitting) > 1 else [(best.vector, 0.0)]
    if isinstance(by, Bootstrap | Posterior):
        band_source(result, by, forward)  # this refuses samples of another problem
        intervals = sampled_intervals(forward, best.vector, quantities, level, by.vectors)
    elif by == "profile":
        keys = [f"{q.key} in [{q.experiment}]" for q in quantities]
        named = [replace(q, key=key) for q, key in zip(quantities, keys, strict=True)]
        intervals = profiled_intervals(forward, solutions, named, level, control or Control())
    else:
        band_source(result, by, forward)  # this refuses other methods
        intervals = linear_intervals(forward, solutions, quantities, level)
    beyond = [
        one
        for run in runs
        if run.scenario is not None
        for one in extrapolations(result.problem, run, best.vector)
    ]
    notes = [
        *extrapolation_notes(beyond, problem.time_unit),
        *_notes(result, quantities, intervals),
    ]
    return Quantities(quantities, intervals, notes, beyond)


def _read(problem: Any, runs: Sequence[Run], texts: Sequence[str]) -> list[OverTime]:
    """Return the quantities of all runs."""
    mistakes: list[str] = []
    quantities = []
    for run in runs:
        finite = run.times[np.isfinite(run.times)]
        end = float(finite.max(initial=run.condition.t0))
        for text in texts:
            try:
                window = run.condition.t0, end
                quantities.append(over_time(problem, text, run.condition.name, window))
            except InputError as error:
                mistakes += error.messages
    if not texts:
        mistakes.append("there are no quantities; give, for example, 'AUC = integral(C)'")
    if mistakes:
        raise InputError(list(dict.fromkeys(mistakes)))
    return quantities


def _notes(
    result: ResultData, quantities: Sequence[OverTime], intervals: Sequence[Interval]
) -> Iterator[str]:
    """Yield reasons for missing values and intervals, and the number of solutions covered."""
    count = max((one.solutions for one in intervals), default=1)
    if count > 1:
        yield (
            f"{count} solutions fit the data within their noise: intervals are over all of them, "
            "values and standard errors are those of the best"
        )
    for quantity, one in zip(quantities, intervals, strict=True):
        where = f'{quantity.key} of "{quantity.experiment}"'
        if not math.isfinite(one.value):
            never = any(part.kind == "first" for _, part in quantity.parts)
            yield (
                f"{where} has no value: the condition does not become true in the window"
                if never
                else f"{where} has no value: the simulation fails, or the expression is not defined"
            )
        elif math.isinf(one.low) or math.isinf(one.high):
            yield f"the interval of {where} has no end: neither the data nor bounds limit it"
        for subject, reasons in (("interval", one.lacking), ("standard error", one.errorless)):
            for reason in reasons:
                bounds = NoBand.AT_A_BOUND, NoBand.BENT
                keys = one.at_bounds if reason in bounds else one.undetermined
                remedy = subject == "interval"
                yield f"no {subject} of {where}{why_no_band(result, reason, keys, remedy=remedy)}"
