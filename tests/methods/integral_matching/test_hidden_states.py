"""States that are not measured: recovered where sums of equations allow, else assimilated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odefit
from odefit import Event, Experiment, IntegralMatching, library
from odefit.common.arrays import Array
from odefit.simulation import Simulation
from tests.methods.integral_matching.problems import (
    CHAIN,
    EPIDEMIC,
    T,
    chain,
    epidemic,
    matched,
    worst,
)

SUM = "need not lead to the best answer"


def test_susceptibles_are_recovered_from_infected() -> None:
    match, found = matched(epidemic())
    assert worst(found, EPIDEMIC) < 1e-5
    assert SUM not in match.message
    matching = IntegralMatching().matching(epidemic())
    assert matching.route == "invariants"
    assert matching.hidden == ("S",)


def test_a_parameter_that_acts_on_the_recovered_state_is_not_linear_with_the_rest() -> None:
    """beta S I with S = S(0) + I(0) - I - gamma times an integral."""
    match, _ = matched(epidemic())
    assert set(match.linear) == {"gamma", "S", "I"}
    assert match.nonlinear == ("beta",)


def test_recovery_continues_after_events_with_free_starts() -> None:
    """Half of the susceptibles are vaccinated at t = 1.2: S has a start of its own there."""
    times = np.linspace(0.0, 3.0, 61)

    def rhs(t: float, z: Array) -> list[float]:
        return [-6.0 * z[0] * z[1], 6.0 * z[0] * z[1] - 2.3 * z[1]]

    options: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}
    at = times[24]
    first = solve_ivp(rhs, (0, at), [0.9, 0.01], t_eval=times[:25], **options).y
    begin = [first[0, -1] / 2, first[1, -1]]
    rest = solve_ivp(rhs, (at, 3.0), begin, t_eval=times[25:], **options).y
    data = {"t": times, "I": np.concatenate([first[1], rest[1]])}
    experiment = Experiment("A", data, events=[Event((float(at),), {"S": "S/2"})])
    problem = epidemic(data=None, experiments=[experiment])
    match, found = matched(problem)
    assert len(match.segments) == 2
    assert worst(found, EPIDEMIC) < 1e-3
    assert np.isfinite(match.cost)


def test_a_start_after_an_event_that_enters_squared_is_searched_for() -> None:
    """Pairs react, S' = -2 S^2: neither S(0) nor S after a dose at t = 1.2 enters linearly."""
    times = np.linspace(0.0, 3.0, 61)

    def rhs(t: float, z: Array) -> list[float]:
        return [-2.0 * z[0] ** 2, 2.0 * z[0] ** 2 - 1.3 * z[1]]

    options: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}
    at = times[24]
    first = solve_ivp(rhs, (0, at), [0.9, 0.1], t_eval=times[:25], **options).y
    begin = [first[0, -1] + 1.0, first[1, -1]]
    rest = solve_ivp(rhs, (at, 3.0), begin, t_eval=times[25:], **options).y
    data = {"t": times, "I": np.concatenate([first[1], rest[1]])}
    problem = epidemic(
        model=odefit.Model(ode={"S": "-2*S^2", "I": "2*S^2 - g*I"}, observables={"I": "I"}),
        data=None,
        parameters={"g": {"guess": 1.0}},
        initial={"S": {"guess": 0.7}, "I": {"guess": 0.2}},
        experiments=[Experiment("A", data, events=[Event((float(at),), {"S": "S + 1"})])],
    )
    match, found = matched(problem)
    assert match.linear == ()
    assert worst(found, {"g": 1.3, "S": 0.9, "I": 0.1}) < 1e-5


def test_recovered_states_meet_the_criterion() -> None:
    problem = epidemic()
    matching = IntegralMatching().matching(problem)
    criterion = matching.criterion
    left = np.concatenate(criterion.residuals(problem.vector(EPIDEMIC), [])[0])
    assert np.abs(left).max() < 1e-6


def test_a_recovered_state_may_be_measured_in_another_experiment() -> None:
    """S is measured in one experiment of two."""
    one = epidemic()
    infected = one.conditions[0].series["I"].values
    times = one.conditions[0].times
    paths = odefit.simulate(one, one.vector(EPIDEMIC))
    assert isinstance(paths, Simulation)
    experiments = [
        Experiment("A", {"t": times, "I": infected, "S": paths.states["S"]}),
        Experiment("B", {"t": times, "I": infected}),
    ]
    model = odefit.Model(ode={s: str(e) for s, e in one.model.ode.items()})
    match, found = matched(epidemic(model=model, data=None, experiments=experiments))
    assert worst(found, EPIDEMIC) < 1e-5
    assert {len(p.states) for p in match.segments} == {1, 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fitzhugh-nagumo-v", "lotka-volterra-p"])
def test_without_a_route_states_and_unknowns_are_found_in_turns(name: str) -> None:
    """The match says what it is; with the trajectories it finds the truth."""
    problem, known = library.load(name), library.reference(name)
    match = IntegralMatching().match(problem)
    assert "not measured, estimated in turns with the unknowns: this " + SUM in match.message
    result = odefit.fit(problem, IntegralMatching(), seed=0, jobs=1)
    truth = {**known.parameters, **known.initial}
    found = {**result.best.parameters, **result.best.initial}
    assert result.best.objective < 1e-12
    assert all(found[k] == pytest.approx(v, rel=1e-4) for k, v in truth.items())


def test_leading_hidden_states_are_matched_by_their_equations() -> None:
    """g' = -a g^2, x' = a g - b x, x alone measured: from near the truth, nearly to it."""

    def rhs(t: float, z: Array) -> list[float]:
        return [-0.7 * z[0] ** 2, 0.7 * z[0] - 0.7 * z[1]]

    model = odefit.Model(ode={"g": "-a*g^2", "x": "a*g - b*x"}, observables={"x": "x"})
    path = solve_ivp(rhs, (0, 4), [1.0, 0.0], t_eval=T, rtol=1e-11, atol=1e-12).y
    problem = chain(
        model=model,
        data={"t": T, "x": path[1]},
        parameters={"a": {"guess": 0.6}, "b": {"guess": 0.8}},
        initial={"g": 1.0, "x": 0.0},
    )
    match, found = matched(problem)
    assert SUM in match.message
    assert found["a"] == pytest.approx(0.7, abs=0.05)
    assert found["b"] == pytest.approx(0.7, abs=0.05)
    assert set(match.segments[0].states) == {"g", "x"}


def test_a_hidden_state_may_be_dosed() -> None:
    """g goes up by one at t = 2, between measurements of x."""
    later = np.where(T > 2, 0.7 * (T - 2) * np.exp(-0.7 * (T - 2)), 0.0)
    events = [odefit.Event((2.0,), {"g": "g + 1"})]
    model = odefit.Model(ode={"g": "-a*g", "x": "a*g - b*x"}, observables={"x": "x"})
    problem = chain(
        model=model,
        data=None,
        parameters={"a": {"guess": 0.6}, "b": {"guess": 0.8}},
        initial={"g": 1.0, "x": 0.0},
        experiments=[Experiment("A", {"t": T, "x": CHAIN + later}, events=events)],
    )
    match, found = matched(problem)
    assert len(match.segments) == 2
    assert found["a"] == pytest.approx(0.7, abs=0.15)
    assert found["b"] == pytest.approx(0.7, abs=0.15)


def test_a_trajectory_that_does_not_exist_is_a_failure_with_its_reason() -> None:
    problem = library.load("rational-crauste")
    match = IntegralMatching().match(problem)
    if not np.isfinite(match.cost):
        assert "without bound" in match.message
        assert not match.converged
