"""Bayesian regression in a basis, averaged over priors by their marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.methods.smoothing.basis import Basis
from odefit.methods.smoothing.evidence import Balance, Reduced, balance
from odefit.methods.smoothing.expansion import Expansion, members, mixture
from odefit.problem.arrays import Array

COARSE = 14
"""Values of a prior's parameter that are tried over its whole range."""

FINE = 11
"""Values that are tried between the neighbours of the best of these."""


@dataclass(frozen=True)
class Prior:
    """A family of priors: independent coefficients, their relative standard deviations.

    Attributes
    ----------
    decay
        Relative standard deviations for a value of the family's parameter, shape (m,).
    low, high
        Range of the parameter.
    """

    decay: Callable[[float], Array]
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Data:
    """A linear model after orthogonalisation: n data, of which `right` are explained.

    Attributes
    ----------
    basis
        Functions.
    triangle
        R of the design's QR factorisation, shape (k, m).
    right
        Q^T y, shape (k,).
    left
        Sum of squares of the data outside of Q.
    n
        Number of data.
    """

    basis: Basis
    triangle: Array
    right: Array
    left: float
    n: int

    def likely(self, decay: Array) -> Balance:
        """Noise and prior variance that are most likely with a prior."""
        u, s, _ = np.linalg.svd(self.triangle * decay, full_matrices=False)
        return balance(Reduced(s, u.T @ self.right, self.left, self.n))

    def posterior(self, decay: Array) -> Expansion:
        """Coefficients under a prior, its variance as likely as can be.

        The prior is diagonal in the basis: all numbers come from singular values of the design
        with scaled columns, accurate down to rounding, where the matrix of a kernel would lose
        half the digits.
        """
        u, s, vt = np.linalg.svd(self.triangle * decay, full_matrices=True)
        rank = len(s)
        right = (u.T @ self.right)[:rank]
        found = balance(Reduced(s, right, self.left, self.n))
        mean = decay * (vt[:rank].T @ (s / (s**2 + found.ratio) * right))
        # Directions that no datum sees keep their prior variance.
        shrunk = np.ones(len(decay))
        shrunk[:rank] = np.sqrt(found.ratio / (s**2 + found.ratio))
        root = np.sqrt(found.variance) * decay[:, None] * vt.T * shrunk
        return Expansion(self.basis, mean, root, found.sd)


def regress(x: Array, y: Array, basis: Basis, families: Sequence[Prior]) -> tuple[Expansion, Array]:
    """The posterior, averaged over families and their parameters.

    Returns
    -------
    tuple
        The fit, and the most likely prior's standard deviations, shape (m,).
    """
    n = len(x)
    q, r = np.linalg.qr(basis.values(x))
    b = q.T @ y
    left = float(np.sum((y - q @ b) ** 2)) if n > r.shape[1] else 0.0
    data = Data(basis, r, b, left, n)

    decays: list[Array] = []
    scores: list[float] = []
    widths: list[Array] = []
    for family in families:
        known: dict[float, float] = {}
        low, high = np.log(family.low), np.log(family.high)
        for points in (COARSE, FINE):
            for log in np.linspace(low, high, points):
                known[float(log)] = data.likely(family.decay(float(np.exp(log)))).score
            logs = np.array(sorted(known))
            best = int(np.argmin([known[log] for log in logs]))
            low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
        decays += [family.decay(float(np.exp(log))) for log in logs]
        scores += [known[log] for log in logs]
        widths.append(np.gradient(logs) / (logs[-1] - logs[0]))
    chosen, weights = members(np.array(scores), np.concatenate(widths))
    fit = mixture([data.posterior(decays[i]) for i in chosen], weights)
    best = int(np.argmin(scores))
    return fit, np.sqrt(data.likely(decays[best]).variance) * decays[best]
