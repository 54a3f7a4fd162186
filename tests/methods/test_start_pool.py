"""Starts that a limit or a worker has ended are told, and are no failures of the equations."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odefit import Control, ForwardMap, MultiStart, Start, Status
from odefit.methods.running.workers import Workers
from odefit.methods.start_pool import run_starts
from tests.methods.checkpoints import records
from tests.methods.problems import oscillator
from tests.methods.test_multi_start import essence


@dataclass(frozen=True)
class Failing:
    """A search that fails, and interrupts the run before that if it is told to."""

    interrupts: bool = False

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        if self.interrupts:
            control.interrupted.set()
        vector = np.zeros(len(forward.problem.unknowns))
        return Start(index, vector, vector, math.inf, Status.FAILED, "it is stiff", 3, 0.0)


def ends(search: Any, control: Control, count: int = 1) -> Iterator[tuple[int, Start, bool]]:
    with Workers(control) as workers:
        tasks = [(search, i, control) for i in range(count)]
        yield from run_starts(tasks, ForwardMap(oscillator()), workers, control, count)


def test_a_start_that_fails_after_a_stop_is_labelled_by_the_stop() -> None:
    ((_, failed, whole),) = ends(Failing(), Control(jobs=1))
    assert (failed.status, failed.message, whole) == (Status.FAILED, "it is stiff", True)
    ((_, ended, whole),) = ends(Failing(interrupts=True), Control(jobs=1))
    assert (ended.status, whole) == (Status.INTERRUPTED, False)
    assert ended.message == "ended by the caller before it had an answer: it is stiff"


class Hanging(Executor):
    """Takes tasks, and never answers."""

    def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        return Future()


@pytest.mark.slow
def test_a_worker_that_hangs_is_given_up_after_the_time_limit_and_its_start_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 100_000, 1))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    control = Control(executor=Hanging(), jobs=2, deadline=200.0)
    found = list(ends(Failing(), control, 3))
    assert sorted(end.index for _, end, _ in found) == [0, 1, 2]
    assert {(end.status, whole) for _, end, whole in found} == {(Status.TIME_LIMIT, False)}
    assert found[0][1].message == (
        "the worker process was ended: it had not answered 5 s after the time limit, and was "
        "abandoned"
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_on_the_wall_that_jumps_ends_no_start(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It jumps by up to a day, past the deadline and back, whenever it is asked."""
    method, jumps = MultiStart(starts=4, screening=2), random.Random(seed)
    plain = method.solve(oscillator(), Control(seed=1, jobs=1))
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + jumps.uniform(-86_400.0, 86_400.0))
    limited = Control(seed=1, jobs=1, checkpoint=tmp_path / "kept").ending_in(3600.0)
    assert essence(method.solve(oscillator(), limited)) == essence(plain)
    assert sorted(records(tmp_path / "kept", "starts")) == ["0", "1", "2", "3"]
    again = method.solve(oscillator(), replace(limited, deadline=None))
    assert essence(again) == essence(plain)
