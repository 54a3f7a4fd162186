"""Candidates on the true trajectories: which residuals are noise."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Control, Problem, Start
from odefit.methods.algebraic.derivatives import DataSegment
from odefit.methods.algebraic.trajectories import Trajectories
from odefit.methods.estimate import Status
from tests.methods.algebraic.models import LOGISTIC, LOGISTIC_TRUTH, TIMES, logistic


@pytest.mark.parametrize(
    ("error", "sd", "least", "expected"),
    [
        (1e-2, 1e-2, 1e-12, True),  # as large as the noise
        (1e-2, 1e-3, 1e-12, False),  # ten times the noise
        (1e-2, 0.0, 1e-12, False),  # noise of which the data show nothing
        (1e-2, 0.0, 1e-2, True),  # as small as what always counts as a fit
        (1e-15, 0.0, 1e-30, True),  # less than integrations can tell
    ],
)
def test_residuals_are_explained_by_the_noise_and_by_negligible_size(
    error: float, sd: float, least: float, expected: bool
) -> None:
    values = logistic(1.0) + error * (-1.0) ** np.arange(len(TIMES))
    problem = Problem(LOGISTIC, {"t": TIMES, "y": values}, {"k": {}, "j": {}}, {"x": {}})
    vector = problem.vector({**LOGISTIC_TRUTH, "x": 1.0})
    end = Start(0, vector, vector, 0.0, Status.CONVERGED, "", 1, 0.0)
    segment = DataSegment(0.0, 4.0, {"y": (TIMES, values)})
    trajectories = Trajectories(problem, "auto", Control())
    assert trajectories.explained(end, [segment], [{"y": sd}], least) == expected
