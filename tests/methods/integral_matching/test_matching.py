"""Experiments, events, inputs, initial values and gaps: the truth is found from exact data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from odefit import Event, Experiment, Model, Problem
from odefit.methods.integral_matching.matching import connected_rows
from tests.methods.integral_matching.problems import (
    CHAIN,
    DECAY,
    T,
    chain,
    decay,
    matched,
    two,
    worst,
)

TRUTH = {"a": 0.7, "x": 1.0}


def experiment(data: Mapping[str, Any], **more: Any) -> Experiment:
    return Experiment("A", data, **more)


# Experiments ----------------------------------------------------------------------------------


def test_parameters_may_be_shared_and_initial_values_not() -> None:
    problem = decay(
        data=None,
        initial={"x": {"per_experiment": True}},
        experiments=two({"t": T, "x": DECAY}, {"t": T[:21], "x": 3 * DECAY[:21]}),
    )
    match, found = matched(problem)
    assert worst(found, {"a": 0.7, "x[A]": 1.0, "x[B]": 3.0}) < 1e-8
    assert match.nonlinear == ()


def test_parameters_may_belong_to_experiments() -> None:
    """Two rates and a shared feed: one block, all in closed form."""
    other = np.exp(-1.2 * T)
    model = Model(ode={"x": "f - a*x"})
    feed = 0.3
    data = [{"t": T, "x": y + feed / k * (1 - y)} for k, y in ((0.7, DECAY), (1.2, other))]
    problem = Problem(
        model,
        None,
        {"a": {"per_experiment": True}, "f": {}},
        {"x": 1.0},
        experiments=two(*data),
    )
    assert worst(matched(problem)[1], {"a[A]": 0.7, "a[B]": 1.2, "f": 0.3}) < 1e-7


@pytest.mark.parametrize("initial", [{}, 1.0, "2*half", "1/2 + half"])
def test_initial_values_may_be_unknown_known_or_expressions(initial: Any) -> None:
    used: dict[str, Any] = {"half": {}} if isinstance(initial, str) else {}
    problem = decay(initial={"x": initial}, parameters={"a": {}, **used})
    match, found = matched(problem)
    assert worst(found, {"a": 0.7, **({"half": 0.5} if used else {})}) < 1e-8
    assert match.nonlinear == ()


def test_an_initial_value_that_is_a_nonlinear_expression_is_searched_for() -> None:
    problem = decay(initial={"x": "p^2"}, parameters={"a": {}, "p": {"guess": 2.0, "lower": 0.1}})
    match, found = matched(problem)
    assert match.nonlinear == ("p",)
    assert worst(found, {"a": 0.7, "p": 1.0}) < 1e-6


# Times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [1, 5, 10])
def test_initial_values_before_the_first_measurement_follow_from_the_equations(first: int) -> None:
    """A smoother knows nothing there: extrapolated, x(0) would be wrong in the second digit."""
    problem = decay(data={"t": T[first:], "x": DECAY[first:]}, t0=0.0)
    assert worst(matched(problem)[1], TRUTH) < 1e-7


def test_a_known_initial_value_counts_as_a_measurement() -> None:
    problem = decay(data={"t": T[5:], "x": DECAY[5:]}, t0=0.0, initial={"x": 1.0})
    match, found = matched(problem)
    assert match.segments[0].grid.times[0] == 0.0
    assert found["a"] == pytest.approx(0.7, abs=1e-7)


def test_equations_that_lead_back_to_infinity_leave_the_first_measurement() -> None:
    """x' = -a x^2 from x = 10 at t = 1 was infinite at t = 0.9."""
    times = np.linspace(1.0, 3.0, 31)
    data = {"t": times, "x": 1 / (times - 0.9)}
    problem = decay(model=Model(ode={"x": "-a*x^2"}), data=data, t0=0.0)
    found = matched(problem)[1]
    assert found["a"] == pytest.approx(1.0, rel=1e-3)
    assert np.isfinite(found["x"])


def test_repeated_measurements_count_as_their_mean() -> None:
    sign = np.tile([1.0, -1.0], len(T))
    data = {"t": np.repeat(T, 2), "x": np.repeat(DECAY, 2) + 1e-2 * sign}
    assert worst(matched(decay(data=data))[1], TRUTH) < 1e-7


def test_unmeasured_values_are_left_out() -> None:
    values = DECAY.copy()
    values[[3, 4, 20, 40]] = np.nan
    assert worst(matched(decay(data={"t": T, "x": values}))[1], TRUTH) < 1e-7


def test_observables_may_have_different_times() -> None:
    x, w = DECAY.copy(), CHAIN.copy()
    x[::2], w[1::2] = np.nan, np.nan
    truth = {"a": 0.7, "b": 0.7, "x": 1.0, "w": 0.0}
    assert worst(matched(chain(data={"t": T, "x": x, "w": w}))[1], truth) < 1e-6


