"""Linear relaxation of a standard form within given bounds: envelopes and hyper-planes.

Columns are the variables w and, behind them, one alpha for each residual (39).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack, vstack

from odefit.enclosure.rounding import UNIT_ROUNDOFF, round_down, round_up
from odefit.methods.outer_approximation.functions import lines
from odefit.methods.outer_approximation.linear_programs import Polyhedron
from odefit.methods.outer_approximation.standard_form import StandardForm
from odefit.problem.arrays import Array, BoolArray

SAME = 1e-7
"""Hyper-planes whose places differ by less, relative to the residual's range, are one."""


@dataclass(frozen=True, eq=False)
class Rows:
    """``lower <= matrix @ x <= upper``."""

    matrix: csr_array
    lower: Array
    upper: Array


@dataclass(eq=False)
class HyperPlanes:
    """Where the squares of the residuals are supported (40).

    Some stand uniformly in the range that a residual has, whatever that is by now; others where
    they were asked for. Those outside the range say less than those at its ends.

    Attributes
    ----------
    count
        Of the uniform ones.
    added
        By residual, the others.
    """

    count: int
    added: list[list[float]]

    @classmethod
    def uniform(cls, residuals: int, count: int) -> HyperPlanes:
        """`count` of them for each residual."""
        return cls(count, [[] for _ in range(residuals)])

    def places(self, low: Array, high: Array) -> list[list[float]]:
        """By residual, in its range; ends of shape (residuals,)."""
        found = []
        for own, a, b in zip(self.added, low.tolist(), high.tolist(), strict=True):
            near = SAME * (b - a)
            inner = [p for p in own if a + near < p < b - near]
            found.append([*np.linspace(a, b, self.count if a < b else 1).tolist(), *inner])
        return found

    def add(self, residuals: Array, low: Array, high: Array) -> int:
        """One more at each residual's value, where there is none; how many were new."""
        new = 0
        there = self.places(low, high)
        width = (high - low).tolist()
        for own, known, r, w in zip(self.added, there, residuals.tolist(), width, strict=True):
            if all(abs(r - p) > SAME * w for p in known):
                own.append(r)
                new += 1
        return new


@dataclass(frozen=True)
class GroupCut:
    """``sum of alpha over some residuals >= least``: from temporal decomposition."""

    residuals: tuple[int, ...]
    least: float


def relaxed(
    form: StandardForm,
    low: Array,
    high: Array,
    planes: HyperPlanes,
    cut: float = np.inf,
    groups: Sequence[GroupCut] = (),
    keep: BoolArray | None = None,
) -> Polyhedron:
    """The relaxation.

    Parameters
    ----------
    low, high
        Finite bounds of w, shape (n,).
    planes
        Of the objective.
    cut
        Upper bound of the objective (47).
    groups
        Lower bounds of parts of the objective.
    keep
        Which of the rows (19) hold; None for all.
    """
    n, m = form.size, len(form.residuals)
    parts = [linear_rows(form, low, high, keep), mccormick(form, low, high)]
    parts.append(univariate_rows(form, low, high))
    r = form.residuals
    parts.append(_planes(form, planes.places(low[r], high[r])))
    if np.isfinite(cut):
        parts.append(_cut(form, cut))
    if groups:
        parts.append(_groups(form, groups))
    matrix = csr_array(vstack([_wide(p.matrix, n + m) for p in parts], format="csr"))
    a, b = low[r], high[r]
    inside = (a <= 0) & (b >= 0)
    least = np.where(inside, 0.0, round_down(np.minimum(a * a, b * b)))
    most = round_up(np.maximum(a * a, b * b))
    return Polyhedron(
        matrix,
        np.concatenate([p.lower for p in parts]),
        np.concatenate([p.upper for p in parts]),
        np.concatenate([low, np.maximum(least, 0.0)]),
        np.concatenate([high, most]),
    )


def cost(form: StandardForm) -> Array:
    """The objective (39) without its constant, shape (n + residuals,)."""
    return np.concatenate([form.linear, np.ones(len(form.residuals))])


