"""The Local Linearization method: its orders, what it solves exactly, and what it does not mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Failure, ForwardMap, InputError, Model, Problem, library
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import BatchFailure, BatchSolution, InitialValueProblems
from odefit.simulation.engines.linearized.exponentials import damped
from odefit.simulation.engines.linearized.local_linearization import (
    LocalLinearizationBatchIntegrator,
    Order,
)
from odefit.simulation.engines.registry import EngineName
from tests.simulation.numerics import Array, by_unknown, evaluated, integrated
from tests.simulation.zoo import ZOO

LL: EngineName = "local-linearization"
ORDERS: tuple[Order, ...] = (2, 3)


def problem_of(ode: Mapping[str, str], parameters: Sequence[str], end: float = 1.0) -> Problem:
    """All parameters and initial values are unknown."""
    data = {"t": np.linspace(0.0, end, 5), next(iter(ode)): np.ones(5)}
    return Problem(Model(ode=ode), data, {p: {} for p in parameters}, {s: {} for s in ode})


def integrated_batch(
    ode: Mapping[str, str],
    values: Mapping[str, float],
    starts: Sequence[Sequence[float]],
    outputs: Sequence[Sequence[float]],
    *,
    relative: float = 1e-6,
    begin: Sequence[float] | None = None,
    max_steps: int = 100_000,
    **options: Any,
) -> BatchSolution | BatchFailure:
    """Problems from states `starts` at times `begin`, with sensitivities by values, then starts."""
    problem = problem_of(ode, tuple(values))
    field = VectorField.of(problem.model, problem.conditions)
    n, p, k = len(ode), len(field.scalars), len(starts)
    pattern = SensitivityPattern(p + n, frozenset((j, j) for j in range(p)))
    integrator = LocalLinearizationBatchIntegrator(
        field, pattern, relative, 1e-3 * relative, **options
    )
    problems = InitialValueProblems(
        np.zeros(k) if begin is None else np.array(begin),
        [np.array(times) for times in outputs],
        np.zeros((k, 0, 5)),
        np.array(starts),
        np.array([values[name] for name in field.scalars]),
        np.concatenate([np.zeros((n, p)), np.eye(n)], axis=1),
        np.concatenate([np.eye(p), np.zeros((p, n))], axis=1),
    )
    return integrator.integrate(problems, max_steps)


def whole(*arguments: Any, **options: Any) -> BatchSolution:
    found = integrated_batch(*arguments, **options)
    assert isinstance(found, BatchSolution), found
    return found


GROWTH = {"x": "k*x*(1 - x)*(1 + cos(t))"}
"""Logistic growth in the time t + sin t."""


def grown(t: Array, k: float, x: float) -> tuple[Array, Array]:
    """Its solution, and that by k and by x."""
    tau = t + np.sin(t)
    e = (1 / x - 1) * np.exp(-k * tau)
    y = 1 / (1 + e)
    return y, np.stack([y * y * e * tau, y * y * np.exp(-k * tau) / x**2], axis=-1)


@pytest.mark.parametrize("order", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_states_have_their_order_and_sensitivities_one_less(order: Order) -> None:
    times = np.array([1.0, 2.0])
    states, sensitivities = grown(times, 1.3, 0.2)
    errors = []
    for step in (1 / 80, 1 / 160, 1 / 320):
        found = whole(GROWTH, {"k": 1.3}, [[0.2]], [times], step=step, order=order)
        assert found.steps[0] == round(2 / step)
        errors.append(
            [
                np.abs(found.states[:, 0] - states).max(),
                np.abs(found.sensitivities[:, 0] - sensitivities).max(),
            ]
        )
    orders = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    assert orders[-1] == pytest.approx([order, order - 1], abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_two_coupled_states_have_the_same_orders(order: Order) -> None:
    """FitzHugh-Nagumo with a forcing, against the Taylor method at 1e-13."""
    ode = {"v": "c*(v - v^3/3 + w) + sin(2*t)*d", "w": "-(v - a + b*w)/c"}
    values = {"a": 0.2, "b": 0.2, "c": 3.0, "d": 0.5}
    problem = problem_of(ode, tuple(values))
    vector = problem.vector({**values, "v": -1.0, "w": 1.0})
    forward = ForwardMap(problem, "heyoka")
    forward.engines.tolerances["heyoka"] = 1e-13
    exact = integrated(forward, vector)
    errors = []
    for step in (1 / 100, 1 / 200, 1 / 400):
        found = whole(ode, values, [[-1.0, 1.0]], [exact.times[1:]], step=step, order=order)
        # The field keeps its scalars in an order of its own.
        names = VectorField.of(problem.model, problem.conditions).scalars
        columns = [problem.keys.index(name) for name in (*names, "v", "w")]
        errors.append(
            [
                np.abs(found.states - exact.states[1:]).max(),
                np.abs(found.sensitivities - by_unknown(exact, 6)[1:][:, :, columns]).max(),
            ]
        )
    orders = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    assert orders[-1] == pytest.approx([order, order - 1], abs=0.15)


@pytest.mark.parametrize("order", ORDERS)
def test_a_linear_field_with_a_ramp_is_solved_exactly_in_one_step(order: Order) -> None:
    """x'' = -x + a + b t: the steady ramp and an oscillation around it."""
    ode = {"x": "v", "v": "-x + 2 + 0.5*t"}
    found = whole(ode, {}, [[1.0, 0.0]], [[3.0, 7.0]], order=order)
    t = np.array([3.0, 7.0])
    expected = 2 + 0.5 * t - np.cos(t) - 0.5 * np.sin(t)
    assert found.states[:, 0] == pytest.approx(expected, abs=2e-14)
    rotation = np.array([[np.cos(7), np.sin(7)], [-np.sin(7), np.cos(7)]])
    assert found.sensitivities[1] == pytest.approx(rotation, abs=1e-13)
    assert found.steps[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_stiffness_costs_no_steps(order: Order) -> None:
    """A-stable: decays within a microsecond and a second to a slow curve, over ten."""
    ode = {"x": "-1000000*(x - cos(t)) - sin(t)", "y": "x - y"}
    found = whole(ode, {}, [[3.0, 0.5]], [[10.0]], relative=1e-4, order=order)
    t = 10.0
    y = (np.cos(t) + np.sin(t)) / 2
    assert found.states[0] == pytest.approx([np.cos(t), y], abs=1e-3)
    assert found.steps[0] < 1_000
    # An explicit method of order 3 is stable to h = 2.5e-6 and takes four million.


@pytest.mark.parametrize("order", ORDERS)
def test_large_steps_of_a_stiff_linear_field_do_not_oscillate(order: Order) -> None:
    ode = {"x": "-1000000*(x - 1)"}
    found = whole(ode, {}, [[5.0]], [[1.0, 2.0, 50.0]], step=0.5, order=order)
    assert found.states[:, 0] == pytest.approx(1.0, abs=1e-12)
    assert np.abs(found.sensitivities).max() < 1e-12


@pytest.mark.parametrize("order", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_errors_fall_with_the_tolerance(order: Order) -> None:
    times = [0.5, 1.0, 2.0]
    states, sensitivities = grown(np.array(times), 1.3, 0.2)
    errors, derivatives = [], []
    for relative in (1e-4, 1e-6, 1e-8):
        found = whole(GROWTH, {"k": 1.3}, [[0.2]], [times], relative=relative, order=order)
        errors.append(np.abs(found.states[:, 0] - states).max())
        derivatives.append(np.abs(found.sensitivities[:, 0] - sensitivities).max())
    falls = -np.diff(np.log10(errors)) / 2
    # The step is that of the local error of order 3; the global error has the order 2 or 3.
    assert falls == pytest.approx(order / 3, abs=0.2)
    assert -np.diff(np.log10(derivatives)) / 2 == pytest.approx((order - 1) / 3, abs=0.2)
    assert errors[-1] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_the_unit_of_time_changes_no_step(order: Order) -> None:
    """A year, or its seconds: the same steps lead to the same states."""
    ends = []
    for unit in (1.0, 2.0**25):
        ode = {
            "prey": f"(1.1*prey - 0.4*prey*hunters)/{unit}",
            "hunters": f"(0.4*prey*hunters - 0.4*hunters)/{unit}",
        }
        found = whole(ode, {}, [[3.0, 0.5]], [[8.0 * unit]], relative=1e-5, order=order)
        ends.append(found)
    assert ends[0].steps.tolist() == ends[1].steps.tolist()
    assert ends[0].states == pytest.approx(ends[1].states, rel=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_the_distance_of_the_end_does_not_change_the_first_step(order: Order) -> None:
    first = []
    for end in (10.0, 1000.0):
        found = integrated_batch({"x": "-5*x^3"}, {}, [[2.0]], [[end]], max_steps=1, order=order)
        assert isinstance(found, BatchFailure)
        first.append(found.failure.time)
    assert first[0] == first[1] > 0


@pytest.mark.slow
def test_a_batch_equals_its_problems_solved_one_by_one() -> None:
    ode = {"v": "c*(v - v^3/3 + w) + sin(t)", "w": "-(v - 0.2 + 0.2*w)/c"}
    rng = np.random.default_rng(0)
    starts = rng.uniform(-2.0, 2.0, (12, 2)).tolist()
    begin = rng.uniform(0.0, 20.0, 12).tolist()
    lengths = [rng.uniform(0.01, 2.0, rng.integers(1, 5)) for _ in begin]
    times = [(t + np.cumsum(gaps)).tolist() for t, gaps in zip(begin, lengths, strict=True)]
    for order in ORDERS:
        options = {"relative": 1e-5, "order": order}
        together = whole(ode, {"c": 3.0}, starts, times, begin=begin, **options)
        alone = [
            whole(ode, {"c": 3.0}, [start], [own], begin=[time], **options)
            for start, own, time in zip(starts, times, begin, strict=True)
        ]
        assert together.steps.tolist() == [int(one.steps[0]) for one in alone]
        states = np.concatenate([one.states for one in alone])
        assert together.states == pytest.approx(states, rel=1e-10, abs=1e-12)
        sensitivities = np.concatenate([one.sensitivities for one in alone])
        assert together.sensitivities == pytest.approx(sensitivities, rel=1e-9, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("start", [0.6, 1.0, 20.0])
def test_a_blow_up_ends_at_its_time(order: Order, start: float) -> None:
    found = integrated_batch(
        {"x": "k*x^2"}, {"k": 1.0}, [[0.1], [start]], [[2.0], [2.0]], order=order
    )
    assert isinstance(found, BatchFailure)
    assert found.index == 1
    assert found.failure.time == pytest.approx(1 / start, rel=1e-3)
    assert "without bound" in found.failure.reason
    assert not found.failure.out_of_steps
    assert found.failure.steps < 5_000


@pytest.mark.slow
@pytest.mark.parametrize(("rhs", "dry"), [("-k*sqrt(x)", 2.0), ("-k*x^0.75", 4.0)])
def test_a_tank_that_runs_dry_ends(rhs: str, dry: float) -> None:
    for order in ORDERS:
        found = integrated_batch({"x": rhs}, {"k": 1.0}, [[1.0]], [[2 * dry]], order=order)
        assert isinstance(found, BatchFailure)
        assert found.failure.time == pytest.approx(dry, rel=0.05)


def test_a_start_outside_the_domain_is_broken_at_once() -> None:
    found = integrated_batch({"x": "k*log(x)"}, {"k": 1.0}, [[1.0], [-1.0]], [[1.0], [1.0]])
    assert isinstance(found, BatchFailure)
    assert (found.index, found.failure.time, found.failure.steps) == (1, 0.0, 0)


@pytest.mark.slow
def test_too_many_steps_are_reported_with_how_many_are_missing() -> None:
    found = integrated_batch({"x": "y", "y": "-x^3"}, {}, [[1.0, 0.0]], [[100.0]], max_steps=50)
    assert isinstance(found, BatchFailure)
    assert found.failure.out_of_steps
    assert found.failure.steps == 50
    full = whole({"x": "y", "y": "-x^3"}, {}, [[1.0, 0.0]], [[100.0]])
    assert found.failure.steps_ahead + 50 == pytest.approx(full.steps[0], rel=0.7)


def test_an_eigenvalue_that_makes_the_filter_singular_is_handled() -> None:
    columns = np.ones((1, 1, 1))
    assert np.isfinite(damped(np.array([[[4.0]]]), columns)).all()
    found = whole({"x": "x"}, {}, [[1.0]], [[4.0]])
    assert found.states[0, 0] == pytest.approx(np.exp(4.0), rel=1e-13)


def test_a_large_system_is_solved_as_a_small_one() -> None:
    """A chain of 120 compartments with one rate, and a nonlinear outflow."""
    ode = {"x0": "-k*x0"}
    ode |= {f"x{i}": f"k*(x{i - 1} - x{i})" for i in range(1, 119)}
    ode["x119"] = "k*x118 - x119^2"
    problem = problem_of(ode, ("k",), 2.0)
    vector = np.array([3.0, *np.linspace(1.0, 2.0, 120)])
    times = problem.conditions[0].times
    field = VectorField.of(problem.model, problem.conditions)
    integrator = LocalLinearizationBatchIntegrator(
        field, SensitivityPattern(1, frozenset([(0, 0)])), 1e-5, 1e-8, order=3
    )
    problems = InitialValueProblems(
        np.zeros(1),
        [times[1:]],
        np.zeros((1, 0, 5)),
        vector[None, 1:],
        vector[:1],
        np.zeros((120, 1)),
        np.ones((1, 1)),
    )
    found = integrator.integrate(problems, 10_000)
    assert isinstance(found, BatchSolution)
    fixed = problem.with_parameters(**{f"x{i}": vector[1 + i] for i in range(120)})
    exact = integrated(ForwardMap(fixed, "casadi"), vector[:1])
    assert found.states == pytest.approx(exact.states[1:], rel=1e-5)
    assert found.sensitivities == pytest.approx(exact.sensitivities[1:], rel=1e-3, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ZOO if name != "nonlinear algebra"])
def test_problems_with_every_feature_agree_with_the_other_engines(name: str) -> None:
    """Inputs, events, switches, kinks, several experiments, eliminated algebra."""
    problem, vector = ZOO[name]()
    expected = evaluated(ForwardMap(problem, tolerance=1e-10), vector)
    found = evaluated(ForwardMap(problem, LL, tolerance=1e-8), vector)
    assert found.residuals == pytest.approx(expected.residuals, rel=1e-6, abs=1e-6)
    assert found.jacobian == pytest.approx(expected.jacobian, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("fitzhugh-nagumo", marks=pytest.mark.slow),
        "crauste-p",
        "hiv-p",
        "alpha-pinene",
    ],
)
def test_library_problems_agree_with_the_taylor_method(name: str) -> None:
    problem = library.load(name)
    known = library.reference(name)
    values = {**known.parameters, **known.initial}
    vector = problem.vector({key: values[key] for key in problem.keys})
    expected = integrated(ForwardMap(problem, "heyoka"), vector)
    forward = ForwardMap(problem, LL, tolerance=1e-5)
    found = integrated(forward, vector)
    size = np.abs(expected.states).max(axis=0)
    assert (np.abs(found.states - expected.states) / size).max() < 1e-5
    derivatives = np.abs(expected.sensitivities).max(axis=(0, 1))
    assert (np.abs(found.sensitivities - expected.sensitivities) / derivatives).max() < 2e-3


def test_the_cost_is_that_of_the_evaluation() -> None:
    problem, vector = ZOO["doses and switches"]()
    forward = ForwardMap(problem, LL)
    # Sensitivities take part in the error control: without them the steps are longer.
    assert forward.cost(vector) == pytest.approx(evaluated(forward, vector).cost, rel=1e-5)
    assert forward.accuracy() == 1e-6
    assert ForwardMap(problem, LL, tolerance=1e-4).accuracy() == 1e-4
    assert forward.engines.preferred() == LL


def test_algebraic_equations_are_refused() -> None:
    problem, vector = ZOO["nonlinear algebra"]()
    with pytest.raises(InputError, match="use engine='casadi'"):
        ForwardMap(problem, LL).evaluate(vector)


@pytest.mark.slow
def test_a_failure_has_its_experiment_time_and_reason() -> None:
    problem = problem_of({"x": "k*x^2"}, ("k",), 2.0)
    found = ForwardMap(problem, LL).evaluate(np.array([1.0, 1.0]))
    assert isinstance(found, Failure)
    assert found.time == pytest.approx(1.0, rel=1e-3)
    assert "without bound" in found.reason