def test_no_curve_is_used_where_its_state_is_not_measured() -> None:
    """x is measured in the first half alone, w in the second two thirds: matched in between."""
    x, w = DECAY.copy(), CHAIN.copy()
    x[21:], w[:14] = np.nan, np.nan
    match, found = matched(chain(data={"t": T, "x": x, "w": w}))
    times = match.segments[0].grid.times
    assert (times[0], times[-1]) == (T[14], T[20])
    assert worst(found, {"a": 0.7, "b": 0.7, "x": 1.0}) < 1e-4


# Events and inputs ----------------------------------------------------------------------------


def test_a_dose_begins_a_new_curve() -> None:
    dosed = np.where(T <= 2, DECAY, DECAY + np.exp(-0.7 * (T - 2)))
    events = [Event((2.0,), {"x": "x + 1"})]
    problem = decay(data=None, experiments=[experiment({"t": T, "x": dosed}, events=events)])
    match, found = matched(problem)
    assert len(match.segments) == 2
    assert [s.at_start for s in match.segments] == [True, False]
    assert worst(found, TRUTH) < 1e-8


def dosed_at_start(assign: Mapping[str, Any], after: float, first: int = 1, **more: Any) -> Problem:
    """The chain of decays from x = `after` once an event at t0 is over; no measurement at t0."""
    data = {"t": T[first:], "x": after * DECAY[first:], "w": after * CHAIN[first:]}
    start = experiment(data, t0=0.0, events=[Event((0.0,), assign)])
    return chain(data=None, experiments=[start], **more)


@pytest.mark.parametrize(
    ("assign", "after"),
    [({"x": "x + 1"}, 2.0), ({"x": "5 + 2*x"}, 7.0), ({"x": "x + a"}, 1.7), ({"w": "w"}, 1.0)],
)
@pytest.mark.parametrize("first", [1, 5])
def test_a_dose_at_the_start_determines_the_value_before_it(
    assign: Mapping[str, Any], after: float, first: int
) -> None:
    match, found = matched(dosed_at_start(assign, after, first))
    assert set(match.linear) == {"a", "b"}
    assert worst(found, {"a": 0.7, "b": 0.7, "x": 1.0, "w": 0.0}) < 1e-5
    assert "left at the start" not in match.message


def test_doses_at_the_start_follow_one_another() -> None:
    """x = 3 and w = 2 become 8 and 5, x then 4, which is what the curves begin with."""
    both = np.exp(-0.7 * T)
    data = {"t": T[1:], "x": 4 * both[1:], "w": (5 * both + 4 * CHAIN)[1:]}
    events = [Event((0.0,), {"x": "x + 5", "w": "w + x"}), Event((0.0,), {"x": "x/2"})]
    problem = chain(data=None, experiments=[experiment(data, t0=0.0, events=events)])
    assert worst(matched(problem)[1], {"x": 3.0, "w": 2.0}) < 1e-5


def test_a_dose_into_a_known_state_determines_the_other() -> None:
    """After w = w + x, with w known, x is told although it is replaced."""
    events = [Event((0.0,), {"w": "w + x"}), Event((0.0,), {"x": 1.0})]
    data = {"t": T[1:], "x": DECAY[1:], "w": (3 * DECAY + CHAIN)[1:]}
    start = experiment(data, t0=0.0, events=events)
    found = matched(chain(data=None, experiments=[start], initial={"x": {}, "w": 0.5}))[1]
    assert found["x"] == pytest.approx(2.5, abs=1e-5)


@pytest.mark.parametrize("assign", [{"x": 2.0}, {"x": "1 + x^2"}, {"x": "max(x, 2)"}])
def test_an_initial_value_hidden_by_a_dose_keeps_its_start_value_and_is_named(
    assign: Mapping[str, Any],
) -> None:
    problem = dosed_at_start(assign, 2.0)
    match, found = matched(problem, start={"x": 0.3, "w": 9.0})
    assert worst(found, {"a": 0.7, "b": 0.7, "x": 0.3, "w": 0.0}) < 1e-5
    assert match.message.endswith("; the smoothed data do not determine x: left at the start value")


def test_a_measurement_at_the_start_precedes_a_dose() -> None:
    data = {"t": T, "x": np.append(0.6, 2 * DECAY[1:]), "w": 2 * CHAIN}
    start = experiment(data, t0=0.0, events=[Event((0.0,), {"x": 2.0})])
    match, found = matched(chain(data=None, experiments=[start]))
    assert worst(found, {"a": 0.7, "b": 0.7, "x": 0.6, "w": 0.0}) < 1e-5
    assert "left at the start" not in match.message


def test_an_experiment_with_a_dose_at_the_start_leaves_shared_values_to_the_others() -> None:
    """Led back, x would be 2; the curve that begins with x is what the criterion sees."""
    dosed = {"t": T[1:], "x": 3 * DECAY[1:], "w": 3 * CHAIN[1:]}
    second = Experiment("B", dosed, t0=0.0, events=[Event((0.0,), {"x": "x + 1"})])
    first = experiment({"t": T, "x": DECAY, "w": CHAIN})
    match, found = matched(chain(data=None, experiments=[first, second]))
    assert {"x", "w"} <= set(match.linear)
    assert found["x"] == pytest.approx(1.0, abs=1e-6)


