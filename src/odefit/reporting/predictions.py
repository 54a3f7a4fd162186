"""Predictions of a result as a table, and the sources of their bands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.outputs import evaluated
from odefit.assessment.predictions.bands import Band, BandSource
from odefit.assessment.predictions.extrapolation import Extrapolation, extrapolations
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.predictions.prediction_runs import Run, refused_on_nodes, runs_of
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of, shown
from odefit.common.option_checks import check_level
from odefit.expressions.expressions import TIME
from odefit.methods.running.control import Control
from odefit.problem.building.columns import as_table, numeric_column
from odefit.problem.calendars import as_times, date_column
from odefit.problem.condition import Condition
from odefit.problem.inputs.dates import moment
from odefit.problem.inputs.issues import Issues
from odefit.problem.problem import Problem
from odefit.reporting.curves import fine_times
from odefit.reporting.prediction_notes import (
    band_notes,
    beyond_the_data,
    extrapolation_notes,
    inputs_ended,
    without_noise,
)
from odefit.result_data import ResultData
from odefit.simulation import Failure, ForwardMap, SimulationError
from odefit.simulation.other_integrations import able_to_integrate

if TYPE_CHECKING:
    import pandas as pd

    from odefit.assessment.sampling.bootstrap import Bootstrap
    from odefit.assessment.sampling.posterior import Posterior

BandKind: TypeAlias = "str | Bootstrap | Posterior"
"""The basis of bands: a named method, or samples."""

KINDS = ("linear", "profile")
"""Methods for bands that need no samples."""


SolutionChoice = Literal["all", "mixture", "best"]
"""The solutions that bands cover where several fit: all, their mixture, or one."""

CHOICES: tuple[SolutionChoice, ...] = get_args(SolutionChoice)


def band_source(
    result: ResultData,
    by: BandKind,
    forward: ForwardMap | None = None,
    control: Control | None = None,
    solutions: str = "all",
) -> BandSource:
    """Return the source of the bands of a result's predictions.

    ``by`` is ``"linear"``, ``"profile"``, or the samples of a bootstrap or of a posterior;
    ``forward`` integrates the best solution, and ``control`` receives progress. Where several
    solutions fit, ``solutions`` is ``"all"``, ``"mixture"`` (by weight) or ``"best"``; samples
    always cover all of them. A method that does not apply to the result raises an
    :class:`InputError`, a result without a solution a ValueError.
    """
    # A fit with its report needs none of these, and they take time to import.
    from odefit.assessment.predictions.profile_bands import ProfileBands
    from odefit.assessment.predictions.sampled_bands import SampledBands
    from odefit.assessment.predictions.union_bands import Member, UnionBands
    from odefit.assessment.sampling.bootstrap import Bootstrap
    from odefit.assessment.sampling.posterior import Posterior

    vector = result.best.vector
    if solutions not in CHOICES:
        raise InputError(
            f"solutions: {shown(solutions)} is not known{one_of(str(solutions), CHOICES)}"
        )
    if forward is None:
        forward = able_to_integrate(result.problem, vector, result.best.nodes)
    if isinstance(by, Bootstrap | Posterior):
        if by.keys != result.problem.keys:
            raise InputError("the samples are of a problem with other unknowns")
        samples = by.sampled() if isinstance(by, Posterior) else by.vectors
        return SampledBands(forward, vector, samples)
    if by not in KINDS:
        raise InputError(
            f"by: {shown(by)} is not known{one_of(str(by), KINDS)}; or give the samples that "
            "result.bootstrap() or result.sample() returns"
        )
    several = [s for s in result.fitting if s.nodes is None]

    def source(x: Array, rise: float) -> BandSource:
        if by == "profile":
            return ProfileBands(forward, x, control, vector)
        return LinearBands(forward, x, rise)

    if len(several) < 2 or solutions == "best" or forward.nodes is not None:
        return source(vector, 0.0)
    mixed = solutions == "mixture"
    members = [
        Member(
            source(s.vector, 0.0 if mixed else s.deviance or 0.0),
            s.deviance or 0.0,
            s.weight or 0.0,
        )
        for s in several
    ]
    deviance = Deviance.of(forward, vector, evaluated(forward, vector))
    return UnionBands(members, deviance, mixed=mixed)


def prediction_table(
    result: ResultData,
    times: Any = None,
    level: float = 0.95,
    experiment: Any = None,
    by: BandKind = "linear",
    control: Control | None = None,
    solutions: str = "all",
) -> pd.DataFrame:
    """Return predictions with bands as a table, see :meth:`odefit.Result.predict`."""
    import pandas as pd

    check_level(level)
    several = isinstance(experiment, list | tuple)
    predictions = predicted(result, times, level, experiment, by, control, solutions=solutions)
    parts = []
    for run, bands in zip(predictions.runs, predictions.bands, strict=True):
        for band in bands:
            columns: dict[str, Any] = {"experiment": run.condition.name} if several else {}
            columns |= {
                "name": band.name,
                "kind": "observable" if band.observable else "state",
                "t": band.times,
                **date_column(predictions.problem, run.condition, band.times),
                "value": band.values,
                "std_error": band.errors,
                "ci_low": band.confidence[0],
                "ci_high": band.confidence[1],
                "pi_low": band.prediction[0],
                "pi_high": band.prediction[1],
            }
            parts.append(pd.DataFrame(columns))
    table = pd.concat(parts, ignore_index=True)
    names = [run.condition.name for run in predictions.runs]
    table.attrs["level"] = level
    table.attrs["experiment"] = names if several else names[0]
    table.attrs["notes"] = list(predictions.notes)
    table.attrs["extrapolations"] = [as_mapping(one) for one in predictions.extrapolations]
    return table


@dataclass(frozen=True, eq=False)
class Predictions:
    """The bands of some runs, with notes on them as sentences and as values."""

    problem: Problem
    runs: Sequence[Run]
    bands: Sequence[Sequence[Band]]
    extrapolations: Sequence[Extrapolation]
    notes: Sequence[str]


def predicted(
    result: ResultData,
    times: Any = None,
    level: float = 0.95,
    experiment: Any = None,
    by: BandKind = "linear",
    control: Control | None = None,
    observables: Collection[str] | None = None,
    *,
    dense: bool = False,
    solutions: str = "all",
) -> Predictions:
    """Return the bands of runs, in the forms that :func:`runs_of` takes.

    With `observables` given, only their bands are computed; `dense` bands are drawn as lines.
    Invalid arguments raise an InputError, a failed simulation a RuntimeError.
    """
    problem, runs = runs_of(result.problem, experiment, times)
    scenarios = [run for run in runs if run.scenario is not None]
    if scenarios and result.best.nodes is not None:
        raise refused_on_nodes("scenarios")
    source = band_source(replace(result, problem=problem), by, control=control, solutions=solutions)
    made: list[list[Band]] = []
    beyond: list[Extrapolation] = []
    notes: list[str] = []
    for run in runs:
        at = line_times(run) if dense else run.times
        bands = source.bands(run.condition, at, level, observables)
        if isinstance(bands, Failure):
            raise SimulationError(bands)
        made.append(bands)
        end = float(run.times.max(initial=-np.inf))
        run_notes: list[str] = []
        if run.scenario is None:
            run_notes += beyond_the_data(problem, run.condition, end)
        else:
            run_notes += inputs_ended(run.condition, end)
            outside = extrapolations(result.problem, run, result.best.vector)
            run_notes += extrapolation_notes(outside, problem.time_unit)
            beyond += outside
            run_notes += without_noise(run, bands)
        notes += [*run_notes, *band_notes(result, bands)]
    return Predictions(problem, runs, made, beyond, tuple(dict.fromkeys(notes)))


def as_mapping(extrapolation: Extrapolation) -> dict[str, Any]:
    """Return an extrapolation as plain values; None without any experiment that has one."""
    fitted = [None if np.isnan(end) else end for end in extrapolation.fitted]
    return {
        "experiment": extrapolation.run,
        "kind": extrapolation.kind.value,
        "name": extrapolation.name,
        "range": [extrapolation.low, extrapolation.high],
        "fitted": fitted,
    }


def line_times(run: Run) -> Array:
    """Return the times of a smooth line through a run's times, including both sides of events."""
    finite = run.times[np.isfinite(run.times)]
    grid = fine_times(run.condition, longest=float(finite.max(initial=run.condition.t0)))
    return np.union1d(grid[grid <= finite.max(initial=-np.inf)], finite)


