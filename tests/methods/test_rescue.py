"""A start that is ended at any moment returns the best that it has come by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import odefit
from odefit.discretisation.mesh import DataMesh
from odefit.discretisation.schemes import Trapezoid
from odefit.methods.estimate import Start, Status
from odefit.methods.method import LocalMethod
from odefit.methods.rescue import rescued
from odefit.methods.running.control import Control
from odefit.methods.shooting.search import ShootingSearch
from odefit.methods.solvers.local_search import LocalSearch
from odefit.simulation import ForwardMap


@dataclass(frozen=True)
class Impatient(Control):
    """A control that is interrupted when it is asked for the n-th time."""

    questions: list[int] = field(default_factory=lambda: [0])

    def should_stop(self) -> bool:
        self.questions[0] -= 1
        if self.questions[0] <= 0:
            self.interrupted.set()
        return super().should_stop()


def decay() -> odefit.Problem:
    """Return x' = -k x from x(0) = 1 with k = 1/2, measured at ten times."""
    times = np.linspace(0.0, 4.0, 10)
    model = odefit.Model(ode={"x": "-k*x"})
    unknown = {"k": {"lower": 0.0, "upper": 5.0}}
    return odefit.Problem(model, {"t": times, "x": np.exp(-0.5 * times)}, unknown, {"x": 1.0})


def cost(k: float) -> float:
    times = np.linspace(0.0, 4.0, 10)
    return float(0.5 * np.sum((np.exp(-k * times) - np.exp(-0.5 * times)) ** 2))


@pytest.mark.parametrize(
    "moment",
    [*(1, 3, 8, 21), *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5, 13, 34))],
)
@pytest.mark.parametrize("name", ["lotka-volterra-p", "fitzhugh-nagumo-v", "rikitake"])
def test_multiple_shooting_returns_the_best_so_far_whenever_it_is_interrupted(
    name: str, moment: int
) -> None:
    problem = odefit.library.load(name)
    forward = ForwardMap(problem)
    start = odefit.MultipleShooting(starts=1).search(problem).start_point(forward, 0, Control(1))
    control = Impatient(questions=[moment])
    end = ShootingSearch().run(forward, 0, start, control)
    assert end.status in (Status.INTERRUPTED, Status.CONVERGED)
    if end.nodes is None:
        assert end.cost == pytest.approx(forward.cost(end.vector), rel=1e-6)
    assert end.cost <= forward.cost(start) * (1 + 1e-9)
    assert np.isfinite(end.objective)


@pytest.mark.parametrize(
    "method",
    [odefit.IntegralMatching(), LocalSearch(Trapezoid(), DataMesh(1))],
    ids=["matching", "transcription"],
)
@pytest.mark.parametrize("moment", [1, 2, 4])
def test_other_methods_return_the_best_so_far_too(method: LocalMethod, moment: int) -> None:
    problem = odefit.library.load("lotka-volterra-p")
    forward = ForwardMap(problem)
    start = odefit.MultipleShooting(starts=1).search(problem).start_point(forward, 0, Control(1))
    end = method.run(forward, 0, start, Impatient(questions=[moment]))
    assert end.status is not Status.FAILED
    assert end.cost == pytest.approx(forward.cost(end.vector), rel=1e-6)


def test_the_lowest_cost_is_chosen_and_labelled() -> None:
    forward = ForwardMap(decay())
    nothing = (np.inf, Status.FAILED, "nothing", 3, 0.1, np.inf)
    lost = Start(2, np.array([4.0]), np.array([4.0]), *nothing)
    control = Control()
    vectors = [np.array([4.0]), np.array([0.7]), np.array([np.nan]), np.array([0.2])]
    found = rescued(forward, lost, vectors, control)
    assert (found.status, found.index, found.message) == (Status.NOT_CONVERGED, 2, "nothing")
    assert found.vector[0] == 0.7
    assert found.cost == pytest.approx(cost(0.7), rel=1e-9)
    assert found.objective == pytest.approx(2 * cost(0.7), rel=1e-9)
    assert not found.exact
    control.interrupted.set()
    exact = rescued(forward, lost, [np.array([0.5])], control)
    assert exact.status is Status.INTERRUPTED
    assert exact.exact
    assert rescued(forward, lost, [np.array([np.nan])], control) is lost
