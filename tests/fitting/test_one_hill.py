"""Ends on one ridge are one solution that fits, and ends with a valley between them are two."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from odefit import Experiment, Model, Problem, SingleShooting, Status
from odefit.assessment.intervals.continuation import Continuation
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Trouble
from odefit.common.arrays import Array
from odefit.fitting.fit_notices import _uncertain_solutions
from odefit.fitting.fit_stages import FitState, Wishes
from odefit.fitting.one_hill import reaching, with_hills
from odefit.fitting.solutions import solution
from odefit.methods.estimate import Completeness
from odefit.methods.polish import Answer, answer
from odefit.methods.running.control import Control
from odefit.reporting.notices import notice_sentence
from odefit.simulation import Evaluation, ForwardMap
from tests.assessment.ridges import Make, bent, circle, product, turns


def test_intervals_reach_the_other_values_of_the_hill_and_say_so() -> None:
    forward, one, _ = turns()
    evaluation = forward.evaluate(one)
    assert isinstance(evaluation, Evaluation)
    found = assess_uncertainty(forward, one, evaluation, 0.95)
    low, high = found.intervals[0]
    assert reaching(found, [one]).trouble == {}
    reached = reaching(found, [np.array([high + 1.0])])
    assert reached.intervals[0].tolist() == [low, high + 1.0]
    assert reached.trouble == {"w": Trouble.NOT_LINEAR}
    assert "a profile can tell more" in reached.notes["w"]
    withheld = replace(found, intervals=np.full((1, 2), np.nan))
    assert np.isnan(reaching(withheld, [np.array([9.0])]).intervals).all()


def two_ends(make: Make) -> tuple[FitState, Array]:
    """Return the state of a fit with a second solution that fits, and that solution."""
    forward, one, other = make()
    problem, control = forward.problem, Control(jobs=1)
    estimate = SingleShooting().solve(
        problem.with_unknowns(guess=dict(zip(problem.keys, one.tolist(), strict=True))), control
    )
    found = answer(problem, estimate, control, True)
    assert isinstance(found, Answer)
    ends = []
    for x in (found.start.vector, other):
        at = forward.evaluate(x)
        assert isinstance(at, Evaluation)
        ends.append(solution(problem, replace(found.start, vector=x), at, 1))
    state = FitState(
        problem=problem,
        control=control,
        estimate=estimate,
        wishes=Wishes(0.95, True, True, False, "as-is"),
        status=Status.CONVERGED,
        message="",
        outcome=found,
        solutions=tuple(ends),
        equal=tuple(ends[:1]),
        near=tuple(ends[1:]),
        uncertainty=assess_uncertainty(*found_at(found), 0.95),
    )
    return state, other


@pytest.mark.parametrize(("make", "hills"), [(product, 1), (turns, 2)])
def test_solutions_that_fit_are_counted_by_hill(make: Make, hills: int) -> None:
    state, other = two_ends(make)
    counted = with_hills(state)
    assert len([*counted.equal, *counted.near]) == hills
    assert counted.solutions == state.solutions
    assert counted.unsure == 0
    assert counted.uncertainty is not None
    if hills == 1:
        low, high = counted.uncertainty.intervals.T
        assert ((low <= other) & (other <= high)).all()
    else:
        assert counted.uncertainty is state.uncertainty


def test_places_of_a_ridge_that_turns_back_are_one_solution() -> None:
    state, other = two_ends(circle)
    best = state.solutions[0]
    counted = with_hills(replace(state, equal=(best, replace(best, vector=other)), near=()))
    assert (len(counted.equal), counted.unsure) == (1, 0)


def test_ends_of_one_ridge_are_one_solution_although_the_equations_distinguish_them() -> None:
    """A count by the equations is of copies of the answer, not of places of its hill."""
    state, other = two_ends(product)
    told = replace(state, complete=Completeness(1, 1))
    assert len([*(counted := with_hills(told)).equal, *counted.near]) == 1
    copied = replace(state, complete=Completeness(2, 2), copies=(other,))
    assert len([*(counted := with_hills(copied)).equal, *counted.near]) == 2


def test_solutions_that_differ_in_separate_experiments_are_not_compared() -> None:
    """Each differs from the answer in one experiment, as the deviance is a sum over these."""
    times = np.arange(12.0)
    data = {"t": times, "x": np.cos(times)}
    experiments = [Experiment(n, data, t0=0.0, constants={"w": f"w{n}"}) for n in "ab"]
    problem = Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}, constants={"w": 1.0}),
        parameters={name: {"lower": 0.2, "upper": 6.0} for name in ("wa", "wb")},
        initial={"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.2}},
        experiments=experiments,
    )
    alias = 2 * np.pi - 1.0
    ends = [np.array([1.0, 1.0]), np.array([alias, 1.0]), np.array([1.0, alias])]
    state, _ = two_ends(lambda: (ForwardMap(problem), ends[0], ends[1]))
    one, other = state.solutions
    state = replace(state, near=(other, replace(other, vector=ends[2])))
    pairs = []

    def way(refits: Continuation, first: Array, last: Array, highest: float) -> None:
        pairs.append((first.tolist(), last.tolist()))

    with (
        patch.object(Continuation, "way", way),
        patch.object(Continuation, "rise", return_value=0.0),
    ):
        assert len(with_hills(state).near) == 2
    best = one.vector.tolist()
    assert pairs == [(best, ends[1].tolist()), (best, ends[2].tolist())]


def test_an_unfinished_comparison_is_reported() -> None:
    """No refit from one solution to the other was possible, and the straight way is too high."""
    state, _ = two_ends(bent)
    with_time = with_hills(state)
    assert (len(with_time.near), with_time.unsure) == (0, 0)
    control = Control(jobs=1)
    control.interrupted.set()
    counted = with_hills(replace(state, control=control))
    assert (len(counted.near), counted.unsure) == (1, 1)
    (notice,) = _uncertain_solutions(False, counted.unsure)
    sentence = notice_sentence(notice)
    assert sentence.startswith("It is not known whether one solution listed is an optimum of its")
    (both,) = _uncertain_solutions(True, 2)
    assert "there may be more than those listed" in notice_sentence(both)
    assert "2 solutions listed are optima of their own" in notice_sentence(both)
    assert _uncertain_solutions(False, 0) == []


def found_at(found: Answer) -> tuple[ForwardMap, Array, Evaluation]:
    return found.forward, found.start.vector, found.evaluation
