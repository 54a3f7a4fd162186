"""Intervals of quantities: over all solutions, and withheld where a linear one is far too short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.assessment.functionals.over_time import over_time
from odefit.assessment.predictions.bands import NoBand
from odefit.assessment.predictions.quantity_intervals import linear_intervals, profiled_intervals
from odefit.assessment.profiles.parts import ProfilesData
from odefit.assessment.profiles.profiling import profile_all
from odefit.common.arrays import Array
from odefit.simulation import ForwardMap
from tests.assessment.predictions.test_band_checks import fitted

TIMES = np.linspace(0.0, 10.0, 11)
DRIFT = 4.0 * TIMES + 0.1 * np.cos(7.0 * TIMES)


def mirrored() -> odefit.Problem:
    """Return a problem with a slope w^2, which both signs of w explain; the state h tells them."""
    return odefit.Problem(
        odefit.Model({"h": "5 + w - h", "s": "w^2"}, observables={"y": "s"}),
        {"t": TIMES, "y": DRIFT},
        {"w": {"lower": -4.0, "upper": 4.0}},
        {"h": 0.0, "s": 0.0},
        noise={"y": {"sd": 0.1}},
    )


def intervals_of(problem: odefit.Problem, *vectors: list[float], by: str = "linear") -> Array:
    """Return the interval of the integral of h over solutions that fit equally well."""
    forward = ForwardMap(problem)
    quantity = over_time(problem, "A = integral(h)", problem.conditions[0].name)
    solutions = [(np.array(v), 0.0) for v in vectors]
    if by == "linear":
        (one,) = linear_intervals(forward, solutions, [quantity], 0.95)
    else:
        (one,) = profiled_intervals(forward, solutions, [quantity], 0.95, odefit.Control())
    return np.array([one.low, one.high])


def test_intervals_contain_those_of_all_solutions() -> None:
    result = odefit.fit(mirrored(), seed=0, jobs=1)
    assert len(result.fitting) == 2
    w = abs(float(result.best.vector[0]))
    low, high = intervals_of(result.problem, [w]), intervals_of(result.problem, [-w])
    assert low[0] > high[1]
    for by in ("linear", "profile"):
        table = result.quantities("A = integral(h)", by=by)
        row = table.iloc[0]
        assert [row["ci_low"], row["ci_high"]] == pytest.approx([high[0], low[1]], rel=1e-3)
        (note,) = table.attrs["notes"]
        assert note == (
            "2 solutions fit the data within their noise: intervals are over all of them, values "
            "and standard errors are those of the best"
        )


def test_a_solution_above_the_limit_of_the_level_has_no_part() -> None:
    problem = mirrored()
    forward = ForwardMap(problem)
    quantity = over_time(problem, "A = integral(h)", problem.conditions[0].name)
    both = [(np.array([2.0]), 0.0), (np.array([-2.0]), 2.0)]
    (wide,) = linear_intervals(forward, both, [quantity], 0.95)
    (narrow,) = linear_intervals(forward, both, [quantity], 0.8)
    assert (wide.solutions, narrow.solutions) == (2, 1)
    assert wide.low < narrow.low


@pytest.mark.parametrize("least", [0.0, -5.0])
def test_a_quantity_that_bends_has_no_linear_interval(least: float) -> None:
    """The slope w is at its bound 0, or hardly determined; h changes with its square."""
    result = fitted(100.0, least=least)
    row = result.quantities("A = integral(h)").iloc[0]
    assert row[["std_error", "ci_low", "ci_high"]].isna().all()
    (note,) = result.quantities("A = integral(h)").attrs["notes"]
    reason = " once w leaves its bound" if least == 0.0 else ", as the model bends within it"
    assert f"values far beyond a linear one fit as well{reason}; take" in note
    profile = result.quantities("A = integral(h)", by="profile").iloc[0]
    assert profile[["std_error", "ci_low", "ci_high"]].notna().all()
    straight = fitted(0.0, least=least).quantities("A = integral(h)").iloc[0]
    assert straight["ci_low"] < straight["value"] < straight["ci_high"]


def test_a_missing_standard_error_beside_a_profile_has_its_reason() -> None:
    problem = odefit.Problem(
        odefit.Model({"h": "c*d - h"}, observables={"y": "c - 0*d"}),
        {"t": TIMES, "y": 5.0 + 0.1 * np.cos(7.0 * TIMES)},
        {"c": (0.0, 20.0), "d": (1.0, 2.0)},
        {"h": 0.0},
        noise={"y": {"sd": 0.1}},
    )
    result = odefit.fit(problem, odefit.SingleShooting(), start={"c": 5.0, "d": 1.5}, jobs=1)
    table = result.quantities("A = integral(h)", by="profile")
    assert np.isnan(table["std_error"][0])
    assert any(note.startswith("no standard error of A ") for note in table.attrs["notes"])


def test_a_missing_end_of_a_profile_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """An end where refits fail is sought as the farthest value that fits, else it has a reason."""
    whole = intervals_of(mirrored(), [2.0], by="profile")

    def without_end(*arguments: Any) -> ProfilesData:
        profiles = profile_all(*arguments)
        (profile,) = profiles.profiles
        return replace(profiles, profiles=(replace(profile, lower=np.nan),))

    place = "odefit.assessment.predictions.quantity_intervals.profile_all"
    monkeypatch.setattr(place, without_end)
    assert intervals_of(mirrored(), [2.0], by="profile") == pytest.approx(whole, rel=1e-3)
    monkeypatch.setattr("odefit.assessment.farthest_values.MAX_STEPS", 0)
    forward = ForwardMap(mirrored())
    quantity = over_time(mirrored(), "A = integral(h)", mirrored().conditions[0].name)
    solutions = [(np.array([2.0]), 0.0)]
    (one,) = profiled_intervals(forward, solutions, [quantity], 0.95, odefit.Control())
    assert np.isnan(one.low)
    assert one.lacking == (NoBand.NOT_COMPUTED,)
