"""What rows of information determine, beside the inverse of the information matrix."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.designs.intervals import Determined


@pytest.mark.parametrize("count", [5, 3, 40])
def test_errors_are_those_of_the_inverse_information(count: int) -> None:
    rng = np.random.default_rng(count)
    rows, gradients = rng.standard_normal((count, 3)), rng.standard_normal((3, 4))
    covariance = np.linalg.inv(rows.T @ rows)
    expected = np.sqrt(np.einsum("is,ij,js->s", gradients, covariance, gradients))
    assert Determined(rows).errors(gradients) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("count", [2, 40])
def test_undetermined_quantities_have_no_standard_error(count: int) -> None:
    rng = np.random.default_rng(count)
    rows = np.outer(rng.standard_normal(count), [1.0, 1.0, 0.0])
    gradients = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]).T
    errors = Determined(rows).errors(gradients)
    assert errors[0] == pytest.approx(1.0 / np.linalg.norm(rows[:, 0]))
    assert np.isinf(errors[1:]).all()


def test_empty_rows_determine_nothing() -> None:
    assert np.isinf(Determined(np.zeros((0, 2))).errors(np.eye(2))).all()
