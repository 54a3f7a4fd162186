"""The thresholds of the quality of a fit, all in one place, with their reasons.

Three parts ask whether noise explains the residuals of an answer; a mistake costs them differently:

- The *search* continues if it does not. A doubt costs only time, so its limits are narrow.
- The *status* says that an answer does not describe the data, or warns. Real residuals are seldom
  independent and models of real data seldom exact, so its limits are wide.
- The *report* states the probability of such residuals. It compares them with simulated noise, and
  needs only one significance level.
"""

from __future__ import annotations

import math

# Chi-square, if noise is given -----------------------------------------------------------------

SEARCH_SIGMAS = 3.0
"""Standard deviations by which chi-square may exceed its mean in the search, and for the values
that remain after outliers are removed."""

TYPICAL_SIGMAS = 1.0
"""Standard deviations by which chi-square may exceed its mean for an end that counts although it
was reached only once, in closed form."""

STATUS_SIGMAS = 6.0
"""Standard deviations by which chi-square may exceed its mean for the status: more than occurs by
chance in any number of fits."""

MAX_NOISE_RATIO = 2.0
"""Ratio of the root mean square residual to the given noise up to which the status accepts
residuals as noise. A given noise is often too small, and large data show that beyond all chance.
"""

# Residuals relative to a noise estimated from the data -------------------------------------------

SEARCH_RATIO = 1.5
"""Ratio of the root mean square residual to the noise up to which the search accepts residuals as
noise."""

MAX_ESTIMATED_RATIO = 4.0
"""Ratio of the root mean square residual to the noise up to which the status accepts residuals as
noise."""

MAX_SYSTEMATIC_RATIO = 10.0
"""Ratio of the root mean square residual to the noise above which an answer does not describe the
data, however small its residuals are compared with the data."""

SEARCH_POINTS = 100
"""Number of times of a series below which the search does not estimate its noise: the limit is near
the noise, whose estimate needs many values."""

STATUS_POINTS = 16
"""Number of times of a series below which the status does not rest on an estimate of its noise. The
limits of the status are far from the noise, so that fewer times suffice than for the search.
"""

MAX_NOISE = 0.3
"""Ratio of the noise of a series to the spread of its values above which its signal is not
resolved."""

MIN_NOISE = 1e-9
"""Smallest noise of a series, relative to its largest value: no integration is more accurate."""

# Residuals relative to the spread of the data
# ----------------------------------------------------------

MAX_UNFIT_SHARE = 0.05
"""Ratio of the sum of squared residuals to that of the data about their means above which an answer
does not describe the data unless their noise is as large."""

# Patterns, for the search -------------------------------------------------------------------------

MIN_PATTERN_CHANCE = 0.01
"""Probability that noise has slow parts like those of the residuals, below which they count as a
pattern. It is also the share of correct answers that are considered doubtful; the search for these
takes up to a hundred times as long."""

MIN_PATTERN_CHANCE_ESTIMATED = 0.2
"""Probability of slow parts by noise below which residuals count as a pattern if the noise is
estimated from the data. Their size is then weaker evidence, and a worse optimum may have hardly
larger ones.
"""

MIN_POINTS_FOR_PATTERN = 100
"""Number of residuals of a series below which no pattern is sought: a few residuals of pure noise
show one too often."""

# The report ---------------------------------------------------------------------------------------

SIGNIFICANCE = 0.05
"""Probability of a bad verdict on a correct model, and of any outlier among normal values."""

MIN_PATTERN, MIN_OUTLIERS, MIN_NORMAL = 5, 8, 20
"""Smallest numbers of measurements for the tests of a pattern, of outliers and of normality: with
fewer the result means nothing, and each further test weakens the others."""

NEGLIGIBLE_RESIDUALS = 1e-6
"""Size of residuals relative to the data below which they come from the number of digits, not from
noise."""

# Outliers of a plain fit --------------------------------------------------------------------------

MAX_OUTLIERS = 0.15
"""Largest share of the values that may be outliers of a plain fit: with more, the model is
wrong."""

MIN_SPARE = 3
"""Number of other values, beyond the number of unknowns, that must support the model."""

MIN_IN_RUNS, MAX_IN_RUNS = 6, 0.5
"""Number and share of outliers with another one next to them, on the same side of the curve, above
which the model misses a part of the data. If 15 % of the values are outliers at random, 14 % of
these have such a neighbour.
"""


def most_chi_square(freedom: float, sigmas: float = SEARCH_SIGMAS) -> float:
    """Return the largest chi-square that counts as noise, for these degrees of freedom."""
    return freedom + sigmas * math.sqrt(2 * freedom)


FAR_SHARE = 0.5
"""Share of the squares of a series about its mean above which a curve does not come near it."""
