"""One start of multiple shooting, from start values to an answer."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.methods.best_so_far import rescued
from odefit.methods.estimate import NodeEvaluator, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import LocalMethod
from odefit.methods.running.control import Control, Progress
from odefit.methods.shooting.constraints import (
    Constraint,
    ParsedConstraint,
    node_times,
    parse_constraints,
    user_constraints,
)
from odefit.methods.shooting.gauss_newton import Iteration, IterationEnd, iterate
from odefit.methods.shooting.linear_problem import LinearProblem
from odefit.methods.shooting.node_evaluation import (
    determined_directions,
    evaluate_nodes,
    shooting_problem,
    typical_sizes,
)
from odefit.methods.shooting.node_placing import GivenNodes, place_nodes
from odefit.methods.shooting.relaxation import relax
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem
from odefit.methods.single_shooting import START_SEARCH
from odefit.problem.problem import Problem
from odefit.problem.variants.state_guesses import states_from_data
from odefit.problem.variants.thinning import with_values_by_variation
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.registry import ENGINES, EngineName
from odefit.simulation.engines.steps import IMPLICIT_TOLERANCE
from odefit.simulation.nodes import Nodes, node_names

States = Literal["relaxed", "data", "simulation"]
"""The source of the nodes' start values, see :class:`ShootingSearch`."""

SAME_COST = 0.1
"""Relative difference of costs up to which a single integration follows an answer on nodes.

Polishing the answer removes the rest.
"""

CONTINUOUS = 1e-6  # largest gap of an unconverged answer, relative to the sizes of the states

SEEN_SINGULAR_VALUE = 1e-8
"""Smallest singular value of a single integration's scaled Jacobian that counts, relative to the
largest: sensitivities are accurate to about 1e-9."""

SINGLE_SHOOTING = START_SEARCH  # continues a start that has not converged on its nodes


