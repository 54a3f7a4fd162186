"""Sums of products, compiled for repeated evaluation with their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from odefit.common.arrays import Array
from odefit.methods.integral_matching.separated import (
    INTEGRAL,
    OPERATIONS,
    SCALED,
    Node,
    Recorder,
    Separated,
    derivative,
    scaled_with_zeros,
)

MAX_REMEMBERED = 100  # number of sets of changed unknowns whose affected quantities are cached


class _Step(NamedTuple):
    """One operation: its place, function and arguments; `second` is -1 for a single argument."""

    place: int
    function: Callable[..., Any]
    first: int
    second: int


class _Stage(NamedTuple):
    """Operations with equally many nested integrals: `first` these, all at once."""

    integrals: list[_Step]
    steps: list[_Step]


@dataclass(frozen=True, eq=False)
class _Sum:
    """One weighted sum, or several stacked sums whose functions of time are known."""

    rows: slice  # their rows
    known: Array  # known functions of time, weighted, shape (rows, k)
    coefficients: list[Node]  # their coefficients
    weights: Array  # weights of the other functions of time, shape (grid,)
    products: list[tuple[Node, Node]]  # these other functions and their coefficients


class _Places(NamedTuple):
    """The places of the parts of a :class:`_Sum` and of their derivatives among the values."""

    coefficients: list[int]
    slopes: list[list[int]]  # their derivatives, by coefficient and unknown
    products: list[tuple[int, int]]  # functions of time and their coefficients
    # for each product of a derivative and a value, these two and the number of the unknown
    terms: list[tuple[int, int, int]]


@dataclass(frozen=True, eq=False)
class _Schedule:
    """The operations for derivatives by some unknowns, and the places of their results."""

    stages: list[_Stage]
    sums: list[_Places]


class Program:
    """Some sums of products in one segment, as functions of the unknowns.

    Each sum has weights, shape (grid,). `condensed` sums of known functions of time have no more
    rows than these functions; this preserves products of residuals and derivatives, such as norms.
    """

    def __init__(
        self,
        recorder: Recorder,
        sums: Sequence[tuple[Separated, Array]],
        *,
        condensed: bool = False,
    ) -> None:
        self._recorder = recorder
        self._place: dict[Node, int] = {}
        # Values by place: the known ones, and None for the others.
        self._start: list[Any] = []
        self._unknowns: list[tuple[int, int]] = []
        self._schedules: dict[tuple[int, ...], _Schedule] = {}
        self._changing: dict[tuple[int, int], list[int]] = {}
        self._sums: list[_Sum] = []
        self.size = 0
        for group in _groups(sums, together=condensed):
            self._sums.append(_weighted(group, self.size, condensed))
            self.size = self._sums[-1].rows.stop
        # Quantities that do not change between calls are kept, and never overwritten.
        self._last: list[Any] = []

    def evaluate(self, vector: Array, active: Sequence[int]) -> tuple[Array, Array]:
        """Return all rows, shape (size,), and their derivatives by the unknowns `active`."""
        key = tuple(active)
        schedule = self._schedules.get(key)
        if schedule is None:
            schedule = self._schedules[key] = self._scheduled(key)
        with np.errstate(all="ignore"):
            values = self._unchanged(vector)
            self._run(schedule, values)
            self._last = values
            rows = self._rows(schedule, values, len(key))
            # Also infinite if squares overflow, which only costs time.
            if not math.isfinite(np.vdot(rows[1], rows[1])):
                values = list(self._start)
                for k, unknown in self._unknowns:
                    values[k] = vector[unknown]
                self._run(schedule, values, careful=True)
                rows = self._rows(schedule, values, len(key))
        return rows

    def _unchanged(self, vector: Array) -> list[Any]:
        """Return the values that are the same as in the last call, and None for the others."""
        values = self._last + self._start[len(self._last) :]
        changed = 0
        for k, unknown in self._unknowns:
            value = vector[unknown]
            if values[k] != value:
                values[k] = value
                changed |= 1 << unknown
        for k in self._changed(changed):
            values[k] = None
        return values

    def _changed(self, unknowns: int) -> list[int]:
        """Return the places of quantities that depend on some unknowns, given by their bits."""
        key = unknowns, len(self._start)
        if key not in self._changing:
            if len(self._changing) >= MAX_REMEMBERED:
                self._changing.clear()
            self._changing[key] = [
                k for n, k in self._place.items() if n.unknowns & unknowns and n.arguments
            ]
        return self._changing[key]

    def _run(self, schedule: _Schedule, values: list[Any], *, careful: bool = False) -> None:
        """Compute all values that are None; if `careful`, derivatives of zero stay zero."""
        grid, scaled = self._recorder.grid, OPERATIONS[SCALED]
        for stage in schedule.stages:
            missing = [s for s in stage.integrals if values[s.place] is None]
            if missing:
                curves = np.empty((len(missing), len(grid.times)))
                for row, step in zip(curves, missing, strict=True):
                    row[:] = values[step.first]
                integrals = grid.cumulative(curves)
                for step, integral in zip(missing, integrals, strict=True):
                    values[step.place] = integral
            for place, function, first, second in stage.steps:
                if values[place] is None:
                    if second < 0:
                        values[place] = function(values[first])
                    elif careful and function is scaled:
                        values[place] = scaled_with_zeros(values[first], values[second])
                    else:
                        values[place] = function(values[first], values[second])

    def _rows(self, schedule: _Schedule, values: list[Any], count: int) -> tuple[Array, Array]:
        """Return all rows and their derivatives, from the values of all quantities."""
        residuals, derivatives = np.empty(self.size), np.empty((self.size, count))
        for one, places in zip(self._sums, schedule.sums, strict=True):
            block, slopes = residuals[one.rows], derivatives[one.rows]
            np.matmul(one.known, np.array([values[c] for c in places.coefficients]), out=block)
            inner = np.array([[values[k] for k in row] for row in places.slopes])
            np.matmul(one.known, inner.reshape(len(places.slopes), count), out=slopes)
            for curve, coefficient in places.products:
                block += values[coefficient] * (one.weights * values[curve])
            for curve, coefficient, column in places.terms:
                slopes[:, column] += values[coefficient] * (one.weights * values[curve])
        return residuals, derivatives

    def _scheduled(self, active: Sequence[int]) -> _Schedule:
        """Return the operations that derivatives by some unknowns need."""
        recorder = self._recorder
        zero = recorder.zero
        slopes = [
            [[derivative(recorder, c, k) for k in active] for c in one.coefficients]
            for one in self._sums
        ]
        terms = [
            [
                (curve, coefficient, column)
                for a, c in one.products
                for column, k in enumerate(active)
                for curve, coefficient in (
                    (a, derivative(recorder, c, k)),
                    (derivative(recorder, a, k), c),
                )
                if curve is not zero and coefficient is not zero
            ]
            for one in self._sums
        ]
        roots = [c for one in self._sums for c in one.coefficients]
        roots += [n for one in self._sums for product in one.products for n in product]
        roots += [n for one in slopes for row in one for n in row]
        roots += [n for one in terms for term in one for n in term[:2]]
        nodes = _needed(roots)
        for node in nodes:
            if node not in self._place:
                self._place[node] = len(self._start)
                self._start.append(node.value)
                if node.operation == "unknown":
                    self._unknowns.append((self._place[node], node.unknowns.bit_length() - 1))
        place = self._place
        places = [
            _Places(
                [place[c] for c in one.coefficients],
                [[place[n] for n in row] for row in own_slopes],
                [(place[a], place[c]) for a, c in one.products],
                [(place[a], place[c], k) for a, c, k in own_terms],
            )
            for one, own_slopes, own_terms in zip(self._sums, slopes, terms, strict=True)
        ]
        return _Schedule(_stages(nodes, place), places)


def _needed(roots: Iterable[Node]) -> list[Node]:
    """Return all quantities on which some others depend, in the order of evaluation."""
    nodes: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in nodes:
            nodes.add(node)
            waiting.extend(node.arguments)
    return sorted(nodes, key=lambda node: node.number)


def _stages(nodes: Sequence[Node], place: Mapping[Node, int]) -> list[_Stage]:
    """Return the operations by the number of nested integrals."""
    depth: dict[Node, int] = {}
    stages = [_Stage([], [])]
    for node in nodes:
        integral = node.operation == INTEGRAL
        depth[node] = max((depth[a] for a in node.arguments), default=0) + integral
        if not node.arguments:
            continue
        while len(stages) <= depth[node]:
            stages.append(_Stage([], []))
        function = abs if integral else OPERATIONS[node.operation]
        first, *second = (place[a] for a in node.arguments)
        step = _Step(place[node], function, first, second[0] if second else -1)
        stage = stages[depth[node]]
        (stage.integrals if integral else stage.steps).append(step)
    return stages


def _groups(
    sums: Sequence[tuple[Separated, Array]], *, together: bool
) -> list[list[tuple[Separated, Array]]]:
    """Return groups of one sum; `together` puts those of known functions of time in the first."""
    alone = [[s] for s in sums]
    if not together:
        return alone
    known = [s for s in sums if all(curve.value is not None for curve in s[0].terms)]
    others = [group for group in alone if group[0] not in known]
    return [known, *others] if known else others


def _weighted(sums: Sequence[tuple[Separated, Array]], first: int, condensed: bool) -> _Sum:
    """Return stacked sums whose rows begin at `first`: a single one, or several known ones."""
    blocks: list[Array] = []
    coefficients: list[Node] = []
    products: list[tuple[Node, Node]] = []
    for one, weights in sums:
        curves: list[Any] = []
        if one.known is not one.recorder.zero:
            curves.append(one.known.value)
            coefficients.append(one.recorder.one)
        for curve, coefficient in one.terms.items():
            if curve.value is None:
                products.append((curve, coefficient))
            else:
                curves.append(curve.value)
                coefficients.append(coefficient)
        with np.errstate(all="ignore"):
            known = np.empty((len(weights), len(curves)))
            for column, value in zip(known.T, curves, strict=True):
                column[:] = weights * value
        shorter = condensed and not products and len(curves) < len(weights)
        blocks.append(np.linalg.qr(known)[1] if shorter else known)
    known = blocks[0] if len(blocks) == 1 else block_diag(*blocks)
    rows = slice(first, first + len(known))
    return _Sum(rows, known, coefficients, sums[0][1], products)
