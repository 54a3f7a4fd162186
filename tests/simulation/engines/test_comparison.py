"""The comparison of an explicit engine with the implicit one, and the choices that follow."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.comparison import (
    HOPELESS,
    MARGIN,
    MARGIN_OF_TAYLOR,
    UNFINISHED,
    Comparison,
    needed_steps,
)
from odefit.simulation.engines.engine import EngineFailure, Values
from odefit.simulation.engines.engine_choice import (
    LATER_TRIALS,
    TRIAL,
    UNDECIDED,
    EngineChoice,
)
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.registry import EXPLICIT, TAYLOR
from odefit.simulation.engines.steps import MIN_TAYLOR_STEPS, StepCosts
from tests.simulation.numerics import evaluated


def problem_of(rate: str, end: float = 10.0) -> Problem:
    model = Model(ode={"x": rate}, observables={"y": "x"})
    times = np.linspace(0.0, end, 20)
    return Problem(model, {"t": times, "y": np.cos(times)}, {"k": {}}, {"x": 1.0})


def comparison(
    outputs: int = 20, margin: float = MARGIN, tolerance: float = 1e-9, closed: float = math.inf
) -> Comparison:
    costs = StepCosts.of(ForwardMap(problem_of("-k*x^2 + sin(t)")).field, 1)
    share = 1e-9 / tolerance
    return Comparison.of(
        costs,
        EXPLICIT.name,
        outputs,
        explicit_share=share,
        implicit_share=share,
        margin=margin,
        closed=closed,
    )


def at(scalar: float) -> Values:
    none = np.zeros((1, 0))
    return Values(np.ones(1), np.array([scalar]), none, none, np.zeros(0))


@pytest.mark.parametrize("outputs", [1, 1000])
def test_limits_are_steps_that_take_the_same_time(outputs: int) -> None:
    found = comparison(outputs)
    explicit = found.explicit_limit(50_000)
    assert found.explicit_time(explicit) == pytest.approx(found.implicit_time(50_000), rel=0.01)
    assert found.implicit_time(found.implicit_limit(explicit)) == pytest.approx(
        found.explicit_time(explicit) / MARGIN, rel=0.01
    )
    assert found.explicit_limit(0) == MIN_TAYLOR_STEPS


@pytest.mark.parametrize("margin", [MARGIN, MARGIN_OF_TAYLOR])
def test_the_implicit_engine_is_preferred_where_it_is_faster_by_the_margin(margin: float) -> None:
    found = comparison(margin=margin)
    limit = found.implicit_limit(1000)
    for implicit, preferred in ((0.98 * limit, True), (1.02 * limit, False)):
        choice = found.compared(UNDECIDED, 1000, implicit)
        assert choice.stiff is found.prefers_implicit(choice) is preferred
        assert choice.rare == TRIAL
        again = found.compared(choice, 1000, implicit)
        assert again == replace(choice, rare=LATER_TRIALS)


def test_an_integration_in_other_tolerances_expects_its_own_steps() -> None:
    """A choice of a search is used by statistics, whose steps are shorter."""
    coarse, fine = comparison(tolerance=1e-5), comparison()
    choice = coarse.compared(UNDECIDED, 100, 100)
    assert choice.explicit == pytest.approx(100 * 1e4 ** (1 / 8))
    assert choice.explicit * choice.ratio == pytest.approx(100 * 1e4 ** (1 / 6))
    later = fine.after_implicit(replace(choice, stiff=True), 2000)
    assert later.explicit * later.ratio == pytest.approx(2000)


def test_steps_that_hardly_change_leave_the_choice_as_it_is() -> None:
    found = comparison()
    choice = found.compared(UNDECIDED, 1000, 2000)
    assert choice.stiff
    assert found.after_implicit(choice, 2100) is choice
    assert found.after_implicit(choice, 3000).explicit == pytest.approx(1500)
    # Where the explicit engine needs few steps, it goes first again.
    assert not found.after_implicit(choice, 20).stiff


def test_a_closed_form_is_taken_where_it_is_faster() -> None:
    found = comparison(closed=1e5)
    assert found.takes_closed_form(UNDECIDED)
    many = int(2e5 / found.implicit_step)
    assert found.takes_closed_form(found.compared(UNDECIDED, 1000, many))
    assert not found.takes_closed_form(found.compared(UNDECIDED, 1000, 1))
    assert found.after_explicit(UNDECIDED, 10_000).stiff
    assert not found.after_explicit(UNDECIDED, 1).stiff
    assert not comparison().takes_closed_form(UNDECIDED)


def test_an_explicit_integration_is_repeated_unless_it_is_short() -> None:
    found = comparison()
    assert found.tries_implicit(UNDECIDED, 10_000, at(1.0))
    assert not found.tries_implicit(UNDECIDED, 1, at(1.0))


@pytest.mark.parametrize("rare", [TRIAL, LATER_TRIALS])
def test_lots_repeat_one_integration_of_so_many(rare: int) -> None:
    found = comparison()
    choice = EngineChoice(stiff=True, explicit=1000.0, ratio=0.1, rare=rare)
    values = np.random.default_rng(0).uniform(0.0, 1.0, 20_000)
    drawn = [found.tries_explicit(choice, at(value)) for value in values]
    assert sum(drawn) == pytest.approx(20_000 / rare, rel=0.2)
    assert drawn == [found.tries_explicit(choice, at(value)) for value in values]


@pytest.mark.parametrize(
    ("ahead", "expected"), [(50.0, 150.0), (1.0, UNFINISHED * 100), (math.inf, HOPELESS * 100)]
)
def test_an_unfinished_trial_predicts_its_steps(ahead: float, expected: float) -> None:
    failure = EngineFailure(1.0, "", out_of_steps=True, steps=100, steps_ahead=ahead)
    assert needed_steps(failure) == expected


@pytest.mark.parametrize("k", [500.0, 1.0])
def test_a_search_finds_the_faster_engine(k: float) -> None:
    """Fast relaxation is stiff in a long interval; of a smooth motion, neither engine tires."""
    problem = problem_of("-k*(x - cos(t))*(1 + x^2)", end=100.0)
    forward = ForwardMap(problem, tolerance=1e-5)
    choice = UNDECIDED
    for step in range(5):
        choice = evaluated(forward, np.array([k * (1 + 1e-6 * step)]), choice).choice
    assert choice.stiff is (k > 10.0)
    assert choice.ratio > 0.0 or not choice.stiff


def test_the_explicit_engine_is_coarser_in_a_search() -> None:
    search, statistics = Engines(tolerance=1e-5), Engines()
    assert search.tolerances[EXPLICIT.name] == pytest.approx(1e-9)
    assert statistics.tolerances[EXPLICIT.name] == EXPLICIT.tolerance
    assert search.tolerances[TAYLOR.name] == TAYLOR.tolerance
