"""Compiled loops over many steps of linear equations, each solved by a power series.

In a step of length h the inputs are polynomials of the time since its beginning. The series of the
states and their sensitivities then follow from the coefficients of the equations, order by order,
and end when their terms are below rounding. Loops replace operations on whole arrays, which take
several times as long to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.kernels.kernel import compiled

REACH = 1.0
"""Largest product of rate and step length for a single series."""

MOST_TERMS = 48  # largest order of a series before it is given up
BELOW_ROUNDING = 1e-17  # size of the last terms, relative to the largest one


class Coefficients(NamedTuple):
    """The coefficients of equations in kernels, as in :class:`LinearEquations`."""

    rows: IntArray  # shape (e,)
    columns: IntArray
    factors: IntArray
    values: Array
    along: Array  # shape (e, m)
    moved: BoolArray  # whether a coefficient changes along any direction


@compiled
def _terms(
    equations: Coefficients,
    one: float,
    h: float,
    polynomials: Array,
    x: Array,
    s: Array,
    order: int,
) -> None:
    """Compute the terms of an order from those of lower orders."""
    n, m, powers, last = x.shape[1], s.shape[2], polynomials.shape[1], order - 1
    for i in range(n):
        x[order, i] = 0.0
        for q in range(m):
            s[order, i, q] = 0.0
    for e in range(len(equations.rows)):
        row, column, factor = equations.rows[e], equations.columns[e], equations.factors[e]
        value = equations.values[e] / order
        act, weight = 0.0, h
        for power in range(min(powers if factor > 0 else 1, order)):
            acting = weight * polynomials[factor - 1, power] if factor > 0 else weight
            weight *= h
            if column < n:
                act += acting * x[last - power, column]
                scale = value * acting
                for q in range(m):
                    s[order, row, q] += scale * s[last - power, column, q]
            elif power == last:
                act = acting if factor > 0 else acting * one
        x[order, row] += value * act
        if equations.moved[e] and act != 0.0:
            scale = act / order
            for q in range(m):
                s[order, row, q] += scale * equations.along[e, q]


@compiled
def _small(x: Array, s: Array, order: int, largest: Array) -> bool:
    """Return whether the terms of an order are below rounding in each row."""
    small = True
    for i in range(x.shape[1]):
        size = abs(x[order, i])
        for q in range(s.shape[2]):
            size = max(size, abs(s[order, i, q]))
        largest[i] = size if order == 0 else max(size, largest[i])
        if not size <= BELOW_ROUNDING * largest[i]:
            small = False
    return small


@compiled
def by_series(
    equations: Coefficients,
    one: float,
    rate: float,
    lengths: Array,
    polynomials: Array,
    rows: IntArray,
    states: Array,
    sensitivities: Array,
    out: Array,
    out_sensitivities: Array,
    follow: bool,
) -> bool:
    """Take all steps; write the values at the ends of those that have a row.

    Steps `follow` each other, or else each begins with the given values. `one` is the factor of
    terms without state and input. Returns False if a series does not end.
    """
    n, m = sensitivities.shape
    powers = polynomials.shape[2]
    x, s = np.empty((MOST_TERMS + 1, n)), np.empty((MOST_TERMS + 1, n, m))
    largest, moved = np.empty(n), np.empty((polynomials.shape[1], powers))
    for k in range(len(lengths)):
        parts = max(1, int(np.ceil(rate * lengths[k] / REACH)))
        h = lengths[k] / parts
        for i in range(len(moved)):
            for power in range(powers):
                moved[i, power] = polynomials[k, i, power]
        if k == 0 or not follow:
            for i in range(n):
                x[0, i] = states[i]
                for q in range(m):
                    s[0, i, q] = sensitivities[i, q]
        for part in range(parts):
            if part:
                for i in range(len(moved)):  # the polynomials of the time since here
                    for power in range(powers - 1):
                        for j in range(powers - 2, power - 1, -1):
                            moved[i, j] += h * moved[i, j + 1]
            _small(x, s, 0, largest)
            order, still = 0, 0
            while still < powers or order < powers:
                order += 1
                if order > MOST_TERMS:
                    return False
                _terms(equations, one, h, moved, x, s, order)
                still = still + 1 if _small(x, s, order, largest) else 0
            for lower in range(order - 1, -1, -1):
                for i in range(n):
                    x[order, i] += x[lower, i]
                    for q in range(m):
                        s[order, i, q] += s[lower, i, q]
            for i in range(n):
                x[0, i] = x[order, i]
                for q in range(m):
                    s[0, i, q] = s[order, i, q]
        if rows[k] >= 0:
            for i in range(n):
                out[rows[k], i] = x[0, i]
                for q in range(m):
                    out_sensitivities[rows[k], i, q] = s[0, i, q]
    return True


@compiled
def by_transitions(
    classes: IntArray,
    matrices: Array,
    along: Array,
    acts: BoolArray,
    input_terms: Array,
    rows: IntArray,
    states: Array,
    sensitivities: Array,
    out: Array,
    out_sensitivities: Array,
) -> None:
    """Take all steps; write the values at the ends of those that have a row.

    The transitions have the shapes (c, n, n + w) and (c, n, n + w, m); `acts`, shape (n, n + w),
    marks the entries that may be nonzero. They multiply the states and the `input_terms` of each
    step, shape (k, w).
    """
    n, columns, m = along.shape[1:]
    x, s = np.empty((2, n)), np.empty((2, n, m))
    for i in range(n):
        x[0, i] = states[i]
        for q in range(m):
            s[0, i, q] = sensitivities[i, q]
    for k in range(len(classes)):
        c, now = classes[k], k % 2
        new = 1 - now
        for i in range(n):
            total = 0.0
            for q in range(m):
                s[new, i, q] = 0.0
            for j in range(columns):
                if not acts[i, j]:
                    continue
                value, weight = matrices[c, i, j], x[now, j] if j < n else input_terms[k, j - n]
                total += value * weight
                for q in range(m):
                    s[new, i, q] += weight * along[c, i, j, q]
                if j < n:
                    for q in range(m):
                        s[new, i, q] += value * s[now, j, q]
            x[new, i] = total
        if rows[k] >= 0:
            for i in range(n):
                out[rows[k], i] = x[new, i]
                for q in range(m):
                    out_sensitivities[rows[k], i, q] = s[new, i, q]
