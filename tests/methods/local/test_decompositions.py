"""Tests of decompositions that do not fail."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.local.decompositions import singular_value_decomposition


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4)])
@pytest.mark.parametrize("converges", [True, False])
def test_the_factors_are_those_of_the_matrix_though_the_faster_method_fails(
    shape: tuple[int, int], converges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = np.random.default_rng(0).normal(size=shape) * np.logspace(-30, 0, shape[1])
    if not converges:

        def fails(*_: object, **__: object) -> None:
            raise np.linalg.LinAlgError("SVD did not converge")

        monkeypatch.setattr(np.linalg, "svd", fails)
    u, s, vt = singular_value_decomposition(matrix)
    k = min(shape)
    assert (u.shape, s.shape, vt.shape) == ((shape[0], k), (k,), (k, shape[1]))
    np.testing.assert_allclose(u * s @ vt, matrix, atol=1e-14)
    np.testing.assert_allclose(u.T @ u, np.eye(k), atol=1e-13)
    assert (np.diff(s) <= 0).all()
