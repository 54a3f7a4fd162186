"""A candidate improved by low derivatives at several times."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, library
from odefit.common.arrays import Array
from odefit.methods.algebraic.candidates import candidate, solution_of
from odefit.methods.algebraic.derivatives import SmoothedData
from odefit.methods.algebraic.preparation import Preparation, prepare
from odefit.methods.algebraic.search import Refinement
from odefit.methods.smoothing import AAA
from odefit.simulation import Evaluation
from tests.methods.algebraic.models import TIMES, prey


def ready(name: str) -> tuple[Problem, Array, Preparation, Refinement]:
    problem, reference = library.load(name), library.reference(name)
    preparation = prepare(problem)
    refinement = Refinement(preparation, SmoothedData(preparation.square), AAA())
    vector = problem.vector({**reference.parameters, **reference.initial})
    return problem, vector, preparation, refinement


def refined(preparation: Preparation, refinement: Refinement, vector: Array) -> Array | None:
    start = solution_of(preparation, vector, (0.0,))
    assert start is not None
    values = refinement.refined(start, (0.0,))
    if values is None:
        return None
    found = candidate(preparation, values, tuple(t[0] for t in refinement.times), "")
    assert found is not None
    return found.vector


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error", "better"),
    [
        ("rational-mammillary-3", 1e-2, 1e-3),
        ("rational-biohydrogenation", 1e-2, 1e-3),
        ("rational-lotka-volterra", 1e-2, 1e-3),
        ("rational-fitzhugh-nagumo", 1e-2, 1e-3),
    ],
)
def test_errors_of_a_candidate_shrink(name: str, error: float, better: float) -> None:
    """Each unknown is wrong by up to `error`; after, by less than `better` of that."""
    problem, truth, preparation, refinement = ready(name)
    random = np.random.default_rng(0)
    start = truth * (1.0 + error * random.uniform(-1.0, 1.0, len(truth)))
    found = refined(preparation, refinement, start)
    assert found is not None
    known = np.array([k not in ("x7",) for k in problem.keys])
    before = np.linalg.norm((start / truth - 1.0)[known])
    after = np.linalg.norm((found / truth - 1.0)[known])
    assert after < better * before


@pytest.mark.parametrize("name", ["rational-lotka-volterra", "rational-fitzhugh-nagumo"])
def test_exact_data_leave_the_truth_unchanged(name: str) -> None:
    problem, truth, preparation, refinement = ready(name)
    found = refined(preparation, refinement, truth)
    if found is not None:
        assert found == pytest.approx(truth, rel=1e-6)
    assert problem.keys


def test_two_close_solutions_are_distinguished_as_well_as_their_data_allow() -> None:
    """Compartments 3 and 4 of mammillary 4 have rates of 0.582 and 0.536: data set 0."""
    problem, truth, preparation, refinement = ready("rational-mammillary-4")
    random = np.random.default_rng(0)
    start = truth * (1.0 + 1e-3 * random.uniform(-1.0, 1.0, len(truth)))
    found = refined(preparation, refinement, start)
    assert found is not None
    forward = ForwardMap(problem)
    before, after = (forward.evaluate(v) for v in (start, found))
    assert isinstance(before, Evaluation)
    assert isinstance(after, Evaluation)
    assert after.objective < 1e-10 * before.objective


def test_the_first_time_is_the_middle_at_which_states_are_returned() -> None:
    preparation = prepare(prey())
    refinement = Refinement(preparation, SmoothedData(preparation.square), AAA())
    (times,) = refinement.times
    assert times[0] == 2.0
    assert len(set(times)) == len(times) > preparation.square.size / (preparation.square.order + 1)
    assert all(0.0 < t < 4.0 for t in times)


def test_a_candidate_whose_trajectory_does_not_span_the_data_is_not_refined() -> None:
    """x' = k x^2 + j from 1 at t = 0: it ends between the times that are looked at."""
    model = Model(ode={"x": "k*x^2 + j"}, observables={"y": "x"})
    problem = Problem(model, {"t": TIMES, "y": 1.0 + TIMES}, {"k": {}, "j": {}}, {"x": {}})
    preparation = prepare(problem)
    refinement = Refinement(preparation, SmoothedData(preparation.square), AAA())
    values = solution_of(preparation, problem.vector({"k": 0.5, "j": 1e-9, "x": 1.0}), (0.0,))
    assert values is not None
    assert refinement.refined(values, (0.0,)) is None
