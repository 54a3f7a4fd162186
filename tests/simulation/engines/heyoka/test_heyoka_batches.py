"""Problems of a batch do not know of each other: each has the solution that it has alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import (
    BatchFailure,
    BatchSolution,
    EngineFailure,
    InitialValueProblems,
    SegmentSolution,
    Values,
)
from odefit.simulation.engines.heyoka.heyoka_batches import HeyokaBatchIntegrator
from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine
from odefit.simulation.engines.heyoka.heyoka_equations import LANES
from odefit.simulation.engines.segments import Segment
from tests.simulation.numerics import Array

LORENZ = {"x": "s*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"}
VALUES = {"s": 10.0, "r": 28.0, "b": 8 / 3}


class Setting:
    """InitialValueProblems of one field, with sensitivities by all scalars and all states."""

    def __init__(
        self,
        ode: Mapping[str, str],
        values: Mapping[str, float],
        starts: Sequence[float],
        times: Sequence[Sequence[float]],
        states: Array,
        tolerance: float = 1e-12,
    ) -> None:
        data = {"t": [0.0, 1.0], next(iter(ode)): [1.0, 1.0]}
        problem = Problem(Model(ode=ode), data, {p: {} for p in values}, {s: {} for s in ode})
        self.field = VectorField.of(problem.model, problem.conditions)
        n, p = len(ode), len(self.field.scalars)
        self.pattern = SensitivityPattern(p + n, frozenset((j, j) for j in range(p)))
        self.tolerance = tolerance
        self.problems = InitialValueProblems(
            np.array(starts, dtype=float),
            [np.array(g, dtype=float) for g in times],
            np.zeros((len(starts), 0, 5)),
            np.asarray(states, dtype=float),
            np.array([values[name] for name in self.field.scalars]),
            np.concatenate([np.zeros((n, p)), np.eye(n)], axis=1),
            np.concatenate([np.eye(p), np.zeros((p, n))], axis=1),
        )

    def together(self, max_steps: int = 10_000) -> BatchSolution | BatchFailure:
        integrator = HeyokaBatchIntegrator(self.field, self.pattern, self.tolerance)
        return integrator.integrate(self.problems, max_steps)

    def alone(self, k: int, max_steps: int = 10_000) -> SegmentSolution | EngineFailure:
        s = self.problems
        segment = Segment(float(s.starts[k]), s.times[k], np.zeros(0), s.polynomials[k : k + 1])
        nothing = np.zeros(0)
        initial = Values(s.states[k], s.scalars, s.sensitivities, s.scalar_sensitivities, nothing)
        engine = HeyokaEngine(self.field, self.pattern, self.tolerance)
        return engine.integrate(segment, initial, max_steps)


@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 1, 3 * LANES + 2])
def test_any_number_of_problems_with_any_times_is_solved_as_by_the_single_engine(
    count: int,
) -> None:
    """Grids of different lengths, some with a single time, starts anywhere."""
    random = np.random.default_rng(count)
    starts = random.uniform(-2.0, 5.0, count)
    times = [a + np.cumsum(random.uniform(1e-3, 0.2, random.integers(1, 6))) for a in starts]
    states = random.normal(size=(count, 3)) * 5 + [0, 0, 20]
    setting = Setting(LORENZ, VALUES, starts.tolist(), [g.tolist() for g in times], states)
    solution = setting.together()
    assert isinstance(solution, BatchSolution)
    row = 0
    for k, grid in enumerate(times):
        path = setting.alone(k)
        assert isinstance(path, SegmentSolution)
        here = slice(row, row + len(grid))
        scale = 1e-9 * np.abs(path.sensitivities).max()
        assert solution.states[here] == pytest.approx(path.states, rel=1e-9, abs=1e-9)
        assert solution.sensitivities[here] == pytest.approx(path.sensitivities, abs=scale)
        assert solution.steps[k] > 0
        row += len(grid)
    assert len(solution.states) == row


def test_long_and_short_problems_share_a_batch() -> None:
    """x = x0 exp(-k t) over a thousandth and over a thousand."""
    ends = [1e-3, 1e3, 1.0, 30.0, 1e-9]
    setting = Setting(
        {"x": "-k*x"}, {"k": 0.1}, [0.0] * 5, [[e / 2, e] for e in ends], np.ones((5, 1))
    )
    solution = setting.together()
    assert isinstance(solution, BatchSolution)
    times = np.array([[e / 2, e] for e in ends]).ravel()
    assert solution.states[:, 0] == pytest.approx(np.exp(-0.1 * times), rel=1e-9, abs=1e-14)
    by_k = -times * np.exp(-0.1 * times)
    assert solution.sensitivities[:, 0, 0] == pytest.approx(by_k, rel=1e-8, abs=1e-11)


def test_the_problem_that_blows_up_is_named() -> None:
    """x = x0 / (1 - x0 t): number 5 reaches infinity at t = 1/4."""
    states = np.array([[0.1], [-3.0], [0.2], [0.1], [0.3], [4.0], [0.1]])
    setting = Setting({"x": "k*x^2"}, {"k": 1.0}, [0.0] * 7, [[1.0]] * 7, states)
    failed = setting.together(500)
    assert isinstance(failed, BatchFailure)
    assert failed.index == 5
    assert failed.failure.time == pytest.approx(0.25, abs=0.01)


def test_exhausted_steps_are_distinguished_from_a_blow_up() -> None:
    states = np.array([[1.0], [1.0], [1.0]])
    times = [[1.0], [1e6], [1.0]]
    setting = Setting({"x": "cos(k*t)*x"}, {"k": 1.0}, [0.0] * 3, times, states)
    failed = setting.together(50)
    assert isinstance(failed, BatchFailure)
    assert failed.index == 1
    assert failed.failure.out_of_steps
    assert 0 < failed.failure.time < 1e6


@pytest.mark.parametrize("start", [np.nan, np.inf, 1e200])
def test_nonfinite_initial_states_fail_their_problem_alone(start: float) -> None:
    """Even where another state does not depend on them, and stays finite."""
    states = np.array([[1.0, 1.0], [start, 1.0], [2.0, 1.0]])
    ode = {"x": "-k*x^3", "y": "-k*y"}
    setting = Setting(ode, {"k": 1.0}, [0.0] * 3, [[1.0]] * 3, states)
    with np.errstate(all="ignore"):
        failed = setting.together(2_000)
    assert isinstance(failed, BatchFailure)
    assert failed.index == 1


def test_an_integrator_can_be_used_again_after_a_failure() -> None:
    fine = Setting({"x": "k*x^2"}, {"k": 1.0}, [0.0] * 3, [[1.0]] * 3, np.full((3, 1), 0.5))
    integrator = HeyokaBatchIntegrator(fine.field, fine.pattern, 1e-12)
    bad = Setting({"x": "k*x^2"}, {"k": 1.0}, [0.0] * 3, [[1.0]] * 3, np.full((3, 1), 5.0))
    assert isinstance(integrator.integrate(bad.problems, 300), BatchFailure)
    found = integrator.integrate(fine.problems, 300)
    assert isinstance(found, BatchSolution)
    assert found.states[:, 0] == pytest.approx(1.0)
    assert found.sensitivities[:, 0] == pytest.approx(np.tile([0.5**2 / 0.25, 4.0], (3, 1)))


def test_the_same_problems_in_another_order_have_the_same_solutions_to_rounding() -> None:
    random = np.random.default_rng(0)
    times = [[0.1 * (1 + k % 3)] for k in range(9)]
    states = random.normal(size=(9, 3)) + np.array([0.0, 0.0, 20.0])
    setting = Setting(LORENZ, VALUES, [0.0] * 9, times, states)
    first = setting.together()
    again = setting.together()
    order = random.permutation(9)
    other = Setting(LORENZ, VALUES, [0.0] * 9, [times[k] for k in order], states[order]).together()
    assert isinstance(first, BatchSolution)
    assert isinstance(again, BatchSolution)
    assert isinstance(other, BatchSolution)
    assert np.array_equal(first.states, again.states)  # results are to hang on nothing else
    assert other.states == pytest.approx(first.states[order], rel=1e-11)


def test_each_problem_has_inputs_of_its_own() -> None:
    """x' = u, u = a + b (t - left), of each problem its own."""
    data = {"t": [0.0, 1.0], "u": [0.0, 1.0], "x": [1.0, 1.0]}
    problem = Problem(Model(ode={"x": "k*u"}, inputs={"u": "linear"}), data, {"k": {}}, {"x": {}})
    field = VectorField.of(problem.model, problem.conditions)
    pattern = SensitivityPattern(2, frozenset({(0, 0)}))
    lefts, a, b = np.array([0.0, 1.0, 5.0]), np.array([1.0, -2.0, 0.0]), np.array([0.0, 3.0, 1.0])
    polynomials = np.zeros((3, 1, 5))
    polynomials[:, 0, 0], polynomials[:, 0, 1], polynomials[:, 0, 2] = lefts, a, b
    problems = InitialValueProblems(
        lefts,
        [np.array([t + 2.0]) for t in lefts],
        polynomials,
        np.zeros((3, 1)),
        np.array([0.5]),
        np.array([[0.0, 1.0]]),
        np.array([[1.0, 0.0]]),
    )
    found = HeyokaBatchIntegrator(field, pattern, 1e-12).integrate(problems, 100)
    assert isinstance(found, BatchSolution)
    integral = 2 * a + 2 * b
    assert found.states[:, 0] == pytest.approx(0.5 * integral)
    assert found.sensitivities[:, 0, 0] == pytest.approx(integral)
