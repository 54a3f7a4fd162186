"""A problem discretised: variables at points, and equations between them.

The module is independent of the solver. Every equation is a row that is linear in the variables V
at points, in the unknowns p and in the outputs of blocks. The expressions of a :class:`Block` are
evaluated over any algebra::

    row = L V + L_p p + sum over blocks of W_b outputs_b(V at the block's points, p)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array, kron

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.discretisation.blocks import Block, Equations
from odefit.discretisation.mesh import GivenMesh, Mesh, Segment, segments
from odefit.discretisation.schemes import Scheme
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.problem.vector_field import VectorField

MESH_TIME_TOLERANCE = 1e-9
"""Distance of a data time from a mesh point, as a fraction of the segment's length, up to which
they are the same."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Equality constraints, each a linear combination that has to be zero.

    Coefficients of the variables at points have shape (rows, points * variables), those of the
    unknowns (rows, n), and those of each block's outputs (rows, instances * outputs). The `dynamic`
    rows are those of the scheme, H of equation (2), shape (rows,); the others hold exactly in every
    formulation.
    """

    values: csr_array
    unknowns: csr_array
    outputs: tuple[csr_array, ...]
    dynamic: BoolArray


@dataclass(frozen=True, eq=False)
class PlacedSegment:
    """A segment with the number of its first point, and the count of its points."""

    segment: Segment
    first: int
    count: int


class Discretisation:
    """The equality constraints and residuals of a problem on a mesh, by a scheme.

    At each of P points, with `times` and numbers `condition_of` of their conditions, shape (P,), it
    has the `variables`: states, algebraic variables, and constants that events switch. Their bounds
    `lower` and `upper`, shape (P, variables), are equal where a value is known. `segments` are in
    the order of conditions and time. `measured` has for each condition the points of its data
    times, `interpolated` those between mesh points: their segment, numbers and times.

    The equality constraints `rows` use expressions of `blocks`. `rhs_blocks` holds, by the first
    point of a segment, the number of its block of right-hand sides, and the points at which that is
    evaluated, counted from the first. Blocks of `residuals` have a weighted residual as first
    output, whose square is a part of the objective. A second output, if there is one, is the
    logarithm of a standard deviation that depends on unknowns. `steps` counts mesh steps, and
    `programs` holds the compiled nonlinear programs, by formulation.
    """

    def __init__(self, problem: Problem, scheme: Scheme, mesh: Mesh) -> None:
        refuse_integrated_features(problem, "a discretisation")
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
        """Pickle the parts, with the present mesh and bounds; unpickling rebuilds the object."""
        times: dict[str, Array] = {}
        for number, condition in enumerate(self.problem.conditions):
            meshes = [p.segment.mesh for p in self.segments if p.segment.condition == number]
            times[condition.name] = np.unique(np.concatenate(meshes))
        made_of = self.problem, self.scheme, GivenMesh(times)
        return Discretisation, made_of, {"lower": self.lower, "upper": self.upper}

    @property
    def points(self) -> int:
        """Number of points, P."""
        return len(self.times)

    def index(self, point: Any, variable: int) -> Any:
        """Return the number of a variable at a point among the variables at all points."""
        return point * len(self.variables) + variable

    def _lay_out(self, mesh: Mesh) -> None:
        self.segments: list[PlacedSegment] = []
        self.measured: list[IntArray] = []
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
        """Store the points of data times on a segment's mesh in `at`; return the other times."""
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
            self._add_scheme(rows, placed)
            previous = placed
        for placed, points, times in self.interpolated:
            self._interpolate(rows, placed, points, times)
        self._add_algebraic(rows)
        self.rows = rows.finish(self.blocks)

    def _begin(self, rows: _RowBuilder, placed: PlacedSegment) -> None:
        """Add initial values: numbers, unknowns, or expressions in unknowns."""
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
        """Add the event between two segments; without one, values are continuous."""
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

    def _add_scheme(self, rows: _RowBuilder, placed: PlacedSegment) -> None:
        """Add the scheme's equations."""
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
        """Add values at data times between mesh points, by the scheme's polynomial."""
        segment = placed.segment
        states, rhs = self.scheme.interpolation(segment.mesh, segment.relations, times)
        used = np.unique(rhs.indices).astype(np.intp)
        number, have = self.rhs_blocks[placed.first]
        if not np.isin(used, have).all():
            self.blocks.append(self._rhs_block(placed, used))
            number, have = len(self.blocks) - 1, used
        rows.relate(placed.first, states, -rhs, have, number, minus=points, dynamic=False)

    def _add_algebraic(self, rows: _RowBuilder) -> None:
        """Add the algebraic equations at all points."""
        if not self.field.algebraic:
            return
        inputs = np.zeros((self.points, len(self.field.inputs)))
        for placed in self.segments:
            in_segment = slice(placed.first, placed.first + placed.count)
            inputs[in_segment] = placed.segment.inputs(self.times[in_segment])
        for placed, points, times in self.interpolated:
            inputs[points] = placed.segment.inputs(times)
        for number, equations in enumerate(self.equations):
            points = np.flatnonzero(self.condition_of == number)
            self.blocks.append(
                equations.algebraic_block(points, self.times[points], inputs[points])
            )
            rows.hold(len(self.blocks) - 1, len(points) * len(self.field.algebraic))

    def _measure(self) -> list[Block]:
        blocks: list[Block] = []
        for equations, points in zip(self.equations, self.measured, strict=True):
            series = equations.condition.series
            blocks += [equations.residual_block(name, points) for name in series]
        return [*blocks, *Block.priors(self.problem)]

    def outputs(self, block: Block, values: Array, unknowns: Array) -> list[Array]:
        """Return the outputs of a block at all its instances, each of shape (instances,)."""
        at = {}
        if block.points is not None:
            at = {n: values[block.points, k] for k, n in enumerate(self.variables)}
        data = {n: block.data[:, k] for k, n in enumerate(block.columns)}
        with np.errstate(all="ignore"):
            outputs = block.evaluate(at, unknowns.tolist(), data, NUMPY)
        return [np.array(np.broadcast_to(f, block.instances), dtype=float) for f in outputs]

    def defects(self, values: Array, unknowns: Array) -> Array:
        """Return the rows, zero where the discretised equations hold, shape (rows,)."""
        total = self.rows.values @ values.ravel() + self.rows.unknowns @ unknowns
        for block, weights in zip(self.blocks, self.rows.outputs, strict=True):
            outputs = np.column_stack(self.outputs(block, values, unknowns))
            total = total + weights @ outputs.ravel()
        return np.asarray(total)

    def objective(self, values: Array, unknowns: Array) -> float:
        """Return twice the cost: the sum of squares, and 2 log of unknown standard deviations."""
        logs = 0.0
        for block in self.residuals:
            _, *log_sd = self.outputs(block, values, unknowns)
            logs += sum(float(s.sum()) for s in log_sd)
        return self.squares(values, unknowns) + 2 * logs

    def squares(self, values: Array, unknowns: Array) -> float:
        """Return the sum of squared weighted residuals."""
        residuals = (self.outputs(block, values, unknowns)[0] for block in self.residuals)
        return float(sum(r @ r for r in residuals))

    def predictions(self, values: Array, unknowns: Array) -> list[dict[str, Array]]:
        """Return observables at the data times of each condition from values at points, (P, v)."""
        return [
            equations.observe(values[points], unknowns.tolist())
            for equations, points in zip(self.equations, self.measured, strict=True)
        ]

    def described(self) -> str:
        """Return scheme and mesh in words, as the scope of a bound names them."""
        return f"{self.scheme.name}, M = {self.steps}"


