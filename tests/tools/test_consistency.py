"""Results do not contradict themselves, and the tool that says so sees results that do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import odefit
from consistency import contradictions, profile_contradictions, quantity_contradictions

TIMES = np.linspace(0.0, 4.0, 9)


def mirrored(data: Any, sd: Any = 0.1, **options: Any) -> odefit.Problem:
    """Return a problem with the slope w^2, whose sign the state h tells; c may be undetermined."""
    return odefit.Problem(
        odefit.Model({"h": "5 + w + c - h", "s": "w^2 + b"}, observables={"y": "s"}),
        {"t": TIMES, "y": data},
        {
            "w": {"lower": -4.0, "upper": 4.0},
            "b": {"lower": 0.0, "upper": 10.0},
            "c": {"lower": 0.0, "upper": 1.0},
        }
        | options,
        {"h": 0.0, "s": 0.0},
        noise={} if sd is None else {"y": {"sd": sd}},
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    slope=st.floats(-1.0, 16.0),
    seed=st.integers(0, 1000),
    fixed=st.sets(st.sampled_from(["b", "c"])),
    sd=st.sampled_from([0.1, "estimate", None]),
)
def test_no_number_lacks_its_reason_and_no_interval_leaves_out_a_solution(
    slope: float, seed: int, fixed: set[str], sd: Any
) -> None:
    """The bounds of w and b may be active, two solutions merge at w = 0, c is not determined."""
    noise = 0.1 * np.random.default_rng(seed).standard_normal(len(TIMES))
    problem = mirrored(slope * TIMES + noise, sd, **dict.fromkeys(fixed, 0.5))
    result = odefit.fit(problem, odefit.MultiStart(starts=6), seed=seed, jobs=1)
    assert contradictions(result) == []
    try:
        profiles = result.profile(jobs=1)
    except odefit.InputError:
        return
    assert list(profile_contradictions(result, profiles)) == []
    assert list(quantity_contradictions(result, "profile")) == []


@pytest.fixture(scope="module")
def several() -> odefit.Result:
    noise = 0.1 * np.random.default_rng(1).standard_normal(len(TIMES))
    result = odefit.fit(mirrored(4.0 * TIMES + noise, b=0.0, c=0.5), seed=0, jobs=1)
    assert len(result.fitting) == 2
    assert contradictions(result) == []
    return result


def test_an_interval_without_one_of_the_solutions_is_seen(several: odefit.Result) -> None:
    first, other = several.solutions
    alone = replace(first, intervals=((1.9, 2.1),))
    short = replace(several, solutions=(alone, replace(other, intervals=((1.9, 2.1),))))
    found = contradictions(short)
    assert any(text.startswith("parameters: w of solution ") for text in found)
    assert all("outside of [1.9, 2.1]" in text for text in found)


def test_a_limit_without_one_of_the_solutions_is_seen(several: odefit.Result) -> None:
    profiles = several.profile(jobs=1)
    assert list(profile_contradictions(several, profiles)) == []
    (profile,) = profiles.profiles
    short = replace(profiles, profiles=(replace(profile, lower=0.0),))
    (text,) = profile_contradictions(several, short)
    assert text.startswith("profile of w: solution ")
    lost = replace(profiles, profiles=(replace(profile, lower=np.nan, ends=("limit", "limit")),))
    assert "profile of w: an end is missing without a reason" in profile_contradictions(
        several, lost
    )


def test_a_missing_number_without_a_note_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = 0.1 * np.random.default_rng(1).standard_normal(len(TIMES))
    result = odefit.fit(mirrored(4.0 * TIMES + noise), odefit.SingleShooting(), seed=0, jobs=1)
    assert contradictions(result) == []
    for module in ("predictions", "quantities"):
        name = "band_notes" if module == "predictions" else "_notes"
        monkeypatch.setattr(f"odefit.reporting.{module}.{name}", lambda *_: ())
    found = contradictions(result)
    assert "predict: ci_low of h is missing without a note" in found
    assert any(text.startswith("quantities: area_of_h lacks") for text in found)
