"""Profile likelihoods as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Status

End = Literal["limit", "bound", "flat", "failed", "stopped", "better", "points", "contradicted"]
"""Ends of a side of a profile: the limit of the interval, a bound, a flat part or a better optimum.
Or the side stops at a failed refit, a limit of time or work, or a limit that fits of other profiles
refute.
"""

OPEN = ("bound", "flat")
"""Ends of a side that show that the interval has no limit there."""


class Verdict(StrEnum):
    """The judgement of a profile on a quantity. Files and tables show its value."""

    IDENTIFIABLE = "identifiable"
    SEVERAL_INTERVALS = "several intervals"
    PRACTICALLY_NOT = "practically not identifiable"
    STRUCTURALLY_NOT = "structurally not identifiable"
    NOT_RESOLVED = "not resolved"


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a profile, from the estimate outwards.

    Coordinates `at`, shape (k,), are values or their logarithms to base 10; `slopes` are
    derivatives of the deviances by them. `limit` is the coordinate of the end of the interval, or
    NaN; `unchecked` is true if time ran out before it was compared with other optima. `better` is a
    vector that fits better than the estimate, or empty; `optima`, shape (k, n), are those reached
    from here.
    """

    at: Array
    deviances: Array
    slopes: Array
    vectors: Array
    limit: float
    end: End
    reason: str
    better: Array
    evaluations: int
    minimisations: int
    optima: Array = field(default_factory=lambda: np.zeros((0, 0)))
    unchecked: bool = False


@dataclass(frozen=True, eq=False)
class Profile:
    """The profile likelihood of an unknown or of another quantity.

    Attributes
    ----------
    key
        The unknown, or the name of the quantity.
    text
        The expression as it was given; empty for an unknown.
    logarithmic
        Whether steps were logarithmic.
    estimate
        Its value at the optimum.
    values
        Increasing values in natural units, shape (k,), including the estimate.
    deviances
        The deviances there, shape (k,).
    slopes
        Their derivatives by the value, or by its logarithm to base 10 if `logarithmic`, shape (k,).
    vectors
        The best values of all unknowns there, shape (k, n).
    lower, upper
        The ends of the interval; infinite if it is open, NaN if the end was not found.
    ends
        The ends of the lower and the upper side.
    reasons
        The reasons for these ends, if they need words.
    unchecked
        Whether the lower and the upper limit were not compared with other optima, because time ran
        out.
    linear
        The limits of the interval by linearisation, NaN without one.
    verdict
        The judgement of the profile on the quantity.
    sentence
        The profile in words.
    evaluations, minimisations
        Numbers of evaluations of the model and of fits.
    intervals
        The intervals of all values that fit, if distant solutions make several; else empty.
    """

    key: str
    text: str
    logarithmic: bool
    estimate: float
    values: Array
    deviances: Array
    slopes: Array
    vectors: Array
    lower: float
    upper: float
    ends: tuple[End, ...]
    reasons: tuple[str, ...]
    linear: tuple[float, ...]
    verdict: Verdict
    sentence: str
    evaluations: int
    minimisations: int
    unchecked: tuple[bool, bool] = field(default=(False, False), metadata={"optional": True})
    intervals: tuple[tuple[float, float], ...] = field(default=(), metadata={"optional": True})

    @property
    def closed(self) -> bool:
        """True if the interval has two limits."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)


@dataclass(frozen=True, eq=False)
class ProfilesData:
    """Some profile likelihoods of a fit.

    Attributes
    ----------
    profiles
        The profiles.
    level
        The level of the intervals, e.g. 0.95.
    limit
        The deviance up to which values belong to an interval.
    vector
        The optimum of the profiles, shape (n,).
    objective
        Its weighted sum of squares.
    adopted
        Whether that is a better optimum than the estimate of the fit, found on the way.
    status, message
        The end of the work, as an enumeration and in words.
    evaluations, minimisations
        Numbers of evaluations of the model and of fits, including those of abandoned profiles.
    seconds
        The wall time.
    """

    profiles: tuple[Profile, ...]
    level: float
    limit: float
    vector: Array
    objective: float
    adopted: bool
    status: Status
    message: str
    evaluations: int
    minimisations: int
    seconds: float