def test_a_switched_constant_is_in_force_from_then_on() -> None:
    """Feeding begins at t = 2."""
    fed = 1 / 0.7 * (1 - np.exp(-0.7 * (T - 2)))
    values = np.where(T <= 2, DECAY, DECAY + fed)
    model = Model(ode={"x": "u - a*x"}, constants={"u": 0.0})
    events = [Event((2.0,), {"u": 1.0})]
    problem = decay(
        model=model, data=None, experiments=[experiment({"t": T, "x": values}, events=events)]
    )
    assert worst(matched(problem)[1], TRUTH) < 1e-7


def test_an_event_may_set_a_constant_to_an_unknown() -> None:
    fed = 0.4 / 0.7 * (1 - np.exp(-0.7 * (T - 2)))
    values = np.where(T <= 2, DECAY, DECAY + fed)
    model = Model(ode={"x": "u - a*x"}, constants={"u": 0.0})
    events = [Event((2.0,), {"u": "2*rate"})]
    problem = decay(
        model=model,
        data=None,
        parameters={"a": {}, "rate": {}},
        experiments=[experiment({"t": T, "x": values}, events=events)],
    )
    match, found = matched(problem)
    assert set(match.linear) == {"a", "rate", "x"}
    assert worst(found, {**TRUTH, "rate": 0.2}) < 1e-7


def test_a_stretch_without_measurements_is_left_out_and_named() -> None:
    dosed = np.where(T <= 2, DECAY, DECAY + np.exp(-0.7 * (T - 2)))
    events = [Event((2.0, 3.95), {"x": "x + 1"})]
    data = {"t": T, "x": np.append(dosed[:-1], dosed[-1] + np.exp(-0.7 * 0.05))}
    problem = decay(data=None, experiments=[experiment(data, events=events)])
    match, found = matched(problem)
    assert len(match.segments) == 2
    assert 'left out: "A", x from t = 3.95 to 4: smoothing spline: needs at least' in match.message
    assert worst(found, TRUTH) < 1e-7


@pytest.mark.parametrize("kind", ["constant", "linear", "cubic"])
def test_inputs_are_integrated_over_their_corners(kind: Any) -> None:
    knots = np.array([0.0, 1.0, 1.5, 3.0])
    heights = np.array([0.0, 1.0, 0.2, 0.6])
    u = np.full(len(T), np.nan)
    u[[0, 10, 15, 30]] = heights

    model = Model(ode={"x": "b*u - a*x"}, inputs={"u": kind})
    blank = Problem(
        model,
        {"t": T, "x": DECAY, "u": u},
        {"a": {}, "b": {}},
        {"x": {}},
    )
    given = blank.conditions[0].inputs["u"]

    def rhs(t: float, z: Any) -> Any:
        return 0.8 * given(np.array([t])) - 0.7 * z

    # Piece by piece, so that no step goes over a corner.
    values = [1.0]
    for start, stop in pairwise(T):
        inside = (start + 1e-9, stop - 1e-9)
        values.append(solve_ivp(rhs, inside, [values[-1]], rtol=1e-11, atol=1e-12).y[0, -1])
    assert len(knots) == len(heights)
    problem = blank.with_data({blank.experiments[0].name: {"t": T, "x": values, "u": u}})
    # A jump of the input is a corner of x, which a smooth curve rounds off.
    assert worst(matched(problem)[1], {"a": 0.7, "b": 0.8}) < 0.05


def test_algebraic_variables_are_eliminated() -> None:
    """x' = -z, 2 z = a x: a acts through z alone."""
    model = Model(ode={"x": "-z"}, algebraic={"z": "2*z - a*x"})
    match, found = matched(decay(model=model))
    assert match.linear == ("a", "x")
    assert worst(found, {"a": 1.4, "x": 1.0}) < 1e-7


def test_unknowns_coupled_by_algebraic_variables_form_one_block() -> None:
    model = Model(ode={"x": "-z*a", "w": "z*a - b*w"}, algebraic={"z": "z - k*x"})
    problem = chain(model=model, parameters={"a": {}, "b": {}, "k": {"lower": 0.1, "upper": 2.0}})
    match, found = matched(problem)
    assert len({"a", "k"} & set(match.linear)) == 1
    assert found["a"] * found["k"] == pytest.approx(0.7, abs=1e-6)
    assert found["b"] == pytest.approx(0.7, abs=1e-6)


def test_a_short_series_takes_a_spline_of_lower_order() -> None:
    few = slice(None, None, 8)
    match, found = matched(decay(data={"t": T[few], "x": DECAY[few]}))
    assert len(match.segments) == 1
    assert worst(found, TRUTH) < 0.05


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 999))
def test_rows_that_share_columns_are_connected_components(n: int, m: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).random((n, m)) < 1.5 / m
    shared = csr_array(matrix.astype(int) @ matrix.T.astype(int))
    count, labels = connected_components(shared)
    rows = [np.flatnonzero(labels == k).tolist() for k in range(count)]
    expected = [(r, np.flatnonzero(matrix[r].any(axis=0)).tolist()) for r in rows]
    assert connected_rows(matrix) == [(r, c) for r, c in expected if c]
