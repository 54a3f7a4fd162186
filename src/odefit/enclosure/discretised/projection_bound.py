"""What no polynomial of a discretised problem can fit, whatever the unknowns are.

Between the points of a mesh the scheme's solution is a polynomial, so that what is measured is a
linear function of values at points where many measurements fall on few points. Their least squares
distance from all such functions is a lower bound of the objective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from odefit.enclosure.residuals import ResidualsAtTime
from odefit.problem.arrays import Array
from odefit.structure.tape import Term

INDEPENDENT = 1e-8
"""Least singular value, over the largest, of columns of length one that are told apart."""

ROUNDING = 1e-15
"""Of an entry of the matrix, relative: weights of a scheme are quotients of short products."""

Weights = tuple[Mapping[int, float], Mapping[int, float]]
"""Of values and of slopes at points, for one measurement."""


def least_distance(
    measured: Sequence[ResidualsAtTime],
    weights: Iterable[tuple[int, Weights]],
    states: Sequence[int],
    unknowns: Sequence[int],
) -> float:
    """Lower bound of the sum of squares of one condition's residuals.

    Parameters
    ----------
    measured
        Those that are no initial values.
    weights
        Number of the segment of each, and of what its states are made.
    states, unknowns
        Entries of the tape.
    """
    found: list[tuple[dict[int, float], int, Weights, float, float]] = []
    for residual, (segment, parts) in zip(measured, weights, strict=True):
        for term, value, sd in residual.terms():
            slopes, constant = _affine(term, [*states, *unknowns])
            if constant is not None:
                found.append((slopes, segment, parts, (value - constant) / sd, sd))
    free = _not_shifts([slopes for slopes, *_ in found], states)
    columns: dict[tuple[object, ...], int] = {}
    rows: list[dict[int, float]] = []
    for slopes, segment, (of_values, of_slopes), _, sd in found:
        row: dict[int, float] = {}
        for entry, slope in slopes.items():
            if entry in free:
                row[columns.setdefault((entry,), len(columns))] = slope / sd
            elif entry in states:
                for kind, parts_of in (("x", of_values), ("f", of_slopes)):
                    for point, weight in parts_of.items():
                        place = columns.setdefault((kind, segment, point, entry), len(columns))
                        row[place] = row.get(place, 0.0) + slope * weight / sd
        rows.append(row)
    if len(rows) <= len(columns):
        return 0.0
    matrix = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        matrix[i, list(row)] = list(row.values())
    return _distance(matrix, np.array([right for *_, right, _ in found]))


def _not_shifts(rows: Sequence[Mapping[int, float]], states: Sequence[int]) -> set[int]:
    """Unknowns that do more than a shift of one state would do as well.

    A scheme's polynomial reproduces constants, so that the others need no column of their own.
    """
    seen: dict[int, set[tuple[int, float] | None]] = {}
    for slopes in rows:
        own = [entry for entry in slopes if entry in states and slopes[entry]]
        for entry in slopes.keys() - set(states):
            shift = (own[0], slopes[entry] / slopes[own[0]]) if len(own) == 1 else None
            seen.setdefault(entry, set()).add(shift)
    return {entry for entry, shifts in seen.items() if len(shifts) > 1 or None in shifts}


def _affine(term: Term, variables: Sequence[int]) -> tuple[dict[int, float], float | None]:
    """Derivatives by the variables on which a term depends, and its value where they are zero.

    None unless they are numbers: the term is not affine in these variables alone.
    """
    tape = term.tape
    found = {}
    for entry in tape.depends(term):
        slope = tape.derivative(term, Term(tape, entry)).value
        if entry not in variables or slope is None:
            return {}, None
        found[entry] = float(slope)
    constant = tape.substitute(term, {entry: tape.number(0) for entry in found}).value
    return found, None if constant is None else float(constant)


def _distance(matrix: Array, right: Array) -> float:
    """Lower bound of min |matrix y - right|^2 over all y; 0 if columns cannot be told apart."""
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix[:, norms > 0] / norms[norms > 0]
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    if s.min(initial=1.0) < INDEPENDENT * s.max(initial=1.0):
        return 0.0
    rest = right - u @ (u.T @ right)
    rest -= u @ (u.T @ rest)
    length, whole = float(np.linalg.norm(rest)), float(np.linalg.norm(right))
    if length == 0.0:
        return 0.0
    # |matrix y - right| >= rest (right - matrix y) / |rest| for any `rest`. Either |matrix y| is
    # more than twice |right|, and the distance more than |right|; or y is limited.
    largest = 2.0 * whole / float(s.min(initial=1.0)) * (1 + 1e-6)
    leak = float(np.abs(rest @ scaled).sum()) / length
    leak += ROUNDING * len(right) * scaled.shape[1]
    low = float(rest @ right) / length * (1 - 1e-12) - leak * largest
    return float(max(low, 0.0) ** 2 * (1 - 1e-12))
