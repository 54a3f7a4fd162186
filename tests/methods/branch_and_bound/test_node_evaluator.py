"""The bounds do not depend on where nodes are evaluated, and nothing is lost with a worker."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.methods.branch_and_bound import node_evaluator, tree
from odefit.methods.branch_and_bound.node_evaluator import NodeEvaluator
from odefit.methods.branch_and_bound.tree import Node, Tree
from odefit.methods.running import workers
from odefit.methods.running.control import Control
from odefit.methods.running.workers import Workers
from odefit.simulation.engines.cut_off import CutOff, cutting_off
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic

CHUNK = 32


class Broken(Executor):
    """Every piece of work fails, as with a worker that was killed."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("killed"))
        return future


def slices(count: int) -> list[Node]:
    """The whole box, cut along the first unknown."""
    edges = np.linspace(LOWER[0], UPPER[0], count + 1)
    found = []
    for i in range(count):
        lower, upper = LOWER.copy(), UPPER.copy()
        lower[0], upper[0] = edges[i], edges[i + 1]
        found.append(Node(0.0, i, lower, upper))
    return found


def searched(executor: Executor | None) -> tuple[float, int, int]:
    """Lower bound, evaluated and open nodes after two batches of more than one chunk."""
    enclosure = Quartic()
    with Workers(Control(executor=executor, jobs=1)) as own:
        evaluator = NodeEvaluator(enclosure, Quartic, own)
        found = Tree(enclosure, LOWER, UPPER, BEST, 0.999 * BEST, evaluator)
        found._open = slices(3 * CHUNK)
        for turn, _ in enumerate(found.run(lambda: False)):
            if turn == 1:
                break
        return found.lower_bound, found.evaluated, found.open_nodes


def test_the_bounds_are_the_same_wherever_nodes_are_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_evaluator, "CHUNK_SIZE", CHUNK)
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

    def __init__(self) -> None:
        super().__init__(1)
        self.batches = 0

    def submit(self, *arguments: Any, **more: Any) -> Future[Any]:
        self.batches += 1
        return super().submit(*arguments, **more)


def test_many_open_nodes_give_work_to_many_workers() -> None:
    enclosure, counts = Quartic(), []
    for executor in (None, Counting()):
        control = Control(executor=executor, jobs=1)
        with Workers(control) as own:
            evaluator = NodeEvaluator(enclosure, Quartic, own)
            found = Tree(enclosure, LOWER, UPPER, BEST, 0.999 * BEST, evaluator)
            found._open = slices(16 * node_evaluator.CHUNK_SIZE)
            next(found.run(lambda: False))
        counts.append((found.evaluated, found.open_nodes, found.lower_bound))
        if executor is not None:
            assert executor.batches == 8
            executor.shutdown()
    assert counts[0] == counts[1]
    assert counts[0][0] == tree.batch_size(16 * node_evaluator.CHUNK_SIZE)


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
    monkeypatch.setattr(node_evaluator, "CHUNK_SIZE", CHUNK)
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
