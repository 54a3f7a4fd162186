"""Paths of polynomials whose roots are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from odefit.common.arrays import Array, ComplexArray, IntArray
from odefit.structure.homotopy.tracker import (
    PathStatus,
    TrackerOptions,
    refine_ends,
    solve,
    track,
)


class Univariate:
    """``(1 - s) f + s g`` with s on an arc, of coefficients from the highest."""

    def __init__(self, start: ComplexArray, end: ComplexArray, gamma: complex) -> None:
        self.start, self.end, self.gamma = start, end, gamma

    def evaluate(
        self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        x = points[:, 0]
        f, g = np.polyval(self.start, x), np.polyval(self.end, x)
        df, dg = np.polyval(np.polyder(self.start), x), np.polyval(np.polyder(self.end), x)
        gamma = self.gamma
        values = gamma * t * f + (1 - t) * g
        derivative = gamma * t * df + (1 - t) * dg
        return values[:, None], derivative[:, None, None], (gamma * f - g)[:, None]


def from_unity(
    end: ComplexArray, seed: int, options: TrackerOptions | None = None
) -> tuple[ComplexArray, list[PathStatus]]:
    degree = len(end) - 1
    start = np.zeros(degree + 1, dtype=complex)
    start[0], start[-1] = 1.0, -1.0
    gamma = complex(np.exp(1j * np.random.default_rng(seed).uniform(-np.pi, np.pi)))
    starts = np.exp(2j * np.pi * np.arange(degree) / degree)[:, None]
    tracked = track(Univariate(start, end, gamma), starts, options)
    return tracked.ends[:, 0], list(tracked.statuses)


def matched(found: ComplexArray, roots: npt.NDArray[Any], tolerance: float = 1e-6) -> bool:
    """Whether each root was found exactly once."""
    distance = np.abs(found[:, None] - roots[None])
    nearest = distance.argmin(axis=1)
    return bool(
        sorted(nearest) == list(range(len(roots))) and distance.min(axis=1).max() < tolerance
    )


@pytest.mark.parametrize("degree", [1, 2, 5, 12])
def test_all_roots_of_a_polynomial_are_found(degree: int) -> None:
    rng = np.random.default_rng(degree)
    end = rng.normal(size=degree + 1) + 1j * rng.normal(size=degree + 1)
    found, statuses = from_unity(end, degree)
    assert set(statuses) == {PathStatus.REACHED}
    assert matched(found, np.roots(end))


@pytest.mark.slow
def test_no_path_jumps_in_sixty_random_cases() -> None:
    """If a path jumped to another, two of them would end at one root."""
    rng = np.random.default_rng(0)
    for case in range(60):
        degree = int(rng.integers(3, 9))
        end = rng.normal(size=degree + 1) + 1j * rng.normal(size=degree + 1)
        found, statuses = from_unity(end, case)
        reached = np.array([e is PathStatus.REACHED for e in statuses])
        assert reached.all(), f"case {case}: {statuses}"
        assert matched(found, np.roots(end)), f"case {case}"


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_roots_that_lie_close_together_are_kept_apart(distance: float) -> None:
    roots = np.array([1.0, 1.0 + distance, -0.5 + 1j, -2.0])
    found, statuses = from_unity(np.poly(roots).astype(complex), 1)
    assert set(statuses) == {PathStatus.REACHED}
    assert matched(found, roots, tolerance=distance / 4)


def test_paths_that_pass_close_by_each_other_are_kept_apart() -> None:
    """``x^2 = (1/2 - t)^2 + 1e-4``: in the middle the roots are 0.02 apart, and turn back."""

    class NearlyMeeting:
        def evaluate(
            self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
        ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
            shift = t - 0.5
            values = points**2 - (shift**2 + 1e-4)[:, None]
            return values, 2 * points[:, :, None], -2 * shift[:, None].astype(complex)

    x = np.sqrt(0.25 + 1e-4)
    tracked = track(NearlyMeeting(), np.array([[x], [-x]], dtype=complex))
    assert tracked.reached.all()
    np.testing.assert_allclose(tracked.ends[:, 0], [x, -x], rtol=1e-9)


def test_a_root_that_goes_to_infinity_is_recognised() -> None:
    """The leading coefficient of the end is zero: of three roots two stay."""
    found, statuses = from_unity(np.array([0.0, 1.0, 2.0, 3.0], dtype=complex), 3)
    reached = [i for i, e in enumerate(statuses) if e is PathStatus.REACHED]
    assert len(reached) == 2
    assert matched(found[reached], np.roots([1.0, 2.0, 3.0]))
    assert abs(found[next(i for i in range(3) if i not in reached)]) > 1e3


def test_a_double_root_is_not_reported_as_reached_wrongly() -> None:
    found, statuses = from_unity(np.poly([1.0, 1.0, -1.0]).astype(complex), 4)
    for x, status in zip(found, statuses, strict=True):
        if status is PathStatus.REACHED:
            assert min(abs(x - 1), abs(x + 1)) < 1e-4


def test_too_many_steps_have_their_own_status() -> None:
    rng = np.random.default_rng(5)
    end = rng.normal(size=6) + 1j * rng.normal(size=6)
    _, statuses = from_unity(end, 5, TrackerOptions(max_steps=3))
    assert set(statuses) == {PathStatus.TOO_LONG}


def test_paths_can_be_abandoned() -> None:
    end = np.array([1.0, 0.0, -4.0], dtype=complex)
    start = np.array([1.0, 0.0, -1.0], dtype=complex)
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 3

    starts = np.array([[1.0], [-1.0]], dtype=complex)
    tracked = track(Univariate(start, end, 1j), starts, stop=stop)
    assert set(tracked.statuses) == {PathStatus.RUNNING}
    assert not tracked.reached.any()
    assert np.all(tracked.steps == 3)


def test_regular_singular_and_missing_solutions_are_distinguished() -> None:
    """Of ``x^2 = 2`` or ``x^2 = 0`` with y = 0: zero has no size that its steps could shrink to."""

    class Squares:
        def evaluate(
            self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
        ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
            x, y = points.T
            zero = np.zeros_like(x)
            values = np.stack([x**2 - np.array([2.0, 2.0, 0.0])[paths], y * (x + 3)], axis=1)
            jacobians = np.stack(
                [np.stack([2 * x, zero], axis=1), np.stack([y, x + 3], axis=1)], axis=1
            )
            return values, jacobians, np.zeros_like(points)

    near = np.array([[1.4143, 1e-7], [1j, 1e-7], [1e-3, 1e-7]], dtype=complex)
    points, regular = refine_ends(Squares(), near)
    assert regular.tolist() == [True, False, False]
    np.testing.assert_allclose(points[0], [np.sqrt(2), 0.0], atol=1e-12)


def test_singular_systems_have_no_solution_and_spare_the_others() -> None:
    matrices = np.array([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)], dtype=complex)
    result = solve(matrices, np.ones((3, 2, 1), dtype=complex))
    np.testing.assert_array_equal(result[0], 1.0)
    assert np.isnan(result[1]).all()
    np.testing.assert_array_equal(result[2], 0.5)
