"""Textbook systems are sound, their proofs are judged by SciPy, and what is open counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from evidence.bounds.textbook import SYSTEMS, lowest_known, run, tables, tasks
from evidence.running.campaign import Record
from evidence.zoo.drawing import sampled
from odefit import Problem
from odefit.problem import problem_from_mapping
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED


def rows(record: Record) -> list[Any]:
    return tables([record])["certificates"].to_dict("records")


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_truth_is_near_the_optimum(system: str) -> None:
    drawn = sampled(system, SYSTEMS[system], 0)
    problem = problem_from_mapping(drawn.mapping)
    size = sum(len(s.values) for c in problem.conditions for s in c.series.values())
    assert 0.3 * size < drawn.by_hand.measure(drawn.truth) < 2.5 * size
    assert all(problem.lower <= [drawn.truth[key] for key in problem.keys])
    assert all(problem.upper >= [drawn.truth[key] for key in problem.keys])


@pytest.mark.slow
def test_a_proof_is_reported_beside_the_least_objective_of_scipy() -> None:
    (task,) = tasks(["saturable-elimination"], 1, 900.0, 20, 1)
    told = run(task)
    drawn = sampled("saturable-elimination", SYSTEMS["saturable-elimination"], 0)
    problem = problem_from_mapping(drawn.mapping)
    assert told["lowest"] == pytest.approx(lowest_known(drawn, problem, 20, 1, 0))
    assert told["lower"] <= told["lowest"] * (1 + 1e-9)
    assert told["upper"] == pytest.approx(told["lowest"], rel=1e-5)
    (row,) = rows(Record(task["key"], task, "done", told, "", 1.0))
    assert row["closed"]
    assert not row["contradicted"]
    assert row["gap"] <= 0.01


def test_a_bound_above_a_known_objective_is_shown() -> None:
    (task,) = tasks(["enzyme"], 1, 60.0, 0, 0)
    wrong = {"lower": 5.0, "upper": 5.01, "boxes": 9, "processor": 1.0, "lowest": 4.0}
    (row,) = rows(Record(task["key"], task, "done", wrong, "", 1.0))
    assert row["contradicted"]


def measured() -> Problem:
    """Theophylline, the first subject of R. A. Upton's data of 1980 (Boeckmann et al., 1994)."""
    times = [0.25, 0.57, 1.12, 2.02, 3.82, 5.1, 7.03, 9.05, 12.12, 24.37]
    values = [2.84, 6.57, 10.5, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28]
    return Problem(
        odefit.Model(ode={"gut": "-ka*gut", "C": "ka*gut/V - ke*C"}),
        {"t": times, "C": values},
        {
            "ka": {"lower": 0.5, "upper": 5.0},
            "ke": {"lower": 0.02, "upper": 0.2},
            "V": {"lower": 10.0, "upper": 100.0},
        },
        {"gut": 320.0, "C": 0.0},
        noise={"C": odefit.Noise(sd=0.7)},
        t0=0.0,
    )


NOISY = ("saturable-elimination", "pendulum", "dc-motor", "two-compartment-oral", "goodwin")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["theophylline", *NOISY])
def test_proved_regions_hold_samples_and_profiles_and_are_hardly_wider(name: str) -> None:
    if name == "theophylline":
        problem = measured()
    else:
        problem = problem_from_mapping(sampled(name, SYSTEMS[name], 0).mapping)
    result = odefit.fit(problem, certify="region", seed=1, jobs=1, time_limit=1500.0)
    region = result.assessment.region
    assert region is not None
    assert region.complete
    for one in region.intervals:
        low, high = one.profile
        assert one.lower <= low < high <= one.upper
        lengths = [b - a for a, b in one.intervals or [(one.lower, one.upper)]]
        assert max(lengths) <= 1.5 * (high - low)
    # A random walk through the region, which rejects steps that leave it.
    forward, random = ForwardMap(problem), np.random.default_rng(2)
    corners = np.array([(one.lower, one.upper) for one in region.intervals])
    point, steps = result.best.vector, 0
    for size in np.tile([0.5, 0.15, 0.05], 1000):
        step = size * (corners[:, 1] - corners[:, 0]) * random.normal(size=len(point))
        there = np.clip(point + step, problem.lower, problem.upper)
        evaluation = forward.evaluate(there, UNDECIDED)
        if isinstance(evaluation, Evaluation) and evaluation.objective <= region.cut:
            point, steps = there, steps + 1
            assert (corners[:, 0] <= point).all()
            assert (point <= corners[:, 1]).all()
    assert steps > 200
