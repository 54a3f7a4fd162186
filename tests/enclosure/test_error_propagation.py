"""Bounds of linear differential inequalities against solutions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from odefit.common.arrays import Array
from odefit.enclosure.error_propagation import (
    MAX_GROWTH_NORM,
    ErrorBound,
    MovingFrame,
    exponential_sums,
    in_frame_coordinates,
    orthogonal_factors,
    propagate_componentwise,
    propagate_in_frame,
)

STEPS = 40
"""Steps of the Runge-Kutta method by which perturbed equations are solved."""


def with_inhomogeneity(matrix: Array, first: Array, steady: Array) -> tuple[Array, Array]:
    """``exp(N) first`` and ``integral of exp((1 - s) N) steady`` by one exponential."""
    n = len(first)
    block = np.zeros((n + 1, n + 1))
    block[:n, :n], block[:n, n] = matrix, steady
    return expm(matrix) @ first, expm(block)[:n, n]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("norm", [0.0, 1e-3, 0.5, 3.0, 7.9])
def test_exponential_sums_bound_the_true_values(size: int, norm: float) -> None:
    rng = np.random.default_rng(size)
    matrix = rng.uniform(0, 1, (4, size, size))
    matrix *= norm / matrix.sum(axis=2).max(axis=1)[:, None, None]
    first, steady = rng.uniform(0, 1, (2, 4, size))
    start, drive = exponential_sums(matrix, first, steady)
    for b in range(4):
        true = with_inhomogeneity(matrix[b], first[b], steady[b])
        for bound, value in zip((start[b], drive[b]), true, strict=True):
            assert (bound >= value * (1 - 1e-13)).all()
            assert (bound <= value + 1e-7 * np.abs(value).max() + 1e-15).all()


def test_the_exponential_is_above_that_of_many_digits() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.uniform(0, 1, (20, 3, 3))
    first = rng.uniform(0, 1, (20, 3))
    start, _ = exponential_sums(matrix, first, first)
    with mpmath.workdps(40):
        for b in range(20):
            true = mpmath.expm(mpmath.matrix(matrix[b].tolist())) * mpmath.matrix(first[b].tolist())
            assert all(mpmath.mpf(float(start[b, i])) >= true[i] for i in range(3))


def test_beyond_the_largest_norm_nothing_is_known() -> None:
    matrix = np.array([[[MAX_GROWTH_NORM + 0.1]], [[0.1]], [[np.inf]], [[np.nan]]])
    start, drive = exponential_sums(matrix, np.ones((4, 1)), np.ones((4, 1)))
    assert np.isfinite([start[1, 0], drive[1, 0]]).all()
    assert not np.isfinite(start[[0, 2, 3]]).any()
    assert not np.isfinite(drive[[0, 2, 3]]).any()


def test_non_finite_coefficients_give_non_finite_sums() -> None:
    with np.errstate(invalid="ignore"):
        for bad in (np.inf, np.nan):
            start, drive = exponential_sums(
                np.full((1, 2, 2), 0.1), np.array([[bad, 1.0]]), np.array([[1.0, bad]])
            )
            assert not np.isfinite(start).any()
            assert not np.isfinite(drive).any()


def jacobians(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The middle, by order of s, and how far it varies, shapes (3, n, n) and (n, n)."""
    middle = rng.normal(size=(3, n, n)) * rng.choice([0.1, 0.25])
    if rng.random() < 0.3:
        middle[0] -= np.diag(rng.uniform(0, 2, n))
    return middle, np.abs(rng.normal(size=(n, n))) * rng.choice([0.0, 1e-3, 0.2])


def perturbed(
    rng: np.random.Generator, middle: Array, varies: Array, e: Array, defect: Array
) -> tuple[Array, Array]:
    """A solution of ``e' = A(s) e + g(s)`` with random A and g within their bounds.

    Returns
    -------
    At the end, and the largest sizes on the way.
    """
    n = len(e)
    off, freq = rng.uniform(-1, 1, (n, n)), rng.uniform(0, 9, (n, n))
    if rng.random() < 0.5:
        off, freq = np.sign(off), 0 * freq
    pushed = np.sign(rng.normal(size=n))

    def right_hand_side(s: float, e: Array) -> Array:
        a = middle[0] + s * middle[1] + s**2 * middle[2] + varies * off * np.cos(freq * s)
        found: Array = a @ e + defect * pushed
        return found

    largest, h = np.abs(e), 1.0 / STEPS
    for k in range(STEPS):
        s = k * h
        k1 = right_hand_side(s, e)
        k2 = right_hand_side(s + h / 2, e + h / 2 * k1)
        k3 = right_hand_side(s + h / 2, e + h / 2 * k2)
        k4 = right_hand_side(s + h, e + h * k3)
        e = e + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        largest = np.maximum(largest, np.abs(e))
    return e, largest


