"""Bands over several solutions, against closed forms and against each of them alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.predictions.bands import Band, BandSource, NoBand
from odefit.assessment.predictions.union_bands import Member, UnionBands, mixture_ends
from odefit.common.arrays import Array
from odefit.problem.condition import Condition
from odefit.simulation import Failure
from tests.assessment.lines import line

TIMES = np.array([0.0, 1.0])
KNOWN = Deviance(10.0, 1.0, math.inf, 0)
"""A deviance with the limit of the chi-square distribution."""


class Fixed:
    """A source of one band, whatever is asked for."""

    def __init__(self, centre: float, half: float, *, lacking: tuple[NoBand, ...] = ()) -> None:
        values = centre + 0.0 * TIMES
        ends = np.array([values - half, values + half])
        none = np.full((2, 2), np.nan)
        self.band = Band("x", True, TIMES, values, values, ends, ends, none, lacking=lacking)

    def bands(self, *_: object) -> list[Band]:
        return [self.band]


class Failing:
    def bands(self, *_: object) -> Failure:
        return Failure("e", 0.5, "it grows without bound")


def joined(*members: Member, level: float = 0.95, mixed: bool = False) -> Band | Failure:
    condition: Condition = line().conditions[0]
    found = UnionBands(members, KNOWN, mixed=mixed).bands(condition, TIMES, level)
    return found if isinstance(found, Failure) else found[0]


def member(source: BandSource, deviance: float = 0.0, weight: float = 0.5) -> Member:
    return Member(source, deviance, weight)


def ends(band: Band | Failure) -> Array:
    assert isinstance(band, Band)
    return band.confidence


def test_a_union_has_the_outermost_ends_and_the_curves_of_all() -> None:
    band = joined(member(Fixed(1.0, 0.5)), member(Fixed(4.0, 0.1), 2.0))
    assert ends(band)[:, 0] == pytest.approx([0.5, 4.1])
    assert isinstance(band, Band)
    assert band.values == pytest.approx(1.0)
    assert band.others.tolist() == [[4.0, 4.0]]


def test_a_solution_above_the_limit_of_the_level_has_no_part() -> None:
    members = member(Fixed(1.0, 0.5)), member(Fixed(4.0, 0.1), 2.0)
    assert stats.chi2.ppf(0.8, 1) < 2.0 < stats.chi2.ppf(0.9, 1)
    assert ends(joined(*members, level=0.8))[1, 0] == pytest.approx(1.5)
    assert ends(joined(*members, level=0.9))[1, 0] == pytest.approx(4.1)


def test_a_union_with_an_open_interval_is_open_with_a_reason() -> None:
    nothing = Fixed(4.0, math.nan, lacking=(NoBand.AT_A_BOUND,))
    band = joined(member(Fixed(1.0, 0.5)), member(nothing))
    assert np.isnan(ends(band)).all()
    assert isinstance(band, Band)
    assert band.lacking == (NoBand.AT_A_BOUND,)


def test_another_solution_that_cannot_be_integrated_is_reported() -> None:
    band = joined(member(Fixed(1.0, 0.5)), member(Failing()))
    assert np.isnan(ends(band)).all()
    assert isinstance(band, Band)
    assert band.lacking == (NoBand.ELSEWHERE,)
    assert isinstance(joined(member(Failing()), member(Fixed(1.0, 0.5))), Failure)


@pytest.mark.parametrize("weight", [0.03, 0.5, 0.9])
def test_the_ends_of_a_mixture_are_quantiles_of_its_distribution(weight: float) -> None:
    quantile = stats.norm.ppf(0.975)
    parts = member(Fixed(1.0, 0.5), 0.0, weight), member(Fixed(4.0, 0.1), 9.0, 1 - weight)
    found = ends(joined(*parts, mixed=True))[:, 0]

    def below(y: float) -> float:
        first = weight * stats.norm.cdf(y, 1.0, 0.5 / quantile)
        return float(first + (1 - weight) * stats.norm.cdf(y, 4.0, 0.1 / quantile))

    right = [optimize.brentq(lambda y, p=p: below(y) - p, -5, 9) for p in (0.025, 0.975)]
    assert found == pytest.approx(right, abs=1e-6)


def test_a_part_without_width_has_its_place_in_a_mixture() -> None:
    sides = [np.array([[1.0], [1.0]]), np.array([[2.0], [4.0]])]
    found = mixture_ends([np.array([1.0]), np.array([3.0])], sides, np.array([0.5, 0.5]), 0.9)
    assert found[0, 0] == pytest.approx(1.0)
    assert 3.0 < found[1, 0] < 4.0
