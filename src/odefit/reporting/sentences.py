"""A result in sentences, which never claim more than was shown."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from odefit.assessment.discretised import rounded_down
from odefit.assessment.parts import Trouble
from odefit.common.errors import counted, some
from odefit.methods.estimate import Route, Start, Status
from odefit.methods.fit_quality.limits import SIGNIFICANCE
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.reporting.numbers import percent, significant
from odefit.reporting.profiles import refutation_sentence, region_sentence
from odefit.result_data import ResultData
from odefit.result_data.notices import NoticeKind

Tone = Literal["good", "caution", "bad"]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Verdict:
    """The result in a headline and a few sentences.

    The tone is good for a local optimum at which the data determine every unknown, bad if there is
    no usable answer, and otherwise caution.
    """

    tone: Tone
    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One part of the assessment: its title, the finding in words, and whether it was shown."""

    title: str
    sentence: str
    shown: bool


def verdict(result: ResultData) -> Verdict:
    """Return the main message for the reader."""
    if not result.solutions:
        message = sentence(result.message)
        return Verdict("bad", "No solution was found.", (message,) if message else ())
    local = result.assessment.local
    optimal = local is not None and local.optimal
    ended = result.status
    sentences = [_value_sentence(result)]
    if ended is Status.CONVERGED and optimal:
        headline = "The fit converged to a local optimum."
    elif ended is Status.CONVERGED and local is None:
        headline = "The fit converged; whether this is a local optimum was not checked."
    elif ended is Status.CONVERGED:
        headline = "The fit ended, but its answer was not shown to be a local optimum."
    elif ended is Status.TIME_LIMIT:
        headline = "The time limit was reached; this is the best answer so far."
    elif ended is Status.INTERRUPTED:
        headline = "The fit was interrupted; this is the best answer so far."
    elif ended is Status.FAILED:
        headline = "The fit failed; this is the best answer that it had."
    elif optimal and _unfit(result):
        headline = "A local optimum was found, but no acceptable fit."
    elif optimal:
        headline = "A local optimum was found, without evidence that it is the best."
    else:
        headline = "The fit did not converge; this is the best answer that it had."
    if ended not in (Status.CONVERGED, Status.NOT_CONVERGED) and optimal:
        sentences.append("It is a local optimum.")
    messages = [sentence(result.message)] if result.message else []
    if messages and result.routes:
        sentences = [*messages, *sentences]  # disagreement between routes comes first
    elif ended is not Status.CONVERGED:
        sentences += messages
    sentences.append(_elsewhere(result))
    determined, words = _determined(result)
    sentences.append(words)
    bad = lack_of_fit(result)
    above = [text for text in (bad, several_answers(result)) if text]
    sentences = [*above, *sentences]
    tone: Tone = "caution"
    if ended is Status.FAILED:
        tone = "bad"
    elif ended is Status.CONVERGED and optimal and determined and not above:
        tone = "good"
    return Verdict(tone, headline, tuple(sentences))


def several_answers(result: ResultData) -> str:
    """Return the sentence above the estimates on other solutions that fit, if there are any."""
    kinds = {
        NoticeKind.EQUAL_SOLUTIONS: "fit equally well",
        NoticeKind.NEAR_SOLUTIONS: "fit the data within their noise",
    }
    for notice in result.notices:
        if notice.kind in kinds:
            count = round(notice.numbers["count"])
            names = ", ".join(notice.names)
            return f"{count} solutions {kinds[notice.kind]}: they differ in {names}."
    return ""


def lack_of_fit(result: ResultData) -> str:
    """Return the sentence above the estimates on residuals that do not look like noise.

    It is empty if the residuals look like noise, or if the message reports it already.
    """
    goodness = result.goodness
    return "" if goodness is None or not goodness.bad or _unfit(result) else goodness.sentence


MIN_CORRELATED = 20
"""Smallest number of values that allow a correlation time to be estimated."""


def correlated_noise_sentence(result: ResultData) -> str:
    """Return the sentence on intervals for correlated residuals.

    It is empty without a pattern, and if the noise model is correlated, of counts, or robust.
    """
    goodness, noise = result.goodness, result.problem.noise
    if goodness is None or not goodness.bad:
        return ""
    names = {
        c.observable
        for c in goodness.checks
        if c.kind == "pattern" and c.p < SIGNIFICANCE and c.count >= MIN_CORRELATED
    }
    plain = [
        name
        for name in result.problem.model.observables
        if name in names
        and (settings := noise.get(name, Noise())).gaussian
        and settings.correlation is None
        and settings.lower_limit is settings.upper_limit is None
    ]
    if not plain:
        return ""
    settings = noise.get(plain[0], Noise())
    sizes = {"relative": settings.relative, "sd": settings.sd}
    size = next((f"{k} = {v:g}" for k, v in sizes.items() if isinstance(v, float)), "")
    size = size or (
        'sd = "estimate"' if settings.sd in (None, "estimate") else f'sd = "{settings.sd}"'
    )
    here = "" if result.uncertainty is None else result.uncertainty.treatment
    same = (
        ""
        if here == "sandwich"
        else (
            " At these estimates they come from --intervals sandwich, in Python "
            'intervals="sandwich".'
        )
    )
    return (
        f"If the model is right and the noise of {some(plain)} is correlated in time, intervals "
        f'that hold come from {plain[0]} = {{ {size}, correlation = "ou" }} in [noise].{same}'
    )


