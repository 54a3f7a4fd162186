"""Solutions of experiments with unknowns of their own: counted by experiment, and by product."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import odefit
from evidence.zoo.hills import data_set
from evidence.zoo.jak_stat import cascade
from odefit import Experiment, Model, Problem, Result, SingleShooting
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.fitting.solutions import MAX_SOLUTIONS, ambiguity, distinct_solutions
from odefit.methods.estimate import Completeness
from odefit.methods.polish import Answer, answer
from odefit.methods.running.control import Control
from odefit.problem import problem_from_mapping
from odefit.reporting.notices import notice_sentence
from odefit.result_data import Solution
from odefit.result_data.notices import NoticeKind

TIMES = np.linspace(0.2, 6.0, 14)


@cache
def fitted(sd: Any) -> Result:
    """Two runs with two rates each that may change places; in the third, bounds forbid it."""
    random = np.random.default_rng(2)
    runs = []
    for name, a, b in (("A", 0.3, 1.5), ("B", 0.4, 2.0), ("C", 0.5, 3.5)):
        values = np.exp(-a * TIMES) + np.exp(-b * TIMES) + 0.02 * random.normal(size=14)
        runs.append(Experiment(name, {"t": TIMES, "y": values}, t0=0.0))
    rate = {"lower": 0.01, "upper": 9.0, "per_experiment": True}
    problem = Problem(
        Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "x + z"}),
        experiments=runs,
        parameters={"a": rate | {"upper": 2.3}, "b": rate},
        initial={"x": 1.0, "z": 1.0},
        noise={"y": {"sd": sd}},
    )
    return odefit.fit(problem, seed=1, jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0.02, "estimate"])
def test_mirror_solutions_are_counted_by_experiment_and_by_product(sd: Any) -> None:
    result = fitted(sd)
    (notice,) = [n for n in result.notices if n.kind is NoticeKind.EQUAL_SOLUTIONS]
    assert notice.numbers["count"] == 4.0
    assert notice.groups == {"A": 2.0, "B": 2.0}
    assert set(notice.names) == {"a[A]", "b[A]", "a[B]", "b[B]"}
    words = " ".join(result.warnings)
    assert (
        "4 different solutions fit equally well (2 x 2: 2 of A, 2 of B, and any goes with any)"
        in words
    )
    complete = result.assessment.complete
    assert complete is not None
    assert (complete.possible, complete.real) == (8, 8)
    assert "8 solutions with the same outputs" in complete.sentence
    assert "4 within the bounds" in complete.sentence


def test_intervals_of_unknowns_that_change_places_say_so() -> None:
    notes = fitted(0.02).parameters["note"]
    for key in ("a[A]", "b[A]", "a[B]", "b[B]"):
        assert "solutions fit within the noise: " in notes[key]
    assert notes["a[C]"] == ""


def test_ends_along_a_poorly_determined_direction_are_one_solution() -> None:
    """The rate of a short decay is known to half of itself; an end 5 % away is on the same hill."""
    times = np.linspace(0.0, 1.0, 9)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": np.exp(-0.3 * times) + 0.1 * np.cos(9.0 * times)},
        {"k": {"lower": 0.01, "upper": 9.0, "guess": 0.4}},
        {"x": 1.0},
        noise={"x": {"sd": 0.2}},
    )
    estimate = SingleShooting().solve(problem, Control(jobs=1))
    found = answer(problem, estimate, Control(jobs=1), True)
    assert isinstance(found, Answer)
    uncertainty = assess_uncertainty(found.forward, found.start.vector, found.evaluation)

    def count(factor: float) -> int:
        far = replace(found.start, vector=factor * found.start.vector, index=7)
        more = replace(estimate, starts=(*estimate.starts, far))
        return len(distinct_solutions(found, more, uncertainty))

    assert (count(1.05), count(1.5)) == (1, 2)
    # Where the data determine the rate well, an end 5 % away with the same cost is another hill.
    precise = replace(uncertainty, variance=1e-4 * uncertainty.variance)
    far = replace(found.start, vector=1.05 * found.start.vector, index=7)
    more = replace(estimate, starts=(*estimate.starts, far))
    assert len(distinct_solutions(found, more, precise)) == 2


def test_a_polished_optimum_stands_for_ends_beside_it_and_before_those_of_a_ridge() -> None:
    """Thirty ends along a ridge of the same cost are listed as far as there are places left."""
    times = np.linspace(0.0, 1.0, 9)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": np.exp(-0.3 * times) + 0.01 * np.cos(9.0 * times)},
        {"k": {"lower": 0.01, "upper": 99.0, "guess": 0.4}},
        {"x": 1.0},
        noise={"x": {"sd": 0.2}},
    )
    estimate = SingleShooting().solve(problem, Control(jobs=1))
    found = answer(problem, estimate, Control(jobs=1), True)
    assert isinstance(found, Answer)
    best = found.start
    ridge = [replace(best, vector=best.vector * 1.1**k, index=10 + k) for k in range(1, 31)]
    coarse = replace(best, vector=np.array([50.0]), index=70, cost=best.cost + 1.0)
    polished = replace(coarse, vector=np.array([50.1]), index=71, cost=coarse.cost + 1e-9)
    more = replace(estimate, starts=(*estimate.starts, *ridge, coarse))
    solutions = distinct_solutions(found, more, None, [polished])
    assert len(solutions) == MAX_SOLUTIONS
    assert solutions[0].vector is best.vector
    assert solutions[-1].vector is polished.vector
    assert solutions[-1].hits == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_hills_of_a_signalling_cascade_are_found_from_any_seed(seed: int) -> None:
    """In one a reaction of dimers takes long, in the other it is as fast as its bound allows."""
    result = odefit.fit(cascade(), seed=seed, jobs=1)
    assert result.objective == pytest.approx(38.780, abs=0.001)
    slow, fast = sorted(s.parameters["p2"] for s in result.fitting)
    assert slow == pytest.approx(0.35, rel=0.05)
    assert fast == pytest.approx(1000.0, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 4])
def test_solutions_that_merge_are_listed_once_whatever_the_seed(number: int) -> None:
    """Two rates merge in the best fit, so that errors of the answer make two solutions of one."""
    problem = problem_from_mapping(data_set("three-steps", number).mapping)
    listed = []
    for seed in range(3):
        result = odefit.fit(problem, seed=seed, jobs=1)
        complete = result.assessment.complete
        assert complete is not None
        assert (complete.found, complete.possible, complete.real) == (6, 6, 3)
        assert "3 of them real and different" in complete.sentence
        listed.append(sorted(s.vector.round(3).tolist() for s in result.fitting))
    assert len(listed[0]) == 3
    assert listed[1:] == [pytest.approx(np.array(listed[0]), abs=2e-3)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_places_of_a_ridge_that_turns_back_are_one_solution(seed: int) -> None:
    """Two masses of which one is seen: the other's initial value is not determined."""
    problem = problem_from_mapping(data_set("coupled-masses", 7).mapping)
    result = odefit.fit(problem, seed=seed, jobs=1)
    assert not result.ambiguous
    assert len(result.fitting) == 1


@pytest.mark.parametrize(("complete", "every"), [(Completeness(2, 2), True), (None, False)])
def test_solutions_that_may_be_missing_are_announced(
    complete: Completeness | None, every: bool
) -> None:
    times = np.linspace(0.0, 4.0, 9)
    model = Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "x + z"})
    problem = Problem(
        model, {"t": times, "y": np.exp(-times)}, {"a": {}, "b": {}}, {"x": 1.0, "z": 1.0}
    )
    one, other = (
        Solution(np.array(v), {"a": v[0], "b": v[1]}, {}, 1.0, None, 1) for v in ([1, 2], [2, 1])
    )
    for equal, near in (((one, other), ()), ((one,), (other,))):
        (notice,) = ambiguity(problem, equal, near, complete)
        missing = "There may be others, which this search has not found"
        assert (missing in notice_sentence(notice)) == (not every or bool(near))
