"""A limit that fits of other profiles refute is not reported."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit.assessment.profiles.crosscheck import contradicted, refutation
from odefit.assessment.profiles.parts import Side

LIMIT = 4.0
AT = np.array([1.0, 2.0, 3.0])
SIDE = Side(AT, AT**2, 2 * AT, AT[:, None], 2.0, "limit", "", np.zeros(0), 0, 0)
"""The upper side of the deviance t^2, which meets its limit at two."""


def compared(side: Side, at: float, deviance: float, sign: int = 1) -> Side:
    points = np.array([at]), np.array([deviance])
    return contradicted(side, sign, 0.0, LIMIT, *points, ["other"], False)


@pytest.mark.parametrize(
    ("at", "deviance"),
    [
        (2.5, 6.25),  # on the curve
        (2.01, 3.98),  # beyond by what rounding explains
        (2.5, 3.99),  # beyond, but hardly below the limit
        (1.5, 2.0),  # below the curve, but not by a tenth of the limit
        (-2.5, 1.0),  # on the other side of the estimate
    ],
)
def test_an_unrefuted_limit_stands(at: float, deviance: float) -> None:
    assert compared(SIDE, at, deviance) is SIDE


def test_a_better_fit_beyond_a_limit_refutes_it() -> None:
    found = compared(SIDE, 2.5, 1.0)
    assert found.end == "contradicted"
    assert math.isnan(found.limit)
    assert "meets the limit at 2" in found.reason
    assert "the profile of other has a fit with 2.5 whose deviance is only 1" in found.reason


def test_a_fit_well_below_the_curve_refutes_its_limit() -> None:
    found = compared(SIDE, 1.5, 1.0)
    assert found.end == "contradicted"
    assert "below that of the curve by 1.25" in found.reason


def test_the_closest_of_several_fits_below_the_curve_is_reported() -> None:
    # A curve that is traced from there outwards reaches all the others.
    at, deviances = np.array([1.9, 1.4, 1.6, 0.8]), np.array([1.0, 1.2, 0.1, 0.6])
    found = refutation(SIDE, 1, 0.0, LIMIT, at, deviances, ["a", "b", "c", "d"], False)
    assert found is not None
    assert found[0] == 1
    assert "the profile of b has a fit with 1.4" in found[1]


def test_the_lower_side_is_compared_in_the_same_way() -> None:
    lower = replace(SIDE, at=-AT, slopes=-2 * AT, limit=-2.0)
    assert compared(lower, -2.5, 1.0, -1).end == "contradicted"
    assert compared(lower, -2.5, 6.25, -1) is lower
    assert compared(lower, 2.5, 1.0, -1) is lower


def test_an_open_end_cannot_be_refuted() -> None:
    # The curve is an upper bound of the profile: below the limit it stays below.
    side = replace(SIDE, end="bound", limit=math.nan)
    assert compared(side, 2.5, 1.0) is side
