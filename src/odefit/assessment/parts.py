"""The parts of the assessment of an answer, as plain values.

Each part states only what was shown. ``local`` never mentions other optima, ``complete`` counts
solutions, and ``bounds`` (``global`` in result files) holds a lower bound with its scope.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, get_args

from odefit.common.arrays import Array
from odefit.methods.estimate import Agreement, Certificate, Completeness
from odefit.methods.fit_quality.goodness_verdict import Check as Check
from odefit.methods.fit_quality.goodness_verdict import FarResidual as FarResidual
from odefit.methods.fit_quality.goodness_verdict import Goodness as Goodness


class Trouble(StrEnum):
    """The reason why an unknown has no standard error, or one to be taken with care.

    The value is what files hold. A member equals the text of its value, so that users may compare
    with either.
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
    """True if the answer is a local optimum on the integrated trajectories.

    Attributes
    ----------
    optimal
        Whether first-order conditions hold: the step to the minimum of the local quadratic model
        is below `tolerance`, in standard errors, or gains less than the errors of the
        integration are, or nothing along directions that the data leave open, or the residuals are
        zero to these errors, or the objective has a kink there and rises on both sides.
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
    """The reading of a trajectory through nodes.

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
class Assessment:
    """The proof about an answer, and its problem."""

    local: Local | None = None
    complete: Completeness | None = None
    bounds: Certificate | None = None
    discretisation: Agreement | None = None
    continuity: Continuity | None = None


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
        Standard errors in natural units, shape (n,), NaN where there is none.
    intervals
        Confidence intervals in natural units, shape (n, 2), NaN where there are none.
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
        What has become of standard errors and intervals where the goodness of fit is bad, or where
        noise that is correlated in time was allowed for.
    degrees_by_key
        By key, degrees of freedom where the noise is estimated, since observables with noise of
        their own do not tell alike of all unknowns. For the factor of a standard deviation they
        are those of its chi-square distribution. Elsewhere there are none.
    corrected_noise
        By key, estimated noise parameters corrected for the unknowns that were fitted beside
        them: S/(n - p) instead of S/n. The estimate is the maximum of the likelihood.
    notes
        By key, why there is no interval or why it is not to be trusted, where `trouble` is not
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
