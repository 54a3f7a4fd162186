"""Typical sizes follow the units in which a problem is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from odefit import Experiment, Model, Problem
from odefit.problem import Event
from odefit.problem.variants.sizes import typical_sizes
from odefit.problem.variants.start_ranges import ranges

POWERS = {  # of the units of x, of the time, and of z, in that of each unknown
    "k1": (0, -1, 0),
    "k2": (-1, -1, 1),
    "k3": (-1, -1, 0),
    "Km": (0, 0, 1),
    "Vm": (0, -1, 1),
    "k5": (-2, -1, 1),
    "K": (1, 0, 0),
    "n": (0, 0, 0),
    "k0": (0, -1, 1),
    "E": (0, 1, 0),
    "s": (0, 0, 0),
    "o": (0, 0, 1),
    "sigma": (1, 0, 0),
    "x": (1, 0, 0),
    "z": (0, 0, 1),
}


def in_units(x: float, time: float, z: float) -> Problem:
    """Return a problem in other units of x, of the time and of z."""
    model = Model(
        ode={
            "x": "k1*x - k3*x^2 - x^n/(K^n + x^n)*k1*K",
            "z": "k5*x^2*exp(-t/E) - Vm*z/(Km + z) - k2*x + k0 + max(0, 0 - z)/E",
        },
        observables={"first": "x", "second": "z + o + s*z"},
    )
    draw = np.random.default_rng(1).random((2, 11)) + 0.5
    data = {"t": np.linspace(0.0, 10.0, 11) * time, "first": x * draw[0], "second": z * draw[1]}
    unknowns = {name: {"lower": 0.0} for name in POWERS if name not in ("x", "z")}
    start = {name: {"lower": 0.0} for name in ("x", "z")}
    noise = {"first": {"sd": "sigma"}, "second": {"sd": "estimate"}}
    return Problem(model, data, unknowns, start, noise=noise)


@pytest.mark.parametrize(
    "units", [(1e-12, 1.0, 1.0), (1.0, 1e9, 1.0), (1.0, 1.0, 1e12), (1e13, 1e-9, 1e-15)]
)
def test_start_ranges_follow_the_units(units: tuple[float, float, float]) -> None:
    plain, other = in_units(1.0, 1.0, 1.0), in_units(*units)
    for unknown, old, new in zip(plain.unknowns, ranges(plain), ranges(other), strict=True):
        powers = POWERS.get(unknown.name, (0, 0, 1))  # the standard deviation of the second
        factor = np.prod([u**p for u, p in zip(units, powers, strict=True)])
        assert new.low == pytest.approx(old.low * factor, rel=1e-9), unknown.key
        assert new.high == pytest.approx(old.high * factor, rel=1e-9), unknown.key


def test_a_rate_constant_of_second_order_is_a_rate_over_the_size_of_the_state() -> None:
    data = {"t": [0.0, 10.0, 100.0], "x": [4e6, 1e6, 1e5]}
    given = Problem(Model(ode={"x": "-k*x^2"}), data, {"k": {}}, {"x": 4e6})
    found = typical_sizes(given).unknowns["parameter", "k"]
    assert found.size == pytest.approx(1 / (np.sqrt(100 * 10) * 4e6), rel=0.02)
    assert found.time_exponent == pytest.approx(-1.0)


def test_an_event_gives_the_size_of_an_unmeasured_state() -> None:
    given = Problem(
        Model(ode={"gut": "-ka*gut", "x": "ka*gut/V - ke*x"}, observables={"c": "x"}),
        parameters={"ka": {}, "V": {}, "ke": {}},
        initial={"gut": 0.0, "x": 0.0},
        experiments=[
            Experiment(
                "dose",
                {"t": [0.0, 1.0, 2.0, 4.0], "c": [0.0, 3e-6, 4e-6, 2e-6]},
                events=(Event((0.0,), {"gut": "gut + 500"}),),
            )
        ],
    )
    found = typical_sizes(given)
    assert found.states["gut"] == pytest.approx(500, rel=10)
    assert found.unknowns["parameter", "V"].size == pytest.approx(500 / 4e-6, rel=10)


def test_an_exponent_is_near_one_whatever_the_time_scale() -> None:
    other = in_units(1.0, 1e9, 1.0)
    found = ranges(other)[other.keys.index("n")]
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(10.0)


def test_close_bounds_of_an_initial_value_give_the_sizes_of_parameters() -> None:
    given = Problem(
        Model(ode={"x": "-k*x*y", "y": "-g*y"}, observables={"obs": "x"}),
        {"t": [0.0, 1.0, 2.0], "obs": [1.0, 0.5, 0.3]},
        {"k": {"lower": 0.0}, "g": {"lower": 0.0}},
        {"x": 1.0, "y": {"lower": 1e-9, "upper": 1e-8}},
    )
    assert 3e7 < typical_sizes(given).unknowns["parameter", "k"].size < 1e9


@pytest.mark.parametrize(
    ("function", "values"), [("log", np.log), ("log10", np.log10)], ids=["natural", "decadic"]
)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_the_logarithm_of_a_measured_state_gives_its_size(
    function: str, values: Callable[[float], float], unit: float
) -> None:
    data = {"t": [0.0, 1.0, 4.0], "y": [values(v) for v in (0.02, 0.5, 0.3)]}
    model = Model({"x": f"{unit!r}*k - k*x"}, {"y": f"{function}(x/{unit!r})"})
    found = typical_sizes(Problem(model, data, {"k": {}}, {"x": {"lower": 0.0}}))
    assert found.states["x"] == pytest.approx(0.5 * unit, rel=0.5)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
def test_the_base_of_a_rate_has_no_unit_of_time(unit: float) -> None:
    """The growth curve of Gompertz may have the logarithm of an unknown as a rate."""
    data = {"t": [0.0, 1.0 * unit, 4.0 * unit], "y": [0.1, 0.5, 0.9]}
    model = Model({"y": f"-log(b)/{unit!r}*y*log(a/y)"})
    found = typical_sizes(Problem(model, data, {"a": {}, "b": {}}, {"y": 0.1})).unknowns
    assert found["parameter", "b"].size == pytest.approx(1.0)
    assert 0.1 < found["parameter", "a"].size < 1.0


def test_a_named_initial_value_has_the_range_of_one_without_a_name() -> None:
    data = {"t": [0.0, 1.0, 4.0], "y": [20.0, 50.0, 30.0]}
    model = Model({"y": "-k*y + s", "z": "k*y - z"})
    bounds = {"lower": 0.0}
    rates = {"k": bounds, "s": bounds}
    plain = Problem(model, data, rates, {"y": bounds, "z": bounds})
    named = Problem(model, data, {**rates, "y0": bounds, "z0": bounds}, {"y": "y0", "z": "z0"})
    for key, name in (("y", "y0"), ("z", "z0"), ("k", "k")):
        one = ranges(plain)[plain.keys.index(key)]
        other = ranges(named)[named.keys.index(name)]
        assert (other.low, other.high) == pytest.approx((one.low, one.high)), key


def test_bounds_near_the_smallest_number_have_sizes() -> None:
    model = Model(ode={"x": "-k*x"})
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.5, 0.3]}
    problem = Problem(model, data, {"k": {"lower": 0.0, "upper": 5e-324}}, {"x": {}})
    assert all(size.size > 0 for size in typical_sizes(problem).unknowns.values())
