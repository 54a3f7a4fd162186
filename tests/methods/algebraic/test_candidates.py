"""Solutions of the polynomial system and vectors of unknowns, there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.methods.algebraic.candidates import (
    StateTransport,
    candidate,
    imaginary_part,
    solution_of,
)
from odefit.methods.algebraic.indistinguishable import indistinguishable_candidates
from odefit.methods.algebraic.preparation import prepare
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from tests.methods.algebraic.models import (
    LOGISTIC,
    TIMES,
    integrated,
    logistic_rhs,
    prey,
    prey_rhs,
)


def truth_of(name: str) -> tuple[Problem, Array]:
    problem, reference = library.load(name), library.reference(name)
    return problem, problem.vector({**reference.parameters, **reference.initial})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("rational-seir", marks=pytest.mark.slow),
        pytest.param("rational-biohydrogenation", marks=pytest.mark.slow),
        "rational-fitzhugh-nagumo",
    ],
)
@pytest.mark.parametrize("time", [-0.5, 0.1, 0.5])
def test_a_vector_comes_back_from_its_solution(name: str, time: float) -> None:
    problem, vector = truth_of(name)
    preparation = prepare(problem)
    values = solution_of(preparation, vector, (time,))
    assert values is not None
    found = candidate(preparation, values, (time,), "here")
    assert found is not None
    assert found.vector == pytest.approx(vector, rel=1e-10)
    assert found.imaginary == 0.0
    assert found.origin == "here"


def test_a_solution_solves_the_equations() -> None:
    """States at the time are those of an integration, and outputs its derivatives."""
    problem = prey()
    preparation = prepare(problem)
    vector = problem.vector({"a": 0.7, "b": 0.9, "c": 0.5, "r": 1.2, "w": 0.4})
    values = solution_of(preparation, vector, (3.0,))
    assert values is not None
    r, w = integrated(prey_rhs, [1.2, 0.4], np.array([0.0, 3.0]))[:, -1]
    place = dict(zip(preparation.system.names, values.real, strict=True))
    (expansion,) = preparation.system.expansions
    assert place[expansion.states["r"]] == pytest.approx(r, rel=1e-11)
    assert place[expansion.states["w"]] == pytest.approx(w, rel=1e-11)


def test_a_trajectory_that_ends_on_the_way_has_no_solution() -> None:
    """x' = k x^2 from 1: x = 1/(1 - k t) ends at t = 1/k."""
    model = Model(ode={"x": "k*x^2 + j"}, observables={"y": "x"})
    problem = Problem(model, {"t": TIMES, "y": TIMES}, {"k": {}, "j": {}}, {"x": {}})
    preparation = prepare(problem)
    vector = problem.vector({"k": 0.5, "j": 1e-9, "x": 1.0})
    assert solution_of(preparation, vector, (1.5,)) is not None
    assert solution_of(preparation, vector, (2.5,)) is None


def test_imaginary_parts_are_relative() -> None:
    assert imaginary_part(np.array([1e6 + 1j, 2.0 + 0j])) == pytest.approx(1e-6)
    assert imaginary_part(np.array([3.0 + 4.0j])) == pytest.approx(0.8)
    assert imaginary_part(np.zeros(0, dtype=complex)) == 0.0


def test_the_real_parts_of_a_complex_solution_are_the_vector() -> None:
    problem = prey()
    preparation = prepare(problem)
    vector = problem.vector({"a": 0.7, "b": 0.9, "c": 0.5, "r": 1.2, "w": 0.4})
    values = solution_of(preparation, vector, (0.0,))
    assert values is not None
    values[preparation.square.solved[0]] += 0.01j
    found = candidate(preparation, values, (0.0,), "")
    assert found is not None
    assert found.vector == pytest.approx(vector, rel=1e-12)
    assert 1e-3 < found.imaginary < 0.1


# Events -----------------------------------------------------------------------------------------


def with_events(*events: Event) -> tuple[DifferentiatedSystem, Problem, Array]:
    experiment = Experiment("run", {"t": TIMES, "y": TIMES}, events=events)
    parameters: dict[str, Any] = {"k": {}, "j": {}, "d": {}}
    model = Model(ode=dict(LOGISTIC.ode), observables={"y": "x + 0*d"})
    problem = Problem(model, None, parameters, {"x": {}}, experiments=[experiment])
    return (
        DifferentiatedSystem(problem, free_states=True),
        problem,
        problem.vector({"k": 0.3, "j": 0.2, "d": 1.5, "x": 1}),
    )


