"""A local search on the discretised problem: where it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.control import Control
from odefit.methods.solvers.local_search import LocalSearch
from odefit.methods.solvers.solver import Answer, Limits, Outcome, make_answer
from odefit.problem.arrays import Array

TIMES = np.linspace(0.0, 2.0, 5)
MEASURED = np.array([1.0, 0.9, 0.3, 0.4, 0.1])


@dataclass(frozen=True)
class Unwilling:
    """A solver that gives up at once, and keeps the states from which it was to begin."""

    begun: list[Array] = field(default_factory=list)
    name: str = "unwilling"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        assert instance.values is not None
        self.begun.append(instance.values[:, 0])
        return make_answer(instance, Outcome.FAILED, None, None, None, 0.0, "no")


def begun(index: int, guess: float | None, guessed: bool) -> Array:
    """The states at the data times from which a start with k = 0.5 begins."""
    unknown = {"lower": 0.0, "upper": 5.0} | ({} if guess is None else {"guess": guess})
    data = {"t": TIMES, "x": MEASURED}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": unknown}, {"x": 1.0})
    solver = Unwilling()
    search = LocalSearch(
        SCHEMES["trapezoid"], UniformMesh(4), solver=solver, guessed=guessed, polish=False
    )
    search.run(ForwardMap(problem), index, np.array([0.5]), Control())
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
