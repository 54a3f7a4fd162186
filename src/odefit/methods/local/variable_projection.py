"""Variable projection: unknowns of the observation alone are eliminated from the local search.

Scales and offsets enter the residuals linearly (or as logarithms, if the logarithm of an observable
was measured). The standard deviation of a group of measurements has a closed form, and so does a
common scale of values and noise. Given all other unknowns, the trajectories are fixed, and the
optimum of these unknowns needs no further integration. The search then has fewer unknowns, and
needs no start values for the eliminated ones (G. H. Golub and V. Pereyra, The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate, 1973; as hierarchical
optimisation C. Loos, S. Krause and J. Hasenauer, Hierarchical optimization for the efficient
parametrization of ODE models, 2018, and L. Schmiester et al., Efficient parameterization of
large-scale dynamic models based on relative measurements, 2020).

At the inner optimum the derivative with respect to the eliminated unknowns is zero. So the gradient
of the reduced cost is that of the full cost with respect to the others. The Gauss-Newton (Fisher)
matrix of the reduced problem is the Schur complement of the full one. From the Jacobian with
respect to the others, the span of the eliminated unknowns is projected out (L. Kaufman, A variable
projection method for solving separable nonlinear least squares problems, 1975). An unknown at a
bound spans nothing.

The inner optimum gives linear unknowns by bounded linear least squares, standard deviations as root
mean squares, and units as roots of quadratic equations. If these depend on each other, they are
computed in turn, which lowers the cost each time, and the sequence of the standard deviations is
accelerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.local.decompositions import singular_value_decomposition
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import data_sizes
from odefit.problem.variants.sizes import typical_sizes
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.residuals.series_rows import ResidualSource
from odefit.simulation.trajectories.trajectory import Trajectory
from odefit.structure.observation_unknowns import ObservationUnknowns, observation_unknowns

SINGULAR_TOLERANCE = 1e-10
"""The relative singular value of the linear problem, its columns scaled to length one, up to which
it counts as zero."""

LEAST_DEVIATION = 2e-16
"""The smallest standard deviation relative to the size of the data: residuals of zero would
otherwise have the standard deviation zero, and their last digit is as large."""

MAX_ALTERNATIONS = 100
"""Largest number of alternations between linear unknowns and standard deviations, if measurements
with different standard deviations share a linear unknown."""

SAME_DEVIATION = 1e-12  # relative change of the standard deviations that ends the alternation
FAR = 2.0  # largest logarithm of an acceleration of the alternation


def sizes_of_deviations(problem: Problem, unknowns: Sequence[int]) -> Array:
    """Return the data size for each unknown that is a standard deviation, otherwise 1."""
    sizes = {**typical_sizes(problem).states, **data_sizes(problem)}
    of_key = {
        noise.unknown(name): sizes.get(name, 1.0)
        for name, noise in problem.noise.items()
        if noise.spread == "estimate" and noise.transform is None
    }
    return np.array([of_key.get(problem.unknowns[k].key, 1.0) for k in unknowns])


class ObservationOptimum:
    """The optimum of the eliminated unknowns, given trajectories and the other unknowns.

    The residuals are (A y + b) / s, where s is known up to a factor shared by all measurements of a
    group. Unknown factors under a logarithm have logarithms as coordinates. With an unknown unit, a
    factor of values and noise, the residuals are (b - u d) / s, with the measurements d and the
    reciprocal u of the unit. The sum of log s then has a term - log u.
    """

    def __init__(self, problem: Problem, unknowns: ObservationUnknowns) -> None:
        self._columns = [*unknowns.linear, *unknowns.logarithmic]
        self._log = np.arange(len(self._columns)) >= len(unknowns.linear)
        self._deviations = list(unknowns.deviations)
        self._powers = np.array(list(unknowns.deviations.values()))
        self._units = list(unknowns.units)
        self._unit_powers = np.array(list(unknowns.units.values()))
        self._bounds = problem.lower, problem.upper
        with np.errstate(divide="ignore"):
            low, high = (self._coordinates(bound[self._columns]) for bound in self._bounds)
            ends = [bound[self._deviations] ** self._powers for bound in self._bounds]
            unit_ends = [bound[self._units] ** -self._unit_powers for bound in self._bounds]
        self._low, self._high = low, high
        self._least, self._most = np.minimum(*ends), np.maximum(*ends)
        rounding = LEAST_DEVIATION * sizes_of_deviations(problem, self._deviations) ** self._powers
        self._least = np.maximum(self._least, rounding)
        self._unit_low, self._unit_high = np.minimum(*unit_ends), np.maximum(*unit_ends)
        self._layout: tuple[IntArray, IntArray, IntArray] | None = None

    def _coordinates(self, values: Array) -> Array:
        return np.where(self._log, np.log(np.where(self._log, values, 1.0)), values)

    def solve(
        self, forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
    ) -> tuple[Array, BoolArray] | Failure:
        """Return all unknowns, shape (n,), and which of them are eliminated and not at a bound.

        Unknowns on which no measurement depends keep their values in `vector`.
        """
        with np.errstate(all="ignore"):
            groups = self._groups(forward, vector, trajectories)
            if isinstance(groups, Failure):
                return groups
            y, factors, units, free = self._alternate(groups, vector)
            solution, at_no_bound = vector.copy(), np.zeros(len(vector), dtype=bool)
            solution[self._columns] = np.where(self._log, np.exp(y), y)
            solution[self._deviations] = factors ** (1.0 / self._powers)
            solution[self._units] = units ** (-1.0 / self._unit_powers)
            indices = [*self._columns, *self._deviations, *self._units]
            lower, upper = self._bounds
            solution[indices] = np.clip(solution[indices], lower[indices], upper[indices])
            at_no_bound[indices] = free
        return solution, at_no_bound

    def _groups(
        self, forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
    ) -> _Groups | Failure:
        """Return the residuals as functions of the eliminated unknowns."""
        base = vector.copy()
        base[self._columns] = np.where(self._log, 1.0, 0.0)
        base[[*self._deviations, *self._units]] = 1.0
        plain = [_without_sensitivities(trajectory) for trajectory in trajectories]
        if self._layout is None:
            assembled = forward.assemble(base, plain)
            if isinstance(assembled, Failure):
                return assembled
            self._layout = self._rows(assembled[0].jacobian, assembled[1])
        needed = bool(self._columns or self._units)
        evaluation = forward.evaluate_along(base, plain, derivatives=needed)
        if isinstance(evaluation, Failure):
            return evaluation
        rows, owners, units = self._layout
        residuals, jacobian = evaluation.residuals[rows], evaluation.jacobian[rows]
        in_units, measured = units >= 0, np.zeros(len(rows))
        if in_units.any():
            # The model is the derivative of the residual with respect to the unit, at one, over the
            # power of the unit.
            columns = np.array(self._units, dtype=np.intp)[units[in_units]]
            model = jacobian[in_units, columns] / self._unit_powers[units[in_units]]
            measured[in_units] = model - residuals[in_units]
            residuals[in_units] = model
        return _Groups(jacobian[:, self._columns], residuals, owners, units, measured)

    def _rows(
        self, jacobian: Array, sources: Sequence[ResidualSource]
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return the residuals except those of standard deviations, their owners and units."""
        rows: list[IntArray] = []
        owners: list[IntArray] = []
        units: list[IntArray] = []
        start = 0
        for number, source in enumerate(sources):
            count = len(source.times)
            here = np.arange(start, start + count)
            start += count
            if number and source is sources[number - 1]:
                # Rows that a standard deviation adds to those of its measurements.
                for places, unknowns in ((owners, self._deviations), (units, self._units)):
                    acting = np.flatnonzero(jacobian[here[0], unknowns])
                    places[-1][:] = acting[0] if len(acting) else -1
                continue
            rows.append(here)
            owners.append(np.full(count, -1))
            units.append(np.full(count, -1))
        return np.concatenate(rows), np.concatenate(owners), np.concatenate(units)

    def _alternate(self, groups: _Groups, vector: Array) -> tuple[Array, Array, Array, BoolArray]:
        """Return coordinates of scales, factors of deviations, reciprocals of units, all optimal.

        The last array marks those that are not at a bound.
        """
        coordinates = self._coordinates(vector[self._columns])
        given_units = vector[self._units] ** -self._unit_powers
        count = len(self._deviations)
        least = self._least
        factors = np.maximum(groups.root_mean_squares(groups.constants, count), least)
        coupled, sequence = groups.coupled, [np.log(factors)]
        for _ in range(MAX_ALTERNATIONS):
            weights = groups.weights(factors)
            y, free = _bounded_least_squares(
                groups.columns * weights[:, None],
                groups.constants * weights,
                self._low,
                self._high,
                coordinates,
            )
            units, seen = groups.units_at(weights, len(self._units))
            units = np.clip(np.where(seen, units, given_units), self._unit_low, self._unit_high)
            before = factors
            residuals = groups.constants + groups.columns @ y - groups.in_units(units)
            factors = np.clip(groups.root_mean_squares(residuals, count), least, self._most)
            settled = np.abs(factors - before) <= SAME_DEVIATION * factors
            if settled.all() or not coupled:
                break
            sequence.append(np.log(factors))
            if len(sequence) == 3:
                factors = np.clip(np.exp(_accelerated(*sequence)), least, self._most)
                sequence = [np.log(factors)]
        loose = (factors > least) & (factors < self._most)
        free_units = seen & (units > self._unit_low) & (units < self._unit_high)
        return y, factors, units, np.concatenate([free, loose, free_units])


