"""Row spaces modulo the prime, against ranks of integer matrices."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.echelon import Echelon
from odefit.structure.series.number_fields import PRIME


def random_rows(rng: np.random.Generator, count: int, width: int, rank: int) -> np.ndarray:
    """Rows of a matrix of that rank, modulo the prime."""
    left = rng.integers(0, 50, (count, rank))
    right = rng.integers(0, 50, (rank, width))
    return np.asarray(left @ right % PRIME, dtype=np.int64)


@pytest.mark.parametrize("seed", range(10))
def test_the_rank_is_that_of_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 7))
    rows = random_rows(rng, 12, 9, rank)
    echelon = Echelon(9)
    added = [echelon.add(row) for row in rows]
    assert echelon.rank == rank == sum(added) == np.linalg.matrix_rank(rows.astype(float))


@pytest.mark.parametrize("seed", range(10))
def test_the_null_space_is_sent_to_zero_and_has_the_right_dimension(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 7, 9, 5)
    echelon = Echelon(9)
    for row in rows:
        echelon.add(row)
    null = echelon.null_space()
    assert null.shape == (9 - echelon.rank, 9)
    for row in rows:
        for vector in null:
            assert sum(int(a) * int(b) for a, b in zip(row, vector, strict=True)) % PRIME == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_column_is_determined_if_no_null_vector_moves_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    echelon = Echelon(8)
    for row in random_rows(rng, 5, 8, 4):
        row[2] = 0
        echelon.add(row)
    unit = np.zeros(8, dtype=np.int64)
    unit[2] = 5
    echelon.add(unit)
    null = echelon.null_space()
    for column in range(8):
        assert echelon.determined[column] == (not null[:, column].any())
    assert echelon.determined[2]


def test_large_residues_do_not_overflow() -> None:
    echelon = Echelon(40)
    rng = np.random.default_rng(0)
    rows = rng.integers(PRIME - 100, PRIME, (40, 40))
    assert all(echelon.add(row) for row in rows)
    assert not echelon.add((rows[3] + 5 * (rows[7] % PRIME)) % PRIME)


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_reduced_form_are_used_unchanged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    basis = Echelon.of(random_rows(rng, 6, 9, 4)).null_space()
    taken, built = Echelon.reduced(basis), Echelon.of(basis)
    assert taken is not None
    assert taken.rank == built.rank == 5
    assert not any(taken.add(row) for row in built.rows)
    assert np.array_equal(taken.determined, built.determined)


def test_rows_that_are_not_reduced_are_refused() -> None:
    assert Echelon.reduced(np.array([[1, 2, 3], [1, 5, 3]], dtype=np.int64)) is None


def test_a_span_of_many_rows_ends_at_the_deadline() -> None:
    with pytest.raises(UnfinishedError):
        Echelon.of(np.eye(9, dtype=np.int64), Deadline(work=1e4))
