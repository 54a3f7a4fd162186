"""The reduced-space (sequential) approach: states follow from the unknowns by Newton's method.

A general solver of the discretised problem treats every state at every point as a variable. Here
the equations hold at each step, so a Gauss-Newton method on the unknowns alone suffices. It is
faster by an order of magnitude if unknowns are few, and the answer satisfies the equations to
rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

from odefit.common.arrays import Array, IntArray
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance, guess_states
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.stopping import Tolerances
from odefit.methods.local.trust_region import minimise
from odefit.methods.solvers.nonlinear_program import NonlinearProgram, nonlinear_program
from odefit.methods.solvers.solver import Answer, Outcome, make_answer
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory

MAX_NEWTON_STEPS = 25
"""Largest number of steps of Newton's method."""

NEWTON_TOLERANCE = 1e-10
"""Step length, relative to the sizes of the variables, at which Newton's method ends."""

MAX_HALVINGS = 6
"""Largest number of halvings of a Newton step that does not reduce the defects."""

TOLERANCES = Tolerances(cost=1e-9, step=1e-9, evaluations=200, patience=30)
"""The stopping rules of the Gauss-Newton method."""


@dataclass(frozen=True, eq=False)
class _Stage:
    """Equations (`rows`) that are solved together, for the variables `columns`.

    `variables`, `unknowns` and `before` are parts of their Jacobian: with respect to these
    variables, the unknowns, and the variables of the previous stage. The data of each are positions
    in the nonzeros of the whole Jacobian.
    """

    rows: IntArray
    columns: IntArray
    variables: csc_array
    unknowns: csc_array
    before: csc_array


@dataclass(frozen=True, eq=False)
class DiscreteSolution:
    """A solution of the discretised equations for unknowns of shape (n,).

    The values at points have the shape (P, v), their sensitivities to the unknowns (P, v, n).
    """

    unknowns: Array
    values: Array
    sensitivities: Array


