"""Vessels run empty, particles dissolve, and what is gone stays gone until something comes back.

All are compared with closed forms, the sensitivities with differences of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import odefit
from odefit import Event, Experiment, ForwardMap, Model, Problem
from tests.simulation.numerics import Array

TIMES = np.array([0.0, 0.5, 1.0, 1.7, 2.2, 3.2, 4.4, 6.0])
Exact = Callable[..., Sequence[Array]]
CASES = Path(__file__).parents[2] / "cases"


def problem(
    ode: Mapping[str, str],
    initial: Mapping[str, Any],
    unknowns: Mapping[str, float],
    **more: Any,
) -> Problem:
    data = {"t": TIMES, **{name: np.ones(len(TIMES)) for name in ode}}
    run = Experiment("run", data, t0=0.0, **more)
    parameters = {name: {"guess": value} for name, value in unknowns.items()}
    return Problem(Model(ode=ode), parameters=parameters, initial=initial, experiments=[run])


def check(given: Problem, exact: Exact, at: Sequence[float], engine: str, near: float) -> None:
    """States are right to `near`, relative to the largest, and sensitivities to a hundred times."""
    point = np.array(at)
    found = ForwardMap(given, engine).trajectories(point)  # type: ignore[arg-type]
    assert not isinstance(found, odefit.Failure), found
    (course,) = found
    right = np.array(exact(*at)).T
    assert np.abs(course.states - right).max() <= near * np.abs(right).max()
    for column, k in enumerate(course.unknowns):
        step = np.zeros(len(at))
        step[k] = 1e-4 * abs(at[k])
        ends = [np.array(exact(*(point + c * step))).T for c in (-2.0, -1.0, 1.0, 2.0)]
        by = (ends[0] - 8.0 * ends[1] + 8.0 * ends[2] - ends[3]) / (12.0 * step[k])
        apart = np.abs(course.sensitivities[:, :, column] - by).max()
        assert apart <= 100.0 * near * np.abs(by).max() + 1e-12


def integrated(rate: Callable[[float, Array], Array], start: float, exact: Any) -> Array:
    """Return what SciPy says of a single state."""
    return np.asarray(
        solve_ivp(rate, (0.0, 6.0), [start], t_eval=TIMES, method="LSODA", **exact).y[0]
    )


def positive(values: Any) -> Array:
    return np.asarray(np.maximum(values, 0.0))


def level(time: Callable[[float], float], at: float, highest: float) -> float:
    """Return v^2 at a time that is a function of v, for v up to the highest."""
    return float(brentq(lambda v: time(v) - at, 0.0, highest, xtol=1e-15)) ** 2


def emptied(k: float, q: float) -> Array:
    """h' = -q - k sqrt(h) from 1: with v = sqrt(h) the time is a function of v."""

    def time(v: float) -> float:
        return float(2 / k * (1 - v) - 2 * q / k**2 * np.log((q + k) / (q + k * v)))

    return np.array([level(time, t, 1.0) if t < time(0.0) else 0.0 for t in TIMES])


def refilled(k: float, q: float, times: Array) -> Array:
    """h' = q - k sqrt(h) from 0."""

    def time(v: float) -> float:
        return float(-2 * v / k - 2 * q / k**2 * np.log(1 - k * v / q))

    return np.array([level(time, t, q / k * (1 - 1e-14)) for t in times])


def ramp(k: float, q: float, start: float) -> Array:
    """h' = q (t - start) - k sqrt(h) from 0 at the start: a parabola."""
    rise = (np.sqrt(k * k + 8 * q) - k) / 4
    return np.asarray((rise * positive(TIMES - start)) ** 2)


def droplet(k: float) -> Array:
    """d' = -K/(2 d), and y' = d - y."""

    def part(s: float, t: float) -> float:
        return float(np.sqrt(max(1 - k * s, 0)) * np.exp(s - t))

    return np.array([quad(part, 0, min(t, 1 / k), (t,), epsabs=1e-13)[0] for t in TIMES])


