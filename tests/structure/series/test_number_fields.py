"""Products of series of sparse matrices, over the complex numbers and modulo a prime."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.structure.series import number_fields
from odefit.structure.series.number_fields import COMPLEX, MODULAR, PRIME, MatrixSeries


def coefficient(matrix: np.ndarray, x: np.ndarray, j: int) -> np.ndarray:
    """Coefficient j of a product of series, in Python's integers of any size."""
    left, right = matrix.astype(object), x.astype(object)
    return np.asarray(sum(left[j - i] @ right[i] for i in range(j + 1)))


@pytest.mark.parametrize("largest", [PRIME, 7])
@pytest.mark.parametrize("terms", [number_fields.MAX_TERMS, 3])
def test_products_modulo_the_prime_are_exact(
    largest: int, terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_fields, "MAX_TERMS", terms)
    rng = np.random.default_rng(1)
    rows, columns = np.array([0, 0, 2, 2, 2]), np.array([1, 3, 0, 1, 2])
    values = rng.integers(PRIME - largest, PRIME, (6, 5, 2))
    matrix = MatrixSeries((3, 4), rows, columns, values)
    x = rng.integers(PRIME - largest, PRIME, (2, 6, 4, 3))
    for j in range(6):
        found = MODULAR.convolved(matrix, x, j)
        for b in range(2):
            exact = coefficient(matrix.dense[b], x[b], j) % PRIME
            assert (found[b] == exact).all()


def test_products_of_complex_series_are_those_of_dense_matrices() -> None:
    rng = np.random.default_rng(2)
    values = (rng.normal(size=(4, 3, 2)) * np.exp(2j)).astype(np.complex128)
    matrix = MatrixSeries((2, 2), np.array([0, 1, 1]), np.array([0, 0, 1]), values)
    x = rng.normal(size=(2, 4, 2, 5)).astype(np.complex128)
    for j in range(4):
        expected = sum(matrix.dense[:, j - i] @ x[:, i] for i in range(j + 1))
        np.testing.assert_allclose(COMPLEX.convolved(matrix, x, j), expected, rtol=1e-13)


def test_a_matrix_without_entries_has_zero_products() -> None:
    none = np.zeros(0, dtype=np.intp)
    matrix = MatrixSeries((2, 3), none, none, np.zeros((4, 0, 1), dtype=np.int64))
    assert not MODULAR.convolved(matrix, np.ones((1, 4, 3, 2), dtype=np.int64), 3).any()


def test_products_of_matrices_of_residues_are_exact() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.integers(PRIME - 9, PRIME, (4, 300)), rng.integers(0, PRIME, (300, 5))
    exact = left.astype(object) @ right.astype(object) % PRIME
    assert (number_fields.residues_product(left, right) == exact).all()
