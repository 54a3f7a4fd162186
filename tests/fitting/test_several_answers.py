"""A result with several solutions that fit refutes none of its own intervals, limits and bands."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odefit
from odefit import MultiStart, Problem, Result
from odefit.assessment.profiles.parts import Verdict
from odefit.common.errors import InputError
from odefit.result_data.notices import NoticeKind

COUNT = 16
SLOPES = (6.0, -3.0, 6.0)
"""Derivatives of p (p - 3)^2 at its three values of 2, which are 2 - sqrt(3), 2 and 2 + sqrt(3)."""


def cubic(level: float = 2.0, sd: float = 0.1, seed: int = 0, scatter: bool = False) -> Problem:
    """The mean of some measurements is that of p (p - 3)^2, and the half-life of x is 1/p."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal(COUNT)
    values = level + sd * (noise if scatter else noise - noise.mean())
    return Problem(
        odefit.Model(ode={"x": "-p*x"}, observables={"y": "p*(p - 3)^2 + 0*x"}),
        {"t": np.linspace(0.0, 1.0, COUNT), "y": values},
        {"p": {"lower": 0.05, "upper": 5.0}},
        {"x": 1.0},
        noise={"y": {"sd": sd}},
    )


@cache
def fitted() -> Result:
    return odefit.fit(cubic(), MultiStart(starts=10), seed=1, jobs=1)


def test_weights_are_those_of_the_volumes() -> None:
    """All fit equally well, and each volume is the inverse of the slope there."""
    solutions = sorted(fitted().fitting, key=lambda s: s.vector[0])
    right = np.abs(1 / np.array(SLOPES))
    assert [s.weight for s in solutions] == pytest.approx((right / right.sum()).tolist(), rel=2e-3)
    assert [s.deviance for s in solutions] == pytest.approx([0.0] * 3, abs=1e-6)


def test_each_solution_has_the_interval_of_the_delta_method() -> None:
    for solution, slope in zip(
        sorted(fitted().fitting, key=lambda s: s.vector[0]), SLOPES, strict=True
    ):
        half = stats.norm.ppf(0.975) * 0.1 / math.sqrt(COUNT) / abs(slope)
        ((low, high),) = solution.intervals
        assert (high - low) / 2 == pytest.approx(half, rel=1e-3)


def test_the_table_has_the_intervals_of_all_and_the_first_lines_say_so() -> None:
    result = fitted()
    row = result.params["p"]
    assert row.ci is not None
    assert row.ci[0] < 2 - math.sqrt(3) < 2 + math.sqrt(3) < row.ci[1]
    assert row.note.startswith("3 solutions fit within the noise: 0.2")
    assert row.note.count(" or ") == 2
    table = result.parameters
    assert (table["ci_low"]["p"], table["ci_high"]["p"]) == row.ci
    head = " ".join(str(result).split())[:400]
    assert "3 solutions fit equally well: they differ in p." in head


def test_a_note_names_the_measurement_that_distinguishes_the_solutions() -> None:
    """The state x = exp(-p t) was not measured; its noise is taken as 5 % of its largest value."""
    result = fitted()
    (notice,) = [n for n in result.notices if n.kind is NoticeKind.SETTLED_BY]
    assert notice.names == ("x", "data", "")
    time, sd = notice.numbers["time"], notice.numbers["sd"]
    assert sd == pytest.approx(0.05)
    predicted = [notice.numbers[f"solution {k}"] for k in (1, 2, 3)]
    assert predicted == pytest.approx([math.exp(-s.vector[0] * time) for s in result.fitting])
    roots = (2 - math.sqrt(3), 2.0, 2 + math.sqrt(3))

    def least(t: float) -> float:
        """Return the least difference of two curves over its standard deviation."""
        curves = [math.exp(-p * t) for p in roots]
        errors = [t * c * 0.1 / math.sqrt(COUNT) / s for c, s in zip(curves, SLOPES, strict=True)]
        pairs = [(i, j) for i in range(3) for j in range(i)]
        return min(
            abs(curves[i] - curves[j]) / math.sqrt(sd**2 + errors[i] ** 2 + errors[j] ** 2)
            for i, j in pairs
        )

    assert notice.numbers["distance"] == pytest.approx(least(time), rel=1e-3)
    best = max(least(t) for t in np.linspace(0.0, 1.0, 401))
    assert best >= notice.numbers["distance"] > 0.99 * best
    assert any(w.startswith("Measuring x at ") for w in result.warnings)
    assert str(result.settle())[:-1] in result.warnings
    # Ends of further starts, which belong to these solutions, count no more than once.
    (first, *others) = result.solutions
    near = replace(first, vector=first.vector * 1.0001, deviance=None)
    more = replace(result, solutions=(first, near, *others))
    assert more.settle().predictions == result.settle().predictions


