"""Events whose times depend on the unknowns or on the states, beside exact solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odefit
from odefit.common.arrays import Array
from odefit.problem import Event, Experiment, Model, Problem
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.failure import Failure

ENGINES = ["auto", "bdf"]


def made(
    ode: dict[str, str],
    unknowns: list[str],
    times: Any,
    initial: dict[str, Any],
    observables: dict[str, str] | None = None,
    constants: dict[str, float] | None = None,
    **experiment: Any,
) -> Problem:
    times = np.asarray(times, dtype=float)
    names = observables or {state: state for state in ode}
    data = {"t": times, **{name: np.zeros(len(times)) for name in names}}
    return Problem(
        Model(ode=ode, observables=observables, constants=constants),
        experiments=[Experiment("one", data, **{"t0": 0.0, **experiment})],
        parameters={k: {"lower": 0.0, "upper": 50.0} for k in unknowns},
        initial=initial,
    )


def predicted(problem: Problem, at: Any, **keys: Any) -> tuple[Array, Array]:
    """The model's values and derivatives at the data, those of the first observable first."""
    found = ForwardMap(problem, **keys).evaluate(np.array(at, dtype=float))
    assert isinstance(found, Evaluation), found
    return found.residuals, found.jacobian  # the data are zeros


def check_derivatives(problem: Problem, at: Any, h: float = 1e-4, tolerance: float = 1e-5) -> None:
    """Compare the Jacobian with central differences."""
    at = np.array(at, dtype=float)
    forward = ForwardMap(problem)
    found = forward.evaluate(at)
    assert isinstance(found, Evaluation), found
    for k in range(len(at)):
        step = h * max(abs(at[k]), 0.1)
        values = []
        for factor in (1.0, -1.0, 2.0, -2.0):
            moved = at.copy()
            moved[k] += factor * step
            there = forward.evaluate(moved)
            assert isinstance(there, Evaluation), there
            values.append(there.residuals)
        numeric = (8 * (values[0] - values[1]) - (values[2] - values[3])) / (12 * step)
        scale = max(1.0, float(np.abs(numeric).max()))
        np.testing.assert_allclose(found.jacobian[:, k], numeric, atol=tolerance * scale)


# Times that are expressions ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dose_at_an_estimated_time(engine: str) -> None:
    """One compartment, x' = -k x, with a dose d at tau: x is known with all derivatives."""
    times = np.array([0.0, 1.0, 2.0, 3.5, 5.0, 9.0])
    problem = made(
        {"x": "-k*x"}, ["k", "tau", "d"], times, {"x": 3.0},
        events=[Event(("tau",), {"x": "x + d"})],
    )  # fmt: skip
    k, tau, d = 0.4, 2.7, 5.0
    after = times > tau
    dosed = d * np.exp(-k * (times - tau)) * after
    values, jacobian = predicted(problem, [k, tau, d], engine=engine)
    np.testing.assert_allclose(values, 3 * np.exp(-k * times) + dosed, rtol=2e-6)
    by_k = -times * 3 * np.exp(-k * times) - (times - tau) * dosed
    expected = np.stack([by_k, k * dosed, dosed / d], axis=1)
    np.testing.assert_allclose(jacobian, expected, rtol=2e-5, atol=1e-6)


def test_a_dose_beyond_the_data_or_before_the_beginning_does_not_happen() -> None:
    times = np.array([1.0, 2.0, 4.0])
    problem = made(
        {"x": "-k*x"}, ["k", "tau"], times, {"x": 3.0}, t0=1.0,
        events=[Event(("tau",), {"x": "x + 5"})],
    )  # fmt: skip
    for tau in (0.5, 4.0, 7.0):
        values, jacobian = predicted(problem, [0.4, tau])
        np.testing.assert_allclose(values, 3 * np.exp(-0.4 * (times - 1.0)), rtol=1e-6)
        assert not jacobian[:, 1].any()


