"""Differential-algebraic equations of index 1, against explicit and exact solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation import Failure
from tests.simulation.numerics import Array, by_unknown, differences, evaluated, integrated

TIMES = np.array([0.0, 0.3, 1.0, 2.0])


def with_algebra(
    ode: dict[str, str], algebraic: dict[str, str], initial: dict[str, Any], **more: Any
) -> Problem:
    observables = more.pop("observables", {name: name for name in (*ode, *algebraic)})
    data = {"t": TIMES, **{name: np.ones(len(TIMES)) for name in observables}}
    model = Model(ode=ode, algebraic=algebraic, observables=observables)
    parameters: dict[str, Any] = {
        name: {} for name in [*sorted(model.parameters), *more.pop("extra", ())]
    }
    events = more.pop("events", ())
    experiment = Experiment("run", data, t0=0.0, events=events)
    return Problem(model, None, parameters, initial, experiments=[experiment], **more)


def ordinary(ode: dict[str, str], initial: dict[str, Any], observables: dict[str, str]) -> Problem:
    """The same with the algebraic variables substituted by hand."""
    data = {"t": TIMES, **{name: np.ones(len(TIMES)) for name in observables}}
    model = Model(ode=ode, observables=observables)
    return Problem(model, data, {name: {} for name in sorted(model.parameters)}, initial)


def test_linear_equations_agree_with_the_substituted_ode() -> None:
    """They are eliminated: nothing is left for a solver of algebraic equations."""
    problem = with_algebra(
        {"x": "-k*z", "y": "k*z - w"},
        {"z": "2*z - x + w", "w": "3*w - y - a"},
        {"x": {}, "y": 0.5},
    )
    values = {"k": 0.7, "a": 0.2, "x": 2.0}
    forward = ForwardMap(problem)
    assert forward.field.algebraic == ()
    w, z = "((y + a)/3)", "((x - (y + a)/3)/2)"
    plain = ordinary(
        {"x": f"-k*{z}", "y": f"k*{z} - {w}"},
        {"x": {}, "y": 0.5},
        {"x1": "x", "y1": "y", "z": z, "w": w},
    )
    mine = evaluated(forward, problem.vector(values))
    other = evaluated(ForwardMap(plain), plain.vector(values))
    order = [plain.keys.index(key) for key in problem.keys]
    assert mine.residuals == pytest.approx(other.residuals, rel=1e-9, abs=1e-9)
    assert mine.jacobian == pytest.approx(other.jacobian[:, order], rel=1e-8, abs=1e-9)


def torricelli(guess: float) -> Problem:
    """x' = -k z with z^2 = x: z = sqrt(x0) - k t/2 exactly."""
    return with_algebra({"x": "-k*z"}, {"z": "z^2 - x"}, {"x": {}, "z": guess})


@pytest.mark.parametrize("guess", [1.0, 2.0, 40.0, 1e-3])
def test_a_nonlinear_equation_has_the_exact_solution(guess: float) -> None:
    """From a consistent guess, and from others."""
    problem = torricelli(guess)
    k, x0 = 0.5, 4.0
    found = integrated(ForwardMap(problem), problem.vector({"k": k, "x": x0}))
    root = np.sqrt(x0) - k * TIMES / 2
    assert found.algebraic[:, 0] == pytest.approx(root, rel=1e-6)
    assert found.states[:, 0] == pytest.approx(root**2, rel=1e-6)
    by_k, by_x0 = -TIMES / 2, np.full(4, 0.5 / np.sqrt(x0))
    order = [problem.keys.index("k"), problem.keys.index("x")]
    assert found.algebraic_sensitivities[:, 0][:, order] == pytest.approx(
        np.column_stack([by_k, by_x0]), rel=1e-6, abs=1e-7
    )
    assert by_unknown(found, 2)[:, 0][:, order] == pytest.approx(
        2 * root[:, None] * np.column_stack([by_k, by_x0]), rel=1e-6, abs=1e-7
    )


def test_the_guess_chooses_the_branch() -> None:
    problem = torricelli(-1.0)
    found = integrated(ForwardMap(problem), problem.vector({"k": 0.5, "x": 4.0}))
    assert found.algebraic[:, 0] == pytest.approx(-2.0 - 0.25 * TIMES, rel=1e-6)


