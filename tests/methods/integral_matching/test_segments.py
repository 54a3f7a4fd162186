"""States as functions of time, of the series that there are."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import InputError, Model
from odefit.methods.integral_matching.segments import smoothed_segments
from odefit.methods.smoothing import SplineByNoise
from tests.methods.integral_matching.problems import DECAY, T, decay

MODEL = Model(ode={"x": "-a*x"}, observables={"y": "x", "z": "2*x"})
RARELY = np.where(np.isin(T, T[10:12]), 2 * DECAY, np.nan)
"""Two measurements, of which no spline can be made."""


def test_a_series_too_short_is_left_out_if_another_determines_the_states() -> None:
    problem = decay(model=MODEL, data={"t": T, "y": DECAY, "z": RARELY})
    (segment,), reasons = smoothed_segments(problem, SplineByNoise(), {"x"})
    assert not reasons
    assert set(segment.sds) == {"y"}
    assert segment.states["x"] == pytest.approx(np.exp(-0.7 * segment.grid.times), rel=1e-6)


def test_a_series_too_short_is_refused_if_no_other_determines_the_states() -> None:
    rarely = np.where(np.isnan(RARELY), np.nan, DECAY)
    problem = decay(model=MODEL, data={"t": T, "y": rarely, "z": RARELY})
    with pytest.raises(InputError, match=r"y from t = 0 to 4: .*needs at least 4 points, got 2"):
        smoothed_segments(problem, SplineByNoise(), {"x"})
