"""The discretised problem as a nonlinear program in CasADi, with exact sparse derivatives.

Only the expressions at one point are differentiated symbolically. Their values at all points come
from one mapped call, and constant sparse matrices place these in the Jacobian and the Hessian of
the Lagrangian. Building and evaluating take time linear in the number of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

from odefit.common.arrays import Array, IntArray
from odefit.discretisation.assembly import Assembly, assemble
from odefit.discretisation.blocks import Block
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Formulation
from odefit.discretisation.instance import Scales
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, symbols_of


@dataclass(frozen=True, eq=False)
class NonlinearProgram:
    """A nonlinear program: min f(w) subject to lower_g <= g(w) <= upper_g, lower <= w <= upper.

    The variables w are those at points, the unknowns, and slack variables. `scale` holds natural
    values of w over scaled ones, shape (size,); all other values are scaled, except the `assembly`.
    The functions are CasADi's, of w and, for the upper triangle of the Hessian of the Lagrangian,
    of the multipliers.
    """

    assembly: Assembly
    scale: Array
    lower: Array
    upper: Array
    lower_g: Array
    upper_g: Array
    objective: Any
    gradient: Any
    equations: Any
    jacobian: Any
    hessian: Any

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.assembly.size

    def pack(self, values: Array, unknowns: Array) -> Array:
        """Return w from values at points, shape (P, v), and unknowns, with the slacks needed."""
        return self.assembly.pack(values, unknowns) / self.scale

    def unpack(self, w: Array) -> tuple[Array, Array]:
        """Return values at points and unknowns from `w`."""
        return self.assembly.unpack(w * self.scale)


def nonlinear_program(
    discretisation: Discretisation, formulation: Formulation, scaled: bool = True
) -> NonlinearProgram:
    """Return the program of `discretisation` under `formulation`, built once and cached with it."""
    key = formulation, scaled
    if key not in discretisation.programs:
        scales = (Scales.of if scaled else Scales.none)(discretisation)
        discretisation.programs[key] = _built(discretisation, formulation, scales)
    program: NonlinearProgram = discretisation.programs[key]
    return program


def _built(d: Discretisation, formulation: Formulation, scales: Scales) -> NonlinearProgram:
    parts = assemble(d, formulation)
    constraints, size = parts.constraints, parts.size
    hard = size - constraints.slacks
    rows = scales.rows[constraints.rows]
    slack_scale = np.ones(constraints.slacks)
    slacks = constraints.slack >= 0
    slack_scale[constraints.slack[slacks]] = rows[slacks]
    scale = np.concatenate([scales.values.ravel(), scales.unknowns, slack_scale])
    scaled = ca.MX.sym("w", size)
    w = ca.DM(scale) * scaled
    lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", len(constraints.rows))

    linear, weights = _by_rows(parts.linear, rows), [_by_rows(m, rows) for m in parts.weights]
    blocks = [_Compiled(b, d) for b in d.blocks]
    g = _matrix(linear) @ w
    jacobian = _Entries(np.ones(len(constraints.rows)), scale)
    hessian = _Entries(scale, scale)
    jacobian.constant(linear)
    for block, weight in zip(blocks, weights, strict=True):
        g += _matrix(weight) @ block.outputs(w)
        jacobian.add(block.jacobian(w), *block.jacobian_entries(weight))
        hessian.add(block.hessian(w, _matrix(csr_array(weight.T)) @ lam_g), *block.hessian_entries)
    unit = 1.0 / scales.objective
    f = constraints.penalty * ca.sum(w[hard:]) if constraints.slacks else ca.MX(0)
    gradient = _Entries(scale, np.array([unit]))
    if constraints.slacks:
        places = np.arange(hard, size)
        penalties = np.full(len(places), constraints.penalty)
        gradient.constant(csr_array((penalties, (places, 0 * places)), (size, 1)))
    for residual in d.residuals:
        block = _Compiled(residual, d, residuals=True)
        f += ca.sum(block.outputs(w))
        ones = csr_array(np.ones((1, residual.instances)))
        _, columns, source, factor = block.jacobian_entries(ones)
        gradient.add(block.jacobian(w), columns, 0 * columns, source, factor)
        multipliers = ca.repmat(unit * lam_f, residual.instances)
        hessian.add(block.hessian(w, multipliers), *block.hessian_entries)
    p = ca.MX.sym("p", 0)
    grad = ca.densify(gradient.matrix())
    return NonlinearProgram(
        parts,
        scale,
        parts.lower / scale,
        parts.upper / scale,
        constraints.lower / rows,
        constraints.upper / rows,
        ca.Function("f", [scaled, p], [unit * f]),
        ca.Function("grad_f", [scaled, p], [unit * f, grad], ["x", "p"], ["f", "grad_f_x"]),
        ca.Function("g", [scaled], [g]),
        ca.Function("jac_g", [scaled, p], [g, jacobian.matrix()], ["x", "p"], ["g", "jac_g_x"]),
        ca.Function(
            "hess_lag",
            [scaled, p, lam_f, lam_g],
            [hessian.matrix()],
            ["x", "p", "lam_f", "lam_g"],
            ["hess_gamma_x_x"],
        ),
    )


class _Compiled:
    """The values and derivatives of a block at all its points, as functions of w.

    The only output of `residuals` is their contribution to the objective.
    """

    def __init__(self, block: Block, d: Discretisation, residuals: bool = False) -> None:
        self._block = block
        v = ca.SX.sym("v", len(block.variables))
        q = ca.SX.sym("q", len(block.unknowns))
        data = ca.SX.sym("d", len(block.columns))
        of_unknowns = symbols_of(q)
        unknowns: list[Any] = [None] * len(d.problem.unknowns)
        for k, index in enumerate(block.unknowns):
            unknowns[index] = of_unknowns[k]
        at = dict(zip(block.variables, symbols_of(v), strict=True))
        known = dict(zip(block.columns, symbols_of(data), strict=True))
        out = ca.vertcat(*(o.sx for o in block.evaluate(at, unknowns, known, CasadiAlgebra())))
        if residuals:
            out = out[0] ** 2 + (2 * out[1] if out.numel() > 1 else 0)
        local = ca.vertcat(v, q)
        multipliers = ca.SX.sym("lam", out.numel())
        first = ca.jacobian(out, local)
        second = ca.triu(ca.hessian(ca.dot(multipliers, out), local)[0])
        self._first, self._second = first.sparsity(), second.sparsity()
        count = block.instances
        self._count = count
        arguments = [v, q, data]
        self._functions = {
            name: _mapped(name, args, result, count)
            for name, args, result in (
                ("outputs", arguments, out),
                ("first", arguments, _column(first.nonzeros())),
                ("second", [*arguments, multipliers], _column(second.nonzeros())),
            )
        }
        self._outputs = out.numel()
        nv = len(block.variables)
        points = np.zeros(count, dtype=np.intp) if block.points is None else block.points
        first_variable = d.index(points, 0)
        offset = d.points * len(d.variables)
        # Global number of each local variable at each instance.
        self._columns = np.column_stack(
            [
                first_variable[:, None] + np.arange(nv)[None, :],
                np.broadcast_to(offset + block.unknowns, (count, len(block.unknowns))),
            ]
        ).astype(np.intp)
        self._data = ca.DM(block.data.T) if block.data.size else ca.DM(block.data.shape[1], count)
        self._unknowns = [int(offset + k) for k in block.unknowns]

    def _arguments(self, w: Any) -> list[Any]:
        nv = len(self._block.variables)
        gather = self._columns[:, :nv].ravel()
        v = ca.reshape(w[_index(gather)], nv, self._count) if nv else ca.MX(0, self._count)
        return [v, w[self._unknowns], self._data]

    def outputs(self, w: Any) -> Any:
        """Return the outputs, instance by instance, as a column."""
        return ca.vec(self._functions["outputs"](*self._arguments(w)))

    def jacobian(self, w: Any) -> Any:
        """Return the nonzeros of the Jacobians, instance by instance."""
        return ca.vec(self._functions["first"](*self._arguments(w)))

    def hessian(self, w: Any, multipliers: Any) -> Any:
        """Return the nonzeros of the Hessians' upper triangles; `multipliers` weigh the outputs."""
        shaped = ca.reshape(multipliers, self._outputs, self._count)
        return ca.vec(self._functions["second"](*self._arguments(w), shaped))

    def jacobian_entries(self, weights: csr_array) -> tuple[IntArray, IntArray, IntArray, Array]:
        """Return row, column, source and factor of every entry of ``weights @ jacobian``."""
        rows, columns = (np.array(part, dtype=np.intp) for part in self._first.get_triplet())
        w = coo_array(weights)
        instance, output = np.divmod(w.coords[1], self._outputs)
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=self._outputs)
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        each = counts[output]
        entry = np.repeat(np.arange(len(w.data)), each)
        rank = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        local = order[starts[output[entry]] + rank]
        return (
            w.coords[0][entry].astype(np.intp),
            self._columns[instance[entry], columns[local]],
            instance[entry] * len(rows) + local,
            w.data[entry],
        )

    @property
    def hessian_entries(self) -> tuple[IntArray, IntArray, IntArray, Array]:
        """Return row, column, source and factor of every entry of the Hessian."""
        rows, columns = (np.array(part, dtype=np.intp) for part in self._second.get_triplet())
        source = np.arange(self._count * len(rows))
        return (
            self._columns[:, rows].ravel(),
            self._columns[:, columns].ravel(),
            source,
            np.ones(len(source)),
        )


