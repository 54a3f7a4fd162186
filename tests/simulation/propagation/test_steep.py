"""States rest at zero, or leave it, where derivatives have no bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odefit
from odefit import Event, Experiment, Failure, ForwardMap, Model, Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine import Values
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.propagation.steep import first_step, is_steep

TIMES = np.array([0.0, 0.4, 1.0, 3.0])
K, P, X0 = 0.7, 1.3, 2.0


def problem(ode: dict[str, str], initial: dict[str, float]) -> Problem:
    """All states are measured; k and p are unknown."""
    data = {"t": TIMES, **{name: np.ones(len(TIMES)) for name in ode}}
    unknowns = {"k": {"guess": K}, "p": {"guess": P}}
    return Problem(Model(ode=ode), data, unknowns, initial)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "heyoka", "bdf", "casadi", "local-linearization"])
@pytest.mark.parametrize(
    "rate",
    [
        "-k*z - p*sqrt(z)",
        "-p*z^0.5/(k^0.5 + z^0.5)",
        "p*z^(1/3) - k*z",
        "p*z^p - k*z",
        "-k*z + p*(z/k)^0.75",
        "p*(1 - exp(-sqrt(z)/k)) + p*tanh(z)*x",
        "-k*min(sqrt(z), 1) + p*max(z - k, 0)",
        "if(z > k, 1, p*sqrt(z)/2)",
        "-k*log(1 + z^0.6/p)",
    ],
)
def test_a_state_that_rests_at_zero_stays_there(engine: str, rate: str) -> None:
    """x' = -k x + p z^0.3 is then x' = -k x, with an exact solution and derivatives."""
    given = problem({"x": "-k*x + p*z^0.3", "z": rate}, {"x": X0, "z": 0.0})
    if engine == "casadi":
        pytest.importorskip("casadi")
    courses = ForwardMap(given, engine).trajectories(np.array([K, P]))  # type: ignore[arg-type]
    assert not isinstance(courses, odefit.Failure), courses
    exact = X0 * np.exp(-K * TIMES)
    states, by = courses[0].states, courses[0].sensitivities
    assert states[:, 0] == pytest.approx(exact, rel=1e-6)
    assert not states[:, 1].any()
    assert by[:, 0, 0] == pytest.approx(-TIMES * exact, rel=1e-4)
    assert not by[:, 0, 1].any()
    assert not by[:, 1].any()


def test_states_that_only_feed_each_other_rest() -> None:
    """Neither y nor z moves the other as long as both are zero; y alone would move z."""
    ode = {"y": "k*sqrt(z) - y", "z": "p*y^0.5 - z"}
    for start in (0.0, 1.0):
        found = odefit.simulate(problem(ode, {"y": start, "z": 0.0}), np.array([K, P]))
        assert not isinstance(found, odefit.Failure), found
        assert bool(found.states["z"].any()) == bool(start)


def test_a_state_rests_until_an_event_moves_it() -> None:
    """z is 1 from t = 1 on and decays, x follows: x(t) = (1 - exp(-k (t - 1)/2))*2/k."""
    model = Model(ode={"x": "sqrt(z)", "z": "-k*z"})
    data = {"t": TIMES, "x": np.ones(4), "z": np.ones(4)}
    dose = Experiment("run", data, t0=0.0, events=(Event((1.0,), {"z": 1.0}),))
    given = Problem(model, parameters={"k": {}}, initial={"x": 0.0, "z": 0.0}, experiments=[dose])
    courses = ForwardMap(given).trajectories(np.array([K]))
    assert not isinstance(courses, odefit.Failure), courses
    exact = np.array([0.0, 0.0, 0.0, (1 - np.exp(-K)) * 2 / K])
    assert courses[0].states[:, 0] == pytest.approx(exact, rel=1e-7, abs=1e-12)
    slope = 2 * np.exp(-K) / K - exact[-1] / K
    assert courses[0].sensitivities[-1, 0, 0] == pytest.approx(slope, rel=1e-6)


def test_a_rate_that_is_zero_by_chance_does_not_rest() -> None:
    """p - k is zero at p = k alone: z does not move there, its derivative by p is 1 - exp(-t)."""
    ode = {"x": "-k*x + k*z^1.5", "z": "(p - k)*(1 + z^1.5) - z"}
    courses = ForwardMap(problem(ode, {"x": X0, "z": 0.0}), "bdf").trajectories(np.array([K, K]))
    assert not isinstance(courses, odefit.Failure), courses
    assert courses[0].sensitivities[:, 1, 1] == pytest.approx(1 - np.exp(-TIMES), rel=1e-6)


def test_an_initial_value_that_is_estimated_does_not_rest() -> None:
    """x' = z^1.5 with z' = -z, and z(0) = 0 that may move: z moves along with its start."""
    model = Model(ode={"x": "z^1.5", "z": "-z"})
    data = {"t": TIMES, "x": np.ones(4), "z": np.ones(4)}
    given = Problem(model, data, {}, {"x": 0.0, "z": {"lower": 0.0, "upper": 1.0}})
    courses = ForwardMap(given, "bdf").trajectories(np.array([0.0]))
    assert not isinstance(courses, odefit.Failure), courses
    assert courses[0].sensitivities[:, 1, 0] == pytest.approx(np.exp(-TIMES), rel=1e-6)


def test_a_fit_with_no_substance_in_one_experiment_is_right() -> None:
    """In the first experiment nothing moves; the second is z = (1 - p t/2)^2."""
    times = np.linspace(0.0, 1.0, 8)
    p = 0.9
    runs = [
        Experiment("empty", {"t": times, "z": np.zeros(8)}, t0=0.0),
        Experiment("full", {"t": times, "z": (1 - p * times / 2) ** 2}, t0=0.0, initial={"z": 1.0}),
    ]
    given = Problem(
        Model(ode={"z": "-p*sqrt(z)"}),
        parameters={"p": {"lower": 0.1, "upper": 5.0}},
        initial={"z": 0.0},
        experiments=runs,
    )
    result = odefit.fit(given, seed=1, jobs=1)
    assert result.best.vector == pytest.approx([p], rel=1e-6)


def test_the_whole_equations_hold_again_once_a_state_has_moved() -> None:
    """z decays by its root from t = 1 on: sqrt(z) = 1 - p (t - 1)/2, after a rest at zero."""
    times = np.array([0.0, 0.5, 1.5, 2.0])
    data = {"t": times, "z": np.ones(4)}
    for pieces in ({}, {"z": "if(t < 9, -p*sqrt(z), 0)"}):
        model = Model(ode={"z": "-p*sqrt(z)", **pieces})
        run = Experiment("run", data, t0=0.0, events=(Event((1.0,), {"z": 1.0}),))
        full = Experiment("full", data, t0=0.0, initial={"z": 4.0})
        given = Problem(model, parameters={"p": {}}, initial={"z": 0.0}, experiments=[run, full])
        courses = ForwardMap(given).trajectories(np.array([0.8]))
        assert not isinstance(courses, odefit.Failure), courses
        assert courses[0].states[:, 0] == pytest.approx([0.0, 0.0, 0.64, 0.36], rel=1e-7)
        exact = (2.0 - 0.4 * times) ** 2
        assert courses[1].states[:, 0] == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(
    ("rate", "rests"),
    [
        ("p*sqrt(z)", True),
        ("p*z^0.4 - k*z", True),
        ("k + p*sqrt(z)", False),
        ("p*z^2 - k*z", False),
        ("p*x*sqrt(z)", True),
        ("p*sqrt(x)", False),
    ],
)
def test_a_state_that_could_leave_zero_by_a_root_is_reported(rate: str, rests: bool) -> None:
    """z' = p sqrt(z) has two solutions from zero; the one that rests is used, and that is said."""
    given = problem({"x": "-k*x", "z": rate}, {"x": X0, "z": 0.0})
    warnings = [w for w in ForwardMap(given).warnings if "rests there" in w]
    assert len(warnings) == rests
    assert all(w.startswith("z begins at 0") for w in warnings)
    above = problem({"x": "-k*x", "z": rate}, {"x": X0, "z": 0.1})
    assert not any("rest" in w for w in ForwardMap(above).warnings)


