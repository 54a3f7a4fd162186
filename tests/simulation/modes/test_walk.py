"""Right-hand sides that switch, against closed forms and finite differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odefit import Event, Experiment, Failure, ForwardMap, Model, Problem
from tests.simulation.numerics import Array, differences, evaluated, integrated

ENGINES = ["heyoka", "runge-kutta", "bdf", "casadi"]


def made(
    ode: Mapping[str, str],
    initial: Mapping[str, Any],
    times: Array,
    inputs: Mapping[str, Any] | None = None,
    interpolation: Any = "constant",
    **experiment: Any,
) -> Problem:
    given = inputs or {}
    model = Model(ode=ode, inputs=dict.fromkeys(given, interpolation))
    data = {"t": times, **given, **{s: np.zeros(len(times)) for s in ode}}
    names = sorted(model.parameters | {v for v in initial.values() if isinstance(v, str)})
    return Problem(
        model,
        parameters={n: {} for n in names},
        initial=initial,
        experiments=[Experiment("one", data, t0=0.0, **experiment)],
    )


def checked(
    problem: Problem, values: Mapping[str, float], engine: Any = "auto"
) -> tuple[Array, dict[str, Array]]:
    """Return states at the data times, and their derivatives, which agree with differences."""
    forward = ForwardMap(problem, engine=engine)
    vector = np.array([values[u.name] for u in problem.unknowns])
    found = integrated(forward, vector)
    jacobian = evaluated(forward, vector).jacobian
    expected = differences(lambda v: evaluated(forward, v).residuals, vector, 1e-5)
    np.testing.assert_allclose(jacobian, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    rows = jacobian.reshape(len(problem.model.ode), len(found.times), -1)
    return found.states, {u.name: rows[:, :, k].T for k, u in enumerate(problem.unknowns)}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_substance_used_up_has_no_sensitivity(engine: Any) -> None:
    times = np.array([0.0, 10.0, 30.0, 60.0, 200.0])
    problem = made({"B": "-2*k*if(B > 0, 1, 0)"}, {"B": 1.0}, times)
    states, by = checked(problem, {"k": 0.01}, engine)
    np.testing.assert_allclose(states[:, 0], np.maximum(1 - 0.02 * times, 0), atol=1e-12)
    np.testing.assert_allclose(by["k"][:, 0], [0, -20, -60, 0, 0], atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sliding_block_stops_and_stays(engine: Any) -> None:
    """The way to rest is v0^2/(2 F), as every textbook of mechanics has it."""
    times = np.array([0.5, 3.0, 50.0])
    problem = made({"x": "v", "v": "-F*sign(v)"}, {"x": 0.0, "v": "v0"}, times)
    states, by = checked(problem, {"F": 0.5, "v0": 1.0}, engine)
    np.testing.assert_allclose(states, [[0.4375, 0.75], [1.0, 0.0], [1.0, 0.0]], atol=1e-8)
    np.testing.assert_allclose(by["F"][1:], [[-2.0, 0.0]] * 2, atol=1e-7)
    np.testing.assert_allclose(by["v0"][1:], [[2.0, 0.0]] * 2, atol=1e-7)


@pytest.mark.parametrize("force", ["r*t", "r*u"])
def test_a_mass_at_rest_moves_when_the_force_exceeds_friction(force: str) -> None:
    times = np.linspace(0.0, 4.0, 9)
    inputs = {"u": times} if "u" in force else None
    problem = made({"v": f"{force} - F*sign(v)"}, {"v": 0.0}, times, inputs, "linear")
    states, by = checked(problem, {"r": 0.5, "F": 0.6})
    since = np.maximum(times - 1.2, 0.0)
    np.testing.assert_allclose(states[:, 0], 0.25 * since**2, atol=1e-10)
    np.testing.assert_allclose(by["F"][:, 0], -since, atol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_level_is_held_at_a_threshold_that_moves_with_its_parameter(engine: Any) -> None:
    times = np.array([1.0, 4.0, 9.0])
    problem = made({"x": "a - b*if(x > c, 1, 0)", "y": "x - y"}, {"x": 0.0, "y": 0.0}, times)
    states, by = checked(problem, {"a": 1.0, "b": 3.0, "c": 2.0}, engine)
    np.testing.assert_allclose(states[:, 0], [1.0, 2.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(by["c"][:, 0], [0.0, 1.0, 1.0], atol=1e-8)
    np.testing.assert_allclose(by["a"][:, 0], [1.0, 0.0, 0.0], atol=1e-8)
    np.testing.assert_allclose(by["b"], 0.0, atol=1e-8)


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_a_surface_that_moves_with_an_input_is_followed(interpolation: str) -> None:
    times = np.linspace(0.0, 3.0, 32)
    belt = np.sin(times) if interpolation == "cubic" else times / 2
    problem = made({"v": "-F*sign(v - u)"}, {"v": 1.0}, times, {"u": belt}, interpolation)
    states, by = checked(problem, {"F": 1.5})
    reached = states[:, 0] - belt < 1e-6
    assert reached[8:].all()
    assert not reached[:3].any()
    np.testing.assert_allclose(states[reached, 0], belt[reached], atol=1e-9)
    np.testing.assert_allclose(by["F"][reached], 0.0, atol=1e-8)


def test_a_threshold_that_is_passed_turns_the_sensitivities() -> None:
    """A drug acts while C = C0 exp(-ke t) exceeds a threshold: until t1 = log(C0/mic)/ke."""
    times = np.array([1.0, 3.0, 8.0])
    equations = {"C": "-ke*C", "N": "g*N - kill*N*heaviside(C - mic)"}
    problem = made(equations, {"C": 8.0, "N": 1.0}, times)
    values = {"ke": 0.5, "g": 0.2, "kill": 0.6, "mic": 2.0}
    states, by = checked(problem, values)
    acts = np.minimum(times, np.log(4.0) / 0.5)
    expected = np.exp(0.2 * times - 0.6 * acts)
    np.testing.assert_allclose(states[:, 1], expected, rtol=1e-9)
    later = (times > acts) * expected * 0.6
    np.testing.assert_allclose(by["mic"][:, 1], later / (0.5 * 2.0), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(by["ke"][:, 1], later * np.log(4.0) / 0.25, rtol=1e-7, atol=1e-10)


@pytest.mark.slow
def test_a_block_on_a_belt_sticks_and_slips_as_by_hand() -> None:
    k, fs, vb = 1.0, 1.0, 0.3
    times = np.linspace(0.0, 25.0, 26)
    equations = {"x": "v", "v": "-k*x - Fs*sign(v - vb)/(1 + abs(v - vb))"}
    problem = made(equations, {"x": 0.0, "v": 0.0}, times)
    states, _ = checked(problem, {"k": k, "Fs": fs, "vb": vb})

    def slips(_: float, y: Array) -> list[float]:
        return [y[1], -k * y[0] + fs / (1 + abs(y[1] - vb))]

    def meets(_: float, y: Array) -> float:
        return float(y[1] - vb)

    meets.terminal = True  # type: ignore[attr-defined]
    meets.direction = 1.0  # type: ignore[attr-defined]
    expected, now, time = np.zeros((26, 2)), [0.0, 0.0], 0.0
    while time < 25.0:
        exact: Any = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "dense_output": True}
        way: Any = solve_ivp(slips, (time, 25.0), now, events=meets, **exact)
        inside = (times >= time) & (times <= way.t[-1])
        expected[inside] = way.sol(times[inside]).T
        time, now = float(way.t[-1]), [float(way.y[0, -1]), vb]
        if way.status != 1:
            break
        leaves = time + (fs / k - now[0]) / vb
        inside = (times >= time) & (times <= leaves)
        expected[inside] = np.stack(
            [now[0] + vb * (times[inside] - time), vb + 0 * times[inside]], 1
        )
        # Just behind the point where the spring wins, the block is slower than the belt.
        time, now = leaves, [fs / k, vb - 1e-13]
    np.testing.assert_allclose(states, expected, atol=1e-6)


@pytest.mark.slow
def test_two_blocks_that_rest_at_once_are_two_sliding_surfaces() -> None:
    times = np.linspace(0.0, 12.0, 25)
    equations = {
        "x": "v", "v": "k*(y - x) + A*sin(t) - F*sign(v)",
        "y": "w", "w": "k*(x - y) - G*sign(w)",
    }  # fmt: skip
    problem = made(equations, dict.fromkeys("xvyw", 0.0), times)
    states, _ = checked(problem, {"k": 1.5, "A": 1.0, "F": 0.3, "G": 0.4})
    assert (states[:, 3] == 0.0).sum() >= 5
    assert np.abs(states[:, 3]).max() > 0.1


def test_an_impulse_sets_a_resting_block_in_motion() -> None:
    times = np.array([3.0, 4.5, 9.0])
    kick = Event((), {"v": "v + 0.5"}, when="x2 > 4")
    equations = {"x": "v", "v": "-F*sign(v)", "x2": "1"}
    initial = {"x": 0.0, "v": 1.0, "x2": 0.0}
    problem = made(equations, initial, times, events=[kick])
    states, by = checked(problem, {"F": 0.5})
    np.testing.assert_allclose(states[:, 0], [1.0, 1.0 + 0.25 - 0.0625, 1.25], atol=1e-8)
    np.testing.assert_allclose(by["F"][-1, 0], -2.0 - 0.5, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("k", [0.5, 0.49, 0.37, 0.73, 0.61, 0.345])
def test_an_event_at_the_surface_itself_sees_it_reached(k: float, engine: str) -> None:
    """Rounding decides whether the surface or the event is found first."""
    times = np.array([1.0, 3.0, 5.5])
    refill = Event((), {"B": "B + 2"}, when="B <= 0")
    problem = made({"B": "-k*if(B > 0, 1, 0)"}, {"B": 1.0}, times, events=[refill])
    states, by = checked(problem, {"k": k}, engine)
    refills = np.maximum(np.ceil((k * times - 1.0) / 2.0), 0.0)
    np.testing.assert_allclose(states[:, 0], 1.0 - k * times + 2.0 * refills, atol=1e-8)
    np.testing.assert_allclose(by["k"][:, 0], -times, atol=1e-7)


def test_a_motion_on_an_edge_that_repels_takes_the_side_as_it_is_written() -> None:
    times = np.array([1.0, 2.0])
    problem = made({"x": "a*if(x > 0, 1, -1)"}, {"x": 0.0}, times)
    states, _ = checked(problem, {"a": 2.0})
    np.testing.assert_allclose(states[:, 0], [-2.0, -4.0], atol=1e-9)


@pytest.mark.slow
def test_switching_ever_faster_is_a_failure_that_says_so() -> None:
    """The twisting algorithm of sliding-mode control comes to rest through endless switches."""
    problem = made(
        {"x": "y", "y": "-a*sign(x) - b*sign(y)"}, {"x": 1.0, "y": 0.0}, np.array([50.0])
    )
    found = ForwardMap(problem).evaluate(np.array([1.0, 0.5]))
    assert isinstance(found, Failure)
    assert "switches without end where" in found.reason
    assert found.time < 20.0


@pytest.mark.slow
def test_a_steady_state_is_found_along_a_surface() -> None:
    times = np.array([0.0, 1.0, np.inf])
    equations = {"x": "a - b*if(x > c, 1, 0)", "y": "x - y"}
    problem = made(equations, {"x": 0.0, "y": 0.0}, times)
    states, by = checked(problem, {"a": 1.0, "b": 3.0, "c": 2.0})
    np.testing.assert_allclose(states[-1], [2.0, 2.0], rtol=1e-9)
    np.testing.assert_allclose(by["c"][-1], [1.0, 1.0], rtol=1e-9)
    begun = made(equations, {"x": 0.0, "y": 0.0}, times, steady_state=True)
    states, by = checked(begun, {"a": 1.0, "b": 3.0, "c": 2.0})
    np.testing.assert_allclose(states, 2.0, rtol=1e-9)
    np.testing.assert_allclose(by["c"], 1.0, rtol=1e-9)


def test_a_block_comes_to_rest_where_friction_holds_it() -> None:
    problem = made({"x": "v", "v": "-F*sign(v)"}, {"x": 0.0, "v": 1.0}, np.array([1.0, np.inf]))
    states, by = checked(problem, {"F": 0.5})
    np.testing.assert_allclose(states, [[0.75, 0.5], [1.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(by["F"], [[-0.5, -1.0], [-2.0, 0.0]], atol=1e-7)


def test_a_mass_leaves_its_rest_into_a_root() -> None:
    """Drag by the root of the speed has derivatives without bounds where the mass begins to move.

    From v' = r s - c v^(1/2) with s = t - F/r follows v = a^2 s^2 with 2 a^2 + c a = r.
    """
    times = np.array([0.5, 2.0, 4.0])
    drag = "sign(v)*(F + c*sqrt(abs(v)))"
    problem = made({"v": f"r*t - {drag}"}, {"v": 0.0}, times)
    forward = ForwardMap(problem)
    values = {"r": 0.5, "F": 0.6, "c": 0.3}
    found = integrated(forward, np.array([values[u.name] for u in problem.unknowns]))
    a = (np.sqrt(0.3**2 + 8 * 0.5) - 0.3) / 4
    np.testing.assert_allclose(found.states[:, 0], (a * np.maximum(times - 1.2, 0)) ** 2, atol=1e-6)
