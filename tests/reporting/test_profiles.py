"""Proved intervals in words: rounded outwards, and never more than was proved."""

from __future__ import annotations

import math
from dataclasses import replace

from odefit.assessment.parts import ProvedInterval, ProvedRegion, Refutation
from odefit.reporting.profiles import (
    refutation_sentence,
    region_rows,
    region_sentence,
    region_title,
)

ONE = ProvedInterval("k1", 4.9000009, 6.0999991, (), (5.0, 6.0), (5.0000004, 6.0), (False, False))


def region(*intervals: ProvedInterval, complete: bool = True) -> ProvedRegion:
    return ProvedRegion(0.95, 3.84, 7.7750001, complete, 11, intervals)


def test_proved_intervals_are_rounded_outwards_and_stand_beside_the_profile() -> None:
    assert region_rows(region(ONE)) == [("k1", "4.9 to 6.1", "5 to 6")]
    assert region_title(region(ONE)) == "Proved 95 % intervals (likelihood ratio)"
    low = replace(ONE, lower=-4.9000009, upper=-1.23456789)
    assert region_rows(region(low))[0][1] == "-4.90001 to -1.23456"
    assert "is at most 7.77501, the limit" in region_sentence(region(ONE))


def test_limits_of_estimated_noise_are_said_to_be_others() -> None:
    own = "Profiles of estimated noise have limits of their own."
    assert own in region_sentence(replace(region(ONE), measure="-2 log L"))
    assert own not in region_sentence(region(ONE))


def test_an_end_at_a_bound_is_not_a_limit() -> None:
    texts = {
        (True, True): "no limits within the bounds",
        (True, False): "at most 6.1",
        (False, True): "at least 4.9",
    }
    for ends, text in texts.items():
        open_ends = replace(ONE, at_bounds=ends, profile=(-math.inf, math.inf))
        assert region_rows(region(open_ends))[0][1:] == (text, "no limits within the bounds")


def test_separate_intervals_are_listed_and_many_are_counted() -> None:
    two = replace(ONE, intervals=((4.9, 5.1), (5.9, 6.1)))
    assert region_rows(region(two))[0][1] == "4.9 to 5.1 or 5.9 to 6.1"
    many = replace(ONE, intervals=tuple((4.9 + k, 5.0 + k) for k in range(6)))
    assert region_rows(region(many))[0][1] == "6 intervals, 4.9 to 6.1"


def test_a_search_that_ended_early_says_how_long_its_intervals_are() -> None:
    wide = replace(ONE, lower=1.0, upper=7.0)
    sentence = region_sentence(region(wide, complete=False))
    assert "did not come to its end: an interval is up to 6 times as long" in sentence
    unknown = replace(ONE, fitting=(5.0, 5.0))
    assert "up to many times as long" in region_sentence(region(unknown, complete=False))


def test_a_refutation_rounds_its_probability_up() -> None:
    told = refutation_sentence(Refutation(60.1234567, 12, 2.1e-8, 0.95))
    assert "No values within the bounds of the unknowns reach a chi-square below 60.1234:" in told
    assert "the model is refuted (p < 3e-08, 12 degrees of freedom)" in told
    within = Refutation(831.5, 1, 0.0, 0.95, {"k": (0.1, 2.0)})
    assert "these as given to the method (k from 0.1 to 2)" in refutation_sentence(within)
    assert "1 degree of freedom" in refutation_sentence(within)