LATER_TIMES = np.array([0.0, 0.01, 0.3, 1.0, 2.5, 7.0])


def tank(rate: str, **more: str) -> Problem:
    """A state that grows from zero, and one whose rate is steep there; both are measured."""
    model = Model(ode={"C": "k", "R": rate, **more}, observables={"c": "C", "r": "R"})
    data = {"t": LATER_TIMES, "c": np.ones(6), "r": np.ones(6)}
    unknowns = {"k": {"guess": 2.0}, "a": {"guess": 0.7}}
    return Problem(model, data, unknowns, {"C": 0.0, "R": 0.0, **dict.fromkeys(more, 1.0)})


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "heyoka", "bdf"])
@pytest.mark.parametrize("power", [0.5, 1 / 3, 0.75, 1.5])
@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-9])
def test_a_power_of_a_state_that_begins_at_zero_is_integrated(
    engine: str, power: float, unit: float
) -> None:
    """R' = a C^p with C = k t gives R = a k^p t^(p + 1)/(p + 1), and its derivatives."""
    k, a = 2.0 * unit, 0.7
    given = tank(f"a*{unit!r}*(C/{unit!r})^{power!r}")
    forward = ForwardMap(given, engine)  # type: ignore[arg-type]
    found = forward.evaluate(np.array([k, a]))
    assert not isinstance(found, odefit.Failure), found
    courses = forward.trajectories(np.array([k, a]))
    assert not isinstance(courses, odefit.Failure)
    (course,) = courses
    exact = unit * a * 2.0**power * LATER_TIMES ** (power + 1) / (power + 1)
    scale = exact[-1]
    assert course.states[:, 1] / scale == pytest.approx(exact / scale, rel=1e-7, abs=1e-9)
    by_k, by_a = course.sensitivities[:, 1].T
    assert by_k * k / scale == pytest.approx(power * exact / scale, rel=1e-6, abs=1e-8)
    assert by_a * a / scale == pytest.approx(exact / scale, rel=1e-6, abs=1e-8)