def linear_rows(form: StandardForm, low: Array, high: Array, keep: BoolArray | None = None) -> Rows:
    """(19), each with what its rounded coefficients may be off."""
    size = np.maximum(np.abs(low), np.abs(high))
    # Coefficients are sums and products of given numbers, each off by a few units.
    slack = 16.0 * UNIT_ROUNDOFF * (abs(form.matrix) @ size + np.abs(form.target))
    rows = Rows(form.matrix, round_down(form.target - slack), round_up(form.target + slack))
    if keep is None:
        return rows
    return Rows(csr_array(rows.matrix[keep]), rows.lower[keep], rows.upper[keep])


def mccormick(form: StandardForm, low: Array, high: Array) -> Rows:
    """(27)-(30) of every bilinear term."""
    z, x, y = form.bilinear.T
    count = len(z)
    xl, xu, yl, yu = low[x], high[x], low[y], high[y]
    columns, values = [], []
    lower: list[Array] = []
    upper: list[Array] = []
    for a, b, below in ((yl, xl, True), (yu, xu, True), (yl, xu, False), (yu, xl, False)):
        # z - a x - b y >= -a b, or <=
        columns.append(np.column_stack([z, x, y]))
        values.append(np.column_stack([np.ones(count), -a, -b]))
        product = -a * b
        lower.append(round_down(product) if below else np.full(count, -np.inf))
        upper.append(np.full(count, np.inf) if below else round_up(product))
    return _three(columns, values, lower, upper, form.size)


def _three(
    columns: list[Array], values: list[Array], lower: list[Array], upper: list[Array], size: int
) -> Rows:
    index, data = np.concatenate(columns), np.concatenate(values)
    rows = np.repeat(np.arange(len(index)), index.shape[1])
    matrix = coo_array((data.ravel(), (rows, index.ravel())), shape=(len(index), size))
    return Rows(csr_array(matrix), np.concatenate(lower), np.concatenate(upper))


def univariate_rows(form: StandardForm, low: Array, high: Array) -> Rows:
    """Secants and tangents of the other terms."""
    entries: list[tuple[int, int, float]] = []
    lower: list[float] = []
    upper: list[float] = []
    for t in form.univariate:
        for line in lines(t.function, float(low[t.argument]), float(high[t.argument]), t.exponent):
            row = len(lower)
            entries += [(row, t.result, 1.0), (row, t.argument, -line.slope)]
            lower.append(-np.inf if line.above else line.offset)
            upper.append(line.offset if line.above else np.inf)
    return Rows(_matrix(entries, len(lower), form.size), np.array(lower), np.array(upper))


def _planes(form: StandardForm, places: list[list[float]]) -> Rows:
    """(40)."""
    n = form.size
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    lower: list[float] = []
    for k, own in enumerate(places):
        for place in own:
            row = len(lower)
            rows += [row, row]
            columns += [n + k, int(form.residuals[k])]
            values += [1.0, -2.0 * place]
            lower.append(-place * place)
    size = n + len(places)
    matrix = coo_array((values, (rows, columns)), shape=(len(lower), size))
    least = round_down(np.array(lower))
    return Rows(csr_array(matrix), least, np.full(len(lower), np.inf))


def _cut(form: StandardForm, cut: float) -> Rows:
    """(47)."""
    top = cut - form.constant
    top += 4 * UNIT_ROUNDOFF * (abs(cut) + abs(form.constant))
    return Rows(csr_array(cost(form)[None, :]), np.array([-np.inf]), np.array([top]))


def _groups(form: StandardForm, groups: Sequence[GroupCut]) -> Rows:
    entries = [(k, form.size + r, 1.0) for k, g in enumerate(groups) for r in g.residuals]
    matrix = _matrix(entries, len(groups), form.size + len(form.residuals))
    return Rows(matrix, np.array([g.least for g in groups]), np.full(len(groups), np.inf))


def _matrix(entries: Sequence[tuple[int, int, float]], rows: int, columns: int) -> csr_array:
    if not entries:
        return csr_array((rows, columns))
    row, column, value = (np.array(part) for part in zip(*entries, strict=True))
    return csr_array(coo_array((value, (row, column)), shape=(rows, columns)))


def _wide(matrix: csr_array, columns: int) -> csr_array:
    missing = columns - matrix.shape[1]
    if not missing:
        return matrix
    return csr_array(hstack([matrix, csr_array((matrix.shape[0], missing))], format="csr"))
