"""Steps and pulses that are smooth, but flat elsewhere, are seen by every engine."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

import odefit
from odefit.common.arrays import Array
from odefit.problem.vector_field import VectorField
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.narrow_features import EVERYWHERE, KINKS, NOTHING, NarrowFeatures
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.engines.segments import Segment

TIMES = np.linspace(0.0, 20.0, 21)
K, A = 0.1, 1.0

FEATURES: dict[str, tuple[str, Callable[[float], float], float]] = {
    # the pulse as odefit has it, the same as a function, and its centre
    "tanh": ("0.5*(1 + tanh((t - c)/0.1))", lambda t: 0.5 * (1 + math.tanh((t - 5.3) / 0.1)), 5.3),
    "steep-tanh": (
        "0.5*(1 + tanh((t - c)/0.001))",
        lambda t: 0.5 * (1 + math.tanh((t - 5.3) / 0.001)),
        5.3,
    ),
    "logistic": (
        "1/(1 + exp(-(t - c)/0.02))",
        lambda t: 1 / (1 + math.exp(-(t - 11.17) / 0.02)),
        11.17,
    ),
    "gaussian": ("exp(-((t - c)/0.3)^2)", lambda t: math.exp(-(((t - 5.3) / 0.3) ** 2)), 5.3),
    "narrow-gaussian": (
        "exp(-((t - c)/0.01)^2)",
        lambda t: math.exp(-(((t - 13.37) / 0.01) ** 2)),
        13.37,
    ),
    "expanded-square": (
        "exp(-(t^2 - 2*c*t + c^2)/0.01)",
        lambda t: math.exp(-((t - 7.1) ** 2) / 0.01),
        7.1,
    ),
    "double-exponential": (
        "exp(-exp(-(t - c)/0.1))",
        lambda t: math.exp(-math.exp(-(t - 9.9) / 0.1)),
        9.9,
    ),
    "high-hill-power": ("t^40/(c^40 + t^40)", lambda t: t**40 / (6.0**40 + t**40), 6.0),
    "log-normal": (
        "exp(-(log((t + 1e-9)/c)/0.01)^2)",
        lambda t: math.exp(-((math.log((t + 1e-9) / 8.8) / 0.01) ** 2)),
        8.8,
    ),
    "bump": (
        "if(abs(t - c) < 0.5, exp(-1/(1 - min(((t - c)/0.5)^2, 1 - 1e-9))), 0)",
        lambda t: math.exp(-1 / (1 - ((t - 5.25) / 0.5) ** 2)) if abs(t - 5.25) < 0.5 else 0.0,
        5.25,
    ),
    "pulses": (
        "exp(-(sin(3.141592653589793*t/c)/0.05)^2)",
        lambda t: math.exp(-((math.sin(math.pi * t / 4.7) / 0.05) ** 2)),
        4.7,
    ),
}


def problem(rhs: str, unknowns: dict[str, float], x0: float = 0.0) -> odefit.Problem:
    data = pd.DataFrame({"t": TIMES, "x": np.zeros(len(TIMES))})
    parameters = {name: {"guess": value} for name, value in unknowns.items()}
    return odefit.Problem(
        odefit.Model(ode={"x": rhs}), data=data, parameters=parameters, initial={"x": x0}
    )


def exact(pulse: Callable[[float], float], centre: float) -> Array:
    """Return x for x' = -K x + A pulse(t) by quadrature."""
    near = [centre + s for s in (-1, -0.3, -0.1, -0.02, -0.005, 0, 0.005, 0.02, 0.1, 0.3, 1)]
    points = sorted([*near, *(centre * k for k in range(5))])
    found = [0.0]
    for left, right in pairwise(TIMES):
        inside = [p for p in points if left < p < right]
        part, _ = quad(
            lambda t, end=right: math.exp(-K * (end - t)) * pulse(t),
            left, right, points=inside or None, limit=400, epsabs=1e-13,
        )  # fmt: skip
        found.append(found[-1] * math.exp(-K * (right - left)) + A * part)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "bdf", "casadi", "heyoka", "runge-kutta"])
