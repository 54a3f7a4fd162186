"""A problem discretised: variables at points, linear rows, and the same expressions at many points.

Nothing here knows who solves it. Every constraint is a linear combination of variables and of
the outputs of :class:`Block` objects, whose expressions are evaluated over any algebra::

    row = L V + L_p p + sum over blocks of W_b outputs_b(V at the block's points, p)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from odefit.discretisation.blocks import Block, Equations
from odefit.discretisation.mesh import GivenMesh, Mesh, Segment, segments
from odefit.discretisation.schemes import Scheme
from odefit.problem.algebras import NUMPY
from odefit.problem.arrays import Array, BoolArray, IntArray
from odefit.problem.condition import Condition
from odefit.problem.expressions import Expression
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField

MESH_TIME_TOLERANCE = 1e-9
"""Of a segment's length: a data time this close to a mesh point is that point."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Equality constraints, each a linear combination that is zero.

    Attributes
    ----------
    values
        Coefficients of the variables at points, shape (rows, points * variables).
    unknowns
        Coefficients of the unknowns, shape (rows, n).
    outputs
        By block, coefficients of its outputs, shape (rows, instances * outputs).
    dynamic
        Which rows are the scheme's, H of equation (2), shape (rows,); the others hold in every
        formulation.
    """

    values: csr_array
    unknowns: csr_array
    outputs: tuple[csr_array, ...]
    dynamic: BoolArray


@dataclass(frozen=True, eq=False)
class PlacedSegment:
    """Where one segment is among the points.

    Attributes
    ----------
    segment
        Its mesh, equations and inputs.
    first
        Number of its first point.
    count
        Of its points.
    """

    segment: Segment
    first: int
    count: int


class Discretisation:
    """The equality constraints and residuals of a problem on a mesh.

    Parameters
    ----------
    problem
        With its data.
    scheme
        How the differential equations become algebraic ones.
    mesh
        Where.

    Attributes
    ----------
    variables
        What there is at every point: states, algebraic variables, and constants that events
        switch.
    times, condition_of
        Time and number of the condition of every point, shape (P,).
    segments
        The segments, in the order of conditions and time.
    interpolated
        Points at data times between mesh points: the placed, the points and their times.
    lower, upper
        Bounds of the variables at points, shape (P, variables): equal where a value is known.
    blocks
        Expressions that the rows use.
    rows
        The equality constraints.
    rhs_blocks
        By the first point of a placed, the number of its block of right-hand sides, and the points
        at which that is evaluated.
    residuals
        Blocks whose first output is a weighted residual, its square part of the objective; a
        second, where there is one, is the logarithm of a standard deviation that depends on
        unknowns.
    steps
        Mesh steps in all.
    programs
        What was compiled from it, by formulation.
    """

    def __init__(self, problem: Problem, scheme: Scheme, mesh: Mesh) -> None:
        self.programs: dict[Any, Any] = {}
        self.problem = problem
        self.scheme = scheme
        self.field = VectorField.of(problem.model, problem.conditions)
        switched = {n for c in problem.conditions for _, event in c.events for n in event}
        self.switched = tuple(n for n in self.field.scalars if n in switched)
        self.equations = [
            Equations(self.field, c, problem, self.switched) for c in problem.conditions
        ]
        self.variables = (*self.field.states, *self.field.algebraic, *self.switched)
        self._lay_out(mesh)
        self._constrain()
        self.residuals = self._measure()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of, with the mesh as it has become; it is built anew elsewhere."""
        times: dict[str, Array] = {}
        for number, condition in enumerate(self.problem.conditions):
            own = [p.segment.mesh for p in self.segments if p.segment.condition == number]
            times[condition.name] = np.unique(np.concatenate(own))
        return Discretisation, (self.problem, self.scheme, GivenMesh(times))

    @property
    def points(self) -> int:
        """Number of points, P."""
        return len(self.times)

    def index(self, point: Any, variable: int) -> Any:
        """Number of a variable at a point among all."""
        return point * len(self.variables) + variable

    # Points -----------------------------------------------------------------------------------

    def _lay_out(self, mesh: Mesh) -> None:
        self.segments: list[PlacedSegment] = []
        self.measured: list[IntArray] = []  # by condition, the point of every data time
        times: list[Array] = []
        owners: list[Array] = []
        self.interpolated: list[tuple[PlacedSegment, IntArray, Array]] = []
        count = 0
        for number, condition in enumerate(self.problem.conditions):
            at = np.zeros(len(condition.times), dtype=np.intp)
            for segment in segments(number, condition, self.field.inputs, self.scheme, mesh):
                placed = PlacedSegment(segment, count, len(segment.relations.times))
                self.segments.append(placed)
                times.append(segment.relations.times)
                count += placed.count
                rows, between = self._locate(condition, placed, at)
                if len(rows):
                    extra = np.arange(count, count + len(rows))
                    at[rows] = extra
                    times.append(between)
                    count += len(rows)
                    self.interpolated.append((placed, extra, between))
            self.measured.append(at)
            owners.append(np.full(count - sum(map(len, owners)), number, dtype=np.intp))
        self.times = np.concatenate(times)
        self.condition_of = np.concatenate(owners)
        self.steps = sum(len(p.segment.mesh) - 1 for p in self.segments)

    def _locate(
        self, condition: Condition, placed: PlacedSegment, at: IntArray
    ) -> tuple[IntArray, Array]:
        """Data times within a segment: those on its mesh are noted in `at`, the others returned."""
        mesh, relations = placed.segment.mesh, placed.segment.relations
        t = condition.times
        if len(t) and t[0] == condition.t0:
            at[0] = next(
                p.first for p in self.segments if p.segment.condition == placed.segment.condition
            )
        inside = np.flatnonzero((t > mesh[0]) & (t <= mesh[-1]))
        if not len(inside):
            return inside, np.zeros(0)
        nearest = np.searchsorted(mesh, t[inside])
        left = np.abs(t[inside] - mesh[nearest - 1]) < np.abs(t[inside] - mesh[nearest])
        nearest = nearest - left
        snapped = np.abs(t[inside] - mesh[nearest]) <= MESH_TIME_TOLERANCE * (mesh[-1] - mesh[0])
        snapped &= nearest > 0
        at[inside[snapped]] = placed.first + relations.boundary[nearest[snapped]]
        return inside[~snapped], t[inside[~snapped]]

    # Constraints ------------------------------------------------------------------------------

    def _constrain(self) -> None:
        self.blocks: list[Block] = []
        self.rhs_blocks: dict[int, tuple[int, IntArray]] = {}
        self.lower = np.full((self.points, len(self.variables)), -np.inf)
        self.upper = np.full((self.points, len(self.variables)), np.inf)
        rows = _RowBuilder(self)
        previous: PlacedSegment | None = None
        for placed in self.segments:
            same = previous is not None and previous.segment.condition == placed.segment.condition
            if same:
                assert previous is not None
                self._jump(rows, previous, placed)
            else:
                self._begin(rows, placed)
            self._move(rows, placed)
            previous = placed
        for placed, points, times in self.interpolated:
            self._interpolate(rows, placed, points, times)
        self._close(rows)
        self.rows = rows.finish(self.blocks)

    def _begin(self, rows: _RowBuilder, placed: PlacedSegment) -> None:
        """Initial values: known, an unknown, or an expression in unknowns."""
        equations = self.equations[placed.segment.condition]
        condition = equations.condition
        bounds = [condition.initial[s] for s in self.field.states]
        bounds += [0.0] * len(self.field.algebraic)
        bounds += [condition.scalars[n] for n in self.switched]
        computed = []
        for k, bound in enumerate(bounds):
            if self.variables[k] in self.field.algebraic:
                continue
            column = self.index(placed.first, k)
            if isinstance(bound, float):
                self.lower[placed.first, k] = self.upper[placed.first, k] = bound
            elif isinstance(bound, Expression):
                computed.append((column, bound))
            else:
                rows.add([(column, 1.0)], [(bound, -1.0)])
        if computed:
            block = equations.initial_block([b for _, b in computed])
            self._assign(rows, block, [c for c, _ in computed])

    def _jump(self, rows: _RowBuilder, before: PlacedSegment, after: PlacedSegment) -> None:
        """What happens between two segments; without an event, nothing."""
        source = before.first + before.segment.relations.boundary[-1]
        assign = after.segment.assign
        assigned = [n for n in self.variables if n in assign]
        if assigned:
            equations = self.equations[after.segment.condition]
            block = equations.event_block(
                source, float(self.times[source]), [assign[n] for n in assigned]
            )
            targets = [self.index(after.first, self.variables.index(n)) for n in assigned]
            self._assign(rows, block, targets)
        for k, name in enumerate(self.variables):
            if name not in assign and name not in self.field.algebraic:
                rows.add([(self.index(after.first, k), 1.0), (self.index(source, k), -1.0)], [])

    def _assign(self, rows: _RowBuilder, block: Block, columns: list[int]) -> None:
        self.blocks.append(block)
        for output, column in enumerate(columns):
            rows.add([(column, 1.0)], [], [(len(self.blocks) - 1, output, -1.0)])

    def _move(self, rows: _RowBuilder, placed: PlacedSegment) -> None:
        """The scheme's equations."""
        relations = placed.segment.relations
        if not relations.states.shape[0]:
            return
        used = np.unique(relations.rhs.indices).astype(np.intp)
        self.blocks.append(self._rhs_block(placed, used))
        number = len(self.blocks) - 1
        self.rhs_blocks[placed.first] = number, used
        rows.relate(placed.first, relations.states, relations.rhs, used, number)

    def _rhs_block(self, placed: PlacedSegment, used: IntArray) -> Block:
        segment = placed.segment
        equations = self.equations[segment.condition]
        inputs = segment.inputs(segment.relations.times[used])
        return equations.rhs_block(placed.first + used, segment.relations.times[used], inputs)

    def _interpolate(
        self, rows: _RowBuilder, placed: PlacedSegment, points: IntArray, times: Array
    ) -> None:
        """Values at data times between mesh points, by the scheme's polynomial."""
        segment = placed.segment
        states, slopes = self.scheme.interpolation(segment.mesh, segment.relations, times)
        used = np.unique(slopes.indices).astype(np.intp)
        number, have = self.rhs_blocks[placed.first]
        if not np.isin(used, have).all():
            self.blocks.append(self._rhs_block(placed, used))
            number, have = len(self.blocks) - 1, used
        rows.relate(placed.first, states, slopes, have, number, minus=points, dynamic=False)

    def _close(self, rows: _RowBuilder) -> None:
        """Algebraic equations at all points."""
        if not self.field.algebraic:
            return
        inputs = np.zeros((self.points, len(self.field.inputs)))
        for placed in self.segments:
            own = slice(placed.first, placed.first + placed.count)
            inputs[own] = placed.segment.inputs(self.times[own])
        for placed, points, times in self.interpolated:
            inputs[points] = placed.segment.inputs(times)
        for number, equations in enumerate(self.equations):
            points = np.flatnonzero(self.condition_of == number)
            self.blocks.append(
                equations.algebraic_block(points, self.times[points], inputs[points])
            )
            rows.hold(len(self.blocks) - 1, len(points), len(self.field.algebraic))

    # Objective --------------------------------------------------------------------------------

    def _measure(self) -> list[Block]:
        found: list[Block] = []
        for equations, points in zip(self.equations, self.measured, strict=True):
            series = equations.condition.series
            found += [equations.residual_block(name, points) for name in series]
        return [*found, *Block.priors(self.problem)]

    # Values -----------------------------------------------------------------------------------

    def outputs(self, block: Block, values: Array, unknowns: Array) -> list[Array]:
        """A block's outputs at all its instances, each of shape (instances,)."""
        at = {}
        if block.points is not None:
            at = {n: values[block.points, k] for k, n in enumerate(self.variables)}
        data = {n: block.data[:, k] for k, n in enumerate(block.columns)}
        with np.errstate(all="ignore"):
            found = block.evaluate(at, unknowns.tolist(), data, NUMPY)
        return [np.array(np.broadcast_to(f, block.instances), dtype=float) for f in found]

    def defects(self, values: Array, unknowns: Array) -> Array:
        """The rows, zero where the discretised equations hold; shape (rows,)."""
        total = self.rows.values @ values.ravel() + self.rows.unknowns @ unknowns
        for block, weights in zip(self.blocks, self.rows.outputs, strict=True):
            outputs = np.column_stack(self.outputs(block, values, unknowns))
            total = total + weights @ outputs.ravel()
        return np.asarray(total)

    def objective(self, values: Array, unknowns: Array) -> float:
        """What is minimised: the squares, and twice the logarithms of unknown sds."""
        logs = 0.0
        for block in self.residuals:
            _, *log_sd = self.outputs(block, values, unknowns)
            logs += sum(float(s.sum()) for s in log_sd)
        return self.squares(values, unknowns) + 2 * logs

    def squares(self, values: Array, unknowns: Array) -> float:
        """Sum of squared weighted residuals."""
        found = (self.outputs(block, values, unknowns)[0] for block in self.residuals)
        return float(sum(r @ r for r in found))

    def predictions(self, values: Array, unknowns: Array) -> list[dict[str, Array]]:
        """Observables at the data times of each condition, from values at points, shape (P, v)."""
        return [
            equations.observe(values[points], unknowns.tolist())
            for equations, points in zip(self.equations, self.measured, strict=True)
        ]

    def described(self) -> str:
        """Scheme and mesh, as the scope of a bound names them."""
        return f"{self.scheme.name}, M = {self.steps}"


