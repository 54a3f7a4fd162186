"""Standard errors, confidence intervals, and the directions that the data do not determine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from odefit.assessment.deviance import RANK_TOLERANCE
from odefit.assessment.directions import describe_directions
from odefit.assessment.parts import Direction, Trouble, Uncertainty
from odefit.methods.scaling import bounds_touched
from odefit.problem.arrays import Array, BoolArray
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, ForwardMap

PARTICIPATION = 1e-4
"""Share in the null space above which an unknown takes part in an undetermined direction; less
is what rounding leaves there."""


def assess_uncertainty(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    level: float = 0.95,
    conditions: int = 0,
) -> Uncertainty:
    """Return covariances from the Gauss-Newton (Fisher) matrix at the solution.

    Unknowns at a bound are held there: they get no standard error, and the standard errors of the
    others hold under the condition that they stay. Unknowns that take part in an undetermined
    direction get none either. All others do not depend on the undetermined ones.

    Parameters
    ----------
    vector
        The solution, shape (n,).
    level
        The level of the confidence intervals, between 0 and 1.
    conditions
        The number of equations that hold beside the data: the directions that they determine
        were not fitted.
    """
    problem = forward.problem
    n = len(vector)
    trouble: dict[str, Trouble] = {}
    at_bound = bounds_touched(problem, vector)
    for key, touched in zip(problem.keys, at_bound, strict=True):
        if touched:
            trouble[key] = "at a bound"
    jacobian = evaluation.jacobian
    norms = np.linalg.norm(jacobian, axis=0)
    dead = norms <= 1e-13 * max(norms.max(initial=0.0), 1e-300)
    for key, is_dead in zip(problem.keys, dead, strict=True):
        if is_dead:
            trouble[key] = "no effect"
    free = np.flatnonzero(~at_bound & ~dead)
    covariance = np.full((n, n), np.nan)
    degrees = math.inf
    variance = 1.0
    directions: tuple[Direction, ...] = ()
    rank = 0
    if len(free):
        s, vt, known, share = singular_directions(jacobian[:, free] / norms[free])
        rank = int(known.sum())
        if rank < len(free):
            # Back to natural units: a null vector of the scaled Jacobian over the norms.
            basis = np.zeros((len(free) - rank, n))
            basis[:, free] = vt[~known] / norms[free]
            directions = describe_directions(forward, vector, evaluation, basis)
            for k in np.flatnonzero(share > PARTICIPATION):
                trouble[problem.keys[free[k]]] = "not determined"
        good = np.array([problem.keys[k] not in trouble for k in free])
        if not forward.given_noise:
            # A direction that does not matter has not been fitted.
            degrees = float(_measurements(forward) - max(rank - conditions, 0))
            variance = evaluation.objective / degrees if degrees > 0 else math.nan
        inverse = (vt[known].T / s[known] ** 2) @ vt[known]
        inverse = variance * inverse / np.outer(norms[free], norms[free])
        inverse[~good, :] = np.nan
        inverse[:, ~good] = np.nan
        covariance[np.ix_(free, free)] = inverse
    elif not forward.given_noise:
        degrees = float(_measurements(forward))
        variance = evaluation.objective / degrees
    errors = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(errors, errors)
    for i, key in enumerate(problem.keys):
        if key not in trouble and is_weak(problem.unknowns[i], vector[i], errors[i]):
            trouble[key] = "weakly determined"
    quantile = _quantile(level, degrees)
    intervals = _intervals(problem, vector, errors, quantile)
    return Uncertainty(
        problem.keys,
        errors,
        intervals,
        covariance,
        correlation,
        level,
        degrees,
        variance,
        rank,
        directions,
        trouble,
        _sentence(trouble, directions, degrees, variance),
    )


def _measurements(forward: ForwardMap) -> int:
    priors = sum(u.parameter.prior is not None for u in forward.problem.unknowns)
    return forward.problem.size + priors


def singular_directions(scaled: Array) -> tuple[Array, Array, BoolArray, Array]:
    """Return which directions the rows of a Jacobian with columns of unit length determine.

    Parameters
    ----------
    scaled
        The Jacobian, shape (m, n).

    Returns
    -------
    values, directions
        The singular values, shape (n,), and the right singular vectors as rows, shape (n, n).
    determined
        Which of the directions are determined, shape (n,).
    share
        The share of each unknown in the undetermined directions, shape (n,).
    """
    _, s, vt = np.linalg.svd(scaled, full_matrices=True)
    s = np.concatenate([s, np.zeros(scaled.shape[1] - len(s))])
    determined = s > RANK_TOLERANCE * s[0]
    return s, vt, determined, np.sqrt(np.sum(vt[~determined] ** 2, axis=0))


def is_weak(unknown: Unknown, value: float, error: float) -> bool:
    """Tell whether a standard error exceeds the value of a positive unknown, or its bounds' width.

    There is nothing weak about an unknown without a standard error.
    """
    parameter = unknown.parameter
    positive = parameter.lower >= 0 or parameter.scale == "log10"
    limit = abs(value) if positive else parameter.upper - parameter.lower
    return bool(math.isfinite(error) and error > limit)


def _quantile(level: float, degrees: float) -> float:
    from scipy.special import ndtri, stdtrit

    p = 0.5 + level / 2
    if degrees <= 0:
        return math.nan
    return float(ndtri(p)) if math.isinf(degrees) else float(stdtrit(degrees, p))


def _intervals(problem: Problem, vector: Array, errors: Array, quantile: float) -> Array:
    """Return intervals that are symmetric in the unknowns, or in their logarithms for log10."""
    half = quantile * errors
    intervals = np.column_stack([vector - half, vector + half])
    for i, unknown in enumerate(problem.unknowns):
        if unknown.parameter.scale == "log10" and vector[i] > 0:
            with np.errstate(over="ignore"):
                factor = np.exp(half[i] / vector[i])
            intervals[i] = vector[i] / factor, vector[i] * factor
    return intervals


def _sentence(
    trouble: dict[str, Trouble], directions: Sequence[Direction], degrees: float, variance: float
) -> str:
    parts = []
    names: dict[Trouble, list[str]] = {}
    for key, kind in trouble.items():
        names.setdefault(kind, []).append(key)
    if "no effect" in names:
        parts.append(f"No effect on what is measured: {', '.join(names['no effect'])}.")
    parts += [d.sentence for d in directions]
    if "weakly determined" in names:
        listed = ", ".join(names["weakly determined"])
        parts.append(
            f"Hardly determined by the data (the standard error exceeds the value): {listed}."
        )
    if "at a bound" in names:
        listed = ", ".join(names["at a bound"])
        parts.append(f"At a bound, and held there for the standard errors of the others: {listed}.")
    if degrees <= 0:
        parts.append(
            "There are as many unknowns as measurements, so that no error can be estimated."
        )
    elif math.isinf(degrees):
        parts.append("Standard errors come from the noise model.")
    else:
        parts.append(
            f"The noise is estimated from the residuals: standard deviation "
            f"{math.sqrt(variance):.4g} with {degrees:.0f} degrees of freedom."
        )
    return " ".join(parts)
