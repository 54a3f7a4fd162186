"""Profiles as users meet them: table, text, figure, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Model, Problem
from odefit.common.errors import InputError

TIMES = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0])
VALUES = 3.0 * np.exp(-0.4 * TIMES) + np.array([0.1, 0.3, -0.2, 0.25, 0.1, -0.3, 0.2])


@pytest.fixture(scope="module")
def result() -> odefit.Result:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": VALUES},
        {"k": {"lower": 1e-4, "upper": 100.0, "guess": 0.5, "scale": "log10"}},
        {"x": {"guess": 2.0, "lower": 0.0}},
        noise={"x": {"sd": 0.25}},
    )
    return odefit.fit(problem, jobs=1)


@pytest.fixture(scope="module")
def profiles(result: odefit.Result) -> odefit.Profiles:
    return result.profile(["k"], expressions=["area = x/k", "far = 1/k^6"])


def test_the_table_has_both_intervals_and_the_verdict(profiles: odefit.Profiles) -> None:
    table: Any = profiles.table
    assert list(table.index) == ["k", "area", "far"]
    assert table.loc["k", "ci_low"] == profiles["k"].lower
    assert table.loc["k", "verdict"] == "identifiable"
    assert table.attrs["level"] == 0.95
    # The area is a ratio of estimates: its interval is far from symmetric.
    above = table.loc["area", "ci_high"] - table.loc["area", "estimate"]
    below = table.loc["area", "estimate"] - table.loc["area", "ci_low"]
    assert above > 1.2 * below


def test_the_text_says_where_the_linear_interval_is_wrong(profiles: odefit.Profiles) -> None:
    text = str(profiles)
    assert "95 % intervals" in text
    assert "cannot be trusted" in profiles["far"].sentence
    assert profiles["far"].sentence in text
    assert "refits with" in text


def test_a_key_without_profile_is_named(profiles: odefit.Profiles) -> None:
    with pytest.raises(KeyError, match="k, area, far"):
        profiles["q"]


def test_a_file_gives_the_same_profiles_back(
    result: odefit.Result, profiles: odefit.Profiles, tmp_path: Path
) -> None:
    assert result.profiles is None
    result.with_profiles(profiles).save(tmp_path / "result.json")
    again = odefit.load_result(tmp_path / "result.json").profiles
    assert isinstance(again, odefit.Profiles)
    assert str(again) == str(profiles)
    assert np.array_equal(again["k"].deviances, profiles["k"].deviances)


@pytest.mark.slow
def test_the_figure_has_a_panel_for_each(profiles: odefit.Profiles) -> None:
    figure = profiles.plot()
    drawn = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_xlabel() for axes in drawn] == ["k", "area", "far"]
    assert len(profiles.plot(["k"]).axes) == 1


def test_the_curve_passes_the_limit_at_the_ends(profiles: odefit.Profiles) -> None:
    k = profiles["k"]
    assert np.all(np.diff(k.values) > 0)
    inside = (k.values > k.lower) & (k.values < k.upper)
    assert np.all(k.deviances[inside] < profiles.limit)
    assert np.all(k.deviances[~inside] > 0.99 * profiles.limit)


def test_an_invalid_level_is_refused(result: odefit.Result) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        result.profile(level=95)
    with pytest.raises(InputError, match="jobs: expected a positive number"):
        result.profile(jobs=0)


def test_a_wider_level_has_a_wider_interval(
    result: odefit.Result, profiles: odefit.Profiles
) -> None:
    wide = result.profile(["k"], level=0.99)["k"]
    assert wide.lower < profiles["k"].lower
    assert wide.upper > profiles["k"].upper


@pytest.mark.slow
def test_the_report_has_a_section_where_the_result_has_profiles(
    result: odefit.Result, profiles: odefit.Profiles, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    plain = tmp_path / "report.md"
    result.report(plain)
    assert "Profile likelihood" not in plain.read_text(encoding="utf-8")
    result.with_profiles(profiles).report(plain)
    assert "Profile likelihood" in plain.read_text(encoding="utf-8")
    result.with_profiles(profiles).report(page)
    text = page.read_text(encoding="utf-8")
    assert '<section id="profiles"' in text
    assert "95 % intervals by the likelihood ratio" in text
    assert "cannot be trusted" in text
