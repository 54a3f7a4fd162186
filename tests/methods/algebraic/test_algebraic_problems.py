"""What a problem can have beside a model and one clean experiment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from odefit import Algebraic, Control, Event, Experiment, Model, Problem
from odefit.common.arrays import Array
from odefit.methods.algebraic.algebraic import _AlgebraicEstimation
from odefit.methods.algebraic.message import result_message
from tests.methods.algebraic.models import (
    LOGISTIC,
    LOGISTIC_TRUTH,
    PREY,
    PREY_TRUTH,
    TIMES,
    best,
    integrated,
    logistic,
    logistic_rhs,
    named,
    prey,
    prey_rhs,
    solved,
    worst,
)

EXACT = 1e-6
"""Relative error of answers that rest on derivatives alone."""

POLISHED = 1e-9


def found(problem: Problem, **options: Any) -> dict[str, float]:
    return named(problem, best(solved(problem, **options)).vector)


def one(model: Model, series: Array, unknown: str, initial: Any, **more: Any) -> Problem:
    """A problem with one observable y."""
    data = {"t": TIMES, "y": series, **more.pop("inputs", {})}
    experiment = Experiment("run", data, **more)
    return Problem(model, None, {n: {} for n in unknown.split()}, initial, experiments=[experiment])


# Known values -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_guess_and_no_bounds_are_needed() -> None:
    problem = prey()
    estimate = solved(problem, polish=False)
    assert worst(problem, best(estimate).vector, PREY_TRUTH) < EXACT


@pytest.mark.slow
def test_a_fixed_parameter_is_kept() -> None:
    problem = prey(parameters={"a": {}, "b": {"fixed": 0.9}, "c": {}})
    assert "b" not in problem.keys
    assert worst(problem, best(solved(problem, polish=False)).vector, PREY_TRUTH) < EXACT


@pytest.mark.slow
@pytest.mark.parametrize(
    "initial", [{"r": {}, "w": 0.4}, {"r": 1.2, "w": 0.4}, {"r": 1.2, "w": "0.8*c"}]
)
def test_a_known_initial_value_is_kept(initial: dict[str, Any]) -> None:
    problem = prey(initial=initial)
    assert worst(problem, best(solved(problem, polish=False)).vector, PREY_TRUTH) < EXACT


def test_a_known_initial_value_can_determine_a_parameter() -> None:
    """y = s exp(-k t): without x(0) = 1, only s x(0) is known."""
    model = Model(ode={"x": "-k*x"}, observables={"y": "s*x"})
    problem = one(model, 2.0 * np.exp(-0.3 * TIMES), "k s", {"x": 1.0})
    estimate = solved(problem, polish=False)
    assert named(problem, best(estimate).vector) == pytest.approx({"k": 0.3, "s": 2.0}, rel=EXACT)
    assert "held" not in estimate.message


@pytest.mark.slow
def test_a_known_zero_with_vanishing_derivatives_is_handled() -> None:
    """x(0) = 0 is known: y'(0) shows k z0 alone."""
    model = Model(ode={"x": "k*z^2 - j*x", "z": "j*x - m*z"}, observables={"y": "s*x"})
    k, j, m, s = 0.6, 0.3, 0.2, 1.5
    states = integrated(lambda t, v: [k * v[1] ** 2 - j * v[0], j * v[0] - m * v[1]], [0.0, 1.0])
    problem = one(model, s * states[0], "k j m s", {"x": 0.0, "z": 1.0})
    truth = {"k": k, "j": j, "m": m, "s": s}
    assert found(problem) == pytest.approx(truth, rel=POLISHED)


def test_without_the_known_value_the_scale_is_held_and_named() -> None:
    model = Model(ode={"x": "-k*x"}, observables={"y": "s*x"})
    problem = one(model, 2.0 * np.exp(-0.3 * TIMES), "k s", {"x": {}})
    estimate = solved(problem)
    values = named(problem, best(estimate).vector)
    assert values["k"] == pytest.approx(0.3, rel=POLISHED)
    assert values["s"] * values["x"] == pytest.approx(2.0, rel=POLISHED)
    assert re.search("held, as .* determine them: ", estimate.message)


def test_without_any_time_the_message_mentions_no_held_unknown() -> None:
    model = Model(ode={"x": "-k*x"}, observables={"y": "s*x"})
    problem = one(model, 2.0 * np.exp(-0.3 * TIMES), "k s", {"x": {}})
    run = _AlgebraicEstimation(Algebraic(), problem, Control(seed=0))
    assert run.preparation.at_one_time.held
    message = result_message(run.preparation, run.data, run.search, None, False, 0)
    assert "held" not in message
    assert "none of its solutions gives a trajectory" in message