Entries = tuple[IntArray, IntArray, Array]
"""Rows, columns and values of a sparse matrix."""


class _RowBuilder:
    """A collection of rows that grows by groups."""

    def __init__(self, discretisation: Discretisation) -> None:
        d = self._d = discretisation
        self._count = 0
        self._values: list[Entries] = []
        self._unknowns: list[Entries] = []
        self._outputs: dict[int, list[Entries]] = {}
        self._dynamic: list[BoolArray] = []
        differential = np.array([n not in d.field.algebraic for n in d.variables])
        self._differential = eye_array(len(d.variables), format="csr")[differential]
        self._states = eye_array(self._differential.shape[0], len(d.field.states), format="csr")

    def add(
        self,
        values: Sequence[tuple[int, float]],
        unknowns: Sequence[tuple[int, float]] = (),
        outputs: Sequence[tuple[int, int, float]] = (),
    ) -> None:
        """Add one row that holds in every formulation, from numbers and coefficients.

        Outputs are triples of a block, one of its outputs, and its coefficient.
        """
        for triplets, pairs in ((self._values, values), (self._unknowns, unknowns)):
            triplets += [(np.array([self._count]), np.array([c]), np.array([w])) for c, w in pairs]
        for block, output, weight in outputs:
            entries = np.array([self._count]), np.array([output]), np.array([weight])
            self._outputs.setdefault(block, []).append(entries)
        self._close(np.zeros(1, dtype=bool))

    def relate(
        self,
        first: int,
        states: csr_array,
        rhs: csr_array,
        used: IntArray,
        block: int,
        minus: IntArray | None = None,
        dynamic: bool = True,
    ) -> None:
        """Add ``states @ x - rhs @ f`` for every differential variable, minus x at `minus`.

        The first column of `states` and `rhs` is the point `first`. The `block` of right-hand sides
        is evaluated at the points `used`, counted from there.
        """
        count, d = states.shape[0], self._d
        entries = coo_array(states)
        rows, points, weights = entries.coords[0], first + entries.coords[1], entries.data
        if minus is not None:
            rows, points = np.append(rows, np.arange(count)), np.append(points, minus)
            weights = np.append(weights, np.full(count, -1.0))
        at_points = coo_array((weights, (rows, points)), (count, d.points))
        self._values.append(self._shifted(kron(at_points, self._differential, format="coo")))
        outputs = self._shifted(kron(-rhs[:, used], self._states, format="coo"))
        self._outputs.setdefault(block, []).append(outputs)
        is_state = np.arange(self._differential.shape[0]) < len(d.field.states)
        self._close(np.tile(is_state & dynamic, count))

    def hold(self, block: int, size: int) -> None:
        """Add the condition that all outputs of a block, `size` of them, are zero."""
        every = np.arange(size)
        outputs = self._count + every, every, np.ones(size)
        self._outputs.setdefault(block, []).append(outputs)
        self._close(np.zeros(size, dtype=bool))

    def _shifted(self, matrix: coo_array) -> Entries:
        """Return the entries of a matrix whose rows follow those so far."""
        rows, columns = (c.astype(np.intp) for c in matrix.coords)
        return self._count + rows, columns, matrix.data

    def _close(self, dynamic: BoolArray) -> None:
        self._dynamic.append(dynamic)
        self._count += len(dynamic)

    def finish(self, blocks: Sequence[Block]) -> Rows:
        d = self._d
        return Rows(
            _matrix(self._values, (self._count, d.points * len(d.variables))),
            _matrix(self._unknowns, (self._count, len(d.problem.unknowns))),
            tuple(
                _matrix(self._outputs.get(k, []), (self._count, b.instances * b.outputs))
                for k, b in enumerate(blocks)
            ),
            np.concatenate(self._dynamic) if self._dynamic else np.zeros(0, dtype=bool),
        )


def _matrix(parts: Sequence[Entries], shape: tuple[int, int]) -> csr_array:
    if not parts:
        return csr_array(shape)
    rows, columns, data = (np.concatenate(p) for p in zip(*parts, strict=True))
    return csr_array(coo_array((data, (rows, columns)), shape=shape))
