"""Predicted costs of steps: work counts functions, and the choice of an engine does not."""

from __future__ import annotations

import pytest

from odefit import Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.steps import EXPLICIT_STAGES, FUNCTION, StepCosts


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
