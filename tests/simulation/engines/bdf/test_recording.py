"""The memory of recorded steps, which gradients use again and again."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Experiment, Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.bdf import recording
from odefit.simulation.engines.bdf.recording import ROOM, STATES, Rooms
from odefit.simulation.evaluation import CostGradient
from tests.simulation.numerics import evaluated


def test_a_room_serves_again_once_it_is_given_back() -> None:
    rooms = Rooms(3)
    first, second = rooms.take(), rooms.take()
    assert first.shape == (ROOM, STATES + 3)
    assert first is not second
    rooms.give_back([first[:20]])
    assert rooms.take() is first
    assert rooms.take() is not second


def test_a_room_that_is_too_small_is_replaced() -> None:
    rooms = Rooms(1)
    rooms.give_back([rooms.take()])
    larger = rooms.take(10 * ROOM)
    assert len(larger) >= 10 * ROOM
    rooms.give_back([larger])
    assert rooms.take() is larger


@pytest.mark.parametrize("room", [16, ROOM], ids=["too small", "usual"])
def test_gradients_do_not_depend_on_what_a_room_held(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several experiments record at the same time, and again at other values."""
    monkeypatch.setattr(recording, "ROOM", room)
    n = 12
    ode = {f"x{i}": f"{f'c*k{i - 1}*x{i - 1}' if i else '1'} - c*k{i}*x{i}" for i in range(n)}
    model = Model(ode=ode, observables={"y": f"x{n - 1}"}, constants={"c": 1.0})
    data = {"t": np.linspace(1.0, 5.0, 9), "y": np.ones(9)}
    experiments = [
        Experiment(f"e{c}", data, t0=0.0, constants={"c": 1000.0 * c}) for c in (1, 2, 3)
    ]
    unknowns: dict[str, dict[str, float]] = {f"k{i}": {} for i in range(n)}
    problem = Problem(
        model, None, unknowns, {f"x{i}": 0.5 for i in range(n)}, experiments=experiments
    )
    vectors = [np.linspace(0.5, last, n) for last in (1.5, 3.0, 1.5)]
    forward = ForwardMap(problem, "bdf")
    for vector in vectors:
        found = forward.gradient(vector)
        fresh = ForwardMap(problem, "bdf").gradient(vector)
        assert isinstance(found, CostGradient)
        assert isinstance(fresh, CostGradient)
        assert found.adjoint
        assert np.array_equal(found.gradient, fresh.gradient)
        evaluation = evaluated(forward, vector)
        expected = evaluation.jacobian.T @ evaluation.residuals
        assert found.gradient == pytest.approx(expected, rel=1e-4, abs=1e-6)