@pytest.mark.parametrize(("measured", "jump"), [("before", 0.0), ("after", 5.0)])
def test_a_measurement_at_the_time_of_a_located_event(measured: Any, jump: float) -> None:
    problem = made(
        {"x": "-k*x"}, ["k", "tau"], [1.0, 2.0, 4.0], {"x": 3.0},
        events=[Event(("tau",), {"x": "x + 5"}, measured=measured)],
    )  # fmt: skip
    for end in (2.0, 4.0):
        values, jacobian = predicted(problem, [0.4, end])
        place = [1.0, 2.0, 4.0].index(end)
        assert values[place] == pytest.approx(3 * np.exp(-0.4 * end) + jump, rel=1e-6)
        assert np.isfinite(jacobian).all()


@pytest.mark.parametrize("tau", [-0.5, 0.0, 1.3, 2.0, 6.0])
def test_an_estimated_switch_is_exact_wherever_its_time_lies(tau: float) -> None:
    """x' = a before tau and b after it."""
    times = np.array([0.0, 1.0, 2.0, 5.0])
    problem = made({"x": "piecewise(a, t < s - 1, b)"}, ["a", "b", "s"], times, {"x": 1.0})
    a, b = 0.7, 0.2
    late = np.maximum(times - max(tau, 0.0), 0.0)
    values, jacobian = predicted(problem, [a, b, tau + 1.0])
    np.testing.assert_allclose(values, 1 + a * (times - late) + b * late, rtol=1e-8)
    np.testing.assert_allclose(jacobian[:, 0], times - late, atol=1e-8)
    np.testing.assert_allclose(jacobian[:, 1], late, atol=1e-8)
    if tau not in (0.0, 2.0):
        np.testing.assert_allclose(jacobian[:, 2], (a - b) * (times > tau) * (tau > 0), atol=1e-8)
    assert ForwardMap(problem).field.smooth


def test_events_that_depend_on_time_states_and_inputs_have_the_right_derivatives() -> None:
    times = np.linspace(0.0, 8.0, 9)
    data = {"t": times, "x": np.zeros(9), "y": np.zeros(9), "u": np.sin(times)}
    problem = Problem(
        Model(ode={"x": "-k*x + u*c", "y": "x*c - y"}, inputs={"u": "cubic"}, constants={"c": 1.0}),
        experiments=[
            Experiment(
                "one",
                data,
                t0=0.0,
                constants={"c": "k + 1"},
                events=[
                    Event(("tau", "2*tau"), {"x": "x*t + u*y", "c": "c + sqrt(t)*x/9"}),
                    Event((3.2,), {"y": "y + tau"}),
                    Event(("tau + 1/k",), {"y": "2*y"}),
                ],
            )
        ],
        parameters={"k": {"lower": 0.0}, "tau": {"lower": 0.0}},
        initial={"x": 1.0, "y": "k"},
    )
    check_derivatives(problem, [0.6, 1.57])


def test_events_at_coinciding_times_happen_one_after_the_other() -> None:
    problem = made(
        {"x": "-k*x"}, ["k", "a", "b"], [1.0, 3.0], {"x": 1.0},
        events=[
            Event(("a",), {"x": "x + 1"}),
            Event((2.0,), {"x": "3*x"}),
            Event(("b",), {"x": "x^2"}),
        ],
    )  # fmt: skip
    values, jacobian = predicted(problem, [0.5, 2.0, 2.0])
    # The known one first, then those that are located, in their order.
    expected = (3 * np.exp(-1.0) + 1) ** 2 * np.exp(-0.5)
    assert values[1] == pytest.approx(expected, rel=1e-7)
    assert np.isfinite(jacobian).all()


def test_a_located_event_in_a_system_with_algebraic_variables() -> None:
    times = np.array([0.5, 1.0, 2.0, 3.0])
    problem = Problem(
        Model(
            ode={"x": "-z*piecewise(1, t < tau, 2)"},
            algebraic={"z": "z + z^3 - k*x"},
            observables={"x": "x", "w": "z"},
        ),
        data={"t": times, "x": np.zeros(4), "w": np.zeros(4)},
        t0=0.0,
        parameters={"k": {"lower": 0.0}, "tau": {"lower": 0.0}},
        initial={"x": 2.0},
    )
    check_derivatives(problem, [0.8, 1.4])


