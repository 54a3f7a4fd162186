"""Profile likelihoods as a table and as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from odefit.assessment.profiles import Profile, ProfilesData
from odefit.assessment.profiles.parts import Verdict
from odefit.assessment.profiles.verdicts import disagrees
from odefit.common.packages import require
from odefit.methods.estimate import Status
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
