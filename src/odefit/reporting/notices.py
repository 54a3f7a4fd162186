"""Facts of a result, and second opinions on integrations, in sentences."""

from __future__ import annotations

from collections.abc import Callable

from odefit.designs.settling import Settlement
from odefit.methods.fit_quality.limits import SIGNIFICANCE
from odefit.reporting.designs.discrimination import settling_sentence
from odefit.reporting.numbers import significant
from odefit.result_data.notices import Notice, NoticeKind
from odefit.simulation.engines.registry import ENGINES
from odefit.simulation.second_opinion import SecondOpinion

ENGINE_LABELS: dict[str, str] = {name: row.label for name, row in ENGINES.items()}
"""Names of the engines in sentences."""

UNASSESSED = "The fit was ended before its answer was assessed: missing parts were not computed"

UNINTEGRATED = (
    "No end of the search can be integrated at full accuracy: the answer is the best end as the "
    "search left it, and its errors are unknown"
)

CAPITAL = {NoticeKind.RUN, NoticeKind.MISFIT}
"""Kinds whose texts also end other sentences, so that they begin in lower case."""

SMALL_RANGE = 0.02
"""Range of a curve, relative to that of the data, below which it counts as constant."""

MAX_NAMED = 5
"""Number of outliers that a sentence lists."""


def notice_sentence(notice: Notice) -> str:
    """Return a fact in words."""
    return WORDS.get(notice.kind, _own_text)(notice)


