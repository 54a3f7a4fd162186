"""Predicted costs of steps, which count functions."""

from __future__ import annotations

import pytest

from odefit import Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.steps import (
    EXPLICIT_STAGES,
    FUNCTION,
    USUAL_IMPLICIT_STEPS,
    USUAL_STEPS_PER_OUTPUT,
    StepCosts,
    usual_steps,
)


def costs(rate: str) -> StepCosts:
    model = Model(ode={"x": rate}, observables={"y": "x"})
    data = {"t": [0.0, 1.0], "y": [1.0, 0.5]}
    problem = Problem(model, data, {"k": {"lower": 0.1, "upper": 1.0}}, {"x": 1.0})
    return StepCosts.of(ForwardMap(problem).field, 1)


@pytest.mark.parametrize(
    ("engine", "stages"), [("bdf", 1), ("runge-kutta", EXPLICIT_STAGES), ("heyoka", 0)]
)
def test_functions_count_as_work(engine: str, stages: int) -> None:
    """A sum of 1,000 sines took 45 us a step, of which 12 were counted."""
    plain = costs(" + ".join(f"({i}*k*x)" for i in range(1, 21)))
    sines = costs(" + ".join(f"sin({i}*k*x)" for i in range(1, 21)))
    assert plain.work_of_step(engine) == plain.of_step(engine)
    beside = sines.work_of_step(engine) - sines.of_step(engine)
    assert beside == pytest.approx(20 * stages * FUNCTION)


def test_powers_count_as_two_functions_unless_the_exponent_is_a_number() -> None:
    assert costs("-k*x^2").functions == costs("-x^-1").functions == 0
    assert costs("-x^k").functions == 2
    assert costs("-x^k + sin(x^(k + 1))").functions == 5


def test_many_outputs_take_more_steps() -> None:
    assert usual_steps(10) == USUAL_IMPLICIT_STEPS
    assert usual_steps(1000) == 1000 * USUAL_STEPS_PER_OUTPUT
