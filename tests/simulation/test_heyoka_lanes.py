"""InitialValueProblems in lanes do not know of each other: each is what it is alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.problem.vector_field import Structure, VectorField
from odefit.simulation.engine import (
    BatchFailure,
    BatchSolution,
    EngineFailure,
    InitialState,
    InitialValueProblems,
    Path,
    Segment,
)
from odefit.simulation.heyoka_engine import LANES, HeyokaEngine
from odefit.simulation.heyoka_lanes import HeyokaBatchIntegrator
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
        grids: Sequence[Sequence[float]],
        states: Array,
        tolerance: float = 1e-12,
    ) -> None:
        data = {"t": [0.0, 1.0], next(iter(ode)): [1.0, 1.0]}
        problem = Problem(Model(ode=ode), data, {p: {} for p in values}, {s: {} for s in ode})
        self.field = VectorField.of(problem.model, problem.conditions)
        n, p = len(ode), len(self.field.scalars)
        self.structure = Structure(p + n, frozenset((j, j) for j in range(p)))
        self.tolerance = tolerance
        self.stretches = InitialValueProblems(
            np.array(starts, dtype=float),
            [np.array(g, dtype=float) for g in grids],
            np.zeros((len(starts), 0, 5)),
            np.asarray(states, dtype=float),
            np.array([values[name] for name in self.field.scalars]),
            np.concatenate([np.zeros((n, p)), np.eye(n)], axis=1),
            np.concatenate([np.eye(p), np.zeros((p, n))], axis=1),
        )

    def together(self, max_steps: int = 10_000) -> BatchSolution | BatchFailure:
        lanes = HeyokaBatchIntegrator(self.field, self.structure, self.tolerance)
        return lanes.integrate(self.stretches, max_steps)

    def alone(self, k: int, max_steps: int = 10_000) -> Path | EngineFailure:
        s = self.stretches
        leg = Segment(float(s.starts[k]), s.grids[k], np.zeros(0), s.polynomials[k : k + 1])
        nothing = np.zeros(0)
        seed = InitialState(
            s.states[k], s.scalars, s.sensitivities, s.scalar_sensitivities, nothing
        )
        engine = HeyokaEngine(self.field, self.structure, self.tolerance)
        return engine.integrate(leg, seed, max_steps)


@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 1, 3 * LANES + 2])
def test_any_number_of_stretches_with_any_times_are_those_of_the_single_engine(count: int) -> None:
    """Grids of different lengths, some with a single time, starts anywhere."""
    random = np.random.default_rng(count)
    starts = random.uniform(-2.0, 5.0, count)
    grids = [a + np.cumsum(random.uniform(1e-3, 0.2, random.integers(1, 6))) for a in starts]
    states = random.normal(size=(count, 3)) * 5 + [0, 0, 20]
    setting = Setting(LORENZ, VALUES, starts.tolist(), [g.tolist() for g in grids], states)
    bundle = setting.together()
    assert isinstance(bundle, BatchSolution)
    row = 0
    for k, grid in enumerate(grids):
        path = setting.alone(k)
        assert isinstance(path, Path)
        here = slice(row, row + len(grid))
        scale = 1e-9 * np.abs(path.sensitivities).max()
        assert bundle.states[here] == pytest.approx(path.states, rel=1e-9, abs=1e-9)
        assert bundle.sensitivities[here] == pytest.approx(path.sensitivities, abs=scale)
        assert bundle.steps[k] > 0
        row += len(grid)
    assert len(bundle.states) == row


def test_long_and_short_stretches_share_a_group() -> None:
    """x = x0 exp(-k t) over a thousandth and over a thousand."""
    ends = [1e-3, 1e3, 1.0, 30.0, 1e-9]
    setting = Setting(
        {"x": "-k*x"}, {"k": 0.1}, [0.0] * 5, [[e / 2, e] for e in ends], np.ones((5, 1))
    )
    bundle = setting.together()
    assert isinstance(bundle, BatchSolution)
    times = np.array([[e / 2, e] for e in ends]).ravel()
    assert bundle.states[:, 0] == pytest.approx(np.exp(-0.1 * times), rel=1e-9, abs=1e-14)
    by_k = -times * np.exp(-0.1 * times)
    assert bundle.sensitivities[:, 0, 0] == pytest.approx(by_k, rel=1e-8, abs=1e-11)


def test_the_stretch_that_blows_up_is_named() -> None:
    """x = x0 / (1 - x0 t): number 5 reaches infinity at t = 1/4."""
    states = np.array([[0.1], [-3.0], [0.2], [0.1], [0.3], [4.0], [0.1]])
    setting = Setting({"x": "k*x^2"}, {"k": 1.0}, [0.0] * 7, [[1.0]] * 7, states)
    broken = setting.together(500)
    assert isinstance(broken, BatchFailure)
    assert broken.stretch == 5
    assert broken.stop.time == pytest.approx(0.25, abs=0.01)


def test_effort_that_runs_out_is_told_from_a_blow_up() -> None:
    states = np.array([[1.0], [1.0], [1.0]])
    grids = [[1.0], [1e6], [1.0]]
    setting = Setting({"x": "cos(k*t)*x"}, {"k": 1.0}, [0.0] * 3, grids, states)
    broken = setting.together(50)
    assert isinstance(broken, BatchFailure)
    assert broken.stretch == 1
    assert broken.stop.out_of_steps
    assert 0 < broken.stop.time < 1e6


@pytest.mark.parametrize("start", [np.nan, np.inf, 1e200])
def test_starts_that_are_no_numbers_break_their_own_stretch(start: float) -> None:
    states = np.array([[1.0], [start], [2.0]])
    setting = Setting({"x": "-k*x^3"}, {"k": 1.0}, [0.0] * 3, [[1.0]] * 3, states)
    with np.errstate(all="ignore"):
        broken = setting.together(2_000)
    assert isinstance(broken, BatchFailure)
    assert broken.stretch == 1


def test_lanes_can_be_used_again_after_a_failure() -> None:
    fine = Setting({"x": "k*x^2"}, {"k": 1.0}, [0.0] * 3, [[1.0]] * 3, np.full((3, 1), 0.5))
    lanes = HeyokaBatchIntegrator(fine.field, fine.structure, 1e-12)
    bad = Setting({"x": "k*x^2"}, {"k": 1.0}, [0.0] * 3, [[1.0]] * 3, np.full((3, 1), 5.0))
    assert isinstance(lanes.integrate(bad.stretches, 300), BatchFailure)
    found = lanes.integrate(fine.stretches, 300)
    assert isinstance(found, BatchSolution)
    assert found.states[:, 0] == pytest.approx(1.0)
    assert found.sensitivities[:, 0] == pytest.approx(np.tile([0.5**2 / 0.25, 4.0], (3, 1)))


def test_the_same_stretches_in_another_order_are_the_same_to_rounding() -> None:
    random = np.random.default_rng(0)
    grids = [[0.1 * (1 + k % 3)] for k in range(9)]
    states = random.normal(size=(9, 3)) + np.array([0.0, 0.0, 20.0])
    setting = Setting(LORENZ, VALUES, [0.0] * 9, grids, states)
    first = setting.together()
    again = setting.together()
    order = random.permutation(9)
    other = Setting(LORENZ, VALUES, [0.0] * 9, [grids[k] for k in order], states[order]).together()
    assert isinstance(first, BatchSolution)
    assert isinstance(again, BatchSolution)
    assert isinstance(other, BatchSolution)
    assert np.array_equal(first.states, again.states)  # results are to hang on nothing else
    assert other.states == pytest.approx(first.states[order], rel=1e-11)


def test_each_stretch_has_inputs_of_its_own() -> None:
    """x' = u, u = a + b (t - left) by stretch."""
    data = {"t": [0.0, 1.0], "u": [0.0, 1.0], "x": [1.0, 1.0]}
    problem = Problem(Model(ode={"x": "k*u"}, inputs={"u": "linear"}), data, {"k": {}}, {"x": {}})
    field = VectorField.of(problem.model, problem.conditions)
    structure = Structure(2, frozenset({(0, 0)}))
    lefts, a, b = np.array([0.0, 1.0, 5.0]), np.array([1.0, -2.0, 0.0]), np.array([0.0, 3.0, 1.0])
    polynomials = np.zeros((3, 1, 5))
    polynomials[:, 0, 0], polynomials[:, 0, 1], polynomials[:, 0, 2] = lefts, a, b
    stretches = InitialValueProblems(
        lefts,
        [np.array([t + 2.0]) for t in lefts],
        polynomials,
        np.zeros((3, 1)),
        np.array([0.5]),
        np.array([[0.0, 1.0]]),
        np.array([[1.0, 0.0]]),
    )
    found = HeyokaBatchIntegrator(field, structure, 1e-12).integrate(stretches, 100)
    assert isinstance(found, BatchSolution)
    integral = 2 * a + 2 * b
    assert found.states[:, 0] == pytest.approx(0.5 * integral)
    assert found.sensitivities[:, 0, 0] == pytest.approx(integral)
