"""Equations on a tape: exact inputs and eliminations, events in order, what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from odefit import Event, Experiment, InputError, Model, Problem
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, flow
from odefit.enclosure.system import System
from tests.enclosure.containment import box, exact, sane

DATA = {"t": [0.0, 1.0, 3.0], "x": [0.0, 0.0, 0.0]}


def system(problem: Problem) -> System:
    return System(problem, problem.conditions[0])


def decay(events: list[Event], ode: dict[str, str] | None = None, **constants: float) -> Problem:
    ode = ode or {"x": "-c*x"}
    return Problem(
        Model(ode=ode, constants={"c": 1.0, **constants}, observables={"y": "x"}),
        parameters={"k": {}},
        initial=dict.fromkeys(ode, 1.0),
        experiments=[Experiment("run", {"t": DATA["t"], "y": DATA["x"]}, events=events)],
    )


def residuals_of(problem: Problem, vector: Array, order: int = 24) -> list[tuple[Any, Any]]:
    """At a point: values and remainders, exactly."""
    enclosure = Enclosure(problem, 1, order)
    found = enclosure(*box(vector, 0.0))
    sane(found)
    zero = [Fraction(0)] * len(vector)
    values = [exact(enclosure.monomials, c, zero) for c in found.c[:, :, 0]]
    bounds = [Fraction(r) if np.isfinite(r) else None for r in found.remainder[:, 0].tolist()]
    return list(zip(values, bounds, strict=True))


@pytest.mark.parametrize("interpolation", ["linear", "constant", "cubic"])
@pytest.mark.parametrize("shift", [0.0, 0.1, 1e5])
def test_inputs_are_integrated_exactly(interpolation: str, shift: float) -> None:
    """``x' = u`` is a piecewise polynomial with rational coefficients."""
    t = np.array([0.0, 0.3, 0.9, 1.1, 2.0, 2.6]) + shift
    u = np.array([np.nan, 0.1, -0.7, np.nan, 1.3, 0.2])
    problem = Problem(
        Model(ode={"x": "u"}, inputs={"u": interpolation}, observables={"x": "x", "v": "u"}),
        {"t": t, "u": u, "x": [0.0] * 6, "v": [0.0] * 6},
        {"k": {}},
        {"x": "k"},
        t0=shift - 0.5,
    )
    given = problem.conditions[0].inputs["u"]
    knots, rows = [Fraction(k) for k in given.times.tolist()], given.polynomials()

    def piece(time: Fraction) -> tuple[list[Fraction], Fraction]:
        place = sum(k <= time for k in knots)
        return [Fraction(c) for c in rows[place].tolist()], knots[max(place - 1, 0)]

    def integral(a: Fraction, b: Fraction) -> Fraction:
        total = Fraction(0)
        cuts = [a, *(k for k in knots if a < k < b), b]
        for low, high in pairwise(cuts):
            c, left = piece(low)
            total += sum(
                (c[j] * ((high - left) ** (j + 1) - (low - left) ** (j + 1)) / (j + 1))
                for j in range(4)
            )
        return total

    found = residuals_of(problem, np.array([0.4]))
    one = system(problem)
    for i, time in enumerate(Fraction(s) for s in t.tolist()):
        value, bound = found[i]
        assert abs(value - Fraction(0.4) - integral(Fraction(shift - 0.5), time)) <= bound < 1e-9
        c, left = piece(time)
        input_value = sum((c[j] * (time - left) ** j for j in range(4)), Fraction(0))
        assert one.input_at("u", float(time)) == input_value
        value, bound = found[6 + i]
        assert abs(value - input_value) <= bound < 1e-14


