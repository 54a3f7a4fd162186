"""Tests of steps through the interior of bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit.common.arrays import Array
from odefit.methods.local.interior_steps import Interior, InteriorModel, approach
from odefit.methods.local.stopping import Milestone, Tolerances, usable
from odefit.methods.local.trust_region import minimise


@dataclass(frozen=True, eq=False)
class Found:
    """A cost with its Gauss-Newton model."""

    residuals: Array
    jacobian: Array

    @property
    def cost(self) -> float:
        """Half the sum of squares."""
        return 0.5 * float(self.residuals @ self.residuals)


def decays(times: Array, data: Array) -> type:
    """Return a cost of two exponentials of time whose rates are given as decimal logarithms."""

    class Evaluate:
        """Counts its evaluations."""

        count = 0

        def __call__(self, z: Array) -> Found:
            """Return the cost at the logarithms of two rates."""
            self.count += 1
            rates = 10.0**z
            curves = np.exp(-np.outer(times, rates))
            jacobian = -times[:, None] * curves * rates * np.log(10.0)
            return Found(curves.sum(axis=1) - data, jacobian)

    return Evaluate


def random_model(seed: int, size: int) -> tuple[InteriorModel, Array, Array, Array]:
    """Return a model, its point and its bounds."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.uniform(0.0, 3.0, size), rng.uniform(0.0, 3.0, size)
    x = lower + rng.random(size) * (upper - lower)
    x = np.where(rng.random(size) < 0.2, lower, x)  # some at their bounds
    jacobian = rng.normal(size=(size + 3, size)) * 10 ** rng.uniform(-3, 3, size)
    return InteriorModel(rng.normal(size=size + 3), jacobian, x, lower, upper), x, lower, upper


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([1e-3, 0.1, 1.0, 100.0]))
@settings(max_examples=200, deadline=None)
def test_steps_stay_within_bounds_and_radius_and_lower_the_model(
    seed: int, size: int, radius: float
) -> None:
    model, x, lower, upper = random_model(seed, size)
    d = model.step(radius)
    assert (x + d >= lower - 1e-12).all()
    assert (x + d <= upper + 1e-12).all()
    assert model.length(d) <= 1.02 * radius
    assert model.decrease(d) >= 0.0