def test_an_observable_of_a_switched_constant_sees_it() -> None:
    problem = made(
        {"x": "c"}, ["tau"], [1.0, 2.0, 3.0], {"x": 0.0}, observables={"y": "x*c"},
        constants={"c": 1.0}, events=[Event(("tau",), {"c": "2 + t"})],
    )  # fmt: skip
    values, jacobian = predicted(problem, [1.5])
    x = 1.5 + 3.5 * np.array([0.5, 1.5])
    np.testing.assert_allclose(values, [1.0, *(x * 3.5)], rtol=1e-7)
    by_tau = (1.0 - 3.5 + np.array([0.5, 1.5])) * 3.5 + x
    np.testing.assert_allclose(jacobian[:, 0], [0.0, *by_tau], rtol=1e-6, atol=1e-9)


def test_a_fit_recovers_an_estimated_switch_time() -> None:
    times = np.linspace(0.0, 10.0, 21)
    k, tau = 0.9, 3.3
    x = np.where(times < tau, times, tau + (1 - np.exp(-k * (times - tau))) / k)
    problem = Problem(
        Model(ode={"x": "piecewise(1, t < tau, 1 - k*(x - tau))"}),
        data={"t": times, "x": x},
        parameters={"k": {"lower": 0.05, "upper": 5.0}, "tau": {"lower": 0.5, "upper": 9.0}},
        initial={"x": 0.0},
    )
    result = odefit.fit(problem, seed=1)
    assert result.parameters.loc["k", "estimate"] == pytest.approx(k, rel=1e-4)
    assert result.parameters.loc["tau", "estimate"] == pytest.approx(tau, rel=1e-4)


# Events that a condition triggers ----------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ball_bounces(engine: str) -> None:
    """Height, velocity and their derivatives by gravity, restitution and height are known."""
    g, e, h = 9.81, 0.8, 2.0
    times = np.linspace(0.0, 4.0, 17)
    problem = made(
        {"y": "v", "v": "-g"}, ["g", "e", "h"], times, {"y": "h", "v": 0.0},
        events=[Event((), {"v": "-e*v"}, when="y <= 0")],
    )  # fmt: skip

    def height(g: float, e: float, h: float) -> Array:
        fall = np.sqrt(2 * h / g)
        found = np.zeros(len(times))
        for i, t in enumerate(times):
            start, speed = fall, e * g * fall
            if t <= fall:
                found[i] = h - g * t**2 / 2
                continue
            while t > start + 2 * speed / g:
                start, speed = start + 2 * speed / g, e * speed
            found[i] = speed * (t - start) - g * (t - start) ** 2 / 2
        return found

    values, jacobian = predicted(problem, [g, e, h], engine=engine)
    np.testing.assert_allclose(values[: len(times)], height(g, e, h), atol=3e-5)
    for k in range(3):
        step = np.eye(3)[k] * 1e-6
        up, down = (height(*(np.array([g, e, h]) + s)) for s in (step, -step))
        np.testing.assert_allclose(
            jacobian[: len(times), k], (up - down) / 2e-6, rtol=2e-4, atol=5e-4
        )


def test_a_threshold_resets_a_state() -> None:
    """x' = a, back to r whenever it reaches b: a saw tooth."""
    times = np.linspace(0.0, 10.0, 33)
    problem = made(
        {"x": "a"}, ["a", "b", "r"], times, {"x": 0.0},
        events=[Event((), {"x": "r"}, when="x > b")],
    )  # fmt: skip
    a, b, r = 0.93, 1.7, 0.4
    count = np.floor((a * times - r) / (b - r)).clip(0)
    values, jacobian = predicted(problem, [a, b, r])
    np.testing.assert_allclose(values, a * times - count * (b - r), atol=1e-8)
    expected = np.stack([times, -count, count], axis=1)
    np.testing.assert_allclose(jacobian, expected, atol=1e-7)