@dataclass(frozen=True)
class ShootingSearch(LocalMethod):
    """One start of multiple shooting, a local method for :class:`MultiStart`."""

    # see :class:`odefit.MultipleShooting`
    nodes: GivenNodes = None
    integrator: EngineName = "auto"
    states: States = "relaxed"
    constraints: Sequence[Constraint | str] = ()
    tolerance: float = 1e-7
    iterations: int = 100

    @property
    def name(self) -> str:
        """The method's name in results."""
        kind = "" if self.integrator == "auto" else f"({self.integrator})"
        return f"MultipleShooting{kind}"

    @property
    def engine(self) -> EngineName:
        """The engine of the forward map."""
        return self.integrator

    @property
    def evaluate_nodes(self) -> NodeEvaluator:
        """The function that evaluates an end on nodes, see :class:`Estimate`."""
        return evaluate_nodes

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Run one start; failed integrations are counted, never raised."""
        began = time.perf_counter()
        start = np.clip(start, forward.problem.lower, forward.problem.upper)
        coarse = self._coarse(forward)
        first = forward if coarse is None else coarse
        shooting, end = self.iterated(first, start, control, index)
        start_end = self._finished(
            first, shooting, end, index, start, control, sharpen=coarse is None
        )
        if coarse is not None:
            start_end = self._with_all_data(forward, start_end, control)
        return replace(start_end, start=start, seconds=time.perf_counter() - began)

    def _coarse(self, forward: ForwardMap) -> ForwardMap | None:
        """Return the problem with fewer data and nodes; None if it needs all, or nodes are given.

        If a part of a long series suffices for its trajectories, the rest only costs time.
        """
        if self.nodes is not None or self.constraints:
            return None
        if forward not in _coarse:
            fewer = with_values_by_variation(forward.problem)
            _coarse[forward] = None if fewer is forward.problem else forward.of(fewer)
        return _coarse[forward]

    def _with_all_data(self, forward: ForwardMap, coarse: Start, control: Control) -> Start:
        """Return the end of the search with all data, from an end with a part of them."""
        begun = f"{coarse.message} (a part of the data)"
        if control.should_stop() or not math.isfinite(coarse.cost):
            lost = replace(coarse, objective=math.inf, cost=math.inf, nodes=None)
            return rescued(forward, lost, [coarse.vector, coarse.start], control)
        if coarse.nodes is None:
            answer = SINGLE_SHOOTING.run(forward, coarse.index, coarse.vector, control)
            evaluations = coarse.evaluations + answer.evaluations
            message = f"{begun}; then single shooting: {answer.message}"
            return replace(answer, message=message, evaluations=evaluations)
        shooting, end = self._iterated_from(forward, coarse, control)
        answer = self._finished(forward, shooting, end, coarse.index, coarse.vector, control)
        evaluations = coarse.evaluations + answer.evaluations
        return replace(answer, message=f"{begun}; {answer.message}", evaluations=evaluations)

    def _finished(
        self,
        forward: ForwardMap,
        shooting: ShootingProblem,
        end: IterationEnd,
        index: int,
        start: Array,
        control: Control,
        *,
        sharpen: bool = True,
    ) -> Start:
        """Return the answer from the end of the iteration."""
        answer = self._end_on_nodes(shooting, end, index, start, control)
        if not self.constraints:
            answer = self._without_nodes(forward, shooting, answer, end, control, sharpen)
            if not math.isfinite(answer.cost):
                begun = [i.point.coordinates for i in end.iterations[:1]]
                known = [answer.vector, *map(shooting.scaling.natural, begun), start]
                answer = rescued(forward, answer, known, control)
        return replace(answer, start=start, evaluations=answer.evaluations + shooting.evaluations)

    def with_data(self, forward: ForwardMap, vector: Array) -> tuple[ShootingProblem, Array]:
        """Return the problem on this search's nodes, and their start values, shape (nodes, N)."""
        constraints, times = self.constraints_and_times(forward)
        shooting = shooting_problem(forward, times, constraints, vector)
        return shooting, self._start_nodes(shooting, vector)

    def constraints_and_times(
        self, forward: ForwardMap
    ) -> tuple[list[ParsedConstraint], list[Array]]:
        """Return the constraints, and the times of each condition's nodes.

        Raises InputError if nodes or constraints do not fit the problem.
        """
        problem = forward.problem
        constraints = parse_constraints(problem, self.constraints)
        size = len(node_names(forward.field, problem.conditions))
        times = []
        for i, condition in enumerate(problem.conditions):
            placed = place_nodes(problem, condition, self.nodes, size)
            times.append(np.unique(np.concatenate([placed, node_times(constraints, i)])))
        return constraints, times

    def iterated(
        self, forward: ForwardMap, vector: Array, control: Control, index: int = 0
    ) -> tuple[ShootingProblem, IterationEnd]:
        """Return the problem on nodes, and the end of the iteration from `vector`."""
        constraints, times = self.constraints_and_times(forward)
        shooting = shooting_problem(forward, times, constraints, vector, control.within)
        start = Point(shooting.scaling.coordinates(vector), self._start_nodes(shooting, vector))
        if self.states == "relaxed" and shooting.nodes > len(times):
            held = np.array([u.kind == "parameter" for u in forward.problem.unknowns], dtype=bool)
            sizes = typical_sizes(shooting, start.coordinates, start.coordinates, 0.1)
            relaxed = relax(shooting, start, sizes, held, control.should_stop)
            if isinstance(relaxed, Failure):
                return shooting, IterationEnd(None, None, False, str(relaxed))
            start = relaxed
        return shooting, self._iterate(shooting, constraints, start, control, index)

    def _end_on_nodes(
        self,
        shooting: ShootingProblem,
        end: IterationEnd,
        index: int,
        start: Array,
        control: Control,
    ) -> Start:
        """Return the end of the iteration as an answer on nodes."""
        at, tolerance = end.at, CostTolerance.of(shooting.forward)
        steps = max(len(end.iterations) - 1, 0)
        begun = "relaxed, then " if self.states == "relaxed" and shooting.nodes > 1 else ""
        taken = f"{counted(steps, 'Gauss-Newton step')} on {counted(shooting.nodes, 'node')}"
        message = f"{begun}{taken}: {end.message}"
        lost = Start(
            index=index,
            start=start,
            vector=start,
            objective=math.inf,
            status=Status.FAILED,
            message=message,
            evaluations=0,
            seconds=0.0,
            cost=math.inf,
        )
        if at is None:
            return lost
        vector = shooting.scaling.natural(at.point.coordinates)
        continuous = end.iterations[-1].gap < CONTINUOUS
        if not end.converged and (end.impossible or not continuous):
            # The fit of a discontinuous trajectory is not an answer, nor is a violated constraint.
            early = control.should_stop() and not end.impossible
            return replace(lost, vector=vector, status=control.early if early else lost.status)
        evaluation = at.evaluation
        zero = tolerance.zero(shooting.forward.accuracy(evaluation.choice))
        return replace(
            lost,
            vector=vector,
            objective=evaluation.objective,
            status=Status.CONVERGED if end.converged else control.early,
            cost=evaluation.cost,
            exact=evaluation.cost <= zero,
            nodes=self._nodes_with_constraints(shooting, at),
        )

    def _without_nodes(
        self,
        forward: ForwardMap,
        shooting: ShootingProblem,
        on_nodes: Start,
        end: IterationEnd,
        control: Control,
        sharpen: bool,
    ) -> Start:
        """Return the answer by a single integration if that follows it, otherwise on nodes.

        A start that has not converged continues by single shooting. Its cost on nodes may be the
        lower one only because small gaps are left.
        """
        higher = 0.0
        if on_nodes.status is Status.CONVERGED:
            whole = _followed(forward, on_nodes, end)
            if whole is not None:
                best = replace(on_nodes, objective=whole.objective, cost=whole.cost, nodes=None)
            else:
                best = self._sharpened(forward.problem, on_nodes, control) if sharpen else on_nodes
            if best.exact or not is_sparse(forward, shooting.nodes):
                return best
            origin = on_nodes.start
        else:
            best, origin, higher = on_nodes, on_nodes.vector, SAME_COST * abs(on_nodes.cost)
            if end.iterations:
                # The iteration may diverge along an undetermined direction.
                begun = shooting.scaling.natural(end.iterations[0].point.coordinates)
                origin = min((origin, begun), key=forward.cost)
        if control.should_stop():
            return best
        again = SINGLE_SHOOTING.run(forward, on_nodes.index, origin, control)
        if again.status is Status.FAILED or again.cost >= best.cost + higher:
            return best
        return replace(again, message=f"{on_nodes.message}; then single shooting: {again.message}")

    def _sharpened(self, problem: Problem, on_nodes: Start, control: Control) -> Start:
        """Return an answer on nodes with its intervals integrated at full accuracy."""
        shooting, end = self._iterated_from(ForwardMap(problem), on_nodes, control)
        if end.at is None or not end.converged:
            return on_nodes
        evaluation = end.at.evaluation
        return replace(
            on_nodes,
            vector=shooting.scaling.natural(end.at.point.coordinates),
            objective=evaluation.objective,
            cost=evaluation.cost,
            nodes=self._nodes_with_constraints(shooting, end.at),
        )

    def _iterated_from(
        self, forward: ForwardMap, known: Start, control: Control
    ) -> tuple[ShootingProblem, IterationEnd]:
        """Return the problem on the nodes of an end, and the end of the iteration from there."""
        assert known.nodes is not None
        shooting = shooting_problem(forward, known.nodes.times, [], known.vector, control.within)
        values = np.concatenate(list(known.nodes.values))
        point = Point(shooting.scaling.coordinates(known.vector), values)
        return shooting, self._iterate(shooting, [], point, control, known.index)

    def _nodes_with_constraints(self, shooting: ShootingProblem, at: Linearisation) -> Nodes:
        """Return the nodes of the answer, with the constraints that hold on it."""
        constraints = [Constraint(c) if isinstance(c, str) else c for c in self.constraints]
        first = shooting.problem.conditions[0].name
        return replace(
            shooting.nodes_of(at.point),
            constraints=tuple(c.text for c in constraints),
            experiments=tuple(c.experiment or first for c in constraints),
        )

    def _iterate(
        self,
        shooting: ShootingProblem,
        constraints: Sequence[ParsedConstraint],
        start: Point,
        control: Control,
        index: int,
    ) -> IterationEnd:
        first = start.coordinates

        def report(iteration: Iteration, number: int) -> None:
            if control.report is not None:
                text = (
                    f"start {index + 1}, iteration {number}: level {iteration.level:.2g}, "
                    f"damping {iteration.damping:.2g}, gap {iteration.gap:.1e}"
                )
                control.report(Progress(index, 0, math.inf, 0, text))

        return iterate(
            shooting,
            start,
            lambda z: typical_sizes(shooting, z, first, 0.01),
            lambda at: user_constraints(shooting, at, constraints),
            tolerance=self.tolerance,
            max_steps=self.iterations,
            stop=control.should_stop,
            report=report,
        )

    def _start_nodes(self, shooting: ShootingProblem, vector: Array) -> Array:
        """Return the start values of the nodes, shape (nodes, N)."""
        problem = shooting.problem
        parts = []
        for condition, times in zip(problem.conditions, shooting.node_times, strict=True):
            values = states_from_data(problem, condition, shooting.names, vector, times)
            if self.states == "simulation":
                simulated = shooting.forward.trajectory(
                    vector, condition.name, times, sensitivities=False
                )
                if not isinstance(simulated, Failure) and np.isfinite(simulated.states).all():
                    values[:, : simulated.states.shape[1]] = simulated.states
            parts.append(values)
        return np.concatenate(parts)


