"""Kernels do what the same functions do in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.kernels.expressions import UnsupportedError
from odefit.common.kernels.kernel import Kernel, compiled

TABLE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
STEP = 3


class Pair(NamedTuple):
    first: Array
    number: int


class Nested(NamedTuple):
    pair: Pair
    factor: float


@compiled
def loops(n: int) -> tuple[int, int, int, int]:
    up = down = skipped = searched = 0
    for i in range(2, n, STEP):
        up += i
    for i in range(n, -1, -1):
        down = 2 * down + i
        if down > 1000:
            break
    for i in range(n):
        if i % 2:
            continue
        skipped += i
    while True:
        searched += 1
        if searched * searched >= n:
            break
    return up, down, skipped, searched


@compiled
def over_values(values: IntArray, x: float) -> tuple[float, float]:
    total = 0.0
    for value in values:
        total += value
    best = 0.0
    for part in (x, 2.0 * x, -x):
        if part < best:
            continue
        best = part
    return total, best


@compiled
def parts_of_arrays(x: Array, table: Array) -> tuple[Array, Array, float, int]:
    doubled = np.zeros((2, 3))
    for i in range(2):
        for j in range(3):
            doubled[i, j] = 2.0 * table[i, j] + TABLE[i, j]
    row = table[1, 1:]
    row[0] += 100.0
    flat = table.reshape(table.size)
    again = flat.reshape(3, -1)
    tail = x[2:].copy()
    tail[-1] = again[2, 1]
    n, m = again.shape
    return doubled, tail, flat[4], 10 * n + m


@compiled
def in_tuples(nested: Nested) -> float:
    pair = nested.pair
    x, y = pair.first[0], pair.first[pair.number]
    x, y = y, x
    return nested.factor * x - y if nested.factor > 0.0 else np.inf


@compiled
def of_kinds(small: npt.NDArray[np.uint32], flags: BoolArray, on: bool) -> int:
    flags[1] = on
    count = 0
    for k in range(small.shape[0]):
        count += flags[k]
        small[k] = small[k] + 4_000_000_000
    return count


@compiled
def shifted(x: Array, by: float) -> Array:
    longer = np.empty(x.shape[0] + 1)
    for k in range(x.shape[0]):
        longer[k] = x[k] + by
    longer[x.shape[0]] = by
    return longer


@compiled
def repeated(x: Array, count: int) -> Array:
    while count > 0:
        x = shifted(x, 1.0 * count)
        count -= 1
    return x


@pytest.mark.parametrize("n", [0, 1, 7, 20])
def test_loops(n: int) -> None:
    assert loops(n) == loops.function(n)


def test_loops_over_arrays_and_tuples() -> None:
    assert over_values(np.array([3, -1, 4]), 0.5) == (6.0, 1.0)
    assert over_values(np.array([], dtype=np.intp), -0.5) == (0.0, 0.5)


def test_parts_of_arrays_are_views_and_copies_are_not() -> None:
    found: list[Any] = []
    expected: list[Any] = []
    for function, results in ((parts_of_arrays, found), (parts_of_arrays.function, expected)):
        x, table = np.arange(5.0), np.arange(6.0).reshape(2, 3)
        results += [*function(x, table), x, table]
    for value, same in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, same)


def test_named_tuples_may_hold_tuples() -> None:
    nested = Nested(Pair(np.array([1.0, 2.0, 5.0]), 2), 3.0)
    assert in_tuples(nested) == in_tuples.function(nested) == 14.0
    assert in_tuples(nested._replace(factor=-1.0)) == np.inf


def test_elements_of_all_types() -> None:
    small, flags = np.array([1, 2**28, 7], dtype=np.uint32), np.array([True, False, True])
    assert of_kinds(small, flags, True) == 3
    assert flags.all()
    assert small.tolist() == [4_000_000_001, 4_268_435_456, 4_000_000_007]


def test_arrays_of_other_kernels_grow() -> None:
    np.testing.assert_array_equal(
        repeated(np.array([0.5]), 40), repeated.function(np.array([0.5]), 40)
    )


def unknown(x: float) -> float:
    return float(np.cbrt(x))


def retyped(x: float) -> float:
    n = 1
    n = x  # type: ignore[assignment]  # what is refused
    return n


def sliced(x: Array) -> None:
    x[:] = 1.0


def several(x: float) -> Any:
    if x > 1.0:
        return x
    return x, x


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (unknown, 1.0, "not part of kernels, line [0-9]+: np.cbrt"),
        (retyped, 1.0, "a float for an integer variable, line [0-9]+: n"),
        (sliced, np.zeros(2), "line [0-9]+: slice|line [0-9]+: :"),
        (several, 1.0, "another type of result than before"),
    ],
)
def test_statements_outside_the_language_are_refused_with_their_line(
    function: Callable[[Any], Any], argument: Any, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        Kernel(function)(argument)