@pytest.mark.parametrize("name", FEATURES)
def test_each_engine_resolves_a_short_feature_in_time(name: str, engine: EngineName) -> None:
    text, pulse, centre = FEATURES[name]
    if engine == "heyoka":
        pytest.importorskip("heyoka")
        if name in ("bump", "high-hill-power"):
            pytest.skip("the Taylor method has no conditions, and no powers of a time that is zero")
    unknowns = {"k": K, "a": A, "c": centre}
    forward = ForwardMap(problem(f"-k*x + a*({text})", unknowns), engine)
    found = forward.trajectory(np.array([K, A, centre]))
    assert not isinstance(found, Failure)
    assert np.allclose(found.states[:, 0], exact(pulse, centre), rtol=0, atol=2e-7)


@pytest.mark.parametrize("engine", ["bdf", "heyoka", "runge-kutta"])
def test_sensitivities_see_a_step_whose_height_is_zero(engine: EngineName) -> None:
    """At a = 0 the states show nothing of the step, and the derivative by a is all of it."""
    if engine == "heyoka":
        pytest.importorskip("heyoka")
    text, pulse, centre = FEATURES["tanh"]
    forward = ForwardMap(problem(f"-k*x + a*({text})", {"k": K, "a": 0.0, "c": centre}), engine)
    found = forward.trajectory(np.array([K, 0.0, centre]))
    assert not isinstance(found, Failure)
    assert not found.states.any()
    assert np.allclose(found.sensitivities[:, 0, 1], exact(pulse, centre), rtol=0, atol=1e-6)


@pytest.mark.parametrize("engine", ["auto", "bdf", "heyoka", "runge-kutta"])
@pytest.mark.parametrize("width", [0.5, 0.05, 0.002])
def test_a_pulse_of_a_state_is_seen(width: float, engine: EngineName) -> None:
    """With x' = 1, y' = exp(-((x - c)/w)^2) leads to w sqrt(pi) whatever the steps in x are."""
    if engine == "heyoka":
        pytest.importorskip("heyoka")
    data = pd.DataFrame({"t": [10.0, 20.0], "y": [0.0, 0.0]})
    model = odefit.Model(ode={"x": "1", "y": "a*exp(-((x - 7.77)/w)^2)"}, observables={"y": "y"})
    made = odefit.Problem(
        model,
        data=data,
        parameters={"a": {"guess": 1.0}, "w": {"guess": width}},
        initial={"x": 0.0, "y": 0.0},
        t0=0.0,
    )
    found = ForwardMap(made, engine).trajectory(np.array([1.0, width]))
    assert not isinstance(found, Failure)
    assert found.states[-1, 1] == pytest.approx(width * math.sqrt(math.pi), rel=1e-6)


@pytest.mark.parametrize("engine", ["auto", "bdf", "heyoka", "runge-kutta"])
def test_a_switch_of_a_state_is_seen(engine: EngineName) -> None:
    """x' = tanh(x/0.1) from a tiny value stays there for long, then grows along a straight line."""
    if engine == "heyoka":
        pytest.importorskip("heyoka")
    small = 1e-40
    made = problem("a*tanh(x/0.1)", {"a": 1.0}, x0=small)
    found = ForwardMap(made, engine).trajectory(np.array([1.0]))
    assert not isinstance(found, Failure)
    # sinh(x/0.1) = sinh(x0/0.1) exp(t/0.1)
    log_sinh = math.log(small / 0.1) + TIMES / 0.1
    early = 0.1 * np.arcsinh(np.exp(np.minimum(log_sinh, 30)))
    expected = np.where(log_sinh > 30, 0.1 * (log_sinh + math.log(2)), early)
    assert np.allclose(found.states[:, 0], expected, rtol=1e-6, atol=1e-9)


def field_of(rhs: str, **unknowns: float) -> VectorField:
    made = problem(rhs, unknowns)
    return VectorField.of(made.model, made.conditions)


def test_functions_that_cannot_be_flat_are_not_watched() -> None:
    assert NarrowFeatures.of(field_of("-k*x/(m + x) + sin(t)*x^2", k=1.0, m=1.0)) is None


def test_a_power_is_watched_where_its_exponent_is_large() -> None:
    field = field_of("1/(1 + x^n)", n=2.0)
    features = NarrowFeatures.of(field)
    assert features is not None
    assert not features.acts(np.array([2.0]))
    assert features.acts(np.array([12.0]))


def test_an_integration_stops_where_a_function_of_time_begins_to_change() -> None:
    field = field_of("-x + exp(-((t - c)/0.01)^2)", c=5.3)
    features = NarrowFeatures.of(field)
    assert features is not None
    segment = Segment(0.0, TIMES[1:], np.zeros(0), np.zeros((1, 0, 5)))
    stopped = features.with_stops(segment, np.array([5.3]))
    assert len(stopped.breakpoints) == 1
    assert 5.2 < stopped.breakpoints[0] < 5.3
    assert len(stopped.polynomials) == 2


