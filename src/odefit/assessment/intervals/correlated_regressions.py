"""Many linear regressions with noise correlated in time, by maximum likelihood.

For a given correlation time this is generalised least squares, and the standard deviation follows
from its residuals. The correlation time is the best of a grid. One series is maximised at each time
of the grid; several series take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.simulation.residuals.correlation import chains_of

GRID_STEP = 0.2
"""Distance of the logarithms of two correlation times of a grid: their likelihoods differ by less
than 0.05 for forty values."""

TURNS = 20
"""Number of turns of regressions, and of scales and correlation times, for several series."""


@dataclass(frozen=True, eq=False)
class Chains:
    """Measurements in order of time, with candidate correlation times.

    Attributes
    ----------
    order, distances
        The order of the values of a part, and their distances in time in it, infinite for a value
        without predecessor, shape (m,).
    times
        The grid of correlation times, increasing, shape (g,).
    true
        The index of the correlation time of simulated noise.
    unknown
        The correlation time's unknown; None if it is known.
    """

    order: IntArray
    distances: Array
    times: Array
    true: int
    unknown: int | None

    @classmethod
    def of(
        cls,
        times_of_values: Sequence[Array],
        time: float,
        bounds: tuple[float, float],
        unknown: int | None,
    ) -> Chains:
        """Return those of some series with noise of this correlation time."""
        orders, distances, start = [], [], 0
        for times in times_of_values:
            order, apart = chains_of(times)
            orders.append(start + order)
            distances.append(apart)
            start += len(times)
        grid, true = np.array([time]), 0
        if unknown is not None:
            low, high = np.log(np.array(bounds) / time)
            steps = np.arange(np.floor(low / GRID_STEP), np.ceil(high / GRID_STEP) + 1)
            grid = time * np.exp(np.clip(GRID_STEP * steps, min(low, 0.0), max(high, 0.0)))
            grid = np.unique(grid)
            true = int(np.argmin(np.abs(np.log(grid / time))))
        return cls(np.concatenate(orders), np.concatenate(distances), grid, true, unknown)

    def whitened(self, values: Array, number: int) -> tuple[Array, float]:
        """Return innovations of values, shape (..., m), and the sum of log sqrt(1 - c^2)."""
        ratios = self.distances / self.times[number]
        correlations, variances = np.exp(-ratios), -np.expm1(-2.0 * ratios)
        ordered = values[..., self.order]
        whitened_rows = ordered.copy()
        whitened_rows[..., 1:] -= correlations[1:] * ordered[..., :-1]
        return whitened_rows / np.sqrt(variances), 0.5 * float(np.sum(np.log(variances)))

    def noise(self, innovations: Array) -> Array:
        """Return noise of unit standard deviation from innovations, shape (fits, m)."""
        ratios = self.distances / self.times[self.true]
        correlations, roots = np.exp(-ratios), np.sqrt(-np.expm1(-2.0 * ratios))
        ordered: Array = innovations * roots
        for k in range(1, ordered.shape[1]):
            ordered[:, k] += correlations[k] * ordered[:, k - 1]
        noise_values = np.empty_like(ordered)
        noise_values[:, self.order] = ordered
        return noise_values


@dataclass(frozen=True, eq=False)
class Products:
    """The products of the design X and values y of a part, whitened with each of g times.

    Attributes
    ----------
    count
        The number of values.
    known_scale
        Whether the standard deviation is known, to be one.
    matrices, vectors, squares
        X' X, X' y and y' y, shapes (g, k, k), (g, fits, k) and (g, fits).
    determinants
        The sums of log sqrt(1 - c^2), shape (g,).
    """

    count: int
    known_scale: bool
    matrices: Array
    vectors: Array
    squares: Array
    determinants: Array

    @classmethod
    def of(cls, design: Array, values: Array, chains: Chains | None, known_scale: bool) -> Products:
        """Return those of a design (m, k) and values (fits, m)."""
        products: list[tuple[Array, Array, Array, float]] = []
        for number in range(1 if chains is None else len(chains.times)):
            x, y, logs = design, values, 0.0
            if chains is not None:
                x, logs = chains.whitened(design.T, number)
                x, (y, _) = x.T, chains.whitened(values, number)
            products.append((x.T @ x, y @ x, np.einsum("ij,ij->i", y, y), logs))
        stacked = [np.array(part) for part in zip(*products, strict=True)]
        return cls(values.shape[1], known_scale, *stacked)

    def part(
        self, basis: Array | None, fits: IntArray, *, known_scale: bool, only: int | None
    ) -> Products:
        """Return the products for the design X `basis` and some fits, for one time or all."""
        times = slice(None) if only is None else slice(only, only + 1)
        matrices, vectors = self.matrices[times], self.vectors[times][:, fits]
        if basis is not None:
            matrices, vectors = basis.T @ matrices @ basis, vectors @ basis
        squares, logs = self.squares[times][:, fits], self.determinants[times]
        known = self.known_scale or known_scale
        return Products(self.count, known, matrices, vectors, squares, logs)

    def costs(self, coefficients: Array) -> tuple[Array, Array]:
        """Return costs and scales by time for coefficients (..., fits, k), shape (g, fits)."""
        residual = self.squares - 2 * np.sum(coefficients * self.vectors, axis=-1)
        residual += np.einsum("...fk,gkl,...fl->gf", coefficients, self.matrices, coefficients)
        return self._likelihood(residual)

    def profiled(self) -> tuple[Array, Array, Array]:
        """Return coefficients that are best for each time (g, fits, k), their costs and scales."""
        solved = np.linalg.solve(self.matrices, np.swapaxes(self.vectors, 1, 2))
        coefficients = np.swapaxes(solved, 1, 2)
        residual = self.squares - np.sum(coefficients * self.vectors, axis=-1)
        return coefficients, *self._likelihood(residual)

    def _likelihood(self, residual: Array) -> tuple[Array, Array]:
        residual = np.maximum(residual, 1e-300)
        scales = np.ones_like(residual) if self.known_scale else np.sqrt(residual / self.count)
        costs = 0.5 * residual / scales**2 + self.count * np.log(scales)
        return costs + self.determinants[:, None], scales


def fit_products(products: Sequence[Products]) -> tuple[Array, Array, IntArray, Array]:
    """Return coefficients, scales, numbers of the times and costs of all fits.

    Their shapes are (fits, k), (fits, parts), (fits, parts) and (fits,).
    """
    fits = products[0].squares.shape[1]
    every = np.arange(fits)
    if len(products) == 1:
        coefficients, costs, scales = products[0].profiled()
        best = np.argmin(costs, axis=0)
        at = best, every
        return coefficients[at], scales[at][:, None], best[:, None], costs[at]
    times = np.zeros((fits, len(products)), dtype=np.intp)
    scales = np.ones((fits, len(products)))
    for _ in range(TURNS):
        matrices = sum(
            p.matrices[times[:, i]] / scales[:, i, None, None] ** 2 for i, p in enumerate(products)
        )
        vectors = sum(
            p.vectors[times[:, i], every] / scales[:, i, None] ** 2 for i, p in enumerate(products)
        )
        coefficients = np.linalg.solve(matrices, np.asarray(vectors)[:, :, None])[:, :, 0]
        total = np.zeros(fits)
        for i, p in enumerate(products):
            costs, of_each = p.costs(coefficients)
            times[:, i] = np.argmin(costs, axis=0)
            scales[:, i] = of_each[times[:, i], every]
            total += costs[times[:, i], every]
    return coefficients, scales, times, total
