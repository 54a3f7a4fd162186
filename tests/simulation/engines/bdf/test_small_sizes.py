"""States that are extremely small where an integration begins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammainc

from odefit import Event, Experiment, Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.bdf.engine import BdfEngine
from odefit.simulation.engines.bdf.kernel_engine import PartToSolve, SolvedPart
from tests.simulation.numerics import integrated

RATE, FIRST = 1e-6, 1e9


@pytest.mark.parametrize("length", [3, 20])
def test_a_chain_continues_after_an_event_in_few_steps(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of twenty states is at 1e-170 at the event, and grows by the power 20 of time.

    Relative accuracy of all states would take 2,800 steps after the event.
    """
    steps = []
    solve = BdfEngine._solve

    def watched(engine: BdfEngine, part: PartToSolve) -> SolvedPart:
        solved = solve(engine, part)
        steps.append(solved.steps)
        return solved

    monkeypatch.setattr(BdfEngine, "_solve", watched)
    numbers = range(1, length + 1)
    names = [f"x{i}" for i in range(length + 1)]
    times = [0.01, 10.0]
    problem = Problem(
        Model({"x0": "0*k"} | {f"x{i}": f"{RATE}*x{i - 1} - x{i}" for i in numbers}),
        parameters={"k": {}},
        initial=dict.fromkeys(names, 0.0) | {"x0": FIRST},
        experiments=[
            Experiment(
                "run",
                {"t": times} | {name: [0.0, 0.0] for name in names},
                t0=0.0,
                events=[Event((times[0],), {"x0": "x0"})],
            )
        ],
    )
    found = integrated(ForwardMap(problem, "bdf"), np.ones(1)).states
    for i in numbers:
        exact = FIRST * RATE**i * gammainc(i, times)
        assert found[:, i] == pytest.approx(exact, rel=5e-5, abs=0.0)
        assert found[1, i] == pytest.approx(exact[1], rel=1e-7, abs=0.0)
    assert steps[-1] < 1000
