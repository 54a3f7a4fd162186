"""Intervals as users want them for an answer whose residuals are no noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.degrees_of_freedom import degrees_in_words
from odefit.assessment.intervals.small_samples import intervals_of, quantile_of
from odefit.assessment.parts import Goodness, Treatment, Uncertainty
from odefit.common.arrays import Array
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
