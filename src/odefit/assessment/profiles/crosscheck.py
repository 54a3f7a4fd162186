"""Limits of profiles compared with the best fits found by other profiles.

A curve that follows a worse branch meets its limit too early. Each point of every other profile is
a fit as well. A fit beyond a limit, or clearly below the curve before it, shows that the curve is
not the lowest there. This needs no evaluation of the model. It can refute a limit, but not prove
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.profiles.parts import Side
from odefit.common.arrays import Array

BELOW = 0.02
"""Deviance below the limit, relative to it, above which a fit beyond the limit refutes it."""

ASIDE = 0.01
"""Distance beyond a limit, relative to its distance from the estimate, that may be rounding."""

UNDERCUT = 0.1
"""Deviance below the curve, relative to the limit, above which a fit inside refutes the limit."""


def contradicted(
    side: Side,
    sign: int,
    first: float,
    limit: float,
    coordinates: Array,
    deviances: Array,
    origins: Sequence[str],
    logarithmic: bool,
) -> Side:
    """Return a side, without its limit if fits of other profiles refute it.

    `sign` is 1 for the side of larger values, else -1; `first` is the coordinate of the estimate.
    The points of the other profiles, shape (m,), are given by the coordinate of this unknown, the
    deviance, and the name of their profile.
    """
    refuting = refutation(side, sign, first, limit, coordinates, deviances, origins, logarithmic)
    if refuting is None:
        return side
    return replace(side, limit=math.nan, end="contradicted", reason=refuting[1])


def refutation(
    side: Side,
    sign: int,
    first: float,
    limit: float,
    coordinates: Array,
    deviances: Array,
    origins: Sequence[str],
    logarithmic: bool,
) -> tuple[int, str] | None:
    """Return the fit that refutes the limit of a side, and the reason, or None.

    The arguments are those of :func:`contradicted`.
    """
    if side.end != "limit" or not len(coordinates):
        return None

    def value(at: float) -> str:
        return f"{10.0**at if logarithmic else at:.4g}"

    outward = sign * (coordinates - first)
    end = sign * (side.limit - first)
    beyond = (outward > (1 + ASIDE) * end) & (deviances < (1 - BELOW) * limit)
    if beyond.any():
        k = int(np.argmax(np.where(beyond, outward, -math.inf)))
        reason = (
            f"this curve meets the limit at {value(side.limit)}, but the profile of {origins[k]} "
            f"has a fit with {value(coordinates[k])} whose deviance is only {deviances[k]:.3g} "
            f"(limit {limit:.3g})"
        )
        return k, reason
    within = (outward > 0) & (outward < end)
    excess = np.where(within, _curve(side, sign, first, outward) - deviances, -math.inf)
    below = excess > UNDERCUT * limit
    if below.any():
        # The one closest to the estimate: a curve traced from there covers everything beyond.
        k = int(np.argmin(np.where(below, outward, math.inf)))
        reason = (
            f"this curve meets the limit at {value(side.limit)}, but the profile of {origins[k]} "
            f"has a fit with {value(coordinates[k])} whose deviance, {deviances[k]:.3g}, is below "
            f"that of the curve by {excess[k]:.3g} (limit {limit:.3g})"
        )
        return k, reason
    return None


def _curve(side: Side, sign: int, first: float, outward: Array) -> Array:
    """Return the deviance of the curve at some distances from the estimate.

    It is the lower of the cubics through the points with their derivatives and of straight lines. A
    value below both is below the curve, whether it bends or has a kink.
    """
    from scipy.interpolate import CubicHermiteSpline

    at, index = np.unique(np.concatenate([[0.0], sign * (side.at - first)]), return_index=True)
    deviances = np.concatenate([[0.0], side.deviances])[index]
    slopes = np.concatenate([[0.0], sign * side.slopes])[index]
    cubics = CubicHermiteSpline(at, deviances, slopes)(outward)
    return np.asarray(np.minimum(cubics, np.interp(outward, at, deviances)))
