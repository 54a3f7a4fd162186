"""Other optima within the noise are solutions of the result, and its profiles begin there too."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit import MultiStart, Problem, Result, SingleShooting
from odefit.assessment.profiles.parts import Verdict
from odefit.common.arrays import Array
from odefit.fitting.fit_result import result_of
from odefit.fitting.fit_stages import Wishes
from odefit.fitting.optimum_search import OptimumSearch
from odefit.fitting.other_optima import _limited
from odefit.methods.estimate import Status
from odefit.methods.running.control import Control
from odefit.reporting.notices import notice_sentence
from odefit.result_data.notices import NoticeKind
from odefit.simulation.engines.cut_off import CutOffError

WANTED = Wishes(0.95, True, True, False, "as-is")

TIMES = np.arange(12.0)
TRUTH = 1.0
SD = 0.2


def oscillation(jitter: float, sd: float = SD, upper: float = 6.0) -> Problem:
    """x = cos(w t) at whole numbers, where w and 2 pi - w are one; `jitter` tells them apart."""
    random = np.random.default_rng(4)
    times = TIMES + jitter * np.sin(7 * TIMES)
    values = np.cos(TRUTH * times) + sd * random.standard_normal(len(times))
    return Problem(
        odefit.Model(ode={"x": "w*v", "v": "-w*x"}),
        {"t": times, "x": values},
        {"w": {"lower": 0.2, "upper": upper}},
        {"x": 1.0, "v": 0.0},
        noise={"x": {"sd": sd}},
        t0=0.0,
    )


@cache
def fitted(jitter: float, upper: float = 6.0) -> Result:
    return odefit.fit(oscillation(jitter, upper=upper), MultiStart(starts=12), seed=1, jobs=1)


def alias(result: Result) -> list[float]:
    return sorted(s.vector[0] for s in result.solutions)


def test_an_alias_within_the_noise_is_a_solution_that_fits() -> None:
    result = fitted(0.02)
    (notice,) = [n for n in result.notices if n.kind is NoticeKind.NEAR_SOLUTIONS]
    assert (notice.numbers["count"], notice.numbers["equal"], notice.names) == (2.0, 1.0, ("w",))
    assert result.ambiguous
    assert "2 different solutions fit the data within their noise" in " ".join(result.warnings)
    best, other = result.solutions[:2]
    deviance = other.objective - best.objective
    assert 0.01 < deviance < 3.84
    assert sorted((best.vector[0], other.vector[0])) == pytest.approx(
        [TRUTH, 2 * math.pi - TRUTH], abs=0.1
    )


def test_an_optimum_that_noise_does_not_explain_does_not_fit() -> None:
    result = fitted(0.1)
    assert len(result.solutions) > 1
    assert result.solutions[1].objective - result.solutions[0].objective > 3.84
    assert not result.ambiguous


def test_a_profile_has_an_interval_at_each_solution() -> None:
    (profile,) = fitted(0.02).profile(jobs=1).profiles
    assert profile.verdict is Verdict.SEVERAL_INTERVALS
    assert len(profile.intervals) == 2
    for (low, high), right in zip(profile.intervals, (TRUTH, 2 * math.pi - TRUTH), strict=True):
        assert low < right < high < low + 0.5
    assert (profile.lower, profile.upper) == (profile.intervals[0][0], profile.intervals[1][1])
    assert " < w < " in profile.sentence
    assert " or " in profile.sentence
    assert "several intervals" in profile.sentence


@pytest.mark.slow
def test_each_interval_is_that_of_the_same_problem_with_one_solution(tmp_path: Path) -> None:
    result = fitted(0.02)
    (both,) = result.profile(jobs=1).profiles
    (alone,) = fitted(0.02, upper=3.0).profile(jobs=1).profiles
    assert alone.verdict is Verdict.IDENTIFIABLE
    lowest = min(s.objective for s in result.solutions)
    if fitted(0.02, upper=3.0).objective == pytest.approx(lowest, rel=1e-9):
        assert both.intervals[0] == pytest.approx((alone.lower, alone.upper), rel=1e-4)
    else:
        assert alone.lower < both.intervals[0][0] < both.intervals[0][1] < alone.upper
    kept = result.with_profiles(result.profile(jobs=1))
    kept.save(tmp_path / "r.json")
    back = odefit.load_result(tmp_path / "r.json")
    assert back.profiles is not None
    assert back.profiles.profiles[0].intervals == both.intervals


@pytest.mark.slow
def test_equal_solutions_have_profiles_of_both() -> None:
    (profile,) = fitted(0.0).profile(jobs=1).profiles
    assert len(profile.intervals) == 2
    assert sum(profile.intervals[0]) + sum(profile.intervals[1]) == pytest.approx(4 * math.pi)


def test_a_limit_that_ends_the_search_for_other_solutions_is_reported_and_nothing_has_converged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit passes before the second place that follows from the answer."""
    follow = OptimumSearch.follow

    def slow(self: OptimumSearch, vector: Array, index: int) -> bool:
        follow(self, vector, index)
        self.cut = True
        return False

    monkeypatch.setattr(OptimumSearch, "follow", slow)
    monkeypatch.setattr(Control, "out_of_time", property(lambda self: self.deadline is not None))
    problem = oscillation(0.0)
    control = Control(jobs=1, deadline=0.0)
    estimate = SingleShooting().solve(problem.with_unknowns(guess={"w": 1.0}), Control(jobs=1))
    result = result_of(problem, SingleShooting(), estimate, control, 0.0, WANTED)
    assert result.status is Status.TIME_LIMIT
    (notice,) = [n for n in result.notices if n.kind is NoticeKind.SOLUTIONS_CUT]
    assert notice_sentence(notice).startswith("The time limit ended the search for other solutions")