def _unfit(result: ResultData) -> bool:
    """Return whether the status says that the answer does not describe the data."""
    return any(reason.kind is NoticeKind.DOES_NOT_FIT for reason in result.reasons)


def remarks(result: ResultData) -> list[str]:
    """Return the warnings, without that on the residuals if it appears above the estimates."""
    above = bool(lack_of_fit(result))
    pairs = zip(result.notices, result.warnings, strict=True)
    return [text for notice, text in pairs if not (above and notice.kind is NoticeKind.NOT_NOISE)]


def sentence(text: str) -> str:
    """Return `text` with a capital letter and a full stop; a name with digits keeps its case."""
    stripped = text.strip()
    if not stripped:
        return ""
    first = stripped.split()[0]
    if first.isalpha() and first.islower():
        stripped = stripped[0].upper() + stripped[1:]
    return stripped if stripped[-1] in ".!?" else f"{stripped}."


def _value_sentence(result: ResultData) -> str:
    """Return a sentence with the number that measures the fit."""
    value = significant(result.value_of(result.best))
    if result.log_likelihood is None:
        return f"The objective ({objective_name(result.problem)}) is {value}."
    return f"{result.measure} is {value}."


def _elsewhere(result: ResultData) -> str:
    """Return a sentence on other solutions."""
    bounds, complete = result.assessment.bounds, result.assessment.complete
    if bounds is not None:
        lower = rounded_down(bounds.lower)
        gap = "closed" if bounds.closed else f"gap {percent(bounds.gap)}"
        return f"No answer within the bounds is better than {lower} ({gap}; {bounds.scope})."
    if complete is not None and complete.possible == 1:
        return "The equations admit no other values with the same outputs."
    if complete is not None:
        count = f"{complete.found} of {complete.possible} structurally possible solutions"
        return f"{count} {'was' if complete.found == 1 else 'were'} found."
    return "Whether a better one exists elsewhere is not proved."


def _determined(result: ResultData) -> tuple[bool, str]:
    """Return whether the data determine every unknown, and the finding in words."""
    uncertainty = result.uncertainty
    if uncertainty is None:
        return False, "How far the data determine the unknowns was not computed."
    count = len(uncertainty.keys)
    trouble = {k: v for k, v in uncertainty.trouble.items() if v is not Trouble.FIXED}
    lost = [k for k, v in trouble.items() if v.lost]
    weak = [k for k, v in trouble.items() if v is Trouble.WEAKLY_DETERMINED]
    bound = [k for k, v in trouble.items() if v is Trouble.AT_A_BOUND]
    tied = [k for k, v in trouble.items() if v is Trouble.TIED_TO_A_BOUND]
    crooked = [k for k, v in trouble.items() if v is Trouble.NOT_LINEAR]
    parts = []
    if lost:
        are = "is" if len(lost) == 1 else "are"
        parts.append(
            f"{len(lost)} of {count} unknowns {are} not determined by the data: {some(lost)}."
        )
    if weak:
        parts.append(f"Weakly determined: {some(weak)}.")
    if bound:
        parts.append(f"At a bound: {some(bound)}.")
    if tied:
        parts.append(f"Determined only together with these, without an interval: {some(tied)}.")
    good = not parts
    if good:
        them = "the one unknown" if count == 1 else f"all {count} unknowns"
        if result.ambiguous:
            good = False
            parts.append(f"Near this solution the data determine {them}, but others fit as well.")
        else:
            parts.append(f"The data determine {them}.")
    exact = [k for k, v in trouble.items() if v is Trouble.NO_NOISE]
    if exact:
        which = "" if len(trouble) == count else f" that determine {some(exact)}"
        parts.append(
            f"The data{which} are reproduced to rounding: no noise is left from which errors could "
            "be estimated."
        )
    if crooked:
        one = len(crooked) == 1
        parts.append(
            f"The linear interval{'' if one else 's'} of {some(crooked)} cannot be trusted: "
            f"profile {'it' if one else 'them'}."
        )
    return good, " ".join(parts)