def test_nonlinear_equations_agree_with_finite_differences() -> None:
    """Two coupled equations, parameters in them, and time."""
    problem = with_algebra(
        {"x": "-k*z", "y": "w - y"},
        {"z": "z + a*z^3 - x - 0.1*w", "w": "exp(w) - 1 - b*y*(1 + 0.2*sin(t)) - z"},
        {"x": {}, "y": 0.5},
        observables={"p": "z*w", "q": "x + s*y"},
    )
    forward = ForwardMap(problem)
    assert forward.field.algebraic == ("z", "w")
    vector = problem.vector({"k": 0.7, "a": 0.4, "b": 1.3, "s": 2.0, "x": 1.5})
    expected = differences(lambda v: evaluated(forward, v).residuals, vector, 1e-3)
    assert evaluated(forward, vector).jacobian == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_after_an_event_the_algebraic_variables_are_consistent_again() -> None:
    event = Event((1.0,), {"x": "x + dose"})
    problem = with_algebra(
        {"x": "-k*z"}, {"z": "z^2 - x"}, {"x": {}, "z": 1.0}, events=[event], extra=["dose"]
    )
    vector = problem.vector({"k": 0.5, "x": 4.0, "dose": 3.0})

    def exact(v: Array) -> Array:
        k, dose, x0 = v
        at_one = np.sqrt(x0) - k / 2
        after = np.sqrt(at_one**2 + dose)
        first = np.sqrt(x0) - k * TIMES / 2
        return np.asarray(np.where(TIMES <= 1, first, after - k * (TIMES - 1) / 2))

    found = integrated(ForwardMap(problem), vector)
    assert found.algebraic[:, 0] == pytest.approx(exact(vector), rel=1e-6)
    expected = differences(exact, vector, 1e-3)
    mine = found.algebraic_sensitivities[:, 0]
    assert mine == pytest.approx(expected[:, list(found.unknowns)], rel=1e-5, abs=1e-6)


def failure(problem: Problem, values: dict[str, float]) -> Failure:
    found = ForwardMap(problem).evaluate(problem.vector(values))
    assert isinstance(found, Failure), found
    return found


def test_equations_without_a_solution_are_a_failure_in_words() -> None:
    problem = with_algebra({"x": "-k*z"}, {"z": "z^2 + x"}, {"x": 1.0, "z": 1.0})
    found = failure(problem, {"k": 1.0})
    assert found.time == 0.0
    assert "no consistent initial values of the algebraic variables" in found.reason


def test_equations_that_do_not_determine_their_variable_are_a_failure_in_words() -> None:
    """Index 2: z is not in the equation but for the look of it."""
    problem = with_algebra({"x": "-k*z"}, {"z": "z - z + x - 2"}, {"x": 1.0})
    found = failure(problem, {"k": 1.0})
    assert found.time == 0.0
    assert "algebraic" in found.reason


def test_a_guess_where_the_equation_is_flat_is_not_a_solution() -> None:
    """At z = 0 the slope of z^2 vanishes: not to move is not to have arrived."""
    problem = torricelli(0.0)
    found = integrated(ForwardMap(problem), problem.vector({"k": 0.5, "x": 4.0}))
    assert np.abs(found.algebraic[:, 0]) == pytest.approx(2.0 - 0.25 * TIMES, rel=1e-6)


def test_an_equation_that_loses_its_solution_on_the_way_is_a_failure() -> None:
    """z = sqrt(x) with x = 1 - 2 t ends at t = 1/2."""
    problem = with_algebra({"x": "-k"}, {"z": "z^2 - x"}, {"x": 1.0, "z": 1.0})
    found = failure(problem, {"k": 2.0})
    assert found.time == pytest.approx(0.5, abs=0.01)
    assert found.reason


def test_algebraic_variables_are_part_of_a_simulation() -> None:
    from odefit import simulate

    for equation in ("z^2 - x", "2*z - x"):
        problem = with_algebra({"x": "-k*z"}, {"z": equation}, {"x": {}, "z": 1.0})
        found = simulate(problem, problem.vector({"k": 0.5, "x": 4.0}))
        assert not isinstance(found, Failure)
        expected = np.sqrt(found.states["x"]) if "^" in equation else found.states["x"] / 2
        assert found.states["z"] == pytest.approx(expected, rel=1e-6)