@pytest.mark.parametrize(
    ("assign", "function"),
    [
        ("x + 1.5", lambda z: z + 1.5),
        ("x + d", lambda z: z + 1.5),
        ("x/2 + t", lambda z: z / 2 + 1.0),
        ("x^2 + x", lambda z: z**2 + z),
    ],
)
def test_events_are_crossed_both_ways(assign: str, function: object) -> None:
    assert callable(function)
    system, _, vector = with_events(Event((1.0,), {"x": assign}))
    values = np.zeros(len(system.names), dtype=complex)
    for name, value in {"k": 0.3, "j": 0.2, "d": 1.5}.items():
        if name in system.names:
            values[system.names.index(name)] = value
    state = system.names.index(system.expansions[0].states["x"])
    values[state] = 1.0
    there = StateTransport(system, 0, vector).from_start(values, 3.0)
    assert there is not None
    expected = integrated(logistic_rhs, [1.0], np.array([0.0, 3.0]), {1.0: function})[0, -1]
    assert there[state].real == pytest.approx(expected, rel=1e-11)
    again = StateTransport(system, 0, vector).to_start(there, 3.0)
    assert again is not None
    assert again[state].real == pytest.approx(1.0, rel=1e-10)


def test_at_its_own_time_an_event_has_not_happened_yet_but_at_t0() -> None:
    """As a measurement sees it."""
    for time, expected in ((1.0, 1.0), (0.0, 2.0)):
        system, _, vector = with_events(Event((time,), {"x": "x + 1"}))
        values = np.zeros(len(system.names), dtype=complex)
        state = system.names.index(system.expansions[0].states["x"])
        values[state] = 1.0  # with k = j = 0, nothing moves it
        there = StateTransport(system, 0, vector).from_start(values, time)
        assert there is not None
        assert there[state].real == expected


def test_simultaneous_assignments_are_undone_together() -> None:
    """An exchange of two states."""
    model = Model(ode={"p": "-k*p", "q": "-2*k*q"}, observables={"y": "p", "z": "q"})
    event = Event((1.0,), {"p": "q", "q": "p"})
    data = {"t": TIMES, "y": TIMES, "z": TIMES}
    experiment = Experiment("run", data, events=[event])
    problem = Problem(model, None, {"k": {}}, {"p": {}, "q": {}}, experiments=[experiment])
    system = DifferentiatedSystem(problem, free_states=True)
    vector = problem.vector({"k": 0.5, "p": 1.0, "q": 3.0})
    values = np.zeros(len(system.names), dtype=complex)
    for name, value in {"k": 0.5, "p": 1.0, "q": 3.0}.items():
        values[system.names.index(system.expansions[0].states.get(name, name))] = value
    there = StateTransport(system, 0, vector).from_start(values, 2.0)
    assert there is not None
    p, q = (there[system.names.index(system.expansions[0].states[n])].real for n in "pq")
    assert p == pytest.approx(3.0 * np.exp(-1.0) * np.exp(-0.5), rel=1e-12)
    assert q == pytest.approx(1.0 * np.exp(-0.5) * np.exp(-1.0), rel=1e-12)
    again = StateTransport(system, 0, vector).to_start(there, 2.0)
    assert again is not None
    assert again == pytest.approx(values, rel=1e-12)


# Indistinguishable solutions --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("rational-seir", 2, marks=pytest.mark.slow),
        ("rational-lotka-volterra", 1),
    ],
)
def test_from_one_solution_all_are_found(name: str, count: int) -> None:
    """Without any data: the derivatives are the model's own."""
    problem, vector = truth_of(name)
    found = indistinguishable_candidates(prepare(problem), vector, (0.0,), np.random.default_rng(0))
    assert found is not None
    assert found.completeness.found == found.completeness.possible == count
    assert len(found.candidates) == count - 1
    for other in found.candidates:
        again = indistinguishable_candidates(
            prepare(problem), other.vector, (0.0,), np.random.default_rng(1)
        )
        assert again is not None
        assert again.candidates[0].vector == pytest.approx(vector, rel=1e-5)
