"""Data sets of the paper without noise: no bounds, no guess, and the truth is known."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import odefit
from evidence.rational.plan import data_set, run_task
from odefit import Algebraic, Control, ForwardMap, Problem, library
from odefit.methods.algebraic.preparation import prepare
from odefit.methods.estimate import Estimate
from odefit.simulation import Failure
from tests.methods.algebraic.models import best, solved, worst


@dataclass(frozen=True)
class Known:
    """What is known of a model.

    Attributes
    ----------
    count
        Solutions that no data can tell apart (Table 1 of the paper, and tests/structure).
    plain, polished
        Largest relative error of the closest solution, before and after polishing.
    """

    count: int
    plain: float
    polished: float


KNOWN = {
    "harmonic": Known(1, 1e-9, 1e-11),
    "van-der-pol": Known(1, 1e-9, 1e-11),
    "fitzhugh-nagumo": Known(1, 1e-6, 1e-9),
    "lotka-volterra": Known(1, 1e-6, 1e-8),
    "mammillary-3": Known(1, 1e-6, 1e-8),
    "hiv": Known(1, 1e-6, 1e-8),
    "seir": Known(2, 1e-5, 1e-6),
    "mammillary-4": Known(2, 3e-2, 1e-4),  # its two solutions are close to each other
    "biohydrogenation": Known(2, 1e-6, 1e-7),
}
SLOW = {"hiv", "seir", "biohydrogenation"}
"""They take seconds each; mammillary-4 has two solutions as well."""


def models(names: Iterable[str]) -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in names]


ALL = models(KNOWN)
SEVERAL = models(name for name, known in KNOWN.items() if known.count > 1)


def problem_of(name: str) -> Problem:
    return library.load(f"rational-{name}")


def truth_of(name: str) -> dict[str, float]:
    reference = library.reference(f"rational-{name}")
    whole = {**reference.parameters, **reference.initial}
    return {k: v for k, v in whole.items() if k not in reference.not_identifiable}


@functools.cache
def found(name: str, *, polish: bool) -> Estimate:
    return solved(problem_of(name), polish=polish)


def closest(name: str, polish: bool) -> float:
    """The error of that solution, among the k best, which is closest to the truth."""
    problem, truth = problem_of(name), truth_of(name)
    starts = sorted(found(name, polish=polish).starts, key=lambda s: s.cost)
    return min(worst(problem, s.vector, truth) for s in starts[: KNOWN[name].count])


def test_the_problems_come_with_neither_bounds_nor_guesses() -> None:
    for name in KNOWN:
        for unknown in problem_of(name).unknowns:
            parameter = unknown.parameter
            assert (parameter.lower, parameter.upper) == (-np.inf, np.inf)
            assert parameter.guess is None


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_the_truth_is_found_from_derivatives_alone(name: str) -> None:
    assert closest(name, polish=False) < KNOWN[name].plain


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_polishing_brings_the_last_digits(name: str) -> None:
    assert closest(name, polish=True) < KNOWN[name].polished


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_solution_that_the_structure_promises_is_found(name: str) -> None:
    for polish in (False, True):
        counted = found(name, polish=polish).completeness
        assert counted is not None
        assert counted.possible == counted.found == KNOWN[name].count
        assert counted.lost == 0
        assert counted.doubt < 1e-6


@pytest.mark.parametrize("name", SEVERAL)
def test_the_other_solution_reproduces_the_data_and_is_another(name: str) -> None:
    problem = problem_of(name)
    one, other = sorted(found(name, polish=True).starts, key=lambda s: s.cost)[:2]
    forward = ForwardMap(problem)
    (condition,) = problem.conditions
    for start in (one, other):
        trajectory = forward.trajectory(start.vector, condition.name)
        assert not isinstance(trajectory, Failure)
        predicted = forward.predictions(condition, start.vector, trajectory)
        for observable, series in condition.series.items():
            model = predicted[observable].array(len(condition.times))[series.rows]
            assert model == pytest.approx(series.values, rel=1e-12, abs=1e-13)
    known = [problem.keys.index(k) for k in truth_of(name)]
    scale = np.maximum(np.abs(one.vector), np.abs(other.vector))[known]
    assert (np.abs(one.vector - other.vector)[known] / scale).max() > 0.05


def test_the_two_solutions_of_mammillary_4_exchange_compartments() -> None:
    """Compartments 3 and 4 are seen as their sum alone."""
    problem = problem_of("mammillary-4")
    one, other = sorted(found("mammillary-4", polish=True).starts, key=lambda s: s.cost)[:2]
    for a, b in (("k13", "k14"), ("k31", "k41"), ("x3", "x4")):
        i, j = problem.keys.index(a), problem.keys.index(b)
        assert one.vector[[i, j]] == pytest.approx(other.vector[[j, i]], rel=1e-3)


@pytest.mark.slow
def test_the_two_solutions_of_seir_exchange_rates() -> None:
    """E' and I' of the eigenvalues -nu and -a: which is which, I alone does not say."""
    problem = problem_of("seir")
    one, other = sorted(found("seir", polish=True).starts, key=lambda s: s.cost)[:2]
    i, j = problem.keys.index("a"), problem.keys.index("nu")
    assert one.vector[[i, j]] == pytest.approx(other.vector[[j, i]], rel=1e-5)


@pytest.mark.slow
def test_unknowns_that_the_outputs_do_not_determine_are_held_and_named() -> None:
    """x7 of biohydrogenation acts on nothing that is measured."""
    preparation = prepare(problem_of("biohydrogenation"))
    assert preparation.held == ("x7@",)
    message = solved(problem_of("biohydrogenation"), complete=False).message
    assert re.search("held, as .* determine them: x7 = 1 at t = 0", message)


@pytest.mark.parametrize("name", models(n for n in KNOWN if n != "biohydrogenation"))
def test_no_unknown_is_held_if_all_are_determined(name: str) -> None:
    assert "held" not in found(name, polish=True).message


@pytest.mark.slow
def test_a_held_unknown_keeps_its_guess() -> None:
    original = problem_of("biohydrogenation")
    problem = Problem(
        original.model,
        original.experiments[0].data,
        original.parameters,
        {**original.initial, "x7": {"guess": 0.25}},
        t0=original.experiments[0].t0,
    )
    assert "x7 = 0.25 at t = 0" in solved(problem, complete=False).message


@pytest.mark.parametrize("name", ["fitzhugh-nagumo", "lotka-volterra"])
def test_spurious_solutions_are_shown_with_their_larger_errors(name: str) -> None:
    """Both have two solutions of the polynomial system, one of which fits the data."""
    estimate = found(name, polish=False)
    objectives = sorted(s.objective for s in estimate.starts)
    assert objectives[0] < 1e-20
    assert objectives[1] > 1e-13
    assert best(estimate).index == 0


@pytest.mark.slow
def test_polishing_at_rounding_reaches_the_accuracy_of_the_data() -> None:
    """Residuals of 1e-12 leave an error of 8 % in this set, those of the data 0.02 %."""
    task = run_task("rational-mammillary-4", 3, 0.0, 21, (-0.5, 0.5))
    problem, truth = data_set(task)
    estimate = Algebraic().solve(problem, Control(jobs=1))
    errors = [np.abs(s.vector / truth - 1).max() for s in estimate.starts]
    assert min(errors) <= 1e-3
    result = odefit.fit(problem, method=Algebraic(), jobs=1)
    assert min(np.abs(s.vector / truth - 1).max() for s in result.solutions) <= 1e-3
