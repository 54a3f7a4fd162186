"""The integral criterion (5): zero on exact trajectories, with exact derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Experiment, IntegralMatching, Model, Problem, library, simulate
from odefit.common.arrays import Array
from odefit.methods.integral_matching.criterion import IntegralCriterion
from odefit.methods.integral_matching.separation import EquationBlock, Penalty, solve_block
from odefit.methods.local.stopping import Tolerances
from odefit.simulation import Simulation
from tests.methods.integral_matching.problems import (
    DECAY,
    SATURATED,
    T,
    chain,
    epidemic,
    exactly,
    saturated,
    two,
)

FINE = np.linspace(0.0, 4.0, 401)


def on_truth(problem: Problem, truth: dict[str, float], times: Array) -> IntegralCriterion:
    vector = problem.vector(truth)
    path = simulate(problem, vector, times)
    assert isinstance(path, Simulation)
    return exactly(problem, {s: path.states[s] for s in problem.model.states}, times)


def stacked(criterion: IntegralCriterion, vector: Array) -> tuple[Array, Array]:
    values, derivatives = criterion.residuals(vector, range(criterion.size))
    return np.concatenate(values), np.concatenate(derivatives)


@pytest.mark.parametrize("points", [101, 201, 401])
def test_exact_trajectories_leave_the_error_of_the_quadrature(points: int) -> None:
    problem = saturated()
    criterion = on_truth(problem, SATURATED, np.linspace(0.0, 4.0, points))
    left = np.abs(stacked(criterion, problem.vector(SATURATED))[0]).max()
    assert left < 0.3 * (4.0 / points) ** 4


@pytest.mark.parametrize("name", ["gma", "hiv-f", "seasonal-lotka-volterra", "rikitake", "bbg"])
def test_the_library_s_trajectories_solve_its_criteria(name: str) -> None:
    problem, known = library.load(name), library.reference(name)
    truth = {**known.parameters, **known.initial}
    c = problem.conditions[0]
    end = min(float(c.times[-1]), c.t0 + 4.0)
    criterion = on_truth(problem, truth, np.linspace(c.t0, end, 2001))
    assert np.abs(stacked(criterion, problem.vector(truth))[0]).max() < 1e-7


def every_way() -> list[tuple[str, Problem]]:
    """Initial values that are unknown, known and expressions; hidden states; free starts."""
    data = {"t": T, "x": DECAY}
    step = np.where(T < 2, 0.5, 1.0)
    forced: dict[str, Any] = {"a": {}, "b": {"per_experiment": True}}
    return [
        ("nonlinear", saturated()),
        ("hidden", epidemic()),
        (
            "experiments",
            Problem(
                Model(ode={"x": "-a*x^b + u"}, inputs={"u": "constant"}),
                None,
                forced,
                {"x": "a + b"},
                experiments=two({**data, "u": step}, {**data, "u": 2 * step}),
            ),
        ),
        (
            "events",
            Problem(
                Model(ode={"x": "-a*x*u + b"}, constants={"u": 1.0}),
                None,
                {"a": {}, "b": {}},
                {"x": {}},
                experiments=[dosed()],
            ),
        ),
        (
            "algebraic",
            chain(
                model=Model(ode={"x": "-a*z", "w": "z - b*w"}, algebraic={"z": "2*z - a*x - b^2*w"})
            ),
        ),
    ]


def dosed() -> Experiment:
    from odefit import Event

    events = [Event((2.0,), {"u": "2*b", "x": "x + 1"})]
    return Experiment("A", {"t": T, "x": DECAY + (T > 2)}, events=events)


@pytest.mark.parametrize(
    ("_", "problem"), every_way(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_derivatives_are_those_of_finite_differences(_: str, problem: Problem) -> None:
    matching = IntegralMatching().matching(problem)
    criterion = matching.criterion
    vector = np.random.default_rng(0).uniform(0.5, 1.5, criterion.size)
    _values, derivatives = stacked(criterion, vector)
    for k in range(criterion.size):
        h = np.zeros(criterion.size)
        h[k] = 1e-5
        up, down = stacked(criterion, vector + h)[0], stacked(criterion, vector - h)[0]
        assert derivatives[:, k] == pytest.approx((up - down) / 2e-5, abs=2e-8, rel=1e-6)


@pytest.mark.parametrize(
    ("_", "problem"), every_way(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_requested_derivatives_are_returned(_: str, problem: Problem) -> None:
    criterion = IntegralMatching().matching(problem).criterion
    vector = np.linspace(0.6, 1.3, criterion.size)
    values, derivatives = stacked(criterion, vector)
    some = list(range(criterion.size))[::-2]
    again, part = criterion.residuals(vector, some)
    assert np.array_equal(np.concatenate(again), values)
    assert np.array_equal(np.concatenate(part), derivatives[:, some])


def test_a_state_counts_in_units_of_its_size() -> None:
    small, large = (
        exactly(chain(), {"x": scale * DECAY, "w": scale * (1 - DECAY)}, T) for scale in (1.0, 1e6)
    )
    one, other = np.array([0.6, 0.2, 1.0, 0.0]), np.array([0.6, 0.2, 1e6, 0.0])
    assert stacked(small, one)[0] == pytest.approx(stacked(large, other)[0], rel=1e-12)


# Formulas (5) to (8) --------------------------------------------------------------------------


def test_the_closed_form_is_the_papers() -> None:
    """A-hat and B-hat evaluated directly, for x' = f - a x, w' = a x - b w."""
    problem = chain(
        model=Model(ode={"x": "f - a*x", "w": "a*x - b*w"}),
        parameters={"f": {}, "a": {}, "b": {}},
    )
    random = np.random.default_rng(0)
    x = np.exp(-0.7 * FINE) + 0.2 * np.sin(3 * FINE) + 0.1 * random.normal() * FINE
    w = 1.0 - 0.8 * np.cos(FINE)
    x, w = x / np.abs(x).max(), w / np.abs(w).max()  # the paper weighs all states alike
    criterion = exactly(problem, {"x": x, "w": w}, FINE)
    rule = criterion.segments[0].grid
    zero = np.zeros(len(FINE))
    # g of x' = g theta, shape (states, parameters, times), its integral and (4 quantities of
    # section 2.2).
    g = np.array([[zero + 1, -x, zero], [zero, x, -w]])
    big_g = rule.cumulative(g)
    q = rule.weights
    span = FINE[-1] - FINE[0]
    curves = np.array([x, w])
    a_hat = big_g @ q
    b_hat = np.einsum("ikt,ilt,t->kl", big_g, big_g, q)
    inverse = np.linalg.inv(b_hat)
    left = span * np.eye(2) - a_hat @ inverse @ a_hat.T
    right = curves @ q - a_hat @ inverse @ np.einsum("ikt,it,t->k", big_g, curves, q)
    xi = np.linalg.solve(left, right)
    theta = inverse @ np.einsum("ikt,it,t->k", big_g, curves - xi[:, None], q)
    block = EquationBlock((0, 1), tuple(range(5)), ())
    free = np.full(5, np.inf)
    found = solve_block(
        criterion, block, np.zeros(5), -free, free, Penalty(), Tolerances(), lambda: False
    )
    names = dict(zip(problem.keys, found.vector, strict=True))
    assert [names[k] for k in ("f", "a", "b")] == pytest.approx(theta, rel=1e-8)
    assert [names["x"], names["w"]] == pytest.approx(xi, rel=1e-8)
    rest = curves - xi[:, None] - np.einsum("ikt,k->it", big_g, theta)
    assert found.cost == pytest.approx(0.5 * float((rest**2 @ q).sum()), rel=1e-8)
