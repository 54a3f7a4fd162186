"""The search: from a local answer to bounds that meet, or to the end of the time.

Rigorous upper bounds enclose the objective at a point, or at a local minimum next to it. A
checkpoint holds the open nodes of the tree, so that a killed search continues from there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted
from odefit.methods.bounded_problem import BoundedProblem
from odefit.methods.branch_and_bound.leaf_log import SEARCHED_SHARE, LeafLog
from odefit.methods.branch_and_bound.local_minima import (
    late_objective_at,
    local_minimum,
)
from odefit.methods.branch_and_bound.measure import Measure, variation
from odefit.methods.branch_and_bound.node_evaluator import NodeEvaluator, ResidualEnclosure
from odefit.methods.branch_and_bound.region_tree import RegionGoal, RegionTree
from odefit.methods.branch_and_bound.tree import Node, Tree
from odefit.methods.estimate import Agreement, BoundStep, Certificate, Start, Status
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.control import Progress
from odefit.methods.running.start_checkpoint import (
    natural,
    numbers,
    opened,
    step_from_json,
    step_to_json,
)
from odefit.methods.running.workers import Workers
from odefit.methods.solvers.solver import Answer
from odefit.simulation.engines.cut_off import cut_off

STATE = "state"
"""The key of the record that holds no node."""


@dataclass(frozen=True, eq=False)
class SearchState:
    """The state of a search besides its tree: batches so far, bounds, their log, and the time."""

    batch: int
    incumbent: Array
    upper: float
    lower: float
    history: tuple[BoundStep, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON value."""
        steps = [step_to_json(step) for step in self.history]
        return asdict(self) | {"incumbent": self.incumbent.tolist(), "history": steps}

    @classmethod
    def from_json(cls, record: Any, unknowns: int) -> SearchState:
        """Return the state in a record; KeyError, TypeError or ValueError if it is damaged."""
        return cls(
            natural(record["batch"]),
            numbers(record["incumbent"], unknowns),
            float(record["upper"]),
            float(record["lower"]),
            tuple(step_from_json(step) for step in record["history"]),
            float(record["seconds"]),
        )


