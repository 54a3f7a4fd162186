"""The costs at many points at once are those at each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Experiment, ForwardMap, Model, Problem
from odefit.methods.starts import sample
from odefit.simulation import Evaluation
from odefit.simulation.best_seen import BestSeen, noting
from odefit.simulation.engines.engine_choice import UNDECIDED

TIMES = np.linspace(0.5, 8.0, 6)
RATES = {"lower": 0.05, "upper": 5.0, "scale": "log10"}


def subjects(noise: Any, observable: str = "blood/V", **more: Any) -> Problem:
    own = RATES | {"per_experiment": True}
    unknowns = {"ka": own, "ke": RATES, "V": own | {"upper": 50.0}} | more
    rng = np.random.default_rng(0)
    runs = [
        Experiment(
            name,
            {"t": TIMES[: 6 - k], "c": rng.integers(1, 9, 6 - k)},
            initial={"gut": 50.0 + k},
        )
        for k, name in enumerate("ABC")
    ]
    model = Model(
        ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": observable}
    )
    none = {"gut": 0.0, "blood": 0.0}
    return Problem(model, experiments=runs, parameters=unknowns, initial=none, noise={"c": noise})


PLAIN = {"sd": 0.3}


@pytest.mark.parametrize(
    ("noise", "observable"),
    [
        (PLAIN, "blood/V"),
        (PLAIN, "blood"),
        ({"sd": "estimate"}, "blood/V + 0.1*t"),
        ({"sd": "estimate", "transform": "log"}, "blood/V + 0.01"),
        ({}, "exp(-ke)*blood"),
    ],
)
def test_costs_of_many_points_are_those_of_each(noise: Any, observable: str) -> None:
    problem = subjects(noise, observable)
    forward = ForwardMap(problem)
    points = sample(problem, 0, 16, 0)
    seen = BestSeen(problem)
    with noting(seen):
        costs = forward.costs_along(points, forward.trajectories_at(points))
    assert costs is not None
    evaluations = [forward.evaluate_cost(point, UNDECIDED) for point in points]
    each = [one.cost for one in evaluations if isinstance(one, Evaluation)]
    assert len(each) == 16
    np.testing.assert_allclose(costs, np.array(each), rtol=1e-9)
    assert seen.count == 16
    np.testing.assert_array_equal(seen.vector, points[costs.argmin()])
    assert seen.cost == costs.min()


def test_a_point_without_a_cost_has_an_infinite_one() -> None:
    problem = subjects({"sd": 0.3, "transform": "log"}, "blood - V")
    forward = ForwardMap(problem)
    points = sample(problem, 0, 16, 0)
    costs = forward.costs_along(points, forward.trajectories_at(points))
    assert costs is not None
    each = [forward.evaluate_cost(point, UNDECIDED) for point in points]
    defined = [isinstance(one, Evaluation) for one in each]
    assert not all(defined)
    np.testing.assert_array_equal(np.isfinite(costs), defined)


@pytest.mark.parametrize(
    "problem",
    [
        subjects({"distribution": "poisson"}),
        subjects({"sd": "sqrt(0.1^2 + (0.1*c)^2)"}),
        subjects(PLAIN, ke=RATES | {"prior": {"mean": 1.0, "sd": 0.2}}),
    ],
    ids=["counts", "spread", "prior"],
)
def test_others_are_evaluated_one_by_one(problem: Problem) -> None:
    forward = ForwardMap(problem)
    points = sample(problem, 0, 16, 0)
    assert forward.costs_along(points, forward.trajectories_at(points)) is None


def test_one_missing_trajectory_is_enough_to_evaluate_them_one_by_one() -> None:
    problem = subjects(PLAIN)
    forward = ForwardMap(problem)
    points = sample(problem, 0, 16, 0)
    along = [*forward.trajectories_at(points)[:15], None]
    assert forward.costs_along(points, along) is None
