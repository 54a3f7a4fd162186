"""Comparisons that the time decides become constants that events set at the exact time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression, parse
from odefit.expressions.formulas import Part, linear_in, text_of
from odefit.problem import Event, Experiment, Model, Problem
from odefit.problem.binding import bound_value
from odefit.problem.toml.reading import problem_from_mapping
from odefit.problem.toml.writing import problem_to_mapping
from odefit.problem.variants.start_ranges import Range, ranges
from odefit.problem.vector_field import VectorField

CONSTANTS = {"a": 2.0, "b": 5.0, "c": -1.5}


def problem(equation: str, t0: float = 0.0, **keys: Any) -> Problem:
    experiment = Experiment("one", {"t": [t0, 10.0], "x": [1.0, 2.0]}, t0=t0, **keys)
    return Problem(
        Model(ode={"x": equation}, constants=CONSTANTS),
        experiments=[experiment],
        parameters={"p": {"lower": 0.0, "upper": 9.0}, "q": {"lower": 0.0, "upper": 9.0}},
        initial={"x": 1.0},
    )


def atoms() -> st.SearchStrategy[str]:
    sides = st.sampled_from(
        ["t", "3", "a", "b - c", "t - a", "2*t + c", "c*t", "-t", "(t - b)/2 + a", "a*b", "4.5"]
    )
    return st.tuples(sides, st.sampled_from(["<", "<=", ">", ">="]), sides).map(" ".join)


def conditions() -> st.SearchStrategy[str]:
    return st.recursive(
        atoms(),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(
                lambda j: f"({j[0]}) {j[1]} ({j[2]})"
            ),
            inner.map(lambda c: f"!({c})"),
        ),
        max_leaves=4,
    )


@pytest.mark.slow
@given(
    st.lists(conditions(), min_size=1, max_size=3),
    st.sampled_from(["{}*x + t", "1/(x + 3) - {}", "piecewise({}, a < b, 3)*x"]),
    st.sampled_from(["log(1 + t)", "2", "x/t"]),
    st.sampled_from([0.0, 2.0, 4.5]),
)
def test_a_rewritten_equation_equals_the_original_between_events(
    tests: list[str], around: str, value: str, t0: float
) -> None:
    pieces = ", ".join(f"{k + 2}, {c}" for k, c in enumerate(tests))
    text = around.format(f"piecewise({pieces}, {value})")
    made = problem(text, t0)
    condition = made.conditions[0]
    assert not condition.located
    events = [t for t, _ in condition.events]
    assert all(t0 < t for t in events)
    scalars: dict[str, Any] = dict(condition.scalars)
    edges = [t0, *sorted(set(events)), max([t0, *events]) + 3.0]
    for begin, end in pairwise(edges):
        for time, assign in condition.events:
            if time == begin:
                scalars |= {n: e.constant for n, e in assign.items()}
        for time in begin + (end - begin) * np.array([0.001, 0.3, 0.999]):
            values = {n: np.float64(v) for n, v in scalars.items() if isinstance(v, float)}
            values |= {"x": np.float64(1.3), "t": time, "p": np.float64(1), "q": np.float64(1)}
            with np.errstate(all="ignore"):
                found = made.model.ode["x"].evaluate(values, NUMPY)
                expected = parse(text).evaluate(values, NUMPY)
            assert found == pytest.approx(expected, rel=1e-13)
    assert VectorField.of(made.model, made.conditions).smooth


def test_a_switch_is_located_exactly_and_known_ones_are_events() -> None:
    made = problem("-p*x*piecewise(1, t - a > 0.3 && t < b, 0)")
    condition = made.conditions[0]
    assert [(t, *assign) for t, assign in condition.events] == [
        (2.3, "__switch1"),
        (5.0, "__switch2"),
    ]
    assert made.model.ode["x"].names == {"p", "x", "__switch1", "__switch2"}
    assert made.given.ode["x"].text == "-p*x*piecewise(1, t - a > 0.3 && t < b, 0)"


@pytest.mark.parametrize(
    ("t0", "value", "events"),
    [(4.0, 0.0, [5.0]), (5.0, 1.0, []), (6.0, 1.0, [])],
)
def test_a_switch_before_the_beginning_has_its_value_from_the_start(
    t0: float, value: float, events: list[float]
) -> None:
    condition = problem("-x*piecewise(p, t < b, q)", t0).conditions[0]
    assert condition.scalars["__switch1"] == value
    assert [t for t, _ in condition.events] == events


def test_before_a_steady_state_switches_are_as_they_are_just_before_the_beginning() -> None:
    condition = problem("-x*piecewise(p, t < b, q)", 5.0, steady_state=True).conditions[0]
    assert condition.scalars["__switch1"] == 0.0
    assert [t for t, _ in condition.events] == [5.0]


def test_an_unknown_time_is_located_and_its_switch_starts_on_the_right_side() -> None:
    condition = problem("-x*piecewise(1, 2*t >= p + q, 0)", 1.0).conditions[0]
    (event,) = condition.located
    assert isinstance(event.time, Expression)
    start = condition.scalars["__switch1"]
    for p, q in [(0.5, 0.25), (3.0, 2.0)]:
        unknowns = [np.float64(p), np.float64(q)]
        assert bound_value(event.time, condition.scalars, unknowns, NUMPY) == (p + q) / 2
        on = bound_value(start, condition.scalars, unknowns, NUMPY)
        assert on == float((p + q) / 2 < 1.0)


def test_a_comparison_of_constants_is_a_constant_of_each_experiment() -> None:
    data = {"t": [0.0, 1.0], "x": [1.0, 2.0]}
    made = Problem(
        Model(ode={"x": "-p*x*piecewise(1, dose > 3, 0)"}),
        experiments=[
            Experiment("low", data, constants={"dose": 2.0}),
            Experiment("high", data, constants={"dose": 4.0}),
            Experiment("own", data, constants={"dose": "p + 1"}),
        ],
        parameters={"p": {"lower": 0.0}},
        initial={"x": 1.0},
    )
    low, high, own = (c.scalars["__switch1"] for c in made.conditions)
    assert (low, high) == (0.0, 1.0)
    assert isinstance(own, Expression)
    assert VectorField.of(made.model, made.conditions).smooth


def test_an_event_that_changes_a_compared_constant_sets_the_switch_as_well() -> None:
    events = [Event((3.0,), {"a": "b + 1", "x": "0"})]
    condition = problem("-x*piecewise(p, a > 4, q)", events=events).conditions[0]
    assert condition.scalars["__switch1"] == 0.0
    ((_, assign),) = condition.events
    values = {"b": np.float64(5.0), "t": np.float64(3.0)}
    assert assign["__switch1"].evaluate(values, NUMPY) == 1.0


def test_a_switch_whose_time_an_event_changes_is_triggered() -> None:
    events = [Event((1.0,), {"a": "a + 3"})]
    condition = problem("-x*piecewise(p, t > a, q)", events=events).conditions[0]
    (event,) = condition.located
    assert event.when is not None
    assert event.when.text == "t > a"
    ((_, assign),) = condition.events
    values = {"a": np.float64(-2.5), "t": np.float64(1.0)}
    assert assign["__switch1"].evaluate(values, NUMPY) == 1.0


@pytest.mark.parametrize(
    ("events", "steady", "expected"),
    [
        # a = 2 at first: on at 2, off again at 3 as it moves to 7, on there.
        ([Event((3.0,), {"a": 7.0})], False, (0.0, [(2.0, 1.0), (3.0, 0.0), (7.0, 1.0)])),
        ([Event((1.0,), {"a": "b"})], False, (0.0, [(1.0, 0.0), (5.0, 1.0)])),
        ([Event((1.0,), {"a": -1.0})], False, (0.0, [(1.0, 1.0)])),
        ([Event((0.0,), {"a": 0.0})], True, (0.0, [(0.0, 1.0)])),
        ([Event((0.0,), {"a": 4.0}), Event((6.0,), {"a": "b + 3"})], True,
         (0.0, [(0.0, 0.0), (4.0, 1.0), (6.0, 0.0), (8.0, 1.0)])),
    ],
)  # fmt: skip
def test_events_that_move_a_switch_to_known_times_leave_it_exact(
    events: list[Event], steady: bool, expected: tuple[float, list[tuple[float, float]]]
) -> None:
    keys: dict[str, Any] = {"events": events, "steady_state": steady}
    condition = problem("-x*piecewise(p, t > a, q)", **keys).conditions[0]
    assert not condition.located
    found = [(t, e["__switch1"].constant) for t, e in condition.events if "__switch1" in e]
    assert (condition.scalars["__switch1"], found) == expected


@pytest.mark.parametrize("condition", ["x > 1", "t^2 < 4", "sin(t) > 0", "t < 5 && x > 0.1"])
def test_a_switch_decided_by_the_state_stays_pointwise(condition: str) -> None:
    made = problem(f"-piecewise(1, {condition}, 0)*x")
    assert not VectorField.of(made.model, made.conditions).smooth


def test_an_undefined_value_without_weight_is_not_multiplied() -> None:
    made = problem("piecewise(log(t - 3), t > 4, 0) - x*piecewise(2, t > 4, 1)")
    values = {"x": np.float64(1.0), "t": np.float64(0.0), "__switch1": np.float64(0.0)}
    with np.errstate(all="ignore"):
        assert made.model.ode["x"].evaluate(values, NUMPY) == -1.0
    assert VectorField.of(made.model, made.conditions).smooth


def test_a_problem_with_switches_survives_writing_and_reading() -> None:
    events = [
        Event((), {"x": "1"}, when="x < 0.1 && !(t > 3)", initially=False),
        Event(("p + 1",), {"x": "2"}, measured="after"),
    ]
    made = problem("-x*piecewise(p, t < q, 1)", events=events)
    mapping = problem_to_mapping(made)
    again = problem_from_mapping(mapping)
    assert problem_to_mapping(again) == mapping
    assert again.given.ode == made.given.ode
    assert again.experiments[0].events == made.experiments[0].events
    assert [e.initially for e in again.conditions[0].located] == [True, False, True]


@pytest.mark.parametrize(
    ("when", "initially", "t0", "times"),
    [
        ("t >= 4", True, 0.0, [4.0]),
        ("a + 2*t > 10", True, 0.0, [4.0]),
        ("t >= 4", True, 4.0, []),
        ("t >= 4", False, 4.0, [4.0]),
        ("t > 4", True, 4.0, [4.0]),
        ("t >= 4", True, 5.0, []),
        ("t >= 4", False, 5.0, [5.0]),
        ("t < 4", True, 1.0, []),
        ("t < 4", False, 1.0, [1.0]),
        ("t < 4", False, 4.0, []),
    ],
)
def test_a_condition_in_time_alone_is_a_time(
    when: str, initially: bool, t0: float, times: list[float]
) -> None:
    events = [Event((), {"x": "0"}, when=when, initially=initially)]
    condition = problem("-p*x*q", t0, events=events).conditions[0]
    assert [t for t, _ in condition.events] == times
    assert not condition.located


def test_computed_times_without_unknowns_are_known_events() -> None:
    events = [Event(("a + b", "p + a", "a - b"), {"x": "x + 1"}, measured="after")]
    made = problem("-p*x*q", events=events)
    condition = made.conditions[0]
    assert [t for t, _ in condition.events] == [7.0]
    assert condition.measured_after == {7.0}
    assert [str(e.time) for e in condition.located] == ["p + a"]
    assert any("t = -3 is before t0 = 0: the event does not happen" in w for w in made.warnings)


def mistakes(**event: Any) -> str:
    raw = {
        "format": 1,
        "ode": {"x": "-k*x"},
        "parameters": {"k": {"guess": 1.0}},
        "initial": {"x": 1.0},
        "constants": {"a": 1.0},
        "experiment": [{"data": {"t": [0, 1], "x": [1, 2]}, "event": [event]}],
    }
    with pytest.raises(ValueError, match="event") as caught:
        problem_from_mapping(raw)
    return str(caught.value)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"when": "x", "assign": {"x": 1}}, "a number where a condition is expected"),
        ({"when": 3, "assign": {"x": 1}}, "expected a condition such as x < 0.1, got 3"),
        ({"when": "y < 1", "assign": {"x": 1}}, "unknown name 'y'"),
        ({"when": "x < 1", "time": 3, "assign": {"x": 1}}, "when and a time are both given"),
        ({"time": 1, "initially": False, "assign": {"x": 1}}, "belongs to an event with when"),
        ({"when": "x < 1", "initially": "no", "assign": {"x": 1}}, "expected true or false"),
        ({"time": "x", "assign": {"x": 1}}, "only parameters and constants can be used here"),
        ({"time": "a + 1", "assign": {"a": 1}}, 'write when = "t >= a + 1" instead'),
    ],
)
def test_a_mistake_in_an_event_is_named(event: dict[str, Any], message: str) -> None:
    assert message in mistakes(**event)


@pytest.mark.parametrize(
    ("text", "constant", "slope"),
    [
        ("t - a", "-a", "1.0"),
        ("2*(t - a) - b", "-(2*a) - b", "2.0"),
        ("(a - t)/b", "a/b", "(-1.0)/b"),
        ("a*b", "a*b", "0.0"),
    ],
)
def test_a_linear_function_of_time_has_its_parts(text: str, constant: str, slope: str) -> None:
    found = linear_in(Part(parse(text).program))
    assert found is not None
    values = {"a": np.float64(3.0), "b": np.float64(7.0)}
    for part, expected in ((found.constant, constant), (found.slope, slope)):
        assert part.expression().evaluate(values, NUMPY) == parse(expected).evaluate(values, NUMPY)


@pytest.mark.parametrize("text", ["t*t", "t^2", "a/t", "exp(t)", "max(t, a)"])
def test_a_nonlinear_expression_gives_no_linear_form(text: str) -> None:
    assert linear_in(Part(parse(text).program)) is None


@pytest.mark.parametrize("text", ["a - (b - c)*-2", "piecewise(1, !(a < b) && c > -1, b^-2)"])
def test_the_text_of_a_program_has_its_meaning(text: str) -> None:
    program = parse(text).program
    assert parse(text_of(program)).program == program


def test_the_time_of_an_event_starts_anywhere_in_the_time_of_the_data() -> None:
    made = problem("-q*x*piecewise(1, t < p, 2)", t0=1.0)
    assert ranges(made)[0] == Range(1.0, 9.0, False)
    assert ranges(problem("-q*x*piecewise(p, t < p, 2)"))[1].low < 0.1
