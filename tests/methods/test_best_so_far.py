"""Every method gives the best point that it has evaluated, whenever it is ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.methods.estimate import Status
from odefit.methods.method import Method
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