EMPTYING: Mapping[str, tuple[Problem, Exact, Sequence[float]]] = {
    "a tank drains by Torricelli's law": (
        problem({"h": "-k*sqrt(h)"}, {"h": 1.0}, {"k": 1.0}),
        lambda k: [positive(1 - k * TIMES / 2) ** 2],
        [1.1],
    ),
    "the same tank in another unit": (
        problem({"h": "-k*sqrt(h)"}, {"h": 1e-9}, {"k": 1.0}),
        lambda k: [positive(1e-4 * np.sqrt(0.1) - k * TIMES / 2) ** 2],
        [3e-5],
    ),
    "the usual remedy says the same": (
        problem({"h": "-k*sqrt(max(h, 0))"}, {"h": 1.0}, {"k": 1.0}),
        lambda k: [positive(1 - k * TIMES / 2) ** 2],
        [1.1],
    ),
    "a condition beside the root says the same": (
        problem({"h": "if(h > 0, -k*sqrt(h), 0)"}, {"h": 1.0}, {"k": 1.0}),
        lambda k: [positive(1 - k * TIMES / 2) ** 2],
        [1.1],
    ),
    "a particle dissolves by the cube-root law": (
        problem({"m": "-k*m^(2/3)"}, {"m": 8.0}, {"k": 1.0}),
        lambda k: [positive(2 - k * TIMES / 3) ** 3],
        [1.9],
    ),
    "a radius shrinks at a rate of 1/r, and what it loses is dissolved": (
        problem({"r": "-D/r", "c": "3*r*D"}, {"r": 1.0, "c": 0.0}, {"D": 0.2}),
        lambda d: [
            np.sqrt(positive(1 - 2 * d * TIMES)),
            1 - positive(1 - 2 * d * TIMES) ** 1.5,
        ],
        [0.21],
    ),
    "a droplet evaporates by the square law": (
        problem({"d": "-K/(2*d)", "y": "d - y"}, {"d": 1.0, "y": 0.0}, {"K": 0.5}),
        lambda k: [np.sqrt(positive(1 - k * TIMES)), droplet(k)],
        [0.6],
    ),
    "the power is unknown": (
        problem({"h": "-k*h^n"}, {"h": 1.0}, {"k": 1.0, "n": 0.5}),
        lambda k, n: [positive(1 - (1 - n) * k * TIMES) ** (1 / (1 - n))],
        [0.8, 0.4],
    ),
    "what drains is collected": (
        problem({"h": "-k*sqrt(h)", "y": "k*sqrt(h)"}, {"h": 1.0, "y": 0.0}, {"k": 1.0}),
        lambda k: [positive(1 - k * TIMES / 2) ** 2, 1 - positive(1 - k * TIMES / 2) ** 2],
        [1.1],
    ),
    "an outlet lies above the ground": (
        problem({"h": "-k*sqrt(h - b)"}, {"h": 1.0}, {"k": 1.0, "b": 0.3}),
        lambda k, b: [b + positive(np.sqrt(1 - b) - k * TIMES / 2) ** 2],
        [1.1, 0.3],
    ),
    "two tanks come to the same level": (
        problem({"a": "-k*sqrt(a - b)", "b": "k*sqrt(a - b)"}, {"a": 1.0, "b": 0.0}, {"k": 1.0}),
        lambda k: [
            0.5 + 0.5 * positive(1 - k * TIMES) ** 2,
            0.5 - 0.5 * positive(1 - k * TIMES) ** 2,
        ],
        [1.1],
    ),
    "as much is withdrawn as there is": (
        problem({"h": "-q - k*sqrt(h)"}, {"h": 1.0}, {"k": 0.5, "q": 0.3}),
        lambda k, q: [emptied(k, q)],
        [0.5, 0.3],
    ),
    "a tank fills from empty while more comes in than goes out": (
        problem({"h": "q*(t - 2.5) - k*sqrt(h)"}, {"h": 0.0}, {"k": 0.5, "q": 0.3}),
        lambda k, q: [ramp(k, q, 2.5)],
        [0.5, 0.3],
    ),
    "an inflow that begins later fills the tank again": (
        problem({"h": "if(t > 3, q, 0) - k*sqrt(h)"}, {"h": 1.0}, {"k": 1.0, "q": 1.5}),
        lambda k, q: [
            np.concatenate([positive(1 - k * TIMES[:5] / 2) ** 2, refilled(k, q, TIMES[5:] - 3.0)])
        ],
        [1.1, 1.5],
    ),
    "a state becomes the inflow": (
        problem(
            {"x": "1/3.5", "h": "if(x > 1, x - 1, 0) - k*sqrt(h)"},
            {"x": 0.0, "h": 1.0},
            {"k": 1.0},
        ),
        lambda k: [TIMES / 3.5, positive(1 - k * TIMES / 2) ** 2 + ramp(k, 1 / 3.5, 3.5)],
        [1.1],
    ),
    "a dose fills the tank again": (
        problem(
            {"h": "-k*sqrt(h)"}, {"h": 1.0}, {"k": 1.0}, events=[Event((3.0,), {"h": "h + 0.25"})]
        ),
        lambda k: [
            np.where(
                TIMES <= 3.0,
                positive(1 - k * TIMES / 2) ** 2,
                positive(0.5 - k * (TIMES - 3.0) / 2) ** 2,
            )
        ],
        [1.1],
    ),
    "an initial level is estimated": (
        problem({"h": "-k*sqrt(h)"}, {"h": {"lower": 0.1, "guess": 1.0}}, {"k": 1.0}),
        lambda k, h: [positive(np.sqrt(h) - k * TIMES / 2) ** 2],
        [1.1, 1.2],
    ),
    "a rate that is zero below a level lets the level fall": (
        problem({"h": "-q - k*sqrt(max(h, 0))"}, {"h": 1.0}, {"k": 0.5, "q": 0.3}),
        lambda k, q: [
            emptied(k, q) - q * positive(TIMES - 2 / k + 2 * q / k**2 * np.log((q + k) / q))
        ],
        [0.5, 0.3],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "bdf"])