def test_a_state_that_leaves_zero_after_an_event_is_integrated() -> None:
    """The event empties the tank, which fills again as it did at first."""
    model = Model(ode={"C": "k", "R": "a*sqrt(C)"}, observables={"c": "C", "r": "R"})
    data = {"t": np.array([1.0, 2.0, 3.0]), "c": np.ones(3), "r": np.ones(3)}
    emptied = Event((1.0,), {"C": 0.0, "R": 0.0})
    run = Experiment("run", data, t0=0.0, events=(emptied,))
    given = Problem(
        model, parameters={"k": {}, "a": {}}, initial={"C": 0.0, "R": 0.0}, experiments=[run]
    )
    found = odefit.simulate(given, np.array([2.0, 0.7]))
    assert not isinstance(found, odefit.Failure)
    exact = 0.7 * np.sqrt(2.0) * np.array([1.0, 1.0, 2.0]) ** 1.5 / 1.5
    assert found.states["R"] == pytest.approx(exact, rel=1e-8)


@pytest.mark.slow
def test_a_tank_that_fills_from_empty_is_fitted() -> None:
    """A h' = q - c sqrt(h) from h(0) = 0 has an exact solution t(h)."""
    c, area, q = 0.1, 0.99, 0.25
    level = np.linspace(0.02, 0.9, 9) * (q / c) ** 2
    root = np.sqrt(level)
    times = -2 * area / c**2 * (c * root + q * np.log(1 - c * root / q))
    model = Model(ode={"h": f"({q!r} - c*sqrt(h))/A"})
    unknowns = {"c": {"lower": 0.01, "upper": 1.0}, "A": {"lower": 0.1, "upper": 10.0}}
    given = Problem(model, {"t": times, "h": level}, unknowns, {"h": 0.0}, t0=0.0)
    result = odefit.fit(given, seed=1, jobs=1)
    assert result.best.vector == pytest.approx([c, area], rel=1e-6)