@pytest.mark.parametrize("order", [1, 2, 3])
def test_inputs_may_have_more_orders_than_are_kept(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``u = t^2`` and its integral both begin with zeros; in few long steps."""
    monkeypatch.setattr(flow, "SHORTEST_STEP", 0.5)
    t = [0.0, 1.0, 2.0, 3.0]
    problem = Problem(
        Model(
            ode={"x": "u", "z": "t", "w": "w*u"},
            inputs={"u": "cubic"},
            observables={"x": "x", "z": "z", "w": "w"},
        ),
        {"t": t, "u": [0.0, 1.0, 4.0, 9.0], "x": [0.0] * 4, "z": [0.0] * 4, "w": [0.0] * 4},
        {"k": {}},
        {"x": 0.0, "z": 0.0, "w": "k"},
    )
    found = residuals_of(problem, np.array([0.1]), order)
    for i, time in enumerate(t):
        true = time**3 / 3, time**2 / 2, 0.1 * np.exp(time**3 / 3)
        for (value, bound), expected in zip(found[i::4], true, strict=True):
            rounding = Fraction(1e-15 * expected)
            assert bound is None or abs(value - Fraction(expected)) <= bound + rounding
    assert found[5][1] is not None


def test_an_input_near_zero_between_large_ones() -> None:
    """Its rounding is that of the large ones."""
    problem = Problem(
        Model(ode={"x": "-x"}, inputs={"u": "linear"}, observables={"v": "u*1e10"}),
        {"t": [0.0, 0.1, 0.3], "u": [-1e8, np.nan, 2e8], "v": [0.0, 0.0, 0.0]},
        {"k": {}},
        {"x": "k"},
    )
    slope = Fraction(float(problem.conditions[0].inputs["u"].polynomials()[1, 1]))
    true = (Fraction(-1e8) + slope * Fraction(0.1)) * 10**10
    value, bound = residuals_of(problem, np.array([1.0]))[1]
    assert abs(value - true) <= bound


def test_algebraic_variables_are_eliminated_exactly() -> None:
    problem = Problem(
        Model(
            ode={"x": "-z"},
            algebraic={"z": "3*z + w/7 - x", "w": "w/7 - c*x"},
            constants={"c": 0.1},
        ),
        DATA,
        {"k": {}},
        {"x": "k", "z": 0.0, "w": 0.0},
    )
    with mpmath.workdps(40):
        rate = (1 - mpmath.mpf(1) / 10) / 3
        for (value, bound), t in zip(
            residuals_of(problem, np.array([0.7])), DATA["t"], strict=True
        ):
            true = mpmath.mpf(0.7) * mpmath.exp(-rate * t)
            distance = abs(mpmath.mpf(value.numerator) / value.denominator - true)
            assert distance <= mpmath.mpf(bound.numerator) / bound.denominator


def test_events_at_one_time_happen_one_after_the_other() -> None:
    events = [
        Event((1.0,), {"c": "c + 1"}),
        Event((1.0,), {"x": "x*c"}),
        Event((1.0,), {"c": "c*3"}),
        Event((1.0,), {"x": "x + c"}),
    ]
    problem = decay(events)
    (_, _), (before, bound), (after, error) = residuals_of(problem, np.array([0.3]))
    assert abs(before - Fraction(np.exp(-1.0))) <= bound + Fraction(1e-15)
    true = (np.exp(-1.0) * 2 + 6) * np.exp(-12.0)
    assert abs(after - Fraction(true)) <= error + Fraction(1e-16)


def test_events_that_multiply_uncertain_states_are_enclosed() -> None:
    problem = decay([Event((1.0,), {"x": "100*x"}), Event((2.0,), {"x": "x/50"})], {"x": "-k*x"})
    found = Enclosure(problem, 0)(np.array([[0.5]]), np.array([[1.0]]))
    for k in (0.5, 0.75, 1.0):
        true = np.array([1.0, np.exp(-k), 2 * np.exp(-3 * k)])
        assert (np.abs(true - found.c[:, 0, 0]) <= found.remainder[:, 0]).all()
    assert found.remainder[2, 0] < 3.0
    sharp = decay([Event((2.9999,), {"x": "100*x"})], {"x": "-k*x"})
    found = Enclosure(sharp, 0)(np.array([[0.5]]), np.array([[1.0]]))
    for k in (0.5, 1.0):
        true = np.array([1.0, np.exp(-k), 100 * np.exp(-3 * k)])
        assert (np.abs(true - found.c[:, 0, 0]) <= found.remainder[:, 0]).all()


def test_an_event_whose_constant_depends_on_states_is_refused() -> None:
    with pytest.raises(InputError, match=r"event at t = 1 sets c to x/2, which depends on states"):
        system(decay([Event((1.0,), {"c": "x/2"})]))


def test_events_make_modes_and_breaks() -> None:
    problem = decay([Event((0.0, 2.0), {"x": "x + 1"}), Event((1.5,), {"c": 2.0})])
    one = system(problem)
    assert one.breaks == [1.5, 2.0]
    assert one.mode_at(1.4).right_hand_sides.terms != one.mode_at(1.5).right_hand_sides.terms


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "kinks": ({"ode": {"x": "-k*abs(x)"}}, "'abs' has a kink and cannot be enclosed"),
    "pieces": (
        {"ode": {"x": "-k*piecewise(x, x < 1, 1)"}},
        "'piecewise' has a kink and cannot be enclosed",
    ),
    "large powers": ({"ode": {"x": "-k*x^65"}}, "the power 65 is larger than 64"),
    "a division by zero": ({"ode": {"x": "-k*x/c"}, "constants": {"c": 0.0}}, "division by zero"),
    "observables": (
        {"ode": {"x": "-k*x"}, "observables": {"y": "log(max(x, k))"}},
        "observables: 'max' has a kink",
    ),
    "algebra with unknown coefficients": (
        {"ode": {"x": "-z"}, "algebraic": {"z": "k*z - x"}},
        "algebraic equations are not linear in z with constant coefficients",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_models_are_refused(name: str) -> None:
    fields, message = REFUSED[name]
    measured = "y" if "observables" in fields else "x"
    problem = Problem(
        Model(**fields),
        {"t": DATA["t"], measured: DATA["x"]},
        {"k": {}},
        {"x": 1.0, **dict.fromkeys(fields.get("algebraic", ()), 0.5)},
    )
    with pytest.raises(InputError, match=message):
        Enclosure(problem)


def test_events_with_kinks_are_refused() -> None:
    for assign in ({"x": "sqrt(abs(x))"}, {"c": "min(k, 1)"}):
        with pytest.raises(InputError, match="has a kink"):
            Enclosure(decay([Event((1.0,), assign)]))


def test_states_are_grouped_by_dependence() -> None:
    problem = Problem(
        Model(ode={"c": "b*c", "a": "-k*a", "b": "a - d*b", "d": "b"}),
        {"t": DATA["t"], "c": DATA["x"]},
        {"k": {}},
        {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0},
    )
    mode = system(problem).modes[0]
    groups, reach = mode.groups, mode.dependence
    assert [sorted(g) for g in groups] == [[1], [2, 3], [0]]
    assert reach.tolist() == [[1, 1, 1, 1], [0, 1, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1]]


def influence(problem: Problem, **observables: str) -> list[list[float]]:
    one = system(problem)
    found: list[list[float]] = one.influence(one.observables(["y"], 2.5)).tolist()
    return found


def test_influence_lists_the_unknowns_that_act() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "-m*z"}, observables={"y": "x*s"}),
        {"t": DATA["t"], "y": DATA["x"]},
        {"k": {}, "m": {}, "s": {}},
        {"x": {}, "z": {}},
    )
    assert influence(problem) == [[1.0, 0.0, 1.0, 1.0, 0.0]]


def test_unknowns_act_through_doses() -> None:
    assert influence(decay([Event((1.0,), {"x": "x + k"})])) == [[1.0]]
    assert influence(decay([Event((1.0,), {"c": "k"})])) == [[1.0]]
    assert influence(decay([])) == [[0.0]]


def test_unknowns_act_through_one_mode_after_the_other() -> None:
    """k acts on z, then z on y, then y on x; never two of them at once."""
    ode = {"x": "c*y", "y": "d*z", "z": "e*k"}
    events = [Event((1.0,), {"e": 0.0, "d": 1.0}), Event((2.0,), {"d": 0.0, "c": 1.0})]
    problem = Problem(
        Model(ode=ode, constants={"c": 0.0, "d": 0.0, "e": 1.0}, observables={"y_": "x"}),
        parameters={"k": {}},
        initial=dict.fromkeys(ode, 1.0),
        experiments=[Experiment("run", {"t": DATA["t"], "y_": DATA["x"]}, events=events)],
    )
    one = system(problem)
    assert one.influence(one.observables(["y_"], 3.0)).tolist() == [[1.0]]
