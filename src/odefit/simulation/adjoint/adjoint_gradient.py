"""The gradient of the cost by the adjoint of the integration.

Its price does not depend on the number of unknowns. It is the exact derivative of the cost that was
computed, with the steps as they were. Where a condition begins or ends at a steady state, or events
have to be located, there is none, and sensitivities are integrated instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.adjoint.adjoint_tree import AdjointTree, Watched
from odefit.simulation.engines.engine import EngineFailure
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.evaluation import CostGradient, Evaluation
from odefit.simulation.residuals.residual_arrays import ResidualSource
from odefit.simulation.trajectories.shared_segments import groups_with_equal_starts
from odefit.simulation.trajectories.trajectory import Trajectory, switched_scalars

Assemble = Callable[
    [Array, Sequence[Trajectory]], tuple[Evaluation, list[ResidualSource]] | Failure
]
"""Residuals and their Jacobian from trajectories, see
:meth:`odefit.simulation.forward.ForwardMap.assemble`."""


class AdjointGradient:
    """The gradient of a problem's cost by the adjoint.

    `assemble`: residuals and their Jacobian from trajectories. `exists`: whether all conditions
    consist of segments between events at known times.
    """

    def __init__(
        self, problem: Problem, field: VectorField, engines: Engines, assemble: Assemble
    ) -> None:
        conditions = problem.conditions
        self._assemble = assemble
        self._unknowns = len(problem.unknowns)
        self._lengths = [len(c.times) for c in conditions]
        self.exists = not field.algebraic and all(_plain(c) for c in conditions)
        if not self.exists:
            return
        self._watched = _watched(problem, field)
        groups = groups_with_equal_starts(field, conditions)
        self._trees = [AdjointTree(field, conditions, engines, g, self._watched) for g in groups]

    def __call__(self, vector: Array, choice: EngineChoice) -> CostGradient | None:
        """Return cost and gradient at `vector`, shape (n,); None if the adjoint fails."""
        with np.errstate(all="ignore"):
            passages = []
            trajectories: dict[int, Trajectory] = {}
            for tree in self._trees:
                passage = tree.integrate(vector)
                if isinstance(passage, EngineFailure):
                    return None
                passages.append(passage)
                trajectories.update(passage.trajectories)
            longer = np.concatenate([vector, np.zeros(self._watched.count)])
            found = self._assemble(longer, [trajectories[c] for c in range(len(trajectories))])
            if isinstance(found, Failure):
                return None
            evaluation, sources = found
            gradient = evaluation.residuals @ evaluation.jacobian[:, : self._unknowns]
            weights = self._weights(evaluation, sources)
            for tree, passage in zip(self._trees, passages, strict=True):
                part = tree.pull_back(passage, weights)
                if part is None:
                    return None
                gradient += part
        if not np.isfinite(gradient).all():
            return None
        return CostGradient(
            evaluation.cost,
            gradient,
            evaluation.objective,
            evaluation.log_likelihood,
            choice,
            adjoint=True,
        )

    def _weights(
        self, evaluation: Evaluation, sources: Sequence[ResidualSource]
    ) -> dict[int, Array]:
        """Return the cost's derivatives by what is watched, by condition, at its times."""
        by_residual = evaluation.residuals[:, None] * evaluation.jacobian[:, self._unknowns :]
        weights = {
            c: np.zeros((length, self._watched.count)) for c, length in enumerate(self._lengths)
        }
        start = 0
        for source in sources:
            stop = start + len(source.times)
            if source.condition >= 0:
                np.add.at(weights[source.condition], source.times, by_residual[start:stop])
            start = stop
        return weights


def _plain(condition: Condition) -> bool:
    """Return whether a condition consists of segments between events at known times."""
    at_rest = condition.steady_start or condition.repeated is not None
    endless = len(condition.times) > 0 and bool(np.isinf(condition.times[-1]))
    return not (condition.located or at_rest or endless)


def _watched(problem: Problem, field: VectorField) -> Watched:
    """Return what measurements may depend on, of states and of scalars that events assign."""
    model = problem.model
    spreads = [n.spread for n in problem.noise.values() if isinstance(n.spread, Expression)]
    expressions = [*model.observables.values(), *model.algebraic.values(), *spreads]
    names = {name for expression in expressions for name in expression.names}
    states = [i for i, name in enumerate(field.states) if name in names]
    switched = {n for c in problem.conditions for n in switched_scalars(field, c)}
    return Watched(
        np.array(states, dtype=np.intp), tuple(sorted(switched & names)), len(problem.unknowns)
    )
