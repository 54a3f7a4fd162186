"""Tests of populations that follow the data through the events of conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odefit import Control, Event, Experiment, ForwardMap, Model, Problem, Start, Status, fit, load
from odefit.methods.automatic import populations
from odefit.methods.automatic.doubt import AGREEING, POPULATION_STARTS, Doubts
from odefit.methods.automatic.families import Families
from odefit.methods.automatic.populations import PopulationSearch, refusal
from odefit.methods.automatic.route_table import POPULATIONS, search_routes
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.incremental_shooting import FINAL
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.multi_start import MultiStart

EXPLAINED = NoiseFit(True, freedom=20.0)

CASES = Path(__file__).parents[2] / "cases"

SWITCHED = {"tau": 40.0289, "K": 25.0118, "lo": 19.19134, "hi": 21.29256}
"""The best values of the thermostat's case by exact simulation and Nelder-Mead's method, of sum of
squares 0.28958295."""


def reset(times: int = 25, **events: Any) -> Problem:
    """Return a charge that falls to zero whenever it has reached a threshold: a saw of slope k."""
    t = np.linspace(0.3, 12.3, times)
    data = {"t": t, "x": np.mod(0.7 * t, 1.9)}
    event = Event((), {"x": "0"}, when="x >= top", **events)
    return Problem(
        Model(ode={"x": "k"}),
        None,
        {"k": {"lower": 0.0}, "top": {"lower": 0.0}},
        {"x": 0.0},
        noise={"x": {"sd": 0.05}},
        experiments=[Experiment("a", data, events=[event], t0=0.0)],
    )


@pytest.mark.slow
def test_a_population_finds_slope_and_threshold_of_a_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(populations, "FIRST", 128)
    monkeypatch.setattr(populations, "POPULATION", 32)
    forward = MultiStart().forward(reset())
    end = PopulationSearch(FINAL).run(forward, 0, Control(seed=1))
    np.testing.assert_allclose(end.vector, [0.7, 1.9], rtol=1e-6)


@pytest.mark.slow
def test_an_unknown_without_effect_stays_near_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(populations, "FIRST", 32)
    monkeypatch.setattr(populations, "POPULATION", 16)
    forward = MultiStart().forward(reset())
    (part, *_) = populations._parts(forward)  # it ends before the first event
    population = populations._Population(forward, 0, Control(seed=1))
    population.fit(part, 60)
    top = np.array(population._points)[:, 1]
    assert np.isfinite(top).all()
    assert top.max() < 3.0 * 1.2 * 1.9


def test_populations_are_taken_where_conditions_trigger_events_that_lanes_follow() -> None:
    assert refusal(ForwardMap(reset())) is None
    assert "cannot follow" in str(refusal(ForwardMap(reset(priority=1.0))))
    decay = Problem(
        Model(ode={"x": "-k*x"}), {"t": [0.0, 1.0], "x": [1.0, 0.5]}, {"k": {}}, {"x": 1.0}
    )
    assert "triggers" in str(refusal(ForwardMap(decay)))


def test_an_end_counts_after_two_populations_have_reached_it_or_six_nothing_better() -> None:
    forward = ForwardMap(reset())
    routes = search_routes(forward)
    doubts = Doubts(forward, routes, CostTolerance.of(forward), Families())
    populations_route = next(r for r in routes if r.row is POPULATIONS)
    at = np.array([0.7, 1.9])

    def end(index: int, cost: float) -> Start:
        return Start(index, at, at, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost)

    alike = [end(k, 12.0) for k in range(10, 13)]
    assert doubts.of(alike, EXPLAINED) == (None, True)
    for count in range(1, AGREEING + 1):
        populations_route.starts.append(alike[count - 1])
        assert doubts.of(alike, EXPLAINED) == (None, count < AGREEING)
    populations_route.starts = [end(k, 50.0) for k in range(POPULATION_STARTS)]
    assert doubts.of(alike, EXPLAINED) == (None, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p.toml", "pg.toml"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_default_finds_the_thresholds_of_a_thermostat(name: str, seed: int) -> None:
    result = fit(load(CASES / "thermostat" / name), seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(0.28958295, rel=1e-7)
    for key, value in SWITCHED.items():
        assert result.params[key].value == pytest.approx(value, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_fit_that_never_reaches_its_thresholds_is_not_the_answer(seed: int) -> None:
    # Heater on at 18.5, off at 21.5: the best curve without any switching has chi-square 71.25.
    result = fit(load(CASES / "thermostat-few-points" / "p.toml"), seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.objective < 29.6
    assert 18.0 < result.params["lo"].value < result.params["hi"].value < 22.0