# Several experiments ----------------------------------------------------------------------------


def runs(*starts: float, **more: Any) -> list[Experiment]:
    return [
        Experiment(f"run {i}", {"t": TIMES, "y": logistic(x)}, **more) for i, x in enumerate(starts)
    ]


def test_experiments_share_their_parameters() -> None:
    initial = {"x": {"per_experiment": True}}
    problem = Problem(LOGISTIC, None, {"k": {}, "j": {}}, initial, experiments=runs(1.0, 2.0, 3.0))
    truth = {**LOGISTIC_TRUTH, "x[run 0]": 1.0, "x[run 1]": 2.0, "x[run 2]": 3.0}
    assert found(problem, polish=False) == pytest.approx(truth, rel=EXACT)


def test_an_experiment_may_have_a_parameter_of_its_own() -> None:
    parameters: dict[str, Any] = {"k": {}, "j": {"per_experiment": True}}
    initial = {"x": {"per_experiment": True}}
    problem = Problem(LOGISTIC, None, parameters, initial, experiments=runs(1.0, 2.0))
    truth = {"k": 0.3, "j[run 0]": 0.2, "j[run 1]": 0.2, "x[run 0]": 1.0, "x[run 1]": 2.0}
    assert found(problem, polish=False) == pytest.approx(truth, rel=EXACT)


@pytest.mark.slow
def test_each_experiment_may_show_another_observable() -> None:
    model = Model(ode=dict(PREY.ode), observables={"y": "r", "z": "w"})
    states = integrated(prey_rhs, [1.2, 0.4])
    experiments = [
        Experiment("prey", {"t": TIMES, "y": states[0]}),
        Experiment("predator", {"t": TIMES, "z": states[1]}),
    ]
    problem = Problem(
        model, None, {"a": {}, "b": {}, "c": {}}, {"r": {}, "w": {}}, experiments=experiments
    )
    assert found(problem) == pytest.approx(PREY_TRUTH, rel=POLISHED)


def test_constants_of_an_experiment_hold_there_alone() -> None:
    model = Model(ode={"x": "-c*k*x^2 - j*x"}, observables={"y": "x"}, constants={"c": 1.0})
    twice = integrated(lambda t, z: [-0.6 * z[0] ** 2 - 0.2 * z[0]], [1.0])[0]
    experiments = [
        Experiment("plain", {"t": TIMES, "y": logistic(1.0)}),
        Experiment("twice", {"t": TIMES, "y": twice}, constants={"c": 2.0}),
    ]
    problem = Problem(model, None, {"k": {}, "j": {}}, {"x": {}}, experiments=experiments)
    assert found(problem, polish=False) == pytest.approx({**LOGISTIC_TRUTH, "x": 1.0}, rel=EXACT)


# Events -----------------------------------------------------------------------------------------


def dosed(time: float, initial: Any = None) -> Problem:
    """1.5 more of x at `time`."""
    series = integrated(logistic_rhs, [1.0], doses={time: lambda z: z + 1.5})[0]
    events = [Event((time,), {"x": "x + 1.5"})]
    return one(LOGISTIC, series, "k j", initial or {"x": {}}, events=events)


@pytest.mark.parametrize("time", [0.0, 1.0, 2.05, 3.0])
def test_a_dose_in_mid_series_is_crossed(time: float) -> None:
    """The longest segment between doses is differentiated; from there, doses are undone."""
    truth = {**LOGISTIC_TRUTH, "x": 1.0}
    assert found(dosed(time), polish=False) == pytest.approx(truth, rel=EXACT)


def test_a_dose_before_the_segment_leaves_known_initial_values_alone() -> None:
    assert found(dosed(1.0, {"x": 1.0}), polish=False) == pytest.approx(LOGISTIC_TRUTH, rel=EXACT)


