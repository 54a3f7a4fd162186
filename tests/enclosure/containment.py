"""Whether true residuals are where an enclosure says they are."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from odefit import ForwardMap, Problem
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, Residuals
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.simulation import Evaluation

MAX_CORNERS = 16


def directions(variables: int, count: int, seed: int = 0) -> Array:
    """Return corners of [-1, 1]^n, all if there are few, its middle, and points inside."""
    rng = np.random.default_rng(seed)
    corners = np.array(list(product([-1.0, 1.0], repeat=variables)))
    if len(corners) > MAX_CORNERS:
        corners = rng.permutation(corners)[:MAX_CORNERS]
    inside = rng.uniform(-1.0, 1.0, (count, variables))
    return np.concatenate([corners, np.zeros((1, variables)), inside])


def box(vector: Array, relative: float, absolute: float = 0.0) -> tuple[Array, Array]:
    """Return the corners of one box around a vector, shapes (1, n)."""
    radius = relative * np.abs(vector) + absolute
    return (vector - radius)[None], (vector + radius)[None]


def at(monomials: Monomials, directions: Array) -> Array:
    """Return the values of all monomials, shape (points, M)."""
    columns = [np.prod(directions[:, list(e)], axis=1) for e in monomials.exponents]
    return np.column_stack(columns)


def exact(monomials: Monomials, c: Array, d: list[Fraction]) -> Fraction:
    """Return the exact value of a polynomial with coefficients c, shape (M,)."""
    total = Fraction(0)
    for exponent, a in zip(monomials.exponents, c.tolist(), strict=True):
        term = Fraction(a)
        for k in exponent:
            term *= d[k]
        total += term
    return total


def vectors(lower: Array, upper: Array, directions: Array) -> Array:
    """Return the points of the box at directions in [-1, 1]^n."""
    found: Array = (lower + upper) / 2 + directions * (upper - lower) / 2
    return np.clip(found, lower, upper)


def checked(
    problem: Problem,
    lower: Array,
    upper: Array,
    enclosure: Enclosure | None = None,
    forward: ForwardMap | None = None,
    count: int = 10,
) -> Residuals:
    """Return the enclosure over one box, after checking true residuals at many points.

    The forward map's own error is allowed for with 1e-11 of what its residuals are made of.
    """
    enclosure = enclosure or Enclosure(problem)
    forward = forward or ForwardMap(problem)
    found = enclosure(lower, upper)
    sane(found)
    d = directions(lower.shape[1], count)
    values = at(enclosure.monomials, d) @ np.moveaxis(found.c[:, :, 0], 0, 1)
    measured = np.abs(found.c[:, :, 0]).sum(axis=1)
    for point, polynomial in zip(vectors(lower[0], upper[0], d), values, strict=True):
        true = forward.evaluate(point)
        if not isinstance(true, Evaluation):
            assert np.isinf(found.remainder).any(), (true, point)
            continue
        own = 1e-11 * (1.0 + measured + np.abs(true.residuals) + offsets(problem))
        distance = np.abs(true.residuals - polynomial)
        assert (distance <= found.remainder[:, 0] + own).all(), (point, distance, found.remainder)
    return found


def offsets(problem: Problem) -> float:
    """Return the largest measured value, and one more."""
    return 1.0 + max(
        float(np.abs(s.values).max()) for c in problem.conditions for s in c.series.values()
    )


def sane(found: Residuals) -> None:
    """Check that nothing is not-a-number, and that polynomials are finite."""
    assert np.isfinite(found.c).all()
    assert not np.isnan(found.remainder).any()
    assert (found.remainder >= 0).all()