def findings(result: ResultData) -> Iterator[Finding]:
    """Yield the assessment part by part, without parts that were not requested or not found."""
    local, complete = result.assessment.local, result.assessment.complete
    bounds, uncertainty = result.assessment.bounds, result.uncertainty
    if local is not None:
        yield Finding("Local optimality", local.sentence, local.optimal)
    else:
        yield Finding("Local optimality", "Not checked.", False)
    if complete is not None:
        yield Finding("Completeness", complete.sentence, complete.found >= complete.possible)
    if bounds is not None:
        yield Finding("Certificate", bounds.sentence, bounds.closed)
    region, refutation = result.assessment.region, result.assessment.refutation
    if region is not None:
        yield Finding("Confidence region", region_sentence(region), region.complete)
    if refutation is not None:
        yield Finding("Model", refutation_sentence(refutation), False)
    discretisation = result.assessment.discretisation
    if discretisation is not None:
        yield Finding("Discretisation", discretisation.sentence, discretisation.fine)
    continuity = result.assessment.continuity
    if continuity is not None:
        yield Finding("Continuity", continuity.sentence, continuity.fine)
    if result.goodness is not None and not lack_of_fit(result):
        yield Finding("Goodness of fit", result.goodness.sentence, not result.goodness.bad)
    remedy = correlated_noise_sentence(result)
    if remedy:
        yield Finding("Correlated residuals", remedy, False)
    if uncertainty is not None:
        full = uncertainty.rank == len(uncertainty.keys)
        yield Finding("Determined by the data", uncertainty.sentence, full)
    else:
        yield Finding("Determined by the data", "Not computed.", False)


@dataclass(frozen=True)
class Ending:
    """Starts with the same ending, and the message of the first of them."""

    status: str
    message: str
    count: int


def endings(starts: Sequence[Start]) -> list[Ending]:
    """Group starts by their ending, the most frequent first.

    Messages that differ only in numbers (times, values) count as one.
    """
    groups: Counter[tuple[Status, str]] = Counter()
    example: dict[tuple[Status, str], str] = {}
    for start in starts:
        group = start.status, _NUMBER.sub("#", start.message)
        groups[group] += 1
        example.setdefault(group, start.message)
    return [Ending(group[0].value, example[group], count) for group, count in groups.most_common()]


def taken_routes(result: ResultData) -> list[Route]:
    """Return the routes that had a start, if several, for comparison; otherwise nothing."""
    taken = [r for r in result.routes if r.starts]
    return taken if len(taken) > 1 else []


def starts_sentence(result: ResultData) -> str:
    """Return how the starts ended, e.g. ``"20 starts: 17 converged, 3 failed."``.

    It also notes if the answer is not a local optimum although starts converged.
    """
    starts, local = result.starts, result.assessment.local
    if not starts:
        return "No starts are recorded."
    counts = Counter(start.status.value for start in starts)
    parts = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    text = f"{counted(len(starts), 'start')}: {parts}."
    if len(starts) == 1:
        text = f"1 start: {starts[0].status.value}."
    ended = any(start.status is Status.CONVERGED for start in starts)
    if ended and local is not None and not local.optimal:
        text += " At full accuracy the best end is not a local optimum."
    return text


def weighted(problem: Problem) -> bool:
    """Tell whether residuals are measured in standard deviations."""
    return any(n.known for n in problem.noise.values()) or any(
        s.sds is not None for c in problem.conditions for s in c.series.values()
    )


def objective_name(problem: Problem) -> str:
    """Return the name of the objective."""
    return "weighted sum of squared residuals" if weighted(problem) else "sum of squared residuals"


def squares_say_nothing(problem: Problem) -> bool:
    """Return whether all noise is estimated by its own standard deviations.

    Then the weighted squares of the residuals add up to the number of values at every optimum.
    """
    measured = [(name, s) for c in problem.conditions for name, s in c.series.items()]
    limits = any(
        n.lower_limit is not None or n.upper_limit is not None for n in problem.noise.values()
    )
    noise = [problem.noise.get(name, Noise()) for name, _ in measured]
    plain = all(n.sd == "estimate" and n.gaussian for n in noise)
    with_sds = any(s.sds is not None or s.censored is not None for _, s in measured)
    return bool(measured) and plain and not with_sds and not limits and not problem.priors


def data_sentence(problem: Problem) -> str:
    """Return the number of measurements, e.g. ``"40 measured values in 1 experiment ..."``."""
    observed = [
        o for o in problem.model.observables if any(o in c.series for c in problem.conditions)
    ]
    times = [float(t) for c in problem.conditions for t in c.times]
    infinite = " and at infinity" if any(map(math.isinf, times)) else ""
    times = [t for t in times if not math.isinf(t)]
    unit = f" {problem.time_unit}" if problem.time_unit else ""
    span = (
        f", t = {significant(min(times))} to {significant(max(times))}{unit}"
        if times and all(map(math.isfinite, times))
        else ""
    )
    span += infinite if span else ", at the steady state" if infinite else ""
    return (
        f"{counted(problem.size, 'measured value')} of {counted(len(observed), 'observable')} "
        f"in {counted(len(problem.conditions), 'experiment')}{span}."
    )
