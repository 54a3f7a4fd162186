"""The goodness of fit in words: what the model misses, and what that means for the intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from odefit.assessment.intervals.degrees_of_freedom import degrees_in_words
from odefit.assessment.parts import Check, FarResidual

MAX_NAMED = 4
"""Observables or outliers that a sentence names before it says how many more there are."""


def goodness_sentence(
    checks: Sequence[Check],
    outliers: Sequence[FarResidual],
    p: float,
    chi_square: float,
    degrees: float,
    significance: float,
) -> str:
    """Return the verdict on the residuals.

    Parameters
    ----------
    checks
        What was asked of the residuals, with p-values.
    outliers
        Measurements that lie far out.
    p
        The p-value of the whole.
    chi_square, degrees
        Chi-square where noise is given, and its degrees of freedom; NaN and 0 elsewhere.
    significance
        The p-value below which an answer is bad.
    """
    known = math.isfinite(chi_square) and degrees > 0
    size = f"chi-square is {chi_square:.4g} for {degrees_in_words(degrees)}"
    if p >= significance:
        also = f"; {size}" if known else ""
        return f"The residuals look like noise (p = {p:.2g}{also})."
    bad = [c for c in checks if c.p < significance]
    parts = []
    large = [c for c in bad if c.kind == "chi-square"]
    if large:
        only = [c.observable for c in large if c.observable]
        whose = f" of {_listed(only)}" if only else ""
        parts.append(
            f"the residuals{whose} are larger than the noise that is given: {size} "
            f"(reduced {chi_square / degrees:.3g}, {_p(large)})"
        )
    pattern = [c for c in bad if c.kind == "pattern"]
    if pattern:
        its = "its" if len({c.observable for c in pattern}) == 1 else "their"
        parts.append(
            f"the model misses {_places(pattern)}: {its} residuals run in a pattern ({_p(pattern)})"
        )
    far = [c for c in bad if c.kind == "outliers"]
    odd = [c for c in bad if c.kind == "normality"]
    if outliers and (far or odd):
        one = len(outliers) == 1
        parts.append(
            f"{'an outlier lies' if one else f'{len(outliers)} outliers lie'} far from the model: "
            f"{_outliers(outliers)} ({_p(far or odd)})"
        )
    elif odd or far:
        names = _listed(list(dict.fromkeys(c.observable for c in (odd or far))))
        parts.append(f"the residuals of {names} are not normally distributed ({_p(odd or far)})")
    text = ", and ".join(parts)
    return f"{text[0].upper()}{text[1:]}; the intervals assume a right model."


def _p(checks: Sequence[Check]) -> str:
    p = min(c.p for c in checks)
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _places(checks: Sequence[Check]) -> str:
    """Return observables, with the experiment where one alone is meant."""
    whole = {c.observable for c in checks if c.experiment is None}
    places = []
    for check in checks:
        if check.experiment is None:
            places.append(check.observable)
        elif check.observable not in whole:
            places.append(f"{check.observable} in {check.experiment}")
    return _listed(places)


def _outliers(outliers: Sequence[FarResidual]) -> str:
    experiments = len({o.experiment for o in outliers}) > 1
    return _listed(
        [
            f"{o.observable} at t = {o.time:g}{f' in {o.experiment}' if experiments else ''}"
            for o in outliers
        ]
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) > MAX_NAMED:
        return f"{', '.join(names[:MAX_NAMED])} and {len(names) - MAX_NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
