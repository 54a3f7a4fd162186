"""Predictions of a result as a table, and the sources of their bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.outputs import evaluated
from odefit.assessment.prediction import Band, BandSource, LinearBands, NoBand
from odefit.assessment.profile_bands import ProfileBands
from odefit.assessment.sampled_bands import SampledBands
from odefit.assessment.sampling.bootstrap import Bootstrap
from odefit.assessment.sampling.posterior import Posterior
from odefit.assessment.union_bands import Member, UnionBands
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
from odefit.reporting.numbers import significant
from odefit.reporting.sentences import some
from odefit.result_data import ResultData
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.other_integrations import able_to_integrate

if TYPE_CHECKING:
    import pandas as pd

BandKind = str | Bootstrap | Posterior
"""The basis of bands: a way that has a name, or samples."""

KINDS = ("linear", "profile")
"""Ways to bands that need no samples."""


SolutionChoice = Literal["all", "mixture", "best"]
"""The solutions that bands are over where several fit: their union, their mixture, or one."""

CHOICES: tuple[SolutionChoice, ...] = get_args(SolutionChoice)


def band_source(
    result: ResultData,
    by: BandKind,
    forward: ForwardMap | None = None,
    control: Control | None = None,
    solutions: str = "all",
) -> BandSource:
    """Return what makes the bands of a result's predictions.

    ``by`` is ``"linear"``, ``"profile"``, or the samples of a bootstrap or of a posterior;
    ``forward`` integrates the best solution, and ``control`` hears of progress. Where several
    solutions fit, ``solutions`` are ``"all"`` of them, their ``"mixture"`` by weight, or the
    ``"best"`` alone; samples are of all anyway. What does not apply to the result raises an
    :class:`InputError`, a result without a solution ValueError.
    """
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
        samples = by.vectors
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
    experiment: str | None = None,
    by: BandKind = "linear",
    control: Control | None = None,
    solutions: str = "all",
) -> pd.DataFrame:
    """Return predictions with bands as a table, see :meth:`odefit.Result.predict`."""
    import pandas as pd

    check_level(level)
    condition = result.problem.condition(experiment)
    wanted = condition.times if times is None else _times(times, result.problem, condition)
    source = band_source(result, by, control=control, solutions=solutions)
    bands = source.bands(condition, wanted, level)
    if isinstance(bands, Failure):
        raise RuntimeError(f"the simulation fails: {bands}")  # noqa: TRY004 - no wrong type
    parts = [
        pd.DataFrame(
            {
                "name": band.name,
                "kind": "observable" if band.observable else "state",
                "t": band.times,
                **date_column(result.problem, condition, band.times),
                "value": band.values,
                "std_error": band.errors,
                "ci_low": band.confidence[0],
                "ci_high": band.confidence[1],
                "pi_low": band.prediction[0],
                "pi_high": band.prediction[1],
            }
        )
        for band in bands
    ]
    table = pd.concat(parts, ignore_index=True)
    table.attrs["level"] = level
    table.attrs["experiment"] = condition.name
    table.attrs["notes"] = [
        *beyond_the_data(result.problem, condition, float(wanted.max(initial=-np.inf))),
        *band_notes(result, bands),
    ]
    return table


def beyond_the_data(problem: Problem, condition: Condition, end: float) -> Iterator[str]:
    """Yield the parts of an experiment that have ended before `end`, the last time predicted."""
    for name, given in condition.inputs.items():
        if given.times[-1] < end:
            yield (
                f"the input {name} is known until t = {given.times[-1]:g}; its last value, "
                f"{given.values[-1]:g}, is used after"
            )
    if not condition.end < end:
        return
    repeated: dict[tuple[str, ...], list[float]] = {}
    for time, assign in condition.events:
        what = tuple(f"{name} becomes {value.text}" for name, value in assign.items())
        repeated.setdefault(what, []).append(time)
    for what, times in repeated.items():
        steps = np.diff(times)
        if len(steps) == 0 or not np.allclose(steps, steps[0], rtol=1e-9, atol=0.0):
            continue
        if times[-1] + steps[0] <= end:
            last = significant(times[-1])
            yield (
                f'experiment "{condition.name}": the event that is repeated every '
                f"{significant(steps[0])} ({', '.join(what)}) happens last at t = {last}, and not "
                f"again up to t = {significant(end)}; raise its 'until', or add its times, if it "
                "goes on"
            )


def band_notes(result: ResultData, bands: Sequence[Band]) -> Iterator[str]:
    """Yield what has to be known of bands: why some are missing, and what they stand for."""
    count = max((1 + len(band.others) for band in bands), default=1)
    if count > 1:
        weights = " and ".join(f"{s.weight or 0.0:.2g}" for s in result.fitting)
        over = f"mixtures with the weights {weights}" if bands[0].mixed else "over all of them"
        yield (
            f"{count} solutions fit the data within their noise: the bands are {over}, the values "
            "and standard errors are those of the best"
        )
    cut = [band.name for band in bands if band.cut]
    if cut:
        yield (
            f"the linear confidence bands of {some(cut)} reached below zero, where the equations "
            "let nothing be, and are cut there; by profiles or samples they are not linear"
        )
    reasons = {
        "band": [band.lacking for band in bands],
        "standard error": [band.errorless for band in bands],
    }
    for what, listed in reasons.items():
        without: dict[tuple[NoBand, tuple[str, ...]], list[str]] = {}
        for band, those in zip(bands, listed, strict=True):
            for reason in those:
                named = {NoBand.UNDETERMINED: band.undetermined, NoBand.AT_A_BOUND: band.at_bounds}
                without.setdefault((reason, named.get(reason, ())), []).append(band.name)
        for (reason, keys), names in without.items():
            remedy = what == "band"
            yield f"no {what} of {some(names)}{_why_no_band(result, reason, keys, remedy=remedy)}"
    wider: dict[tuple[str, ...], list[str]] = {}
    for band in bands:
        if band.widening:
            wider.setdefault(band.widening, []).append(band.name)
    for keys, names in wider.items():
        yield (
            f"the linear bands of {some(names)} are wider on one side for {some(keys)}, which "
            f"{'is' if len(keys) == 1 else 'are'} at a bound and may leave it"
        )
    unfinished = [f"{band.name} ({band.unfinished})" for band in bands if band.unfinished]
    if unfinished:
        yield (
            "the search for some ends of bands has not come to its end, and they may lie further "
            f"out: {some(unfinished)}"
        )
    for band in bands:
        if band.unfinished or not np.isinf(band.confidence).any():
            continue
        of = f" of {some(band.undetermined)}" if band.undetermined else ""
        yield f"the band of {band.name} has no end: neither the data nor bounds{of} limit it"
    if any(band.better for band in bands):
        yield (
            "a better fit than that of the result was found on the way, and the bands are those of "
            "it; fit again"
        )


def _why_no_band(
    result: ResultData, reason: NoBand, keys: tuple[str, ...], *, remedy: bool = True
) -> str:
    """Return the rest of a sentence that begins with what has no band or no error."""
    if reason is NoBand.UNBOUNDED:
        instead = "; take samples instead" if remedy else ""
        return f", where its derivatives by unknowns are infinite{instead}"
    if reason is NoBand.NOT_POSITIVE:
        return ", where it is not positive: its noise is on a logarithmic scale"
    if reason is NoBand.NO_FREEDOM:
        return (
            ": too few measurements are left to estimate the noise from; give its standard "
            "deviation in [noise]"
        )
    if reason is NoBand.AT_A_BOUND:
        are = "is" if len(keys) == 1 else "are"
        words = f", where it moves with {some(keys)}, which {are} at a bound and may leave it"
        return f"{words}; take the band by profile" if remedy else words
    if reason is NoBand.ELSEWHERE:
        return ": another solution that fits cannot be integrated there"
    if reason is NoBand.NOT_COMPUTED:
        return ": its search found no end, as integrations failed; take samples instead"
    found = () if result.uncertainty is None else result.uncertainty.directions
    told = [d.sentence for d in found if set(d.keys) & set(keys)]
    known = f" ({' '.join(told)})" if told else ""
    words = f", where it changes with {some(keys)}, which the data do not determine{known}"
    if not remedy:
        return words
    return (
        f"{words}; give the value of one as known, measure what tells it, or take the band by "
        "profile, which ends where bounds do"
    )


def _times(times: Any, problem: Problem, condition: Condition) -> Array:
    """Return the times of a prediction, increasing and none twice."""
    expected = "expected a number or a list of numbers, such as [0, 5, 10]"
    found = as_times(times, problem, condition)
    if found.ndim != 1 or not len(found) or np.isnan(found).any():
        raise InputError(f"times: {expected}, got {shown(times)}")
    return np.unique(found)


def _validation_times(
    problem: Problem, experiment: str, column: Any, place: str, issues: Issues
) -> Array | None:
    """Return the times of validation data, which may be dates where those of the fit are."""
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
    found: dict[tuple[str, str], tuple[Array, Array]] = {}
    for name, given in by_name.items():
        place = f'validation data of experiment "{problem.condition(name).name}"'
        columns = as_table(given)
        if columns is None or TIME not in columns:
            issues.error(place, "expected a table with the column t")
            continue
        observed = [o for o in problem.model.observables if o in columns]
        if not observed:
            names = ", ".join(problem.model.observables)
            issues.error(place, f"no column is an observable; expected at least one of: {names}")
        read = {c: numeric_column(columns[c], f"{place}, column {c}", issues) for c in observed}
        times = _validation_times(problem, name, columns[TIME], f"{place}, column t", issues)
        for observable, values in read.items():
            if values is None or times is None:
                continue
            kept = np.isfinite(times) & np.isfinite(values)
            found[name, observable] = times[kept], values[kept]
    issues.raise_errors()
    return found