@pytest.mark.parametrize("power", ["1/2", "1/3"])
@pytest.mark.parametrize("controlled", [True, False])
def test_tanks_in_a_row_fill_from_empty(power: str, controlled: bool) -> None:
    """Only the inflow moves the first, and only the first the second; SciPy integrates the same."""
    ode = {"x": f"1 - k*x^({power})", "y": f"k*x^({power}) - p*y^({power})"}
    ode["z"] = f"p*y^({power}) - k*z^({power})"
    given = problem(ode, dict.fromkeys(ode, 0.0))
    courses = ForwardMap(given, tolerance=1e-6, controlled=controlled).trajectories(
        np.array([K, P])
    )
    assert not isinstance(courses, odefit.Failure), courses
    found, n = courses[0], 1 / float(power[2:])

    def simulated(k: float, p: float) -> np.ndarray:
        def rates(_: float, x: np.ndarray) -> list[float]:
            out = np.array([k, p, k]) * np.maximum(x, 0.0) ** n
            return [1 - out[0], out[0] - out[1], out[1] - out[2]]

        ends = (0.0, TIMES[-1])
        return solve_ivp(rates, ends, [0.0] * 3, "LSODA", TIMES, rtol=1e-10, atol=1e-13).y.T

    assert found.states == pytest.approx(simulated(K, P), abs=1e-5)
    h = 1e-4
    for j, (k, p) in enumerate([(h, 0.0), (0.0, h)]):
        slope = (simulated(K + k, P + p) - simulated(K - k, P - p)) / (2 * h)
        assert found.sensitivities[:, :, j] == pytest.approx(slope, abs=1e-4)


def test_only_roots_and_broken_powers_of_what_moves_are_steep() -> None:
    texts = {"a*sqrt(C)": True, "a*C^0.3": True, "C^a": True, "a*C^2": False, "a*C/(1 + C)": False}
    texts |= {"a*(C/2)^a": True, "a*sqrt(t)": True, "C*-(1 + C)^-a": True}
    texts |= {"C*(a/70)^a": False, "C*sqrt(a)": False, "C*2^a": False, "max(a, C)^2*a^0.5": False}
    for text, steep in texts.items():
        given = tank(text)
        assert is_steep(VectorField.of(given.model, given.conditions)) == steep


@pytest.mark.parametrize("level", [0.0, 2.0])
def test_rates_at_the_start_are_evaluated_where_a_state_is_zero_alone(level: float) -> None:
    given = tank("a*sqrt(C)")
    field = VectorField.of(given.model, given.conditions)
    states, scalars = np.full(len(field.states), level), np.ones(len(field.scalars))
    none = np.zeros(0)
    now = Values(states, scalars, np.zeros((len(states), 0)), np.zeros((len(scalars), 0)), none)
    evaluated: list[float] = []

    def inputs(time: float) -> list[float]:
        evaluated.append(time)
        return []

    begun = first_step(field, 0.0, 1.0, inputs, now)
    assert (begun is None, evaluated == []) == (level > 0.0, level > 0.0)


WEIBULL = np.array([1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])


def released(rate: str, initial: float = 0.0, t0: float = 0.0, **options: Any) -> ForwardMap:
    """Return the forward map of a release whose rate is a power of the time since its start."""
    data = {"t": t0 + WEIBULL, "m": np.ones(len(WEIBULL))}
    names: dict[str, dict[str, float]] = {"b": {}, "s": {}, "most": {}}
    problem = Problem(Model(ode={"m": rate}), data, names, {"m": initial}, t0=t0)
    return ForwardMap(problem, **options)


LAWS: dict[str, Any] = {
    "b/s*(t/s)^(b - 1)*(most - m)": lambda t, b, s, most: most * (1 - np.exp(-((t / s) ** b))),
    "t^(b - 1)*(most - m)/s": lambda t, b, s, most: most * (1 - np.exp(-(t**b) / b / s)),
    "(t/s)^(b - 1)*most": lambda t, b, s, most: most * t**b / b * s ** (1 - b),
}


