"""What the data can determine is found before any fit, and nothing more is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from odefit import library
from odefit.assessment.identifiability import (
    MAX_DIRECTIONS,
    POINTS,
    Identifiability,
    _points,
    local_identifiability,
)
from odefit.problem.experiment import Event, Experiment
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.cut_off import WorkLimit

TIMES = np.linspace(0.0, 4.0, 9)


def decay(rhs: str, parameters: Mapping[str, Any], **given: Any) -> Problem:
    """x' = `rhs`, measured as y, which decays."""
    observables = given.pop("observables", {"y": "x"})
    initial = given.pop("initial", {"x": 2.0})
    data = given.pop("data", {"t": TIMES, "y": 2 * np.exp(-0.5 * TIMES)})
    model = Model(ode={"x": rhs}, observables=observables)
    return Problem(model, data, parameters, initial, **given)


def found(problem: Problem, seed: int = 0) -> Identifiability:
    return local_identifiability(ForwardMap(problem), seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["alpha-pinene", "lotka-volterra-p", "fitzhugh-nagumo-v", "harmonic", "bbg"]
)
def test_identifiable_problems_of_the_papers_are_recognised(name: str) -> None:
    result = found(library.load(name))
    assert result.rank == len(result.keys)
    assert not result.undetermined
    assert not result.no_effect
    assert "not a proof" in result.sentence


def test_a_product_is_named() -> None:
    result = found(decay("-a*b*x", {"a": {"lower": 0}, "b": {"lower": 0}}))
    assert result.rank == 1
    assert result.undetermined == ("a", "b")
    assert [d.sentence for d in result.directions] in (
        ["The data determine a and b only as the product a*b."],
        ["The data determine b and a only as the product b*a."],
    )


def test_an_unknown_without_effect_is_named() -> None:
    result = found(decay("-a*x + 0*b", {"a": {"lower": 0}, "b": {"lower": 0, "upper": 1}}))
    assert result.no_effect == ("b",)
    assert result.undetermined == ()
    assert result.sentence.startswith("1 of 2 unknowns is not determined")


def test_an_unobserved_state_that_acts_on_nothing_has_no_effect() -> None:
    model = Model(ode={"x": "-a*x", "z": "a*x"}, observables={"y": "x"})
    problem = Problem(
        model,
        {"t": TIMES, "y": 2 * np.exp(-0.5 * TIMES)},
        {"a": {"lower": 0}},
        {"x": 2.0, "z": {}},
    )
    assert found(problem).no_effect == ("z",)


def test_too_few_times_leave_directions_open() -> None:
    """Three unknowns, two measurements: the rank is at most two."""
    data = {"t": np.array([0.0, 1.0]), "y": np.array([2.0, 1.2])}
    bounds = {"lower": 0.1, "upper": 3.0}
    result = found(decay("-a*x + b", {"a": bounds, "b": bounds}, data=data, initial={"x": bounds}))
    assert result.rank == 2
    assert {"a", "b"} <= set(result.undetermined)


def test_a_known_dose_of_another_size_splits_scale_and_start() -> None:
    """y = s*x with an unknown start: only the product, until a known amount is added."""
    bounds = {"lower": 0.1, "upper": 10.0}
    given: dict[str, Any] = {"observables": {"y": "s*x"}, "initial": {"x": bounds}}
    parameters = {"k": bounds, "s": bounds}
    without = found(decay("-k*x", parameters, **given))
    assert without.rank == 2
    experiment = Experiment(
        "dosed", {"t": TIMES, "y": 2 * np.exp(-0.5 * TIMES)}, events=[Event((2.0,), {"x": "x + 1"})]
    )
    model = Model(ode={"x": "-k*x"}, observables={"y": "s*x"})
    problem = Problem(model, None, parameters, {"x": bounds}, experiments=[experiment])
    assert found(problem).rank == 3


def test_a_rank_of_one_point_alone_is_a_lower_bound() -> None:
    """b acts where its term has not decayed before the first measurement: at one of the points."""
    bounds = {"lower": 0.0, "upper": 1e6}
    parameters = {"a": bounds, "b": bounds, "c": bounds}
    problem = decay("-a*x", parameters, observables={"y": "x + exp(-b*t)"})
    forward = ForwardMap(problem)
    hidden = [np.array([0.5, b, 1.0]) for b in (1e5, 1e6)]
    alone = local_identifiability(forward, points=[np.array([0.5, 0.3, 1.0]), *hidden])
    assert [p.rank for p in alone.points] == [2, 1, 1]
    assert alone.sentence.startswith("At least 2 of 3 unknowns are determined, locally")
    assert "Only one of these points reached" in alone.sentence
    again = [np.array([0.5, 0.3, 1.0]), np.array([0.4, 0.2, 1.0])]
    agreed = local_identifiability(forward, points=[*again, *hidden])
    assert agreed.sentence.startswith("1 of 3 unknowns is not determined, locally")


