"""Values do not depend on the units in which states and time are written."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp
from scipy.special import lambertw

import odefit
from odefit.common.arrays import Array
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine import magnitudes, smallest_share
from odefit.simulation.engines.registry import EngineName

ENGINES: tuple[EngineName, ...] = ("auto", "heyoka", "runge-kutta", "bdf", "casadi")
UNITS = (1e-15, 1e-12, 1e-6, 1.0, 1e6, 1e13)


def skip_without(engine: EngineName) -> None:
    if engine == "heyoka":
        pytest.importorskip("heyoka")


def states_of(
    ode: dict[str, str],
    parameters: dict[str, float],
    initial: dict[str, float],
    times: Array,
    engine: EngineName,
) -> Array:
    data = pd.DataFrame({"t": times} | {name: np.ones(len(times)) for name in ode})
    problem = odefit.Problem(
        odefit.Model(ode=ode),
        data=data,
        parameters={name: {"guess": value} for name, value in parameters.items()},
        initial=initial,
        t0=0.0,
    )
    vector = np.array([parameters[key] for key in problem.keys])
    found = ForwardMap(problem, engine).trajectory(vector)
    assert not isinstance(found, Failure), found
    return found.states


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", UNITS)
def test_michaelis_menten_in_any_unit(unit: float, engine: EngineName) -> None:
    skip_without(engine)
    times = np.linspace(2.0, 60.0, 15)
    found = states_of(
        {"x": "-V*x/(K + x)"}, {"V": 2 * unit, "K": 30 * unit}, {"x": 60 * unit}, times, engine
    )
    exact = np.array([30 * lambertw(2 * math.exp(2 - 2 * t / 30)).real for t in times])
    assert np.allclose(found[:, 0] / unit, exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("large", "small"), [(1e6, 1e-6), (1e12, 1.0), (1.0, 1e-12), (1e-6, 1e6)])
def test_states_of_any_sizes_beside_each_other(
    large: float, small: float, engine: EngineName
) -> None:
    """A small state that a large one feeds stays in step with it, and is never negative."""
    skip_without(engine)
    times = np.linspace(0.5, 20.0, 40)
    k, feed, decay = 0.3, small / large, 1.1
    found = states_of(
        {"a": "-k*a", "b": f"{feed!r}*a - d*b"},
        {"k": k, "d": decay},
        {"a": large, "b": 0.5 * small},
        times,
        engine,
    )
    slow, fast = np.exp(-k * times), np.exp(-decay * times)
    exact = (slow - fast) / (decay - k) + 0.5 * fast
    assert np.allclose(found[:, 0] / large, slow, rtol=1e-6, atol=0)
    assert np.allclose(found[:, 1] / small, exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("engine", ["bdf", "heyoka", "auto"])
def test_a_cycle_of_states_of_any_sizes_is_integrated(engine: EngineName) -> None:
    """Goodwin's oscillator: each state feeds the next, whatever their units are."""
    skip_without(engine)
    times = np.linspace(1.0, 20.0, 10)
    found = []
    for m, e, p in [(1.0, 1.0, 1.0), (1e-6, 1e6, 1.0), (1e12, 1e-12, 1e5)]:
        ode = {"m": "al*K^4/(K^4 + p^4) - d*m", "e": "b*m - d*e", "p": "c*e - d*p"}
        parameters = {"al": 4.0 * m, "K": 1.5 * p, "d": 0.4, "b": e / m, "c": p / e}
        initial = {"m": 0.5 * m, "e": 0.5 * e, "p": 0.5 * p}
        found.append(states_of(ode, parameters, initial, times, engine) / [m, e, p])

    def rates(t: float, y: Array) -> list[float]:
        fed = 4.0 * 1.5**4 / (1.5**4 + y[2] ** 4)
        return [fed - 0.4 * y[0], y[0] - 0.4 * y[1], y[1] - 0.4 * y[2]]

    exact = solve_ivp(rates, (0, 20), [0.5] * 3, "DOP853", times, rtol=1e-12, atol=1e-14).y.T
    for states in found:
        assert np.allclose(states, exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_states_alone_are_followed_step_by_step_as_well(unit: float) -> None:
    """No unknown acts: there are no sensitivities beside the states."""
    skip_without("heyoka")
    times = np.linspace(1.0, 10.0, 10)
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        data=pd.DataFrame({"t": times, "x": unit * np.exp(-0.3 * times)}),
        parameters={"k": {"guess": 0.3}},
        initial={"x": unit},
        t0=0.0,
    )
    forward = ForwardMap(problem, "heyoka")
    name = problem.conditions[0].name
    found = forward.trajectory(np.array([0.3]), name, times, sensitivities=False)
    assert not isinstance(found, Failure), found
    assert np.allclose(found.states[:, 0] / unit, np.exp(-0.3 * times), rtol=1e-10, atol=0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
def test_states_are_accurate_in_any_unit_of_time(unit: float, engine: EngineName) -> None:
    skip_without(engine)
    times = np.linspace(1.0, 20.0, 20)
    rate = 1 / unit
    found = states_of(
        {"x": "w*y", "y": "-w*x"}, {"w": rate}, {"x": 0.0, "y": 1e-9}, times * unit, engine
    )
    assert np.allclose(found[:, 0] / 1e-9, np.sin(times), rtol=0, atol=1e-6)


@pytest.mark.parametrize("engine", ["auto", "heyoka", "bdf"])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_state_that_grows_from_zero(unit: float, engine: EngineName) -> None:
    """Logistic growth by twenty decades, beside a state of the full size from the beginning."""
    skip_without(engine)
    times = np.linspace(1.0, 30.0, 30)
    begin = 1e-20
    found = states_of(
        {"y": f"r*y*(1 - y/{unit!r})", "z": "-0.1*z"},
        {"r": 3.0},
        {"y": begin * unit, "z": unit},
        times,
        engine,
    )
    exact = 1 / (1 + (1 - begin) / begin * np.exp(-3.0 * times))
    assert np.allclose(found[:, 0] / unit, exact, rtol=2e-5, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "bdf"])
