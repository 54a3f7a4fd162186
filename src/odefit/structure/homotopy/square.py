"""The square subsystem of the differentiated model: as many equations as unknowns.

Equations are taken in order of derivative, all outputs of order 0 before those of order 1. Each is
kept if it raises the rank of the Jacobian at a random point modulo a prime (section 3, step 4 of
Bassik et al., with exact ranks). Everything that data and experiments prescribe (Taylor
coefficients of the outputs, fixed values, time and inputs) forms one vector of parameters of the
polynomial system. The system is first solved for generic parameters and then, by a parameter
homotopy, for those of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, ComplexArray, IntArray
from odefit.structure.homotopy.tracker import SAME_SOLUTION, solve
from odefit.structure.series.deadline import PER_CALL
from odefit.structure.series.differentiated_system import (
    NO_SERIES_AT_START,
    DifferentiatedSystem,
    NoTaylorSeriesError,
)
from odefit.structure.series.echelon import Echelon
from odefit.structure.series.expansion import ExpansionPoint
from odefit.structure.series.modular_points import MAX_RISES, GrowingSeries, modular_point

MAX_POINTS = 5
"""Largest number of random points that are tried to avoid divisions by zero."""

PER_SOLUTION = 0.1
"""Operations of solving a complex linear system, over the cube of its size."""

GENERIC_CANDIDATES = 6
"""Number of random points of which the best conditioned one becomes the generic point."""


@dataclass(frozen=True)
class Row:
    """One equation: a Taylor coefficient of an output (a measured observable, or a constraint)."""

    expansion: int
    order: int
    output: int


class SquareSystem:
    """Equations that determine every algebraic unknown that can be determined.

    `solved` are the columns of the n solved unknowns, `held` those of unknowns that no equation
    determines given the others; `determined` marks the determined unknowns. If `rank` is given, it
    is known to be the highest, and `reached` is the order of derivative that suffices. Raises
    NoTaylorSeriesError if the equations cannot be evaluated at the given initial values, and
    UnfinishedError at the deadline.
    """

    def __init__(
        self,
        system: DifferentiatedSystem,
        seed: int = 0,
        rank: int | None = None,
        reached: int = 0,
    ) -> None:
        self.system = system
        rng = np.random.default_rng(seed)
        count = len(system.names)
        # Around given initial values, or with known functions, the rank may stagnate temporarily.
        patient = not system.free_states or any(
            e.program.equations.functions for e in system.expansions
        )
        # A known rank is pursued to any order that it needs.
        highest = system.sufficient_order * (1 if rank is None else MAX_RISES)
        highest = max(highest, reached)
        for attempt in range(MAX_POINTS):
            try:
                values, points = modular_point(system, rng, highest)
                series = GrowingSeries(
                    system, values, points, max(system.sufficient_order, reached)
                )
                echelon, self.rows = self._search(series, highest, rank, patient)
                break
            except ZeroDivisionError:  # an unlucky point, or all points are
                if attempt == MAX_POINTS - 1:
                    raise NoTaylorSeriesError(system.problem.name, NO_SERIES_AT_START) from None
        self.solved = np.array(sorted(echelon.pivots), dtype=np.intp)
        self.held = np.array([k for k in range(count) if k not in echelon.pivots], dtype=np.intp)
        self.determined = tuple(echelon.determined.tolist())
        self._places = [
            [(place, row) for place, row in enumerate(self.rows) if row.expansion == k]
            for k in range(len(system.expansions))
        ]

    def _search(
        self, series: GrowingSeries, highest: int, rank: int | None, patient: bool
    ) -> tuple[Echelon, list[Row]]:
        """Return the span of the equations that raise the rank, and these equations."""
        system = self.system
        count = len(system.names)
        echelon, rows = Echelon(count), list[Row]()
        for order in range(highest + 1):
            before = echelon.rank
            for k, expansion in enumerate(system.expansions):
                outputs = expansion.outputs if order == 0 else len(expansion.observables)
                for i in range(outputs):
                    system.deadline.check()
                    if echelon.add(series.gradient(k, order, i)):
                        rows.append(Row(k, order, i))
            if echelon.rank in (count, rank) or (echelon.rank == before and not patient):
                break
        return echelon, rows

    @property
    def size(self) -> int:
        """Number n of equations and of unknowns that are solved for."""
        return len(self.rows)

    def orders(self, k: int) -> list[int]:
        """Return the highest order of derivative used of each output of expansion `k`.

        It is -1 for an output that is not used.
        """
        highest = [-1] * self.system.expansions[k].outputs
        for row in self.rows:
            if row.expansion == k:
                highest[row.output] = max(highest[row.output], row.order)
        return highest

    @cached_property
    def order(self) -> int:
        """The highest order of derivative that is used."""
        return max((row.order for row in self.rows), default=0)

    # The vector of parameters -----------------------------------------------------------------

    @cached_property
    def _layout(self) -> tuple[slice, list[tuple[slice, slice]]]:
        """Positions in the vector of parameters: of held values, and of data of expansions."""
        at = self.size + len(self.held)
        places = []
        for expansion in self.system.expansions:
            e = expansion.program.equations
            known = slice(at, at + len(e.known))
            functions = slice(known.stop, known.stop + len(e.functions) * (self.order + 1))
            places.append((known, functions))
            at = functions.stop
        return slice(self.size, self.size + len(self.held)), places

    @cached_property
    def active_parameters(self) -> IntArray:
        """Positions of the known numbers and functions on which the equations depend."""
        at = []
        for expansion, (known, functions) in zip(
            self.system.expansions, self._layout[1], strict=True
        ):
            e = expansion.program.equations
            terms = (*e.rhs, *e.initial, *e.outputs[: expansion.outputs])
            used = set().union(*(e.tape.depends(term) for term in terms))
            at += [known.start + i for i, t in enumerate(e.known) if t.index in used]
            for i, t in enumerate(e.functions):
                if t.index in used:
                    first = functions.start + i * (self.order + 1)
                    at += range(first, first + self.order + 1)
        return np.array(at, dtype=np.intp)

    def pack(
        self,
        targets: ComplexArray,
        held: ComplexArray,
        points: Sequence[ExpansionPoint[np.complex128]],
    ) -> ComplexArray:
        """Return the vector of parameters: targets of the rows, held unknowns, known numbers."""
        parts = [targets, held]
        for known, functions in points:
            parts += [known, functions.reshape(-1)]
        return np.concatenate(parts).astype(complex)

    def expansion_points(self, parameters: ComplexArray) -> list[ExpansionPoint[np.complex128]]:
        """Return the numbers and functions in the vector of parameters for each expansion."""
        points = []
        for expansion, (known, functions) in zip(
            self.system.expansions, self._layout[1], strict=True
        ):
            count = len(expansion.program.equations.functions)
            series = parameters[functions].reshape(count, self.order + 1)
            points.append(ExpansionPoint(parameters[known], series))
        return points

    def generic_point(self, rng: np.random.Generator) -> tuple[ComplexArray, ComplexArray]:
        """Return a random point, shape (n,), and the parameters for which it is a solution.

        It is the best conditioned of a few random points: see :meth:`best_conditioned`.
        """
        return self.best_conditioned(
            [self.system.generic_point(rng, self.order) for _ in range(GENERIC_CANDIDATES)]
        )

    def best_conditioned(
        self,
        candidates: Sequence[tuple[ComplexArray, Sequence[ExpansionPoint[np.complex128]]]],
    ) -> tuple[ComplexArray, ComplexArray]:
        """Return the candidate, with its parameters, that is least sensitive to these.

        Paths from and to parameters at which solutions nearly meet or diverge are long.
        """
        points = np.array([values[self.solved] for values, _ in candidates])
        nothing = np.zeros(self.size, dtype=complex)
        parameters = np.array(
            [self.pack(nothing, values[self.held], known) for values, known in candidates]
        )
        with np.errstate(all="ignore"):
            outputs, jacobians, _ = self.values(points, parameters)
            parameters[:, : self.size] = outputs
            changes = solve(jacobians, outputs[:, :, None] * np.eye(self.size))
            moves = np.abs(changes) / np.abs(points)[:, :, None]
        worst = moves.sum(axis=2).max(axis=1, initial=0.0)
        chosen = int(np.where(np.isfinite(worst), worst, np.inf).argmin())
        return points[chosen], parameters[chosen]

    # Evaluation -------------------------------------------------------------------------------

    def all_unknowns(self, points: ComplexArray, parameters: ComplexArray) -> ComplexArray:
        """Return all unknowns of the system, including held ones, shape (b, unknowns).

        `points` has shape (b, n); there is one vector of parameters for all points, or one for
        each.
        """
        values = np.empty((len(points), len(self.system.names)), dtype=complex)
        values[:, self.solved] = points
        values[:, self.held] = parameters[..., self._layout[0]]
        return values

    def values(
        self,
        points: ComplexArray,
        parameters: ComplexArray,
        derivatives: bool = True,
        leading: int | None = None,
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """Return left-hand sides, and their Jacobians by solved and by held unknowns.

        The Jacobians are those of the `leading` points alone, if that is given. Without
        `derivatives` they are empty arrays.
        """
        values = self.all_unknowns(points, parameters)
        n, count = self.size, len(self.system.names)
        # Callers that need Jacobians solve linear systems with them.
        operations = n**3 if derivatives else n
        self.system.deadline.spend(PER_CALL + PER_SOLUTION * len(points) * operations)
        left = np.zeros((len(points), n), dtype=complex)
        shape = len(points[:leading]), n, count if derivatives else 0
        jacobian = np.zeros(shape, dtype=complex)
        for k, (known, functions) in enumerate(self._layout[1]):
            places = self._places[k]
            if not places:
                continue
            highest = max(row.order for _, row in places)
            e = self.system.expansions[k].program.equations
            series = parameters[:, functions].reshape(len(points), len(e.functions), self.order + 1)
            at_known = parameters[:, known]
            taylor = self.system.run(k, values, highest, at_known, series, derivatives, leading)
            at = np.array([place for place, _ in places])
            orders = np.array([row.order for _, row in places])
            outputs = np.array([row.output for _, row in places])
            left[:, at] = taylor.outputs[:, orders, outputs]
            if taylor.derivatives is not None:
                picked = taylor.derivatives[:, orders, outputs]
                jacobian[:, at[:, None], self.system.columns[k][None, :]] = picked
        if not derivatives:
            return left, jacobian, jacobian
        return left, jacobian[:, :, self.solved], jacobian[:, :, self.held]


DIFFERENCE_STEP = 1e-6
"""Step of the finite differences by known functions, relative to the change of the parameters with
t; these differences only serve for predictions."""


class ParameterHomotopy:
    """The parameter homotopy on an arc from `start` to `end`, with the gamma trick.

    The parameters, shape (paths, parameters), are a weighted mean of start and end. The weight of
    the start is ``t / (gamma - (gamma - 1) t)``, t going from 1 to 0 (A. Sommese and C. Wampler,
    The Numerical Solution of Systems of Polynomials, section 7.1): each path's `gamma`, of modulus
    1, gives a different way around the parameters at which solutions are singular.
    """

    def __init__(
        self, square: SquareSystem, start: ComplexArray, end: ComplexArray, gamma: ComplexArray
    ) -> None:
        self.square = square
        self.start = start
        self.end = end
        self.gamma = gamma
        self._knowns_change = bool(np.any((start != end)[:, square.active_parameters]))

    def evaluate(
        self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """See :meth:`odefit.structure.homotopy.tracker.Homotopy.evaluate`."""
        square, n = self.square, self.square.size
        gamma = self.gamma[paths]
        scale = gamma - (gamma - 1) * t
        at, at_by_t = self.parameters_at(paths, (t / scale)[:, None], (gamma / scale**2)[:, None])
        left, jacobian, by_held = square.values(points, at)
        left_by_t = -at_by_t[:, :n]
        if not by_t:
            return left - at[:, :n], jacobian, left_by_t
        held = slice(n, n + len(square.held))
        if len(square.held):
            left_by_t = left_by_t + np.einsum("bij,bj->bi", by_held, at_by_t[:, held])
        if self._knowns_change:
            moved = at.copy()
            moved[:, held.stop :] += DIFFERENCE_STEP * at_by_t[:, held.stop :]
            other, _, _ = square.values(points, moved, derivatives=False)
            left_by_t = left_by_t + (other - left) / DIFFERENCE_STEP
        return left - at[:, :n], jacobian, left_by_t

    def parameters_at(
        self, paths: IntArray, weight: ComplexArray, weight_by_t: ComplexArray
    ) -> tuple[ComplexArray, ComplexArray]:
        """Return the parameters where the start has `weight`, and their derivatives by t."""
        change = self.start[paths] - self.end[paths]
        return self.end[paths] + weight * change, weight_by_t * change


def distinct_values(
    square: SquareSystem, solutions: ComplexArray, parameters: ComplexArray
) -> dict[str, int]:
    """Return the number of distinct values of each unknown of the system among `solutions`."""
    counts = {}
    unknowns = square.all_unknowns(solutions, parameters)
    for name, column in zip(square.system.names, unknowns.T, strict=True):
        seen: list[complex] = []
        scale = 1e-6 * np.abs(column).max(initial=0.0)
        for value in column:
            size = max(abs(value), scale)
            if all(abs(value - s) > SAME_SOLUTION * max(size, abs(s)) for s in seen):
                seen.append(value)
        counts[name] = len(seen)
    return counts
