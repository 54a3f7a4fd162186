"""The distribution of the likelihood ratio of nested models, also for few measurements.

If the noise is given, it is chi-square. If standard deviations are estimated, few measurements make
larger ratios likely. With one standard deviation the ratio is a function of the F statistic. With
several of them, or noise that is not normal, it comes from simulated fits of the linearised model
(:mod:`odefit.assessment.intervals.simulated_fits`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.common.arrays import Array
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED


class TestKind(Enum):
    """The distribution of the statistic of a test of nested models."""

    __test__ = False  # pytest must not collect it

    F = "F"
    CHI_SQUARE = "likelihood ratio"
    SIMULATED = "simulated likelihood ratio"


@dataclass(frozen=True)
class RatioTest:
    """A statistic, its distribution, and the probability of a value at least as large."""

    kind: TestKind
    statistic: float
    p: float


def ratio_test(
    larger: Problem, vector: Array, held: tuple[int, ...], more: int, statistic: float
) -> RatioTest:
    """Return the test of a smaller model against a larger one.

    Parameters
    ----------
    larger, vector
        The larger model and its best values, shape (n,).
    held
        The numbers of the unknowns that the smaller model fixes; empty if they are not known.
    more
        The number of additional parameters of the larger model.
    statistic
        The difference of -2 log L.
    """
    from scipy.special import chdtrc

    usual = RatioTest(TestKind.CHI_SQUARE, statistic, float(chdtrc(more, max(statistic, 0.0))))
    forward = ForwardMap(larger)
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure):
        return usual
    fits = SimulatedFits.for_limits(forward, vector, evaluation)
    if fits is not None:
        gradients = np.eye(len(vector))[[i for i in held if i in fits.unknowns]]
        if len(gradients) != more:
            return usual
        above = float(np.sum(fits.deviances(gradients) >= statistic))
        return RatioTest(TestKind.SIMULATED, statistic, (above + 1) / (fits.samples + 1))
    deviance = Deviance.of(forward, vector, evaluation)
    return f_test(statistic, deviance.estimated, deviance.degrees, more) or usual


def f_test(statistic: float, count: int, degrees: float, more: int) -> RatioTest | None:
    """Return the F test; None if no noise is estimated, or too few values inform about it.

    The ratio of n values with one estimated standard deviation is n log(1 + m F/v), with m
    parameters `more` and v `degrees` of freedom of the larger model.
    """
    from scipy.special import fdtrc

    if not (count and degrees > 0):
        return None
    f = degrees / more * math.expm1(statistic / count)
    return RatioTest(TestKind.F, f, float(fdtrc(more, degrees, max(f, 0.0))))
