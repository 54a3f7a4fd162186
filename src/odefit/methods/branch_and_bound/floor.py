"""What no polynomial of a discretised problem can fit, whatever the unknowns are.

Between the points of a mesh the scheme's solution is a polynomial, so that what is measured is a
linear function of values at points where many measurements fall on few points. Their least squares
distance from all such functions is a lower bound of the objective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from odefit.enclosure.residuals import Residual
from odefit.problem.algebras import Array
from odefit.structure.tape import Term

REACH = 1e3
"""Values at points are not larger than this times the data, which rounding is allowed for."""

Weights = tuple[Mapping[int, float], Mapping[int, float]]
"""Of values and of slopes at points, for one measurement."""


def least_distance(
    measured: Sequence[Residual],
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
    columns: dict[tuple[object, ...], int] = {}
    rows: list[dict[int, float]] = []
    right: list[float] = []
    for residual, (segment, (of_values, of_slopes)) in zip(measured, weights, strict=True):
        for term, value, sd in residual.terms():
            slopes, constant = _affine(term, [*states, *unknowns])
            if constant is None:
                continue
            row: dict[int, float] = {}
            for entry, slope in slopes.items():
                if entry not in states:
                    row[columns.setdefault((entry,), len(columns))] = slope / sd
                    continue
                for kind, parts in (("x", of_values), ("f", of_slopes)):
                    for point, weight in parts.items():
                        key = (kind, segment, point, entry)
                        place = columns.setdefault(key, len(columns))
                        row[place] = row.get(place, 0.0) + slope * weight / sd
            rows.append(row)
            right.append((value - constant) / sd)
    if len(rows) <= len(columns):
        return 0.0
    matrix = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        matrix[i, list(row)] = list(row.values())
    return _distance(matrix, np.array(right))


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
    """Lower bound of min |matrix y - right|^2 over y of a reasonable size."""
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(norms > 0, norms, 1.0)
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    basis = u[:, s > 1e-10 * s.max(initial=0.0)]
    rest = right - basis @ (basis.T @ right)
    rest -= basis @ (basis.T @ rest)
    length = float(np.linalg.norm(rest))
    if length == 0.0:
        return 0.0
    # |matrix y - right| >= rest (right - matrix y) / |rest|, for any `rest`.
    leak = float(np.abs(rest @ scaled).sum() / length)
    largest = REACH * float(np.abs(right).max(initial=0.0))
    low = float(rest @ right) / length * (1 - 1e-12) - leak * largest
    return max(low, 0.0) ** 2