def test_robertson_has_small_values_right_where_noise_is_relative(engine: EngineName) -> None:
    """y3 is 1.6e-11 at the first of its times, beside states of one."""
    times = np.logspace(-5, 5, 21)
    k1, k2, k3 = 0.04, 3e7, 1e4

    def rates(t: float, y: Array) -> list[float]:
        first, second, third = k1 * y[0], k2 * y[1] ** 2, k3 * y[1] * y[2]
        return [-first + third, first - third - second, second]

    reference = solve_ivp(
        rates, (0, 1e5), [1.0, 0.0, 0.0], "Radau", times, rtol=1e-10, atol=1e-18
    ).y.T
    data = pd.DataFrame({"t": times} | {f"y{i + 1}": reference[:, i] for i in range(3)})
    problem = odefit.Problem(
        odefit.Model(
            ode={
                "y1": "-k1*y1 + k3*y2*y3",
                "y2": "k1*y1 - k3*y2*y3 - k2*y2^2",
                "y3": "k2*y2^2",
            }
        ),
        data=data,
        parameters={"k1": {"guess": k1}, "k2": {"guess": k2}, "k3": {"guess": k3}},
        initial={"y1": 1.0, "y2": 0.0, "y3": 0.0},
        noise={f"y{i}": {"relative": 0.02} for i in (1, 2, 3)},
        t0=0.0,
    )
    found = ForwardMap(problem, engine).trajectory(np.array([k1, k2, k3]))
    assert not isinstance(found, Failure)
    assert np.allclose(found.states, reference, rtol=1e-6, atol=0)


@pytest.mark.parametrize("engine", ["auto", "bdf", "casadi"])
def test_a_small_difference_of_large_fluxes_does_not_stop_the_integration(
    engine: EngineName,
) -> None:
    """The balance has no more digits than rounding leaves, whatever the tolerance asks for."""
    times = np.linspace(1.0, 10.0, 10)
    found = states_of(
        {"a": "-k*a + k*b", "b": "k*a - k*b", "c": "1e6*(a - b) - 1e-3*c"},
        {"k": 50.0},
        {"a": 1.0, "b": 1.0 + 1e-9, "c": 1e-12},
        times,
        engine,
    )
    assert np.isfinite(found).all()
    # The integral of a - b is -1e-9/100 at last.
    assert np.allclose(found[:, 2], -1e-5, rtol=0.05)


def test_sizes_of_states_from_zero_follow_their_rates() -> None:
    states, rates = np.array([2.0, 0.0, 0.0]), np.array([1.0, 3.0, 0.0])
    assert np.array_equal(magnitudes(states, rates, 0.5), [2.0, 1.5, 1.5])
    scaled = magnitudes(1e9 * states, 1e9 * rates / 1e-3, 0.5 * 1e-3)
    assert np.allclose(scaled, 1e9 * np.array([2.0, 1.5, 1.5]))
    assert np.array_equal(magnitudes(np.zeros(2), np.zeros(2), 1.0), [1.0, 1.0])


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([1.0, 0.5], 0.5),
        ([1.0, 0.0], 1.0),
        ([-1e-3], 1e-3),
        ([1e6, -1.0], 1e-6),
        ([1e6, 1e4], 1e-2),
        ([0.0], math.inf),
        ([], math.inf),
    ],
)
def test_states_are_small_beside_one_or_beside_others(states: list[float], expected: float) -> None:
    assert smallest_share(np.array(states)) == pytest.approx(expected)


def test_a_decay_over_many_decades_is_followed_where_noise_is_relative() -> None:
    times = np.linspace(0.0, 60.0, 13)
    exact = np.exp(-times)
    data = pd.DataFrame({"t": times, "x": exact})
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        data=data,
        parameters={"k": {"guess": 1.0}},
        initial={"x": 1.0},
        noise={"x": {"relative": 0.01}},
    )
    for engine in ("auto", "bdf"):
        found = ForwardMap(problem, engine).trajectory(np.array([1.0]))
        assert not isinstance(found, Failure)
        assert np.allclose(found.states[:, 0], exact, rtol=1e-5, atol=0)
    absolute = ForwardMap(problem).engines.needed.absolute(1e-9)
    assert math.isclose(absolute, 1e5 * exact[-1], rel_tol=1e-9)