def test_a_changing_parameter_has_its_value_before_the_change() -> None:
    """x' = -k x^2 - j x with twice the k from t = 2.5 on, which does not count."""
    early = TIMES[TIMES <= 2.5]
    middle = float(logistic(1.0, np.array([0.0, 2.5]))[1])
    after = integrated(
        lambda t, z: [-0.6 * z[0] ** 2 - 0.2 * z[0]], [middle], np.append(2.5, TIMES[TIMES > 2.5])
    )[0][1:]
    series = np.concatenate([logistic(1.0, early), after])
    problem = one(LOGISTIC, series, "k j", {"x": {}}, events=[Event((2.5,), {"k": "2*k"})])
    truth = {**LOGISTIC_TRUTH, "x": 1.0}
    assert found(problem, polish=False) == pytest.approx(truth, rel=EXACT)


def test_an_empty_compartment_that_gets_a_dose_is_fitted() -> None:
    model = Model(ode={"x": "-k*x"}, observables={"y": "x"})
    series = np.where(TIMES > 1.0, 0.5 * np.exp(-0.3 * (TIMES - 1.0)), 0.0)
    problem = one(model, series, "k", {"x": 0.0}, events=[Event((1.0,), {"x": "x + 0.5"})])
    assert found(problem, polish=False) == pytest.approx({"k": 0.3}, rel=EXACT)


# Inputs and time --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_inputs_with_corners_are_known_functions(kind: Literal["constant", "linear"]) -> None:
    """An input that is something else from 0 to 1, from 1 to 2, and from 2 to 4."""
    knots = {0.0: 0.0, 1.0: 0.5, 2.0: 1.0, 4.0: 1.0}
    u: list[Callable[[float], float]] = [lambda t: 0.0, lambda t: 0.5, lambda t: 1.0]
    if kind == "linear":
        u = [lambda t: 0.5 * t, lambda t: 0.5 * t, lambda t: 1.0]
    times = np.linspace(0.0, 4.0, 33)
    series, state = [1.5], 1.5
    for input_, low, high in zip(u, (0.0, 1.0, 2.0), (1.0, 2.0, 4.0), strict=True):
        here = times[(times >= low) & (times <= high)]

        def rhs(t: float, z: Array, f: Callable[[float], float] = input_) -> list[float]:
            return [-0.3 * z[0] ** 2 + 0.8 * f(t)]

        segment = integrated(rhs, [state], here)[0]
        series += segment[1:].tolist()
        state = series[-1]
    column = np.array([knots.get(float(t), np.nan) for t in times])
    model = Model(ode={"x": "-k*x^2 + j*u"}, observables={"y": "x"}, inputs={"u": kind})
    data = {"t": times, "y": np.array(series), "u": column}
    problem = Problem(model, data, {"k": {}, "j": {}}, {"x": {}})
    truth = {"k": 0.3, "j": 0.8, "x": 1.5}
    assert found(problem, polish=False) == pytest.approx(truth, rel=EXACT)


def test_the_time_itself_may_be_in_the_equations() -> None:
    model = Model(ode={"x": "-k*x + j*t^2"}, observables={"y": "x"})
    series = integrated(lambda t, z: [-0.3 * z[0] + 0.8 * t * t], [1.5])[0]
    truth = {"k": 0.3, "j": 0.8, "x": 1.5}
    assert found(one(model, series, "k j", {"x": {}}), polish=False) == pytest.approx(
        truth, rel=EXACT
    )


# Models that are not rational -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rhs", "truth"),
    [
        ("-k*log(1 + x)", {"k": 0.3}),
        pytest.param("-k*sqrt(x) + j", {"k": 0.3, "j": 0.8}, marks=pytest.mark.slow),
        ("-k*x + j*sin(2*t)", {"k": 0.3, "j": 0.8}),
        ("-k*exp(-x)", {"k": 0.3}),
        pytest.param("-k*exp(-j/x)", {"k": 0.3, "j": 0.7}, marks=pytest.mark.slow),
        ("-k*x^n", {"k": 0.3, "n": 1.7}),
        pytest.param("-k*tanh(j*x)", {"k": 0.3, "j": 0.7}, marks=pytest.mark.slow),
    ],
)
def test_a_model_that_is_not_rational_is_lifted(rhs: str, truth: dict[str, float]) -> None:
    functions = {n: getattr(np, n) for n in ("exp", "log", "sqrt", "sin", "tanh")}
    code = compile(rhs.replace("^", "**"), "rhs", "eval")

    def rate(t: float, z: Array) -> list[float]:
        return [eval(code, {**functions, **truth, "t": t, "x": z[0]})]

    series = integrated(rate, [1.5])[0]
    model = Model(ode={"x": rhs}, observables={"y": "x"})
    problem = one(model, series, " ".join(truth), {"x": {}})
    vectors = [named(problem, s.vector) for s in solved(problem).starts if s.objective < 1e-20]
    assert vectors
    close = [
        v for v in vectors if all(abs(v[k] / w - 1) < 1e-7 for k, w in {**truth, "x": 1.5}.items())
    ]
    assert close


