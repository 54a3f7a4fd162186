"""Variable projection: unknowns of the observation alone are eliminated from the local search.

Scales and offsets enter the residuals linearly (or as logarithms, where the logarithm of an
observable was measured), and the standard deviation of a group of measurements has a closed form,
and so has a scale of both, values and noise.
Given all other unknowns, the trajectories are fixed, and the optimum of these is found without
another integration. The search then has fewer unknowns, and needs no start values for these
(G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate, 1973; as hierarchical optimisation C. Loos, S. Krause and
J. Hasenauer, Hierarchical optimization for the efficient parametrization of ODE models, 2018, and
L. Schmiester et al., Efficient parameterization of large-scale dynamic models based on relative
measurements, 2020).

At the inner optimum the derivative by the eliminated unknowns is zero, so that the gradient of the
reduced cost is that of the full cost by the others. The Gauss-Newton (Fisher) matrix of the reduced
problem is the Schur complement of the full one: the Jacobian by the others, with what the
eliminated unknowns can take up projected out (L. Kaufman, A variable projection method for solving
separable nonlinear least squares problems, 1975). An unknown at a bound takes up nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.local.decompositions import singular_value_decomposition
from odefit.methods.local.observation_optimum import SINGULAR_TOLERANCE, ObservationOptimum
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.trajectories.trajectory import Trajectory
from odefit.structure.observation_unknowns import ObservationUnknowns, observation_unknowns


@dataclass(frozen=True, eq=False)
class Projection:
    """A problem at unknowns of which those eliminated are at their optimum."""

    vector: Array  # all unknowns, shape (n,)
    evaluation: Evaluation  # evaluation of the full problem there
    # the Jacobian by the unknowns that are not eliminated, reduced, shape (r, kept): with the
    # residuals of `evaluation` it has the gradient and the Gauss-Newton matrix of the reduced cost
    jacobian: Array


class VariableProjection:
    """The reduced problem of a forward map, in the unknowns `kept`.

    Without `eliminate` no unknown is eliminated, and the problem is as it was.
    """

    def __init__(self, forward: ForwardMap, eliminate: bool = True) -> None:
        self.forward = forward
        problem = forward.problem
        unknowns = _eliminated(problem) if eliminate else ObservationUnknowns()
        gone = unknowns.indices
        self.kept: IntArray = np.array(
            [k for k in range(len(problem.unknowns)) if k not in gone], dtype=np.intp
        )
        self._inner = ObservationOptimum(problem, unknowns) if gone else None

    def evaluate(self, vector: Array, choice: EngineChoice = UNDECIDED) -> Projection | Failure:
        """Return the reduced problem at `vector`, shape (n,), whatever the eliminated are there."""
        if self._inner is None:
            found = self.forward.evaluate(vector, choice)
            if isinstance(found, Failure):
                return found
            return Projection(vector, found, found.jacobian)
        optimum = self._optimum(self._inner, vector, choice, sensitivities=True)
        if isinstance(optimum, Failure):
            return optimum
        vector, free, trajectories = optimum
        evaluation = self.forward.evaluate_along(vector, trajectories)
        if isinstance(evaluation, Failure):
            return evaluation
        jacobian = evaluation.jacobian[:, self.kept]
        basis = _orthonormal_basis(evaluation.jacobian[:, free])
        return Projection(vector, evaluation, jacobian - basis @ (basis.T @ jacobian))

    def evaluate_cost(
        self, vector: Array, choice: EngineChoice = UNDECIDED
    ) -> Evaluation | Failure:
        """Return an evaluation, of which the Jacobian may be zero, with the eliminated optimal."""
        if self._inner is None:
            return self.forward.evaluate_cost(vector, choice)
        optimum = self._optimum(self._inner, vector, choice, sensitivities=False)
        if isinstance(optimum, Failure):
            return optimum
        vector, _, trajectories = optimum
        return self.forward.evaluate_along(vector, trajectories, derivatives=False)

    def _optimum(
        self,
        inner: ObservationOptimum,
        vector: Array,
        choice: EngineChoice,
        *,
        sensitivities: bool,
    ) -> tuple[Array, BoolArray, Sequence[Trajectory]] | Failure:
        """Return all unknowns, which of them are eliminated and free, and the trajectories."""
        trajectories = self.forward.trajectories(vector, choice, sensitivities=sensitivities)
        if isinstance(trajectories, Failure):
            return trajectories
        optimum = inner.solve(self.forward, vector, trajectories)
        if isinstance(optimum, Failure):
            return replace(optimum, choice=trajectories[-1].choice)
        return (*optimum, trajectories)


_known: WeakKeyDictionary[Problem, ObservationUnknowns] = WeakKeyDictionary()
"""What was found of problems before: a problem has many starts."""


def _eliminated(problem: Problem) -> ObservationUnknowns:
    if problem not in _known:
        _known[problem] = observation_unknowns(problem)
    return _known[problem]


def _orthonormal_basis(columns: Array) -> Array:
    """Return an orthonormal basis of what the columns span."""
    norms = np.linalg.norm(columns, axis=0)
    u, s, _ = singular_value_decomposition(columns / np.where(norms > 0, norms, 1.0))
    return np.asarray(u[:, s > SINGULAR_TOLERANCE * s.max(initial=0.0)])
