"""Batched matrix exponentials against SciPy's, and against forty digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import expm

from odefit.simulation.engines.linearized.exponentials import exponential, phi_product

Array = npt.NDArray[np.float64]

ROUNDING = 2.0**-53
NORMS = (1e-9, 0.01, 0.2, 0.9, 2.0, 5.0, 30.0, 1e3)


def stack(count: int, n: int, norm: float, seed: int = 0) -> Array:
    """Matrices without growth: one eigenvalue is near the imaginary axis, all others left of it."""
    found = np.random.default_rng(seed).standard_normal((count, n, n))
    found -= (np.linalg.eigvals(found).real.max(axis=1) + 0.01)[:, None, None] * np.eye(n)
    return np.asarray(found * (norm / np.abs(found).sum(axis=1).max(axis=1))[:, None, None])


def block(matrices: Array, columns: Array) -> Array:
    """phi(Z) R by the exponential of the whole block matrix."""
    count, n, c = columns.shape
    whole = np.zeros((count, n + c, n + c))
    whole[:, :n, :n], whole[:, :n, n:] = matrices, columns
    return np.asarray(expm(whole)[:, :n, n:])


def distance(found: Array, expected: Array) -> float:
    """The worst of the stack, relative to the largest entry of each."""
    size = np.abs(expected).max(axis=(1, 2))
    return float((np.abs(found - expected).max(axis=(1, 2)) / size).max())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [2, 3, 5, pytest.param(9, marks=pytest.mark.slow)])
def test_exponentials_are_exact_to_rounding(n: int, norm: float) -> None:
    """Rounding errors of scaling and squaring grow with n times the norm (Higham 2005)."""
    matrices = stack(4, n, norm)
    with mp.workdps(40):
        exact = [mp.expm(mp.matrix(A.tolist()), method="taylor") for A in matrices]
        expected = np.array([np.array(E.tolist(), dtype=float) for E in exact])
    assert distance(exponential(matrices), expected) < ROUNDING * (20 + 4 * n * norm)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("count", "n", "c"), [(7, 1, 1), (6, 3, 2), (3, 12, 5), (1, 120, 3)])
def test_few_columns_are_those_of_the_block_exponential(
    count: int, n: int, c: int, norm: float
) -> None:
    matrices = stack(count, n, norm)
    columns = np.random.default_rng(1).standard_normal((count, n, c))
    found = phi_product(matrices, columns)
    assert distance(found, block(matrices, columns)) < 1e-13 * (1 + 0.3 * norm)


def test_one_stack_may_hold_matrices_of_all_norms() -> None:
    matrices = np.concatenate([stack(1, 4, norm) for norm in NORMS])
    columns = np.random.default_rng(1).standard_normal((len(NORMS), 4, 2))
    rows = np.concatenate([exponential(A[None]) for A in matrices])
    assert distance(exponential(matrices), rows) < 1e-13
    each = [phi_product(matrices[i : i + 1], columns[i : i + 1]) for i in range(len(NORMS))]
    assert distance(phi_product(matrices, columns), np.concatenate(each)) < 1e-13


def test_large_columns_cost_no_accuracy() -> None:
    """The block matrix has the norm 1e12, which would take forty squarings."""
    matrices = stack(5, 3, 0.5)
    columns = np.random.default_rng(1).standard_normal((5, 3, 2))
    expected = 1e12 * phi_product(matrices, columns)
    assert distance(phi_product(matrices, 1e12 * columns), expected) < 20 * ROUNDING
    rows = exponential(np.concatenate([matrices, 1e12 * columns], axis=2))
    assert distance(rows[:, :, 3:], expected) < 20 * ROUNDING


def test_a_stiff_decay_ends_at_its_steady_state() -> None:
    matrices = np.array([[[-1e6, 0.0], [1.0, -1.0]]])
    found = phi_product(matrices, np.array([[[1e6], [0.0]]]))
    assert found[0, 0, 0] == pytest.approx(1.0, rel=1e-12)
    assert exponential(matrices)[0, 0, 0] == 0.0


def test_a_non_finite_element_affects_its_own_matrix_alone() -> None:
    matrices = stack(4, 3, 3.0)
    columns = np.ones((4, 3, 1))
    expected = phi_product(matrices, columns)
    matrices[1, 0, 0], matrices[2, 1, 1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        found = phi_product(matrices, columns)
    assert np.isnan(found[[1, 2]]).any(axis=(1, 2)).all()
    assert distance(found[[0, 3]], expected[[0, 3]]) < 1e-14


def test_an_empty_stack_has_no_exponentials() -> None:
    assert exponential(np.zeros((0, 3, 3))).shape == (0, 3, 3)
    assert phi_product(np.zeros((0, 3, 3)), np.zeros((0, 3, 2))).shape == (0, 3, 2)