def test_a_state_that_has_vanished_is_set_to_zero() -> None:
    """The shape of Liu et al. 2025: U < 1e-8 sets U = 0, long after the data would see it."""
    problem = made(
        {"U": "-k*U*V", "V": "-0.1*U*V + 1e-3*V"}, ["k"], [0.0, 5.0, 20.0, 40.0],
        {"U": 4.0, "V": 2.0}, events=[Event((), {"U": "0"}, when="U < 1e-8")],
    )  # fmt: skip
    values, _ = predicted(problem, [1.3])
    assert values[2] == 0.0
    assert values[3] == 0.0
    check_derivatives(problem, [1.3])


def test_joined_conditions_fire_when_the_whole_becomes_true() -> None:
    """x = t; the event needs t >= tau and (x past 2, or y past 5), and not both at once."""
    problem = made(
        {"x": "1", "y": "s", "n": "0"}, ["s"], [0.5, 1.5, 2.5, 3.5, 4.5], {"x": 0, "y": 0, "n": 0},
        events=[Event((), {"n": "n + 1 + x"}, when="(x >= 2 || y >= 3) && !(x >= 3)")],
    )  # fmt: skip
    values, jacobian = predicted(problem, [1.2])  # y reaches 3 at 2.5, while x is past 2
    np.testing.assert_allclose(values[10:], [0, 0, 3, 3, 3], atol=1e-8)
    values, jacobian = predicted(problem, [2.0])  # y reaches 3 at 1.5 first
    np.testing.assert_allclose(values[10:], [0, 0, 2.5, 2.5, 2.5], atol=1e-8)
    np.testing.assert_allclose(jacobian[12, 0], -3 / 2.0**2, rtol=1e-6)


@pytest.mark.parametrize(("initially", "count"), [(True, 0.0), (False, 1.0)])
def test_a_condition_true_at_the_start_fires_only_if_initially_false(
    initially: bool, count: float
) -> None:
    problem = made(
        {"x": "-k*x", "n": "0"}, ["k"], [0.0, 1.0, 3.0], {"x": 1.0, "n": 0.0},
        events=[Event((), {"n": "n + 1"}, when="x > 0.5", initially=initially)],
    )  # fmt: skip
    values, _ = predicted(problem, [0.5])
    np.testing.assert_allclose(values[3:], [0.0, count, count])


def test_an_event_can_trigger_another_at_once() -> None:
    problem = made(
        {"x": "1", "y": "0", "z": "0"}, ["a"], [1.0, 3.0], {"x": 0.0, "y": 0.0, "z": 0.0},
        events=[
            Event((), {"y": "2"}, when="x >= a"),
            Event((), {"z": "x + y"}, when="y > 1"),
            Event((2.5,), {"y": "0"}),
        ],
    )  # fmt: skip
    values, jacobian = predicted(problem, [1.5])
    np.testing.assert_allclose(values, [1, 3, 0, 0, 0, 3.5], atol=1e-9)
    assert jacobian[5, 0] == pytest.approx(1.0, rel=1e-8)


def test_two_events_with_the_same_condition_both_happen() -> None:
    problem = made(
        {"x": "1", "y": "0"}, ["a"], [1.0, 3.0], {"x": 0.0, "y": 0.0},
        events=[Event((), {"y": "y + 1"}, when="x >= a"), Event((), {"y": "3*y"}, when="x >= a")],
    )  # fmt: skip
    values, _ = predicted(problem, [1.5])
    np.testing.assert_allclose(values[2:], [0.0, 3.0])