def upper_bound(middle: Array, varies: Array) -> Array:
    """As the flow makes it: the diagonal from above, the rest in magnitude."""
    n = len(varies)
    found: Array = np.abs(middle).sum(axis=0) + varies
    for i in range(n):
        found[i, i] = middle[0, i, i] + np.maximum(middle[1:, i, i], 0).sum() + varies[i, i]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_componentwise_bounds_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    middle, varies = jacobians(rng, n)
    sizes = rng.uniform(0, 1, n) * (rng.random(n) < 0.8)
    defect = rng.uniform(0, 1, n) * rng.choice([0.0, 1e-3, 1.0])
    after, during = propagate_componentwise(
        upper_bound(middle, varies)[None], sizes[None], defect[None]
    )
    for _ in range(8):
        e = sizes * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], n)
        end, largest = perturbed(rng, middle, varies, e, defect)
        assert (np.abs(end) <= after[0] * (1 + 1e-6) + 1e-9).all()
        assert (largest <= during[0] * (1 + 1e-6) + 1e-9).all()


def test_componentwise_is_exact_for_compartments() -> None:
    """Nothing is lost where errors die down and feed each other with positive signs."""
    a = np.array([[-1.0, 0.0, 0.2], [0.7, -1.5, 0.0], [0.3, 1.0, -0.2]])
    sizes = np.array([1.0, 0.5, 2.0])
    after, _ = propagate_componentwise(a[None], sizes[None], np.zeros((1, 3)))
    np.testing.assert_allclose(after[0], expm(a) @ sizes, rtol=1e-8)


def test_a_negative_diagonal_does_not_round_down() -> None:
    after, _ = propagate_componentwise(np.full((1, 1, 1), -2.0), np.ones((1, 1)), np.zeros((1, 1)))
    with mpmath.workdps(30):
        assert mpmath.mpf(float(after[0, 0])) >= mpmath.exp(-2)


@pytest.mark.parametrize("seed", range(8))
def test_the_frame_solves_its_equation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    middle = rng.normal(size=(3, 1, n, n)) * rng.choice([0.01, 0.3])
    frame = MovingFrame(middle)

    def rhs(s: float, phi: Array) -> Array:
        a = middle[0, 0] + s * middle[1, 0] + s**2 * middle[2, 0]
        found: Array = (a @ phi.reshape(n, n)).ravel()
        return found

    s = np.linspace(0, 1, 11)
    path = solve_ivp(rhs, (0, 1), np.eye(n).ravel(), "DOP853", s, rtol=1e-12, atol=1e-13)
    phi = path.y.T.reshape(-1, n, n)
    lacking = np.exp(np.abs(middle).sum((0, 1)).sum(axis=1).max()) * frame.defect[0].sum()
    assert np.abs(phi[-1] - frame.end[0]).max() <= lacking * 10 + 1e-9
    assert (np.abs(phi) <= frame.sup[0] + lacking * 10 + 1e-9).all()
    assert (np.abs(np.linalg.inv(phi)) <= frame.inverse[0] + 1e-9).all()


def test_the_inverse_is_that_of_the_polynomial() -> None:
    """Bounded even where twelve orders are by far too few."""
    middle = np.array([[[[0.0, 6.0], [-6.0, 0.0]]]])
    frame = MovingFrame(middle)
    phi, s = [np.eye(2)], np.linspace(0, 1, 101)
    for k in range(12):
        phi.append(middle[0, 0] @ phi[-1] / (k + 1))
    for at in s:
        true = np.linalg.inv(sum(p * at**k for k, p in enumerate(phi)))
        assert (np.abs(true) <= frame.inverse[0]).all()


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.slow if n > 5 else ()) for n in range(12)]
)
def test_framed_bounds_hold_over_many_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    sizes = rng.uniform(0, 1, n) * (rng.random(n) < 0.8)
    error = ErrorBound.of(sizes[None])
    solutions = [sizes * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], n) for _ in range(8)]
    for _ in range(5):
        middle, varies = jacobians(rng, n)
        defect = rng.uniform(0, 1, n) * rng.choice([0.0, 1e-3, 0.1])
        with np.errstate(invalid="ignore"):
            error = propagate_in_frame(
                MovingFrame(middle[:, None]), varies[None], error, defect[None]
            )
        if not np.isfinite(error.sizes).all():
            assert varies.max() > 0.1
            return
        solutions = [perturbed(rng, middle, varies, e, defect)[0] for e in solutions]
        for e in solutions:
            assert (np.abs(e) <= error.sizes[0] * (1 + 1e-6) + 1e-9).all()
            own = np.abs(np.linalg.solve(error.frame[0], e))
            assert (own <= error.lengths[0] * (1 + 1e-6) + 1e-9).all()