class _RowBuilder:
    """Collects the entries of the rows."""

    def __init__(self, discretisation: Discretisation) -> None:
        self._d = discretisation
        self._count = 0
        self._values: list[tuple[IntArray, IntArray, Array]] = []
        self._unknowns: list[tuple[int, int, float]] = []
        self._outputs: dict[int, list[tuple[IntArray, IntArray, Array]]] = {}
        self._dynamic: list[BoolArray] = []

    def add(
        self,
        values: list[tuple[int, float]],
        unknowns: list[tuple[int, float]],
        outputs: Sequence[tuple[int, int, float]] = (),
    ) -> None:
        """One row that holds in every formulation."""
        row = self._count
        columns = np.array([c for c, _ in values])
        self._values.append((np.full(len(values), row), columns, np.array([w for _, w in values])))
        self._unknowns += [(row, c, w) for c, w in unknowns]
        for block, output, weight in outputs:
            self._note(block, np.array([row]), np.array([output]), np.array([weight]))
        self._close(np.zeros(1, dtype=bool))

    def relate(
        self,
        first: int,
        states: csr_array,
        slopes: csr_array,
        used: IntArray,
        block: int,
        minus: IntArray | None = None,
        dynamic: bool = True,
    ) -> None:
        """``states @ x - slopes @ f``, for every differential variable; minus x at `minus`."""
        d = self._d
        differential = [k for k, n in enumerate(d.variables) if n not in d.field.algebraic]
        m = len(differential)
        count = states.shape[0]
        a, b = coo_array(states), coo_array(slopes)
        a_row, a_column = (c.astype(np.intp) for c in a.coords)
        b_row, b_column = (c.astype(np.intp) for c in b.coords)
        placed = np.searchsorted(used, b_column)
        n = len(d.field.states)
        for i, k in enumerate(differential):
            rows = self._count + a_row * m + i
            self._values.append((rows, d.index(first + a_column, k), a.data))
            if minus is not None:
                rows = self._count + np.arange(count) * m + i
                self._values.append((rows, d.index(minus, k), np.full(count, -1.0)))
            if i < n and len(placed):
                sign = -1.0 if minus is None else 1.0
                rows = self._count + b_row * m + i
                self._note(block, rows, placed * n + i, sign * b.data)
        kind = np.zeros((count, m), dtype=bool)
        kind[:, :n] = dynamic
        self._close(kind.ravel())

    def hold(self, block: int, instances: int, outputs: int) -> None:
        """All outputs of a block are zero."""
        size = instances * outputs
        rows = self._count + np.arange(size)
        self._note(block, rows, np.arange(size), np.ones(size))
        self._close(np.zeros(size, dtype=bool))

    def _note(self, block: int, rows: IntArray, columns: IntArray, weights: Array) -> None:
        self._outputs.setdefault(block, []).append((rows, columns, weights))

    def _close(self, dynamic: BoolArray) -> None:
        self._dynamic.append(dynamic)
        self._count += len(dynamic)

    def finish(self, blocks: Sequence[Block]) -> Rows:
        d = self._d
        u = self._unknowns
        unknowns = [tuple(np.array(part) for part in zip(*u, strict=True))] if u else []
        return Rows(
            _matrix(self._values, (self._count, d.points * len(d.variables))),
            _matrix(unknowns, (self._count, len(d.problem.unknowns))),
            tuple(
                _matrix(self._outputs.get(k, []), (self._count, b.instances * b.outputs))
                for k, b in enumerate(blocks)
            ),
            np.concatenate(self._dynamic) if self._dynamic else np.zeros(0, dtype=bool),
        )


def _matrix(parts: Sequence[Any], shape: tuple[int, int]) -> csr_array:
    if not parts:
        return csr_array(shape)
    rows, columns, data = (np.concatenate(p) for p in zip(*parts, strict=True))
    return csr_array(coo_array((data, (rows, columns)), shape=shape))
