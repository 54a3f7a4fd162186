"""Places where other optima lie are told by one answer, whatever the seed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Model, MultiStart, Problem
from odefit.assessment.intervals.deviance import Deviance
from odefit.common.arrays import Array
from odefit.fitting import other_hills
from odefit.fitting.optimum_search import OptimumSearch
from odefit.fitting.other_hills import (
    along_flat_unknowns,
    candidates,
    exchanged_places,
    off_bounds,
    simpler_models,
)
from odefit.fitting.other_speeds import other_speeds
from odefit.fitting.places import refitted
from odefit.fitting.speed_powers import speed_powers
from odefit.methods.polish import answer
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory

WIDE = {"lower": 0.01, "upper": 100.0}


def never() -> bool:
    return False


def prey(offset: float, step: float = 2.3) -> tuple[Problem, Array]:
    """Lotka-Volterra with the prey measured, as `cases/lotka-volterra-two-answers`."""
    truth = np.array([1.1438, 0.39932, 0.12266, 0.67028, 8.9115, 4.2343])
    model = Model(ode={"x": "a*x - b*x*y", "y": "c*x*y - d*y"}, observables={"ox": "x"})
    times = np.asarray(offset + step * np.arange(20), dtype=float)
    names, start = ("a", "b", "c", "d"), {"x": WIDE, "y": WIDE}
    parameters = dict.fromkeys(names, WIDE) | {"c": {"lower": 0.001, "upper": 10.0}}

    def problem(values: Array) -> Problem:
        data = {"t": times, "ox": values}
        return Problem(model, data, parameters, start, noise={"ox": {"sd": 0.2}}, t0=0.0)

    exact = ForwardMap(problem(np.ones(20))).trajectory(truth, None, times)
    assert isinstance(exact, Trajectory)
    return problem(exact.states[:, 0] + 0.2 * np.sin(17.0 * times)), truth


def test_powers_of_the_speed_are_the_powers_of_the_time_in_the_units() -> None:
    problem, truth = prey(1.3)
    powers = speed_powers(ForwardMap(problem), truth)
    assert powers is not None
    a, b, c, d, x, y = powers.unknowns
    assert [a, c, d, x] == [1.0, 1.0, 1.0, 0.0]
    assert b + y == 1.0  # only the product is observed
    assert powers.states.tolist() == [0.0, y]
    assert powers.cycles == pytest.approx(6.0, abs=0.5)


def test_a_square_of_a_frequency_grows_with_the_square_of_the_speed() -> None:
    times = np.linspace(0.0, 20.0, 30)
    problem = Problem(
        Model(ode={"x": "v", "v": "-k*x - g*v"}),
        {"t": times, "x": np.cos(times)},
        {"k": WIDE, "g": WIDE},
        {"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.1}},
    )
    powers = speed_powers(ForwardMap(problem), np.array([1.2, 0.05]))
    assert powers is not None
    assert powers.unknowns.tolist() == [2.0, 1.0]
    assert powers.states.tolist() == [0.0, 1.0]  # v is dx/dt
    assert powers.cycles > 3


def test_an_unknown_that_is_flat_alone_is_tried_up_to_its_bounds() -> None:
    """A rate of 50 has ended before the first measurement; that of the other state is known."""
    times = np.linspace(1.0, 3.0, 8)
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "-p*q*y"}, observables={"s": "x + y"}),
        {"t": times, "s": np.exp(-times)},
        {"k": WIDE, "p": WIDE, "q": {"lower": -1.0, "upper": 3.0}},
        {"x": 1.0, "y": 1.0},
        noise={"s": {"sd": 0.1}},
        t0=0.0,
    )
    vector = np.array([50.0, 0.5, 2.0])
    known = ForwardMap(problem.with_unknowns(fix={"q": 2.0}))
    at = known.evaluate(vector[:2])
    assert isinstance(at, Evaluation)
    places = along_flat_unknowns(known.problem, vector[:2], at.information)
    assert {place.held for place in places} == {0}
    values = [float(place.vector[0]) for place in places]
    assert values[4] == 0.01
    assert values[9] == 100.0
    assert values[0] / values[1] == pytest.approx(values[1] / values[2])
    assert all(place.vector[1] == 0.5 for place in places)
    at = ForwardMap(problem).evaluate(vector)
    assert isinstance(at, Evaluation)
    both = along_flat_unknowns(problem, vector, at.information)
    assert {place.held for place in both} == {0}  # p and q are known as a product


@pytest.mark.parametrize(("rate", "why"), [("-k*x", "no cycle"), ("k*cos(t)", "a given time")])
def test_there_are_no_speeds_without_cycles_or_with_given_times(rate: str, why: str) -> None:
    times = np.linspace(0.0, 20.0, 30)
    problem = Problem(
        Model(ode={"x": rate}), {"t": times, "x": np.exp(-times)}, {"k": WIDE}, {"x": 1.0}
    )
    assert (
        candidates(ForwardMap(problem), np.array([1.0]), lambda _: True, 100.0, lambda: False) == []
    ), why


def test_without_cycles_no_sensitivities_are_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}), {"t": [0.0, 1.0], "x": [1.0, 0.4]}, {"k": WIDE}, {"x": 1.0}
    )
    asked: list[bool] = []
    original = ForwardMap.trajectory

    def watched(self: ForwardMap, *args: Any, **options: Any) -> Any:
        asked.append(options["sensitivities"])
        return original(self, *args, **options)

    monkeypatch.setattr(ForwardMap, "trajectory", watched)
    assert speed_powers(ForwardMap(problem), np.array([1.0])) is None
    assert asked == [False]


@pytest.mark.slow
def test_aliases_of_an_orbit_fit_as_well_and_begin_elsewhere() -> None:
    """Samples at equal distances see the same when whole cycles are added between them."""
    problem, truth = prey(1.3)
    forward = ForwardMap(problem)
    best = forward.cost(truth)
    found = [
        c for c in other_speeds(forward, truth, lambda cost: cost < best + 8) if c.cost < best + 4
    ]
    frequencies = sorted(math.sqrt(c.vector[0] * c.vector[3]) for c in found)
    own = math.sqrt(truth[0] * truth[3])
    # The frequency of a large orbit is in proportion; cycles are added at 2 pi / step.
    ratios = np.diff([own, *frequencies]) / own
    assert len(found) >= 2
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=0.05)
    for place in found:
        assert forward.cost(place.vector) < best + 50


def test_all_aliases_are_found_from_one_start_whatever_the_seed() -> None:
    random = np.random.default_rng(8)
    times = np.arange(14.0)
    values = np.cos(times) + 0.1 * random.standard_normal(len(times))
    problem = Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}),
        {"t": times, "x": values},
        {"w": {"lower": 0.2, "upper": 8.0, "guess": 0.95}},
        {"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.1}},
        t0=0.0,
    )
    right = [1.0, 2 * math.pi - 1.0, 2 * math.pi + 1.0]
    for seed in (0, 1):
        result = odefit.fit(problem, MultiStart(starts=1), seed=seed, jobs=1)
        assert sorted(s.vector[0] for s in result.fitting) == pytest.approx(right, abs=0.05)


def orbit(guess: float) -> Problem:
    """An oscillation with an unknown phase, sampled at equal distances."""
    times = np.arange(14.0) + 0.5
    noise = np.random.default_rng(3).standard_normal(len(times))
    beginning = {"lower": -3.0, "upper": 3.0}
    return Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}),
        {"t": times, "x": np.cos(times + 0.4) + 0.1 * noise},
        {"w": {"lower": 0.2, "upper": 14.0, "guess": guess}},
        {"x": {**beginning, "guess": 0.9}, "v": {**beginning, "guess": -0.3}},
        noise={"x": {"sd": 0.1}},
        t0=0.0,
    )


@pytest.mark.parametrize("guess", [1.0, 2 * math.pi + 1.0])
def test_the_same_answers_are_found_from_any_of_them_and_the_slowest_is_shown(guess: float) -> None:
    """A motion that is the same backwards has aliases on both sides of each number of cycles."""
    turn = 2 * math.pi
    result = odefit.fit(orbit(guess), MultiStart(starts=1), jobs=1)
    right = [1.0, turn - 1.0, turn + 1.0, 2 * turn - 1.0, 2 * turn + 1.0]
    assert sorted(s.vector[0] for s in result.fitting) == pytest.approx(right, abs=0.05)
    assert result.params["w"].value == pytest.approx(1.0, abs=0.05)


def test_a_motion_that_dies_away_has_no_aliases() -> None:
    times = np.arange(14.0)
    problem = Problem(
        Model(ode={"x": "v", "v": "-k*x - g*v"}),
        {"t": times, "x": np.exp(-0.2 * times) * np.cos(times)},
        {"k": WIDE, "g": WIDE},
        {"x": {"lower": -3.0, "upper": 3.0}, "v": {"lower": -3.0, "upper": 3.0}},
        noise={"x": {"sd": 0.1}},
        t0=0.0,
    )
    powers = speed_powers(ForwardMap(problem), np.array([1.04, 0.4, 1.0, -0.2]))
    assert powers is not None
    assert not powers.periodic
    steady = speed_powers(ForwardMap(orbit(1.0)), np.array([1.0, 0.9, -0.3]))
    assert steady is not None
    assert steady.periodic
    assert steady.period == pytest.approx(2 * math.pi, rel=1e-4)


def test_a_cost_that_is_rounding_alone_promises_nothing() -> None:
    times = np.arange(4.0)
    problem = Problem(
        Model(ode={"x": "-k*x"}), {"t": times, "x": np.exp(-times)}, {"k": WIDE}, {"x": 1.0}
    )
    forward, place = ForwardMap(problem), np.array([1.0])
    at = forward.evaluate(place)
    assert isinstance(at, Evaluation)
    huge = replace(at, cost=0.5e250, residuals=np.full(4, 0.5e125), jacobian=np.full((4, 1), 1e125))
    assert refitted(problem, place, huge)[0] == math.inf
    assert math.isfinite(refitted(problem, np.array([1.2]), at)[0])


@pytest.mark.slow
def test_a_dense_series_is_scanned_at_few_times_and_shows_the_same_speeds() -> None:
    """One oscillator is fitted to the sum of two, and may follow either."""
    times = np.linspace(0.0, 30.0, 3001)
    exact = np.cos(times) + 0.8 * np.cos(1.5 * times)
    noise = 0.5 * np.random.default_rng(2).standard_normal(len(times))
    problem = Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}),
        {"t": times, "x": exact + noise},
        {"w": {"lower": 0.2, "upper": 8.0}},
        {"x": {"lower": -3.0, "upper": 3.0}, "v": {"lower": -3.0, "upper": 3.0}},
        noise={"x": {"sd": 0.5}},
        t0=0.0,
    )
    forward, answer = ForwardMap(problem), np.array([1.0, 1.0, 0.0])
    found = other_speeds(forward, answer, lambda _: False)
    lowest = min(found, key=lambda candidate: candidate.cost)
    assert lowest.vector[0] == pytest.approx(1.5, abs=0.05)
    # The expected cost is that of all values, up to the noise of those that were looked at.
    assert lowest.cost == pytest.approx(forward.cost(lowest.vector), rel=0.2)


def test_an_exchange_of_rates_is_a_candidate_and_one_step_mends_the_rest() -> None:
    """x1 + x2 decays with two rates: the same with the rates and the amounts exchanged."""
    times = np.linspace(0.0, 6.0, 25)
    values = 3.0 * np.exp(-2.0 * times) + 1.2 * np.exp(-0.3 * times)
    problem = Problem(
        Model(ode={"x1": "-k1*x1", "x2": "-k2*x2"}, observables={"y": "x1 + x2"}),
        {"t": times, "y": values + 0.02 * np.cos(31.0 * times)},
        {"k1": WIDE, "k2": WIDE},
        {"x1": WIDE, "x2": WIDE},
        noise={"y": {"sd": 0.02}},
    )
    vector = np.array([2.0, 0.3, 3.0, 1.2])
    found = exchanged_places(ForwardMap(problem), vector, 10, lambda: False)
    assert [c for c in found if c.vector[0] < c.vector[1]]
    assert off_bounds(problem, vector) == []
    (off,) = off_bounds(problem, np.array([100.0, 0.3, 3.0, 1.2]))
    assert (off.held, off.vector[0]) == (0, pytest.approx(1.0))


def test_only_unknowns_of_one_kind_and_unit_change_places_the_least_unlike_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = {
        "a": {"unit": "1/h", **WIDE},
        "b": {"unit": "mM", **WIDE},
        "c": {"unit": "1/h", **WIDE},
        "d": {"unit": "1/h", **WIDE},
        "e": {"unit": "1/h", "lower": -1.0, "upper": 5.0},
    }
    problem = Problem(
        Model(ode={"x": "b - (a + c + d + e)*x"}),
        {"t": np.linspace(0.0, 6.0, 25), "x": np.full(25, 0.3)},
        parameters,
        {"x": WIDE},
        noise={"x": {"sd": 0.02}},
    )
    vector = np.array([1.0, 1.1, 3.0, 2.0, 1.2, 1.3])
    forward = ForwardMap(problem)
    monkeypatch.setattr(other_hills, "refitted", lambda problem, place, at: (0.0, place))
    pairs = [
        np.flatnonzero(c.vector != vector).tolist()
        for c in exchanged_places(forward, vector, 9, never)
    ]
    assert pairs == [[2, 3], [0, 3], [0, 2]]
    assert len(exchanged_places(forward, vector, 2, never)) == 2
    assert exchanged_places(forward, vector, 0, never) == []


def test_a_value_of_zero_changes_places_after_the_positive_ones() -> None:
    problem = Problem(
        Model(ode={"x1": "-a*x1", "x2": "-b*x2", "x3": "-c*x3"}, observables={"y": "x1 + x2 + x3"}),
        {"t": np.linspace(0.0, 6.0, 25), "y": np.full(25, 3.0)},
        {name: {"lower": 0.0, "upper": 9.0} for name in "abc"},
        {"x1": 1.0, "x2": 2.0, "x3": 4.0},
        noise={"y": {"sd": 0.02}},
    )
    forward, vector = ForwardMap(problem), np.array([0.0, 2.0, 0.3])
    assert len(exchanged_places(forward, vector, 10, lambda: False)) == 3
    (first,) = exchanged_places(forward, vector, 1, lambda: False)
    assert first.vector[0] == exchanged_places(forward, vector, 10, lambda: False)[0].vector[0]
    # Zero stays where it was: the refit moves what is zero by less than the others differ.
    assert first.vector[0] < first.vector[1]


@pytest.mark.parametrize("base", ["exp(%s)", "10^%s"])
def test_logarithms_of_rates_are_exchanged(base: str) -> None:
    """An oral dose with its rates exchanged, and the same clearance, gives the same curve."""
    ka, ke, cl = (base % name for name in ("lKa", "lKe", "lCl"))
    model = Model(ode={"g": f"-{ka}*g", "y": f"{ka}*g*{ke}/{cl} - {ke}*y"}, observables={"y": "y"})
    times = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    names: dict[str, dict[str, float]] = {"lKa": {}, "lKe": {}, "lCl": {}}
    values = {"lKa": 0.2, "lKe": -0.9, "lCl": 0.1}
    given = {"g": 10.0, "y": 0.0}
    bare = Problem(model, {"t": times, "y": np.ones(6)}, names, given, t0=0.0)
    exact = ForwardMap(bare).trajectory(bare.vector(values), None, times)
    assert isinstance(exact, Trajectory)
    noise = 0.05 * np.sin(9.0 * times)
    problem = Problem(model, {"t": times, "y": exact.states[:, 1] + noise}, names, given, t0=0.0)
    forward = ForwardMap(problem)
    vector = problem.vector(values)
    places = [
        dict(zip(problem.keys, c.vector.tolist(), strict=True))
        for c in exchanged_places(forward, vector, 10, never)
        if c.cost <= forward.cost(vector)
    ]
    assert any(p["lKa"] < -0.5 < 0.0 < p["lKe"] for p in places)


def gone_off(**unknowns: Any) -> Problem:
    """A signal that decays after it has been fed for a while, or is fed all the time."""
    times = np.linspace(0.0, 4.0, 9)
    return Problem(
        Model(ode={"x": "a - b*x"}),
        {"t": times, "x": np.exp(-times)},
        {"a": WIDE, "b": WIDE, **unknowns},
        {"x": WIDE},
        noise={"x": {"sd": 0.1}},
    )


def test_simpler_models_have_one_unknown_at_a_bound_and_the_others_in_mid_range() -> None:
    problem, at_a_bound = gone_off(), np.array([0.01, 1.0, 1.0])
    places = simpler_models(problem, at_a_bound)
    assert [(p.held, p.vector.tolist()) for p in places] == [
        (k, [bound if i == k else pytest.approx(1.0) for i in range(3)])
        for k in range(3)
        for bound in (0.01, 100.0)
    ]
    assert simpler_models(problem, np.array([0.5, 1.0, 1.0])) == []
    assert simpler_models(gone_off(b={"lower": 0.01}), at_a_bound) == []


def test_a_simpler_model_that_fits_is_found_from_an_answer_at_a_bound() -> None:
    """A toggle switch of which one gene is seen: without the other's expression it also fits."""
    values = [0.4122, 0.3073, 0.1934, 0.1392, 0.1212, 0.07393, 0.052, 0.1262, 0.1147, 0.1067]
    values += [0.08113, 0.07827, 0.1015, 0.0794, 0.04667, 0.0951, 0.07929, 0.1022, 0.08214, 0.1131]
    values += [0.08728, 0.06661, 0.09777, 0.1092, 0.05462]
    wide, narrow = ({**WIDE, "scale": "log10"}, {"lower": 0.1, "upper": 10.0, "scale": "log10"})
    problem = Problem(
        Model(ode={"u": "a1/(1 + v^n) - u*k", "v": "a2/(1 + u^m) - v*k"}),
        {"t": np.linspace(0.5, 15.0, 25), "u": values},
        {
            "a1": wide | {"guess": 1.1},
            "a2": wide | {"guess": 3.3},
            "n": narrow | {"guess": 8.6},
            "m": narrow | {"guess": 1.7},
            "k": wide | {"guess": 2.8},
        },
        {"u": 0.5, "v": wide | {"guess": 0.011}},
        noise={"u": {"sd": 0.0204}},
        t0=0.0,
    )
    estimate = MultiStart(starts=1).solve(problem, Control(jobs=1))
    best = answer(problem, estimate, Control(jobs=1), True)
    assert best is not None
    deviance = Deviance.of(best.forward, best.start.vector, best.evaluation)
    search = OptimumSearch(best, deviance, deviance.limit(0.95), Control(jobs=1), ())
    for number, place in enumerate(simpler_models(problem, best.start.vector)):
        assert search.from_place(place, number)
    simpler = search.optima[-1]
    assert deviance.at(simpler.cost) == pytest.approx(2.83, abs=0.05)
    assert simpler.vector == pytest.approx([0.0446, 0.01, 10.0, 0.1, 0.508, 5.64], rel=0.02)