def capital(sentence: str) -> str:
    """Return a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def opinion_notice(opinion: SecondOpinion | None) -> Notice | None:
    """Return the warning of a second opinion; None if the engines agree."""
    if opinion is None or opinion.agrees or opinion.difference is None:
        return None
    d = opinion.difference
    numbers = {"time": d.time, "first": d.first, "second": d.second}
    names = (d.name, d.experiment)
    if opinion.better is None:
        return Notice(NoticeKind.ENGINES_DISAGREE, numbers, names)
    return Notice(NoticeKind.OTHER_ENGINE, numbers, (*names, opinion.better[0]))


def opinion_sentence(opinion: SecondOpinion | None) -> str:
    """Return the warning of a second opinion in words; empty if the engines agree."""
    notice = opinion_notice(opinion)
    return "" if notice is None else notice_sentence(notice)


def _own_text(notice: Notice) -> str:
    return capital(notice.text) if notice.kind in CAPITAL else notice.text


def _place(notice: Notice) -> str:
    name, experiment, *_ = notice.names
    where = f"{name} at t = {notice.numbers['time']:g}"
    return f"{where} in experiment {experiment}" if experiment else where


def _engines_disagree(notice: Notice) -> str:
    values = f"{notice.numbers['first']:.6g} and {notice.numbers['second']:.6g}"
    return (
        f"No two integrators agree on this trajectory: {_place(notice)}, two of them give {values}"
        ". Small errors grow along it, or it has changes that are too narrow to be seen"
    )


def _other_engine(notice: Notice) -> str:
    n = notice.numbers
    return (
        f"The trajectory was integrated by {ENGINE_LABELS[notice.names[2]]}, with which another "
        f"integrator agrees: the usual engines gave another value of {_place(notice)}, "
        f"{n['first']:.6g} instead of {n['second']:.6g}"
    )


def _curve_astray(notice: Notice) -> str:
    n = notice.numbers
    where = f" in experiment {notice.names[1]}" if len(notice.names) > 1 else ""

    def run(of: str, verb: str) -> str:
        low, high, passes = (n[f"{of}{k}"] for k in ("low", "high", "passes"))
        if high - low <= SMALL_RANGE * (n["high"] - n["low"]):
            return f"stay{verb} near {significant(0.5 * (low + high), 3)}"
        passed = "once" if passes == 1 else f"{passes:.0f} times"
        text = f"run{verb} from {significant(low, 3)} to {significant(high, 3)}"
        return f"{text} and pass{'es' if verb else ''} the middle {passed}"

    hint = ". Check units, signs, initial values and observables"
    if n["angle"]:
        hint = (
            ". Sines and cosines take radians: if these are degrees, convert the data, or write "
            "sin(pi/180*...) in the equations"
        )
    return (
        f"No curve comes near {notice.names[0]}{where}: the data {run('', '')}; the curve of this "
        f"answer {run('curve_', 's')}{hint}"
    )


def _try_robust_noise(notice: Notice) -> str:
    observables = ", ".join(notice.names)
    return (
        f"If the outliers of {observables} are wrong values, correct or remove them, or give "
        f'{observables} = {{ sd = "estimate", loss = "student" }} in [noise]: they then count '
        "little"
    )


def _outliers(notice: Notice) -> str:
    count = round(notice.numbers["count"])
    more = f" and {count - MAX_NAMED} more" if count > MAX_NAMED else ""
    counted = "One outlier counts" if count == 1 else f"{count} outliers count"
    return f"{counted} little in this fit: {', '.join(notice.names[:MAX_NAMED])}{more}"


def _equal_solutions(notice: Notice) -> str:
    return (
        f"{notice.numbers['count']:.0f} different solutions fit equally well{_product(notice)}; "
        f"they differ in {', '.join(notice.names)}. The estimates shown are those of one of them; "
        f"intervals, profiles and bands are over all{_listed(notice)}{_others(notice)}"
    )


def _product(notice: Notice) -> str:
    """Return the number of solutions as a product of the numbers of groups of experiments."""
    groups = notice.groups
    if not groups:
        return ""
    of_each = ", ".join(f"{n:.0f} of {name}" for name, n in list(groups.items())[:MAX_NAMED])
    more = f" and others of {len(groups) - MAX_NAMED} more" if len(groups) > MAX_NAMED else ""
    if len(groups) == 1:
        return f" ({of_each})"
    product = " x ".join(f"{n:.0f}" for n in groups.values())
    if len(groups) > MAX_NAMED:
        product = f"the product over {len(groups)} experiments"
    equal = notice.kind is NoticeKind.EQUAL_SOLUTIONS
    return f" ({product}: {of_each}{more}{', and any goes with any' if equal else ''})"


def _listed(notice: Notice) -> str:
    if len(notice.groups) > 1:
        return "; the list of solutions has those that differ from it in one experiment"
    return ", which are in the list of solutions"


def _near_solutions(notice: Notice) -> str:
    return (
        f"{notice.numbers['count']:.0f} different solutions fit the data within their noise"
        f"{_product(notice)}; they differ in {', '.join(notice.names)}. The estimates shown are "
        "those of the best; intervals, profiles and bands are over all of them"
        f"{_listed(notice)}{_others(notice)}"
    )


def _others(notice: Notice) -> str:
    """Return that solutions may be missing, unless the equations tell their number."""
    missing = notice.numbers.get("all") == 0.0  # results of before do not tell
    return ". There may be others, which this search has not found" if missing else ""


def _solutions_cut(notice: Notice) -> str:
    unsure = notice.numbers.get("unsure", 0.0)
    sentences = []
    if notice.numbers.get("cut", 1.0):
        sentences.append(
            "The time limit ended the search for other solutions that fit: there may be more than "
            "those listed. More time, or a start from this result, finds them"
        )
    if unsure:
        subject = "one solution listed is" if unsure == 1 else f"{unsure:.0f} solutions listed are"
        optima = "an optimum of its own" if unsure == 1 else "optima of their own"
        sentences.append(
            f"It is not known whether {subject} {optima}: the refits from one to another were not "
            "finished, and a ridge may join them"
        )
    return ". ".join(sentences)


def _settled_by(notice: Notice) -> str:
    numbers, (observable, experiment, unit) = notice.numbers, notice.names
    predictions = [v for k, v in numbers.items() if k.startswith("solution ")]
    return settling_sentence(
        Settlement(
            observable,
            experiment,
            numbers["time"],
            unit,
            tuple(predictions),
            numbers["sd"],
            numbers["distance"],
            assumed=bool(numbers["assumed"]),
        )
    ).rstrip(".")


def _searched_elsewhere(notice: Notice) -> str:
    starts = round(notice.numbers["starts"])
    tried = f"{starts} starts from wider ranges and on logarithmic scales found nothing better"
    if not starts:
        tried = "there are no wider ranges to search"
    one = len(notice.names) == 1
    residuals = (
        "its residuals are more than noise"
        if notice.numbers["p"] < SIGNIFICANCE
        else "its residuals may be more than noise"
    )
    trouble = (
        f"{'is' if one else 'are'} at a bound or hardly determined at this answer, and {residuals}"
    )
    if notice.numbers["p"] == 1.0:
        trouble = (
            f"{'has' if one else 'have'} no effect at this answer, and may act beyond a switch or "
            "kink of the equations"
        )
    return (
        f"{', '.join(notice.names)} {trouble}; {tried}. If other values are plausible, give them "
        "as a guess or as bounds"
    )


def _starts_failed(notice: Notice) -> str:
    failed, starts = notice.numbers["failed"], notice.numbers["starts"]
    return f"{failed:.0f} of {starts:.0f} starts failed, e.g. {notice.text}"


def _stage_failed(notice: Notice) -> str:
    stage, error = notice.names
    reason = f" ({notice.text})" if notice.text else ""
    return (
        f"A stage of the fit failed because of a mistake in odefit, {stage}: {error}{reason}. "
        "Its part of the result is missing, and the estimates stand. "
        "The traceback is in the log (--log FILE); please report it"
    )


def _smoothness(notice: Notice) -> str:
    n, (function, criterion) = notice.numbers, notice.names
    by = {
        "reml": "restricted maximum likelihood",
        "adaptive": "restricted maximum likelihood",
        "cv": "cross-validation",
    }[criterion]
    left = "" if n["settled"] else ", which had not settled when its fits ended"
    to = ""
    if criterion == "adaptive":
        to = f" (at its start) to {significant(n['last'], 3)} (at its end)"
    words = (
        f"The smoothness of {function} was chosen by {by}{left}: its {n['differences']:.0f} "
        f"differences have a standard deviation of {significant(n['sd'], 3)}"
        f"{to}, and the data "
        f"determine {n['effective']:.1f} of them. "
    )
    if criterion == "cv":
        words += "Intervals and bands take this as known and its prior as knowledge"
    else:
        words += "Intervals and bands allow for its uncertainty, and take its prior as knowledge"
    return f"{words} (empirical Bayes): they hold on average along the function"


WORDS: dict[NoticeKind, Callable[[Notice], str]] = {
    NoticeKind.NOT_INTEGRATED: lambda _: UNINTEGRATED,
    NoticeKind.NOT_ASSESSED: lambda _: UNASSESSED,
    NoticeKind.ENGINES_DISAGREE: _engines_disagree,
    NoticeKind.OTHER_ENGINE: _other_engine,
    NoticeKind.CURVE_ASTRAY: _curve_astray,
    NoticeKind.TRY_ROBUST_NOISE: _try_robust_noise,
    NoticeKind.OUTLIERS: _outliers,
    NoticeKind.SMOOTHNESS: _smoothness,
    NoticeKind.EQUAL_SOLUTIONS: _equal_solutions,
    NoticeKind.NEAR_SOLUTIONS: _near_solutions,
    NoticeKind.SOLUTIONS_CUT: _solutions_cut,
    NoticeKind.SETTLED_BY: _settled_by,
    NoticeKind.SEARCHED_ELSEWHERE: _searched_elsewhere,
    NoticeKind.STARTS_FAILED: _starts_failed,
    NoticeKind.STAGE_FAILED: _stage_failed,
}
"""The words of each kind; other kinds carry a sentence of the part that reports the fact."""
