"""A search whose integrations are too coarse becomes finer, and blames no model for that."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.methods.multi_start import MultiStart, search_tolerance
from odefit.simulation import Trajectory
from odefit.simulation.engines.comparison import Comparison

TRUTH = np.array([0.588, 0.807, 0.488, 0.599])


def oscillator(values: Array) -> Problem:
    """Return a Brusselator, which grows to its limit cycle."""
    model = Model({"x": "a + x^2*y - (1 + 4*b)*x", "y": "4*b*x - x^2*y"}, {"x": "x"})
    data = {"t": np.linspace(0.0, 40.0, len(values)), "x": values}
    unknowns = {"a": (1e-5, 10.0), "b": (1e-5, 10.0)}
    initial = {"x": (1e-5, 10.0), "y": (1e-5, 10.0)}
    return Problem(model, data, unknowns, initial, noise={"x": {"sd": 0.005}})


@pytest.fixture(scope="module")
def problem() -> Problem:
    exact = ForwardMap(oscillator(np.ones(1501))).trajectory(TRUTH)
    assert isinstance(exact, Trajectory)
    noise = np.random.default_rng(1).standard_normal(1501)
    return oscillator(exact.states[:, 0] + 0.005 * noise)


@pytest.mark.slow
def test_integration_errors_are_no_misfit(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The implicit engine alone, at the tolerance of a search, is wrong by more than the noise."""
    monkeypatch.setattr(Comparison, "prefers_implicit", lambda *_: True)
    shares = []
    usual = MultiStart.forward

    def forward(*arguments: object) -> ForwardMap:
        made = usual(*arguments)  # type: ignore[arg-type]
        shares.append(made.engines.tolerance / search_tolerance(problem))  # type: ignore[operator]
        return made

    monkeypatch.setattr(MultiStart, "forward", forward)
    result = odefit.fit(problem, seed=1, jobs=1)
    assert result.status is odefit.Status.CONVERGED
    assert "more than the noise" not in result.message
    assert result.redchi == pytest.approx(1.0, abs=0.2)
    assert shares[0] == 1.0
    assert min(shares) < 0.1