@dataclass(frozen=True, eq=False)
class _Groups:
    """Residuals (columns y + constants - unit measured) / factor, including those of priors."""

    # shapes (rows, k) and (rows,)
    columns: Array
    constants: Array
    # number of the factor that divides a row, and that of the unit of its measurement; -1 for none
    owners: IntArray
    units: IntArray
    # measured values over the known part of their standard deviations, shape (rows,); zero for rows
    # without a unit
    measured: Array

    @property
    def coupled(self) -> bool:
        """True if factors weight rows that share a column, or act together with a unit."""
        owned = self.owners >= 0
        if not owned.any():
            return False
        if bool(((self.units >= 0) & owned).any()):
            return True
        # The rows of each factor (and those without), and so the columns that each factor weights.
        groups = self.owners == np.arange(-1, self.owners.max() + 1)[:, None]
        return bool((np.count_nonzero(groups @ (self.columns != 0), axis=0) > 1).any())

    def weights(self, factors: Array) -> Array:
        """Return the factors by which rows are multiplied, shape (rows,)."""
        return 1.0 / np.append(factors, 1.0)[self.owners]

    def in_units(self, units: Array) -> Array:
        """Return the measured values in their units, zero for rows without one, shape (rows,)."""
        return np.asarray(np.append(units, 0.0)[self.units] * self.measured)

    def units_at(self, weights: Array, count: int) -> tuple[Array, BoolArray]:
        """Return the optimal reciprocals of the units, and which of them have any data."""
        in_units = self.units >= 0
        units, weights = self.units[in_units], weights[in_units]
        q, d = weights * self.constants[in_units], weights * self.measured[in_units]
        square = np.bincount(units, d * d, minlength=count)
        half = 0.5 * np.bincount(units, q * d, minlength=count)
        numbers = np.bincount(units, minlength=count)
        # The positive root of square u^2 - 2 half u - numbers = 0, without cancellation.
        root = np.sqrt(half**2 + square * numbers)
        optimum = np.where(half >= 0, (half + root) / square, numbers / (root - half))
        return optimum, square > 0

    def root_mean_squares(self, values: Array, count: int) -> Array:
        """Return the root mean square of values, shape (rows,), for each of `count` factors."""
        owned = self.owners >= 0
        squares = np.bincount(self.owners[owned], values[owned] ** 2, minlength=count)
        numbers = np.bincount(self.owners[owned], minlength=count)
        return np.asarray(np.sqrt(squares / np.maximum(numbers, 1)))