def _validation_times(
    problem: Problem, experiment: str, column: Any, place: str, issues: Issues
) -> Array | None:
    """Return the times of validation data, given as numbers or, if the fit has dates, as dates."""
    if not any(moment(value) for value in column):
        return numeric_column(column, place, issues)
    try:
        return as_times(column, problem, problem.condition(experiment))
    except InputError as error:
        issues.error(place, str(error))
        return None


def validation_series(
    problem: Problem, validation: Any, experiment: str | None = None
) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Return times and values that were not fitted, by experiment and observable.

    They come as a table with the column ``t`` and columns of observables (a DataFrame, or a mapping
    of columns), or as a mapping of such tables by experiment. All mistakes are listed in one
    :class:`InputError`.
    """
    table = as_table(validation)
    by_name: Mapping[str, Any] = {}
    if table is not None and TIME in table:
        by_name = {problem.condition(experiment).name: validation}
    elif isinstance(validation, Mapping):
        by_name = validation
    issues = Issues()
    if not by_name:
        issues.error(
            "validation", "expected a table with the column t, or such tables by experiment"
        )
    by_observable: dict[tuple[str, str], tuple[Array, Array]] = {}
    for name, content in by_name.items():
        place = f'validation data of experiment "{problem.condition(name).name}"'
        columns = as_table(content)
        if columns is None or TIME not in columns:
            issues.error(place, "expected a table with the column t")
            continue
        observed = [o for o in problem.model.observables if o in columns]
        if not observed:
            names = ", ".join(problem.model.observables)
            issues.error(place, f"no column is an observable; expected at least one of: {names}")
        read = {c: numeric_column(columns[c], f"{place}, column {c}", issues) for c in observed}
        times = _validation_times(problem, name, columns[TIME], f"{place}, column t", issues)
        if times is not None:
            _refuse_other_inputs(problem.condition(name), columns, times, place, issues)
        for observable, values in read.items():
            if values is None or times is None:
                continue
            finite = np.isfinite(times) & np.isfinite(values)
            by_observable[name, observable] = times[finite], values[finite]
    issues.raise_errors()
    return by_observable


def _refuse_other_inputs(
    condition: Condition, columns: Mapping[str, Any], times: Array, place: str, issues: Issues
) -> None:
    """Refuse measurements under another input than that of the drawn trajectory."""
    for name, signal in condition.inputs.items():
        values = numeric_column(columns[name], place, issues) if name in columns else None
        if values is None or len(values) != len(times):
            continue
        expected = signal(times)
        size = float(np.abs(signal.values).max(initial=0.0))
        other = np.flatnonzero(np.abs(values - expected) > 1e-6 * size)
        if len(other):
            k = other[0]
            issues.error(
                f"{place}, column {name}",
                f"the input is {values[k]:g} at t = {times[k]:g}, but {expected[k]:g} in the "
                "experiment, whose trajectory is drawn; draw the table as a scenario: "
                "result.plot_predictions(odefit.Scenario(data=...))",
            )
