"""Sentences on predictions: what lies beyond the data, and why bands are missing or wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from odefit.assessment.predictions.bands import Band, NoBand
from odefit.assessment.predictions.extrapolation import Extrapolation, Kind
from odefit.assessment.predictions.prediction_runs import Run
from odefit.common.errors import some
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.reporting.numbers import significant
from odefit.result_data import ResultData


def extrapolation_notes(extrapolations: Sequence[Extrapolation], time_unit: str) -> Iterator[str]:
    """Yield a sentence for each quantity beyond its fitted range."""
    unit = f" {time_unit}" if time_unit else ""
    for one in extrapolations:
        low, high = one.fitted
        fitted = significant(low) if low == high else f"{significant(low)} to {significant(high)}"
        range_ = significant(one.high)
        if one.low != one.high:
            range_ = f"{significant(one.low)} to {significant(one.high)}"
        where = f'scenario "{one.run}" extrapolates: '
        if one.kind is Kind.TIME:
            yield (
                f"{where}it reaches {significant(one.high)}{unit} after its beginning, the "
                f"measurements {significant(high)}{unit}"
            )
        elif one.kind is Kind.DOSE and np.isnan(low):
            yield f"{where}it has doses of {one.name} ({range_}), the fitted experiments have none"
        elif one.kind is Kind.DOSE:
            yield f"{where}doses of {one.name} up to {significant(one.high)}, fitted {fitted}"
        else:
            name = "" if one.kind is Kind.CONSTANT else f"{one.kind.value} of "
            name = "input " if one.kind is Kind.INPUT else name
            yield f"{where}{name}{one.name} is {range_}, fitted {fitted}"


def without_noise(run: Run, bands: Sequence[Band]) -> Iterator[str]:
    """Yield the observables without prediction band, whose noise is known only at the data."""
    names = [
        band.name
        for band in bands
        if band.observable and band.name in run.like.series and np.isnan(band.prediction).all()
        if run.like.series[band.name].sds is not None
    ]
    if names:
        yield (
            f'scenario "{run.condition.name}": no prediction band of {some(names)}, whose standard '
            "deviations are in the data and differ; give the noise of new measurements in [noise]"
        )


def inputs_ended(condition: Condition, end: float) -> Iterator[str]:
    """Yield the inputs of a condition that are known only up to a time before `end`."""
    for name, signal in condition.inputs.items():
        if len(signal.times) > 1 and signal.times[-1] < end:
            yield (
                f"the input {name} is known until t = {signal.times[-1]:g}; its last value, "
                f"{signal.values[-1]:g}, is used after"
            )


def beyond_the_data(problem: Problem, condition: Condition, end: float) -> Iterator[str]:
    """Yield the parts of an experiment that end before `end`, the last predicted time."""
    yield from inputs_ended(condition, end)
    if not condition.end < end:
        return
    repeated: dict[tuple[str, ...], list[float]] = {}
    for time, assign in condition.events:
        changes = tuple(f"{name} becomes {value.text}" for name, value in assign.items())
        repeated.setdefault(changes, []).append(time)
    for changes, times in repeated.items():
        steps = np.diff(times)
        if len(steps) == 0 or not np.allclose(steps, steps[0], rtol=1e-9, atol=0.0):
            continue
        if times[-1] + steps[0] <= end:
            last = significant(times[-1])
            yield (
                f'experiment "{condition.name}": the event that is repeated every '
                f"{significant(steps[0])} ({', '.join(changes)}) happens last at t = {last}, "
                f"and not again up to t = {significant(end)}; raise its 'until', or add its "
                "times, if it continues"
            )


def band_notes(result: ResultData, bands: Sequence[Band]) -> Iterator[str]:
    """Yield notes on bands: why some are missing, and what they cover."""
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
            f"the linear confidence bands of {some(cut)} reached below zero, which the equations "
            "exclude, and are cut there; bands by profiles or samples have no such ends"
        )
    reasons = {
        "band": [band.lacking for band in bands],
        "standard error": [band.errorless for band in bands],
    }
    for subject, listed in reasons.items():
        without: dict[tuple[NoBand, tuple[str, ...]], list[str]] = {}
        for band, band_reasons in zip(bands, listed, strict=True):
            for reason in band_reasons:
                named = {NoBand.UNDETERMINED: band.undetermined}
                named |= dict.fromkeys((NoBand.AT_A_BOUND, NoBand.BENT), band.at_bounds)
                without.setdefault((reason, named.get(reason, ())), []).append(band.name)
        for (reason, keys), names in without.items():
            remedy = subject == "band"
            yield f"no {subject} of {some(names)}{why_no_band(result, reason, keys, remedy=remedy)}"
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
            "the search for some ends of bands was not finished, and they may lie further "
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


def why_no_band(
    result: ResultData, reason: NoBand, keys: tuple[str, ...], *, remedy: bool = True
) -> str:
    """Return the end of a sentence that begins with quantities without band or error."""
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
    if reason is NoBand.BENT:
        leave = "leaves its bound" if len(keys) == 1 else "leave their bounds"
        words = f": values far beyond a linear one fit as well once {some(keys)} {leave}"
        return f"{words}; take the band by profile" if remedy else words
    if reason is NoBand.NOT_LINEAR:
        words = ": values far beyond a linear one fit as well, as the model bends within it"
        return f"{words}; take the band by profile" if remedy else words
    if reason is NoBand.ELSEWHERE:
        return ": another solution that fits cannot be integrated there"
    if reason is NoBand.NOT_COMPUTED:
        return ": its search found no end, as integrations failed; take samples instead"
    directions = () if result.uncertainty is None else result.uncertainty.directions
    sentences = [d.sentence for d in directions if set(d.keys) & set(keys)]
    known = f" ({' '.join(sentences)})" if sentences else ""
    words = f", where it changes with {some(keys)}, which the data do not determine{known}"
    if not remedy:
        return words
    return (
        f"{words}; give the value of one as known, measure something that determines it, or take "
        "the band by profile, which ends where bounds do"
    )