def _column(entries: Any) -> Any:
    return ca.vertcat(*entries)


def _mapped(name: str, arguments: list[Any], result: Any, count: int) -> Any:
    """Return a function of one instance mapped over all; the unknowns are the same in each."""
    one = ca.Function(name, arguments, [result])
    return one.map(name, "serial", count, [1], [])


def _by_rows(matrix: csr_array, sizes: Array) -> csr_array:
    """Return `matrix` with each row divided by its size."""
    return csr_array(matrix.multiply(1.0 / sizes[:, None]))


class _Entries:
    """A sparse matrix, scaled by rows and columns, whose nonzeros are sums of symbolic values."""

    def __init__(self, rows: Array, columns: Array) -> None:
        self._rows, self._columns = rows, columns
        self._shape = len(rows), len(columns)
        self._places: list[IntArray] = []
        self._sources: list[IntArray] = []
        self._factors: list[Array] = []
        self._values: list[Any] = []
        self._length = 0
        self._constant: tuple[IntArray, Array] | None = None

    def constant(self, matrix: csr_array) -> None:
        entries = coo_array(matrix)
        row, column = entries.coords
        scale = self._rows[row] * self._columns[column]
        self._constant = column.astype(np.intp) * self._shape[0] + row, entries.data * scale

    def add(
        self, values: Any, rows: IntArray, columns: IntArray, source: IntArray, factor: Array
    ) -> None:
        if not values.numel():
            return
        self._places.append(columns.astype(np.intp) * self._shape[0] + rows)
        self._sources.append(source + self._length)
        self._factors.append(factor * self._rows[rows] * self._columns[columns])
        self._values.append(values)
        self._length += values.numel()

    def matrix(self) -> Any:
        keys = [*self._places] + ([self._constant[0]] if self._constant is not None else [])
        if not keys:
            return ca.MX(*self._shape)
        keys_found, position = np.unique(np.concatenate(keys), return_inverse=True)
        column, row = np.divmod(keys_found, self._shape[0])
        starts = np.searchsorted(column, np.arange(self._shape[1] + 1))
        sparsity = ca.Sparsity(*self._shape, starts.tolist(), row.tolist())
        total: Any = ca.MX(len(keys_found), 1)
        split = sum(len(p) for p in self._places)
        if self._values:
            gather = csc_array(
                (
                    np.concatenate(self._factors),
                    (position[:split], np.concatenate(self._sources)),
                ),
                (len(keys_found), self._length),
            )
            total = _matrix(gather) @ ca.vertcat(*self._values)
        if self._constant is not None:
            fixed = np.bincount(
                position[split:], weights=self._constant[1], minlength=len(keys_found)
            )
            total = ca.densify(total) + ca.DM(fixed)
        return ca.MX(sparsity, ca.densify(total))


def _matrix(matrix: csr_array | csc_array) -> Any:
    """Return a sparse matrix as a CasADi constant."""
    m = csc_array(matrix)
    m.sum_duplicates()
    sparsity = ca.Sparsity(*m.shape, m.indptr.tolist(), m.indices.tolist())
    return ca.DM(sparsity, m.data)


def _index(numbers: IntArray) -> Any:
    """Return consecutive numbers as a slice, which CasADi copies faster."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers.tolist()
