"""An answer whose residuals are no noise: its warnings, and its intervals as users want them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.fit_quality.misfit import MAX_NAMED, Misfit
from odefit.assessment.intervals.degrees_of_freedom import degrees_in_words
from odefit.assessment.intervals.small_samples import intervals_of, quantile_of
from odefit.assessment.parts import FarResidual, Goodness, Treatment, Uncertainty
from odefit.common.arrays import Array
from odefit.methods.outliers import Outlier
from odefit.problem.problem import Problem


def intervals_of_bad_fit(
    problem: Problem,
    vector: Array,
    uncertainty: Uncertainty,
    goodness: Goodness | None,
    choice: Treatment,
) -> Uncertainty:
    """Return the uncertainty as the user wants it where the goodness of fit is bad.

    Elsewhere nothing changes.

    Parameters
    ----------
    problem, vector
        The problem and its solution, shape (n,).
    uncertainty, goodness
        What was found there.
    choice
        ``"scaled"``: standard errors times the root of the reduced chi-square, with as many degrees
        of freedom as that (R. T. Birge, Physical Review 40, 1932, 207-227); ``"withheld"``: none.
    """
    if goodness is None or not goodness.bad or choice == "as-is":
        return uncertainty
    if choice == "withheld":
        nothing = {
            name: np.full_like(getattr(uncertainty, name), np.nan)
            for name in ("standard_errors", "intervals", "covariance", "correlation")
        }
        said = "Standard errors and intervals are withheld, as the residuals are no noise."
        return replace(
            uncertainty,
            **nothing,
            treatment="withheld",
            sentence=f"{uncertainty.sentence} {said}".strip(),
        )
    reduced = goodness.reduced_chi_square
    if not reduced > 1.0:
        said = (
            "Standard errors and intervals are not scaled: they come from residuals of this size."
        )
        return replace(uncertainty, sentence=f"{uncertainty.sentence} {said}".strip())
    factor = math.sqrt(reduced)
    errors = factor * uncertainty.standard_errors
    degrees = goodness.degrees_of_freedom
    quantiles = np.full(len(errors), quantile_of(uncertainty.level, degrees))
    said = (
        f"Standard errors and intervals are scaled by {factor:.3g}, the root of the reduced "
        f"chi-square, with {degrees_in_words(degrees)}."
    )
    return replace(
        uncertainty,
        standard_errors=errors,
        covariance=reduced * uncertainty.covariance,
        intervals=intervals_of(problem, vector, errors, quantiles),
        degrees_of_freedom=degrees,
        treatment="scaled",
        sentence=f"{uncertainty.sentence} {said}".strip(),
    )


def misfit_warnings(
    misfit: Misfit | None, goodness: Goodness | None, corroborated: bool
) -> list[str]:
    """Return a warning of residuals that are no noise, where the answer counts as one.

    Parameters
    ----------
    misfit, goodness
        What speaks against the answer.
    corroborated
        Whether several methods have ended there.
    """
    far = () if goodness is None or not goodness.bad else goodness.outliers
    hint = [robust_hint(far)] if far and not (misfit is not None and misfit.outliers) else []
    if misfit is not None and misfit.unfit(corroborated):
        return hint  # the message says the rest
    agreed = corroborated and not far  # outliers that are named say more than that
    caused = misfit is not None and (misfit.accepted or bool(misfit.outliers) or agreed)
    if goodness is not None and goodness.bad and not caused:
        return [goodness.sentence, *hint]
    if misfit is None:
        return hint
    return [misfit.sentence[0].upper() + misfit.sentence[1:], *hint]


def robust_hint(outliers: Sequence[FarResidual]) -> str:
    """Return what to try where single values lie far from the model."""
    observables = ", ".join(dict.fromkeys(o.observable for o in outliers))
    return (
        f"If the outliers of {observables} are wrong values, correct or remove them, or give "
        f'{observables} = {{ sd = "estimate", loss = "student" }} in [noise]: they then count '
        "little"
    )


def weighed_down(outliers: Sequence[Outlier]) -> str:
    """Return a sentence on the outliers of a robust fit."""
    named = [f"{o.words} (weight {o.weight:.1g})" for o in outliers[:MAX_NAMED]]
    more = f" and {len(outliers) - MAX_NAMED} more" if len(outliers) > MAX_NAMED else ""
    count = "One outlier counts" if len(outliers) == 1 else f"{len(outliers)} outliers count"
    return f"{count} little in this fit: {', '.join(named)}{more}"
