"""Linear intervals that cannot be trusted are withheld or flagged, and the others are not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Control, Experiment, ForwardMap, Model, Problem, SingleShooting
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.assessment.profiles.linear_checks import checked, with_curvature
from odefit.reporting.sentences import verdict
from odefit.simulation import Evaluation
from odefit.simulation.blocks import Blocks

TIMES = np.linspace(0.25, 10.0, 40)


def enzyme(seed: int, scale: str | None = None) -> Problem:
    """Michaelis-Menten by mass action, of which only the product is measured."""
    model = Model(
        ode={
            "E": "-k1*E*S + (km1 + k2)*ES",
            "S": "-k1*E*S + km1*ES",
            "ES": "k1*E*S - (km1 + k2)*ES",
            "P": "k2*ES",
        },
        observables={"P": "P"},
    )
    rates = {k: {"lower": 1e-2, "upper": 1e5, "scale": scale} for k in ("k1", "km1", "k2")}
    initial = {"E": 0.1, "S": 10.0, "ES": 0.0, "P": 0.0}
    noise = {"P": {"sd": 0.1}}
    empty = Problem(model, {"t": TIMES, "P": np.zeros(40)}, rates, initial, noise=noise)
    exact = odefit.simulate(empty, np.array([100.0, 300.0, 10.0]), TIMES)
    assert not isinstance(exact, odefit.simulation.Failure)
    measured = exact.observables["P"] + 0.1 * np.random.default_rng(seed).normal(size=40)
    return Problem(model, {"t": TIMES, "P": measured}, rates, initial, noise=noise)


def decay(
    times: Any, values: Any, more: Mapping[str, Any] | None = None, sd: float = 0.25
) -> Problem:
    """x = 3 exp(-k t), with noise that is given."""
    return Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"lower": 0.0, "upper": 50.0, "guess": 0.5} | dict(more or {})},
        {"x": 3.0},
        noise={"x": {"sd": sd}},
    )


def assessed(problem: Problem, evaluations: int = 0) -> Uncertainty:
    forward = ForwardMap(problem)
    (start,) = SingleShooting().solve(problem, Control()).starts
    evaluation = forward.evaluate(start.vector)
    assert isinstance(evaluation, Evaluation)
    at = forward, start.vector, evaluation
    found = checked(*at, assess_uncertainty(*at))
    return with_curvature(*at, found, evaluations, lambda: False)


@pytest.mark.parametrize("scale", [None, pytest.param("log10", marks=pytest.mark.slow)])
def test_an_unknown_determined_only_with_another_at_its_bound_has_no_interval(
    scale: str | None,
) -> None:
    """The data determine (km1 + k2)/k1; an interval for k1 would hold for one km1 alone."""
    result = odefit.fit(enzyme(0, scale), jobs=1)
    table: Any = result.parameters
    assert table.loc["km1", "note"].startswith("at the upper bound")
    assert math.isnan(float(table.loc["k1", "ci_low"]))
    assert math.isnan(float(table.loc["k1", "std_error"]))
    assert table.loc["k1", "note"] == (
        "no interval: determined only together with km1, which is at a bound; a profile can tell "
        "more"
    )
    assert verdict(result).tone == "caution"
    k1, ratio = result.profile(["k1"], expressions="KM = (km1 + k2)/k1").profiles
    assert k1.lower < 100.0 < k1.upper
    assert k1.upper > 100 * k1.lower
    assert ratio.lower < 3.1 < ratio.upper
    assert ratio.upper < 4 * ratio.lower


def test_a_bound_that_does_not_affect_others_leaves_their_intervals() -> None:
    times = np.linspace(0.0, 4.0, 9)
    wiggle = 0.1 * np.cos(7 * times)
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "-c*y"}),
        {"t": times, "x": 3 * np.exp(-0.5 * times) + wiggle, "y": 1 + 0.02 * times + wiggle},
        {"k": {"guess": 0.4}, "c": {"lower": 0.0, "guess": 0.1}},
        {"x": 3.0, "y": 1.0},
        noise={"x": {"sd": 0.1}, "y": {"sd": 0.1}},
    )
    found = assessed(problem)
    assert found.trouble == {"c": "at a bound"}
    assert np.isfinite(found.intervals[0]).all()


def rising(slope: float, upper: float) -> Problem:
    """x = a + c t with a slope c that cannot be negative, as that of the data is."""
    times = np.linspace(0.0, 4.0, 9)
    wiggle = 0.1 * np.cos(7 * times)
    return Problem(
        Model(ode={"x": "c"}),
        {"t": times, "x": 1.0 + slope * times + wiggle},
        {"c": {"lower": 0.0, "upper": upper, "guess": 0.0}},
        {"x": {"guess": 1.0}},
        noise={"x": {"sd": 0.1}},
    )


def test_another_unknown_is_tied_to_a_bound_if_it_may_move_with_it_and_the_data_allow_it() -> None:
    tied = assessed(rising(-0.01, 1e3))
    assert tied.trouble["c"] == "at a bound"
    assert np.isnan(tied.intervals[1]).all()
    for free in (rising(-5.0, 1e3), rising(-0.01, 1e-3)):  # data that forbid it, a bound that does
        found = assessed(free)
        assert found.trouble == {"c": "at a bound"}
        half = 1.96 * 0.1 / math.sqrt(9)  # of the mean of nine values
        assert found.intervals[1, 1] - found.intervals[1, 0] == pytest.approx(2 * half, rel=1e-3)


def test_unknowns_that_are_not_determined_follow_one_that_leaves_its_bound() -> None:
    """Data give a b j and k/j: as a b may follow j from its bound, k follows as well."""
    times = np.linspace(0.0, 2.0, 11)
    problem = Problem(
        Model(ode={"x": "k/j", "z": "0"}),
        {"t": times, "x": 0.5 * times, "z": np.full(11, 30.0)},
        {name: {"lower": 1e-3, "upper": 2.0 if name == "j" else 50.0} for name in "abjk"},
        {"x": 0.0, "z": "a*b*j"},
        noise={"x": {"sd": 0.1}, "z": {"sd": 0.1}},
        t0=0.0,
    )
    forward = ForwardMap(problem)
    vector = problem.vector({"a": 15.0, "b": 1.0, "j": 2.0, "k": 1.0})
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    uncertainty = assess_uncertainty(forward, vector, evaluation)
    assert uncertainty.trouble["a"] is uncertainty.trouble["b"] is Trouble.NOT_DETERMINED
    assert np.isfinite(uncertainty.intervals[problem.keys.index("k")]).all()
    found = checked(forward, vector, evaluation, uncertainty)
    assert found.trouble["k"] is Trouble.TIED_TO_A_BOUND


def test_a_model_that_bends_within_the_interval_is_flagged() -> None:
    times = np.array([1.0, 2.0, 3.0])
    found = assessed(decay([0.0, *times], [3.0, 0.1, -0.1, 0.05], {"guess": 3.0}))
    assert found.trouble == {"k": "not linear"}
    assert found.notes["k"].endswith("; a profile can tell more")
    assert np.isfinite(found.intervals).all()


@pytest.mark.parametrize(
    ("start", "flagged"),
    [
        ("atan(1.1*k)/1.1", True),  # the ends fit better: the root is atan(1.1)/1.1 = 0.76
        ("(exp(2.2*k) - exp(-2.2*k))/4.4", False),  # worse: sinh(2.2)/2.2 = 2.0
        ("(exp(4*k) - exp(-4*k))/8", True),  # far worse: sinh(4)/4 = 6.8
    ],
)
def test_intervals_that_are_too_narrow_are_flagged_sooner_than_those_too_wide(
    start: str, flagged: bool
) -> None:
    """The curve is constant, with slope 1 at k = 0, where the interval is from -1 to 1."""
    problem = Problem(
        Model(ode={"x": "0"}),
        {"t": [0.0, 1.0, 2.0, 3.0], "x": [0.1, -0.1, -0.1, 0.1]},
        {"k": {"lower": -5.0, "upper": 5.0, "guess": 0.1}},
        {"x": start},
        noise={"x": {"sd": 2.0 / 1.959964}},
    )
    found = assessed(problem)
    assert found.intervals[0] == pytest.approx([-1.0, 1.0], abs=1e-3)
    assert found.trouble == ({"k": "not linear"} if flagged else {})


def test_the_interval_of_a_corrected_standard_deviation_is_not_compared_with_the_deviance() -> None:
    """It comes from a chi-square distribution, and is far from symmetric for four values."""
    problem = Problem(
        Model(ode={"x": "0"}),
        {"t": [0.0, 1.0, 2.0, 3.0], "x": [9.0, 11.0, 10.5, 9.5]},
        {"s": {"lower": 1e-3, "upper": 1.0, "guess": 0.1}},
        {"x": {"lower": 1.0, "upper": 50.0, "guess": 10.0}},
        noise={"x": {"sd": "s*x"}},
    )
    found = assessed(problem)
    assert found.corrected_noise["s"] == pytest.approx(0.0913, rel=0.02)
    low, high = found.intervals[0]
    assert high - 0.0913 > 3 * (0.0913 - low)
    assert "s" not in found.trouble


def test_a_model_that_is_nearly_linear_is_not_flagged() -> None:
    times = np.linspace(0.0, 6.0, 30)
    values = 3 * np.exp(-0.4 * times) + 0.05 * np.random.default_rng(1).normal(size=30)
    found = assessed(decay(times, values, sd=0.05))
    assert found.trouble == {}
    assert found.notes == {}


def test_the_check_of_curvature_is_left_out_where_it_would_take_a_share_of_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odefit.assessment.profiles.linear_checks.MOST_EQUATIONS", 0)
    problem = decay([0.0, 1.0, 2.0, 3.0], [3.0, 0.1, -0.1, 0.05], {"guess": 3.0})
    assert assessed(problem, evaluations=10).trouble == {}
    assert assessed(problem, evaluations=1000).trouble == {"k": "not linear"}


def test_intervals_end_at_the_bounds() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    found = assessed(decay(times, [3.0, 2.9, 3.1, 2.8], {"upper": 0.04, "guess": 0.02}))
    low, high = found.intervals[0]
    assert low == 0.0
    assert high == 0.04


def test_an_interval_over_all_magnitudes_counts_as_missing() -> None:
    """On a logarithmic scale, a standard error of many times the value would overflow."""
    times = np.array([0.0, 1.0, 2.0, 3.0])
    bounds = {"lower": 1e-12, "upper": 50.0, "scale": "log10", "guess": 1e-3}
    found = assessed(decay(times, [3.0, 2.999, 3.0, 2.9995], bounds))
    assert found.trouble == {"k": "weakly determined"}
    assert np.isnan(found.intervals).all()
    assert "no interval" in found.notes["k"]


@pytest.mark.slow
def test_a_report_of_several_solutions_does_not_say_all_determined() -> None:
    """The sign of k cannot be seen: both solutions fit alike, and each is determined."""
    times = np.linspace(0.0, 3.0, 12)
    values = 1 + 1.5**2 * times + 0.1 * np.random.default_rng(5).normal(size=12)
    problem = Problem(
        Model(ode={"x": "k^2"}),
        {"t": times, "x": values},
        {"k": {"lower": -4.0, "upper": 4.0}},
        {"x": {"lower": 0.0, "upper": 5.0}},
    )
    result = odefit.fit(problem, odefit.MultiStart(starts=12), jobs=1)
    assert result.ambiguous
    said = " ".join(verdict(result).sentences)
    assert "The data determine all" not in said
    assert "Near this solution the data determine all 2 unknowns, but others fit as well." in said
    assert verdict(result).tone == "caution"


@pytest.mark.parametrize("noise", [None, {"y": {"sd": "estimate"}}])
def test_separate_subjects_are_checked_like_all_together(
    noise: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The rate of B is nearly lost in the noise, so that its interval bends; that of A is not.
    times = np.array([0.2, 0.5, 1.0, 2.0, 3.0])
    scatter = 0.03 * np.array([[1, -1, 1, -1, 1], [-1, 1, 1, -1, 1]])
    subjects = [
        Experiment(name, {"t": times, "y": size * np.exp(-rate * times) + s})
        for name, size, rate, s in zip("AB", (1.0, 0.3), (0.5, 3.0), scatter, strict=True)
    ]
    rate = {"lower": 0.001, "upper": 50.0, "per_experiment": True}
    model = Model(ode={"x": "-k*x"}, observables={"y": "x"})
    size = {"lower": 0.01, "upper": 9.0, "per_experiment": True}
    given: dict[str, Any] = {"parameters": {"k": rate}, "initial": {"x": size}, "noise": noise}
    several = Problem(model, experiments=subjects, **given)
    apart = assessed(several)
    monkeypatch.setattr(Blocks, "around", lambda *_: None)
    together = assessed(several)
    assert apart.trouble == together.trouble
    assert Trouble.NOT_LINEAR in apart.trouble.values()
    assert "k[A]" not in apart.trouble
