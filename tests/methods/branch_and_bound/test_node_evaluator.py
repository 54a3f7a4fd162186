"""The bounds do not depend on where nodes are evaluated, and nothing is lost with a worker."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.methods.branch_and_bound import chunks, node_evaluator, tree
from odefit.methods.branch_and_bound.chunks import CHUNK_SIZE, Chunk
from odefit.methods.branch_and_bound.node_evaluator import NodeEvaluator
from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.running import workers
from odefit.methods.running.control import Control
from odefit.methods.running.workers import Workers
from odefit.simulation.engines.cut_off import CutOff, cutting_off
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic, slices

CHUNK = 32


class Broken(Executor):
    """Every piece of work fails, as with a worker that was killed."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("killed"))
        return future


def searched(executor: Executor | None) -> tuple[float, int, int]:
    """Lower bound, evaluated and open nodes after four chunks, of which several are under way."""
    enclosure = Quartic()
    with Workers(Control(executor=executor, jobs=1)) as own:
        evaluator = NodeEvaluator(enclosure, Quartic, own)
        found = Tree(enclosure, LOWER, UPPER, BEST, 0.999 * BEST, evaluator)
        found._open = slices(3 * CHUNK)
        for turn, _ in enumerate(found.run(lambda: False)):
            if turn == 3:
                break
        return found.lower_bound, found.evaluated, found.open_nodes


def test_the_bounds_are_the_same_wherever_nodes_are_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", CHUNK)
    monkeypatch.setattr(workers, "installed", lambda _: False)  # what fails is done right here
    here = searched(None)
    assert here[1] > 2 * CHUNK
    with ThreadPoolExecutor(2) as pool:
        assert searched(pool) == here
    assert searched(Broken()) == here


def test_two_workers_have_equal_shares_of_every_batch_that_is_shared() -> None:
    nodes = (1, 256, 257, 512, 513, 1025, 8 * 256)
    assert [node_evaluator.number_of_chunks(n) for n in nodes] == [1, 1, 2, 2, 4, 6, 8]


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    def __init__(self, workers: int = 1) -> None:
        super().__init__(workers)
        self.batches = 0

    def submit(self, *arguments: Any, **more: Any) -> Future[Any]:
        self.batches += 1
        return super().submit(*arguments, **more)


def test_many_open_nodes_give_work_to_many_workers() -> None:
    enclosure, counts = Quartic(), []
    for executor in (None, Counting(8)):
        control = Control(executor=executor, jobs=1)
        with Workers(control) as own:
            evaluator = NodeEvaluator(enclosure, Quartic, own)
            found = Tree(enclosure, LOWER, UPPER, BEST, 0.999 * BEST, evaluator)
            found._open = slices(16 * CHUNK_SIZE)
            next(found.run(lambda: False))
        counts.append((found.evaluated, found.open_nodes, found.lower_bound))
        if executor is not None:
            assert executor.batches == 8
            executor.shutdown()
    assert counts[0] == counts[1]
    assert counts[0][0] == CHUNK_SIZE


class Backwards(Executor):
    """Its three workers end once all have something to do, the last one first."""

    def __init__(self) -> None:
        self._max_workers = 3
        self.waiting: list[tuple[Future[Any], Any, tuple[Any, ...]]] = []

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, function, arguments))
        if len(self.waiting) == self._max_workers:
            while self.waiting:
                last, function, arguments = self.waiting.pop()
                last.set_result(function(*arguments))
        return future


def test_the_order_in_which_workers_end_does_not_matter() -> None:
    boxes = [(node.lower[None], node.upper[None]) for node in slices(3)]
    alone = NodeEvaluator(Quartic())
    expected = [next(iter(alone(*box, np.inf, lambda: False))).bounds.norm for box in boxes]
    with Workers(Control(executor=Backwards(), jobs=1)) as own:
        evaluator = NodeEvaluator(Quartic(), Quartic, own)
        for box in boxes:
            evaluator.put(Chunk(*box, np.inf))
        found = [evaluator.next(lambda: False) for _ in boxes]
    for one, norm in zip(found, expected, strict=True):
        assert one is not None
        np.testing.assert_array_equal(one.bounds.norm, norm)


class Behind(ThreadPoolExecutor):
    """Its worker waits until this process has done something."""

    def __init__(self) -> None:
        super().__init__(1)
        self.batches, self.until = 0, threading.Event()

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        self.batches += 1
        return super().submit(lambda: function(*arguments) if self.until.wait(60) else None)


def test_a_process_with_one_worker_evaluates_boxes_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker gets one of two chunks, and this process the other."""
    pool = Behind()
    monkeypatch.setattr(workers, "HELPED_AFTER_SECONDS", -1.0)
    monkeypatch.setattr(Workers, "_started", lambda _: pool)
    here: list[int] = []
    timed = Workers.timed

    def noted(self: Workers, work: Any) -> Any:
        here.append(pool.batches)
        value = timed(self, work)
        pool.until.set()
        return value

    monkeypatch.setattr(Workers, "timed", noted)
    with Workers(Control(jobs=2), helping=True) as own, pool:
        assert own.number == 1
        evaluator = NodeEvaluator(Quartic(), Quartic, own)
        for node in slices(2):
            evaluator.put(Chunk(node.lower[None], node.upper[None], np.inf))
        assert evaluator.next(lambda: False) is not None
        assert evaluator.next(lambda: False) is not None
        own._pool = None  # it would be ended as one of loky's
    assert here == [1]
    assert pool.batches == 1


class Compiling(Quartic):
    """The compilation takes until it is released."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self.released = released

    @property
    def compiled(self) -> Quartic:
        self.released.wait()
        return self


def test_a_search_that_should_stop_does_not_wait_for_the_compiler() -> None:
    released = threading.Event()
    lower, upper = LOWER[None], UPPER[None]
    evaluator = NodeEvaluator(Compiling(released))
    try:
        assert list(evaluator(lower, upper, np.inf, lambda: True, compiled=True)) == []
    finally:
        released.set()
    (after,) = evaluator(lower, upper, np.inf, lambda: False, compiled=True)
    (plain,) = evaluator(lower, upper, np.inf, lambda: False)
    np.testing.assert_array_equal(after.bounds.norm, plain.bounds.norm)


def test_only_this_process_compiles_and_workers_get_the_other_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", CHUNK)
    monkeypatch.setattr(tree, "COMPILED_FROM", 0.0)
    monkeypatch.setattr(workers, "installed", lambda _: False)
    here = searched(None)
    with Counting() as pool:
        assert searched(pool) == here
        assert pool.batches > 0


@pytest.mark.parametrize("compiled", [False, True])
def test_nodes_that_a_cut_off_leaves_unknown_count_as_not_evaluated(compiled: bool) -> None:
    """Otherwise they would be divided although nothing has been found out about them."""
    by = CutOff()

    class Slow(Quartic):
        def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
            by.now()
            return super().__call__(lower, upper, radius)

    evaluator = NodeEvaluator(Slow())
    with cutting_off(by):
        assert list(evaluator(LOWER[None], UPPER[None], np.inf, lambda: False, compiled)) == []