@pytest.mark.parametrize("engine", ["auto", "bdf"])
@pytest.mark.parametrize("b", [0.4, 0.6, 0.9, 1.0, 1.3, 1.6, 2.0, 2.6, 3.7])
@pytest.mark.parametrize("law", LAWS)
def test_a_rate_may_be_an_unknown_power_of_the_time(law: str, b: float, engine: Any) -> None:
    """Infinite rates at the start have finite integrals; a base of zero is no small number."""
    forward = released(law, engine=engine)
    at = {"b": b, "s": 4.0, "most": 95.0}
    found = forward.evaluate(forward.problem.vector(at))
    assert isinstance(found, Evaluation), found
    exact = LAWS[law]
    expected = exact(WEIBULL, **at)
    np.testing.assert_allclose(found.residuals + 1.0, expected, atol=1e-7 * expected.max())
    for k, name in enumerate(forward.problem.keys):
        step = 1e-5 * at[name]
        both = [exact(WEIBULL, **{**at, name: at[name] + sign * step}) for sign in (1, -1)]
        slope = (both[0] - both[1]) / (2 * step)
        tolerance = 1e-5 * max(np.abs(slope).max(), 1e-3)
        np.testing.assert_allclose(found.jacobian[:, k], slope, atol=tolerance)


@pytest.mark.parametrize("b", [-0.5, 0.0, 0.05])
@pytest.mark.parametrize("law", LAWS)
def test_a_power_without_a_finite_integral_is_not_integrated(law: str, b: float) -> None:
    forward = released(law)
    found = forward.evaluate(forward.problem.vector({"b": b, "s": 4.0, "most": 95.0}))
    assert isinstance(found, Failure)
    assert "the right-hand side of m is not finite at t = 0" in str(found)


@pytest.mark.parametrize("engine", ["auto", "bdf"])
@pytest.mark.parametrize("initial", [0.0, 5.0])
@pytest.mark.parametrize("b", [0.6, 1.2, 1.4, 1.6, 1.8])
def test_the_time_of_such_a_power_may_begin_anywhere(
    b: float, initial: float, engine: EngineName
) -> None:
    forward = released("b/s*((t - 30)/s)^(b - 1)*(most - m)", initial, t0=30.0)
    forward = ForwardMap(forward.problem, engine)
    at = {"b": b, "s": 4.0, "most": 95.0}
    found = forward.evaluate(forward.problem.vector(at))
    assert isinstance(found, Evaluation), found
    expected = at["most"] + (initial - at["most"]) * np.exp(-((WEIBULL / at["s"]) ** b))
    least = 0.0 if engine == "auto" else 1e-8
    np.testing.assert_allclose(found.residuals + 1.0, expected, rtol=1e-6, atol=least)


def test_sensitivities_under_a_root_of_the_time_are_finite() -> None:
    """The derivative of sqrt(t/s) by s is 0/0 at t = 0."""
    forward = released("sqrt(t/s)*(most - m) + 0*b", 5.0)
    at = {"b": 1.0, "s": 4.0, "most": 95.0}
    found = forward.evaluate(forward.problem.vector(at))
    assert isinstance(found, Evaluation), found
    exponent = -(2 / 3) * WEIBULL**1.5 / math.sqrt(4.0)
    expected = 95.0 - 90.0 * np.exp(exponent)
    np.testing.assert_allclose(found.residuals + 1.0, expected, rtol=1e-7)
    by_s = 90.0 * np.exp(exponent) * exponent / 8.0
    np.testing.assert_allclose(found.jacobian[:, 1], by_s, atol=1e-6 * np.abs(by_s).max())


