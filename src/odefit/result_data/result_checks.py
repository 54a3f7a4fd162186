"""Checks that the numbers of a result file agree with each other: it may not be trustworthy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.result_data import ResultData, Solution, values_at

CLOSENESS = 1e-9
"""Relative difference up to which a value agrees with the one computed from the unknowns: other
versions of NumPy may differ in the last digit."""

REPEATED = (
    "objective", "log_likelihood", "measure", "values", "parameters", "initial", "noise", "problem",
)  # fmt: skip
"""Keys of a file that repeat values of other keys."""


def check_shapes(result: ResultData) -> None:
    """Check that arrays are as long as there are unknowns; a ValueError names the place."""
    n, u = len(result.problem.keys), result.uncertainty
    shapes: list[tuple[str, Array, tuple[int, ...]]]
    shapes = [(f"solutions[{i}].vector", s.vector, (n,)) for i, s in enumerate(result.solutions)]
    for i, s in enumerate(result.starts):
        shapes += [(f"starts[{i}].start", s.start, (n,)), (f"starts[{i}].vector", s.vector, (n,))]
    if u is not None:
        m = len(u.keys)
        expected = {"standard_errors": (m,), "intervals": (m, 2), "covariance": (m, m)}
        expected["correlation"] = (m, m)
        shapes += [(f"uncertainty.{name}", getattr(u, name), s) for name, s in expected.items()]
        if not {*u.keys} <= {*result.problem.keys}:
            raise ValueError("uncertainty.keys: not all are unknowns")
    for place, array, shape in shapes:
        if array.shape != shape:
            raise ValueError(f"{place}: expected the shape {shape}, got {array.shape}")


def check_values(result: ResultData) -> None:
    """Check that each solution has the values of its unknowns; a ValueError names the place."""
    for i, solution in enumerate(result.solutions):
        place = f"solutions[{i}]"
        if not np.isfinite(solution.vector).all():
            raise ValueError(f"{place}.vector: expected finite numbers")
        parameters, initial = values_at(result.problem, solution.vector)
        _check_table(f"{place}.parameters", solution.parameters, parameters)
        _check_table(f"{place}.initial", solution.initial, initial)
        _check_nodes(place, solution)


def check_repeated(read: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    """Check that repeated values in a file agree with those of its other keys.

    `again` is computed from the result in the file; a ValueError names the key of a difference.
    """
    for key in REPEATED:
        if key in read and read[key] != again.get(key):
            raise ValueError(f"{key}: contradicts the other parts of the file")


def _check_table(place: str, table: Mapping[str, float], expected: Mapping[str, float]) -> None:
    if {*table} != {*expected}:
        raise ValueError(f"{place}: expected values of {', '.join(expected) or 'nothing'}")
    for key, value in expected.items():
        both = math.isnan(value) and math.isnan(table[key])
        if not (both or math.isclose(table[key], value, rel_tol=CLOSENESS)):
            raise ValueError(f"{place}.{key}: {table[key]:g} is not the {value:g} of the unknowns")


def _check_nodes(place: str, solution: Solution) -> None:
    nodes = solution.nodes
    if nodes is None:
        return
    if len(nodes.times) != len(nodes.values):
        raise ValueError(f"{place}.nodes: expected times and values of each experiment")
    for times, values in zip(nodes.times, nodes.values, strict=True):
        if values.ndim != 2 or times.shape != values.shape[:1]:
            raise ValueError(f"{place}.nodes: expected a row of values for each time")
