"""The master problem: a relaxation with piecewise envelopes, as a mixed-integer program (31)-(40).

One factor x of each bilinear term is partitioned; all terms with the same x share its binaries. The
columns after those of the linear relaxation are, for each piece, a binary of each partitioned
variable, and the switched part of the other factor of each term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.rounding import round_down, round_up
from odefit.methods.outer_approximation.linear_programs import Polyhedron
from odefit.methods.outer_approximation.relaxation import (
    HyperPlanes,
    RowList,
    Rows,
    StrengtheningCut,
    linear_relaxation,
    objective_coefficients,
    stacked,
)
from odefit.methods.outer_approximation.standard_form import StandardForm
from odefit.methods.outer_approximation.univariate import Line, supporting_lines

Partition = dict[int, tuple[float, ...]]
"""Edges of the pieces of every partitioned variable, increasing, including its bounds."""

SHORTEST_PIECE = 1e-6
"""Share of the original width of a variable below which a piece is not divided."""

LOGARITHMIC_RATIO = 4.0
"""Ratio of the ends of a range above which it is divided by its logarithm."""

PRODUCT_ERROR = 4e-16
"""Relative rounding error of a coefficient that is a difference or a product of two numbers."""


@dataclass(frozen=True, eq=False)
class MasterProblem:
    """``min cost @ x`` over the polyhedron, with the columns `integer` binary.

    It has the columns of :func:`linear_relaxation`, followed by others.
    """

    polyhedron: Polyhedron
    cost: Array
    integer: BoolArray


def split_point(low: float, high: float, part: float) -> float:
    """Return the point at `part` of a range, by its logarithm if the range spans much."""
    if low > 0 and high / low > LOGARITHMIC_RATIO:
        return float(low * (high / low) ** part)
    return low + (high - low) * part


def variables_to_partition(form: StandardForm, low: Array, high: Array) -> tuple[int, ...]:
    """Return variables that include one of each nonlinear term, preferably parameters.

    Then those that occur in most terms are preferred.
    """
    free = high > low
    parameters = set(form.parameters.tolist())
    pairs = [(int(i), int(j)) for _, i, j in form.bilinear if free[i] and free[j]]
    chosen = {t.argument for t in form.univariate if free[t.argument]}
    chosen |= {k for pair in pairs for k in pair if k in parameters}
    rest = [p for p in pairs if not chosen.intersection(p)]
    while rest:
        count = Counter(k for p in rest for k in p)
        best = min(count, key=lambda k: (-count[k], k))
        chosen.add(best)
        rest = [p for p in rest if best not in p]
    return tuple(sorted(chosen))


def uniform_partition(low: Array, high: Array, variables: Sequence[int], count: int) -> Partition:
    """Return `count` pieces of each variable, of equal ratio if it spans much, else length."""
    pieces: Partition = {}
    for k in variables:
        a, b = float(low[k]), float(high[k])
        pieces[k] = (a, *(split_point(a, b, n / count) for n in range(1, count)), b)
    return pieces


def restricted(partition: Partition, low: Array, high: Array) -> Partition:
    """Return the pieces within narrower bounds."""
    pieces: Partition = {}
    for k, edges in partition.items():
        a, b = float(low[k]), float(high[k])
        if a < b:
            pieces[k] = (a, *(e for e in edges if a < e < b), b)
    return pieces


def active_pieces_halved(partition: Partition, w: Array, low: Array, high: Array) -> Partition:
    """Return the partition with the active piece of every variable, which holds `w`, halved."""
    pieces: Partition = {}
    for k, edges in partition.items():
        active = int(np.clip(np.searchsorted(edges, w[k], side="right") - 1, 0, len(edges) - 2))
        a, b = edges[active], edges[active + 1]
        if b - a > SHORTEST_PIECE * (high[k] - low[k]):
            edges = (*edges[: active + 1], split_point(a, b, 0.5), *edges[active + 1 :])
        pieces[k] = edges
    return pieces


def binary_count(partition: Partition) -> int:
    """Return the number of binary variables of the pieces."""
    return sum(len(e) - 1 for e in partition.values() if len(e) > 2)


def master_problem(
    form: StandardForm,
    low: Array,
    high: Array,
    planes: HyperPlanes,
    partition: Partition,
    cutoff: float = np.inf,
    cuts: Sequence[StrengtheningCut] = (),
    keep: BoolArray | None = None,
) -> MasterProblem:
    """Return the mixed-integer program; see :func:`linear_relaxation` for the parameters."""
    extended = _Extended(linear_relaxation(form, low, high, planes, cutoff, cuts, keep))
    partition = {k: edges for k, edges in partition.items() if len(edges) > 2}
    binaries = {k: extended.pieces(k, np.array(edges)) for k, edges in partition.items()}
    for z, i, j in form.bilinear.tolist():
        for x, y in ((i, j), (j, i)):
            if x in binaries and high[y] > low[y]:
                ends = float(low[y]), float(high[y])
                extended.product(z, x, y, np.array(partition[x]), binaries[x], *ends)
                break
    for t in form.univariate:
        if t.argument in binaries:
            edges = np.array(partition[t.argument])
            lines = [supporting_lines(t.function, a, b) for a, b in pairwise(edges.tolist())]
            if all(lines):
                extended.lines(t.result, t.argument, edges, binaries[t.argument], lines)
    return extended.program(objective_coefficients(form))


def _by_column(columns: IntArray, values: Array) -> dict[int, float]:
    return dict(zip(columns.tolist(), values.tolist(), strict=True))


class _Extended:
    """A linear relaxation with further columns and rows."""

    def __init__(self, base: Polyhedron) -> None:
        self._base = base
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._rows = RowList()

    def _new_columns(self, count: int, upper: float, integer: bool) -> IntArray:
        first = len(self._base.lower) + len(self._upper)
        self._upper += [upper] * count
        self._integer += [integer] * count
        return np.arange(first, first + count)

    def pieces(self, x: int, edges: Array) -> IntArray:
        """Return a binary for each piece, exactly one of which is active (31) and contains x."""
        binaries = self._new_columns(len(edges) - 1, 1.0, integer=True)
        self._rows.add(dict.fromkeys(binaries.tolist(), 1.0), 1.0, 1.0)
        self._rows.add({x: 1.0, **_by_column(binaries, -edges[:-1])}, lower=0.0)
        self._rows.add({x: 1.0, **_by_column(binaries, -edges[1:])}, upper=0.0)
        return binaries

    def _switched(self, y: int, low: float, high: float, count: int) -> tuple[IntArray, float]:
        """Return the switched parts of ``y - low`` (32), one per piece, and their upper bound."""
        width = float(round_up(np.array(high - low)))
        parts = self._new_columns(count, width, integer=False)
        slack = PRODUCT_ERROR * abs(low)
        self._rows.add({y: 1.0, **dict.fromkeys(parts.tolist(), -1.0)}, low - slack, low + slack)
        return parts, width

    def product(
        self, z: int, x: int, y: int, edges: Array, binaries: IntArray, yl: float, yu: float
    ) -> None:
        """Add the piecewise McCormick envelopes (32)-(37) of ``z = x y``."""
        parts, width = self._switched(y, yl, yu, len(binaries))
        for part, binary in zip(parts.tolist(), binaries.tolist(), strict=True):
            self._rows.add({part: 1.0, binary: -width}, upper=0.0)
        bottom, top = edges[:-1], edges[1:]
        for end, sides, below in (
            (yl, bottom, True),
            (yu, top, True),
            (yl, top, False),
            (yu, bottom, False),
        ):
            # z >= x y_L + sum [e] dy, or, for the other end, sum [e] (dy - (y_U - y_L) lambda)
            entries = {z: 1.0, x: -end, **_by_column(parts, -sides)}
            size = abs(yl) * float(np.abs(edges).max())
            if end == yu:
                constants = sides * (yu - yl)
                entries |= _by_column(binaries, constants)
                size += float(np.abs(constants).max())
            self._add(entries, PRODUCT_ERROR * size, below)

    def lines(
        self, z: int, x: int, edges: Array, binaries: IntArray, lines: list[list[Line]]
    ) -> None:
        """Add the lines of every piece, for the part of x that is switched on."""
        low = float(edges[0])
        parts, _ = self._switched(x, low, float(edges[-1]), len(binaries))
        bottom, top = np.maximum(round_down(edges[:-1] - low), 0.0), round_up(edges[1:] - low)
        for n, (part, binary) in enumerate(zip(parts.tolist(), binaries.tolist(), strict=True)):
            self._rows.add({part: 1.0, binary: -float(bottom[n])}, lower=0.0)
            self._rows.add({part: 1.0, binary: -float(top[n])}, upper=0.0)
        for above in (False, True):
            kinds = [[line for line in piece if line.above == above] for piece in lines]
            if not all(kinds):
                continue
            for n in range(max(map(len, kinds))):
                selected = [piece[min(n, len(piece) - 1)] for piece in kinds]
                slopes = np.array([line.slope for line in selected])
                offsets = np.array([line.offset for line in selected])
                # slope (part + x_L lambda) + offset lambda
                entries = {z: 1.0, **_by_column(parts, -slopes)}
                entries |= _by_column(binaries, -(slopes * low + offsets))
                size = float((2 * np.abs(slopes * low) + np.abs(offsets)).max())
                self._add(entries, PRODUCT_ERROR * size, below=not above)

    def _add(self, entries: Mapping[int, float], slack: float, below: bool) -> None:
        """Add a row ``entries >= 0``, or ``<= 0`` if not `below`, up to `slack`."""
        if below:
            self._rows.add(entries, lower=-slack)
        else:
            self._rows.add(entries, upper=slack)

    def program(self, cost: Array) -> MasterProblem:
        """Return the whole program, with the cost of the linear relaxation."""
        base, extra = self._base, len(self._upper)
        first = np.zeros(len(base.lower), dtype=bool)
        columns = len(first) + extra
        rows = Rows(base.matrix, base.row_lower, base.row_upper)
        rows = stacked([rows, self._rows.rows(columns)], columns)
        p = Polyhedron(
            rows.matrix,
            rows.lower,
            rows.upper,
            np.concatenate([base.lower, np.zeros(extra)]),
            np.concatenate([base.upper, self._upper]),
            np.concatenate([first, np.ones(extra, dtype=bool)]),
        )
        integer = np.concatenate([first, np.array(self._integer, dtype=bool)])
        return MasterProblem(p, np.concatenate([cost, np.zeros(extra)]), integer)