@pytest.mark.slow
def test_a_frequency_of_unknown_sign_has_two_solutions() -> None:
    """j sin(w t) = (-j) sin(-w t)."""
    model = Model(ode={"x": "-k*x + j*sin(w*t)"}, observables={"y": "x"})
    series = integrated(lambda t, z: [-0.3 * z[0] + 0.8 * np.sin(1.3 * t)], [1.5])[0]
    problem = one(model, series, "k j w", {"x": {}})
    estimate = solved(problem)
    good = [named(problem, s.vector) for s in estimate.starts if s.objective < 1e-20]
    assert sorted(v["w"] for v in good) == pytest.approx([-1.3, 1.3], rel=POLISHED)
    assert all(v["j"] * v["w"] == pytest.approx(0.8 * 1.3, rel=POLISHED) for v in good)


# Algebraic variables ----------------------------------------------------------------------------


def test_an_algebraic_variable_is_eliminated() -> None:
    """z = x w in place of the product."""
    model = Model(
        ode={"x": "-k*z", "w": "k*z - j*w"}, algebraic={"z": "z - x*w"}, observables={"y": "x"}
    )
    series = integrated(
        lambda t, v: [-0.6 * v[0] * v[1], 0.6 * v[0] * v[1] - 0.4 * v[1]], [1.0, 0.3]
    )[0]
    problem = one(model, series, "k j", {"x": {}, "w": {}})
    truth = {"k": 0.6, "j": 0.4, "x": 1.0, "w": 0.3}
    assert found(problem, polish=False) == pytest.approx(truth, rel=EXACT)


def test_an_algebraic_variable_may_be_what_is_measured() -> None:
    """z^2 + z = x, so that z' = -k z/(2 z + 1)."""
    model = Model(ode={"x": "-k*z"}, algebraic={"z": "z^2 + z - x"}, observables={"y": "z"})
    start = (np.sqrt(5.0) - 1.0) / 2.0
    series = integrated(lambda t, z: [-0.6 * z[0] / (2.0 * z[0] + 1.0)], [start])[0]
    problem = one(model, series, "k", {"x": {}, "z": 0.5})
    assert found(problem, polish=False) == pytest.approx({"k": 0.6, "x": 1.0}, rel=EXACT)


# Bounds -----------------------------------------------------------------------------------------


def test_bounds_that_are_given_are_kept() -> None:
    """Of two solutions, which exchange the rates, one is within; without bounds both are shown."""
    rates = 0.7, 0.3
    decays = np.exp(-np.outer(rates, TIMES))
    second = 0.2 * decays[1] + 0.7 / 0.4 * (decays[1] - decays[0])
    problem = Problem(
        Model(ode={"x": "-a*x", "w": "a*x - b*w"}, observables={"y": "w"}),
        {"t": TIMES, "y": second},
        {"a": {"lower": 0.15, "upper": 0.5}, "b": {}},
        {"x": {}, "w": {}},
    )
    estimate = solved(problem)
    values = named(problem, best(estimate).vector)
    assert (values["a"], values["b"]) == pytest.approx((0.3, 0.7), rel=1e-5)
    assert estimate.completeness is not None
    assert estimate.completeness.found == 2
    usable = [s for s in estimate.starts if np.isfinite(s.cost) and s.objective < 1e-20]
    assert len(usable) == 1


def test_an_answer_outside_the_bounds_is_sought_from_their_edge() -> None:
    parameters: dict[str, Any] = {"k": {"lower": 0.4, "upper": 2.0}, "j": {}}
    problem = Problem(LOGISTIC, {"t": TIMES, "y": logistic(1.0)}, parameters, {"x": {}})
    estimate = solved(problem)
    values = named(problem, best(estimate).vector)
    assert values["k"] == pytest.approx(0.4, rel=1e-9)
    assert "outside the bounds" in best(estimate).message
    assert "leaves more than the noise" in estimate.message


# Seeds ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result() -> None:
    """To the last bit, from the cache or not."""
    one_, other = (solved(prey(), polish=False) for _ in range(2))
    assert [s.vector.tolist() for s in one_.starts] == [s.vector.tolist() for s in other.starts]
    assert one_.message == other.message
    assert one_.completeness == other.completeness
