"""Predicted costs of steps: work counts functions, and the choice of an engine does not."""

from __future__ import annotations

import pytest

from odefit import Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.steps import (
    EXPLICIT_STAGES,
    FUNCTION,
    MIN_TAYLOR_STEPS,
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


def test_a_coarser_integration_usually_takes_fewer_steps_also_for_many_outputs() -> None:
    few, many = 10, 1000
    assert usual_steps(few) == USUAL_IMPLICIT_STEPS
    assert usual_steps(many) == 1000 * USUAL_STEPS_PER_OUTPUT
    for outputs in (few, many):
        assert usual_steps(outputs, 1e-3) == pytest.approx(0.1 * usual_steps(outputs), abs=1)
        assert usual_steps(outputs, 1e-11) == usual_steps(outputs)


@pytest.mark.parametrize("engine", ["heyoka", "runge-kutta"])
def test_steps_of_an_explicit_engine_take_the_time_of_the_implicit_integration(engine: str) -> None:
    found = costs("-k*x")
    for outputs in (1, 1000):
        steps = found.explicit_steps(engine, 50_000, outputs)
        explicit = found.beside_steps(engine, outputs) + steps * found.of_step(engine)
        implicit = found.beside_steps("bdf", outputs) + 50_000 * found.of_step("bdf")
        assert explicit == pytest.approx(implicit, rel=0.01)
    assert found.explicit_steps(engine, 0, 1_000_000) == MIN_TAYLOR_STEPS
