"""Validations as values: new measurements beside their predictions, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from odefit.assessment.predictions.obstacles import NoOneStep
from odefit.assessment.predictions.one_step import OneStep
from odefit.common.arrays import Array

SIGNIFICANT = 0.05
"""Probability below which residuals are larger than noise and estimates explain."""


class Verdict(Enum):
    """The verdict on predictions of new measurements."""

    AS_WELL = "as well"
    WORSE = "worse"
    UNKNOWN = "unknown"


class Undecided(Enum):
    """The reasons for the absence of a verdict."""

    NOT_NORMAL = "not normal"
    CORRELATED = "correlated"
    UNDETERMINED = "undetermined"
    NO_FREEDOM = "no freedom"


@dataclass(frozen=True, eq=False)
class ValidatedSeries:
    """New measurements of one observable in one run, shape (n,), and the model's values.

    `low` and `high` are the prediction band; `residuals` are measured minus predicted, in standard
    deviations of the noise (not those of the estimates). `fit_percent` is 100 times one minus the
    normalised root mean square error, as MATLAB's ``compare`` gives it; it and `r_squared` are NaN
    for a single value. `runs` is the probability of as extreme a number of sign changes among
    independent residuals; NaN for few of them. `ahead` has the predictions one step ahead, shape
    (n,), or is empty without them, and `ahead_percent` is their fit. `course` has times, the
    predicted curve and its prediction band for a figure, shape (4, k); it may be empty.
    """

    experiment: str
    observable: str
    times: Array
    measured: Array
    predicted: Array
    low: Array
    high: Array
    residuals: Array
    fit_percent: float
    r_squared: float
    reduced_chi_square: float
    coverage: float
    bias: float
    autocorrelation: float
    runs: float
    ahead: Array = field(default_factory=lambda: np.zeros(0))
    ahead_percent: float = math.nan
    course: Array = field(default_factory=lambda: np.zeros((4, 0)))


@dataclass(frozen=True)
class OtherSolution:
    """Another solution that fits, by its number from 2, and its comparison with the measurements.

    `reduced_chi_square`, `probability` and `verdict` are as in :class:`ValidationData`; they are
    NaN and unknown where the new runs cannot be simulated.
    """

    number: int
    reduced_chi_square: float
    probability: float
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class ValidationData:
    """New measurements compared with the model.

    Attributes
    ----------
    series
        The comparison of each observable of each run.
    level
        The level of the prediction band.
    reduced_chi_square
        The mean square of all residuals in standard deviations of the noise; each initial value
        that is fitted takes a degree of freedom.
    fitted
        The reduced chi-square of the measurements that were fitted.
    coverage
        The share of new measurements inside the prediction band; NaN without one.
    probability
        The probability of residuals as large as these if the model is right, with the uncertainty
        of its estimates; NaN where that is not known.
    verdict
        Whether the model predicts as well as it fits.
    freed
        Initial values that were fitted to the new measurements, by ``state[run]``.
    one_step
        Predictions one step ahead, if they were requested and can be made.
    time_unit
        The unit of the times; it may be empty.
    no_one_step
        The reason why requested predictions one step ahead are missing.
    undecided
        The reason for the absence of a verdict.
    others
        The same comparison for other solutions that fit.
    """

    series: tuple[ValidatedSeries, ...]
    level: float
    reduced_chi_square: float
    fitted: float
    coverage: float
    probability: float
    verdict: Verdict
    freed: Mapping[str, float] = field(default_factory=dict)
    one_step: OneStep | None = None
    time_unit: str = ""
    no_one_step: NoOneStep | None = None
    undecided: Undecided | None = None
    others: tuple[OtherSolution, ...] = ()

    @property
    def count(self) -> int:
        """The number of new measurements."""
        return sum(len(s.times) for s in self.series)
