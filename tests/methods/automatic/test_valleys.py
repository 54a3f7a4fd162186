"""Tests of whether ends lie in one valley."""

from dataclasses import replace

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, Start, Status
from odefit.methods.automatic.valleys import MAX_RISE, Valleys, highest_within_noise
from odefit.methods.local.cost_tolerance import CostTolerance


def end(index: int, forward: ForwardMap, value: float) -> Start:
    vector = np.array([value])
    cost = forward.cost(vector)
    return Start(index, vector, vector, 2 * cost, Status.NOT_CONVERGED, "", 1, 0.0, cost)


@pytest.fixture(scope="module")
def forward() -> ForwardMap:
    """Return the cost of the phase of an oscillation, which has a hill between two valleys."""
    times = np.linspace(0.0, 10.0, 60)
    data = {"t": times, "x": np.cos(times - 1.0)}
    model = Model(ode={"x": "-sin(t - p)", "z": "0"}, observables={"x": "x"})
    noise = {"x": {"sd": 1.0}}
    return ForwardMap(
        Problem(model, data, {"p": (-20.0, 20.0)}, {"x": "cos(p)", "z": 0.0}, noise=noise)
    )


def test_an_end_on_the_way_down_is_in_the_valley_of_the_best(forward: ForwardMap) -> None:
    valleys = Valleys(forward, CostTolerance.of(forward))
    best, near = end(0, forward, 1.0), end(1, forward, 1.3)
    assert 0 < near.cost < MAX_RISE
    assert valleys.same(near, best)


def test_an_end_behind_a_hill_is_another_optimum(forward: ForwardMap) -> None:
    best, behind = end(0, forward, 1.0), end(1, forward, 1.3 + 2 * np.pi)
    assert 0 < behind.cost < MAX_RISE
    assert not Valleys(forward, CostTolerance.of(forward)).same(behind, best)


def test_an_end_lower_by_an_integration_error_counts_as_equal(
    forward: ForwardMap,
) -> None:
    """Its cost is that of another engine, 0.2 per cent too low; another one is lower in truth."""
    valleys = Valleys(forward, CostTolerance.of(forward))
    usual, higher = end(0, forward, 1.5), end(1, forward, 1.501)
    other = replace(usual, index=2, cost=0.998 * usual.cost)
    assert valleys.level(usual, other)
    assert 1.001 < higher.cost / usual.cost < 1.01
    assert not valleys.level(higher, usual)


def test_the_noise_says_up_to_which_cost_ends_fit(forward: ForwardMap) -> None:
    """Without noise the deviance is that of its estimate, in proportion to the best cost."""
    times = np.linspace(0.0, 10.0, 60)
    model, data = Model(ode={"x": "-sin(t - p)"}), {"t": times, "x": np.cos(times - 1.0)}
    plain = ForwardMap(Problem(model, data, {"p": (-20.0, 20.0)}, {"x": "cos(p)"}))
    best = replace(end(0, forward, 1.0), cost=30.0)
    given, estimated = (highest_within_noise(f, best) for f in (forward, plain))
    assert given == pytest.approx(31.92)
    assert 60 * np.log(estimated / 30.0) == pytest.approx(3.84)
