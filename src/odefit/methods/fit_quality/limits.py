"""The thresholds of the quality of a fit, all in one place, with their reasons.

Three ask whether noise explains the residuals of an answer, and pay differently for a mistake:

- The *search* goes on if it does not. A doubt costs time alone, so its limits are narrow.
- The *status* says that an answer does not describe the data, or warns. Real residuals are seldom
  independent and models of real data seldom exact, so its limits are wide.
- The *report* states the probability of such residuals. It is compared with simulated noise, and
  one significance is all that it needs.
"""

from __future__ import annotations

import math

# Chi-square, where noise is given -----------------------------------------------------------------

SEARCH_SIGMAS = 3.0
"""Standard deviations by which chi-square may exceed its mean for the search, and for the values
that are left where outliers are taken out."""

TYPICAL_SIGMAS = 1.0
"""Standard deviations by which chi-square may exceed its mean where an end counts that was reached
once, in closed form."""

STATUS_SIGMAS = 6.0
"""Standard deviations by which chi-square may exceed its mean for the status: more than any number
of fits shows by chance."""

MAX_NOISE_RATIO = 2.0
"""Root mean square of residuals over the noise that is given, up to which the status takes them for
noise: a given noise is often too small, and large data show that beyond all chance."""

# Residuals over a noise that is estimated from the data -------------------------------------------

SEARCH_RATIO = 1.5
"""Root mean square of residuals over the noise, up to which the search takes them for noise."""

MAX_ESTIMATED_RATIO = 4.0
"""Root mean square of residuals over the noise, up to which the status takes them for noise."""

MAX_SYSTEMATIC_RATIO = 10.0
"""Root mean square of residuals over the noise, above which an answer does not describe the data,
however small its residuals are beside these."""

SEARCH_POINTS = 100
"""Number of times of a series below which the search does not tell its noise from its signal: the
limit is near to the noise, of which the estimate needs many values."""

STATUS_POINTS = 16
"""The number for the status, which needs fewer times: its limits are far from the noise."""

MAX_NOISE = 0.3
"""Noise of a series, over the spread of its values, above which its signal is not resolved."""

MIN_NOISE = 1e-9
"""Smallest noise of a series, relative to its largest value: no integration is more accurate."""

# Residuals beside the spread of the data ----------------------------------------------------------

MAX_UNFIT_SHARE = 0.05
"""Sum of squared residuals over that of the data about their means, above which an answer does not
describe the data unless their noise is as large."""

# Patterns, for the search -------------------------------------------------------------------------

MIN_PATTERN_CHANCE = 0.01
"""Probability that noise has slow parts like those of the residuals, below which they are a
pattern. It is also the share of right answers that are taken for doubtful ones: for these the
search takes up to a hundred times as long."""

MIN_PATTERN_CHANCE_ESTIMATED = 0.2
"""This probability where noise is estimated from the data: the size of the residuals is weaker
evidence then, and a worse optimum may have hardly larger ones."""

MIN_POINTS_FOR_PATTERN = 100
"""Number of residuals of a series below which no pattern is looked for: few residuals of mere noise
have one too often."""

# The report ---------------------------------------------------------------------------------------

SIGNIFICANCE = 0.05
"""Probability of a bad verdict on a right model, and of any outlier among normal values."""

MIN_PATTERN, MIN_OUTLIERS, MIN_NORMAL = 5, 8, 20
"""Measurements from which on a pattern is looked for, outliers are, and a deviation from normality:
of fewer the answer says nothing, and each further question makes the others less sure."""

NEGLIGIBLE_RESIDUALS = 1e-6
"""Residuals relative to the data up to which these have no noise, but only so many digits."""

# Outliers of a plain fit --------------------------------------------------------------------------

MAX_OUTLIERS = 0.15
"""Share of the values that may be outliers of a plain fit: if more are, the model is wrong."""

MIN_SPARE = 3
"""Number of other values, beyond that of the unknowns, that must tell of the model."""

MIN_IN_RUNS, MAX_IN_RUNS = 6, 0.5
"""Number and share of outliers beside another one on the same side of the curve, from which they
are a part of the data that the model misses: of 15 % of the values at random, 14 % have one."""


def most_chi_square(freedom: float, sigmas: float = SEARCH_SIGMAS) -> float:
    """Return the largest chi-square that counts as noise, for these degrees of freedom."""
    return freedom + sigmas * math.sqrt(2 * freedom)


FAR_SHARE = 0.5
"""Share of the squares of a series about its mean from which on a curve does not come near it."""
