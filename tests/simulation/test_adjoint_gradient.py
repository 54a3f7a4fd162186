"""The gradient of the cost by the adjoint is that of the sensitivities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation import Failure
from odefit.simulation.adjoint_gradient import AdjointGradient
from odefit.simulation.engines.engine_choice import UNDECIDED, UnitChoices
from odefit.simulation.engines.registry import TAYLOR, EngineName
from odefit.simulation.evaluation import CostGradient
from tests.simulation.engines.bdf.test_engine import random_network
from tests.simulation.numerics import Array, differences, evaluated
from tests.simulation.zoo import NOISE, ZOO, Case

CASES: dict[str, Callable[[], Case]] = ZOO | {f"noise: {k}": v for k, v in NOISE.items()}
WITHOUT = {"nonlinear algebra"}


def by_adjoint(forward: ForwardMap, vector: Array) -> CostGradient:
    adjoint = AdjointGradient(forward.problem, forward.field, forward.engines, forward.assemble)
    found = adjoint(vector, UNDECIDED)
    assert found is not None
    assert found.adjoint
    return found


def agree(forward: ForwardMap, vector: Array, tolerance: float, absolute: float = 0.0) -> None:
    """Gradients by both ways agree, relative to what the residuals add to them at most."""
    evaluation = evaluated(forward, vector)
    found = by_adjoint(forward, vector)
    scaled = evaluation.jacobian * np.where(vector == 0.0, 1.0, np.abs(vector))
    size = np.abs(scaled * evaluation.residuals[:, None]).sum(axis=0).max()
    unit = np.where(vector == 0.0, 1.0, np.abs(vector))
    error = (found.gradient - evaluation.jacobian.T @ evaluation.residuals) * unit
    assert np.abs(error).max() <= tolerance * size + absolute
    assert found.cost == pytest.approx(evaluation.cost, rel=1e-6, abs=1e-9)
    assert found.objective == pytest.approx(evaluation.objective, rel=1e-6)
    if evaluation.log_likelihood is not None:
        assert found.log_likelihood == pytest.approx(evaluation.log_likelihood, rel=1e-6)


@pytest.mark.parametrize("name", sorted(CASES.keys() - WITHOUT))
def test_the_adjoint_gradient_equals_that_of_sensitivities_for_every_feature(name: str) -> None:
    problem, vector = CASES[name]()
    agree(ForwardMap(problem, "bdf", 1e-10), vector, 1e-6)


def tree() -> Case:
    """Conditions that share a run before they part, by doses that depend on states and unknowns."""
    ode = {"a": "-k*a*s + c*b", "b": "k*a*s - (c + d)*b"}
    model = Model(ode=ode, observables={"y": "g*(a + b^2) + s"}, constants={"s": 1.0, "f": 0.5})

    def experiment(name: str, dose: str, switch: str, values: list[float]) -> Experiment:
        data = {"t": [0.0, 1.0, 2.0, 4.0][-len(values) :], "y": values}
        events = [
            Event((1.0,), {"a": "a + f*d + b*t"}),
            Event((2.0,), {"b": dose, "s": switch}),
            Event((2.0,), {"a": "a*s + 0.1"}),
        ]
        return Experiment(name, data, t0=0.0, constants={"f": "k*d"}, events=events)

    problem = Problem(
        model,
        parameters={"k": {}, "c": {}, "d": {}, "g": {}},
        initial={"a": "2*k + c", "b": {}},
        experiments=[
            experiment("one", "b + d", "1 + d*a", [1.0, 2.0, 1.5, 0.5]),
            experiment("two", "b*c", "0.3", [1.0, 2.0, 1.5, 0.7]),
            experiment("three", "0", "s*g", [0.4]),
        ],
    )
    return problem, problem.vector({"k": 0.7, "c": 0.3, "d": 1.2, "g": 0.8, "b": 0.4})


def test_the_adjoint_passes_events_and_shared_segments() -> None:
    problem, vector = tree()
    agree(ForwardMap(problem, "bdf", 1e-10), vector, 1e-7)
    found = by_adjoint(ForwardMap(problem, "bdf", 1e-11), vector).gradient
    forward = ForwardMap(problem, "bdf", 1e-11)
    expected = differences(forward.cost, vector, 1e-3)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-8)


def stiff_chain(n: int, noise: Mapping[str, Any] | None = None) -> Case:
    """First-order reactions with rates from 1 to 1e3."""
    unknowns = {f"k{i}": {"lower": 0.1, "upper": 1e4} for i in range(n)}
    ode = {f"x{i}": f"{f'k{i - 1}*x{i - 1}' if i else '1'} - k{i}*x{i}" for i in range(n)}
    data = {"t": [0.1, 1.0, 5.0], f"x{n - 1}": [0.1, 0.2, 0.3], "x0": [1.0, 0.5, 0.2]}
    initial = {f"x{i}": 0.5 for i in range(n)}
    problem = Problem(Model(ode=ode), data, unknowns, initial, noise=noise or {}, t0=0.0)
    return problem, np.logspace(0, 3, n)[np.random.default_rng(0).permutation(n)]


@pytest.mark.parametrize("seed", range(20))
def test_the_adjoint_gradient_equals_that_of_sensitivities_for_random_networks(seed: int) -> None:
    """States that have all but vanished are below the absolute tolerance: up to 1e-10 of 100."""
    problem, vector = random_network(seed)
    agree(ForwardMap(problem, "bdf"), vector, 1e-6, 1e-8)


@pytest.mark.parametrize("n", [4, 20])
def test_the_forward_map_finds_the_gradient_of_a_stiff_problem_by_it(n: int) -> None:
    problem, vector = stiff_chain(n)
    forward = ForwardMap(problem, "bdf")
    found = forward.gradient(vector)
    assert isinstance(found, CostGradient)
    evaluation = evaluated(forward, vector)
    expected = evaluation.jacobian.T @ evaluation.residuals
    assert np.allclose(found.gradient * vector, expected * vector, rtol=1e-4, atol=1e-8)
    assert found.adjoint == (n == 20)


@pytest.mark.parametrize("engine", ["heyoka", "casadi", "auto"])
def test_other_engines_and_problems_that_are_not_stiff_have_sensitivities(
    engine: EngineName,
) -> None:
    problem, vector = stiff_chain(10)
    vector = np.linspace(0.5, 1.0, 10)
    forward = ForwardMap(problem, engine)
    found = forward.gradient(vector)
    assert isinstance(found, CostGradient)
    # Without heyoka the implicit engine serves here, and it has an adjoint.
    assert found.adjoint == (engine == "auto" and bool(TAYLOR.problem))
    evaluation = evaluated(forward, vector)
    assert np.allclose(found.gradient, evaluation.jacobian.T @ evaluation.residuals, rtol=1e-6)


def test_models_too_large_for_the_taylor_method_have_it_though_they_are_not_stiff() -> None:
    problem, _ = stiff_chain(80)
    vector = np.linspace(0.5, 1.0, 80)
    forward = ForwardMap(problem)
    found = forward.gradient(vector)
    assert isinstance(found, CostGradient)
    assert found.adjoint
    evaluation = evaluated(forward, vector)
    expected = evaluation.jacobian.T @ evaluation.residuals
    assert np.allclose(found.gradient, expected, rtol=1e-4, atol=1e-6)


def test_conditions_that_are_mostly_stiff_have_it() -> None:
    n = 12
    ode = {f"x{i}": f"{f'c*k{i - 1}*x{i - 1}' if i else '1'} - c*k{i}*x{i}" for i in range(n)}
    model = Model(ode=ode, observables={"y": f"x{n - 1}"}, constants={"c": 1.0})
    data = {"t": np.linspace(1.0, 5.0, 9), "y": np.ones(9)}
    experiments = [
        Experiment(f"e{k}", data, t0=0.0, constants={"c": c}) for k, c in enumerate((1, 1e3, 2e3))
    ]
    unknowns: dict[str, dict[str, float]] = {f"k{i}": {} for i in range(n)}
    initial = {f"x{i}": 0.5 for i in range(n)}
    forward = ForwardMap(Problem(model, None, unknowns, initial, experiments=experiments))
    vector = np.linspace(0.5, 1.5, n)
    choice = evaluated(forward, vector).choice
    assert isinstance(choice, UnitChoices)
    assert [unit.stiff for unit in choice.units] == [False, True, True]
    found = forward.gradient(vector, choice)
    assert isinstance(found, CostGradient)
    assert found.adjoint
    agree(forward, vector, 1e-6, 1e-9)


def test_conditions_may_begin_at_a_steady_state() -> None:
    """One with the total of the initial values, which are unknown; an event at the start acts."""
    n = 6
    ode = {
        f"x{i}": f"r{i}*(1 + u)*x{(i + 1) % n} - (r{i - 1 if i else n - 1} + d*u)*x{i}"
        f" - q{i}*x{i} + q{i - 1 if i else n - 1}*x{i - 1 if i else n - 1}"
        for i in range(n)
    }
    model = Model(ode=ode, observables={"y": "x1 + x3", "z": "x5"}, constants={"u": 0.0})
    data = {"t": [0.0, 0.2, 0.5, 2.0], "y": np.ones(4), "z": [0.5, 0.6, 0.4, 0.3]}
    event = Event((0.0,), {"u": "d", "x2": "x2 + d"})
    experiments = [
        Experiment("rest", data, t0=0.0, steady_state=True, events=[event]),
        Experiment("start", data, t0=0.0, events=[event]),
    ]
    unknowns: dict[str, dict[str, float]] = {f"{k}{i}": {} for k in "rq" for i in range(n)}
    initial: dict[str, Any] = {f"x{i}": "a" if i == 1 else 0.5 for i in range(n)}
    problem = Problem(model, None, unknowns | {"d": {}, "a": {}}, initial, experiments=experiments)
    vector = np.random.default_rng(3).uniform(0.5, 1.5, len(problem.keys))
    forward = ForwardMap(problem, "bdf", 1e-10)
    agree(forward, vector, 1e-7)
    found = forward.gradient(vector)
    assert isinstance(found, CostGradient)
    assert found.adjoint
    expected = differences(forward.cost, vector, 1e-3)
    assert np.allclose(found.gradient, expected, rtol=1e-5, atol=1e-7)


def test_a_failure_is_that_of_the_evaluation() -> None:
    ode = {"x": "(a + b + c + d + e + f + g + h + i + j + k)*x^2"}
    unknowns: dict[str, dict[str, float]] = {name: {} for name in "abcdefghijk"}
    problem = Problem(Model(ode=ode), {"t": [1.0], "x": [1.0]}, unknowns, {"x": 1.0}, t0=0.0)
    found = ForwardMap(problem, "bdf").gradient(np.ones(11))
    assert isinstance(found, Failure)


def test_a_gradient_by_sensitivities_is_one_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only before the first evaluation is it unknown whether the problem is stiff."""
    pytest.importorskip("heyoka")
    problem, _ = stiff_chain(12)
    vector = np.linspace(0.5, 1.0, 12)
    forward = ForwardMap(problem)
    assert isinstance(forward.gradient(vector), CostGradient)
    monkeypatch.setattr(forward, "evaluate_cost", None)  # which would raise
    found = forward.gradient(vector)
    assert isinstance(found, CostGradient)
    assert not found.adjoint


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_later_gradients_are_the_same_where_segments_are_integrated_twice(start: float) -> None:
    """States that begin at zero and stay far below their assumed sizes are integrated again."""
    n = 30
    ode = {f"x{i}": f"{f'k{i - 1}*x{i - 1}' if i else '0'} - k{i}*x{i}" for i in range(n)}
    data = {"t": np.linspace(0.1, 0.5, 5), "x0": np.ones(5), "x9": np.zeros(5)}
    initial = {f"x{i}": start if i else 1.0 for i in range(n)}
    unknowns: dict[str, dict[str, float]] = {f"k{i}": {} for i in range(n)}
    forward = ForwardMap(Problem(Model(ode=ode), data, unknowns, initial, t0=0.0), "bdf")
    vector = np.linspace(0.5, 1.5, n)
    first, *others = [by_adjoint(forward, vector) for _ in range(3)]
    for other in others:
        assert other.cost == first.cost
        assert np.array_equal(other.gradient, first.gradient)
    agree(forward, vector, 1e-6, 1e-9)