def test_a_plan_that_fails_costs_no_other_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr("odefit.fitting.settling.settling_of", broken)
    result = odefit.fit(cubic(), MultiStart(starts=10), seed=1, jobs=1)
    assert [f.stage for f in result.failed_stages] == ["measurement that settles"]
    kinds = {n.kind for n in result.notices}
    assert NoticeKind.EQUAL_SOLUTIONS in kinds
    assert NoticeKind.SETTLED_BY not in kinds


def test_solutions_that_fit_come_back_from_a_file(tmp_path: Path) -> None:
    result = fitted()
    result.save(tmp_path / "r.json")
    back = odefit.load_result(tmp_path / "r.json")
    known = [(s.deviance, s.weight, s.intervals) for s in result.fitting]
    assert [(s.deviance, s.weight, s.intervals) for s in back.fitting] == known


def test_bands_are_over_all_solutions_over_one_or_weighted() -> None:
    result, time = fitted(), 1.0
    curves = [math.exp(-p * time) for p in (2 - math.sqrt(3), 2.0, 2 + math.sqrt(3))]

    def ends(solutions: str) -> tuple[float, float]:
        table = result.predict([time], solutions=solutions)  # type: ignore[arg-type]
        row = table[table.name == "x"].iloc[0]
        return float(row.ci_low), float(row.ci_high)

    every, mixture, best = map(ends, ("all", "mixture", "best"))
    assert every[0] < min(curves) < max(curves) < every[1]
    assert every[0] < mixture[0] < mixture[1] < every[1]
    assert sum(best[0] < curve < best[1] for curve in curves) == 1
    table = result.predict([time])
    assert any("3 solutions fit the data" in note for note in table.attrs["notes"])
    with pytest.raises(InputError, match="did you mean 'mixture'"):
        result.predict([time], solutions="mixtures")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_profile_of_an_expression_is_a_union_too() -> None:
    (profile,) = fitted().profile(expressions=["twice = 2*p"], jobs=1).profiles
    (unknown,) = fitted().profile(["p"], jobs=1).profiles
    assert profile.verdict is Verdict.SEVERAL_INTERVALS
    for found, of_unknown in zip(profile.intervals, unknown.intervals, strict=True):
        assert found == pytest.approx([2 * end for end in of_unknown], rel=1e-3)


def test_a_bootstrap_fits_each_sample_from_all_solutions() -> None:
    values = fitted().bootstrap(30, seed=2, jobs=1).vectors[:, 0]
    assert {round(float(v)) for v in values} == {0, 2, 4}


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(st.floats(0.5, 3.5), st.sampled_from([0.02, 0.1, 0.4]), st.integers(0, 99))
def test_no_limit_is_refuted_by_the_list_of_solutions(level: float, sd: float, seed: int) -> None:
    result = odefit.fit(cubic(level, sd, seed, True), MultiStart(starts=6), seed=seed, jobs=1)
    row = result.params["p"]
    assert row.ci is not None or row.note
    table = result.predict([0.5, 1.0])
    (profile,) = result.profile(jobs=1).profiles
    for solution in result.fitting:
        (value,) = solution.vector
        assert row.ci is None or row.ci[0] <= value <= row.ci[1]
        if profile.closed:
            around = profile.intervals or ((profile.lower, profile.upper),)
            assert any(low <= value <= high for low, high in around)
        states = table[table["name"] == "x"]
        curve = np.exp(-value * states["t"].to_numpy(float))
        low, high = states["ci_low"].to_numpy(float), states["ci_high"].to_numpy(float)
        assert (np.isnan(low) | (low <= curve * 1.000001)).all()
        assert (np.isnan(high) | (high >= curve * 0.999999)).all()
    if table[["ci_low", "ci_high"]].isna().any(axis=None):
        assert table.attrs["notes"]
