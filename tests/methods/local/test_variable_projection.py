"""Unknowns of the observation alone are eliminated, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import odefit
from odefit import (
    Control,
    ForwardMap,
    Model,
    MultiStart,
    Problem,
    SingleShooting,
    Status,
)
from odefit.methods.bounded_problem import with_bounds
from odefit.methods.local.variable_projection import Projection, VariableProjection
from tests.methods.observed_chain import (
    PROBLEMS,
    TIMES,
    A,
    B,
    a_scale_that_groups_share,
    factors,
    problem_of,
    projected,
    scale_and_offset,
)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_optimum_is_that_of_all_unknowns_together(make: Callable[[], Problem]) -> None:
    problem, forward = make(), ForwardMap(make())
    reduced = SingleShooting(to_the_last_digit=True).solve(problem, Control()).starts[0]
    # Together they are sought from nearby: from the guess, that search may end elsewhere.
    together = SingleShooting(to_the_last_digit=True, eliminate=False)
    full = together.run(forward, 0, 1.05 * reduced.vector, Control())
    assert reduced.status is full.status is Status.CONVERGED
    assert reduced.cost == pytest.approx(full.cost, rel=1e-8, abs=1e-8)
    # Where only b is observed, k and m are interchangeable: at k = m the cost is flat.
    assert reduced.vector == pytest.approx(full.vector, rel=1e-4)
    polished = SingleShooting(eliminate=False).run(
        ForwardMap(problem), 0, reduced.vector, Control()
    )
    assert polished.cost >= reduced.cost - 1e-9 * abs(reduced.cost)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_gradient_is_that_of_the_reduced_cost(make: Callable[[], Problem]) -> None:
    problem = make()
    kept = VariableProjection(ForwardMap(problem)).remaining
    assert [problem.keys[k] for k in kept] == ["k", "m"]
    at = {"k": 0.8, "m": 0.6}
    found = projected(problem, **at)
    differences = [
        (
            projected(problem, **{**at, name: at[name] + 1e-5}).evaluation.cost
            - projected(problem, **{**at, name: at[name] - 1e-5}).evaluation.cost
        )
        / 2e-5
        for name in ("k", "m")
    ]
    gradient = found.jacobian.T @ found.evaluation.residuals
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_gauss_newton_matrix_is_the_schur_complement(make: Callable[[], Problem]) -> None:
    """Eliminated unknowns at a bound do not move, and take no part."""
    problem = make()
    found = projected(problem, k=0.8, m=0.6)
    jacobian = found.evaluation.jacobian
    fisher = jacobian.T @ jacobian
    inside = (found.vector > problem.lower) & (found.vector < problem.upper)
    free = [k for k in range(2, len(problem.keys)) if inside[k]]
    cross = fisher[:2, free]
    schur = fisher[:2, :2] - cross @ np.linalg.solve(fisher[np.ix_(free, free)], cross.T)
    assert found.jacobian.T @ found.jacobian == pytest.approx(schur, rel=1e-8)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_derivative_by_what_is_eliminated_is_zero_or_leads_out(
    make: Callable[[], Problem],
) -> None:
    problem = make()
    found = projected(problem, k=0.8, m=0.6)
    gradient = found.evaluation.jacobian.T @ found.evaluation.residuals
    for k in range(2, len(problem.keys)):
        if found.vector[k] == problem.lower[k]:
            assert gradient[k] > 0
        elif found.vector[k] == problem.upper[k]:
            assert gradient[k] < 0
        else:
            size = float(np.linalg.norm(found.evaluation.jacobian[:, k]))
            assert abs(gradient[k]) <= 1e-9 * size


def test_a_problem_reduced_to_nothing_is_solved_at_once() -> None:
    problem = Problem(
        Model(ode={"x": "-x"}, observables={"y": "s*x + c"}),
        {"t": TIMES, "y": 3 * A + 2},
        {"s": {}, "c": {}},
        {"x": 1.0},
        t0=0.0,
    )
    (start,) = SingleShooting().solve(problem, Control()).starts
    assert start.status is Status.CONVERGED
    assert start.evaluations == 1
    assert start.vector == pytest.approx([3.0, 2.0], rel=1e-12)


def test_start_values_of_what_is_eliminated_do_not_matter() -> None:
    problem, forward = scale_and_offset(), ForwardMap(scale_and_offset())
    one, two = (
        SingleShooting().run(forward, 0, np.array([0.7, 0.9, *rest]), Control())
        for rest in ([1.0, 1.0, 1.0], [-50.0, 1e6, 0.0])
    )
    assert np.array_equal(one.vector, two.vector)
    assert one.evaluations == two.evaluations
    assert problem.keys[2:] == ("s", "c", "d")


def test_a_failed_integration_is_reported() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}, observables={"y": "s*x"}),
        {"t": TIMES, "y": np.ones(12)},
        {"k": {"guess": 2.0}, "s": {"guess": 1.0}},
        {"x": 1.0},
    )
    found = SingleShooting().solve(problem, Control())
    assert found.status is Status.FAILED
    assert "without bound" in found.message
    assert found.starts[0].vector.tolist() == [2.0, 1.0]


def test_an_observable_without_a_logarithm_is_reported() -> None:
    problem = problem_of(
        {"y": "s*(b - 1)"},
        {"y": factors(B, 1)},
        {"s": {"lower": 0.0, "guess": 1.0}},
        {"y": {"sd": 1.0, "transform": "log"}},
    )
    found = SingleShooting().solve(problem, Control())
    assert found.status is Status.FAILED
    assert "it has no logarithm" in found.message


def test_many_starts_choose_their_points_by_the_reduced_cost() -> None:
    """Otherwise the point whose scale happens to fit would be the best."""
    problem = problem_of({"y": "s*b"}, {"y": 1e4 * B}, {"s": {"lower": 1e-6, "upper": 1e6}})
    method = MultiStart(starts=1, screening=16, first=None)
    problem = problem.with_parameters(k={"lower": 0.05, "upper": 20.0}, m={"lower": 0.05})
    forward = method.forward(problem)
    chosen = method.start_point(forward, 0, Control())
    projection = VariableProjection(forward)
    costs = []
    for x in method._sample(problem, 0, Control()):
        evaluation = projection.evaluate_cost(x)
        assert not isinstance(evaluation, odefit.simulation.Failure)
        costs.append(evaluation.cost)
    own = projection.evaluate_cost(chosen)
    assert not isinstance(own, odefit.simulation.Failure)
    assert own.cost <= min(costs) * (1 + 1e-12)


def errors(result: odefit.Result) -> list[float]:
    return result.parameters["std_error"].dropna().tolist()


@pytest.mark.slow
def test_a_fit_is_the_same_with_and_without_the_reduction() -> None:
    problem = a_scale_that_groups_share()
    with_it = odefit.fit(problem, jobs=1)
    without = odefit.fit(problem, MultiStart(SingleShooting(eliminate=False), starts=4), jobs=1)
    assert with_it.log_likelihood == pytest.approx(without.log_likelihood, abs=1e-6)
    assert errors(with_it) == pytest.approx(errors(without), rel=1e-3)
    assert with_it.assessment.local is not None
    assert with_it.assessment.local.optimal


def test_a_linear_unknown_that_its_bounds_hold_leaves_the_others_free() -> None:
    """y = (a + b) x, where b is held and a may not become negative."""
    times = np.linspace(0.0, 3.0, 12)
    free = {"lower": 0.0, "upper": 9.0}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "a*x + b*x + b"}),
        {"t": times, "y": 2.0 * np.exp(-times) + 0.5},
        {"k": free, "a": free, "b": free},
        {"x": 1.0},
    )
    for held, expected in ((0.5, 1.5), (6.0, 0.0)):
        bounds = np.array([[0.0, 9.0], [0.0, 9.0], [held, held]])
        projection = VariableProjection(ForwardMap(with_bounds(problem, bounds)))
        found = projection.evaluate(np.array([1.0, 4.0, held]))
        assert isinstance(found, Projection)
        assert found.vector == pytest.approx([1.0, expected, held], abs=1e-6)
