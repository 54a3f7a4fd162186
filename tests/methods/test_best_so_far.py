"""A search, or a start, that is ended has the best of what it has seen as its answer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.discretisation.mesh import DataMesh
from odefit.discretisation.schemes import Trapezoid
from odefit.methods.best_so_far import rescued
from odefit.methods.estimate import Start, Status
from odefit.methods.method import LocalMethod, Method
from odefit.methods.running.control import Control
from odefit.methods.shooting.search import ShootingSearch
from odefit.methods.solvers.local_search import LocalSearch
from odefit.simulation import Evaluation, Failure, ForwardMap

METHODS: dict[str, Callable[[], Method]] = {
    "automatic": odefit.Automatic,
    "multi-start": odefit.MultiStart,
    "single-shooting": odefit.SingleShooting,
    "multiple-shooting": odefit.MultipleShooting,
    "integral-matching": odefit.IntegralMatching,
    "transcription": odefit.Transcription,
    "algebraic": odefit.Algebraic,
    "outer-approximation": partial(odefit.OuterApproximation, bounds="propose"),
    "branch-and-bound": odefit.BranchAndBound,
}


def predator_prey() -> odefit.Problem:
    """Return a problem that every method can take."""
    return odefit.library.load("lotka-volterra-p")


class Evaluations:
    """Counts the evaluations of all forward maps, and does something at one of them."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, moment: int, act: Callable[[], Any]
    ) -> None:
        self.count = 0
        whole = ForwardMap.evaluate_along

        def counted(forward: ForwardMap, *given: Any, **options: Any) -> Evaluation | Failure:
            self.count += 1
            found = whole(forward, *given, **options)
            if self.count == moment:
                act()
            return found

        monkeypatch.setattr(ForwardMap, "evaluate_along", counted)


@pytest.mark.parametrize("moment", [2, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 7))])
@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=pytest.mark.slow if m == "algebraic" else ()) for m in METHODS],
)
def test_a_fit_that_is_ended_after_a_few_evaluations_has_an_answer(
    name: str, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = predator_prey()
    stop = threading.Event()
    Evaluations(monkeypatch, moment, stop.set)
    result = odefit.fit(problem, METHODS[name](), jobs=1, stop=stop)
    assert result.status is Status.INTERRUPTED
    assert result.solutions
    assert "the caller" in result.message.casefold()
    assert result.objective == pytest.approx(
        2 * ForwardMap(problem).cost(result.best.vector), rel=1e-6
    )


@pytest.mark.parametrize("name", ["multi-start", "multiple-shooting"])
def test_a_fit_that_is_ended_before_it_begins_has_the_guess(name: str) -> None:
    problem = predator_prey()
    stop = threading.Event()
    stop.set()
    result = odefit.fit(problem, METHODS[name](), jobs=1, stop=stop)
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.objective)
    assert "a start value, without any search" in result.message or result.starts


def test_memory_that_runs_out_ends_the_search_and_not_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_much() -> None:
        raise MemoryError("Unable to allocate 9.9 TiB")

    Evaluations(monkeypatch, 20, too_much)
    result = odefit.fit(predator_prey(), odefit.MultiStart(starts=50), jobs=1)
    assert result.status is Status.MEMORY_LIMIT
    assert result.solutions
    assert "Ended early by a lack of memory (Unable to allocate 9.9 TiB)" in result.message


def test_the_answer_of_a_search_that_was_ended_is_the_best_of_all_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not only of the ends of starts: the search is ended within the first."""
    costs = []
    whole = ForwardMap.evaluate_along

    def noted(forward: ForwardMap, *given: Any, **options: Any) -> Evaluation | Failure:
        found = whole(forward, *given, **options)
        if isinstance(found, Evaluation):
            costs.append(found.cost)
        if len(costs) == 40:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(ForwardMap, "evaluate_along", noted)
    result = odefit.fit(
        predator_prey(), odefit.MultiStart(odefit.SingleShooting()), jobs=1, polish=False
    )
    assert result.status is Status.INTERRUPTED
    assert "Ctrl-C" in result.message
    assert result.objective <= 2 * min(costs) * (1 + 1e-6)


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
