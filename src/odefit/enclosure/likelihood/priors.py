"""Priors over boxes, as deviance residuals of the unknowns (:mod:`odefit.problem.prior_families`).

Each family is a composition of smooth functions. A density whose largest value is at an end of its
support leaves a constant out of the objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from odefit.common.errors import InputError
from odefit.enclosure.arithmetic.composition import (
    BEND,
    LOG_SHARE,
    LOGARITHM,
    RECIPROCAL,
    ROOT,
    composed,
)
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import TaylorModel
from odefit.problem.prior_families import EXCESS, KINK_ROUNDING
from odefit.problem.priors import Prior
from odefit.problem.problem import Problem


class PriorResiduals:
    """The residuals of priors over boxes; a uniform prior only bounds, and has none.

    `influence`, shape (size, n), is one at the unknown of each prior; `offset` is what the squares
    leave out of the objective, and `composed` those that are not normal. Raises InputError for a
    density that has no bound, or a kink that is no minimum of its own.
    """

    def __init__(self, problem: Problem) -> None:
        self._priors = [
            (problem.keys.index(key), prior)
            for key, prior in problem.priors.items()
            if not prior.flat
        ]
        for key, prior in problem.priors.items():
            shape = _shape(prior)
            unbounded = shape is not None and not shape >= 1
            if unbounded or prior.distribution not in {*_RESIDUALS, "uniform"}:
                raise InputError(
                    f"the prior of {key}, {prior}: its density has no bound that a proof could "
                    "use; take a normal, log-normal, Cauchy or Laplace prior, or a gamma prior "
                    "with a shape of at least 1"
                )
        self.size = len(self._priors)
        self.offset = -2 * EXCESS * sum(_at_an_end(prior) for _, prior in self._priors)
        self.composed = np.array([not prior.plain for _, prior in self._priors], dtype=bool)
        self.influence = np.zeros((self.size, len(problem.unknowns)))
        for i, (k, _) in enumerate(self._priors):
            self.influence[i, k] = 1.0

    def of(self, models: Sequence[TaylorModel]) -> list[TaylorModel]:
        """Return the residuals from Taylor models of the unknowns."""
        with np.errstate(all="ignore"):
            return [_residual(prior, models[k]) for k, prior in self._priors]


def _shape(prior: Prior) -> float | None:
    """Return the shape of a gamma density; None for others."""
    if prior.distribution == "gamma":
        return prior.numbers["shape"]
    if prior.distribution == "chi-square":
        return prior.numbers["degrees"] / 2
    return None


def _at_an_end(prior: Prior) -> bool:
    """Return whether the largest density is at an end of the support."""
    return prior.distribution in ("exponential", "log-uniform") or _shape(prior) == 1


def _residual(prior: Prior, unknown: TaylorModel) -> TaylorModel:
    z = unknown if prior.on == "linear" else composed(unknown, LOGARITHM)
    if prior.on == "log10":
        z = _scaled(z, 1 / math.log(10.0))
    return _RESIDUALS[prior.distribution](z, *prior.numbers.values())


def _scaled(x: TaylorModel, factor: float) -> TaylorModel:
    """Return a model times a number that is known to a few roundings."""
    number = TaylorModel.constant(x.monomials, np.full_like(x.remainder, factor))
    number.remainder = np.full_like(x.remainder, 8 * UNIT_ROUNDOFF * abs(factor))
    return x * number


def _standard(z: TaylorModel, location: float, scale: float) -> TaylorModel:
    return (z - Fraction(location)) * (1 / Fraction(scale))


def _log_normal(z: TaylorModel, mean: float, sd: float) -> TaylorModel:
    return _standard(composed(z, LOGARITHM), mean, sd) + Fraction(sd)


def _laplace(z: TaylorModel, location: float, scale: float) -> TaylorModel:
    u, e = _standard(z, location, scale), Fraction(KINK_ROUNDING)
    size = composed(u * u + e * e, ROOT) + e
    return u * composed(composed(size, RECIPROCAL) * 2, ROOT)


def _cauchy(z: TaylorModel, location: float, scale: float) -> TaylorModel:
    u = _standard(z, location, scale)
    return u * composed(composed(u * u, LOG_SHARE) * 2, ROOT)


def _root_of_logarithm(t: TaylorModel) -> TaylorModel:
    """Return the root of ``2 (t - 1 - log t)``, with the sign of t - 1."""
    return (t - 1) * composed(composed(t - 1, BEND), ROOT)


def _gamma(z: TaylorModel, shape: float, scale: float) -> TaylorModel:
    if shape == 1:
        return _one_sided(z * (1 / Fraction(scale)))
    mode = (Fraction(shape) - 1) * Fraction(scale)
    return _scaled(_root_of_logarithm(z * (1 / mode)), math.sqrt(shape - 1))


def _rayleigh(z: TaylorModel, scale: float) -> TaylorModel:
    u = z * (1 / Fraction(scale))
    return _scaled(_root_of_logarithm(u * u), math.sqrt(0.5))


def _one_sided(half: TaylorModel) -> TaylorModel:
    return composed((half + Fraction(EXCESS)) * 2, ROOT)


_RESIDUALS: Mapping[str, Callable[..., TaylorModel]] = {
    "normal": _standard,
    "log-normal": _log_normal,
    "laplace": _laplace,
    "cauchy": _cauchy,
    "gamma": _gamma,
    "chi-square": lambda z, degrees: _gamma(z, degrees / 2, 2.0),
    "exponential": lambda z, scale: _gamma(z, 1.0, scale),
    "rayleigh": _rayleigh,
    "log-uniform": lambda z, low, _: _one_sided(composed(z, LOGARITHM) - Fraction(math.log(low))),
}
"""Residuals on the scale of a prior, by distribution, from its parameters."""
