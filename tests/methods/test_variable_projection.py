"""Unknowns of the observation alone are eliminated, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import (
    Control,
    Experiment,
    ForwardMap,
    Model,
    MultiStart,
    Problem,
    SingleShooting,
    Status,
)
from odefit.methods.variable_projection import Projection, VariableProjection
from odefit.problem.arrays import Array

TIMES = np.linspace(0.2, 3.0, 12)
RATES = {"k": {"guess": 0.7, "lower": 0.05, "upper": 20.0}, "m": {"guess": 0.9, "lower": 0.05}}


def chain(times: Array, k: float = 1.0, m: float = 0.5) -> tuple[Array, Array]:
    """The exact solution of a -> b -> with the rates k and m, from a = 1, b = 0."""
    a = np.exp(-k * times)
    return a, k / (m - k) * (a - np.exp(-m * times))


def noisy(values: Array, seed: int, sd: float = 0.05) -> Array:
    return np.asarray(values + sd * np.random.default_rng(seed).normal(size=len(values)))


def factors(values: Array, seed: int) -> Array:
    return np.asarray(values * np.exp(0.1 * np.random.default_rng(seed).normal(size=len(values))))


def problem_of(
    observables: dict[str, str],
    data: dict[str, Any],
    parameters: dict[str, Any],
    noise: dict[str, Any] | None = None,
    constants: dict[str, dict[str, Any]] | None = None,
) -> Problem:
    """The chain, observed in some way, in one experiment or in several."""
    several = data if all(isinstance(d, dict) for d in data.values()) else {"only": data}
    return Problem(
        Model(ode={"a": "-k*a", "b": "k*a - m*b"}, observables=observables),
        parameters={**RATES, **parameters},
        initial={"a": 1.0, "b": 0.0},
        noise=noise,
        experiments=[
            Experiment(n, {"t": TIMES, **d}, constants=(constants or {}).get(n, {}), t0=0.0)
            for n, d in several.items()
        ],
    )


A, B = chain(TIMES)


def scale_and_offset() -> Problem:
    data = {"y": noisy(3 * A + 2, 1), "z": noisy(5 * B, 2)}
    return problem_of({"y": "s*a + c", "z": "d*b"}, data, {"s": {}, "c": {}, "d": {}})


def experiments_of_their_own() -> Problem:
    data = {"one": {"y": noisy(3 * B + 1, 1)}, "two": {"y": noisy(7 * B + 2, 2)}}
    return problem_of(
        {"y": "s*b + c + e*a"},
        data,
        {"c": {"per_experiment": True}, "f": {}, "g": {}, "e": {}},
        constants={"one": {"s": "f"}, "two": {"s": "2*g"}},
    )


def priors() -> Problem:
    data = {"y": noisy(3 * B + 2, 1), "z": noisy(A, 2)}
    prior = {"prior": {"mean": 2.5, "sd": 0.1}}
    noise = {"y": {"sd": 0.05}, "z": {"sd": "estimate"}}
    return problem_of({"y": "s*b + c", "z": "a"}, data, {"s": prior, "c": {}}, noise)


def a_prior_beside_an_unknown_deviation() -> Problem:
    prior = {"prior": {"mean": 2.5, "sd": 0.1}}
    return problem_of({"y": "s*b"}, {"y": noisy(3 * B, 1)}, {"s": prior}, {"y": {"sd": "estimate"}})


def at_bounds() -> Problem:
    data = {"y": noisy(3 * A + 2, 1), "z": noisy(5 * B, 2)}
    limited = {"s": {"upper": 2.8}, "c": {"lower": 0.0}, "d": {"lower": 0.0, "upper": 4.0}}
    sigma = {"sigma": {"lower": 0.1}}
    return problem_of(
        {"y": "s*a + c", "z": "d*b"},
        data,
        {**limited, **sigma},
        {"y": {"sd": 0.05}, "z": {"sd": "sigma"}},
    )


def logarithms() -> Problem:
    data = {"y": factors(3 * B, 1), "z": factors(0.2 * A / 3, 2)}
    return problem_of(
        {"y": "s*b", "z": "r*a/s"},
        data,
        {"s": {"lower": 0.0}, "r": {"lower": 1e-8, "upper": 1e8, "scale": "log10"}},
        {"y": {"sd": "estimate", "transform": "log"}, "z": {"sd": 0.1, "transform": "log10"}},
    )


def a_logarithm_at_a_bound() -> Problem:
    return problem_of(
        {"y": "s*b"},
        {"y": factors(3 * B, 1)},
        {"s": {"lower": 3.5, "upper": 9.0}, "sigma": {"lower": 0.0}},
        {"y": {"sd": "sigma", "transform": "log"}},
    )


def deviations() -> Problem:
    data = {"y": noisy(A, 1), "z": noisy(2 * B, 2, 0.2), "w": noisy(A + B, 3)}
    return problem_of(
        {"y": "a", "z": "2*b", "w": "a + b"},
        data,
        {"v": {"lower": 0.0}, "rho": {"lower": 1e-5, "scale": "log10"}},
        {"y": {"sd": "estimate"}, "z": {"sd": "sqrt(v)"}, "w": {"sd": "rho*w"}},
    )


def a_scale_that_groups_share() -> Problem:
    data = {"y": noisy(3 * A + 1, 1, 0.2), "z": noisy(3 * B + 1, 2, 0.02)}
    return problem_of(
        {"y": "s*a + c", "z": "s*b + c"},
        data,
        {"s": {}, "c": {}, "sigma": {"lower": 0.0}},
        {"y": {"sd": "estimate"}, "z": {"sd": "sigma"}},
    )


def units_of_values_and_noise() -> Problem:
    data = {"y": factors(3 * A, 1), "z": factors(0.2 * B, 2), "w": factors(9 * B, 3)}
    return problem_of(
        {"y": "s*a", "z": "b/r", "w": "s^1*b*3", "x": "q*a"},
        {**data, "x": factors(A, 4)},
        {n: {"lower": 0.0} for n in ("s", "r", "sigma")} | {"q": {"lower": 1.5, "upper": 10.0}},
        {
            "y": {"sd": "s*sigma"},
            "z": {"sd": "sigma/r"},
            "w": {"sd": "0.3*s"},
            "x": {"sd": "q*0.1"},
        },
    )


PROBLEMS: list[Callable[[], Problem]] = [
    scale_and_offset,
    experiments_of_their_own,
    priors,
    a_prior_beside_an_unknown_deviation,
    at_bounds,
    logarithms,
    a_logarithm_at_a_bound,
    deviations,
    a_scale_that_groups_share,
    units_of_values_and_noise,
]


def projected(problem: Problem, **values: float) -> Projection:
    """The reduced problem at some rates; the eliminated unknowns have arbitrary values."""
    vector = np.array([values.get(key, 1.234) for key in problem.keys])
    found = VariableProjection(ForwardMap(problem)).evaluate(vector)
    assert isinstance(found, Projection)
    return found


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_optimum_is_that_of_all_unknowns_together(make: Callable[[], Problem]) -> None:
    problem = make()
    both = [
        SingleShooting(to_the_last_digit=True, eliminate=eliminate)
        .solve(problem, Control())
        .starts[0]
        for eliminate in (True, False)
    ]
    reduced, full = both
    assert reduced.status is full.status is Status.CONVERGED
    assert reduced.cost == pytest.approx(full.cost, rel=1e-8, abs=1e-8)
    # Where the cost is flat to rounding, the last step of the full search ends within 1e-5.
    assert reduced.vector == pytest.approx(full.vector, rel=1e-4)
    polished = SingleShooting(eliminate=False).run(
        ForwardMap(problem), 0, reduced.vector, Control()
    )
    assert polished.cost >= reduced.cost - 1e-9 * abs(reduced.cost)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_gradient_is_that_of_the_reduced_cost(make: Callable[[], Problem]) -> None:
    problem = make()
    kept = VariableProjection(ForwardMap(problem)).kept
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


def test_a_scale_is_the_regression_of_the_data_on_the_trajectory() -> None:
    problem = problem_of({"y": "s*a"}, {"y": noisy(3 * A, 1)}, {"s": {}})
    found = projected(problem, k=0.8, m=0.6)
    x, y = chain(TIMES, 0.8, 0.6)[0], problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx(x @ y / (x @ x), rel=1e-12)
    assert found.evaluation.cost == ForwardMap(problem).cost(found.vector)


def test_a_deviation_is_the_root_mean_square_of_its_residuals() -> None:
    problem = problem_of({"y": "a"}, {"y": noisy(A, 1)}, {}, {"y": {"sd": "estimate"}})
    found = projected(problem, k=0.8, m=0.6)
    residuals = chain(TIMES, 0.8, 0.6)[0] - problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-12)


def test_a_factor_under_a_logarithm_is_a_geometric_mean() -> None:
    problem = problem_of(
        {"y": "s*b"},
        {"y": factors(3 * B, 1)},
        {"s": {"lower": 0.0}},
        {"y": {"sd": 0.1, "transform": "log10"}},
    )
    found = projected(problem, k=0.8, m=0.6)
    ratio = problem.data()["y"].to_numpy() / chain(TIMES, 0.8, 0.6)[1]
    assert found.vector[2] == pytest.approx(np.exp(np.mean(np.log(ratio))), rel=1e-12)


def test_one_unit_of_values_and_noise_has_the_ratio_of_squares_to_products() -> None:
    """Without a known size of the noise, log(s sigma) + |x - y/s|^2/(2 n sigma^2) is least."""
    problem = problem_of(
        {"y": "s*a"},
        {"y": factors(3 * A, 1)},
        {"s": {"lower": 0.0}, "sigma": {"lower": 0.0}},
        {"y": {"sd": "s*sigma"}},
    )
    found = projected(problem, k=0.8, m=0.6)
    x, y = chain(TIMES, 0.8, 0.6)[0], problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx((x @ y) / (x @ x), rel=1e-9)
    residuals = x - y / found.vector[2]
    assert found.vector[3] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-9)


def test_a_scale_far_from_one_keeps_its_digits() -> None:
    """Its linear problem is set up at zero, not at its start value."""
    problem = problem_of(
        {"y": "s*a"}, {"y": noisy(3e-9 * A, 1, 1e-10)}, {"s": {"lower": 1e-12, "upper": 1e12}}
    )
    forward = ForwardMap(problem)
    found = VariableProjection(forward).evaluate(np.array([0.8, 0.6, 1e12]))
    assert isinstance(found, Projection)
    x, y = chain(TIMES, 0.8, 0.6)[0], problem.data()["y"].to_numpy()
    assert found.vector[2] == pytest.approx(x @ y / (x @ x), rel=1e-12)


def test_several_bounds_are_active_as_in_the_reference_solver() -> None:
    from scipy.optimize import lsq_linear

    y = noisy(3 * A + 2 + 0.5 * TIMES - 0.1 * TIMES**2, 1)
    fields = {
        "s": {"lower": 0.0, "upper": 2.0},
        "c": {"lower": 2.5},
        "d": {"upper": 0.3},
        "e": {"lower": -0.05},
    }
    found = projected(problem_of({"y": "s*a + c + d*t + e*t^2"}, {"y": y}, fields), k=0.8, m=0.6)
    columns = np.column_stack([chain(TIMES, 0.8)[0], np.ones(12), TIMES, TIMES**2])
    low, high = [0.0, 2.5, -np.inf, -0.05], [2.0, np.inf, 0.3, np.inf]
    reference = lsq_linear(columns, y, (low, high), method="bvls", tol=1e-15)
    assert found.vector[2:] == pytest.approx(reference.x, rel=1e-9)
    assert 0 < np.count_nonzero(reference.active_mask) < 4


def test_a_scale_of_what_is_zero_stays_as_it_is() -> None:
    found = projected(problem_of({"y": "s*(a - a) + b"}, {"y": B}, {"s": {}}), k=1.0, m=0.5)
    assert found.vector[2] == 1.234
    assert found.evaluation.cost == pytest.approx(0.0, abs=1e-20)


def test_scale_and_offset_of_what_is_constant_are_found_all_the_same() -> None:
    found = projected(problem_of({"y": "s*a/a + c"}, {"y": 0 * A + 5.0}, {"s": {}, "c": {}}))
    assert found.vector[2] + found.vector[3] == pytest.approx(5.0, rel=1e-12)
    assert np.isfinite(found.jacobian).all()


def test_data_without_noise_leave_a_deviation_that_is_not_zero() -> None:
    problem = problem_of({"y": "a"}, {"y": A}, {}, {"y": {"sd": "estimate"}})
    found = projected(problem, k=1.0, m=0.5)
    assert 0 < found.vector[2] < 1e-10
    assert np.isfinite(found.evaluation.cost)


def test_a_problem_of_which_nothing_remains_is_solved_at_once() -> None:
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


def test_a_failed_integration_is_told() -> None:
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


def test_an_observable_without_a_logarithm_is_told() -> None:
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


def test_a_fit_is_the_same_with_and_without() -> None:
    problem = a_scale_that_groups_share()
    with_it = odefit.fit(problem, jobs=1)
    without = odefit.fit(problem, MultiStart(SingleShooting(eliminate=False)), jobs=1)
    assert with_it.log_likelihood == pytest.approx(without.log_likelihood, abs=1e-6)
    assert errors(with_it) == pytest.approx(errors(without), rel=1e-3)
    assert with_it.assessment.local is not None
    assert with_it.assessment.local.optimal
