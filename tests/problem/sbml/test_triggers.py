"""Events of SBML happen when and as SBML says, through problem files."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.texts import (
    compartment,
    event,
    listed,
    math,
    parameter,
    rule,
    sbml,
    species,
)

TIMES = [0.0, 0.5, 1.5, 2.5]


def grown(*events: str, initial: float = 1.0) -> list[float]:
    """Values of x at TIMES, where x' = k and events change x, k and n."""
    text = sbml(
        listed("Parameters", parameter("x", initial, False), parameter("k", 1.0, False),
               parameter("n", 0.0, False))
        + listed("Rules", rule("rate", "x", "k"))
        + listed("Events", *events)
    )  # fmt: skip
    sections = read_sbml(text).mapping()
    [experiment] = sections["experiment"]
    experiment["data"] = {"t": TIMES, "x": [1.0] * len(TIMES)}
    problem = odefit.problem.problem_from_mapping(sections)
    found = odefit.simulate(problem, np.zeros(0), np.array(TIMES))
    assert not isinstance(found, odefit.Failure)
    return list(found.states["x"])


def test_an_event_may_happen_at_the_time_of_a_comparison() -> None:
    assert grown(event("e", "time >= 1", {"x": "10*x"})) == pytest.approx([1.0, 1.5, 20.5, 21.5])


def test_an_event_at_the_time_at_which_a_state_reaches_a_value() -> None:
    found = grown(event("e", "x > 3", {"x": "0", "k": "2*k"}))
    assert found == pytest.approx([1.0, 1.5, 2.5, 1.0], rel=1e-6)


def test_a_trigger_that_is_true_at_the_start_counts_only_if_it_was_false_before() -> None:
    assert grown(event("e", "x > 0.5", {"x": "7"}, initial=True))[1] == pytest.approx(1.5)
    assert grown(event("e", "x > 0.5", {"x": "7"}, initial=False))[1] == pytest.approx(7.5)


def test_events_of_one_trigger_see_the_values_before_all_of_them() -> None:
    exchanged = grown(event("e", "time >= 1", {"x": "k + 4"}), event("f", "time >= 1", {"k": "x"}))
    assert exchanged == pytest.approx([1.0, 1.5, 6.0, 8.0])


def test_assignments_of_one_event_are_simultaneous() -> None:
    exchanged = grown(event("e", "time >= 1", {"x": "k + 4", "k": "x"}))
    assert exchanged == pytest.approx([1.0, 1.5, 6.0, 8.0])


def seen(text: str, at: float) -> dict[str, float]:
    """Values of states and of constants that events change, at a time."""
    model = read_sbml(text)
    sections = model.mapping()
    [experiment] = sections["experiment"]
    names = {n: n for event in model.events for n in event.assign} | {n: n for n in model.states}
    sections["observables"] = {f"{n}_seen": n for n in names}
    experiment["data"] = {"t": [at]} | {f"{n}_seen": [1.0] for n in names}
    problem = odefit.problem.problem_from_mapping(sections)
    found = odefit.simulate(problem, np.zeros(0)).observables
    return {name: float(found[f"{name}_seen"][0]) for name in names}


def test_events_of_one_trigger_that_differ_in_persistence_or_priority_are_several() -> None:
    # A valve closes when the level passes 2; an alarm that is not persistent would open a bypass.
    when = "(level > 2) && (valve > 0.5)"
    text = sbml(
        listed("Parameters", parameter("level", 0.0, False), parameter("valve", 1.0, False),
               parameter("bypass", 0.0, False), parameter("log1", 0.0, False))
        + listed("Rules", rule("rate", "level", "1"))
        + listed(
            "Events",
            event("alarm", when, {"bypass": "1"}, more=priority("5")).replace(
                'persistent="true"', 'persistent="false"'
            ),
            event("close", when, {"valve": "0"}, more=priority("10")),
            event("record", when, {"log1": "log1 + 1"}, more=priority("1")),
        )
    )  # fmt: skip
    found = seen(text, 3.0)
    assert (found["valve"], found["bypass"], found["log1"]) == (0.0, 0.0, 1.0)


def priority(formula: str) -> str:
    return f"<priority>{math(formula)}</priority>"


def test_a_delay_is_one_of_the_problem_with_values_of_the_trigger_if_sbml_says_so() -> None:
    late = event("e", "x > 1", {"n": "x"}, more=f"<delay>{math('1 + x')}</delay>")
    parameters = listed("Parameters", parameter("x", 0.0, False), parameter("n", 0.0, False))
    text = sbml(parameters + listed("Rules", rule("rate", "x", "1")) + listed("Events", late))
    assert seen(text, 2.9)["n"] == 0.0
    assert seen(text, 3.1)["n"] == pytest.approx(1.0)
    then = text.replace('useValuesFromTriggerTime="true"', 'useValuesFromTriggerTime="false"')
    assert seen(then, 3.1)["n"] == pytest.approx(3.0)


def test_a_concentration_that_an_event_assigns_beside_the_size_is_one_in_the_size_before() -> None:
    text = sbml(
        listed("Compartments", compartment("c", 0.5, constant=False))
        + listed("Species", species("S", 2.0, boundary=True), species("Q", 3.0))
        + listed("Events", event("e", "time >= 0.45", {"c": "0.2", "S": "0.2"}))
    )
    found = seen(text, 1.0)
    assert (found["S"], found["Q"]) == pytest.approx((0.5, 7.5))


def test_a_value_at_the_time_of_an_event_is_that_after_it_also_at_the_start() -> None:
    assert grown(event("e", "x > 0.5", {"x": "7"}, initial=False))[0] == 7.0
    assert grown(event("e", "time >= 1.5", {"x": "7"}))[2] == 7.0


def test_elements_without_formula_are_left_out_and_reported() -> None:
    text = sbml(
        listed("Parameters", parameter("x", 3.0, False), parameter("y", 2.0, False))
        + listed("InitialAssignments", '<initialAssignment symbol="x"/>')
        + listed("Rules", '<rateRule variable="x"/>', "<algebraicRule/>")
        + listed("Events", event("e", "time > 1", {"y": "5"}).replace(math("time > 1"), ""))
    )
    model = read_sbml(text)
    assert dict(model.constants) == {"x": 3.0, "y": 2.0}
    assert sum("has no formula" in s or "has no trigger" in s for s in model.translated) == 4


def test_an_event_cannot_depend_on_an_algebraic_variable() -> None:
    text = sbml(
        listed("Parameters", parameter("x", 0.0, False), parameter("y", 0.0, False))
        + listed("Rules", rule("rate", "x", "1"), rule("algebraic", "", "y^3 + y - x"))
        + listed("Events", event("e", "y > 1", {"x": "0"}))
    )
    with pytest.raises(odefit.InputError, match=r"event 'e' .*depends on 'y'"):
        read_sbml(text)
