"""A local search on the discretised problem: where it begins, and what an interruption leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.estimate import Status
from odefit.methods.running.control import Control
from odefit.methods.solvers.local_search import LocalSearch
from odefit.methods.solvers.solver import Answer, Limits, Outcome, make_answer

TIMES = np.linspace(0.0, 2.0, 5)
MEASURED = np.array([1.0, 0.9, 0.3, 0.4, 0.1])


@dataclass(frozen=True)
class Quick:
    """A solver that says its `answer` at once, or gives up; it keeps where it was to begin."""

    answer: float | None = None
    begun: list[Array] = field(default_factory=list)
    name: str = "quick"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        assert instance.values is not None
        self.begun.append(instance.values[:, 0])
        if self.answer is None:
            return make_answer(instance, Outcome.FAILED, None, None, None, 0.0, "no")
        k = np.array([self.answer])
        return make_answer(instance, Outcome.SOLVED, instance.values, k, None, 0.0, "yes")


def decay(guess: float | None = None) -> Problem:
    unknown = {"lower": 0.0, "upper": 5.0} | ({} if guess is None else {"guess": guess})
    data = {"t": TIMES, "x": MEASURED}
    return Problem(Model(ode={"x": "-k*x"}), data, {"k": unknown}, {"x": 1.0})


def search(solver: Quick, polish: bool, guessed: bool = False) -> LocalSearch:
    return LocalSearch(
        SCHEMES["trapezoid"], UniformMesh(4), solver=solver, guessed=guessed, polish=polish
    )


def begun(index: int, guess: float | None, guessed: bool) -> Array:
    """The states at the data times from which a start with k = 0.5 begins."""
    solver = Quick()
    forward = ForwardMap(decay(guess))
    search(solver, False, guessed).run(forward, index, np.array([0.5]), Control())
    (states,) = solver.begun
    return states


@pytest.mark.parametrize(("guess", "guessed"), [(0.5, False), (None, True)])
def test_a_point_that_the_user_gave_begins_with_its_simulation(
    guess: float | None, guessed: bool
) -> None:
    assert begun(0, guess, guessed) == pytest.approx(np.exp(-0.5 * TIMES), rel=1e-6)


@pytest.mark.parametrize(("index", "guess", "guessed"), [(0, None, False), (1, 0.5, True)])
def test_all_other_starts_begin_with_the_data(
    index: int, guess: float | None, guessed: bool
) -> None:
    assert begun(index, guess, guessed) == pytest.approx(MEASURED)


def test_an_interruption_after_the_solver_has_answered_keeps_its_answer() -> None:
    control = Control()
    control.interrupted.set()
    end = search(Quick(0.7), True).run(ForwardMap(decay()), 0, np.array([4.0]), control)
    assert end.status is Status.INTERRUPTED
    assert end.vector == pytest.approx([0.7])
    assert end.start == pytest.approx([4.0])
    assert np.isfinite(end.cost)


def test_an_interruption_of_a_solver_without_an_answer_keeps_the_start() -> None:
    control = Control()
    control.interrupted.set()
    end = search(Quick(), True).run(ForwardMap(decay()), 0, np.array([4.0]), control)
    assert end.status is Status.INTERRUPTED
    assert end.vector == pytest.approx([4.0])
    assert np.isfinite(end.cost)
