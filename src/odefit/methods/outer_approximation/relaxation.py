"""Linear relaxation of a standard form within given bounds: envelopes and hyper-planes.

Columns are the variables w, followed by one alpha for each residual (39).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF, round_down, round_up
from odefit.methods.outer_approximation.linear_programs import Polyhedron
from odefit.methods.outer_approximation.standard_form import COEFFICIENT_ERROR, StandardForm
from odefit.methods.outer_approximation.univariate import supporting_lines

CONTACT_DISTANCE = 1e-7
"""Smallest distance of two hyper-planes' contact points, relative to the residual's range."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear rows ``lower <= matrix @ x <= upper``."""

    matrix: csr_array
    lower: Array
    upper: Array


class RowList:
    """Linear rows that are added one by one."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []
        self._lower: list[float] = []
        self._upper: list[float] = []

    def add(
        self, entries: Mapping[int, float], lower: float = -np.inf, upper: float = np.inf
    ) -> None:
        """Add a row with these coefficients by column."""
        row = len(self._lower)
        self._entries += [(row, column, value) for column, value in entries.items()]
        self._lower.append(lower)
        self._upper.append(upper)

    def rows(self, columns: int) -> Rows:
        """Return the rows, as wide as `columns`."""
        shape = len(self._lower), columns
        matrix = csr_array(shape)
        if self._entries:
            row, column, value = (np.array(part) for part in zip(*self._entries, strict=True))
            matrix = csr_array(coo_array((value, (row, column)), shape=shape))
        return Rows(matrix, np.array(self._lower), np.array(self._upper))


def stacked(parts: Sequence[Rows], columns: int) -> Rows:
    """Return all rows, as wide as `columns`; narrower ones are padded with zeros."""
    wide = [
        csr_array((m.data, m.indices, m.indptr), shape=(m.shape[0], columns))
        for m in (part.matrix for part in parts)
    ]
    lower, upper = [part.lower for part in parts], [part.upper for part in parts]
    matrix = csr_array(vstack(wide, format="csr"))
    return Rows(matrix, np.concatenate(lower), np.concatenate(upper))


@dataclass(eq=False)
class HyperPlanes:
    """Supporting hyper-planes of the squares of the residuals (40), by their contact points.

    `count` of them are spread uniformly over the current range of a residual; `others` are at
    contact points that were added. Points outside the range give weaker planes than its ends.
    """

    count: int
    added: list[list[float]]

    @classmethod
    def uniform(cls, residuals: int, count: int) -> HyperPlanes:
        """Return `count` hyper-planes for each residual."""
        return cls(count, [[] for _ in range(residuals)])

    def contacts(self, low: Array, high: Array) -> list[list[float]]:
        """Return the contact points in the ranges of the residuals, ends of shape (residuals,)."""
        points = []
        for added, a, b in zip(self.added, low.tolist(), high.tolist(), strict=True):
            near = CONTACT_DISTANCE * (b - a)
            inner = [p for p in added if a + near < p < b - near]
            points.append([*np.linspace(a, b, self.count if a < b else 1).tolist(), *inner])
        return points

    def add(self, residuals: Array, low: Array, high: Array) -> int:
        """Add missing planes at the residuals' values; return the number of new ones."""
        new = 0
        contacts = self.contacts(low, high)
        width = (high - low).tolist()
        for points, known, r, w in zip(
            self.added, contacts, residuals.tolist(), width, strict=True
        ):
            if all(abs(r - p) > CONTACT_DISTANCE * w for p in known):
                points.append(r)
                new += 1
        return new


@dataclass(frozen=True)
class StrengtheningCut:
    """The inequality ``sum of alpha over some residuals >= least``, from temporal decomposition."""

    residuals: tuple[int, ...]
    least: float