@pytest.mark.parametrize("name", EMPTYING)
def test_a_state_that_runs_empty_is_integrated_with_its_sensitivities(
    name: str, engine: str
) -> None:
    given, exact, at = EMPTYING[name]
    check(given, exact, at, engine, 2e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["the power is unknown", "as much is withdrawn as there is"])
@pytest.mark.parametrize(("engine", "near"), [("casadi", 2e-8), ("local-linearization", 3e-6)])
def test_other_engines_find_the_same(name: str, engine: str, near: float) -> None:
    given, exact, at = EMPTYING[name]
    if engine == "casadi":
        pytest.importorskip("casadi")
    check(given, exact, at, engine, near)


def test_a_level_falls_below_zero_and_comes_back() -> None:
    """h' = q (t - 3) - k sqrt(max(h, 0)) passes zero downwards, and upwards later."""
    found = [
        odefit.simulate(
            problem({"h": rate}, {"h": 1.0}, {"k": 0.5, "q": 0.8}), np.array([0.5, 0.8])
        )
        for rate in ("q*(t - 3) - k*sqrt(max(h, 0))", "q*(t - 3) - k*max(h, 1e-12)^0.5")
    ]
    first, second = (one.states["h"] for one in found)
    assert first.min() < -1.0
    assert first[-1] > 0.0
    assert first == pytest.approx(second, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "bdf"])
def test_a_tank_runs_empty_and_fills_again_many_times(engine: str) -> None:
    """An inflow q sin(3 t) that is an outflow for half the time; levels by an implicit scheme."""
    given = problem({"h": "q*sin(3*t) - k*sqrt(h)"}, {"h": 0.25}, {"k": 2.0, "q": 0.5})
    found = ForwardMap(given, engine).trajectories(np.array([2.0, 0.5]))  # type: ignore[arg-type]
    assert not isinstance(found, odefit.Failure), found
    step = 6.0 / 60_000
    level, levels = 0.25, [0.25]
    for i in range(1, 60_001):
        inside = level + step * 0.5 * np.sin(3 * step * i)
        root = np.sqrt(step * step + inside) - step if inside > 0.0 else 0.0
        level = root * root
        levels.append(level)
    right = np.interp(TIMES, step * np.arange(60_001), levels)
    assert found[0].states[:, 0] == pytest.approx(right, abs=3e-4)


