"""Taylor coefficients of a rational ODE's outputs, with their derivatives by the unknowns.

The tape is run order by order: each operation on power series needs only lower orders of the series
that depend on its result. Sensitivities obey a linear ODE whose coefficients are known series, so
that they follow from products of small matrices. All operations treat a batch of points at once,
over complex numbers or modulo a prime.

The arithmetic modulo a prime is that of A. Sedoglavic, A probabilistic algorithm to test local
algebraic observability in polynomial time, J. Symbolic Computation 33, 2002.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import IntArray
from odefit.structure.series.deadline import (
    NEVER,
    PER_CALL,
    PER_ENTRY,
    PER_TERM,
    Deadline,
    UnfinishedError,
)
from odefit.structure.series.number_fields import MatrixSeries, Numbers, Scalars
from odefit.structure.series.tape import Tape, Term, needed


@dataclass(frozen=True, eq=False)
class SparseJacobian:
    """A sparse matrix of partial derivatives; `terms` are the nonzero ones, row by row."""

    shape: tuple[int, int]
    rows: IntArray
    columns: IntArray
    terms: tuple[Term, ...]

    @classmethod
    def of(
        cls,
        tape: Tape,
        terms: Sequence[Term],
        variables: Sequence[Term],
        deadline: Deadline = NEVER,
    ) -> SparseJacobian:
        """Return the derivatives of `terms` by `variables`, which are recorded on the tape."""
        entries = []
        places = {variable.index: k for k, variable in enumerate(variables)}
        for i, term in enumerate(terms):
            deadline.check()
            before = tape.differentiated
            touched = sorted(places[v] for v in tape.depends(term) if v in places)
            gradient = tape.gradient(term, [variables[k] for k in touched])
            entries += [(i, k, part) for k, part in zip(touched, gradient, strict=True)]
            work = PER_ENTRY * (tape.differentiated - before)
            deadline.spend(work + PER_TERM * (1 + len(touched)))
        rows = np.array([f[0] for f in entries], dtype=np.intp)
        columns = np.array([f[1] for f in entries], dtype=np.intp)
        return cls((len(terms), len(variables)), rows, columns, tuple(f[2] for f in entries))

    def series(self, v: npt.NDArray[Scalars], slot: Mapping[int, int]) -> MatrixSeries[Scalars]:
        """Return the matrix as Taylor series, from `v`, shape (orders, slots, batch), by `slot`."""
        slots = np.array([slot[t.index] for t in self.terms], dtype=np.intp)
        return MatrixSeries(self.shape, self.rows, self.columns, v[:, slots])

    def dense(self, v: npt.NDArray[Scalars], slot: Mapping[int, int]) -> npt.NDArray[Scalars]:
        """Return the matrix as Taylor series, shape (batch, orders, rows, columns)."""
        return self.series(v, slot).dense


PER_VALUE = 3.0
"""Number of operations equivalent to all that is done to one sensitivity, zero or not."""

MAX_BYTES = 2**31
"""Limit of memory in bytes for the sensitivities of one expansion."""


@dataclass(frozen=True, eq=False)
class RationalODE:
    """An ODE with rational right-hand sides and outputs, recorded on a tape.

    Derivatives are by the n `unknowns`; `initial` has expressions in these and `known` numbers;
    `functions` are known functions of time, given as Taylor series at run time.
    """

    tape: Tape
    unknowns: tuple[Term, ...]
    states: tuple[Term, ...]
    rhs: tuple[Term, ...]
    initial: tuple[Term, ...]
    outputs: tuple[Term, ...]
    known: tuple[Term, ...] = ()
    functions: tuple[Term, ...] = ()


@dataclass(frozen=True, eq=False)
class _Operations:
    """Operations of one kind, executed together, with results in slots `first` to `last - 1`.

    The kind is ``"+"``, ``"-"``, ``"*"`` or ``"/"``; ``"scaled"`` and ``"divided"`` if the left
    factor or the divisor is constant in time.
    """

    kind: str
    first: int
    last: int
    left: IntArray
    right: IntArray


class SeriesProgram:
    """A rational ODE whose Taylor coefficients can be computed.

    Every required entry of the tape has a slot, in an order that groups operations of one kind.
    Raises UnfinishedError, in :meth:`run` as well, at the deadline or if the memory would not
    suffice.
    """

    def __init__(self, equations: RationalODE, deadline: Deadline = NEVER) -> None:
        self.equations = equations
        self.deadline = deadline
        self._prepared = False

    def prepare(self) -> None:
        """Record derivatives, and arrange all operations; the first call of :meth:`run` does so."""
        if self._prepared:
            return
        e, deadline = self.equations, self.deadline
        tape = e.tape
        self._jacobian = SparseJacobian.of(tape, e.rhs, e.states, deadline)
        self._by_unknowns = SparseJacobian.of(tape, e.rhs, e.unknowns, deadline)
        self._output_jacobian = SparseJacobian.of(tape, e.outputs, e.states, deadline)
        self._output_by_unknowns = SparseJacobian.of(tape, e.outputs, e.unknowns, deadline)
        self._initial_by_unknowns = SparseJacobian.of(tape, e.initial, e.unknowns, deadline)
        parts = (
            self._jacobian,
            self._by_unknowns,
            self._output_jacobian,
            self._output_by_unknowns,
            self._initial_by_unknowns,
        )
        terms = [*e.rhs, *e.outputs, *e.initial, *(t for part in parts for t in part.terms)]
        variables = [*e.unknowns, *e.known, *e.functions, *e.states]
        self._arrange(tape, needed(tape, [*terms, *variables]))
        self._slots = {
            name: self._slot_of(group)
            for name, group in {
                "unknowns": e.unknowns,
                "known": e.known,
                "functions": e.functions,
                "states": e.states,
                "rhs": e.rhs,
                "initial": e.initial,
                "outputs": e.outputs,
            }.items()
        }
        self._prepared = True

    def _arrange(self, tape: Tape, entries: Sequence[int]) -> None:
        """Give slots to all entries, and group the operations that are done together."""
        moving = {t.index for t in (*self.equations.states, *self.equations.functions)}
        level: dict[int, int] = {}
        kind: dict[int, str] = {}
        for i in entries:
            operation, a, b = tape.entries[i]
            if operation in ("number", "variable"):
                level[i], kind[i] = 0, operation
                continue
            level[i] = 1 + max(level[a], level[b])
            still = [k not in moving for k in (a, b)]
            if not all(still):
                moving.add(i)
            if operation == "*" and any(still) and not all(still):
                kind[i] = "scaled"  # left operand constant in time, see below
            elif operation == "/" and still[1] and not still[0]:
                kind[i] = "divided"  # divisor constant in time
            else:
                kind[i] = operation

        def group_of(i: int) -> tuple[bool, int, str]:
            return i in moving, level[i], kind[i]

        # Constants in time come first: later orders do not change them.
        order = sorted(entries, key=lambda i: (*group_of(i), i))
        slot = {i: k for k, i in enumerate(order)}
        self._slot = slot
        self._size = len(order)
        self._numbers = [(slot[i], tape.numbers[i]) for i in entries if kind[i] == "number"]
        self._constant: list[_Operations] = []
        self._changing: list[_Operations] = []
        start = 0
        while start < len(order):
            first = order[start]
            key = group_of(first)
            end = start
            while end < len(order) and key == group_of(order[end]):
                end += 1
            if key[2] not in ("number", "variable"):
                pairs = [tape.entries[i][1:] for i in order[start:end]]
                if key[2] == "scaled":
                    pairs = [(b, a) if a in moving else (a, b) for a, b in pairs]
                left, right = (np.array([slot[p[k]] for p in pairs], dtype=np.intp) for k in (0, 1))
                group = _Operations(key[2], start, end, left, right)
                (self._changing if key[0] else self._constant).append(group)
            start = end

    def _slot_of(self, terms: Sequence[Term]) -> IntArray:
        return np.array([self._slot[t.index] for t in terms], dtype=np.intp)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of outputs, states and unknowns."""
        e = self.equations
        return len(e.outputs), len(e.states), len(e.unknowns)

    def run(
        self,
        numbers: Numbers[Scalars],
        unknowns: npt.NDArray[Scalars],
        order: int,
        known: npt.NDArray[Scalars] | None = None,
        functions: npt.NDArray[Scalars] | None = None,
        derivatives: bool = True,
        leading: int | None = None,
    ) -> TaylorCoefficients[Scalars]:
        """Return the Taylor coefficients of all outputs, up to `order`.

        `derivatives` are those of the `leading` ones of the batch alone, if that is given.
        `numbers` is the field, :data:`COMPLEX` or :data:`MODULAR`. Shapes: `unknowns` (batch, n),
        `known` (batch, known), `functions` (batch, functions, order + 1).
        """
        self.prepare()
        batch = len(unknowns)
        v = np.zeros((order + 1, self._size, batch), dtype=numbers.dtype)
        for slot, value in self._numbers:
            v[0, slot] = numbers.exact(value)
        v[0, self._slots["unknowns"]] = unknowns.T
        if known is not None and known.size:
            v[0, self._slots["known"]] = known.T
        if functions is not None and functions.size:
            series = functions[:, :, : order + 1]
            v[:, self._slots["functions"]] = series.transpose(2, 1, 0)
        for group in self._constant:
            _step(numbers, v, group, 0)
        states, rhs = self._slots["states"], self._slots["rhs"]
        v[0, states] = v[0, self._slots["initial"]]
        inverse: dict[int, Any] = {}
        for j in range(order + 1):
            self.deadline.check()
            self.deadline.spend(PER_CALL * len(self._changing) + batch * (j + 1) * self._size)
            for k, group in enumerate(self._changing):
                _step(numbers, v, group, j, inverse, k)
            if j < order:
                factor = numbers.exact(Fraction(1, j + 1))
                v[j + 1, states] = numbers.reduced(v[j, rhs] * factor)
        outputs = v[:, self._slots["outputs"]].transpose(2, 0, 1)
        if not derivatives:
            return TaylorCoefficients(outputs, None, v[:, states].transpose(2, 0, 1))
        jacobian = self._sensitivities(numbers, v[:, :, :leading], order)
        return TaylorCoefficients(outputs, jacobian, v[:, states].transpose(2, 0, 1))

    def _sensitivities(
        self, numbers: Numbers[Scalars], v: npt.NDArray[Scalars], order: int
    ) -> npt.NDArray[Scalars]:
        """Return the derivatives of the outputs' coefficients, shape (batch, order + 1, q, n)."""
        q, m, n = self.shape
        batch = v.shape[2]
        self._check_memory(v.dtype, batch * (order + 1))
        self.deadline.spend(PER_VALUE * batch * (order + 1) * (2 * m + q) * n)
        self.deadline.check()  # before memory is taken
        jacobian = self._jacobian.series(v, self._slot)
        by_states = self._output_jacobian.series(v, self._slot)
        by_unknowns = self._by_unknowns.dense(v, self._slot)
        result = self._output_by_unknowns.dense(v, self._slot)
        entries = len(self._jacobian.terms) + len(self._output_jacobian.terms)
        x = np.zeros((batch, order + 1, m, n), dtype=numbers.dtype)
        x[:, 0] = self._initial_by_unknowns.dense(v[:1], self._slot)[:, 0]
        for j in range(order):
            self.deadline.check()
            self.deadline.spend(4 * PER_CALL + batch * (j + 1) * entries * n / 2)
            factor = numbers.exact(Fraction(1, j + 1))
            total = numbers.reduced(numbers.convolved(jacobian, x, j) + by_unknowns[:, j])
            x[:, j + 1] = numbers.reduced(total * factor)
        for j in range(order + 1):
            self.deadline.check()
            self.deadline.spend(batch * (j + 1) * len(self._output_jacobian.terms) * n / 2)
            result[:, j] = numbers.reduced(result[:, j] + numbers.convolved(by_states, x, j))
        return result

    def _check_memory(self, dtype: npt.DTypeLike, matrices: int) -> None:
        """Raise :class:`UnfinishedError` if the sensitivities do not fit in memory."""
        q, m, n = self.shape
        if matrices * (2 * m + q) * n * np.dtype(dtype).itemsize > MAX_BYTES:
            raise UnfinishedError("the sensitivities take more memory than is allowed")


