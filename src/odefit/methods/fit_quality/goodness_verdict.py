"""The verdict on the residuals: the tests, their results, and both in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from odefit.common.errors import counted, listed

CheckKind = Literal["chi-square", "pattern", "normality", "outliers"]
"""The properties of residuals that are tested: size, order in time, distribution, single values."""


@dataclass(frozen=True)
class Check:
    """One test of the residuals.

    Attributes
    ----------
    kind
        The property that is tested.
    observable, experiment
        Those of the residuals; empty for all observables, None for all experiments. Normality and
        outliers are tested for all observables at once; the worst is named.
    count
        The number of residuals.
    statistic
        The statistic of a test: chi-square, that of Jarque and Bera, or minus the logarithm of the
        p-value of the largest residual. For a pattern it is the correlation of neighbours in time
        plus a part of that of second neighbours.
    p
        The probability that noise alone makes any of the tests as significant.
    """

    kind: CheckKind
    observable: str
    experiment: str | None
    count: int
    statistic: float = math.nan
    p: float = 1.0


@dataclass(frozen=True)
class FarResidual:
    """A measurement that lies far from the model.

    Attributes
    ----------
    experiment, observable, time
        The place of the measurement.
    distance
        Measured minus predicted value over the standard deviation of the other residuals.
    p
        The probability that any of the observable's residuals lies as far out by chance.
    """

    experiment: str
    observable: str
    time: float
    distance: float
    p: float


@dataclass(frozen=True)
class Goodness:
    """The verdict on the residuals, which is true if they look like noise.

    Attributes
    ----------
    bad
        Whether they do not look like noise: a correct model is called bad with a probability of 5
        %.
    p
        The probability of an equally bad verdict on a correct model.
    chi_square, degrees_of_freedom
        Sum of the squares of residuals whose noise is given, over its variance, and its
        expectation; NaN and 0 if no noise is given.
    checks
        The tests of the residuals.
    outliers
        Measurements that lie far out, if the verdict is bad.
    sentence
        The verdict in words.
    """

    bad: bool
    p: float
    chi_square: float
    degrees_of_freedom: float
    checks: tuple[Check, ...] = ()
    outliers: tuple[FarResidual, ...] = ()
    sentence: str = ""

    @property
    def reduced_chi_square(self) -> float:
        """Chi-square over its degrees of freedom; NaN if no noise is given."""
        if not self.degrees_of_freedom > 0:
            return math.nan
        return self.chi_square / self.degrees_of_freedom


MAX_NAMED = 4
"""Number of observables or outliers that a sentence names before it counts the others."""


def goodness_sentence(
    checks: Sequence[Check],
    outliers: Sequence[FarResidual],
    p: float,
    chi_square: float,
    degrees: float,
    significance: float,
) -> str:
    """Return the verdict on the residuals, with the overall p-value `p`.

    `chi_square` is NaN, and `degrees` are zero, if no noise is given.
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
            f"the residuals{whose} are larger than the given noise: {size} "
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
    """Return observables, with the experiment if only one is meant."""
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
    return listed(names)


def degrees_in_words(degrees: float) -> str:
    """Return a number of degrees of freedom, to three digits or the nearest integer."""
    shown = float(f"{degrees:.0f}" if degrees >= 100 else f"{degrees:.3g}")
    return counted(shown, "degree of freedom", "degrees of freedom")