class TreeCheckpoint:
    """The open nodes of one search, each a record of its own, with the state of the search."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def resume(self, tree: Tree | RegionTree) -> SearchState | None:
        """Let `tree` continue from the file; return the state of its search, or None.

        Raises InputError for a damaged record: the remaining nodes would prove too much.
        """
        records = self._checkpoint.records
        if not records:
            return None
        try:
            record = records[STATE]
            state = SearchState.from_json(record["search"], tree.dimension)
            nodes = {int(k): numbers(row) for k, row in records.items() if k != STATE}
            if len(nodes) != record["open"]:
                raise ValueError(f"{record['open']} open nodes were expected, found {len(nodes)}")
            tree.resume(record["tree"], nodes)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise InputError(
                f"{self._checkpoint.path}: is damaged ({error}); remove it to start again"
            ) from error
        return state

    @property
    def due(self) -> bool:
        """True if saving now takes little time compared with that since the last saving."""
        return self._checkpoint.due

    def save(self, tree: Tree | RegionTree, search: SearchState) -> None:
        """Save the open nodes of `tree` and the state of its search."""
        rows = {str(node.number): partial(_row, node) for node in tree.nodes}
        head = {"tree": tree.state(), "open": len(rows), "search": search.to_json()}
        self._checkpoint.save({STATE: head}, rows)

    def __enter__(self) -> TreeCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._checkpoint.close()


def _row(node: Node) -> list[float]:
    return [node.norm, *node.lower.tolist(), *node.upper.tolist()]


REGION_SHARE = 0.75
"""Largest share of the work for the region; the rest is for the gap of the bounds."""

LOG_RATIO = 1.1
"""Smallest ratio between the numbers of boxes of two entries of the log."""

LOCAL_MARGIN = 1e-6
"""Relative difference of the objectives above which the answer of a local solver, which is not
enclosed, replaces an enclosed incumbent."""


@dataclass(frozen=True, eq=False)
class LocalAnswer:
    """The result of the local search that comes first.

    The enclosure's own local search begins at `vector`, shape (n,), if there is one. `start` is the
    best on the true trajectories, `agreement` the distance of the discretised answer from these
    trajectories, and `feasible` that answer if it satisfies its equations.
    """

    vector: Array | None
    start: Start | None
    agreement: Agreement | None
    feasible: Answer | None


class TreeSearch:
    """Branch and bound with its incumbent, its bounds and their log.

    The function `make` builds the enclosure of the residuals in another process. `gap` is relative,
    `absolute_gap` is in units of the variation of the data. A checkpoint is recognised by the
    method with its `options`; a search that keeps its `leaves` has no checkpoint. `local_answer` is
    the local solver's answer if it is the incumbent and could not be enclosed. With a `goal`, the
    boxes of a `region` come first, and its boxes are searched for a smaller gap.
    """

    def __init__(
        self,
        bounded: BoundedProblem,
        enclosure: ResidualEnclosure,
        make: Callable[[], ResidualEnclosure],
        local: LocalAnswer,
        gap: float,
        absolute_gap: float,
        options: str,
        leaves: LeafLog | None = None,
        goal: RegionGoal | None = None,
    ) -> None:
        self._leaves, self._goal = leaves, goal
        self._problem, self._control = bounded.problem, bounded.control
        self._began, self._work = bounded.began, bounded.work
        self._enclosure, self._make = enclosure, make
        self._gap, self._options = gap, options
        self._negligible = absolute_gap * variation(self._problem)
        self.measure = Measure.of(self._problem, enclosure)
        self._unit = math.inf  # to which the gap is relative
        self._history: list[BoundStep] = []
        self._before = 0.0
        self._logged = 0  # boxes at the last entry of the log
        self._spent = False  # limit of the work
        self.incumbent: Array | None = None
        self.local_answer: Answer | None = None
        self.upper_bound = math.inf
        self.evaluated = 0
        self.region: RegionTree | None = None
        middle = (self._problem.lower + self._problem.upper) / 2
        first, *others = (middle,) if local.vector is None else (local.vector, middle)
        self._improve(first)
        for point in others if self.incumbent is None else ():
            self._improve(point)
        answer = local.feasible
        if answer is not None and answer.objective < self.upper_bound * (1 - LOCAL_MARGIN):
            self.local_answer = answer
            self.incumbent, self.upper_bound = answer.unknowns, answer.objective
            self._unit = answer.objective
        self.lower_bound = min(enclosure.lower_bound, self.upper_bound)

    def _improve(self, point: Array) -> bool:
        """Search locally from `point`; return whether a better incumbent was found."""
        lower, upper = self._problem.lower, self._problem.upper
        vector, objective = np.clip(point, lower, upper), math.inf
        stop: Callable[[], bool] = self._control.should_stop
        if self.incumbent is None and (self._control.interrupted.is_set() or cut_off().reached):
            # Without any objective there are no bounds at all.
            objective = late_objective_at(self._enclosure, vector)
        if math.isinf(objective):
            # For data without noise no objective is much below the negligible one.
            known = self._enclosure, point, lower, upper, stop, self._negligible
            vector, objective = local_minimum(*known)
        if objective >= self.upper_bound:
            return False
        self.local_answer, self.incumbent, self.upper_bound = None, vector, objective
        unit = self.measure.unit(self._enclosure, vector, objective)
        # A smaller unit could ask for more than boxes fathomed before were searched for.
        keep = self.measure.likelihood and math.isfinite(self._unit)
        self._unit = max(unit, self._unit) if keep else unit
        return True

    @property
    def _target(self) -> float:
        """The objective below which everything has to be fathomed."""
        if math.isinf(self.upper_bound):
            return math.inf
        share = 1.0 if self._leaves is None else SEARCHED_SHARE
        return max(self.upper_bound - share * self._wanted_gap, 0.0)

    @property
    def _wanted_gap(self) -> float:
        """The difference of the bounds at which to stop."""
        return max(self._gap * self._unit, self._negligible)

    @property
    def closed(self) -> bool:
        """True if the gap of the bounds is as small as requested."""
        return math.isfinite(self.upper_bound) and self.lower_bound >= self._target

    def run(self) -> None:
        """Divide and fathom boxes until the bounds meet, or until the time is over."""
        self._log("local search", 1)
        if math.isinf(self.upper_bound) or (self.closed and self._goal is None):
            if self._leaves is not None:
                box = self._problem.lower, self._problem.upper
                self._leaves.add(*box, self._enclosure.lower_bound, "open")
                self._write_leaves()
            return
        with Workers(self._control, helping=True) as workers:
            evaluator = NodeEvaluator(self._enclosure, self._make, workers, self._control)
            evaluator.prepare()
            workers.count(time.perf_counter() - self._began)
            self._run_tree(evaluator)

    def _run_tree(self, evaluator: NodeEvaluator) -> None:
        box = self._problem.lower, self._problem.upper
        if self._goal is not None:
            self._run_region(evaluator, self._goal)
        bounds = self.upper_bound, self._target
        tree = Tree(self._enclosure, *box, *bounds, evaluator, self._leaves)
        first = self.region
        if first is not None:
            tree.continue_from(first.nodes, first.evaluated, first.work)
        self._divided(tree, "tree of branch and bound", {})
        if self._leaves is not None:
            tree.keep_open()
            self._write_leaves()

    def _run_region(self, evaluator: NodeEvaluator, goal: RegionGoal) -> None:
        """Enclose all points that fit."""
        assert self.incumbent is not None, "a search without an incumbent ends before"
        box = self._problem.lower, self._problem.upper
        best = self.incumbent, self.upper_bound
        self.region = RegionTree(self._enclosure, *box, *best, goal, evaluator, self._leaves)
        self.region.offset = self.measure.offset
        options = {"constant": goal.constant, "ratio": goal.ratio}
        self._divided(self.region, "tree of a confidence region", options)
        self._spent = False

    def _divided(self, tree: Tree | RegionTree, kind: str, options: dict[str, Any]) -> None:
        """Run a tree to its end, with a checkpoint unless leaves are kept."""
        if self._leaves is None:
            options |= {"method": self._options, "scope": self._enclosure.scope}
            records = opened(self._control, kind, self._problem, options)
            if records is not None:
                with TreeCheckpoint(records) as checkpoint:
                    self._divide(tree, checkpoint)
                return
        self._divide(tree, None)

    def _write_leaves(self) -> None:
        """Write the certificate, unless nothing is known."""
        assert self._leaves is not None
        if self.incumbent is not None and math.isfinite(self.upper_bound):
            bounds = self.lower_bound, self.upper_bound
            offset = self._enclosure.offset
            self._leaves.write(self.incumbent, *bounds, self._wanted_gap, offset)

    def _divide(self, tree: Tree | RegionTree, checkpoint: TreeCheckpoint | None) -> None:
        """Run the tree to its end, from the state in the checkpoint."""
        stage, most = "boxes", self._work
        if isinstance(tree, RegionTree):
            stage, most = "region", REGION_SHARE * self._work
        batch = 0 if checkpoint is None else self._resume(tree, checkpoint)
        for _ in tree.run(self._control.should_stop):
            batch += 1
            if tree.candidate is not None:
                if self._improve(tree.candidate):
                    self._tell(tree)
                tree.candidate = None
            self._update_bounds(tree)
            self._log(stage, batch, tree.open_nodes)
            if checkpoint is not None and checkpoint.due:
                checkpoint.save(tree, self._state(batch))
            self._spent = tree.work >= most
            if self._spent:
                break
        if checkpoint is not None:
            checkpoint.save(tree, self._state(batch))
        self._update_bounds(tree)
        self._log(stage, batch, tree.open_nodes, always=True)

    def _tell(self, tree: Tree | RegionTree) -> None:
        """Let a tree search with the incumbent."""
        if isinstance(tree, Tree):
            tree.update_incumbent(self.upper_bound, self._target)
        elif self.incumbent is not None:
            tree.update_incumbent(self.upper_bound, self.incumbent)

    def _update_bounds(self, tree: Tree | RegionTree) -> None:
        # Proved bounds remain valid if a better point lowers the target.
        self.lower_bound = max(self.lower_bound, min(tree.lower_bound, self.upper_bound))
        self.evaluated = tree.evaluated

    def _state(self, batch: int) -> SearchState:
        """Return the content of a checkpoint besides the tree."""
        assert self.incumbent is not None, "a tree is searched below an incumbent"
        bounds = self.upper_bound, self.lower_bound
        return SearchState(batch, self.incumbent, *bounds, tuple(self._history), self._seconds)

    def _resume(self, tree: Tree | RegionTree, checkpoint: TreeCheckpoint) -> int:
        """Continue from a checkpoint; return the number of the last batch, 0 without a tree."""
        state = checkpoint.resume(tree)
        if state is None:
            return 0
        if state.upper < self.upper_bound:
            self.local_answer = None
            self.incumbent, self.upper_bound = state.incumbent, state.upper
            self._unit = self.measure.unit(self._enclosure, state.incumbent, state.upper)
        self._tell(tree)
        self.lower_bound = max(self.lower_bound, min(state.lower, self.upper_bound))
        self._history, self._before = list(state.history), state.seconds
        self._update_bounds(tree)
        self._log("resumed", 1, tree.open_nodes, always=True)
        return state.batch

    @property
    def _seconds(self) -> float:
        """Seconds since the search began, including those before a kill."""
        return self._before + time.perf_counter() - self._began

    def _log(self, stage: str, iteration: int, open_nodes: int = 0, always: bool = False) -> None:
        seconds, offset = self._seconds, self.measure.offset
        bounds = self.lower_bound + offset, self.upper_bound + offset
        step = BoundStep(stage, iteration, *bounds, seconds)
        before = self._history[-1] if self._history else None
        moved = before is None or before.lower < step.lower or before.upper > step.upper
        if always or before is None or (moved and self.evaluated >= LOG_RATIO * self._logged):
            self._history.append(step)
            self._logged = self.evaluated
        if self._control.report is not None:
            boxes = counted(self.evaluated, "box", "boxes")
            line = f"{boxes}, {open_nodes} left: {step.lower:.5g} <= optimum"
            if math.isfinite(step.upper) and self._unit > 0:
                gap = (step.upper - step.lower) / self._unit
                line += f" <= {step.upper:.5g} (gap {gap:.2%})"
            self._control.report(Progress(0, 0, step.upper, 0, line))

    @property
    def status(self) -> Status:
        """The end of the search."""
        if self.incumbent is None:
            return Status.FAILED
        if self.closed:
            return Status.CONVERGED
        if self._control.interrupted.is_set():
            return self._control.early
        if self._control.out_of_time or self._spent:
            return Status.TIME_LIMIT
        return Status.NOT_CONVERGED

    @property
    def message(self) -> str:
        """The end of the search, in words."""
        if self.incumbent is None:
            return "no values of the unknowns were found at which the residuals can be enclosed"
        text = "the bounds have met" if self.closed else "the bounds have not met"
        return f"{text} after {counted(self.evaluated, 'box', 'boxes')}"

    @property
    def certificate(self) -> Certificate | None:
        """The bounds with their log; None without an incumbent."""
        if math.isinf(self.upper_bound):
            return None
        measure = self.measure
        return Certificate(
            self.lower_bound + measure.offset,
            self.upper_bound + measure.offset,
            self._enclosure.scope,
            discretised=self._enclosure.discretised,
            closed=self.closed,
            history=tuple(self._history),
            solver="branch and bound over boxes",
            negligible=self._negligible,
            rigorous=True,
            measure=measure.name,
            unit=self._unit if measure.likelihood else None,
        )
