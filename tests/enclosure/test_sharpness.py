"""Sharper enclosures hold as well, with smaller remainders."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.enclosure import Enclosure
from odefit.enclosure.sharpness import Sharpness
from odefit.simulation.engines.cut_off import WorkLimit, counting
from tests.enclosure.containment import box
from tests.enclosure.solutions import CASES, holds


@pytest.mark.parametrize("case", ["logistic", "a quotient", "oscillator"])
@pytest.mark.parametrize("level", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_sharper_enclosures_hold_with_smaller_remainders(case: str, level: int) -> None:
    problem, vector, solution, _ = CASES[case]
    plain = Enclosure(problem)
    sharper = plain.sharper(level)
    assert sharper is not None
    corners = box(vector, 0.05)
    found = holds(problem, sharper, *corners, solution, count=2)
    assert found.remainder.max() < 0.3 * plain(*corners).remainder.max()


def test_each_level_takes_more_work_and_is_made_once() -> None:
    problem, vector, *_ = CASES["logistic"]
    plain, spent = Enclosure(problem), []
    for level in range(3):
        sharper = plain.sharper(level)
        assert sharper is not None
        assert sharper is plain.sharper(level)
        work = WorkLimit(np.inf)
        with counting(work):
            sharper(*box(vector, 0.05))
        spent.append(work.spent)
    assert plain.sharper(0) is plain
    assert spent[0] < spent[1] < spent[2]


def test_there_is_no_level_with_too_many_monomials() -> None:
    problem, *_ = CASES["logistic"]
    assert Enclosure(problem).sharper(200) is None


def test_all_limits_are_lower_at_a_higher_level() -> None:
    one, other = Sharpness(2).raised(1), Sharpness(2).raised(3)
    assert (one.degree, other.degree) == (3, 5)
    assert other.accuracy < one.accuracy < Sharpness().accuracy
    assert other.step_norm < one.step_norm < Sharpness().step_norm


def test_shorter_steps_of_sharper_enclosures_do_not_run_out_before() -> None:
    """A level that gives up where the plain one does not would divide such boxes in vain."""
    times = np.linspace(6.0, 60.0, 10)
    problem = Problem(
        Model(ode={"x": "v", "v": "-k*x^3"}),
        {"t": times, "x": np.zeros(10)},
        {"k": {"lower": 0.5, "upper": 2.0}},
        {"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.1}},
        t0=0.0,
    )
    plain = Enclosure(problem)
    for level in range(3):
        sharper = plain.sharper(level)
        assert sharper is not None
        assert np.isfinite(sharper(*box(np.array([1.0]), 1e-6)).remainder).all()
