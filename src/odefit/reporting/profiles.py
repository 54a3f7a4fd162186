"""Profile likelihoods and proved intervals as tables and as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from odefit.assessment.discretised import rounded_down, within
from odefit.assessment.parts import ProvedInterval, ProvedRegion, Refutation
from odefit.assessment.profiles import Profile, ProfilesData
from odefit.assessment.profiles.parts import Verdict
from odefit.assessment.profiles.verdicts import disagrees
from odefit.common.errors import counted
from odefit.common.packages import require
from odefit.methods.estimate import Status
from odefit.methods.fit_measure import OBJECTIVE
from odefit.reporting.numbers import duration, level_words, significant

if TYPE_CHECKING:
    import pandas as pd


PROFILE_TITLES = ("", "estimate", "lower limit", "upper limit", "linear", "verdict")
"""Titles of the columns of :func:`profile_rows`."""


def profile_table(data: ProfilesData) -> pd.DataFrame:
    """Return the intervals as a table indexed by key, the level in ``attrs["level"]``."""
    require("pandas")
    import pandas as pd

    rows = {
        p.key: {
            "estimate": p.estimate,
            "ci_low": p.lower,
            "ci_high": p.upper,
            "linear_low": p.linear[0],
            "linear_high": p.linear[1],
            "verdict": p.verdict.value,
            "note": p.sentence,
        }
        for p in data.profiles
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index.name = "key"
    table.attrs["level"] = data.level
    return table


def profile_rows(data: ProfilesData) -> list[tuple[str, str, str, str, str, str]]:
    """Return key, estimate, limits, linear interval and verdict of each profile as texts."""
    return [
        (
            p.key,
            significant(p.estimate),
            _limit(p.lower),
            _limit(p.upper),
            _linear(p),
            p.verdict.value,
        )
        for p in data.profiles
    ]


def profile_text(data: ProfilesData) -> str:
    """Return the intervals, the verdicts and the cost of the profiles as text."""
    rows = [PROFILE_TITLES, *profile_rows(data)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(PROFILE_TITLES))]
    lines = [profile_title(data), ""]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [row[i].rjust(widths[i]) for i in range(1, 5)]
        lines.append("  ".join([*cells, row[5]]).rstrip())
    if noted := profile_sentences(data):
        lines += ["", *noted]
    lines += ["", *profile_ending(data)]
    return "\n".join(lines)


def profile_title(data: ProfilesData) -> str:
    """Return the lines above the intervals."""
    return f"Profile likelihood, {level_words(data.level)} intervals (likelihood ratio)"


def profile_sentences(data: ProfilesData) -> list[str]:
    """Return a sentence on each profile that the table does not describe fully."""
    return [
        p.sentence
        for p in data.profiles
        if p.verdict is not Verdict.IDENTIFIABLE or disagrees(p) or any(p.unchecked)
    ]


def profile_ending(data: ProfilesData) -> list[str]:
    """Return the cost of the profiles, and any unusual end."""
    ended = data.adopted or data.status is not Status.CONVERGED
    return [cost_sentence(data), *([f"{data.message[0].upper()}{data.message[1:]}."] * ended)]


def cost_sentence(data: ProfilesData) -> str:
    """Return the cost of the profiles in a sentence."""
    return (
        f"{data.minimisations} refits with {data.evaluations} evaluations of the model in "
        f"{duration(data.seconds)}."
    )


def _limit(value: float) -> str:
    if math.isnan(value):
        return "not found"
    return "none" if math.isinf(value) else significant(value)


def _linear(profile: Profile) -> str:
    if not all(math.isfinite(v) for v in profile.linear):
        return "none"
    low, high = (significant(v, 4) for v in profile.linear)
    return f"[{low}, {high}]{' (!)' if disagrees(profile) else ''}"


# Proved intervals ---------------------------------------------------------------------------------

REGION_TITLES = ("", "proved", "by profile")
"""Titles of the columns of :func:`region_rows`."""

MAX_INTERVALS = 4
"""Largest number of separate intervals that a text lists."""


def region_rows(region: ProvedRegion) -> list[tuple[str, str, str]]:
    """Return key, proved interval and interval by profile of each unknown as texts."""
    return [(one.key, _proved(one), _by_profile(one)) for one in region.intervals]


def region_title(region: ProvedRegion) -> str:
    """Return the line above the proved intervals."""
    return f"Proved {level_words(region.level)} intervals (likelihood ratio)"


def region_sentence(region: ProvedRegion) -> str:
    """Return the proved statements on a confidence region."""
    sentence = (
        f"All values within {within(region.assumed)} whose {region.measure} is at most "
        f"{_rounded_up(region.cut)}, the limit of {level_words(region.level)} profiles, lie in "
        "the proved intervals, whatever the start. That holds in continuous time, with all "
        "rounding outwards."
    )
    if region.measure != OBJECTIVE:
        sentence += " Profiles of estimated noise have limits of their own."
    if region.complete:
        return sentence
    longer = f"{region.excess:.2g} times" if math.isfinite(region.excess) else "many times"
    return (
        f"{sentence} The search did not come to its end: an interval is up to {longer} as long as "
        "that of the values that were found to fit."
    )


def refutation_sentence(refutation: Refutation) -> str:
    """Return the refutation of a model in words."""
    degrees = counted(refutation.degrees_of_freedom, "degree of freedom", "degrees of freedom")
    p = refutation.p
    exponent = math.floor(math.log10(p)) if p > 0 else -300
    most = math.floor(p / 10.0**exponent + 1) * 10.0**exponent  # rounded up to one digit
    return (
        f"No values within {within(refutation.assumed)} reach a chi-square below "
        f"{rounded_down(refutation.chi_square)}: with these standard deviations the model is "
        f"refuted (p < {most:.1g}, {degrees})."
    )


def _proved(one: ProvedInterval) -> str:
    """Return a proved interval, rounded outwards."""
    if len(one.intervals) > MAX_INTERVALS:
        whole = f"{rounded_down(one.lower)} to {_rounded_up(one.upper)}"
        return f"{len(one.intervals)} intervals, {whole}"
    if one.intervals:
        return " or ".join(f"{rounded_down(a)} to {_rounded_up(b)}" for a, b in one.intervals)
    if all(one.at_bounds):
        return "no limits within the bounds"
    if one.at_bounds[0]:
        return f"at most {_rounded_up(one.upper)}"
    if one.at_bounds[1]:
        return f"at least {rounded_down(one.lower)}"
    return f"{rounded_down(one.lower)} to {_rounded_up(one.upper)}"


def _by_profile(one: ProvedInterval) -> str:
    low, high = one.profile
    if math.isnan(low) or math.isnan(high):
        return "not found"
    if math.isinf(low) and math.isinf(high):
        return "no limits within the bounds"
    if math.isinf(low):
        return f"at most {significant(high, 6)}"
    if math.isinf(high):
        return f"at least {significant(low, 6)}"
    return f"{significant(low, 6)} to {significant(high, 6)}"


def _rounded_up(bound: float) -> str:
    """Return an upper bound rounded up to six digits."""
    return f"{-float(rounded_down(-bound)):.6g}"
