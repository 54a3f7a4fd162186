"""Bounds of sums with kinks: no point is below them, and they err by squares of widths."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.likelihood.deviance_residuals import LINE_LOSS, LINE_SLOPE
from odefit.methods.branch_and_bound.node_bounds import NodeBounder
from odefit.problem.noise_distributions.laplace import Laplace
from tests.enclosure.containment import at, directions

BOXES, LINED = 20, 5


def with_lines(c: Array, remainder: Array, rest: int) -> Residuals:
    """Return residuals of which the last `rest` are squares, and the others have lines alone."""
    of_lines = np.arange(len(c)) < len(c) - rest
    unknown, known = (np.where(r[:, None], np.inf, remainder) for r in (of_lines, ~of_lines))
    return Residuals(np.where(of_lines[:, None, None], 0.0, c), unknown, Residuals(c, known))


def rounded(v: Array) -> Array:
    return np.asarray(np.hypot(v, LINE_LOSS) - LINE_LOSS)


def test_the_square_of_a_deviance_residual_is_its_rounded_line() -> None:
    u = np.array([0.0, 1e-6, -1e-4, 0.3, -7.0])
    root, _ = Laplace().root(u)
    np.testing.assert_allclose(root**2, rounded(LINE_SLOPE * u), rtol=1e-6, atol=1e-18)


@pytest.mark.parametrize("rest", [0, 3])
@pytest.mark.parametrize(("n", "degree"), [(0, 1), (1, 2), (2, 2), (3, 3)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_no_point_is_below_the_bound(n: int, degree: int, rest: int, scale: float) -> None:
    rng, monomials = np.random.default_rng(n), Monomials.of(n, degree)
    c = scale * rng.normal(size=(LINED + rest, len(monomials), BOXES))
    c[:, 0] *= rng.choice([0.0, 1.0, 5.0], BOXES)
    c[:, monomials.linear] *= rng.choice([0.01, 1.0, 3.0], BOXES)
    remainder = scale * rng.choice([0.0, 0.1], BOXES) * rng.uniform(size=(LINED + rest, BOXES))
    norm = NodeBounder(monomials)(with_lines(c, remainder, rest), scale).norm
    values = np.einsum("rmb,pm->brp", c, at(monomials, directions(n, 300)))
    off = remainder.T[:, :, None]
    for reached in (
        values + off * rng.uniform(-1, 1, values.shape),
        np.sign(values) * np.maximum(np.abs(values) - off, 0.0),
    ):
        total = rounded(reached[:, :LINED]).sum(axis=1) + (reached[:, LINED:] ** 2).sum(axis=1)
        assert (total >= norm[:, None] ** 2 * (1 - 1e-13)).all()
    if not remainder.any() and n:
        assert (norm > 0).mean() > 0.5


def test_the_bound_of_one_kink_in_the_middle_is_that_of_the_others() -> None:
    """|d| + |2 - d| + |3 + d| is 5 from d = 0 to 2."""
    c = np.array([[0.0, 1.0], [2.0, -1.0], [3.0, 1.0]])[:, :, None]
    norm = NodeBounder(Monomials.of(1, 1))(with_lines(c, np.zeros((3, 1)), 0), 1.0).norm[0]
    assert norm**2 == pytest.approx(5.0, abs=4 * LINE_LOSS)


def test_at_a_minimum_with_kinks_the_bound_errs_by_the_square_of_the_width() -> None:
    rng, monomials = np.random.default_rng(4), Monomials.of(2, 2)
    whole = rng.normal(size=(9, len(monomials)))
    # Two lines cross zero in the middle, and slopes within [-1, 1] balance those of the others.
    whole[:2, 0], whole[2:, 0] = 0.0, 30 * np.abs(whole[2:, 0]) + 30
    whole[:2, monomials.linear], whole[2:, monomials.linear] = (
        np.eye(2),
        0.05 * rng.normal(size=(7, 2)),
    )
    widths = np.array([1.0, 0.1])
    c = whole[:, :, None] * widths ** monomials.degrees[:, None]
    norm = NodeBounder(monomials)(with_lines(c, np.zeros((9, 2)), 0), 1.0).norm
    least = rounded(whole[:, 0]).sum()
    short = least - norm**2 - len(whole) * LINE_LOSS
    assert 0 < short[0] < 20
    assert short[1] < 0.02 * short[0]
