"""Events of SBML happen when and as SBML says, through problem files."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.texts import event, listed, parameter, rule, sbml

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


def test_an_event_at_a_time_that_a_comparison_tells() -> None:
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