def test_rotations_lose_nothing() -> None:
    """A box that turns around a hundred times is as large as before (Lohner's example)."""
    middle = np.array([[[[0.0, 0.7], [-0.7, 0.0]]]])
    error, frame = ErrorBound.of(np.array([[1.0, 1.0]])), MovingFrame(middle)
    for _ in range(900):
        error = propagate_in_frame(frame, np.zeros((1, 2, 2)), error, np.zeros((1, 2)))
    assert (error.lengths <= 1.0 + 1e-6).all()
    assert (error.sizes <= np.sqrt(2) + 1e-6).all()


def test_a_frame_of_non_finite_or_huge_values_gives_infinite_errors() -> None:
    middle = np.zeros((1, 3, 2, 2))
    middle[0, 1] = np.nan
    middle[0, 2] = 1e200
    error = ErrorBound.of(np.ones((3, 2)))
    with np.errstate(all="ignore"):
        found = propagate_in_frame(
            MovingFrame(middle), np.zeros((3, 2, 2)), error, np.zeros((3, 2))
        )
    assert np.isfinite(found.sizes[0]).all()
    assert np.isinf(found.sizes[1:]).all()
    assert np.isinf(found.lengths[1:]).all()


@pytest.mark.parametrize("skew", [0.0, 1e-15, 1e-3])
def test_coordinates_in_frames_that_are_not_quite_orthogonal(skew: float) -> None:
    rng = np.random.default_rng(3)
    frame = orthogonal_factors(rng.normal(size=(10, 4, 4))) + skew * rng.normal(size=(10, 4, 4))
    e = rng.normal(size=(10, 4)) * 10.0 ** rng.integers(-12, 3, (10, 4))
    seen = np.abs(np.einsum("bij,bi->bj", frame, e))
    bound = in_frame_coordinates(frame, seen)
    with mpmath.workdps(40):
        for b in range(10):
            true = mpmath.lu_solve(mpmath.matrix(frame[b].tolist()), mpmath.matrix(e[b].tolist()))
            own = mpmath.matrix(frame[b].T.tolist()) * mpmath.matrix(e[b].tolist())
            for i in range(4):
                rounding = abs(own[i]) - mpmath.mpf(float(seen[b, i]))
                assert abs(true[i]) <= mpmath.mpf(float(bound[b, i])) + max(rounding, 0)


def test_a_frame_without_direction_has_an_infinite_bound() -> None:
    bound = in_frame_coordinates(np.zeros((1, 2, 2)), np.ones((1, 2)))
    assert np.isinf(bound).all()


def test_the_longest_column_comes_first() -> None:
    q = orthogonal_factors(np.array([[[1.0, 0.0], [0.0, 5.0]]]))
    np.testing.assert_allclose(np.abs(q[0]), [[0.0, 1.0], [1.0, 0.0]], atol=1e-15)


def test_error_bounds_can_be_selected_and_replaced() -> None:
    error = ErrorBound.of(np.arange(6.0).reshape(3, 2))
    part = error.take(np.array([2, 0]))
    assert part.sizes.tolist() == [[4.0, 5.0], [0.0, 1.0]]
    error.put(np.array([0, 1]), part)
    assert error.sizes.tolist() == [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]
    assert (error.lengths == error.sizes).all()


def test_a_deviation_that_is_dropped_leaves_its_frame() -> None:
    """In a frame, lengths of one state hide in the others: without it, only sizes count."""
    turned = np.array([[[0.6, -0.8], [0.8, 0.6]]])
    error = ErrorBound(np.array([[0.6, 0.8]]), turned, np.array([[1.0, 0.0]]))
    left = error.without(np.array([[False, True]]))
    e = np.array([0.6, 0.0])  # the first component of what was there
    assert (np.abs(np.linalg.solve(left.frame[0], e)) <= left.lengths[0] + 1e-15).all()
    assert left.sizes.tolist() == [[0.6, 0.0]]
    again = left.unknown(np.array([[False, True]]))
    assert np.isinf(again.sizes[0, 1])
    assert again.without(np.array([[False, True]])).lengths.tolist() == left.lengths.tolist()
