"""The parts of the assessment of an answer, as plain values.

Each part states only what was shown. ``local`` never mentions other optima, ``complete`` counts
solutions, and ``bounds`` (``global`` in result files) holds a lower bound with its scope.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, get_args

from odefit.common.arrays import Array
from odefit.methods.estimate import Agreement, Certificate, Completeness
from odefit.methods.fit_quality.goodness_verdict import Check as Check
from odefit.methods.fit_quality.goodness_verdict import FarResidual as FarResidual
from odefit.methods.fit_quality.goodness_verdict import Goodness as Goodness


class Trouble(StrEnum):
    """The reason why an unknown has no standard error, or an unreliable one.

    Files hold the value. A member equals the text of its value, so that users may compare with
    both.
    """

    NO_EFFECT = "no effect"
    NOT_DETERMINED = "not determined"
    WEAKLY_DETERMINED = "weakly determined"
    AT_A_BOUND = "at a bound"
    TIED_TO_A_BOUND = "tied to a bound"
    NOT_LINEAR = "not linear"
    BY_PROFILE = "interval by profile"
    NO_NOISE = "no noise"
    FIXED = "fixed"

    @property
    def lost(self) -> bool:
        """Return whether the data do not determine the unknown at all."""
        return self in (Trouble.NO_EFFECT, Trouble.NOT_DETERMINED)


OPTIONAL = {"optional": True}
"""Metadata of a field that files omit if it is empty."""


@dataclass(frozen=True)
class Local:
    """The finding whether the answer is a local optimum on the integrated trajectories.

    Attributes
    ----------
    optimal
        Whether first-order conditions hold: the step to the minimum of the local quadratic model is
        below `tolerance`, in standard errors. It also holds if the step gains less than integration
        errors, or only along directions that the data do not determine. It holds if the residuals
        are zero up to these errors, or if the objective has a kink there and rises on both sides.
    gradient
        Norm of the projected gradient in the units of the residuals (root of the decrease
        that the local quadratic model still promises, over that of the objective).
    tolerance
        The largest `gradient` of a local optimum.
    curvature
        The smallest singular value of the scaled Jacobian over its largest; 0 if some direction
        does not change the residuals at all.
    sentence
        All this in words.
    """

    optimal: bool
    gradient: float
    tolerance: float
    curvature: float
    sentence: str


@dataclass(frozen=True)
class Continuity:
    """The continuity of a trajectory through nodes.

    Attributes
    ----------
    nodes
        The number of nodes.
    gap
        The largest discontinuity there, relative to the sizes of the states.
    constraints
        The conditions beside the data that hold.
    fine
        Whether the trajectory counts as continuous.
    sentence
        All this in words.
    """

    nodes: int
    gap: float
    constraints: tuple[str, ...]
    fine: bool
    sentence: str


@dataclass(frozen=True)
class ProvedInterval:
    """An interval that is proved to hold all values of an unknown that fit.

    Attributes
    ----------
    key
        The unknown.
    lower, upper
        The ends of the interval, in natural units, rounded outwards.
    intervals
        The separate intervals of all values that fit, if there are several; else empty.
    fitting
        The least and the largest value that were found to fit, as far as the search looked.
    profile
        The ends of the interval by profile likelihood, infinite where it is open, NaN where an end
        was not found.
    at_bounds
        Whether the lower and the upper end are bounds of the unknown, so that no limit is proved.
    """

    key: str
    lower: float
    upper: float
    intervals: tuple[tuple[float, float], ...]
    fitting: tuple[float, float]
    profile: tuple[float, float]
    at_bounds: tuple[bool, bool]


@dataclass(frozen=True)
class ProvedRegion:
    """A box that is proved to hold the whole confidence region by the likelihood ratio.

    Attributes
    ----------
    level
        The level of the region's intervals, e.g. 0.95.
    limit
        The deviance up to which values belong to the region; the same as that of profiles.
    cut
        The largest value of `measure` in it.
    complete
        Whether the search came to its end: each interval is then nearly as short as the values that
        were found to fit.
    boxes
        The number of boxes that were evaluated.
    intervals
        An interval for each unknown, in their order.
    assumed
        Bounds by key of unknowns, if they are not the problem's own.
    measure
        The name of what `cut` limits: the objective, or -2 log L if the noise is estimated.
    """

    level: float
    limit: float
    cut: float
    complete: bool
    boxes: int
    intervals: tuple[ProvedInterval, ...]
    assumed: Mapping[str, tuple[float, float]] = field(default_factory=dict, metadata=OPTIONAL)
    measure: str = field(default="objective", metadata=OPTIONAL)

    @property
    def excess(self) -> float:
        """Largest length of an interval, relative to that of values that were found to fit."""
        ratios = [1.0]
        for one in self.intervals:
            length = one.fitting[1] - one.fitting[0]
            ratios.append((one.upper - one.lower) / length if length > 0 else math.inf)
        return max(ratios)


@dataclass(frozen=True)
class Refutation:
    """The refutation of a model: no values of its unknowns reach a likely chi-square.

    Attributes
    ----------
    chi_square
        A proved lower bound of the weighted sum of squared residuals.
    degrees_of_freedom
        The number of measurements and priors less that of the unknowns.
    p
        The probability of a chi-square at least as large if model and standard deviations are
        right.
    level
        The level of confidence at which the model is refuted, e.g. 0.95.
    assumed
        Bounds by key of unknowns, if they are not the problem's own.
    """

    chi_square: float
    degrees_of_freedom: int
    p: float
    level: float
    assumed: Mapping[str, tuple[float, float]] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True)
class Assessment:
    """The findings on an answer, each of which says no more than was shown.

    Attributes
    ----------
    local
        Whether it is a local optimum; None if nothing was found.
    complete
        How many solutions have the same outputs, and how many of them were found; None if they
        were not counted.
    bounds
        A proved lower bound of the objective, with its scope; None without a proof. Result files
        call it ``global``.
    discretisation
        The distance of a discretised answer from the integrated trajectories; None if nothing was
        discretised.
    continuity
        The continuity of a trajectory through shooting nodes; None without nodes.
    region
        A box that is proved to hold all values that fit, if it was asked for.
    refutation
        The proof that no values fit, if there is one.
    """

    local: Local | None = None
    complete: Completeness | None = None
    bounds: Certificate | None = None
    discretisation: Agreement | None = None
    continuity: Continuity | None = None
    region: ProvedRegion | None = field(default=None, metadata=OPTIONAL)
    refutation: Refutation | None = field(default=None, metadata=OPTIONAL)


Treatment = Literal["as-is", "scaled", "withheld", "sandwich"]
"""Treatments of standard errors and intervals for a bad goodness of fit, and, as a sandwich, for
noise that is correlated in time."""

INTERVAL_CHOICES: tuple[Treatment, ...] = get_args(Treatment)
"""All of these, the default first."""


@dataclass(frozen=True)
class Direction:
    """A direction in which the data do not determine the unknowns.

    Attributes
    ----------
    keys
        The unknowns that take part, the most involved first.
    weights
        Their shares in the direction: relative changes (or absolute ones, for unknowns that
        are zero), as many as keys.
    sentence
        The direction in words, e.g. ``"The data determine k2 and k5 only as the product k2*k5."``
    """

    keys: tuple[str, ...]
    weights: tuple[float, ...]
    sentence: str


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The uncertainty of the unknowns, as far as the data determine them.

    Attributes
    ----------
    keys
        The unknowns, n of them.
    standard_errors
        Standard errors in natural units, shape (n,), NaN without one.
    intervals
        Confidence intervals in natural units, shape (n, 2), NaN without one.
    covariance, correlation
        Covariances and correlations, shape (n, n), NaN in rows of unknowns without standard error.
    level
        The level of the intervals, e.g. 0.95.
    degrees_of_freedom
        The degrees of freedom of the t distribution; infinite where the noise is given. Where
        it is estimated, the fewest of any unknown.
    variance
        Estimated residual variance (1 where the noise is given or estimated as unknown).
    rank
        The number of determined directions.
    directions
        The directions that are not determined.
    trouble
        By key, the reason why there is no standard error or why it cannot be trusted.
    sentence
        All this in words.
    treatment
        The treatment of standard errors and intervals for a bad goodness of fit, or for noise that
        is correlated in time.
    degrees_by_key
        By key, degrees of freedom where the noise is estimated, since observables with noise of
        their own carry different information on each unknown. For the factor of a standard
        deviation they are those of its chi-square distribution. Other unknowns have no entry.
    corrected_noise
        By key, estimated noise parameters corrected for the unknowns that were fitted beside
        them: S/(n - p) instead of S/n. The estimate is the maximum of the likelihood.
    notes
        By key, the reason why there is no interval or why it is unreliable, if `trouble` is not
        enough.
    """

    keys: tuple[str, ...]
    standard_errors: Array
    intervals: Array
    covariance: Array
    correlation: Array
    level: float
    degrees_of_freedom: float
    variance: float
    rank: int
    directions: tuple[Direction, ...] = ()
    trouble: dict[str, Trouble] = field(default_factory=dict)
    sentence: str = ""
    degrees_by_key: dict[str, float] = field(default_factory=dict, metadata=OPTIONAL)
    corrected_noise: dict[str, float] = field(default_factory=dict, metadata=OPTIONAL)
    notes: dict[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    treatment: Treatment = field(default="as-is", metadata=OPTIONAL)
