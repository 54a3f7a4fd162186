"""Constraints on parameters and states: what they mean, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize

import odefit
from odefit import (
    Constraint,
    Event,
    Experiment,
    ForwardMap,
    InputError,
    Model,
    MultipleShooting,
    Problem,
    Result,
    Status,
    simulate,
)
from odefit.methods.shooting.constraints import linearise_constraints as conditions_at
from odefit.methods.shooting.constraints import node_times, parse_constraints
from odefit.methods.shooting.node_evaluation import shooting_problem
from odefit.methods.shooting.shooting_problem import Point
from odefit.simulation import Simulation
from tests.methods.shooting.instances import (
    columns,
    exchange,
    exchanged,
    linearised,
    on_trajectory,
)
from tests.simulation.numerics import Array

slsqp: Any = optimize.minimize


def constrained(problem: Problem, *constraints: str | Constraint, **options: Any) -> Result:
    arguments: dict[str, Any] = {"starts": 1, **options}
    return odefit.fit(problem, MultipleShooting(constraints=constraints, **arguments))


def residuals_of(problem: Problem, vector: Array) -> Array:
    data = columns(problem)
    x, y = exchanged(vector, data["t"])
    return np.concatenate([data["x"] - x, data["y"] - y])


def reference(problem: Problem, equation: Any = None, inequality: Any = None) -> Array:
    """The constrained minimum by SLSQP on the exact solution."""
    given = [{"type": "eq", "fun": equation}] if equation else []
    given += [{"type": "ineq", "fun": inequality}] if inequality else []
    best = None
    for start in ([0.6, 0.4, 1.0, 0.1], [0.5, 0.2, 0.9, 0.2], [1.5, 1.0, 0.8, 0.1]):
        found = slsqp(
            lambda v: float(np.sum(residuals_of(problem, v) ** 2)),
            start,
            method="SLSQP",
            bounds=[(1e-6, 5), (1e-6, 5), (None, None), (None, None)],
            constraints=given,
            options={"maxiter": 1000, "ftol": 1e-15},
        )
        if found.success and (best is None or found.fun < best.fun):
            best = found
    assert best is not None
    return np.asarray(best.x)


def x_at(time: float) -> Any:
    return lambda v: float(exchanged(v, np.array([time]))[0][0])


CASES: dict[str, tuple[tuple[str, ...], Any, Any]] = {
    "a sum": (("k1 + k2 = 1",), lambda v: v[0] + v[1] - 1, None),
    "a sum, otherwise written": (("2*(1 - k2) == k1*2",), lambda v: v[0] + v[1] - 1, None),
    "a product": (("k1*k2 = 0.2",), lambda v: v[0] * v[1] - 0.2, None),
    "a state at a data time": (("x@5 = 0.5",), lambda v: x_at(5.0)(v) - 0.5, None),
    "a state between data": (("x@2.21 = 0.5",), lambda v: x_at(2.21)(v) - 0.5, None),
    "a state at the start": (("x@0 = 0.9",), lambda v: v[2] - 0.9, None),
    "a state at the end": (("x @ 1e1 = 0.42",), lambda v: x_at(10.0)(v) - 0.42, None),
    "states at two times": (
        ("x@0 = 2.2*x@10",),
        lambda v: v[2] - 2.2 * x_at(10.0)(v),
        None,
    ),
    "states and parameters": (
        ("x@1 + k1*y@0 = 0.65",),
        lambda v: x_at(1.0)(v) + v[0] * v[3] - 0.65,
        None,
    ),
    "two": (
        ("k1 + k2 = 1", "x@5 = 0.5"),
        lambda v: np.array([v[0] + v[1] - 1, x_at(5.0)(v) - 0.5]),
        None,
    ),
    "an inequality that holds anyway": (("x@5 <= 2",), None, lambda v: 2 - x_at(5.0)(v)),
    "an inequality": (("x@5 <= 0.35",), None, lambda v: 0.35 - x_at(5.0)(v)),
    "an inequality the other way": (("0.35 >= x@5",), None, lambda v: 0.35 - x_at(5.0)(v)),
    "a lower bound on a combination": (("k1 - k2 >= 0.3",), None, lambda v: v[0] - v[1] - 0.3),
    "an equation and an inequality": (
        ("k1 + k2 = 1", "k1 >= 0.63"),
        lambda v: v[0] + v[1] - 1,
        lambda v: v[0] - 0.63,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_constrained_minimum(name: str) -> None:
    """Against SLSQP on the exact solution."""
    texts, equation, inequality = CASES[name]
    problem = exchange()
    expected = reference(problem, equation, inequality)
    result = constrained(problem, *texts)
    assert result.status is Status.CONVERGED
    least = float(np.sum(residuals_of(problem, expected) ** 2))
    assert result.objective == pytest.approx(least, rel=1e-6)
    assert result.best.vector == pytest.approx(expected, rel=1e-3, abs=1e-4)
    if equation is not None:
        assert equation(result.best.vector) == pytest.approx(0, abs=1e-8)
    if inequality is not None:
        assert inequality(result.best.vector) >= -1e-8
    assert result.assessment.local is not None
    assert result.assessment.local.optimal
    assert result.assessment.continuity is not None
    assert result.assessment.continuity.fine
    assert result.assessment.continuity.constraints == texts


def test_constraints_that_the_data_speak_against_are_blamed_for_large_residuals() -> None:
    result = constrained(exchange(), "x@5 = 0.5")
    assert result.status is Status.CONVERGED
    assert any("the constraints or the model do not fit" in w for w in result.warnings)


def test_bounds_and_constraints_may_all_hold_at_once() -> None:
    """k1 + k2 = 1 and both at least 1/2 is a single point."""
    problem = exchange(parameters={"k1": {"lower": 0.5}, "k2": {"lower": 0.5}})
    result = constrained(problem, "k1 + k2 = 1")
    assert result.best.vector[:2] == pytest.approx([0.5, 0.5])


def test_a_periodic_solution_is_found_where_the_data_do_not_close() -> None:
    """A forced oscillator after its transient; x and y end where they began."""
    t = np.linspace(0.0, 2 * np.pi, 25)
    random = np.random.default_rng(3)
    problem = Problem(
        Model(ode={"x": "y", "y": "-k*y - x + a*cos(2*t)"}),
        {"t": t, "x": -np.cos(2 * t) / 3 + 0.02 * random.normal(size=25)},
        {"k": {"lower": 0.0, "upper": 5.0}, "a": {"lower": 0.0, "upper": 5.0}},
        {"x": {}, "y": {}},
    )
    end = repr(float(t[-1]))
    result = constrained(problem, f"x@0 = x@{end}", f"y@0 = y@{end}", nodes=6)
    assert result.status is Status.CONVERGED
    path = result.simulate(np.array([0.0, t[-1]]))
    assert path["x"].iloc[0] == pytest.approx(path["x"].iloc[1], abs=1e-8)
    assert path["y"].iloc[0] == pytest.approx(path["y"].iloc[1], abs=1e-8)
    assert result.best.parameters["a"] == pytest.approx(1.0, abs=0.05)


def test_a_constraint_belongs_to_its_experiment() -> None:
    data = {"t": [0.0, 1.0, 2.0, 3.0], "x": [2.0, 1.2, 0.7, 0.5]}
    problem = Problem(
        Model(ode={"x": "-k*x"}, constants={"c": 1.0}),
        parameters={"k": {}},
        initial={"x": {"per_experiment": True}},
        experiments=[Experiment("a", data), Experiment("b", data, constants={"c": 0.5})],
    )
    result = constrained(problem, Constraint("x@3 = c", "b"))
    b = result.simulate(experiment="b")
    assert b["x"].iloc[-1] == pytest.approx(0.5)
    first = constrained(problem, "x@3 = c")
    assert first.simulate(experiment="a")["x"].iloc[-1] == pytest.approx(1.0)
    assert first.best.nodes is not None
    assert first.best.nodes.experiments == ("a",)


def test_a_state_at_the_time_of_an_event_is_that_before_it() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": {}},
        experiments=[
            Experiment(
                "run",
                {"t": [0.0, 1.0, 2.0, 3.0], "x": [1.0, 0.6, 2.4, 1.5]},
                events=[Event((1.5,), {"x": "x + 2"})],
            )
        ],
    )
    result = constrained(problem, "x@1.5 = 0.5")
    path = simulate(problem, result.best.vector, np.array([1.5, 1.5 + 1e-9]))
    assert isinstance(path, Simulation)
    assert path.states["x"] == pytest.approx([0.5, 2.5], abs=1e-6)


def test_derivatives_of_constraints_are_those_of_finite_differences() -> None:
    problem = exchange()
    texts = ["k1*x@5^2 + y@0/k2 = 1", "exp(x@0 - x@10) <= k2"]
    constraints = parse_constraints(problem, texts)
    vector = np.array([0.6, 0.4, 1.0, 0.1])
    node_times = [np.array([0.0, 2.0, 5.0, 10.0])]
    _, point = on_trajectory(problem, vector, node_times)
    shooting = shooting_problem(ForwardMap(problem), node_times, constraints, vector)

    def values(z: Array, nodes: Array) -> Array:
        return conditions_at(shooting, linearised(shooting, Point(z, nodes)), constraints).values

    at = linearised(shooting, point)
    found = conditions_at(shooting, at, constraints)
    x5, x10 = at.point.nodes[2, 0], at.point.nodes[3, 0]
    expected = [0.6 * x5**2 + 0.1 / 0.4 - 1, 0.4 - np.exp(1.0 - x10)]
    assert found.values == pytest.approx(expected)
    h = 1e-6
    for k in range(4):
        step = np.zeros(4)
        step[k] = h
        difference = values(vector + step, point.nodes) - values(vector - step, point.nodes)
        total = found.by_unknown[:, k].copy()
        total += found.by_node[0] @ at.first_by_unknown[0][:, k]
        assert total == pytest.approx(difference / (2 * h), abs=1e-7)
    for node in (2, 3):
        for i in range(2):
            step = np.zeros((4, 2))
            step[node, i] = h
            difference = values(vector, point.nodes + step) - values(vector, point.nodes - step)
            assert found.by_node[node][:, i] == pytest.approx(difference / (2 * h), abs=1e-7)


def test_times_of_constraints_become_nodes() -> None:
    problem = exchange()
    constraints = parse_constraints(problem, ["x@2.21 + y@7 = 1", "x@2.21 <= 3", "k1 <= 1"])
    assert node_times(constraints, 0) == [2.21, 7.0]
    assert [c.kind for c in constraints] == ["equation", "inequality", "inequality"]
    history = MultipleShooting(nodes=1, constraints=["x@2.21 + y@7 = 1"]).follow(problem)
    assert history.nodes().times[0].tolist() == [0.0, 2.21, 7.0]


WRONG = {
    "q@5 = 1": "there is no state 'q'",
    "X@5 = 1": "no state 'X'; did you mean 'x'",
    "k3 = 1": "unknown name 'k3'; did you mean 'k1'|unknown name 'k3'",
    "x = 1": "give the time: x@0 is x at t = 0",
    "k1": "expected two expressions and one of =, <=, >= between them",
    "": "expected two expressions and one of =, <=, >= between them",
    "k1 <= k2 <= 3": "expected two expressions and one of =, <=, >=",
    "k1 => 2": "expected two expressions and one of =, <=, >=",
    "k1 != 2": "unexpected '!'",
    "x@ = 1": "unexpected '@'",
    "x@t0 = 1": "unexpected '@'",
    "x@5@6 = 1": "unexpected '@'",
    "k1 = ": "expected a number, a name",
    "x@20 = 1": "t = 20 is outside the data of 'data', from 0 to 10",
    "x@-1 = 1": "t = -1 is outside the data",
    "x@nan = 1": "unexpected '@'",
    "__import__('os') = 1": "unexpected",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_reported_with_its_constraint(text: str) -> None:
    with pytest.raises(InputError, match=WRONG[text]) as caught:
        constrained(exchange(), text)
    assert caught.value.messages[0].startswith(f"constraint {text!r}: ")


def test_all_mistakes_of_the_call_are_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        constrained(exchange(), "q@5 = 1", "k1 = 1", "x = 2")
    assert len(caught.value.messages) == 2


def test_an_experiment_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match=r"constraint 'x@5 = 1': .*'nope'"):
        constrained(exchange(), Constraint("x@5 = 1", "nope"))


@pytest.mark.parametrize("given", [3, None, [3], [None], {"k1": 1}])
def test_constraints_of_another_type_are_refused_at_once(given: Any) -> None:
    with pytest.raises(InputError, match="MultipleShooting, constraints: expected a list"):
        MultipleShooting(constraints=given)


def test_a_single_constraint_needs_no_list() -> None:
    assert MultipleShooting(constraints="k1 = 1").constraints == ("k1 = 1",)
    one = Constraint("k1 = 1")
    assert MultipleShooting(constraints=one).constraints == (one,)  # type: ignore[arg-type]


CONTRADICTIONS = {
    ("k1 = 1", "k1 = 2"): "the equality constraints contradict each other",
    ("k1 + k2 = 1", "k1 + k2 = 2"): "the equality constraints contradict each other",
    ("x@0 + y@0 = 1", "x@10 + y@10 = 2"): "the equality constraints contradict each other",
    ("1 = 2",): "the equality constraints contradict each other",
    ("k1 >= 3", "k1 <= 2"): "no step satisfies bounds and inequalities",
    ("k1 + k2 = 20",): "no step satisfies bounds and inequalities",
    ("sqrt(k1 - 9) = 1",): "a constraint has no finite value at the start",
}


@pytest.mark.parametrize("texts", CONTRADICTIONS)
def test_contradictions_are_reported_and_end_quickly(texts: tuple[str, ...]) -> None:
    result = constrained(exchange(), *texts)
    assert result.status is Status.FAILED
    assert CONTRADICTIONS[texts] in result.message
    assert not result.solutions
    assert result.starts[0].evaluations < 200


# Standard errors ---------------------------------------------------------------------------------


def delta_method(problem: Problem, vector: Array, gradient: Array, degrees: float) -> Array:
    """Covariance of what the constraints leave: Z (Z' J' J Z)^-1 Z' s^2."""
    from scipy.linalg import null_space

    forward = ForwardMap(problem)
    found = forward.evaluate(vector)
    assert isinstance(found, odefit.simulation.Evaluation)
    free = null_space(np.atleast_2d(gradient))
    reduced = found.jacobian @ free
    variance = found.objective / degrees
    return np.asarray(free @ np.linalg.inv(reduced.T @ reduced) @ free.T * variance)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a sum", "a product", "a state at a data time", "states at two times", "two"]
)
def test_standard_errors_are_those_of_what_the_constraints_leave(name: str) -> None:
    texts, equation, _ = CASES[name]
    problem = exchange()
    result = constrained(problem, *texts)
    v = result.best.vector
    h = 1e-6
    gradient = np.array(
        [(np.atleast_1d(equation(v + s)) - np.atleast_1d(equation(v - s))) / (2 * h)
         for s in h * np.eye(4)]
    ).T  # fmt: skip
    assert result.uncertainty is not None
    degrees = result.uncertainty.degrees_of_freedom
    expected = np.sqrt(np.diag(delta_method(problem, v, gradient, degrees)))
    scale = expected.max()
    rest = expected > 1e-3 * scale  # what an equation fixes has next to none
    assert result.uncertainty.standard_errors[rest] == pytest.approx(expected[rest], rel=1e-4)


def test_an_unknown_fixed_by_an_equation_has_no_standard_error() -> None:
    result = constrained(exchange(), "k1 = 0.6")
    assert result.uncertainty is not None
    assert result.uncertainty.standard_errors[0] < 1e-6


def test_an_inactive_inequality_does_not_change_the_errors() -> None:
    problem = exchange()
    plain = odefit.fit(problem)
    result = constrained(problem, "x@5 <= 2")
    assert plain.uncertainty is not None
    assert result.uncertainty is not None
    assert result.best.vector == pytest.approx(plain.best.vector, rel=1e-4)
    errors = result.uncertainty.standard_errors
    assert errors == pytest.approx(plain.uncertainty.standard_errors, rel=1e-3)
