"""Unknowns and conditions are what the sections and experiments say together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit.problem import Event, Experiment, InputError, Model, Parameter, Problem, parse

DATA = {"t": [0.0, 1, 2], "x": [1.0, 2, 3]}


def problem(
    *experiments: Experiment,
    ode: Any = None,
    parameters: Any = None,
    initial: Any = None,
    constants: Any = None,
    **more: Any,
) -> Problem:
    return Problem(
        Model(ode=ode or {"x": "-k*x + c"}, constants=constants),
        parameters={"k": {}, "c": {}} if parameters is None else parameters,
        initial={"x": 1.0} if initial is None else initial,
        experiments=experiments or [Experiment("A", DATA)],
        **more,
    )


def keys(p: Problem) -> list[str]:
    return [u.key for u in p.unknowns]


def errors(*experiments: Experiment, **more: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        problem(*experiments, **more)
    return caught.value.messages


A, B = Experiment("A", DATA), Experiment("B", DATA)


def test_unknowns_are_parameters_then_initial_values_then_noise() -> None:
    p = problem(initial={"x": {"lower": 0}}, noise={"x": {"sd": "estimate"}})
    assert keys(p) == ["k", "c", "x", "x_sd"]
    assert [u.kind for u in p.unknowns] == ["parameter", "parameter", "initial", "noise"]
    np.testing.assert_array_equal(p.lower, [-np.inf, -np.inf, 0, 0])
    assert p.conditions[0].initial["x"] == 2


def test_fixed_parameters_are_not_unknowns() -> None:
    p = problem(parameters={"k": {"fixed": 0.5}, "c": {"lower": 2, "upper": 2}})
    assert keys(p) == []
    assert p.conditions[0].scalars == {"k": 0.5, "c": 2.0}


def test_per_experiment_parameters_have_one_unknown_for_each() -> None:
    p = problem(A, B, parameters={"k": {"per_experiment": True}, "c": {}})
    assert keys(p) == ["k[A]", "k[B]", "c"]
    assert [c.scalars["k"] for c in p.conditions] == [0, 1]


def test_with_one_experiment_a_key_is_the_bare_name() -> None:
    p = problem(A, parameters={"k": {"per_experiment": True}, "c": {}})
    assert keys(p) == ["k", "c"]


def test_a_fixed_per_experiment_parameter_is_known_everywhere() -> None:
    p = problem(A, B, parameters={"k": {"per_experiment": True, "fixed": 1}, "c": {}})
    assert keys(p) == ["c"]
    assert [c.scalars["k"] for c in p.conditions] == [1.0, 1.0]


def test_an_experiment_overrides_a_constant_by_a_number_or_an_expression() -> None:
    p = problem(
        Experiment("A", DATA, constants={"c": 2}),
        Experiment("B", DATA, constants={"c": "2*m"}),
        Experiment("C", DATA, constants={"c": "m"}),
        Experiment("D", DATA),
        parameters={"k": {}, "m": {}},
        constants={"c": 1.0},
    )
    assert [c.scalars["c"] for c in p.conditions] == [2.0, parse("2*m"), 1, 1.0]


def test_an_experiment_may_give_the_value_of_a_parameter() -> None:
    p = problem(Experiment("A", DATA, constants={"k": 2}), B)
    assert keys(p) == ["k", "c"]
    assert [c.scalars["k"] for c in p.conditions] == [2.0, 0]


def test_a_per_experiment_parameter_has_no_unknown_where_its_value_is_given() -> None:
    p = problem(
        Experiment("A", DATA, constants={"k": 2}), B,
        parameters={"k": {"per_experiment": True}, "c": {}},
    )  # fmt: skip
    assert keys(p) == ["k[B]", "c"]


def test_a_parameter_whose_value_every_experiment_gives_cannot_be_estimated() -> None:
    found = errors(Experiment("A", DATA, constants={"k": 2}))
    assert len(found) == 1
    assert "every experiment gives a value of its own" in found[0]


def test_constants_that_refer_to_an_overridden_value_see_the_override() -> None:
    p = problem(
        Experiment("A", DATA, constants={"c": "k", "k": 3.0}), B,
        initial={"x": "k"},
    )  # fmt: skip
    assert p.conditions[0].scalars["c"] == 3.0
    assert p.conditions[0].initial["x"] == 3.0
    assert p.conditions[1].initial["x"] == 0


def test_a_computed_constant_as_initial_value_is_its_expression() -> None:
    p = problem(
        Experiment("A", DATA, constants={"c": "2*m"}),
        parameters={"k": {}, "m": {}},
        initial={"x": "c"},
        constants={"c": 1.0},
    )
    assert p.conditions[0].initial["x"] == parse("2*m")


def test_expressions_among_the_scalars_refer_to_numbers_and_unknowns_alone() -> None:
    found = errors(Experiment("A", DATA, constants={"a": "2*b", "b": "2*a"}),
                   ode={"x": "a*b*x"}, parameters={}, constants={"a": 1.0, "b": 1.0})  # fmt: skip
    assert len(found) == 2
    assert "refers to 'b', which is computed here too" in found[0]


def test_an_initial_value_can_be_shared_overridden_or_special() -> None:
    p = problem(
        A,
        Experiment("B", DATA, initial={"x": 5}),
        Experiment("C", DATA, initial={"x": {"lower": 0}}),
        Experiment("D", DATA, initial={"x": "c"}),
        initial={"x": {}},
    )
    assert keys(p) == ["k", "c", "x", "x[C]"]
    assert [c.initial["x"] for c in p.conditions] == [2, 5.0, 3, 1]


def test_a_shared_initial_value_that_all_override_is_not_an_unknown() -> None:
    p = problem(Experiment("A", DATA, initial={"x": 5}), initial={"x": {}})
    assert keys(p) == ["k", "c"]


def test_a_per_experiment_initial_value_counts_where_it_is_not_overridden() -> None:
    p = problem(
        A, Experiment("B", DATA, initial={"x": 5}), Experiment("C", DATA),
        initial={"x": {"per_experiment": True}},
    )  # fmt: skip
    assert keys(p) == ["k", "c", "x[A]", "x[C]"]
    assert [c.initial["x"] for c in p.conditions] == [2, 5.0, 3]


def test_the_initial_values_may_all_be_in_the_experiments() -> None:
    p = problem(Experiment("A", DATA, initial={"x": 5}), initial={})
    assert p.conditions[0].initial["x"] == 5.0


def test_without_t0_the_first_data_time_counts() -> None:
    p = problem(Experiment("A", {"t": [3.0, 1.0], "x": [1, None]}))
    assert p.conditions[0].t0 == 1.0
    assert p.conditions[0].times.tolist() == [1, 3]


def test_data_before_t0_are_refused() -> None:
    (found,) = errors(Experiment("A", DATA, t0=0.5))
    assert "the data start at t = 0, before t0 = 0.5" in found


def test_all_data_before_t0_are_refused_even_with_noise() -> None:
    (found,) = errors(Experiment("A", DATA, t0=50.0), noise={"x": {"relative": 0.1}})
    assert "before t0" in found


def test_inputs_may_be_known_before_t0() -> None:
    p = Problem(
        Model(ode={"x": "-k*x + u"}, inputs={"u": "linear"}),
        {"t": [-1.0, 0, 1], "x": [None, 1, 2], "u": [1, 2, 3]},
        {"k": {}},
        {"x": 1.0},
        t0=0.0,
    )
    assert p.conditions[0].times.tolist() == [0, 1]
    assert p.conditions[0].inputs["u"].times.tolist() == [-1, 0, 1]
    assert p.warnings == ()


def test_an_input_that_does_not_cover_the_data_is_a_warning() -> None:
    p = Problem(
        Model(ode={"x": "-k*x + u"}, inputs={"u": "linear"}),
        {"t": [0.0, 1, 2, 3], "x": [1, 1, 1, 1], "u": [None, 2, 3, None]},
        {"k": {}},
        {"x": 1.0},
    )
    assert "starts at t = 1, after t0 = 0" in p.warnings[0]
    assert "ends at t = 2, but there are measurements until t = 3" in p.warnings[1]


def test_events_are_sorted_by_time_and_keep_their_order_at_one_time() -> None:
    events = [
        Event((2, 0), {"x": "x + 1"}),
        Event((1, 2), {"x": "2*x"}),
    ]
    p = problem(Experiment("A", DATA, events=events))
    assert [(t, str(e["x"])) for t, e in p.conditions[0].events] == [
        (0.0, "x + 1"), (1.0, "2*x"), (2.0, "x + 1"), (2.0, "2*x"),
    ]  # fmt: skip


def test_an_event_before_t0_is_refused() -> None:
    (found,) = errors(Experiment("A", DATA, events=[Event((-1,), {"x": 0})]))
    assert "t = -1 is before t0 = 0" in found


def test_unused_parameters_are_warnings() -> None:
    p = problem(parameters={"k": {}, "c": {}, "unused": {}})
    assert p.warnings == ("[parameters] unused: occurs in no equation",)


@pytest.mark.parametrize("z", [None, 0.5, {"guess": 0.5}])
def test_an_algebraic_variable_has_a_first_guess_at_most(z: Any) -> None:
    p = Problem(
        Model(ode={"x": "-k*x + z"}, algebraic={"z": "z - x"}),
        DATA,
        {"k": {}},
        {"x": 1.0} if z is None else {"x": 1.0, "z": z},
    )
    assert p.conditions[0].algebraic_guess == {"z": 0.0 if z is None else 0.5}
    assert list(p.conditions[0].initial) == ["x"]


@pytest.mark.parametrize("z", ["k", {"lower": 0}, Parameter(fixed=1.0)])
def test_an_algebraic_variable_is_not_estimated(z: Any) -> None:
    with pytest.raises(InputError, match="follows from the equations"):
        Problem(
            Model(ode={"x": "-k*x + z"}, algebraic={"z": "z - x"}),
            DATA,
            {"k": {}},
            {"x": 1.0, "z": z},
        )
