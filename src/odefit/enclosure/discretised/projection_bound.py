"""A lower bound of the objective of a discretised problem, for any unknowns.

Between the points of a mesh the scheme's solution is a polynomial, so that measured quantities are
linear functions of values at points. If there are many measurements per point, the distance of the
data from their projection onto all such functions is a lower bound of the objective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.residuals import ResidualsAtTime
from odefit.structure.series.tape import Term

MIN_SINGULAR_RATIO = 1e-8
"""Smallest ratio of the singular values of columns of length one for which the columns count as
independent."""

ENTRY_ROUNDING = 1e-15
"""Relative error of an entry of the matrix: weights of a scheme are quotients of short products."""


class Readout(NamedTuple):
    """A state between points of a mesh: weights of states and right-hand sides at points."""

    states: Mapping[int, float]
    right_hand_sides: Mapping[int, float]


class _Measurement(NamedTuple):
    """One measurement as an affine function of states and unknowns, by entry of the tape.

    The `value` is the measured one minus the constant, in standard deviations.
    """

    coefficients: dict[int, float]
    segment: int
    readout: Readout
    value: float
    sd: float


def projection_bound(
    measured: Sequence[ResidualsAtTime],
    readouts: Iterable[tuple[int, Readout]],
    states: Sequence[int],
    unknowns: Sequence[int],
) -> float:
    """Return a lower bound of the sum of squares of one condition's residuals.

    Residuals at the initial time count only if no event changes a state there. `readouts` give for
    each time the number of the segment, and its states as combinations of values at points.
    """
    measurements: list[_Measurement] = []
    for residual, (segment, readout) in zip(measured, readouts, strict=True):
        for term, value, sd in residual.terms():
            coefficients, constant = _affine(term, [*states, *unknowns])
            if constant is not None:
                measurements.append(
                    _Measurement(coefficients, segment, readout, (value - constant) / sd, sd)
                )
    free = _independent_unknowns([measurement.coefficients for measurement in measurements], states)
    columns: dict[tuple[object, ...], int] = {}
    rows: list[dict[int, float]] = []
    for coefficients, segment, readout, _, sd in measurements:
        row: dict[int, float] = {}
        for entry, coefficient in coefficients.items():
            if entry in free:
                row[columns.setdefault((entry,), len(columns))] = coefficient / sd
            elif entry in states:
                for kind, weights in zip(("x", "f"), readout, strict=True):
                    for point, weight in weights.items():
                        place = columns.setdefault((kind, segment, point, entry), len(columns))
                        row[place] = row.get(place, 0.0) + coefficient * weight / sd
        rows.append(row)
    if len(rows) <= len(columns):
        return 0.0
    matrix = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        matrix[i, list(row)] = list(row.values())
    return _squared_distance(matrix, np.array([measurement.value for measurement in measurements]))


def _independent_unknowns(rows: Sequence[Mapping[int, float]], states: Sequence[int]) -> set[int]:
    """Return the unknowns that do more than a shift of one state.

    A scheme's polynomial reproduces constants, so that the others need no separate column.
    """
    seen: dict[int, set[tuple[int, float] | None]] = {}
    for coefficients in rows:
        state_entries = [entry for entry in coefficients if entry in states and coefficients[entry]]
        for entry in coefficients.keys() - set(states):
            shift = (
                (state_entries[0], coefficients[entry] / coefficients[state_entries[0]])
                if len(state_entries) == 1
                else None
            )
            seen.setdefault(entry, set()).add(shift)
    return {entry for entry, shifts in seen.items() if len(shifts) > 1 or None in shifts}


def _affine(term: Term, variables: Sequence[int]) -> tuple[dict[int, float], float | None]:
    """Return the coefficients of an affine term, by variable, and its constant.

    The constant is None if the term is not affine in these variables alone.
    """
    tape = term.tape
    coefficients = {}
    for entry in tape.depends(term):
        coefficient = tape.derivative(term, Term(tape, entry)).value
        if entry not in variables or coefficient is None:
            return {}, None
        coefficients[entry] = float(coefficient)
    constant = tape.substitute(term, {entry: tape.number(0) for entry in coefficients}).value
    return coefficients, None if constant is None else float(constant)


def _squared_distance(matrix: Array, right: Array) -> float:
    """Return a lower bound of min |matrix y - right|^2 over all y; 0 if columns are dependent."""
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix[:, norms > 0] / norms[norms > 0]
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    if s.min(initial=1.0) < MIN_SINGULAR_RATIO * s.max(initial=1.0):
        return 0.0
    rest = right - u @ (u.T @ right)
    rest -= u @ (u.T @ rest)
    length, total = float(np.linalg.norm(rest)), float(np.linalg.norm(right))
    if length == 0.0:
        return 0.0
    # |matrix y - right| >= rest (right - matrix y) / |rest| for any `rest`. Either |matrix y| is
    # more than twice |right|, and the distance more than |right|; or y is limited.
    largest = 2.0 * total / float(s.min(initial=1.0)) * (1 + 1e-6)
    leak = float(np.abs(rest @ scaled).sum()) / length
    leak += ENTRY_ROUNDING * len(right) * scaled.shape[1]
    low = float(rest @ right) / length * (1 - 1e-12) - leak * largest
    return float(max(low, 0.0) ** 2 * (1 - 1e-12))