def linear_relaxation(
    form: StandardForm,
    low: Array,
    high: Array,
    planes: HyperPlanes,
    cutoff: float = np.inf,
    cuts: Sequence[StrengtheningCut] = (),
    keep: BoolArray | None = None,
) -> Polyhedron:
    """Return the linear relaxation within finite bounds of w, shape (n,).

    Objectives are at most the cutoff (47), parts of them at least the cuts. The rows (19) in `keep`
    hold, by default all.
    """
    r = form.residuals
    a, b = low[r], high[r]
    rows = RowList()
    for k, contacts in enumerate(planes.contacts(a, b)):
        for z in contacts:  # (40)
            rows.add({form.size + k: 1.0, int(r[k]): -2.0 * z}, math.nextafter(-z * z, -math.inf))
    if np.isfinite(cutoff):
        top = cutoff - form.constant + 4 * UNIT_ROUNDOFF * (abs(cutoff) + abs(form.constant))
        c = objective_coefficients(form)
        rows.add({int(k): float(c[k]) for k in np.flatnonzero(c)}, upper=top)
    for cut in cuts:
        rows.add(dict.fromkeys((form.size + k for k in cut.residuals), 1.0), cut.least)
    columns = form.size + len(r)
    terms = [mccormick(form, low, high), univariate_rows(form, low, high)]
    everything = stacked([linear_rows(form, low, high, keep), *terms, rows.rows(columns)], columns)
    least = np.maximum(round_down(np.maximum(np.maximum(a, -b), 0.0) ** 2), 0.0)
    return Polyhedron(
        everything.matrix,
        everything.lower,
        everything.upper,
        np.concatenate([low, least]),
        np.concatenate([high, round_up(np.maximum(a * a, b * b))]),
    )


def objective_coefficients(form: StandardForm) -> Array:
    """Return the coefficients of the objective (39), shape (n + residuals,), without constant."""
    return np.concatenate([form.linear, np.ones(len(form.residuals))])


def linear_rows(form: StandardForm, low: Array, high: Array, keep: BoolArray | None = None) -> Rows:
    """Return the rows (19), each with the possible error of its rounded coefficients."""
    size = np.maximum(np.abs(low), np.abs(high))
    slack = COEFFICIENT_ERROR * (abs(form.matrix) @ size + np.abs(form.target))
    rows = Rows(form.matrix, round_down(form.target - slack), round_up(form.target + slack))
    if keep is None:
        return rows
    return Rows(csr_array(rows.matrix[keep]), rows.lower[keep], rows.upper[keep])


def mccormick(form: StandardForm, low: Array, high: Array) -> Rows:
    """Return the McCormick envelopes (27)-(30) of every bilinear term."""
    z, x, y = form.bilinear.T
    free = np.full(len(z), np.inf)
    values, lower, upper = [], [], []
    for a, b, below in (
        (low[y], low[x], True),
        (high[y], high[x], True),
        (low[y], high[x], False),
        (high[y], low[x], False),
    ):
        # z - a x - b y >= -a b, or <=
        values.append(np.column_stack([np.ones(len(z)), -a, -b]))
        product = -a * b
        lower.append(round_down(product) if below else -free)
        upper.append(free if below else round_up(product))
    columns = np.tile(np.column_stack([z, x, y]), (4, 1))
    rows = np.repeat(np.arange(len(columns)), 3)
    data = np.concatenate(values).ravel()
    matrix = coo_array((data, (rows, columns.ravel())), shape=(len(columns), form.size))
    return Rows(csr_array(matrix), np.concatenate(lower), np.concatenate(upper))


def univariate_rows(form: StandardForm, low: Array, high: Array) -> Rows:
    """Return the secants and tangents of every univariate term."""
    rows = RowList()
    for t in form.univariate:
        for line in supporting_lines(t.function, float(low[t.argument]), float(high[t.argument])):
            entries = {t.result: 1.0, t.argument: -line.slope}
            rows.add(entries, **{"upper" if line.above else "lower": line.offset})
    return rows.rows(form.size)
