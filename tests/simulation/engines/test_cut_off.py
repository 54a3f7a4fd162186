"""Integrations are ended from outside, by every engine, with a reason."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import odefit
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines import registry, steps
from odefit.simulation.engines.cut_off import (
    NEVER,
    REASON,
    CutOff,
    CutOffError,
    cut_off,
    cutting_off,
)
from odefit.simulation.engines.registry import EngineName

ENGINES: tuple[EngineName, ...] = ("heyoka", "runge-kutta", "bdf", "casadi", "local-linearization")


def van_der_pol(end: float) -> odefit.Problem:
    """Return an oscillator that is integrated until `end`."""
    times = np.linspace(0.0, end, 5)
    model = odefit.Model(ode={"x": "y", "y": "k*(1 - x*x)*y - x"})
    unknown = {"k": {"lower": 0.1, "upper": 5.0, "guess": 1.0}}
    return odefit.Problem(model, {"t": times, "x": np.ones(5)}, unknown, {"x": 1.0, "y": 0.0})


@pytest.mark.parametrize("engine", ENGINES)
def test_after_the_cut_off_no_engine_begins(engine: EngineName) -> None:
    forward = ForwardMap(van_der_pol(5.0), engine)
    ended = CutOff()
    ended.now()
    with cutting_off(ended):
        found = forward.evaluate(np.array([1.0]))
    assert isinstance(found, Failure)
    assert found.reason == REASON
    assert not isinstance(forward.evaluate(np.array([1.0])), Failure)


@pytest.mark.parametrize("engine", ["heyoka", "bdf", "local-linearization"])
def test_an_integration_under_way_is_cut_off(
    engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trajectory would take days; the flag is set while it is integrated."""
    forward = ForwardMap(van_der_pol(1e12), engine)
    monkeypatch.setattr(registry, "MAX_TAYLOR_STEPS", 10**15)
    monkeypatch.setattr(steps, "IMPLICIT_STEPS", 10**15)
    assert isinstance(ForwardMap(van_der_pol(1.0), engine).cost(np.array([1.0])), float)  # compiled
    ended = CutOff()
    timer = threading.Timer(0.2, ended.now)
    timer.start()
    with cutting_off(ended):
        found = forward.evaluate(np.array([1.0]))
    timer.join()
    assert isinstance(found, Failure)
    assert found.reason == REASON
    assert 0.0 <= found.time < 1e12


def test_a_nonessential_integration_raises_after_the_cut_off() -> None:
    forward = ForwardMap(van_der_pol(5.0))
    ended = CutOff()
    with cutting_off(ended.as_error()):
        assert not isinstance(forward.evaluate(np.array([1.0])), Failure)
        ended.now()
        with pytest.raises(CutOffError, match="stopped because the search"):
            forward.evaluate(np.array([1.0]))
        with cutting_off(NEVER):
            assert not isinstance(forward.evaluate(np.array([1.0])), Failure)


def test_a_cut_off_holds_in_its_block_and_thread_alone() -> None:
    ended = CutOff()
    elsewhere = []
    with cutting_off(ended):
        thread = threading.Thread(target=lambda: elsewhere.append(cut_off()))
        thread.start()
        thread.join()
        assert cut_off() is ended
    assert cut_off() is NEVER
    assert elsewhere == [NEVER]


def test_a_cut_off_leaves_results_as_they_are() -> None:
    """Long integrations of heyoka are asked whether to go on, which changes no digit."""
    forward = ForwardMap(van_der_pol(4000.0), "heyoka")
    plain = forward.evaluate(np.array([1.0]))
    with cutting_off(CutOff()):
        watched = forward.evaluate(np.array([1.0]))
    assert not isinstance(plain, Failure)
    assert not isinstance(watched, Failure)
    assert np.array_equal(plain.residuals, watched.residuals)
    assert np.array_equal(plain.jacobian, watched.jacobian)