def test_an_estimated_time_of_an_event_while_the_tank_is_held_empty() -> None:
    """At t = T > 2 a withdrawal ends, and then 0.5 flows in: h is 0 until then."""
    model = Model(ode={"h": "q - k*sqrt(h)"}, constants={"q": -0.2})
    given = Problem(
        model,
        parameters={"k": {"guess": 1.0}, "T": {"guess": 3.0}},
        initial={"h": 0.5},
        experiments=[
            Experiment(
                "run",
                {"t": TIMES, "h": np.ones(len(TIMES))},
                t0=0.0,
                events=(Event(("T",), {"q": 0.5}),),
            )
        ],
    )
    found = ForwardMap(given).trajectories(np.array([1.0, 3.0]))
    assert not isinstance(found, odefit.Failure), found
    ends = [np.append(np.zeros(5), refilled(1.0, 0.5, TIMES[5:] - t)) for t in (2.999, 3.001)]
    middle = np.append(np.zeros(5), refilled(1.0, 0.5, TIMES[5:] - 3.0))
    assert found[0].states[4:, 0] == pytest.approx(middle[4:], abs=1e-8)
    assert found[0].sensitivities[4:, 0, 1] == pytest.approx(
        (ends[1] - ends[0])[4:] / 0.002, abs=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "bdf"])
def test_a_flow_under_a_root_changes_its_direction(engine: str) -> None:
    """What flows from a to b is sign(a - b) sqrt|a - b|, and a + b = 1.5 + 0.4 sin(2 t)."""
    flow = "k*sign(a - b)*sqrt(abs(a - b))"
    ode = {"a": f"0.8*cos(2*t) - {flow}", "b": flow}
    given = problem(ode, {"a": 1.0, "b": 0.5}, {"k": 1.0})

    def right(k: float) -> list[Array]:
        def rate(t: float, d: Array) -> Array:
            return np.asarray(0.8 * np.cos(2 * t) - 2 * k * np.sign(d) * np.sqrt(np.abs(d)))

        exact = {"rtol": 1e-11, "atol": 1e-13, "max_step": 0.01}
        apart = integrated(rate, 0.5, exact)
        both = 1.5 + 0.4 * np.sin(2 * TIMES)
        return [(both + apart) / 2, (both - apart) / 2]

    check(given, right, [1.0], engine, 1e-7)


@pytest.mark.parametrize("engine", ["auto", "bdf", "casadi"])
def test_a_model_that_leaves_its_domain_says_where_and_how_to_mend_it(engine: str) -> None:
    """b = 0.3 t rises to a, of which then nothing flows to it any more."""
    if engine == "casadi":
        pytest.importorskip("casadi")
    given = problem({"a": "-k*sqrt(a - b)", "b": "0.3"}, {"a": 1.0, "b": 0.0}, {"k": 0.3})
    found = ForwardMap(given, engine).evaluate(np.array([0.3]))  # type: ignore[arg-type]
    assert isinstance(found, odefit.Failure)
    assert found.time == pytest.approx(2.0457, abs=1e-4)
    assert found.reason.startswith("sqrt(a - b) ends here: a - b reaches 0 and would become")
    assert "max(a - b, 0)" in found.reason
    assert "sign(a - b)*" in found.reason


def test_a_tank_that_runs_empty_has_an_empty_steady_state() -> None:
    """y' = k sqrt(h) - y/2 comes to rest at 0, too."""
    model = Model(ode={"h": "-k*sqrt(h)", "y": "k*sqrt(h) - 0.5*y"})
    times = np.array([0.0, 1.0, 5.0, np.inf])
    data = {"t": times, "h": np.ones(4), "y": np.ones(4)}
    given = Problem(model, data, {"k": {"guess": 1.0}}, {"h": 1.0, "y": 0.0})
    found = ForwardMap(given).trajectories(np.array([1.0]))
    assert not isinstance(found, odefit.Failure), found
    assert found[0].states[:, 0] == pytest.approx([1.0, 0.25, 0.0, 0.0], abs=1e-9)
    assert found[0].states[-1] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert not found[0].sensitivities[-1].any()