def test_a_prior_is_not_a_measurement() -> None:
    parameters = {"a": {"lower": 0}, "b": {"lower": 0, "prior": {"mean": 1.0, "sd": 0.1}}}
    assert set(found(decay("-a*b*x", parameters)).undetermined) == {"a", "b"}


def test_unknowns_of_the_noise_follow_from_the_scatter() -> None:
    noise = {"y": {"sd": "s0 + s1*y"}}
    parameters = {"a": {"lower": 0}, "s0": {"lower": 0}, "s1": {"lower": 0}}
    result = found(decay("-a*x", parameters, noise=noise))
    assert result.scatter == ("s0", "s1")
    assert result.sentence.startswith("The one unknown is determined")


def test_weak_unknowns_are_judged_by_the_given_noise() -> None:
    bounds = {"lower": 0.0, "upper": 1.0}
    for sd, weak in ((1e-3, ()), (50.0, ("a",))):
        assert found(decay("-a*x", {"a": bounds}, noise={"y": {"sd": sd}})).weak == weak


def test_a_model_that_never_integrates_says_when_and_why() -> None:
    bounds = {"lower": 1.0, "upper": 2.0}
    result = found(decay("a*x^2", {"a": bounds}))
    assert result.rank is None
    assert "nothing is known about its" in result.sentence
    failures = [str(p.failure) for p in result.points]
    assert len(failures) >= POINTS / 2  # there are no steps on from where nothing integrates
    assert all(f.startswith('experiment "data", t = ') for f in failures)


def test_the_seed_determines_the_points() -> None:
    problem = library.load("lotka-volterra-f")
    first, second, other = (found(problem, seed) for seed in (3, 3, 4))
    for a, b in zip(first.points, second.points, strict=True):
        np.testing.assert_array_equal(a.vector, b.vector)
    assert not np.array_equal(first.points[0].vector, other.points[0].vector)


def test_points_may_be_given() -> None:
    problem = decay("-a*x", {"a": {"lower": 0}})
    result = local_identifiability(ForwardMap(problem), points=[np.array([0.3])])
    assert len(result.points) == 1
    # dy/da = -t 2 exp(-a t), over an assumed standard deviation of 1 % of 2.
    slope = TIMES * 2 * np.exp(-0.3 * TIMES) / 0.02
    assert result.points[0].errors[0] == pytest.approx(1 / np.linalg.norm(slope), rel=1e-6)


def test_a_problem_without_unknowns_needs_no_analysis() -> None:
    result = found(decay("-a*x", {"a": 0.5}))
    assert result.points == ()
    assert "No unknown has an effect on" in result.sentence


@pytest.mark.slow
def test_very_many_directions_are_not_described() -> None:
    names = [f"k{i}" for i in range(MAX_DIRECTIONS + 2)]
    problem = decay(f"-x*({' + '.join(names)})", dict.fromkeys(names, (1e-3, 1e-2)))
    result = local_identifiability(ForwardMap(problem), points=[np.full(len(names), 5e-3)])
    assert (result.rank, result.directions) == (1, ())
    assert {*result.undetermined} == {*names}


def test_no_further_points_are_tried_where_no_rank_can_be_higher() -> None:
    """Three unknowns that act, and two measurements beside the known start: the rank is 2."""
    rates = {name: {"lower": 0.1, "upper": 1.0} for name in ("a", "b", "c")}
    data = {"t": [0.0, 1.0, 2.0], "y": [2.0, 1.2, 0.7]}
    finding = found(decay("a + b*t + c*t^2", rates, data=data))
    assert finding.rank == 2
    assert len(finding.points) == POINTS
    assert set(finding.undetermined) == {"a", "b", "c"}


def test_no_point_is_begun_after_the_limit_of_work() -> None:
    """A sum of 1,000 sines took 11 s, 0.7 of them for a point after the limit was reached."""
    forward = ForwardMap(library.load("alpha-pinene"))
    limit = WorkLimit(1e12)
    points = _points(forward, 0, limit)
    assert len([next(points), next(points)]) == 2
    limit.spent = limit.operations
    assert list(points) == []


def test_a_point_that_no_step_improves_counts_once() -> None:
    """A point that repeats another one would confirm its rank."""
    problem = library.load("alpha-pinene")
    forward = ForwardMap(problem)
    limit = WorkLimit(1e12)
    points = _points(forward, 0, limit)
    first = next(points)
    limit.spent = limit.operations - 1.0  # suffices for the first evaluation of the search alone
    assert [p.tolist() for p in points] == []
    assert np.isfinite(first).all()
