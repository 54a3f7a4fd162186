"""The switch where sensitivities are many: engines are compared on the states alone."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines import engines
from odefit.simulation.engines.engine import Integration, Solved
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.registry import EXPLICIT, EngineName
from tests.simulation.numerics import integrated

SIZE = 60


def chain(fast: float) -> Problem:
    """Return a chain of states whose first ones may be faster, with a rate for each."""
    rates = [f"{fast if i < 3 else 1.0}*k{i}*x{i}" for i in range(SIZE)]
    ode = {f"x{i}": f"{rates[i - 1] if i else '1 + x0*sin(t)'} - {rates[i]}" for i in range(SIZE)}
    times = np.linspace(1.0, 20.0, 9)
    unknowns: dict[str, dict[str, float]] = {f"k{i}": {} for i in range(SIZE)}
    model = Model(ode=ode, observables={"y": f"x{SIZE - 1}"})
    initial = {f"x{i}": 0.5 for i in range(SIZE)}
    return Problem(model, {"t": times, "y": np.ones(9)}, unknowns, initial, t0=0.0)


@pytest.mark.parametrize(("fast", "stiff"), [(1.0, False), (1e4, True)])
def test_states_alone_decide_between_the_engines(
    fast: float, stiff: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "explicit_engine", lambda: EXPLICIT)
    calls: list[tuple[EngineName, int]] = []
    by = Engines._by

    def counted(
        self: Engines, name: EngineName, problem: Integration, steps: int | None = None
    ) -> Solved:
        calls.append((name, problem.pattern.directions))
        return by(self, name, problem, steps)

    monkeypatch.setattr(Engines, "_by", counted)
    forward = ForwardMap(chain(fast))
    vector = np.linspace(0.8, 1.2, SIZE)
    found = forward.trajectory(vector, choice=UNDECIDED)
    assert calls[:2] == [("bdf", 0), ("runge-kutta", 0)]
    assert calls[2] == ("bdf" if stiff else "runge-kutta", SIZE)
    again = integrated(ForwardMap(chain(fast), "bdf", 1e-10), vector)
    assert found.choice.stiff is stiff
    assert found.choice.ratio > 0.0
    calls.clear()
    forward.trajectory(vector, choice=found.choice)
    assert ("bdf", 0) not in calls  # what is known is not compared again
    assert np.allclose(integrated(forward, vector).states, again.states, rtol=1e-6)
    assert np.allclose(
        integrated(forward, vector).sensitivities, again.sensitivities, rtol=1e-5, atol=1e-7
    )
