"""Functions with a penalty on roughness: the smoothness that data support, and its uncertainty.

The differences z of such a function have a normal prior with standard deviations
s_i = exp(C_i rho): one for all, or log-linear in the place. In the linearised model the likelihood
of rho with all unknowns integrated out is closed form. With the information S of the data on z
alone (the others profiled out), P = diag(s^-2), the fit z at P, and D = P - P(rho),

    2 log L(rho) = z'Dz + z'D (S + P(rho))^-1 Dz - log det(S + P(rho)) - 2 sum C rho.

Bands that take rho as known are too narrow. Averaged over rho in proportion to L, the covariance of
z is the mean of (S + P(rho))^-1 + d d' with the shift d = (S + P(rho))^-1 D z of the estimate. This
is the correction that S. N. Wood, N. Pya and B. Saefken (Journal of the American Statistical
Association 111, 2016, 1548-1563) make to first order, here on a grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.effects import acting
from odefit.problem.problem import Problem
from odefit.problem.unknown_functions.expansion import Expansion
from odefit.problem.variants.sizes import sizes_at

STEP = 0.5
"""Distance of the grid in the logarithm of the standard deviation."""

LEAST_EFFECTIVE = 0.1
"""Number of differences that the data determine at the smoothest function of the grid. Even
smoother functions are the same straight line."""

LOWER = 8.0
"""Fall of the log-likelihood at which the grid ends towards rough functions."""

LONGEST = 60
"""Largest number of levels of the grid."""

TILTS = np.linspace(-6.0, 6.0, 13)
"""Values of the tilt on the grid: the logarithm of the standard deviation at the end of the range
less that in the middle."""

UNEVEN = 1e-6
"""Range of the logarithms of standard deviations above which they change along a function."""

TILT_SD = 3.0
"""Standard deviation of the normal prior of the tilt."""


@dataclass(frozen=True, eq=False)
class Differences:
    """The penalised differences of a function in the linearised model.

    Attributes
    ----------
    places
        Their places among the unknowns, shape (q,).
    values
        Their estimates z, shape (q,).
    data
        The information S of the data on them, shape (q, q).
    logarithms
        Logarithms of their standard deviations, shape (q,).
    along
        Their places along the function, from -1 to 1, shape (q,).
    adaptive
        True if the standard deviation may change along the function.
    others
        Derivatives of all unknowns by the differences, shape (n, q).
    """

    places: IntArray
    values: Array
    data: Array
    logarithms: Array
    along: Array
    adaptive: bool
    others: Array

    def likelihood(self, logarithms: Array) -> tuple[float, Array, Array]:
        """Return the log-likelihood of other standard deviations, the covariance, and the shift."""
        precision = np.exp(-2 * logarithms)
        moved = (np.exp(-2 * self.logarithms) - precision) * self.values
        covariance, log_det = _inverse(self.data + np.diag(precision))
        shift = covariance @ moved
        twice = moved @ (self.values + shift) - log_det - 2 * logarithms.sum()
        return 0.5 * float(twice), covariance, shift

    def weight(self, level: float, tilt: float) -> tuple[float, Array, Array]:
        """Return the :meth:`likelihood` of a level and a tilt, with the prior of the tilt."""
        likelihood, covariance, shift = self.likelihood(level + tilt * self.along)
        return likelihood - 0.5 * (tilt / TILT_SD) ** 2, covariance, shift

    def effective(self) -> float:
        """Return the number of differences that the data determine, as a sum of shares."""
        inverse, _ = _inverse(self.data + np.diag(np.exp(-2 * self.logarithms)))
        return float(np.trace(inverse @ self.data))

    def coordinates(self) -> tuple[float, float]:
        """Return the level and the tilt of the standard deviations."""
        if not self.adaptive or len(self.along) < 2:
            return float(self.logarithms.mean()), 0.0
        tilt, level = np.polyfit(self.along, self.logarithms, 1)
        return float(level), float(tilt)

    def best(self, farthest: float) -> tuple[float, float]:
        """Return the level and the tilt of the largest likelihood within a distance of the last."""
        from scipy.optimize import minimize

        level, tilt = self.coordinates()
        box = [(level - farthest, level + farthest), (tilt - farthest, tilt + farthest)]

        def loss(point: Array) -> float:
            return -self.weight(float(point[0]), float(point[1]))[0]

        optimum = minimize(loss, [level, tilt], method="L-BFGS-B", bounds=box)
        return float(optimum.x[0]), float(optimum.x[1])

    def gain(self, farthest: float) -> float:
        """Return twice the logarithm of the ratio of likelihoods with a tilt and without."""
        from scipy.optimize import minimize_scalar

        level, _ = self.coordinates()
        tilted = replace(self, adaptive=True)
        with_tilt = tilted.weight(*tilted.best(farthest))[0]
        without = minimize_scalar(
            lambda at: -self.weight(float(at), 0.0)[0],
            bounds=(level - farthest, level + farthest),
            method="bounded",
        )
        return 2.0 * (with_tilt + float(without.fun))

    def spread(self) -> Array:
        """Return the part of the covariance of z due to the uncertain smoothness, shape (q, q)."""
        points = list(self._grid())
        weights = np.array([w for w, _, _ in points])
        weights = np.exp(weights - weights.max())
        weights /= weights.sum()
        total = np.zeros_like(self.data)
        for weight, (_, covariance, shift) in zip(weights, points, strict=True):
            total += weight * (covariance + np.outer(shift, shift))
        known, _ = _inverse(self.data + np.diag(np.exp(-2 * self.logarithms)))
        values, vectors = np.linalg.eigh(total - known)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def _grid(self) -> Iterator[tuple[float, Array, Array]]:
        """Yield the points of the grid, from the smoothest level that counts to the roughest."""
        level, _ = self.coordinates()
        strengths = np.maximum(np.linalg.eigvalsh(self.data), 0.0)

        def effective(at: float) -> float:
            return float(np.sum(strengths / (strengths + np.exp(-2 * at))))

        for _ in range(LONGEST):
            if effective(level) < LEAST_EFFECTIVE:
                break
            level -= STEP
        for _ in range(LONGEST):
            if effective(level) >= LEAST_EFFECTIVE:
                break
            level += STEP
        highest = -np.inf
        for _ in range(LONGEST):
            tilts = TILTS if self.adaptive else (0.0,)
            row = [self.weight(level, float(tilt)) for tilt in tilts]
            yield from row
            top = max(w for w, _, _ in row)
            highest = max(highest, top)
            if top < highest - LOWER:
                break
            level += STEP


def differences_of(
    problem: Problem, vector: Array, information: Array, name: str, expansion: Expansion
) -> Differences | None:
    """Return the differences of a function; None if none has a prior.

    `information` are rows whose squares are the Fisher information, including that of priors.
    """
    by_name = dict(zip(expansion.penalised, expansion.along, strict=True))
    differences = [
        (i, u.name, prior.sd)
        for i, u in enumerate(problem.unknowns)
        if u.name in by_name
        and (prior := problem.parameters[u.name].prior) is not None
        and prior.sd is not None
    ]
    if not differences:
        return None
    places = np.array([i for i, _, _ in differences])
    logarithms = np.log([sd for _, _, sd in differences])
    norms, effective = acting(information, sizes_at(problem, vector))
    rest = np.setdiff1d(np.flatnonzero(effective), places)
    columns = information[:, rest] / norms[rest]
    reach = np.linalg.pinv(columns) @ information[:, places]  # of the others, when z moves
    remainder = information[:, places] - columns @ reach
    data = remainder.T @ remainder - np.diag(np.exp(-2 * logarithms))
    values, vectors = np.linalg.eigh((data + data.T) / 2)
    others = np.zeros((len(vector), len(places)))
    others[rest] = -reach / norms[rest, None]
    others[places, np.arange(len(places))] = 1.0
    return Differences(
        places,
        vector[places],
        (vectors * np.maximum(values, 0.0)) @ vectors.T,
        np.asarray(logarithms),
        np.array([by_name[key] for _, key, _ in differences]),
        expansion.function.smooth == "adaptive" or bool(np.ptp(logarithms) > UNEVEN),
        others,
    )


def smoothness_rows(problem: Problem, vector: Array, information: Array) -> Array:
    """Return rows, shape (k, n), whose squares the unknown smoothness adds to the covariance.

    They cover all functions whose smoothness was chosen by likelihood; there may be no rows.
    """
    rows = [np.zeros((0, len(vector)))]
    for name, expansion in problem.given.unknown_functions.items():
        if expansion.function.smooth not in ("reml", "adaptive"):
            continue
        differences = differences_of(problem, vector, information, name, expansion)
        if differences is not None:
            values, vectors = np.linalg.eigh(differences.spread())
            roots = np.sqrt(np.maximum(values, 0.0))
            rows.append((differences.others @ (vectors * roots)).T)
    return np.concatenate(rows)


def _inverse(matrix: Array) -> tuple[Array, float]:
    """Return the inverse of a positive definite matrix and the logarithm of its determinant."""
    scale = 1 / np.sqrt(np.diag(matrix))
    scaled = matrix * np.outer(scale, scale)
    inverse = np.linalg.inv(scaled) * np.outer(scale, scale)
    return inverse, float(np.linalg.slogdet(scaled)[1] - 2 * np.log(scale).sum())
