"""Optima where two solutions merge: intervals by profile where linearisation has none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, least_squares
from scipy.special import fdtri

import odefit
from odefit.assessment import folds
from odefit.assessment.fitting_solutions import fitting_solutions
from odefit.assessment.fold_directions import fold_directions, rank_tolerance
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.assessment.profiles.parts import ProfilesData
from odefit.assessment.profiles.profiling import profile_all
from odefit.common.arrays import Array
from odefit.fitting.fit_notices import fit_notices
from odefit.fitting.fit_stages import Wishes
from odefit.methods.estimate import Doubt, Estimate
from odefit.methods.running.control import Control
from odefit.reporting.notices import notice_sentence
from odefit.result_data.notices import NoticeKind
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

TIMES = np.array([0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24])
VALUES = np.array([1.0429, 1.7674, 2.6855, 2.9357, 2.8486, 2.4092, 1.8461, 0.8627, 0.2597, -0.0582])
LIMITS: dict[str, Any] = {"lower": 0.01, "upper": 10.0, "scale": "log10"}


def oral_dose(observable: str = "blood/V", **parameters: Any) -> odefit.Problem:
    return odefit.Problem(
        odefit.Model(
            ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": observable}
        ),
        data={"t": TIMES, "c": VALUES},
        t0=0.0,
        parameters={"ka": LIMITS, "ke": LIMITS, "V": LIMITS, **parameters},
        initial={"gut": 4.0, "blood": 0.0},
    )


def concentration(ka: float, ke: float, volume: float) -> Array:
    """Return the closed form (H. Bateman), with its limit where the rates are equal."""
    half = 0.5 * (ka - ke) * TIMES
    ratio = np.where(half == 0.0, 1.0, np.sinh(half) / np.where(half == 0.0, 1.0, half))
    return np.asarray(4 * ka / volume * TIMES * np.exp(-0.5 * (ka + ke) * TIMES) * ratio)


def squares(held: float | None) -> float:
    """Return the least sum of squares with ka held, from both sides of the fold."""
    found = []
    for factor in (0.7, 1.0, 1.4):
        start = np.log([0.3 * factor, 0.5] if held is not None else [0.3, 0.3 * factor, 0.5])

        def residuals(x: Array) -> Array:
            values = np.exp(x)
            ka = values[0] if held is None else held
            return np.asarray(concentration(ka, values[-2], values[-1]) - VALUES)

        found.append(2 * float(least_squares(residuals, start, xtol=1e-12, ftol=1e-12).cost))
    return min(found)


@pytest.mark.slow
def test_at_a_fold_intervals_are_those_of_a_profile_by_closed_form() -> None:
    start = {"ka": 0.3, "ke": 0.25, "V": 0.5}
    result = odefit.fit(oral_dose(), odefit.SingleShooting(), start=start)
    uncertainty = result.uncertainty
    assert uncertainty is not None
    assert uncertainty.directions == ()
    assert set(uncertainty.trouble.values()) == {Trouble.BY_PROFILE}
    least = squares(None)
    most = least * (1 + float(fdtri(1, 8, 0.95)) / 8)
    ends = [
        brentq(lambda k: squares(k) - most, *ends, xtol=1e-4) for ends in ((0.1, 0.29), (0.3, 0.8))
    ]
    for key in ("ka", "ke"):
        assert uncertainty.intervals[uncertainty.keys.index(key)] == pytest.approx(ends, rel=0.01)
    of_volume = uncertainty.intervals[uncertainty.keys.index("V")]
    assert of_volume == pytest.approx((0.327, 0.697), abs=0.002)  # of the note
    assert "by profile" in str(result)


@pytest.mark.slow
@pytest.mark.slow
def test_an_oral_dose_with_equal_rates_has_the_intervals_of_its_profile() -> None:
    """The case fold-not-determined: the rates were "not determined", but are, by the profile."""
    folder = Path(__file__).parents[1] / "cases" / "fold-not-determined"
    result = odefit.fit(odefit.load(folder / "fold1.toml"), jobs=1)
    table = result.parameters
    for key, interval in {"ka": (0.204, 0.436), "ke": (0.204, 0.436), "V": (0.327, 0.697)}.items():
        low, high = table.loc[key, ["ci_low", "ci_high"]]
        assert (low, high) == pytest.approx(interval, abs=1e-3)


def test_the_other_half_of_a_double_solution_has_the_interval_of_the_profile() -> None:
    """A count of the equations finds both halves, and linearisation has no interval at either."""
    start = {"ka": 0.3, "ke": 0.25, "V": 0.5}
    result = odefit.fit(oral_dose(), odefit.SingleShooting(), start=start)
    assert result.uncertainty is not None
    forward, vector = ForwardMap(result.problem), result.best.vector
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert isinstance(evaluation, Evaluation)
    ka, ke, volume = (result.problem.keys.index(key) for key in ("ka", "ke", "V"))
    other = vector.copy()
    other[[ka, ke]] = vector[[ke, ka]] * [1 + 1e-5, 1 - 1e-5]
    far = vector.copy()
    far[volume] *= 10.0
    found = fitting_solutions(
        forward, (vector, evaluation, result.uncertainty), [other, far], lambda *at: at[-1]
    )
    one, half, distant = (np.asarray(f.intervals) for f in found if f is not None)
    assert np.isfinite(one).all()
    assert half.tolist() == one.tolist()
    assert distant[volume].tolist() != one[volume].tolist()  # the profile does not reach it


@pytest.mark.slow
def test_an_undetermined_unknown_has_no_finite_interval() -> None:
    problem = oral_dose("blood/(V*F)", F=LIMITS)
    start = {"ka": 0.5, "ke": 0.2, "V": 0.5, "F": 1.0}
    result = odefit.fit(problem, odefit.SingleShooting(), start=start)
    uncertainty = result.uncertainty
    assert uncertainty is not None
    assert uncertainty.trouble["V"] is uncertainty.trouble["F"] is Trouble.NOT_DETERMINED
    assert not np.isfinite(uncertainty.intervals[uncertainty.keys.index("V")]).any()


@pytest.mark.slow
def test_only_unknowns_that_no_flat_direction_moves_are_profiled_at_a_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profiled: list[str] = []

    def recorded(*arguments: Any, **options: Any) -> ProfilesData:
        profiled.extend(arguments[-1])
        return profile_all(*arguments, **options)

    monkeypatch.setattr(folds, "profile_all", recorded)
    problem = oral_dose("blood/(V*F)", F=LIMITS)
    start = {"ka": 0.3, "ke": 0.25, "V": 0.5, "F": 1.0}
    result = odefit.fit(problem, odefit.SingleShooting(), start=start)
    uncertainty = result.uncertainty
    assert uncertainty is not None
    assert profiled == ["ka", "ke"]
    for key in ("ka", "ke"):
        assert uncertainty.trouble[key] is Trouble.BY_PROFILE
        assert np.isfinite(uncertainty.intervals[uncertainty.keys.index(key)]).all()
    for key in ("V", "F"):
        assert uncertainty.trouble[key] is Trouble.NOT_DETERMINED
    assert "Hardly determined" not in uncertainty.sentence


@pytest.mark.slow
def test_a_side_without_an_end_is_not_followed_for_thousands_of_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Growth after a lag is seen late: the size at first and the speed of adaptation are open."""
    made: list[ProfilesData] = []

    def recorded(*arguments: Any, **options: Any) -> ProfilesData:
        made.append(profile_all(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(folds, "profile_all", recorded)
    times = np.array([6.0, 8.0, 10.0, 12.0, 14.0, 16.0])
    values = np.exp(0.2 * times) * (1 + np.array([0.03, -0.06, 0.04, 0.05, -0.02, -0.03]))
    model = odefit.Model({"q": "m*q", "n": "r*q/(1 + q)*n"}, observables={"o": "n"})
    wide = {"m": (0.1, 100.0), "r": (0.01, 10.0), "n": (0.01, 100.0)}
    bounds = {key: {"lower": low, "upper": high} for key, (low, high) in wide.items()}
    problem = odefit.Problem(
        model,
        {"t": times, "o": values},
        {key: bounds[key] for key in "mr"},
        {"q": 0.1, "n": bounds["n"]},
        noise={"o": {"sd": "0.05*n"}},
        t0=0.0,
    )
    start = {"m": 8.0, "r": 0.2, "n": 1.0}
    result = odefit.fit(problem, odefit.SingleShooting(), start=start)
    assert result.uncertainty is not None
    assert made
    assert made[0].evaluations < 4000


def test_both_halves_of_a_double_solution_are_at_the_fold() -> None:
    """Seen from one half, the second derivatives miss the other half by a little."""
    model = odefit.Model(
        {"gut": "-exp(l1)*gut", "y": "exp(l1)*gut - exp(l2)*y"}, observables={"y": "y"}
    )
    data = {"t": [1, 2, 3, 4, 6, 8, 10, 12, 16], "y": [0.7, 1.2, 1.4, 1.4, 1.1, 0.8, 0.6, 0.5, 0.3]}
    problem = odefit.Problem(
        model,
        data,
        {"l1": {}, "l2": {}, "l3": {}},
        {"gut": "exp(l3)", "y": 0.0},
        t0=0.0,
    )
    halves = ({"l1": -0.83, "l2": -1.70, "l3": 0.93}, {"l1": -1.70, "l2": -0.83, "l3": 1.79})
    intervals, errors = [], []
    for start in halves:
        uncertainty = odefit.fit(problem, odefit.SingleShooting(), start=start).uncertainty
        assert uncertainty is not None
        assert set(uncertainty.trouble.values()) == {Trouble.BY_PROFILE}
        intervals.append(uncertainty.intervals)
        errors.append(uncertainty.standard_errors)
    # Bates and Watts (1988), example of tetracycline: the errors of linearisation remain.
    assert errors[0][:2] == pytest.approx([0.272, 0.244], abs=5e-4)
    assert intervals[0] == pytest.approx(intervals[1], rel=1e-3)


def test_a_plain_problem_has_no_fold() -> None:
    problem = oral_dose().with_unknowns(fix={"ka": 1.5})
    result = odefit.fit(problem, odefit.SingleShooting(), start={"ke": 0.15, "V": 0.8})
    assert result.uncertainty is not None
    assert Trouble.BY_PROFILE not in result.uncertainty.trouble.values()


def test_a_step_that_reaches_far_beyond_the_interval_tells_of_no_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a chaotic circuit a change of 5 % alters residuals thirty times as much as an interval.

    Their second difference is then none of second derivatives, and seemed to be that of a fold.
    """

    def asked(*_: Any, **__: Any) -> None:
        raise AssertionError("asked for profiles")

    times = np.linspace(0.0, 20.0, 101)
    model = odefit.Model(ode={"x": "a*(y - x^3 - c*x)", "y": "x - y + z", "z": "-b*y"})
    wide = dict.fromkeys("xyz", (-5.0, 5.0))
    rates = {"a": (5.0, 20.0), "b": (8.0, 30.0), "c": (-1.0, 1.0)}
    truth = {"a": 10.0, "b": 16.0, "c": -0.143, "x": 0.2, "y": 0.1, "z": -0.1}

    def problem(data: dict[str, Array]) -> odefit.Problem:
        return odefit.Problem(model, {"t": times, **data}, parameters=rates, initial=wide)

    empty = problem({name: np.zeros(len(times)) for name in "xyz"})
    exact = odefit.simulate(empty, empty.vector(truth), times).states
    rng = np.random.default_rng(3)
    measured = {name: exact[name] + 0.02 * rng.standard_normal(len(times)) for name in "xyz"}
    monkeypatch.setattr("odefit.assessment.folds.profile_all", asked)
    result = odefit.fit(problem(measured), odefit.SingleShooting(), start=truth)
    assert result.failed_stages == ()
    assert result.parameters["ci_low"].notna().all()


@pytest.mark.slow
def test_unknowns_with_an_interval_by_profile_are_not_called_hardly_determined() -> None:
    start = {"ka": 0.3, "ke": 0.25, "V": 0.5}
    result = odefit.fit(oral_dose(), odefit.SingleShooting(), start=start)
    doubt = Doubt(("ka", "ke", "V"), 0.19, 16)
    estimate = Estimate(result.starts, result.status, result.message, doubt=doubt)

    def told(uncertainty: Uncertainty | None) -> list[str]:
        notices = fit_notices(
            result.problem,
            Control(jobs=1),
            estimate,
            Wishes(0.95, True, True, False, "as-is"),
            answer=None,
            uncertainty=uncertainty,
            opinion=None,
            misfit=(),
            found_misfit=None,
            outliers=(),
            unproved="",
            equal=(),
            near=(),
            complete=None,
        )
        return [notice_sentence(n) for n in notices if n.kind is NoticeKind.SEARCHED_ELSEWHERE]

    assert told(result.uncertainty) == []
    (sentence,) = told(None)
    assert sentence.startswith(
        "ka, ke, V are at a bound or hardly determined at this answer, and its residuals may be "
        "more than noise; 16 starts"
    )


def test_an_answer_that_is_not_an_optimum_has_no_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its profiles would say nothing, and take minutes where trajectories are chaotic."""

    def asked(*_: Any) -> None:
        raise AssertionError("asked for folds")

    monkeypatch.setattr("odefit.fitting.fit_result.with_folds", asked)
    start = {"ka": 0.3, "ke": 0.25, "V": 0.5}
    failed = {
        evaluations: odefit.fit(
            oral_dose(), odefit.SingleShooting(evaluations=evaluations), start=start, polish=False
        ).failed_stages
        for evaluations in (2, 200)
    }
    assert failed[2] == ()
    assert [one.stage for one in failed[200]] == ["folds"]


# A chemostat whose dilution rate and feed change after 20 and 40 h, with 5 % noise of the biomass.
BIOMASS = np.array(
    (
        "0.275 0.513 0.936 1.79 2.903 4.297 4.055 4.391 4.368 4.21 4.114 3.984 4.192 4.34 3.9 "
        "4.156 4.024 3.024 2.019 1.743 1.627 1.524 1.336 1.445 1.392"
    ).split(),
    dtype=float,
)
GLUCOSE = np.array(
    (
        "8.988 8.539 7.614 nan 2.709 0.068 0.003 0.113 0.192 0.885 1.046 nan nan 0.787 0.842 0.961 "
        "0.86 0.094 0.228 0.436 0.567 0.718 0.802 0.759 0.833"
    ).split(),
    dtype=float,
)


@pytest.mark.slow
def test_unknowns_whose_profile_confirms_the_linear_interval_keep_it() -> None:
    """The death rate bends within its interval, and moves the other unknowns a little."""
    times = 2.5 * np.arange(25)
    data = {"t": times, "X": BIOMASS, "S": GLUCOSE}
    data |= {"D": np.where(times < 20, 0.15, 0.33), "feed": np.where(times < 40, 10.0, 4.0)}
    problem = odefit.Problem(
        odefit.Model(
            ode={
                "X": "(mu*S/(Ks + S) - kd - D)*X",
                "S": "D*(feed - S) - mu*S/(Ks + S)*X/Y",
            },
            inputs=dict.fromkeys(("D", "feed"), "constant"),
        ),
        data=data,
        parameters={"mu": LIMITS, "Ks": LIMITS, "Y": (0.05, 1.0), "kd": (0.0, 0.2)},
        initial={"X": (0.01, 5.0), "S": (0.0, 20.0)},
        noise={"X": {"sd": "estimate", "transform": "log"}, "S": {"sd": "estimate"}},
    )
    start = {"mu": 0.42, "Ks": 0.2, "Y": 0.46, "kd": 0.016, "X": 0.28, "S": 9.0}
    result = odefit.fit(problem, odefit.SingleShooting(), start=start)
    uncertainty = result.uncertainty
    assert uncertainty is not None
    assert "mu" not in uncertainty.trouble
    assert "fold" not in uncertainty.sentence
    profiles = profile_all(problem, result.best.vector, 0.95, Control(), ["mu"])
    (profile,) = profiles.profiles
    lower, upper = uncertainty.intervals[0]
    assert [profile.lower, profile.upper] == pytest.approx(
        [lower, upper], abs=0.1 * (upper - lower)
    )


@pytest.mark.parametrize("rounding", [0.0, 1e-9, -3e-9])
def test_a_flat_direction_beside_a_fold_moves_nothing_of_it(rounding: float) -> None:
    """Both are flat to first order, so that rounding alone mixes them."""
    problem = oral_dose("blood/(V*F)", F=LIMITS)
    start = {"ka": 0.3, "ke": 0.25, "V": 0.5, "F": 1.0}
    vector = odefit.fit(problem, odefit.SingleShooting(), start=start).best.vector
    vector = vector * (1.0 + rounding * np.array([1.0, -0.3, 0.2, 0.7]))
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert isinstance(evaluation, Evaluation)
    (fold,), (flat,) = fold_directions(forward, vector, evaluation, 0.14)
    places = [problem.keys.index(key) for key in ("ka", "ke", "V", "F")]
    assert np.abs(flat.relative[places[:2]]).max() < 0.01 * np.abs(flat.relative).max()
    assert set(fold.moved) >= set(places[:2])


def three_steps() -> odefit.Problem:
    """A chain whose first two rates are equal, as noiseless data without their noise show."""
    times = np.linspace(0.5, 20.0, 16)
    model = odefit.Model(
        ode={"A": "-p*A", "B": "p*A - q*B", "C": "q*B - r*C + w*D", "D": "r*C - w*D"}
    )
    rates = {"p": 1.0, "q": 1.0, "r": 0.35, "w": 0.05}
    initial = {"A": 10.0, "B": 0.0, "C": 0.0, "D": 0.0}
    whole = odefit.Problem(model, {"t": times, "D": 0 * times}, {**rates, "w": LIMITS}, initial)
    trajectories = ForwardMap(whole).trajectories(np.array([0.05]))
    assert not isinstance(trajectories, Failure)
    values = trajectories[0].states[:, 3]
    return odefit.Problem(
        model,
        {"t": times, "D": values},
        dict.fromkeys(rates, LIMITS),
        initial,
        noise={"D": {"sd": 0.1}},
    )


def assessed_beside_the_fold(beside: float, *, as_a_fold: bool) -> Uncertainty:
    """Return the uncertainty where the two equal rates differ by this share."""
    forward, vector = ForwardMap(three_steps()), np.array([1.0 + beside, 1.0 - beside, 0.35, 0.05])
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert isinstance(evaluation, Evaluation)
    tolerance = rank_tolerance(forward, vector, evaluation, 0.95) if as_a_fold else 1e-9
    return assess_uncertainty(forward, vector, evaluation, tolerance=tolerance)


def test_the_distance_from_a_fold_does_not_change_the_errors_of_others() -> None:
    """A search ends beside the fold at a distance of rounding, where the rank is full."""
    at_the_fold = assessed_beside_the_fold(0.0, as_a_fold=True)
    for beside in (1e-7, 1e-6, 1e-5):
        found = assessed_beside_the_fold(beside, as_a_fold=True)
        assert found.rank == 3
        assert found.trouble == dict.fromkeys("pq", Trouble.NOT_DETERMINED)
        errors = found.standard_errors[2:]
        assert errors == pytest.approx(at_the_fold.standard_errors[2:], rel=1e-3)
        plain = assessed_beside_the_fold(beside, as_a_fold=False)
        assert plain.rank == 4
        assert (plain.standard_errors[2:] > 1.5 * errors).all()
