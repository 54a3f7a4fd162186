"""Cubics of which the crossing and the departure from a parabola are known."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.cubics import crossing, departure


def test_a_parabola_crosses_one_at_its_root_and_departs_by_nothing() -> None:
    """3 s^2 + s/2 on 0 to 2, where it is one at s = 1/2."""
    values, slopes = (0.0, 13.0), (0.5, 12.5)
    assert crossing(2.0, values, slopes) == pytest.approx(0.25, rel=1e-8)
    assert departure(2.0, values, slopes) == pytest.approx(0.0, abs=1e-12)


def test_the_departure_is_the_largest_distance_from_the_parabola_with_the_same_ends() -> None:
    """s^3 beside the parabola with its ends and the change of its slope, (3 s^2 - s)/2."""
    s = np.linspace(0.0, 1.0, 100_001)
    largest = np.abs(s**3 - (3 * s**2 - s) / 2).max()
    assert departure(1.0, (0.0, 1.0), (0.0, 3.0)) == pytest.approx(largest, rel=1e-6)
