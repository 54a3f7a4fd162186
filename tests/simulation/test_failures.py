"""An integration that fails is a value: where, when and why."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, library
from odefit.methods.starts import sample
from odefit.simulation import Failure
from odefit.simulation.engines.registry import EngineName
from tests.simulation.numerics import Array, by_unknown, differences, integrated

ENGINES: tuple[EngineName, ...] = ("auto", "heyoka", "runge-kutta", "bdf", "casadi")


def one_state(rhs: str, end: float, **more: Any) -> Problem:
    """x' = rhs on [0, end] with unknowns k and x."""
    arguments: dict[str, Any] = {
        "data": {"t": [0.0, end / 2, end], "x": [1.0, 1.0, 1.0]},
        "parameters": {"k": {}},
        "initial": {"x": {}},
        **more,
    }
    return Problem(Model(ode={"x": rhs}), **arguments)


def failure(problem: Problem, values: dict[str, float], engine: EngineName = "auto") -> Failure:
    found = ForwardMap(problem, engine).evaluate(problem.vector(values))
    assert isinstance(found, Failure), found
    assert not any(word.isupper() and len(word) > 2 for word in found.reason.split()), found
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", [0.6, 1.0, 20.0])
def test_a_blow_up_is_reported_at_its_time(engine: EngineName, start: float) -> None:
    found = failure(one_state("k*x^2", 2.0), {"k": 1.0, "x": start}, engine)
    assert found.experiment == "data"
    assert found.time == pytest.approx(1 / start, rel=1e-2)
    assert "without bound" in found.reason


def test_a_failure_reads_as_a_sentence() -> None:
    found = failure(one_state("k*x^2", 2.0), {"k": 1.0, "x": 1.0})
    assert str(found).startswith('experiment "data", t = ')
    assert str(found).endswith(found.reason)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rhs", ["log(k)*x", "sqrt(k)*x", "x/(k + 1)", "k^0.5*x", "asin(3*k)"])
def test_a_right_hand_side_that_is_not_defined_is_named(engine: EngineName, rhs: str) -> None:
    found = failure(one_state(rhs, 1.0), {"k": -1.0, "x": 1.0}, engine)
    assert found.time == 0.0
    assert found.reason == "the right-hand side of x is not finite at t = 0"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_that_leaves_the_domain_of_a_function_is_reported(engine: EngineName) -> None:
    # x = 1 - t is negative from t = 1 on.
    found = failure(one_state("-1 + 1e-9*k*log(x)", 2.0), {"k": 1.0, "x": 1.0}, engine)
    assert found.time == pytest.approx(1.0, abs=0.02)
    assert found.reason.startswith("log(x) ends here: x reaches 0 and would become negative")


def test_an_observable_without_a_value_is_named_with_its_time() -> None:
    problem = Problem(
        Model(ode={"x": "-k"}, observables={"y": "log(x)"}),
        {"t": [0.0, 0.5, 2.0], "y": [0.0, 0.0, 0.0]},
        {"k": {}},
        {"x": 1.0},
    )
    found = failure(problem, {"k": 1.0})
    assert found.time == 2.0
    assert "observable 'y'" in found.reason


def test_a_negative_prediction_has_no_logarithm() -> None:
    problem = one_state("-k", 2.0, noise={"x": {"sd": 0.1, "transform": "log"}})
    found = failure(problem, {"k": 1.0, "x": 1.5})
    assert found.time == 2.0
    assert found.reason == "observable 'x' is -0.5: it has no logarithm"


def test_a_negative_standard_deviation_is_refused() -> None:
    problem = one_state("-k", 2.0, noise={"x": {"sd": "x"}})
    found = failure(problem, {"k": 1.0, "x": 1.5})
    assert found.time == 2.0
    assert found.reason == (
        "the standard deviation of 'x' is -0.5, and must be positive; "
        "write sqrt(a^2 + (...)^2) with a > 0 if x may reach zero"
    )


def test_an_initial_value_that_is_not_finite_is_named() -> None:
    problem = one_state("-x", 1.0, initial={"x": "1/k"})
    found = failure(problem, {"k": 0.0})
    assert found.reason == "the initial value of x is not finite"


def test_the_experiment_that_fails_is_named() -> None:
    from odefit import Experiment

    data = {"t": [0.0, 2.0], "x": [1.0, 1.0]}
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        parameters={"k": {}},
        initial={"x": 0.1},
        experiments=[
            Experiment("tame", data),
            Experiment("wild", data, initial={"x": 1.0}),
        ],
    )
    assert failure(problem, {"k": 1.0}).experiment == "wild"


def hill(times: Array) -> Problem:
    return Problem(
        Model(ode={"x": "a - v*x^n/(K^n + x^n)"}),
        {"t": times, "x": np.ones(len(times))},
        {"a": {}, "v": {}, "K": {}, "n": {}},
        {"x": 0.0},
    )


@pytest.mark.parametrize("engine", ["auto", "bdf", "casadi"])
@pytest.mark.parametrize("n", [1.7, 2.0, pytest.param(3.3, marks=pytest.mark.slow)])
def test_a_hill_exponent_is_estimated_from_an_empty_start(engine: EngineName, n: float) -> None:
    """x^n has the slope x^n log(x) in n, which is 0 at x = 0, not 0 * inf."""
    times = np.array([0.0, 0.5, 1.0, 3.0])
    problem = hill(times)
    vector = problem.vector({"a": 1.0, "v": 1.5, "K": 0.6, "n": n})
    found = integrated(ForwardMap(problem, engine), vector)

    def by_scipy(v: Array) -> Array:
        from scipy.integrate import solve_ivp

        def rhs(_: float, x: Array) -> Array:
            power = np.maximum(x, 0.0) ** v[3]
            return np.asarray(v[0] - v[1] * power / (v[2] ** v[3] + power))

        rows = [np.zeros(1)]
        for start, end in itertools.pairwise(times):
            solution = solve_ivp(
                rhs, (start, end), rows[-1], method="DOP853", rtol=1e-12, atol=1e-14
            )
            rows.append(solution.y[:, -1])
        return np.array(rows)[:, 0]

    assert np.allclose(found.states[:, 0], by_scipy(vector), rtol=1e-7, atol=1e-9)
    expected = differences(by_scipy, vector, 1e-3)
    assert np.allclose(by_unknown(found, 4)[:, 0], expected, rtol=1e-6, atol=1e-7)


def test_nothing_is_printed_by_an_engine_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    for engine in ENGINES:
        failure(one_state("k*x^2", 2.0), {"k": 1.0, "x": 1.0}, engine)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_a_blow_up_that_exhausts_the_taylor_methods_steps_is_reported() -> None:
    problem = library.load("crauste-f")
    found = ForwardMap(problem).evaluate(sample(problem, 0, 1, 0)[0])
    assert isinstance(found, Failure)
    assert "without bound" in found.reason
