"""Lower bounds of the norm of residuals over a box, and smaller boxes: nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.methods.branch_and_bound.node_bounds import NodeBounder
from tests.enclosure.containment import at, directions

BOXES = 20


def residuals(c: Array, remainder: Array | None = None) -> Residuals:
    """Return residuals with coefficients of the shape (residuals, monomials, boxes)."""
    rest = np.zeros((len(c), c.shape[2])) if remainder is None else remainder
    return Residuals(c, rest)


def random(
    monomials: Monomials, size: int, seed: int, higher: float, rest: float
) -> tuple[Residuals, np.random.Generator]:
    """Polynomials whose terms of each degree are of a size, and remainders."""
    rng = np.random.default_rng(seed)
    scale = np.where(monomials.degrees <= 1, 1.0, higher)[None, :, None]
    c = rng.normal(size=(size, len(monomials), BOXES)) * scale
    c[:, 0] *= rng.choice([0.1, 1.0, 5.0], BOXES)
    c[:, monomials.linear] *= rng.choice([0.01, 1.0, 3.0], BOXES)
    return residuals(c, rest * rng.uniform(size=(size, BOXES))), rng


@pytest.mark.parametrize("higher", [0.0, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("rest", [0.0, 1e-2, 0.5])
@pytest.mark.parametrize(("n", "degree", "size"), [(1, 1, 3), (2, 2, 2), (3, 2, 9), (2, 3, 6)])
def test_no_point_is_below_the_bound_or_cut_off(
    n: int, degree: int, size: int, higher: float, rest: float
) -> None:
    monomials = Monomials.of(n, degree)
    found, rng = random(monomials, size, 7 * n + degree, higher, rest)
    d = directions(n, 200)
    values = np.einsum("rmb,pm->brp", found.c, at(monomials, d))
    # The remainders as bad as they can be: towards zero, or anything.
    rests = found.remainder.T[:, :, None]
    least = np.sign(values) * np.maximum(np.abs(values) - rests, 0.0)
    anything = values + rests * rng.uniform(-1, 1, values.shape)
    typical = float(np.median(np.linalg.norm(values, axis=1)))
    for radius in (1e-3 * typical, 0.5 * typical, typical, 3 * typical):
        bounds = NodeBounder(monomials)(found, radius)
        assert (bounds.norm >= 0).all()
        assert bounds.enclosed.all()
        for reached in (least, anything):
            norms = np.linalg.norm(reached, axis=1)
            assert (norms >= bounds.norm[:, None] * (1 - 1e-14)).all()
            inside = (d[None] >= bounds.lower[:, None]) & (d[None] <= bounds.upper[:, None])
            assert (inside.all(axis=2) | (norms > radius)).all()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_linear_least_squares_are_bounded_exactly(n: int) -> None:
    rng = np.random.default_rng(n)
    monomials = Monomials.of(n, 2)
    c = np.zeros((8, len(monomials), BOXES))
    c[:, 0] = 3 * rng.normal(size=(8, BOXES))
    c[:, monomials.linear] = rng.normal(size=(8, n, BOXES)) * rng.choice([0.1, 1.0, 5.0], BOXES)
    bounds = NodeBounder(monomials)(residuals(c), 1.0)
    for b in range(BOXES):
        true = lsq_linear(c[:, monomials.linear, b], -c[:, 0, b], (-1, 1), tol=1e-14)
        exact = np.sqrt(2 * true.cost)
        assert bounds.norm[b] <= exact * (1 + 1e-12)
        assert bounds.norm[b] == pytest.approx(exact, rel=1e-6)


def test_convex_terms_above_a_plane_are_not_lost() -> None:
    """|(1 + d^2/2, d)| is least in the middle, and is 1 there."""
    monomials = Monomials.of(1, 2)
    c = np.zeros((2, 3, 1))
    c[0, :, 0] = [1.0, 0.0, 0.5]
    c[1, :, 0] = [0.0, 1.0, 0.0]
    assert NodeBounder(monomials)(residuals(c), 2.0).norm[0] == pytest.approx(1.0, rel=1e-10)


def test_a_sum_that_is_not_convex_is_bounded_by_its_curvature() -> None:
    """(1 - d^2/4)^2 = 1 - d^2/2 + ... is 9/16 at the ends."""
    monomials = Monomials.of(1, 2)
    c = np.array([[[1.0], [0.0], [-0.25]]])
    norm = NodeBounder(monomials)(residuals(c), 1.0).norm[0]
    assert 0.7 <= norm <= 0.75


@pytest.mark.parametrize("degree", [2, 3])
def test_near_an_optimum_the_bound_is_exact_to_third_order(degree: int) -> None:
    """In a box of width h, it falls short by h^3 (a bound of first order by h)."""
    rng = np.random.default_rng(5)
    monomials = Monomials.of(2, degree)
    whole = rng.normal(size=(6, len(monomials)))
    # An optimum in the middle: the gradient of the squares is zero.
    first, slope = whole[:, 0], whole[:, monomials.linear]
    first -= slope @ np.linalg.lstsq(slope, first, rcond=None)[0]
    first *= 3
    whole[:, monomials.degrees >= 2] *= 0.1
    widths = 10.0 ** -np.arange(1.0, 3.6, 0.5)
    c = whole[:, :, None] * widths ** monomials.degrees[:, None]
    norm = NodeBounder(monomials)(residuals(c), float(np.linalg.norm(first))).norm
    gaps = (np.linalg.norm(first) - norm) / np.linalg.norm(first)
    assert (gaps >= -1e-14).all()
    order = np.log(gaps[0] / gaps[3]) / np.log(widths[0] / widths[3])
    assert order >= 2.7 or gaps[3] < 1e-10


def test_contraction_reaches_the_ellipsoid_of_linear_residuals() -> None:
    monomials = Monomials.of(2, 1)
    c = np.zeros((3, 3, 1))
    c[0, 1, 0], c[1, 2, 0], c[2, 0, 0] = 2.0, 1.0, 0.6
    bounds = NodeBounder(monomials)(residuals(c), 1.0)
    assert bounds.upper[0] == pytest.approx([0.4, 0.8], rel=1e-6)
    assert bounds.lower[0] == pytest.approx([-0.4, -0.8], rel=1e-6)


def test_a_box_without_a_fit_is_empty_or_bounded_above_the_radius() -> None:
    monomials = Monomials.of(2, 2)
    found, _ = random(monomials, 6, 3, 1e-2, 1e-2)
    found.c[0, 0] += 100.0
    bounds = NodeBounder(monomials)(found, 1.0)
    assert (bounds.norm >= 1.0).all()


def test_unbounded_residuals_are_left_out() -> None:
    """The bounds are those of the other residuals alone, and say so."""
    monomials = Monomials.of(2, 2)
    found, _ = random(monomials, 5, 11, 0.1, 0.01)
    others = residuals(found.c[1:], found.remainder[1:])
    found.remainder[0] = np.inf
    for nonsense in (0.0, 7.0, np.nan, np.inf):
        found.c[0] = nonsense
        bounds, alone = (NodeBounder(monomials)(r, 1.5) for r in (found, others))
        assert not bounds.enclosed[:, 0].any()
        assert bounds.enclosed[:, 1:].all()
        assert (bounds.norm <= alone.norm * (1 + 1e-9) + 1e-12).all()
    d = directions(2, 100)
    values = np.einsum("rmb,pm->brp", others.c, at(monomials, d))
    rests = others.remainder.T[:, :, None]
    least = np.sign(values) * np.maximum(np.abs(values) - rests, 0.0)
    norms = np.linalg.norm(least, axis=1)
    assert (norms >= bounds.norm[:, None]).all()
    inside = (d[None] >= bounds.lower[:, None]) & (d[None] <= bounds.upper[:, None])
    assert (inside.all(axis=2) | (norms > 1.5)).all()


def test_without_data_there_is_no_remark() -> None:
    monomials = Monomials.of(2, 2)
    c = np.zeros((3, 6, 4))
    bounds = NodeBounder(monomials)(residuals(c, np.full((3, 4), np.inf)), 1.0)
    assert (bounds.norm == 0).all()
    assert (bounds.lower == -1).all()
    assert (bounds.upper == 1).all()
    assert not bounds.enclosed.any()


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e150, 1e200, 1e300])
def test_extreme_sizes_neither_fail_nor_lie(size: float) -> None:
    """Squares that overflow or vanish, in one of two boxes."""
    monomials = Monomials.of(2, 2)
    rng = np.random.default_rng(0)
    c = rng.normal(size=(4, 6, 2))
    c[:, 0] += 5.0
    plain = NodeBounder(monomials)(residuals(c[:, :, 1:]), 1.0)
    c[:, :, 0] *= size
    bounds = NodeBounder(monomials)(residuals(c), 1.0)
    assert np.isfinite(bounds.norm).all()
    assert bounds.norm[1] == pytest.approx(plain.norm[0], rel=1e-9)
    d = directions(2, 50)
    values = (c[:, :, 0] / size) @ at(monomials, d).T
    least = np.linalg.norm(values, axis=0).min()
    assert bounds.norm[0] <= least * size * (1 + 1e-12)


@pytest.mark.parametrize("radius", [0.0, 1e-300, 1e300, np.inf])
def test_bounds_hold_for_any_radius(radius: float) -> None:
    monomials = Monomials.of(2, 2)
    found, _ = random(monomials, 5, 11, 0.1, 0.01)
    found.remainder[0, :3] = np.inf
    values = np.einsum("rmb,pm->brp", found.c, at(monomials, directions(2, 50)))
    least = np.maximum(np.abs(values) - found.remainder.T[:, :, None], 0.0)
    norms = np.linalg.norm(least, axis=1)
    bounds = NodeBounder(monomials)(found, radius)
    # An empty box has the radius for its bound.
    fine = (norms >= bounds.norm[:, None]).all(axis=1)
    assert fine.all()
    assert not np.isnan(bounds.lower).any()


def test_more_unknowns_than_residuals_are_handled() -> None:
    monomials = Monomials.of(4, 2)
    found, _ = random(monomials, 2, 1, 0.1, 0.0)
    bounds = NodeBounder(monomials)(found, 1.0)
    assert (bounds.lower == -1).all()
    values = np.einsum("rmb,pm->brp", found.c, at(monomials, directions(4, 500)))
    assert (np.linalg.norm(values, axis=1) >= bounds.norm[:, None]).all()
