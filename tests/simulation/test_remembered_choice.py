"""A forward map begins with the engine that served its last evaluation."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Model, Problem
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.evaluation import CostGradient
from tests.simulation.numerics import Array, evaluated

COUNT = 11
EVALUATIONS = {"evaluate", "cost", "evaluate_cost", "gradient"}


def stiff() -> Problem:
    """Eleven decays, the fastest of which a million times as fast as the slowest, in a chain."""
    ode = {"x1": "-k1*x1"} | {f"x{i}": f"x{i - 1} - k{i}*x{i}" for i in range(2, COUNT + 1)}
    observables = {"y": "x1 + x6", "z": f"x{COUNT}"}
    data = {"t": [1.0, 5.0, 20.0], "y": [0.9, 0.5, 0.2], "z": [0.1, 0.2, 0.1]}
    parameters = {f"k{i}": {"lower": 1e-6, "upper": 1e6} for i in range(1, COUNT + 1)}
    initial = {f"x{i}": 1.0 for i in range(1, COUNT + 1)}
    return Problem(Model(ode=ode, observables=observables), data, parameters, initial, t0=0.0)


VECTOR = np.geomspace(0.1, 1e5, COUNT)


def test_the_gradient_of_a_stiff_problem_is_by_the_adjoint_without_a_choice() -> None:
    forward = ForwardMap(stiff())
    evaluation = evaluated(forward, VECTOR)
    expected = (evaluation.residuals @ evaluation.jacobian) * VECTOR
    for found in (ForwardMap(stiff()).gradient(VECTOR), forward.gradient(VECTOR)):
        assert isinstance(found, CostGradient)
        assert found.adjoint
        error = np.abs(found.gradient * VECTOR - expected).max()
        assert error <= 1e-5 * np.abs(expected).max()


def test_the_choice_of_an_evaluation_serves_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[EngineChoice] = []
    forward = ForwardMap(stiff())
    integrate = forward.trajectories

    def noting(vector: Array, choice: EngineChoice, *, sensitivities: bool) -> Any:
        begun.append(choice)
        return integrate(vector, choice, sensitivities=sensitivities)

    monkeypatch.setattr(forward, "trajectories", noting)
    first = forward.evaluate(VECTOR)
    forward.cost(VECTOR)
    forward.cost(VECTOR, UNDECIDED)
    assert begun == [UNDECIDED, first.choice, UNDECIDED]
    assert first.choice.stiff


def test_values_do_not_depend_on_what_was_evaluated_before() -> None:
    forward, mild = ForwardMap(stiff()), np.linspace(0.1, 0.5, COUNT)
    first = forward.cost(mild)
    forward.cost(VECTOR)
    assert forward.cost(mild) == pytest.approx(first, rel=1e-6)
    assert forward.cost(mild, UNDECIDED) == ForwardMap(stiff()).cost(mild, UNDECIDED)


@pytest.mark.slow
def test_odefit_itself_states_the_choice_of_each_evaluation() -> None:
    """The results of a fit would else depend on the order of its evaluations."""
    without = []
    root = Path(odefit.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            of = ast.unparse(node.func.value)
            known = re.search(r"(^|[._])forward$|^ForwardMap\(", of)
            if known and node.func.attr in EVALUATIONS and len(node.args) == 1:
                without.append(f"{path.relative_to(root)}:{node.lineno}")
    assert not without