def test_threads_may_ask_for_stops_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields of the same equations share their features, whichever thread has made them."""
    monkeypatch.setattr("odefit.simulation.engines.narrow_features.KEPT", 1)
    features = NarrowFeatures.of(field_of("-x + exp(-((t - c)/0.02)^2)", c=5.3))
    assert features is not None
    assert features is NarrowFeatures.of(field_of("-x + exp(-((t - c)/0.02)^2)", c=5.3))
    segment = Segment(0.0, TIMES[1:], np.zeros(0), np.zeros((1, 0, 5)))
    monkeypatch.setattr(NarrowFeatures, "_beginnings", lambda _, start, end, scalars, __: scalars)
    (part,) = segment.smooth_parts

    def asked(number: int) -> bool:
        wanted = [np.array([float((i // 3 + number) % 2)]) for i in range(2500)]
        return all(np.array_equal(features.stops(part, own), own) for own in wanted)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(asked, range(8)))
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6])
def test_stops_follow_the_unit_of_time(unit: float) -> None:
    field = field_of("-x + exp(-((t - c)/w)^2)", c=5.3, w=0.01)
    features = NarrowFeatures.of(field)
    assert features is not None
    scalars = np.array([{"c": 5.3, "w": 0.01}[name] for name in field.scalars])
    segment = Segment(0.0, TIMES[1:], np.zeros(0), np.zeros((1, 0, 5)))
    other = Segment(0.0, TIMES[1:] * unit, np.zeros(0), np.zeros((1, 0, 5)))
    stops = features.with_stops(segment, scalars).breakpoints
    assert np.allclose(features.with_stops(other, scalars * unit).breakpoints, stops * unit)


def test_a_broad_function_of_time_has_no_stops() -> None:
    field = field_of("-x + exp(-k*t)*tanh(t)", k=0.3)
    features = NarrowFeatures.of(field)
    assert features is not None
    segment = Segment(0.0, TIMES[1:], np.zeros(0), np.zeros((1, 0, 5)))
    assert not len(features.with_stops(segment, np.array([0.3])).breakpoints)


@pytest.mark.parametrize(
    ("rhs", "watching"),
    [
        ("k - x*max(x - a, 0)", KINKS),
        ("k - if(x > a, x - a, 0)", KINKS),
        ("k - abs(x - a)*x^3", KINKS),
        ("k - x*max(tanh((x - a)/k), 0)", EVERYWHERE),
        ("k - abs(x)^9", EVERYWHERE),
        ("k - x^a", NOTHING),  # a is 2
    ],
)
def test_beside_kinks_steps_are_watched_only_where_functions_may_be_flat(
    rhs: str, watching: int
) -> None:
    forward = ForwardMap(problem(rhs, {"k": 1.0, "a": 2.0}))
    features = NarrowFeatures.of(forward.field)
    assert features is not None
    assert features.watching_at(np.array([1.0, 2.0])) == watching


@pytest.mark.parametrize("width", [0.5, 0.05, 0.002])
def test_a_triangle_in_a_state_is_seen_by_its_watched_terms_alone(width: float) -> None:
    data = pd.DataFrame({"t": [10.0, 20.0], "y": [0.0, 0.0]})
    ode = {"x": "1", "y": "a*max(1 - abs(x - 7.77)/w, 0)"}
    made = odefit.Problem(
        odefit.Model(ode=ode, observables={"y": "y"}),
        data=data,
        parameters={"a": {"guess": 1.0}, "w": {"guess": width}},
        initial={"x": 0.0, "y": 0.0},
        t0=0.0,
    )
    found = ForwardMap(made, "bdf").trajectory(np.array([1.0, width]))
    assert not isinstance(found, Failure)
    assert found.states[:, 1] == pytest.approx([width, width], rel=1e-5)


def test_equal_terms_are_watched_once() -> None:
    rhs = "k - max(x - a, 0) - 2*max(x - a, 0)*x - if(x - a > 0, x, 0)"
    features = NarrowFeatures.of(ForwardMap(problem(rhs, {"k": 1.0, "a": 2.0})).field)
    assert features is not None
    texts = [str(features.watched[k]) for k in range(features.watched.numel())]
    assert len(texts) == len(set(texts))