def test_places_that_follow_from_the_answer_are_tried_however_short_the_search_was() -> None:
    """One start, whose evaluations would allow for hardly any others."""
    problem = oscillation(0.0)
    for guess in (1.0, 5.3):
        start = {"w": guess}
        result = odefit.fit(problem, SingleShooting(), start=start, jobs=1)
        assert alias(result) == pytest.approx([TRUTH, 2 * math.pi - TRUTH], abs=0.1)
        assert result.params["w"].value == pytest.approx(TRUTH, abs=0.1)


def test_a_search_that_ended_at_its_limit_leaves_time_for_the_stages_after_its_optima() -> None:
    problem = oscillation(0.0)
    ended = SingleShooting().solve(problem, Control(jobs=1))
    control = Control(jobs=1).ending_in(1000.0)
    late = replace(ended, status=Status.TIME_LIMIT)
    assert _limited(control, late).seconds_left == pytest.approx(600.0, abs=5.0)
    settled = replace(ended, status=Status.CONVERGED)
    assert _limited(control, settled) is control
    assert _limited(Control(jobs=1), late).deadline is None


def test_a_cut_off_leaves_the_solutions_that_fit_without_intervals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def cut(*arguments: object) -> None:
        raise CutOffError

    whole = fitted(0.02)
    monkeypatch.setattr("odefit.fitting.other_optima.fitting_solutions", cut)
    result = odefit.fit(oscillation(0.02), MultiStart(starts=12), seed=1, jobs=1)
    assert result.ambiguous
    assert [s.vector[0] for s in result.fitting] == [s.vector[0] for s in whole.fitting]
    for one, other in zip(result.fitting, whole.fitting, strict=True):
        assert one.deviance == pytest.approx(other.deviance, abs=1e-6)
    best, second = (s.intervals for s in result.fitting)
    assert np.isfinite(best).all()
    assert np.isnan(second).all()
    result.save(tmp_path / "r.json")
    back = odefit.load_result(tmp_path / "r.json")
    assert np.isnan(back.fitting[1].intervals).all()
    back.report(tmp_path / "r.html")
    assert "2 different solutions" in (tmp_path / "r.html").read_text(encoding="utf-8")