def test_an_operation_that_is_not_defined_at_the_start_is_named_with_its_argument() -> None:
    given = problem({"a": "-k*sqrt(a - 2)"}, {"a": 1.0}, {"k": 1.0})
    found = ForwardMap(given).evaluate(np.array([1.0]))
    assert isinstance(found, odefit.Failure)
    reason = "the right-hand side of a is not finite at t = 0, with a - 2 = -1 in sqrt(a - 2)"
    assert found.reason == reason


def test_a_guard_by_abs_holds_the_level_at_zero() -> None:
    """x' = -k sqrt(|x|) could fall from zero as well; rounding does not decide that."""
    given = problem({"h": "-k*sqrt(abs(h))"}, {"h": 1.0}, {"k": 1.0})
    check(given, lambda k: [positive(1 - k * TIMES / 2) ** 2], [1.1], "auto", 2e-8)


@pytest.mark.slow
@pytest.mark.parametrize("drain", [0.11150298626945479, 0.540938165696471, 0.311859531519227])
def test_two_tanks_run_empty_at_nearly_the_same_time(drain: float) -> None:
    """The second one drains fast, so that its level follows that of the first."""
    ode = {"a": "-k*sqrt(a)", "b": "k*sqrt(a) - 20*k*sqrt(b)"}
    given = problem(ode, {"a": (1.5 * drain) ** 2, "b": 0.0}, {"k": drain})
    for engine in ("auto", "bdf"):
        found = ForwardMap(given, engine).trajectories(np.array([drain]))
        assert not isinstance(found, odefit.Failure), found
        exact = drain**2 * positive(1.5 - TIMES / 2) ** 2
        assert found[0].states[:, 0] == pytest.approx(exact, abs=1e-9)
        assert not found[0].states[5:].any()


@pytest.mark.parametrize("engine", ["auto", "bdf"])
def test_a_clock_that_counts_from_1970_has_no_effect(engine: str) -> None:
    """Times near 1.7e9 have a spacing of 2e-7; r = sqrt(1 - 2 D t) ends with infinite speed."""
    start = 1.7e9
    model = Model(ode={"r": "-D/r"})
    data = {"t": start + TIMES, "r": np.ones(len(TIMES))}
    exact = np.sqrt(positive(1 - 0.4 * (data["t"] - start)))
    run = Experiment("run", data, t0=start)
    given = Problem(model, parameters={"D": {}}, initial={"r": 1.0}, experiments=[run])
    found = ForwardMap(given, engine).trajectories(np.array([0.2]))  # type: ignore[arg-type]
    assert not isinstance(found, odefit.Failure), found
    assert found[0].states[:, 0] == pytest.approx(exact, abs=2e-8)


@pytest.mark.parametrize("engine", ["auto", "bdf"])
def test_a_measured_inflow_that_stops_and_becomes_a_withdrawal_is_followed(engine: str) -> None:
    """The tank drains from 1, then more is withdrawn; from t = 3 on 1.5 flows in."""
    times = np.array([0.0, 1.0, 2.2, 3.0, 3.2, 4.4, 6.0])
    data = {
        "t": times,
        "h": np.ones(7),
        "q": np.array([0.0, 0.0, -0.4, 1.5, 1.5, 1.5, 1.5]),
    }
    model = Model(ode={"h": "q - k*sqrt(h)"}, inputs={"q": "constant"})
    given = Problem(model, data, {"k": {"guess": 1.0}}, {"h": 1.0})
    found = ForwardMap(given, engine).trajectories(np.array([1.0]))  # type: ignore[arg-type]
    assert not isinstance(found, odefit.Failure), found
    exact = np.append([1.0, 0.25, 0.0, 0.0], refilled(1.0, 1.5, times[4:] - 3.0))
    assert found[0].states[:, 0] == pytest.approx(exact, abs=2e-8)