def is_sparse(forward: ForwardMap, nodes: int) -> bool:
    """Return whether there are fewer data than values of nodes.

    Nodes may then mislead the search, and single shooting is tried as well.
    """
    size = len(node_names(forward.field, forward.problem.conditions))
    return nodes * size > forward.problem.size


def _followed(forward: ForwardMap, on_nodes: Start, end: IterationEnd) -> Evaluation | None:
    """Return the single integration that follows an answer on nodes, or None.

    If errors grow along the trajectory, as in chaos, the accuracy of the search may not suffice.
    """
    assert end.at is not None
    assert end.problem is not None
    tolerance, choice = CostTolerance.of(forward), end.at.choice
    # Local Linearization needs twice the steps for each further digit.
    limited = ENGINES[forward.engines.first(forward.field)].finest > IMPLICIT_TOLERANCE
    accurate = forward if limited else forward.with_accuracy(IMPLICIT_TOLERANCE)
    for whole_map in (forward, accurate):
        whole = whole_map.evaluate(on_nodes.vector, choice)
        reached = whole_map.accuracy(whole.choice)
        if isinstance(whole, Evaluation):
            rise = max(SAME_COST * abs(on_nodes.cost), tolerance.zero(reached), tolerance.absolute)
            if whole.cost <= on_nodes.cost + rise and _sees_as_much(whole, end.problem):
                return whole
        if reached <= accurate.accuracy(whole.choice):
            break
    return None


def _sees_as_much(whole: Evaluation, problem: LinearProblem) -> bool:
    """Return whether a single integration determines as many directions as nodes do.

    If all sensitivities grow along one direction, they soon differ only by rounding: the optimum
    and standard errors computed from them are then wrong, though the trajectory is not.
    """
    norms = np.linalg.norm(whole.jacobian, axis=0)
    scaled = whole.jacobian / np.where(norms > 0, norms, 1.0)
    values = np.linalg.svd(scaled, compute_uv=False)
    seen = int(np.sum(values > SEEN_SINGULAR_VALUE * values.max(initial=0.0)))
    return seen >= determined_directions(problem, whole.jacobian.shape[1])


_coarse: WeakKeyDictionary[ForwardMap, ForwardMap | None] = WeakKeyDictionary()
"""Forward maps with a part of the data by those with all, for all starts of a fit."""