@dataclass(frozen=True, eq=False)
class TaylorCoefficients(Generic[Scalars]):
    """Taylor coefficients of a rational ODE.

    Shapes: `outputs` (batch, order + 1, q), their `derivatives` by the unknowns (batch, order + 1,
    q, n), or those of the leading ones of the batch, `states` (batch, order + 1, m).
    """

    outputs: npt.NDArray[Scalars]
    derivatives: npt.NDArray[Scalars] | None
    states: npt.NDArray[Scalars]


def _step(
    numbers: Numbers[Scalars],
    v: npt.NDArray[Scalars],
    group: _Operations,
    j: int,
    inverse: dict[int, Any] | None = None,
    key: int = 0,
) -> None:
    """Compute Taylor coefficient `j` of a group's results in `v`, shape (orders, slots, batch).

    The reciprocals of the divisors of the group are remembered in `inverse` under `key`.
    """
    left, right = group.left, group.right
    out = v[j, group.first : group.last]
    if group.kind == "+":
        out[:] = numbers.reduced(v[j, left] + v[j, right])
    elif group.kind == "-":
        out[:] = numbers.reduced(v[j, left] - v[j, right])
    elif group.kind == "scaled":
        out[:] = numbers.reduced(v[0, left] * v[j, right])
    elif group.kind == "*":
        if j == 0:
            out[:] = numbers.reduced(v[0, left] * v[0, right])
        else:
            terms = numbers.reduced(v[: j + 1, left] * v[j::-1, right])
            out[:] = numbers.reduced(terms.sum(axis=0))
    else:
        if inverse is None or j == 0:
            one = numbers.inverse(v[0, right])
            if inverse is not None:
                inverse[key] = one
        else:
            one = inverse[key]
        top = v[j, left]
        if j and group.kind == "/":
            earlier = v[:j, group.first : group.last]
            products = numbers.reduced(earlier * v[j:0:-1, right])
            top = numbers.reduced(top - products.sum(axis=0))
        out[:] = numbers.reduced(top * one)
