"""Intervals over an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor

import numpy as np
import pytest
from loky import ProcessPoolExecutor

import odefit
from odefit import Model, MultipleShooting, Problem


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ProcessPoolExecutor(max_workers=2) as found:
        yield found


def kinked(least: float = 0.1) -> Problem:
    """A right-hand side with a kink, whose intervals go to CVODES one by one."""
    times = np.linspace(0.0, 4.0, 21)
    x = np.where(times < 1.5, 1 - 0.5 * times, 0.25 - 0.1 * (times - 1.5))
    random = np.random.default_rng(0)
    return Problem(
        Model(ode={"x": "-max(k*min(x - 0.2, 0.3), m*x)"}),
        {"t": times, "x": x + 0.01 * random.normal(size=21)},
        {"k": {"guess": 1.0}, "m": {"guess": least}},
        {"x": {"guess": 1.0}},
    )


@pytest.mark.slow
def test_the_answer_does_not_depend_on_where_intervals_are_integrated(executor: Executor) -> None:
    problem = kinked()
    method = MultipleShooting(nodes=6, starts=1)
    here = odefit.fit(problem, method)
    there = odefit.fit(problem, method, executor=executor)
    assert np.array_equal(here.best.vector, there.best.vector)
    assert there.starts[0].message == here.starts[0].message


@pytest.mark.slow
def test_a_failure_elsewhere_is_reported_as_here(executor: Executor) -> None:
    problem = Problem(
        Model(ode={"x": "k*abs(x)*x"}),
        {"t": [0.0, 1.0, 2.0, 3.0], "x": [1.0, 1.2, 1.4, 1.6]},
        {"k": {"guess": 1e4}},
        {"x": 1.0},
    )
    method = MultipleShooting(nodes=3, starts=1)
    here, there = odefit.fit(problem, method), odefit.fit(problem, method, executor=executor)
    assert here.status is there.status
    assert here.message == there.message
