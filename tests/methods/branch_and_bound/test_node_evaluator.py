"""The bounds do not depend on who looks at the boxes, and nothing is lost with a worker."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import odefit
from odefit.enclosure import Enclosure
from odefit.methods.branch_and_bound.node_evaluator import CHUNK_SIZE, NodeEvaluator
from odefit.methods.branch_and_bound.tree import Node, Tree
from odefit.methods.control import Control
from odefit.methods.workers import Workers

PROBLEM = odefit.library.load("harmonic", noise=0.05, seed=1).with_parameters(
    p1={"lower": 7.5, "upper": 12.5}, p2={"lower": 1.0, "upper": 1.7}
)


class Broken(Executor):
    """Every piece of work fails, as with a worker that was killed."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("killed"))
        return future


def slices(count: int) -> list[Node]:
    """The whole box, cut along the first unknown."""
    edges = np.linspace(PROBLEM.lower[0], PROBLEM.upper[0], count + 1)
    found = []
    for i in range(count):
        lower, upper = PROBLEM.lower.copy(), PROBLEM.upper.copy()
        lower[0], upper[0] = edges[i], edges[i + 1]
        found.append(Node(0.0, i, lower, upper))
    return found


def searched(executor: Executor | None) -> tuple[float, int, int]:
    """Lower bound, boxes looked at, and boxes left after two batches of more than one chunk."""
    enclosure = Enclosure(PROBLEM, 2)
    with Workers(Control(executor=executor, jobs=1)) as workers:
        evaluator = NodeEvaluator(enclosure, partial(Enclosure, PROBLEM, 2), workers)
        tree = Tree(enclosure, PROBLEM.lower, PROBLEM.upper, 0.0823, 0.08, evaluator)
        tree._open = slices(3 * CHUNK_SIZE)
        for turn, _ in enumerate(tree.run(lambda: False)):
            if turn == 1:
                break
        return tree.lower_bound, tree.evaluated, tree.open_nodes


def test_the_bounds_are_the_same_wherever_boxes_are_looked_at() -> None:
    here = searched(None)
    assert here[1] > 2 * CHUNK_SIZE
    with ThreadPoolExecutor(2) as pool:
        assert searched(pool) == here
    assert searched(Broken()) == here