def _without_sensitivities(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose observables have no derivatives with respect to its unknowns."""
    return replace(
        trajectory,
        unknowns=(),
        sensitivities=trajectory.sensitivities[:, :, :0],
        algebraic_sensitivities=trajectory.algebraic_sensitivities[:, :, :0],
        switched={name: (v, s[:, :0]) for name, (v, s) in trajectory.switched.items()},
    )


def _accelerated(first: Array, second: Array, third: Array) -> Array:
    """Return the limit of a sequence by Aitken's process, unless that is far away."""
    bend = third - 2 * second + first
    limit = first - (second - first) ** 2 / bend
    return np.where(np.abs(limit - third) <= FAR, limit, third)


def _bounded_least_squares(
    columns: Array, constant: Array, low: Array, high: Array, default: Array
) -> tuple[Array, BoolArray]:
    """Minimise |columns y + constant|^2 within bounds; also return which components are inside.

    Of several minima, the shortest in units of the columns is returned. A component without a
    column keeps its `default` value.
    """
    if not len(default):
        return default, np.zeros(0, dtype=bool)
    norms = np.linalg.norm(columns, axis=0)
    units = np.where(norms > 0, norms, 1.0)
    scaled, bottom, top = columns / units, low * units, high * units
    if np.count_nonzero(columns, axis=1).max(initial=0) <= 1:
        z = np.clip(-(scaled.T @ constant), bottom, top)  # the columns are orthogonal
    else:
        u, s, vt = singular_value_decomposition(scaled)
        seen = s > SINGULAR_TOLERANCE * s[0]
        z = -(vt[seen].T @ ((u[:, seen].T @ constant) / s[seen]))
        if not ((z >= bottom) & (z <= top)).all():
            from scipy.optimize import lsq_linear

            free, most = bottom < top, 10 * len(z)  # the others are held by their bounds
            z = bottom.copy()
            rest = -(constant + scaled[:, ~free] @ z[~free])
            bounds = bottom[free], top[free]
            if free.any():
                z[free] = lsq_linear(scaled[:, free], rest, bounds, "bvls", max_iter=most).x
    within = (z > bottom) & (z < top)
    y = np.where(within, z / units, np.where(z <= bottom, low, high))
    return np.where(norms > 0, y, default), within & (norms > 0)


@dataclass(frozen=True, eq=False)
class Projection:
    """A problem at unknowns of which the eliminated ones are optimal."""

    vector: Array  # all unknowns, shape (n,)
    evaluation: Evaluation  # evaluation of the full problem there
    # the Jacobian by the unknowns that are not eliminated, reduced, shape (r, kept): with the
    # residuals of `evaluation` it has the gradient and the Gauss-Newton matrix of the reduced cost
    jacobian: Array


class VariableProjection:
    """The reduced problem of a forward map, in the `remaining` unknowns.

    Without `eliminate` no unknown is eliminated, and the problem is unchanged.
    """

    def __init__(self, forward: ForwardMap, eliminate: bool = True) -> None:
        self.forward = forward
        problem = forward.problem
        unknowns = _eliminated(problem) if eliminate else ObservationUnknowns()
        gone = unknowns.indices
        self.remaining: IntArray = np.array(
            [k for k in range(len(problem.unknowns)) if k not in gone], dtype=np.intp
        )
        self._inner = ObservationOptimum(problem, unknowns) if gone else None

    def evaluate(self, vector: Array, choice: EngineChoice = UNDECIDED) -> Projection | Failure:
        """Return the reduced problem at `vector`, shape (n,), ignoring its eliminated unknowns."""
        if self._inner is None:
            full = self.forward.evaluate(vector, choice)
            if isinstance(full, Failure):
                return full
            return Projection(vector, full, full.jacobian)
        optimum = self._optimum(self._inner, vector, choice, sensitivities=True)
        if isinstance(optimum, Failure):
            return optimum
        vector, free, trajectories = optimum
        evaluation = self.forward.evaluate_along(vector, trajectories)
        if isinstance(evaluation, Failure):
            return evaluation
        jacobian = evaluation.jacobian[:, self.remaining]
        basis = _orthonormal_basis(evaluation.jacobian[:, free])
        return Projection(vector, evaluation, jacobian - basis @ (basis.T @ jacobian))

    def evaluate_cost(
        self, vector: Array, choice: EngineChoice = UNDECIDED
    ) -> Evaluation | Failure:
        """Return an evaluation with optimal eliminated unknowns; its Jacobian may be zero."""
        if self._inner is None:
            return self.forward.evaluate_cost(vector, choice)
        optimum = self._optimum(self._inner, vector, choice, sensitivities=False)
        if isinstance(optimum, Failure):
            return optimum
        vector, _, trajectories = optimum
        return self.forward.evaluate_along(vector, trajectories, derivatives=False)

    def cost_along(self, vector: Array, trajectories: Sequence[Trajectory]) -> Evaluation | Failure:
        """Return the result of :meth:`evaluate_cost` for known trajectories."""
        if self._inner is not None:
            optimum = self._inner.solve(self.forward, vector, trajectories)
            if isinstance(optimum, Failure):
                return optimum
            vector = optimum[0]
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
"""Unknowns of the observation by problem: a problem has many starts."""


def _eliminated(problem: Problem) -> ObservationUnknowns:
    if problem not in _known:
        _known[problem] = observation_unknowns(problem)
    return _known[problem]


def _orthonormal_basis(columns: Array) -> Array:
    """Return an orthonormal basis of the span of the columns."""
    norms = np.linalg.norm(columns, axis=0)
    u, s, _ = singular_value_decomposition(columns / np.where(norms > 0, norms, 1.0))
    return np.asarray(u[:, s > SINGULAR_TOLERANCE * s.max(initial=0.0)])
