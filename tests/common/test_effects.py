"""Effects of unknowns do not depend on units."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from odefit.common.effects import acting, column_space, null_space, undetermined

RNG = np.random.default_rng(3)
DESIGN = RNG.standard_normal((8, 2))


def test_leverages_sum_to_the_rank() -> None:
    redundant = np.column_stack([DESIGN, 3 * DESIGN[:, 0], np.zeros(8)])
    basis = column_space(redundant, np.ones(4))
    hat = DESIGN @ np.linalg.solve(DESIGN.T @ DESIGN, DESIGN.T)
    assert basis.shape == (8, 2)
    assert np.sum(basis**2, axis=1) == pytest.approx(np.diag(hat))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e12])
def test_no_unknown_follows_residuals_by_a_change_far_beyond_its_size(unit: float) -> None:
    """The second unknown acts beside the first by a millionth."""
    nearly = np.column_stack([DESIGN[:, 0], (DESIGN @ [1.0, 1e-6]) / unit])
    sizes = np.array([1.0, unit])
    assert column_space(nearly, sizes).shape == (8, 2)
    assert column_space(nearly, sizes, noise=1e-5).shape == (8, 2)
    assert column_space(nearly, sizes, noise=1.0).shape == (8, 1)


@pytest.mark.parametrize("unit", [1e-200, 1e-15, 1e-6, 1e13, 1e200])
def test_an_unknown_acts_in_every_unit(unit: float) -> None:
    sizes = np.array([1.0, 2.0 * unit])
    norms, effective = acting(DESIGN / [1.0, unit], sizes)
    assert effective.all()
    assert norms[1] * unit == pytest.approx(np.linalg.norm(DESIGN[:, 1]))
    assert column_space(DESIGN / [1.0, unit], sizes) @ np.eye(2) == pytest.approx(
        column_space(DESIGN, np.ones(2))
    )


def test_a_column_of_rounding_errors_has_no_effect() -> None:
    rounded = np.column_stack([DESIGN, 1e-16 * DESIGN[:, 0]])
    assert acting(rounded, np.ones(3))[1].tolist() == [True, True, False]
    assert not acting(np.zeros((4, 2)), np.ones(2))[1].any()


def test_undetermined_unknowns_of_long_data_need_no_square_matrix_of_their_length() -> None:
    columns = RNG.standard_normal((3000, 2))
    jacobian = np.column_stack([columns, columns[:, 0] - columns[:, 1], RNG.standard_normal(3000)])
    tracemalloc.start()
    lost = undetermined(jacobian, np.ones(4))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lost.tolist() == [True, True, True, False]
    assert most < 40 * jacobian.nbytes  # a square matrix has 750 times as many
    wide = undetermined(jacobian[:2], np.ones(4))
    assert wide.any()


@pytest.mark.parametrize(("shape", "rank"), [((3, 0), 0), ((0, 2), 0), ((3, 2), 1), ((1, 3), 1)])
def test_the_null_space_of_any_matrix_has_its_dimension(shape: tuple[int, int], rank: int) -> None:
    assert null_space(np.ones(shape)).shape == (shape[1] - rank, shape[1])


def test_zeros_have_no_rank() -> None:
    assert null_space(np.zeros((2, 2))).shape == (2, 2)