class ReducedSpace:
    """Residuals of a discretised problem as functions of its unknowns; `forward` weights them.

    Points between mesh points, with measurements only, are computed after the others. It is
    `determined` if there are as many equations as states; otherwise it cannot be solved.
    """

    def __init__(self, forward: ForwardMap, d: Discretisation) -> None:
        self._forward, self._d = forward, d
        self._program: NonlinearProgram = nonlinear_program(d, Baseline())
        sparsity = self._program.jacobian.sparsity_out(1)
        rows, columns = (np.array(part, dtype=np.intp) for part in sparsity.get_triplet())
        places = np.arange(len(rows), dtype=np.intp)
        self._pattern = rows, columns, places
        self._stages = self._divided()
        self.determined = all(len(s.rows) == len(s.columns) for s in self._stages)

    def _divided(self) -> list[_Stage]:
        d = self._d
        rows, columns, _ = self._pattern
        at_points = d.points * len(d.variables)
        free = np.zeros(self._program.size, dtype=bool)
        free[:at_points] = (d.lower < d.upper).ravel()
        late = np.zeros((d.points, len(d.variables)), dtype=bool)
        for _, points, _ in d.interpolated:
            late[points] = True
        of_late = np.zeros(self._program.size, dtype=bool)
        of_late[:at_points] = late.ravel()
        late_rows = np.zeros(len(self._program.lower_g), dtype=bool)
        late_rows[rows[of_late[columns]]] = True
        unknowns = np.arange(at_points, at_points + len(d.problem.unknowns))
        stages: list[_Stage] = []
        before = np.zeros(0, dtype=np.intp)
        for chosen, taken in ((~late_rows, free & ~of_late), (late_rows, free & of_late)):
            r, c = np.flatnonzero(chosen), np.flatnonzero(taken)
            parts = [self._part(r, part) for part in (c, unknowns, before)]
            stages.append(_Stage(r, c, *parts))
            before = c
        return stages

    def _part(self, chosen: IntArray, taken: IntArray) -> csc_array:
        rows, columns, places = self._pattern
        row = np.full(len(self._program.lower_g), -1)
        column = np.full(self._program.size, -1)
        row[chosen], column[taken] = np.arange(len(chosen)), np.arange(len(taken))
        inside = (row[rows] >= 0) & (column[columns] >= 0)
        r, c = row[rows[inside]], column[columns[inside]]
        order = np.lexsort((r, c))  # positions are not values: nothing may be summed
        starts = np.searchsorted(c[order], np.arange(len(taken) + 1))
        return csc_array((places[inside][order], r[order], starts), shape=(len(chosen), len(taken)))

    def solve(self, unknowns: Array, values: Array) -> DiscreteSolution | None:
        """Return the states for some unknowns by Newton's method from `values`, if it converges."""
        d = self._d
        values = np.where(d.lower < d.upper, values, d.lower)
        w = self._program.pack(values, unknowns)
        sensitivities = np.zeros((self._program.size, len(d.problem.unknowns)))
        previous: Array | None = None
        for stage in self._stages:
            if not len(stage.rows):
                continue
            solved = self._newton(stage, w)
            if solved is None:
                return None
            w, entries, factors = solved
            right = _matrix(stage.unknowns, entries).toarray()
            if previous is not None:
                right = right + _matrix(stage.before, entries) @ previous
            previous = -factors.solve(right)
            sensitivities[stage.columns] = previous
        values, _ = self._program.unpack(w)
        at_points, n = d.points * len(d.variables), len(d.problem.unknowns)
        scale = self._program.scale
        derivatives = sensitivities[:at_points] * scale[:at_points, None]
        derivatives /= scale[at_points : at_points + n]
        if not (np.isfinite(values).all() and np.isfinite(derivatives).all()):
            return None
        return DiscreteSolution(
            unknowns, values, derivatives.reshape(d.points, len(d.variables), n)
        )

    def _newton(self, stage: _Stage, w: Array) -> tuple[Array, Array, SuperLU] | None:
        w = w.copy()
        defects, entries = self._evaluated(stage, w)
        for _ in range(MAX_NEWTON_STEPS):
            factors = _factors(_matrix(stage.variables, entries))
            if factors is None:
                return None
            step = factors.solve(defects)
            size = float(np.max(np.abs(step) / np.maximum(1.0, np.abs(w[stage.columns]))))
            if not np.isfinite(size):
                return None
            if size <= NEWTON_TOLERANCE:
                w[stage.columns] -= step
                return w, entries, factors
            part, norm = 1.0, float(np.abs(factors.solve(defects)).sum())
            for _ in range(MAX_HALVINGS):
                trial = w.copy()
                trial[stage.columns] -= part * step
                again, more = self._evaluated(stage, trial)
                # Judged by the remaining step, which is independent of the scaling of the
                # equations.
                if np.isfinite(again).all() and np.isfinite(more).all():
                    left = float(np.abs(factors.solve(again)).sum())
                    if left < norm:
                        break
                part *= 0.5
            else:
                return None
            w, defects, entries = trial, again, more
        return None

    def _evaluated(self, stage: _Stage, w: Array) -> tuple[Array, Array]:
        defects, jacobian = self._program.jacobian(w, [])
        return np.asarray(defects).ravel()[stage.rows], np.asarray(jacobian.nonzeros())

    def evaluate(self, solved: DiscreteSolution) -> Evaluation | None:
        """Return residuals and their derivatives; None if they are undefined."""
        d = self._d
        n = len(d.field.states)
        a = len(d.field.algebraic)
        unknowns = tuple(range(len(d.problem.unknowns)))
        trajectories = []
        for condition, points in zip(d.problem.conditions, d.measured, strict=True):
            values, derivatives = solved.values[points], solved.sensitivities[points]
            switched = {
                name: (values[:, n + a + k], derivatives[:, n + a + k])
                for k, name in enumerate(d.switched)
            }
            trajectories.append(
                Trajectory(
                    condition.times,
                    values[:, :n],
                    values[:, n : n + a],
                    unknowns,
                    derivatives[:, :n],
                    derivatives[:, n : n + a],
                    switched,
                )
            )
        assembled = self._forward.assemble(solved.unknowns, trajectories)
        return assembled[0] if isinstance(assembled, tuple) else None

    def minimise(
        self, unknowns: Array, values: Array | None, stop: Callable[[], bool]
    ) -> Answer | None:
        """Return a local minimum next to `unknowns`, shape (n,); the best so far after a `stop`.

        The guess of the states, shape (P, v), is by default the integrated trajectories. Returns
        None if the start cannot be evaluated.
        """
        began = time.perf_counter()
        if not self.determined:
            return None
        cost = _Cost(self, self._forward, self._d, values)
        scaling = cost.scaling
        inside = np.clip(unknowns, self._d.problem.lower, self._d.problem.upper)
        with np.errstate(all="ignore"):
            minimum = minimise(
                cost,
                scaling.coordinates(inside),
                scaling.lower,
                scaling.upper,
                TOLERANCES,
                stop,
            )
        if not isinstance(minimum.evaluation, _Point):
            return None
        solved = minimum.evaluation.solved
        return make_answer(
            Instance(self._d, Baseline()),
            Outcome.SOLVED if minimum.converged else Outcome.LIMIT,
            solved.values,
            np.clip(solved.unknowns, self._d.problem.lower, self._d.problem.upper),
            None,
            time.perf_counter() - began,
            minimum.message,
            minimum.evaluations,
        )


@dataclass(frozen=True, eq=False)
class _Point:
    """The cost at one vector with residuals and Jacobian, in the coordinates of the method."""

    cost: float
    residuals: Array
    jacobian: Array
    solved: DiscreteSolution


class _Cost:
    """The cost as a function of the unknowns; a solution starts from that of the last vector."""

    def __init__(
        self, reduced: ReducedSpace, forward: ForwardMap, d: Discretisation, values: Array | None
    ) -> None:
        self._reduced, self._forward, self._d = reduced, forward, d
        self._first = values
        self._last: DiscreteSolution | None = None
        self.scaling = Scaling.of(d.problem)

    def __call__(self, coordinates: Array) -> _Point | None:
        vector = self.scaling.natural(coordinates)
        for begin in (self._predicted, self._simulated):
            values = begin(vector)
            solved = None if values is None else self._reduced.solve(vector, values)
            evaluation = None if solved is None else self._reduced.evaluate(solved)
            if solved is not None and evaluation is not None:
                self._last = solved
                jacobian = evaluation.jacobian * self.scaling.derivative(vector)
                return _Point(evaluation.cost, evaluation.residuals, jacobian, solved)
        return None

    def _predicted(self, vector: Array) -> Array | None:
        if self._last is None:
            return self._first
        return self._last.values + self._last.sensitivities @ (vector - self._last.unknowns)

    def _simulated(self, vector: Array) -> Array | None:
        return guess_states(self._d, self._forward, vector)


def _matrix(pattern: csc_array, entries: Array) -> csc_array:
    return csc_array((entries[pattern.data], pattern.indices, pattern.indptr), pattern.shape)


def _factors(matrix: Any) -> SuperLU | None:
    try:
        return splu(matrix)
    except RuntimeError:  # exactly singular
        return None
