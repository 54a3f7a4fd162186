"""Knowledge before new measurements: values of the unknowns, data, and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

from odefit.assessment.parts import Uncertainty
from odefit.assessment.profiles.parts import ProfilesData
from odefit.common.arrays import Array
from odefit.designs.parts import Region


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The values, data and uncertainty available before the new measurements.

    Attributes
    ----------
    vectors
        Vectors of unknowns for which the design should be good, shape (S, n).
    estimate
        The vector at which intervals are planned, shape (n,).
    region
        The origin of the vectors.
    existing
        Whether the measurements of the problem count.
    variance
        The variance of the noise if the problem gives none; None if it is unknown.
    uncertainty, profiles
        The uncertainty and the profiles of a result, if there is one.
    """

    vectors: Array
    estimate: Array
    region: Region
    existing: bool
    variance: float | None = None
    uncertainty: Uncertainty | None = None
    profiles: ProfilesData | None = None
