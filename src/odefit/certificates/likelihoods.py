"""The terms of a likelihood in a statement: laws of measurements, and formulas of the unknowns.

A measurement of normal noise with a known standard deviation adds the square of
``(formula - value)/sd`` to the objective. Others have a `law` with its parameters, a `spread`, and
perhaps a side on which they are `censored`. Spreads that are estimated, and priors, add formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odefit.common.errors import InputError
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.noise_distributions.huber import Huber
from odefit.problem.noise_distributions.laplace import LAPLACE_ROUNDING, Laplace
from odefit.problem.noise_distributions.negative_binomial import NegativeBinomial
from odefit.problem.noise_distributions.normal import Normal
from odefit.problem.noise_distributions.poisson import Poisson
from odefit.problem.noise_distributions.student import Student
from odefit.problem.prior_families import KINK_ROUNDING
from odefit.problem.priors import Prior

LAWS: Mapping[type[NoiseDistribution], Callable[[Any], dict[str, Any]]] = {
    Normal: lambda _: {"name": "normal"},
    Student: lambda law: {"name": "student", "degrees": law.degrees},
    Huber: lambda law: {"name": "huber", "threshold": law.threshold},
    Laplace: lambda _: {"name": "laplace", "rounding": LAPLACE_ROUNDING},
    Poisson: lambda _: {"name": "poisson"},
    NegativeBinomial: lambda _: {"name": "negative-binomial"},
}
"""The entry of a law in a statement."""


def law_of(noise: Noise, censored: int, spread: float | str) -> dict[str, Any]:
    """Return the part of a measurement's entry that states its noise."""
    plain = noise.law.normal and not censored
    if plain and isinstance(spread, float):
        return {"sd": spread}
    entry = {"law": LAWS[type(noise.law)](noise.law), "spread": spread}
    return entry | ({"censored": censored} if censored else {})


def factor_of(noise: Noise, counts: Sequence[float], spread: str) -> str:
    """Return the formula that estimated spreads add to the objective, for some measurements."""
    if not isinstance(noise.law, NegativeBinomial):
        return f"({2 * len(counts)}*log({spread}))"
    parts = []
    for y in counts:
        # The largest density at a dispersion, with a constant of the count.
        constant = math.lgamma(y + 1) - 0.5 * math.log(2 * math.pi)
        constant -= y * math.log(y) if y else 0.0
        number, k = repr(float(y)), f"(1/{spread})"
        many = f"(lgamma(({k} + {number})) - lgamma({k}))"
        power = f"({number}*log({spread})) - (({k} + {number})*log((1 + ({number}*{spread}))))"
        parts.append(f"(2*(({constant!r}) - ({many} + ({power}))))")
    return balanced(parts)


def balanced(parts: Sequence[str]) -> str:
    """Return a sum whose brackets are nested as little as possible."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({balanced(parts[:half])} + {balanced(parts[half:])})"


def prior_term(key: str, prior: Prior, symbol: str) -> str | None:
    """Return the formula that a prior adds to the objective; None for one that only bounds."""
    if prior.flat:
        return None
    z = symbol if prior.on == "linear" else f"{prior.on}({symbol})"
    numbers = prior.numbers
    standard = "((({}) - ({}))/({}))"
    first, *others = numbers.values()
    match prior.distribution:
        case "normal":
            return f"({standard.format(z, first, others[0])}^2)"
        case "log-normal":
            u = standard.format(f"log({z})", first, others[0])
            return f"(({u} + ({others[0]}))^2)"
        case "laplace":
            u, e = standard.format(z, first, others[0]), repr(KINK_ROUNDING)
            return f"(2*(sqrt((({u}^2) + ({e}^2))) - {e}))"
        case "cauchy":
            return f"(2*log((1 + ({standard.format(z, first, others[0])}^2))))"
        case "exponential":
            return f"(2*({z}/({first})))"
        case "gamma":
            return _gamma(z, first, others[0])
        case "chi-square":
            return _gamma(z, first / 2, 2.0)
        case "rayleigh":
            t = f"(({z}/({first}))^2)"
            return f"(({t} - 1) - log({t}))"
        case "log-uniform":
            return f"(2*(log({z}) - log({first})))"
    raise InputError(f"the prior of {key}, {prior}: a certificate cannot have it")


def _gamma(z: str, shape: float, scale: float) -> str:
    if shape == 1:
        return f"(2*({z}/({scale})))"
    t = f"({z}/({(shape - 1) * scale!r}))"
    return f"({2 * (shape - 1)!r}*(({t} - 1) - log({t})))"
