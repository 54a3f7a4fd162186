"""Quantities of many conditions at once, with derivatives by the unknowns of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.binding import Bound, Computed, bound_key

Quantity = tuple[int, Bound]
"""A quantity and the number of its condition."""


class StackedBinding:
    """Quantities of conditions as functions of the unknowns.

    `scalars` are those of each condition; `unknowns`, shape (conditions, m), the indices of the
    unknowns by which it has derivatives. `known` collects the expressions of all bindings, see
    :class:`odefit.problem.binding.Binding`. With several `points` the conditions are numbered point
    by point, and have no derivatives.
    """

    def __init__(
        self,
        quantities: Sequence[Quantity],
        scalars: Sequence[Mapping[str, Bound]],
        unknowns: IntArray,
        known: dict[Any, Computed],
        points: int = 1,
    ) -> None:
        self._values = np.zeros(len(quantities))
        self._along = np.zeros((len(quantities), unknowns.shape[1]))
        direct: list[tuple[int, int, int]] = []
        computed: dict[Any, tuple[Computed, int, list[int]]] = {}
        of_each_point = len(scalars) // points
        for row, (condition, quantity) in enumerate(quantities):
            point = condition // of_each_point
            if isinstance(quantity, Expression):
                key = bound_key(quantity, scalars[condition])
                if key not in known:
                    known[key] = Computed(quantity, scalars[condition])
                computed.setdefault((key, point), (known[key], point, []))[2].append(row)
            elif isinstance(quantity, float):
                self._values[row] = quantity
            else:
                direct.append((row, point, quantity))
                self._along[row, unknowns[condition] == quantity] = 1.0
        self._rows, *self._places = np.array(direct, dtype=np.intp).reshape(-1, 3).T
        of = np.array([condition for condition, _ in quantities], dtype=np.intp)
        self._computed = [
            (one, point, np.array(rows), unknowns[of[rows]])
            for one, point, rows in sorted(computed.values(), key=lambda each: each[1])
        ]

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Return values and derivatives at the points (points, n), shapes (q,) and (q, m)."""
        values, along = self._values.copy(), self._along.copy()
        values[self._rows] = points[tuple(self._places)]
        for one, point, rows, columns in self._computed:
            values[rows] = one.value(points[point])
            if columns.shape[1]:
                along[rows] = one.gradient(points[point])[columns]
        return values, along
