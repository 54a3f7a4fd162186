"""Whether true residuals are where an enclosure says they are."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from odefit import ForwardMap, Problem
from odefit.enclosure import Enclosure, Residuals
from odefit.enclosure.monomials import Monomials
from odefit.problem.arrays import Array
from odefit.simulation import Evaluation

CORNERS = 32


def directions(variables: int, count: int, seed: int = 0) -> Array:
    """All corners of [-1, 1]^n (some, if there are many), its middle, and points inside."""
    rng = np.random.default_rng(seed)
    corners = np.array(list(product([-1.0, 1.0], repeat=variables)))
    if len(corners) > CORNERS:
        corners = rng.permutation(corners)[:CORNERS]
    inside = rng.uniform(-1.0, 1.0, (count, variables))
    return np.concatenate([corners, np.zeros((1, variables)), inside])


def box(vector: Array, relative: float, absolute: float = 0.0) -> tuple[Array, Array]:
    """Corners of one box around a vector, shapes (1, n)."""
    radius = relative * np.abs(vector) + absolute
    return (vector - radius)[None], (vector + radius)[None]


def at(monomials: Monomials, directions: Array) -> Array:
    """Values of all monomials, shape (points, M)."""
    columns = [np.prod(directions[:, list(e)], axis=1) for e in monomials.exponents]
    return np.column_stack(columns)


def exact(monomials: Monomials, c: Array, d: list[Fraction]) -> Fraction:
    """Of a polynomial with coefficients c, shape (M,)."""
    total = Fraction(0)
    for exponent, a in zip(monomials.exponents, c.tolist(), strict=True):
        term = Fraction(a)
        for k in exponent:
            term *= d[k]
        total += term
    return total


def vectors(lower: Array, upper: Array, directions: Array) -> Array:
    """Points of the box at directions in [-1, 1]^n."""
    found: Array = (lower + upper) / 2 + directions * (upper - lower) / 2
    return np.clip(found, lower, upper)


def checked(
    problem: Problem,
    lower: Array,
    upper: Array,
    enclosure: Enclosure | None = None,
    forward: ForwardMap | None = None,
    count: int = 30,
) -> Residuals:
    """The enclosure over one box, when all true residuals at many points are inside.

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
    """Largest measured value in units of its residual."""
    return 1.0 + max(
        float(np.abs(s.values).max()) for c in problem.conditions for s in c.series.values()
    )


def sane(found: Residuals) -> None:
    """Never not-a-number, and polynomials finite."""
    assert np.isfinite(found.c).all()
    assert not np.isnan(found.remainder).any()
    assert (found.remainder >= 0).all()