@pytest.mark.parametrize("engine", ["auto", "bdf"])
@pytest.mark.parametrize("initial", [0.0, 5.0])
@pytest.mark.parametrize("n", [0.6, 1.0, 1.4])
def test_an_input_that_begins_at_zero_may_have_an_unknown_exponent(
    n: float, initial: float, engine: Any
) -> None:
    """An effect that follows a measured dose, zero at first, by a power or a Hill function."""
    times = np.concatenate([[0.0], WEIBULL])
    data = {"t": times, "u": 2.0 * times, "m": np.r_[np.nan, np.ones(len(WEIBULL))]}
    model = Model(
        ode={"m": "(u/k)^n*(most - m)", "h": "most*u^n/(k^n + u^n) - h"},
        observables={"m": "m"},
        inputs={"u": "linear"},
    )
    states = {"m": initial, "h": 0.0}
    problem = Problem(model, data, {"k": {}, "n": {}, "most": {}}, states, t0=0.0)
    at = {"k": 4.0, "n": n, "most": 95.0}

    def exact(k: float, n: float, most: float) -> Any:
        exponent = (2 * WEIBULL / k) ** (n + 1) * k / 2 / (n + 1)
        return most + (initial - most) * np.exp(-exponent)

    found = ForwardMap(problem, engine).evaluate(problem.vector(at))
    assert isinstance(found, Evaluation), found
    np.testing.assert_allclose(found.residuals + 1.0, exact(**at), rtol=1e-6)
    for k, name in enumerate(problem.keys):
        step = 1e-5 * at[name]
        both = [exact(**{**at, name: at[name] + sign * step}) for sign in (1, -1)]
        slope = (both[0] - both[1]) / (2 * step)
        np.testing.assert_allclose(found.jacobian[:, k], slope, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("b", [0.6, 1.0, 1.2, 1.4, 2.4])
def test_a_release_after_an_unknown_lag_may_begin_with_any_power(b: float) -> None:
    """A rate that is rounding just after the lag does not set the size of the state."""
    forward = released("if(t > s, 1 - exp(-((t - s)/2)^b), 0)*most - m")
    at = {"b": b, "s": 0.3, "most": 95.0}
    found = forward.evaluate(forward.problem.vector(at))
    assert isinstance(found, Evaluation), found

    def slope(t: float, m: Any) -> Any:
        return (1 - np.exp(-(((t - 0.3) / 2) ** b))) * 95.0 - m

    late = WEIBULL[WEIBULL > 0.3]
    exact = solve_ivp(slope, (0.3, 16.0), [0.0], "DOP853", late, rtol=1e-11, atol=1e-13)
    expected = np.r_[np.zeros(len(WEIBULL) - len(late)), exact.y[0]]
    np.testing.assert_allclose(found.residuals + 1.0, expected, atol=1e-6)


@pytest.mark.parametrize("engine", ["auto", "bdf"])
@pytest.mark.parametrize("rate", ["k/x^n", "k*x^(-n)", "k/(x + x^n)"])
def test_a_pole_at_the_start_is_not_taken_for_a_large_number(rate: str, engine: Any) -> None:
    data = {"t": WEIBULL, "y": np.ones(len(WEIBULL))}
    model = Model(ode={"x": "1", "y": rate}, observables={"y": "y"})
    problem = Problem(model, data, {"k": {}, "n": {}}, {"x": 0.0, "y": 0.0}, t0=0.0)
    found = ForwardMap(problem, engine).evaluate(problem.vector({"k": 2.0, "n": 0.3}))
    assert isinstance(found, Failure)
    assert "the right-hand side of y is not finite at t = 0" in str(found)


def test_rounding_at_a_root_of_time_is_not_an_infinite_rate() -> None:
    """(s + t) - s - t is 2e-16 after a quarter of the first step, and 4e-17 at its end."""
    times = np.array([5e-3, 0.1, 1.0, 4.0])
    names: dict[str, dict[str, float]] = {"b": {}, "s": {}}
    model = Model(ode={"m": "sqrt(t) + b*((s + t) - s - t)"})
    problem = Problem(model, {"t": times, "m": np.ones(4)}, names, {"m": 0.0}, t0=0.0)
    found = ForwardMap(problem).evaluate(problem.vector({"b": 1.0, "s": 4.0}))
    assert isinstance(found, Evaluation), found
    np.testing.assert_allclose(found.residuals + 1.0, times**1.5 / 1.5, rtol=1e-8)
