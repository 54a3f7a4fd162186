"""Delays in formulas, where what is delayed does not depend on its own past."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.texts import event, listed, parameter, rule, sbml, starting

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 3.0])


def simulated(text: str) -> dict[str, np.ndarray]:
    model = read_sbml(text)
    sections = model.mapping()
    sections["observables"] = {f"of_{n}": t for n, t in model.assigned.items()}
    data = {"t": TIMES} | {n: np.ones(len(TIMES)) for n in sections["observables"]}
    sections["experiment"][0]["data"] = data
    found = odefit.simulate(odefit.problem.problem_from_mapping(sections), np.zeros(0))
    return {name: found.observables[f"of_{name}"] for name in model.assigned}


def model(formula: str, *rules: str, more: str = "") -> str:
    """x' = -x from 2, y = 1 + t, and z as the formula says."""
    return sbml(
        listed("Parameters", parameter("x", 2.0, False), parameter("y", None, False),
               parameter("z", None, False), parameter("d", 1.0), parameter("w", 0.0, False))
        + more
        + listed("Rules", *(rules or (rule("rate", "x", "-x"),)),
                 rule("assignment", "y", "1 + time"), rule("assignment", "z", formula))
    )  # fmt: skip


def delayed(of: str, by: str = "d") -> str:
    return f"delay({of}, {by})"


BEFORE = np.maximum(TIMES - 1.0, 0.0)


def test_a_delayed_state_has_its_initial_value_until_the_delay_has_passed() -> None:
    assert simulated(model(delayed("x")))["z"] == pytest.approx(2 * np.exp(-BEFORE))


def test_a_delayed_function_of_the_time_goes_on_before_the_start() -> None:
    found = simulated(model(delayed("x*y")))
    assert found["z"] == pytest.approx(2 * np.exp(-BEFORE) * TIMES)


def test_a_delayed_constant_is_itself() -> None:
    found = read_sbml(model(delayed("d", "x")))
    assert found.assigned["z"] == "d"


def test_delays_of_delayed_states_add_up() -> None:
    found = simulated(
        model(delayed("w"), rule("rate", "x", "-x"), rule("rate", "w", delayed("x", "0.5")))
    )
    after = np.maximum(BEFORE - 0.5, 0.0)
    # w' is 2 for half a unit of time, and 2 exp(-(t - 1/2)) then.
    assert found["z"] == pytest.approx(2 * np.minimum(BEFORE, 0.5) + 2 * (1 - np.exp(-after)))


def test_an_initial_value_as_a_function_of_time_is_the_history_of_a_state() -> None:
    given = model(delayed("x"), more=listed("InitialAssignments", starting("x", "2 + 4*time")))
    past = np.where(TIMES < 1.0, 2 + 4 * (TIMES - 1.0), 2 * np.exp(-BEFORE))
    assert simulated(given)["z"] == pytest.approx(past)


REFUSED = {
    "the own past": (model("x", rule("rate", "x", delayed("-x"))), "depends on its own past"),
    "a delay that varies": (model(delayed("x", "y")), "is not constant"),
    "what events change": (
        model(delayed("x")).replace(
            "</model>", listed("Events", event("e", "time > 1", {"x": "5"})) + "</model>"
        ),
        "depends on 'x', which an event",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_delay_differential_equations_are_refused(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(odefit.InputError, match=message):
        read_sbml(text)