@given(st.integers(0, 10**6), st.integers(2, 8))
@settings(max_examples=100, deadline=None)
def test_a_step_is_at_least_as_good_as_many_along_the_gradient(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    lower, upper = np.full(size, -1e3), np.full(size, 1e3)
    x = np.zeros(size)
    jacobian = rng.normal(size=(size + 3, size))
    residuals = rng.normal(size=size + 3)
    model = InteriorModel(residuals, jacobian, x, lower, upper)
    best = model.decrease(model.step(50.0))
    # The direction of the gradient in scaled coordinates is multiplied by the squared root scales.
    gradient = jacobian.T @ residuals
    way = -gradient * np.where(gradient < 0, upper - x, x - lower)
    for share in np.geomspace(1e-9, 1.0, 60):
        d = share * way
        if model.length(d) <= 50.0 and (np.abs(d) < 1e3).all():
            assert model.decrease(d) <= best * (1 + 1e-6) + 1e-12


def test_without_bounds_nearby_a_whole_step_is_the_gauss_newton_step() -> None:
    rng = np.random.default_rng(1)
    jacobian, residuals = rng.normal(size=(9, 2)), rng.normal(size=9)
    wide = np.full(2, 1e9)
    model = InteriorModel(residuals, jacobian, np.zeros(2), -wide, wide)
    exact = -np.linalg.lstsq(jacobian, residuals, rcond=None)[0]
    assert model.step(1e6) == pytest.approx(exact, rel=1e-6)


def test_an_unknown_without_effect_stays() -> None:
    jacobian = np.array([[1.0, 0.0], [2.0, 0.0]])
    model = InteriorModel(np.ones(2), jacobian, np.zeros(2), np.full(2, -3.0), np.full(2, 3.0))
    d = model.step(1.0)
    assert d[1] == 0.0
    assert d[0] < 0.0


def test_an_unknown_at_the_bound_that_it_presses_on_stays() -> None:
    model = InteriorModel(
        np.array([1.0, 1.0]), np.eye(2), np.array([-1.0, 0.0]), np.full(2, -1.0), np.full(2, 1.0)
    )
    d = model.step(0.5)
    assert d[0] == 0.0
    assert d[1] < 0.0


def test_an_approach_ends_near_the_optimum_and_the_search_reaches_it() -> None:
    times = np.linspace(0.0, 5.0, 30)
    truth = np.array([-1.0, 0.5])
    data = np.exp(-np.outer(times, 10**truth)).sum(axis=1)
    evaluate = decays(times, data)()
    start, lower, upper = np.array([-3.0, 1.2]), np.full(2, -4.0), np.full(2, 3.0)
    first = usable(evaluate(start))
    assert first is not None
    tolerances = Tolerances()
    end = approach(
        evaluate,
        start,
        first,
        lower,
        upper,
        tolerances,
        lambda: False,
        Milestone(tolerances, 1, first.cost),
    )
    assert end.evaluations == evaluate.count
    assert end.at.cost < 1e-3 * first.cost
    minimum = minimise(evaluate, start, lower, upper, tolerances, interior=Interior.UNTIL_NEAR)
    assert minimum.converged
    assert np.sort(minimum.vector) == pytest.approx(truth, abs=1e-6)


def test_an_optimum_at_a_bound_is_reached() -> None:
    times = np.linspace(0.0, 5.0, 30)
    data = np.exp(-np.outer(times, [0.01, 3.0])).sum(axis=1)
    lower, upper = np.array([-1.0, -1.0]), np.full(2, 3.0)
    minimum = minimise(
        decays(times, data)(),
        np.array([0.5, 2.0]),
        lower,
        upper,
        Tolerances(),
        interior=Interior.UNTIL_NEAR,
    )
    plain = minimise(decays(times, data)(), np.array([-0.9, 0.4]), lower, upper, Tolerances())
    assert minimum.converged
    assert minimum.vector.min() == -1.0
    assert np.sort(minimum.vector) == pytest.approx(np.sort(plain.vector), abs=1e-5)


def test_a_search_that_is_stopped_or_out_of_evaluations_returns_its_best() -> None:
    times = np.linspace(0.0, 5.0, 30)
    data = np.exp(-np.outer(times, [0.1, 3.0])).sum(axis=1)
    start, lower, upper = np.array([-3.0, 1.2]), np.full(2, -4.0), np.full(2, 3.0)
    evaluate = decays(times, data)()
    few = minimise(
        evaluate, start, lower, upper, Tolerances(evaluations=4), interior=Interior.UNTIL_NEAR
    )
    assert not few.converged
    assert few.evaluations == evaluate.count == 4
    stopped = minimise(
        decays(times, data)(),
        start,
        lower,
        upper,
        Tolerances(),
        lambda: True,
        interior=Interior.UNTIL_NEAR,
    )
    assert (stopped.vector == start).all()
    assert not stopped.converged


def test_failed_evaluations_shorten_the_step() -> None:
    times = np.linspace(0.0, 5.0, 30)
    data = np.exp(-np.outer(times, [0.1, 3.0])).sum(axis=1)
    inner = decays(times, data)()
    tried: list[Array] = []

    def evaluate(z: Array) -> Found | None:
        tried.append(z)
        return None if 2 <= len(tried) <= 4 else inner(z)

    minimum = minimise(
        evaluate,
        np.array([-3.0, 1.2]),
        np.full(2, -4.0),
        np.full(2, 3.0),
        Tolerances(),
        interior=Interior.UNTIL_NEAR,
    )
    assert minimum.converged
    assert np.sort(minimum.vector) == pytest.approx([-1.0, np.log10(3.0)], abs=1e-6)
    moves = [float(np.linalg.norm(z - tried[0])) for z in tried[1:5]]
    assert moves == sorted(moves, reverse=True)
    assert moves[-1] < 0.1 * moves[0]


def test_steps_avoid_bounds_only_while_these_are_in_the_way() -> None:
    times = np.linspace(0.0, 5.0, 30)
    data = np.exp(-np.outer(times, [0.1, 3.0])).sum(axis=1)
    start, lower, upper = np.array([-3.0, 1.2]), np.full(2, -4.0), np.full(2, 3.0)
    tolerances = Tolerances()

    def approached(start: Array, interior: Interior) -> tuple[int, float]:
        evaluate = decays(times, data)()
        first = usable(evaluate(start))
        assert first is not None
        milestone = Milestone(tolerances, 1, first.cost)
        end = approach(
            evaluate, start, first, lower, upper, tolerances, lambda: False, milestone, interior
        )
        return end.evaluations, end.at.cost

    near = np.array([-0.9, 0.4])
    assert approached(near, Interior.WHILE_BLOCKED)[0] == 1  # the next step stays within them
    blocked, until_near = (
        approached(start, i) for i in (Interior.WHILE_BLOCKED, Interior.UNTIL_NEAR)
    )
    assert 1 < blocked[0] < until_near[0]
    assert until_near[1] < blocked[1]
    minimum = minimise(
        decays(times, data)(), start, lower, upper, tolerances, interior=Interior.WHILE_BLOCKED
    )
    assert np.sort(minimum.vector) == pytest.approx([-1.0, np.log10(3.0)], abs=1e-6)
