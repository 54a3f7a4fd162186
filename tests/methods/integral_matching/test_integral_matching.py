"""The method as a whole: starts, options, refusals, ends."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import (
    Control,
    InputError,
    IntegralMatching,
    Model,
    Noise,
    Parameter,
    Problem,
    Progress,
    Status,
    library,
)
from odefit.methods.shooting.search import ShootingSearch
from odefit.methods.smoothing import GaussianProcess, SmoothingSpline
from tests.methods.integral_matching.problems import (
    DECAY,
    SATURATED,
    T,
    chain,
    decay,
    matched,
    saturated,
    worst,
)


def stripped(problem: Problem) -> Problem:
    """Without its guesses."""
    known: dict[str, Any] = {**problem.parameters, **problem.initial}
    return problem.with_parameters(
        **{
            name: replace(p, guess=None)
            for name, p in known.items()
            if isinstance(p, Parameter) and p.guess is not None
        }
    )


# Starting point ---------------------------------------------------------------------------------

FULLY = (
    "bbg bock fitzhugh-nagumo-separable harmonic hiv-f lotka-volterra-f mammillary-3-f crauste-f "
    "rational-harmonic rational-van-der-pol seasonal-lotka-volterra sir"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("name", FULLY)
def test_fully_observed_problems_are_solved_without_guesses(name: str) -> None:
    """SIR too, whose S is recovered. The slow ones (alpha-pinene, gma) are in the benchmarks."""
    problem, known = stripped(library.load(name)), library.reference(name)
    result = odefit.fit(problem, IntegralMatching(), seed=1, jobs=1)
    assert result.status is Status.CONVERGED
    size = max(float(np.abs(s.values).max()) for c in problem.conditions for s in c.series.values())
    assert result.best.objective <= known.objective * (1 + 1e-6) + 1e-12 * size**2


@pytest.mark.parametrize("name", ["henon-heiles", "rikitake"])
def test_chaos_is_matched_without_integrating(name: str) -> None:
    """What polishing has to do then is measured in the benchmarks."""
    problem, known = stripped(library.load(name)), library.reference(name)
    match = IntegralMatching().match(problem)
    assert match.nonlinear == ()
    truth = problem.vector({**known.parameters, **known.initial})
    if name == "henon-heiles":
        assert match.vector == pytest.approx(truth, abs=1e-3)
    else:
        assert np.isfinite(match.cost)


def test_a_match_starts_from_the_guess_and_needs_none_for_linear_unknowns() -> None:
    one = matched(saturated(), start={"k": 1.0})[1]
    other = matched(saturated(), start={"k": 1.0, "v": -100.0, "f": 50.0, "x": 7.0})[1]
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer() -> None:
    problem = stripped(saturated(noise=0.05))
    one, other = (
        odefit.fit(problem, IntegralMatching(starts=3), seed=5, jobs=jobs) for jobs in (1, 2)
    )
    assert one.best.objective == other.best.objective
    assert one.best.parameters == other.best.parameters


@pytest.mark.slow
def test_without_polishing_the_answer_is_the_match() -> None:
    problem = saturated(noise=0.05)
    match = IntegralMatching().match(problem)
    plain = odefit.fit(problem, IntegralMatching(polish=False, starts=1), jobs=1)
    assert [plain.best.parameters[k] for k in ("v", "k")] == pytest.approx(
        [match.vector[problem.keys.index(k)] for k in ("v", "k")], rel=1e-6
    )
    polished = odefit.fit(problem, IntegralMatching(starts=1), jobs=1)
    assert polished.best.objective < plain.best.objective
    assert plain.status is Status.CONVERGED
    told = odefit.fit(problem, IntegralMatching(polish=False, starts=1), jobs=1, polish=True)
    assert told.best.objective == pytest.approx(polished.best.objective, rel=1e-9)
    assert "in closed form, 1 by search; then " in polished.starts[0].message


def test_no_other_search_follows_single_shooting_that_reproduces_the_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(*_: object) -> None:
        raise AssertionError("searched on")

    monkeypatch.setattr(ShootingSearch, "run", run)
    (start,) = IntegralMatching(starts=1).solve(decay(), Control()).starts
    assert start.exact
    assert "single shooting: " in start.message


def test_options_can_be_lists_and_mappings_in_a_fit() -> None:
    """They are kept by what they are: hashing a list would fail."""
    method = IntegralMatching(linear=["v", "f"], start={"k": 1.0}, starts=1)
    assert method.linear == ("v", "f")
    result = odefit.fit(saturated(), method, jobs=1)
    assert worst({**result.best.parameters, **result.best.initial}, SATURATED) < 1e-6


def test_the_user_may_choose_what_is_linear() -> None:
    match, found = matched(saturated(), linear="f")
    assert match.linear == ("f",)
    assert set(match.nonlinear) == {"v", "k", "e", "x", "w"}
    assert np.isfinite(list(found.values())).all()


@pytest.mark.parametrize("smoother", [GaussianProcess(), SmoothingSpline(order=3)])
def test_another_smoother_may_be_taken(smoother: Any) -> None:
    assert worst(matched(saturated(), smoother=smoother)[1], SATURATED) < 0.05


# Nothing to separate ------------------------------------------------------------------------------


def test_without_linear_unknowns_it_is_nonlinear_least_squares_and_says_so() -> None:
    problem = decay(
        model=Model(ode={"x": "-a^2*x"}),
        parameters={"a": {"lower": 0.1, "upper": 3.0}},
        initial={"x": 1.0},
    )
    match, found = matched(problem)
    assert match.message == "no unknown enters linearly: matched by nonlinear least squares"
    assert found["a"] == pytest.approx(np.sqrt(0.7), abs=1e-6)


def test_parameters_that_the_data_cannot_distinguish_are_named() -> None:
    match, found = matched(
        decay(model=Model(ode={"x": "-(a + c)*x"}), parameters={"a": {}, "c": {}})
    )
    assert match.singular == ("a", "c")
    assert "the smoothed data do not distinguish a, c" in match.message
    assert found["a"] + found["c"] == pytest.approx(0.7, abs=1e-8)


def test_zero_data_cause_no_crash() -> None:
    match, found = matched(chain(data={"t": T, "x": 0 * T, "w": 0 * T}))
    assert set(match.singular) == {"a", "b"}
    assert found["x"] == found["w"] == 0.0


# Refusals -----------------------------------------------------------------------------------------


def refused(problem: Problem, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        IntegralMatching(**options).match(problem)
    said = str(caught.value)
    assert "\n" not in said
    with pytest.raises(InputError):
        odefit.fit(problem, IntegralMatching(starts=2, **options), jobs=1)
    return said


@pytest.mark.parametrize("points", [1, 2, 3])
def test_too_few_points_are_refused_with_place_and_remedy(points: int) -> None:
    said = refused(decay(data={"t": T[:points], "x": DECAY[:points]}))
    assert said.startswith('"data", x from t = 0 to ')
    assert f"needs at least 4 points, got {points}; measure more, or take another smoother" in said


def test_observables_without_a_common_time_are_refused() -> None:
    x, w = DECAY.copy(), DECAY.copy()
    x[20:], w[:20] = np.nan, np.nan
    said = refused(chain(data={"t": T, "x": x, "w": w}))
    assert "measured at no common times" in said


def test_unknowns_that_no_equation_sees_are_refused() -> None:
    problem = decay(
        model=Model(ode={"x": "-x"}, observables={"y": "s*x"}),
        data={"t": T, "y": DECAY},
        parameters={"s": {}},
        initial={"x": 1.0},
    )
    assert "no unknown acts in any equation or initial value; take another method" in refused(
        problem
    )
    noisy = decay(
        model=Model(ode={"x": "-x"}),
        parameters={},
        initial={"x": 1.0},
        noise={"x": Noise("estimate")},
    )
    assert "no unknown acts" in refused(noisy)


def test_nonlinear_algebraic_equations_are_refused() -> None:
    model = Model(ode={"x": "-a*z"}, algebraic={"z": "z^3 - x"})
    assert "the algebraic equations are not linear in z" in refused(decay(model=model))


def test_a_constant_that_an_event_sets_by_a_state_is_refused() -> None:
    model = Model(ode={"x": "-a*x + u"}, constants={"u": 0.0})
    experiment = odefit.Experiment(
        "A", {"t": T, "x": DECAY}, events=[odefit.Event((2.0,), {"u": "x/2"})]
    )
    said = refused(decay(model=model, data=None, experiments=[experiment]))
    assert said == ('IntegralMatching: "A", the event at t = 2 sets u by x; take another method')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linear": "vv"}, "linear: there is no unknown 'vv'; did you mean 'v'?"),
        ({"linear": ["v", "nothing"]}, "linear: there is no unknown 'nothing'"),
        ({"start": {"kk": 1.0}}, "start: there is no unknown 'kk'; did you mean 'k'?"),
        ({"linear": ["k"]}, "linear: the equations are not linear in k together"),
        ({"linear": ["v", "k"]}, "linear: the equations are not linear in v, k together"),
    ],
)
def test_meaningless_names_are_refused(options: dict[str, Any], message: str) -> None:
    assert refused(saturated(), **options).startswith(f"IntegralMatching, {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1.0}, "ridge: expected a number of at least 0, got -1.0"),
        ({"lasso": float("nan")}, "lasso: expected a number of at least 0, got nan"),
        ({"lasso": "1"}, "lasso: expected a number of at least 0, got '1'"),
        ({"starts": 0}, "starts: expected a whole number of at least 1, got 0"),
        ({"smoother": "spline"}, "smoother: expected an object such as SmoothingSpline()"),
        ({"start": [1.0]}, "start: expected values by name of unknown, got [1.0]"),
        ({"start": {"k": float("inf")}}, "start, k: expected a finite number, got inf"),
    ],
)
def test_meaningless_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        IntegralMatching(**options)
    assert str(caught.value).startswith(f"IntegralMatching, {message}")


# Ends -------------------------------------------------------------------------------------------


def test_a_time_limit_ends_a_fit_with_the_best_so_far() -> None:
    problem = stripped(saturated(noise=0.1))
    result = odefit.fit(problem, IntegralMatching(starts=10_000), time_limit=0.3, jobs=1)
    assert len(result.starts) < 10_000
    assert result.status is Status.TIME_LIMIT
    assert result.best.objective < 2.0


def test_an_interrupted_match_stops() -> None:
    interrupted = threading.Event()
    interrupted.set()
    problem = stripped(saturated(noise=0.1))
    found = IntegralMatching(starts=5).solve(problem, Control(seed=0, interrupted=interrupted))
    assert found.status is Status.INTERRUPTED


@pytest.mark.slow
def test_ctrl_c_ends_with_the_best_so_far() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 2:
            signal.raise_signal(signal.SIGINT)

    problem = stripped(saturated(noise=0.1))
    control = Control(seed=0, jobs=1, report=interrupt)
    found = IntegralMatching(starts=1000).solve(problem, control)
    assert found.status is Status.INTERRUPTED
    assert 2 <= len(found.starts) < 1000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
