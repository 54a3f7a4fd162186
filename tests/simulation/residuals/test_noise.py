"""Residuals of one observable under its noise model, against SciPy's distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import odefit
from odefit import ForwardMap
from odefit.simulation import Failure
from tests.simulation.numerics import integrated

MEANS = np.array([0.5, 4.0, 30.0])
COUNTS = np.array([1.0, 2.0, 41.0])


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        ({"distribution": "poisson"}, stats.poisson(MEANS)),
        (
            {"distribution": "negative-binomial", "dispersion": 0.25},
            stats.nbinom(4.0, 1 / (1 + 0.25 * MEANS)),
        ),
    ],
    ids=["poisson", "negative binomial"],
)
def test_the_standard_deviations_of_counts_are_those_of_their_distribution(
    noise: dict[str, Any], law: Any
) -> None:
    """Not the dispersion, which is what the noise model gives; Pearson's residuals have them."""
    problem = odefit.Problem(
        odefit.Model(ode={"x": "0"}, inputs={"u": "linear"}, observables={"y": "k*u + x"}),
        data={"t": [0.0, 1.0, 2.0], "u": MEANS, "y": COUNTS},
        parameters={"k": {}},
        initial={"x": 0.0},
        noise={"y": noise},
    )
    forward = ForwardMap(problem)
    one = np.ones(1)
    (block,) = forward.series_residuals(one, [integrated(forward, one)])
    assert not isinstance(block, Failure)
    assert block.sds == pytest.approx(law.std(), rel=1e-12)
    assert block.distances == pytest.approx((MEANS - COUNTS) / law.std(), rel=1e-12)
