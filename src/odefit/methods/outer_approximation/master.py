"""The master problem: a relaxation with piecewise envelopes, as a mixed-integer program (31)-(40).

Of each bilinear term one factor, x, is partitioned; all terms with the same x share its binaries.
Columns behind those of the linear relaxation are, for each partitioned variable, one binary a
piece, and for each term the switched part of its other factor, one a piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from odefit.enclosure.rounding import round_down, round_up
from odefit.methods.outer_approximation.contraction import divided
from odefit.methods.outer_approximation.functions import Line, lines
from odefit.methods.outer_approximation.linear_programs import Polyhedron
from odefit.methods.outer_approximation.relaxation import GroupCut, HyperPlanes, cost, relaxed
from odefit.methods.outer_approximation.standard_form import StandardForm
from odefit.problem.arrays import Array, BoolArray, IntArray

Partition = dict[int, tuple[float, ...]]
"""Edges of the pieces of every partitioned variable, increasing, its bounds included."""

SHORTEST = 1e-6
"""A piece is not divided below this part of the first width of its variable."""


@dataclass(frozen=True, eq=False)
class Master:
    """``min cost @ x`` over the polyhedron, some columns binary.

    Attributes
    ----------
    polyhedron, cost
        See :func:`relaxed`; further columns behind.
    integer
        Which columns are binary, shape (columns,).
    """

    polyhedron: Polyhedron
    cost: Array
    integer: BoolArray


def partitioned(form: StandardForm, low: Array, high: Array) -> tuple[int, ...]:
    """Which variables to divide so that each nonlinear term has one: parameters where it can be.

    Then those that occur in most terms.
    """
    free = high > low
    own = set(form.parameters.tolist())
    pairs = [(int(i), int(j)) for _, i, j in form.bilinear if free[i] and free[j]]
    chosen = {t.argument for t in form.univariate if free[t.argument]}
    chosen |= {k for pair in pairs for k in pair if k in own}
    rest = [p for p in pairs if not chosen.intersection(p)]
    while rest:
        count = Counter(k for p in rest for k in p)
        best = min(count, key=lambda k: (-count[k], k))
        chosen.add(best)
        rest = [p for p in rest if best not in p]
    return tuple(sorted(chosen))


def pieces(low: Array, high: Array, variables: Sequence[int], count: int) -> Partition:
    """`count` pieces of each variable, of equal ratio where it spans much, else equal length."""
    found: Partition = {}
    for k in variables:
        a, b = float(low[k]), float(high[k])
        inner = [divided(a, b, n / count) for n in range(1, count)]
        found[k] = (a, *inner, b)
    return found


def clipped(partition: Partition, low: Array, high: Array) -> Partition:
    """The pieces within narrower bounds."""
    found: Partition = {}
    for k, edges in partition.items():
        a, b = float(low[k]), float(high[k])
        if a < b:
            found[k] = (a, *(e for e in edges if a < e < b), b)
    return found


def divided_at(partition: Partition, w: Array, low: Array, high: Array) -> Partition:
    """The active piece of every variable, that in which `w` lies, in two halves."""
    found: Partition = {}
    for k, edges in partition.items():
        active = int(np.clip(np.searchsorted(edges, w[k], side="right") - 1, 0, len(edges) - 2))
        a, b = edges[active], edges[active + 1]
        if b - a > SHORTEST * (high[k] - low[k]):
            edges = (*edges[: active + 1], divided(a, b, 0.5), *edges[active + 1 :])
        found[k] = edges
    return found


def binaries(partition: Partition) -> int:
    """How many the pieces need."""
    return sum(len(e) - 1 for e in partition.values() if len(e) > 2)


def master(
    form: StandardForm,
    low: Array,
    high: Array,
    planes: HyperPlanes,
    partition: Mapping[int, tuple[float, ...]],
    cut: float = np.inf,
    groups: Sequence[GroupCut] = (),
    keep: BoolArray | None = None,
) -> Master:
    """The mixed-integer program; see :func:`relaxed` for the parameters."""
    base = relaxed(form, low, high, planes, cut, groups, keep)
    rows = _Columns(base)
    numbers = {k: rows.binaries(edges) for k, edges in partition.items() if len(edges) > 2}
    for k, own in numbers.items():
        edges = np.array(partition[k])
        # exactly one piece (31), and x in it
        rows.add(dict.fromkeys(own.tolist(), 1.0), 1.0, 1.0)
        rows.add({k: 1.0, **dict(zip(own.tolist(), (-edges[:-1]).tolist(), strict=True))}, 0.0)
        rows.add(
            {k: 1.0, **dict(zip(own.tolist(), (-edges[1:]).tolist(), strict=True))}, -np.inf, 0.0
        )
    for z, i, j in form.bilinear.tolist():
        for x, y in ((i, j), (j, i)):
            if x in numbers and high[y] > low[y]:
                _piecewise(rows, z, x, y, np.array(partition[x]), numbers[x], low, high)
                break
    for t in form.univariate:
        if t.argument in numbers:
            edges = np.array(partition[t.argument])
            each = [lines(t.function, a, b, t.exponent) for a, b in pairwise(edges.tolist())]
            if all(each):
                _secants(rows, t.result, t.argument, edges, numbers[t.argument], each)
    return rows.finished(cost(form))


def _piecewise(
    rows: _Columns,
    z: int,
    x: int,
    y: int,
    edges: Array,
    switches: IntArray,
    low: Array,
    high: Array,
) -> None:
    """(32)-(37) for ``z = x y``."""
    yl, yu = float(low[y]), float(high[y])
    width = float(round_up(np.array(yu - yl)))
    parts = rows.switched(len(switches), width)
    rows.add({y: 1.0, **dict.fromkeys(parts.tolist(), -1.0)}, *_around(yl))
    for part, switch in zip(parts.tolist(), switches.tolist(), strict=True):
        rows.add({part: 1.0, switch: -width}, -np.inf, 0.0)
    bottom, top = edges[:-1], edges[1:]
    for end, sides, below in (
        (yl, bottom, True),
        (yu, top, True),
        (yl, top, False),
        (yu, bottom, False),
    ):
        # z >= x y_L + sum [e] dy, or, for the other end, sum [e] (dy - (y_U - y_L) lambda)
        entries = {z: 1.0, x: -end}
        entries |= dict(zip(parts.tolist(), (-sides).tolist(), strict=True))
        slack = 0.0
        if end == yu:
            constants = sides * (yu - yl)
            entries |= dict(zip(switches.tolist(), constants.tolist(), strict=True))
            slack = 4e-16 * float(np.abs(constants).max())
        slack += 4e-16 * abs(yl) * float(np.abs(edges).max())
        if below:
            rows.add(entries, -slack)
        else:
            rows.add(entries, -np.inf, slack)


def _around(value: float) -> tuple[float, float]:
    slack = 4e-16 * abs(value)
    return value - slack, value + slack


def _secants(
    rows: _Columns, z: int, x: int, edges: Array, switches: IntArray, own: list[list[Line]]
) -> None:
    """Lines of every piece, for the part of x that is switched on."""
    low = float(edges[0])
    width = float(round_up(np.array(edges[-1] - low)))
    parts = rows.switched(len(switches), width)
    rows.add({x: 1.0, **dict.fromkeys(parts.tolist(), -1.0)}, *_around(low))
    for n, (part, switch) in enumerate(zip(parts.tolist(), switches.tolist(), strict=True)):
        inside = (
            float(round_down(np.array(edges[n] - low))),
            float(round_up(np.array(edges[n + 1] - low))),
        )
        rows.add({part: 1.0, switch: -max(inside[0], 0.0)}, 0.0)
        rows.add({part: 1.0, switch: -inside[1]}, -np.inf, 0.0)
    for above in (False, True):
        kinds = [[line for line in piece if line.above == above] for piece in own]
        if not all(kinds):
            continue
        for n in range(max(map(len, kinds))):
            entries = {z: 1.0}
            slack = 0.0
            for piece, part, switch in zip(kinds, parts.tolist(), switches.tolist(), strict=True):
                line = piece[min(n, len(piece) - 1)]
                # slope (part + x_L lambda) + offset lambda
                entries[part] = -line.slope
                entries[switch] = -(line.slope * low + line.offset)
                slack = max(slack, 4e-16 * (2 * abs(line.slope * low) + abs(line.offset)))
            if above:
                rows.add(entries, -np.inf, slack)
            else:
                rows.add(entries, -slack)


class _Columns:
    """Rows and columns that are added to a linear relaxation."""

    def __init__(self, base: Polyhedron) -> None:
        self._base = base
        self._size = base.matrix.shape[1]
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._entries: list[tuple[int, int, float]] = []
        self._lower_rows: list[float] = []
        self._upper_rows: list[float] = []

    def binaries(self, edges: Sequence[float]) -> IntArray:
        return self._new(len(edges) - 1, 1.0, integer=True)

    def switched(self, count: int, width: float) -> IntArray:
        return self._new(count, width, integer=False)

    def _new(self, count: int, upper: float, integer: bool) -> IntArray:
        first = self._size + len(self._upper)
        self._upper += [upper] * count
        self._integer += [integer] * count
        return np.arange(first, first + count)

    def add(self, entries: Mapping[int, float], lower: float, upper: float = np.inf) -> None:
        row = len(self._lower_rows)
        self._entries += [(row, column, value) for column, value in entries.items()]
        self._lower_rows.append(lower)
        self._upper_rows.append(upper)

    def finished(self, first_cost: Array) -> Master:
        base, extra = self._base, len(self._upper)
        total = self._size + extra
        integer = np.concatenate([np.zeros(self._size, dtype=bool), np.array(self._integer, bool)])
        wide = csr_array(
            (base.matrix.data, base.matrix.indices, base.matrix.indptr),
            shape=(base.matrix.shape[0], total),
        )
        matrix = wide
        if self._entries:
            row, column, value = (np.array(part) for part in zip(*self._entries, strict=True))
            own = coo_array((value, (row, column)), shape=(len(self._lower_rows), total))
            matrix = csr_array(vstack([wide, own], format="csr"))
        p = Polyhedron(
            matrix,
            np.concatenate([base.row_lower, self._lower_rows]),
            np.concatenate([base.row_upper, self._upper_rows]),
            np.concatenate([base.lower, np.zeros(extra)]),
            np.concatenate([base.upper, self._upper]),
            np.concatenate([np.zeros(self._size, dtype=bool), np.ones(extra, dtype=bool)]),
        )
        return Master(p, np.concatenate([first_cost, np.zeros(extra)]), integer)