def test_crossings_that_lie_close_together_are_seen() -> None:
    """x dips below 0 for a fiftieth of the time between two points that are looked at."""
    problem = made(
        {"x": "2*(t - 3.017)", "n": "0"}, ["k"], [0.0, 10.0], {"x": "3.017^2 - 1e-6", "n": "0*k"},
        events=[Event((), {"n": "n + 1"}, when="x < 0")],
    )  # fmt: skip
    values, _ = predicted(problem, [1.0])
    assert values[3] == 1.0


def test_events_that_follow_each_other_ever_faster_are_a_failure_that_says_so() -> None:
    problem = made(
        {"y": "v", "v": "-g"}, ["g"], [0.0, 50.0], {"y": 1.0, "v": 0.0},
        events=[Event((), {"v": "-0.5*v"}, when="y <= 0")],
    )  # fmt: skip
    found = ForwardMap(problem).evaluate(np.array([9.81]))
    assert isinstance(found, Failure)
    assert "the condition 'y <= 0' triggers an endless series of events" in found.reason
    assert found.time == pytest.approx(3 * np.sqrt(2 / 9.81), rel=1e-6)


def test_a_switch_whose_time_is_assigned_is_followed() -> None:
    """The switch at a = 2 is moved to 3 while it is still ahead."""
    problem = made(
        {"x": "piecewise(k, t > a, 0)"}, ["k"], [1.0, 2.5, 4.0], {"x": 0.0}, constants={"a": 2.0},
        events=[Event((1.0,), {"a": "3"})],
    )  # fmt: skip
    values, jacobian = predicted(problem, [0.5])
    np.testing.assert_allclose(values, [0.0, 0.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(jacobian[:, 0], [0.0, 0.0, 1.0], atol=1e-9)


def test_a_condition_of_an_unknown_threshold_has_the_right_derivatives() -> None:
    problem = made(
        {"x": "-k*x + c", "y": "x - y"}, ["k", "c", "b"], np.linspace(0, 12, 13),
        {"x": 0.1, "y": 0.0},
        events=[Event((), {"x": "x/3", "y": "y + b*t"}, when="y*x > b && t > 1")],
    )  # fmt: skip
    check_derivatives(problem, [0.7, 1.1, 0.9])


@pytest.mark.slow
def test_a_spiking_neuron_is_reset_before_its_potential_grows_without_bound() -> None:
    """Izhikevich 2003: the solution that is not reset ends within a millisecond of the spike."""
    times = np.linspace(0.0, 200.0, 41)
    problem = made(
        {"v": "0.04*v^2 + 5*v + 140 - u + current", "u": "a*(0.2*v - u)"},
        ["a", "current", "jump"], times, {"v": -65.0, "u": -13.0},
        events=[Event((), {"v": "-65", "u": "u + jump"}, when="v >= 30")],
    )  # fmt: skip
    spiked = spikes(times)
    values, _ = predicted(problem, [0.02, 10.0, 8.0])
    np.testing.assert_allclose(values[: len(times)], spiked, atol=1e-6)
    check_derivatives(problem, [0.02, 10.0, 8.0], h=1e-6)


def spikes(times: Array) -> Array:
    """Return the neuron's potential, by SciPy's location of events."""

    def rhs(t: float, y: Array) -> list[float]:
        return [0.04 * y[0] ** 2 + 5 * y[0] + 140 - y[1] + 10, 0.02 * (0.2 * y[0] - y[1])]

    def spike(t: float, y: Array) -> float:
        return float(y[0] - 30)

    spike.terminal, spike.direction = True, 1  # type: ignore[attr-defined] # SciPy's way
    integrate: Any = solve_ivp
    found, start, y = np.empty(len(times)), 0.0, np.array([-65.0, -13.0])
    while start < times[-1]:
        part = integrate(
            rhs, (start, times[-1]), y, "DOP853", events=spike, rtol=1e-11, atol=1e-11,
            dense_output=True,
        )  # fmt: skip
        inside = (times >= start) & (times <= part.t[-1])
        found[inside] = part.sol(times[inside])[0]
        start, y = float(part.t[-1]), np.array([-65.0, part.y[1, -1] + 8.0])
    return found
