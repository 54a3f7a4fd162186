"""Standard errors, confidence intervals, and directions that the data do not determine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.degrees_of_freedom import (
    NoiseFreedom,
    chi_square_interval,
    corrected_covariance,
    effective_degrees,
    inflated_covariance,
    noise_freedom,
)
from odefit.assessment.intervals.directions import describe_directions, relative_directions
from odefit.assessment.intervals.flat_directions import of_what_is_lost, ranges_inside, small_moves
from odefit.assessment.intervals.penalised_differences import smoothness_rows
from odefit.assessment.intervals.small_samples import (
    correlation_of,
    intervals_of,
    quantile_of,
    with_small_samples,
)
from odefit.assessment.parts import Direction, Treatment, Trouble, Uncertainty
from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.methods.fit_quality.goodness_verdict import Goodness, degrees_in_words
from odefit.methods.local.cost_tolerance import noiseless_rows
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

PARTICIPATION = 1e-4
"""Share in the null space above which an unknown takes part in an undetermined direction; smaller
shares are rounding."""


UNSEEN = 1e6
"""Standard errors above this multiple of the unknown's size are meaningless: a change by that size
moves the residuals by less than a millionth of the noise."""


def assess_uncertainty(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    level: float = 0.95,
    conditions: int = 0,
    tolerance: float = RANK_TOLERANCE,
) -> Uncertainty:
    """Return covariances from the Gauss-Newton (Fisher) matrix at the solution.

    Unknowns at a bound are held there: they get no standard error, and those of the others assume
    that they stay. Unknowns that an undetermined direction moves noticeably get none either, see
    :mod:`odefit.assessment.intervals.flat_directions`. All others hardly depend on the undetermined
    ones.

    Where the noise is estimated, variances, quantiles and the intervals of the noise parameters
    allow for the degrees of freedom that the fit has used up, see
    :mod:`odefit.assessment.intervals.degrees_of_freedom`. For noise that is not normal, see
    :mod:`odefit.assessment.intervals.small_samples`. `conditions` is the number of equations
    besides the data, whose directions were not fitted. Directions with singular values up to a
    `tolerance`, relative to the largest, are not determined.
    """
    problem = forward.problem
    n = len(vector)
    trouble: dict[str, Trouble] = {}
    at_bound = bounds_touched(problem, vector)
    for key, touched in zip(problem.keys, at_bound, strict=True):
        if touched:
            trouble[key] = Trouble.AT_A_BOUND
    jacobian, sure = _without_exact_rows(forward, vector, evaluation)
    norms, effective = acting(jacobian, sizes_at(problem, vector))
    for key, acts, exact in zip(problem.keys, effective, sure, strict=True):
        if exact:
            trouble.setdefault(key, Trouble.NO_NOISE)
        elif not acts:
            trouble[key] = Trouble.NO_EFFECT
    free = np.flatnonzero(~at_bound & effective & ~sure)
    covariance = np.full((n, n), np.nan)
    degrees = math.inf
    variance = 1.0
    of_each: Array | None = None
    freedom: NoiseFreedom | None = None
    directions: tuple[Direction, ...] = ()
    moves = np.zeros(n)  # moved by directions that the data do not determine
    rank = 0
    if len(free):
        scaled = jacobian[:, free] / norms[free]
        s, vt, known, share = singular_directions(scaled, tolerance)
        rank = int(known.sum())
        basis, orthonormal = _determined(scaled, norms[free], s, vt, known)
        if not forward.given_noise:
            # A direction without effect has not been fitted.
            degrees = float(_measurements(forward) - max(rank - conditions, 0))
            variance = evaluation.objective / degrees if degrees > 0 else math.nan
        if rank < len(free):
            # Back to natural units: a null vector of the scaled Jacobian over the norms.
            null = np.zeros((len(free) - rank, n))
            null[:, free] = vt[~known] / norms[free]
            directions = describe_directions(forward, vector, evaluation, null)
            rows = relative_directions(problem, vector, null)
            basis, orthonormal = _with_pivots_held(
                scaled, norms[free], rows[:, free], basis, orthonormal
            )
            taking_part, alone = np.zeros(n, dtype=bool), np.zeros(n)
            taking_part[free] = share > PARTICIPATION
            alone[free] = math.sqrt(variance) * np.linalg.norm(basis, axis=1)
            moves, ridges = small_moves(forward, vector, rows, taking_part, alone, variance)
            for k in np.flatnonzero(taking_part & np.isinf(moves)):
                trouble[problem.keys[k]] = Trouble.NOT_DETERMINED
            within = [ranges_inside(problem, ridge) for ridge in ridges]
            directions = of_what_is_lost(directions, trouble, within)
        names = problem.keys
        good = np.array([names[k] not in trouble for k in free])
        with np.errstate(over="ignore", invalid="ignore"):
            # The variance of an unknown with hardly any effect may overflow.
            inverse = variance * basis @ basis.T
        if forward.likelihood and forward.nodes is None:
            held = np.zeros_like(jacobian)
            held[:, free[good]] = jacobian[:, free[good]]
            freedom = noise_freedom(forward, vector, held, orthonormal)
        if freedom is not None:
            of_each = np.full(n, math.inf)
            if freedom.enough:
                coordinates = corrected_covariance(orthonormal, freedom)
                wider = inflated_covariance(orthonormal, freedom, coordinates)
                inverse = basis @ wider @ basis.T
                of_each[free] = effective_degrees(orthonormal, freedom, basis, coordinates)
            else:
                inverse, of_each[free] = np.full_like(inverse, np.nan), 0.0
            degrees = _fewest(of_each, free[good], freedom)
        rows = smoothness_rows(problem, vector, jacobian)[:, free]
        inverse += rows.T @ rows
        inverse[np.diag_indices(len(free))] += np.where(good, moves[free], 0.0) ** 2
        inverse[~good, :] = np.nan
        inverse[:, ~good] = np.nan
        covariance[np.ix_(free, free)] = inverse
    elif not forward.given_noise:
        degrees = float(_measurements(forward))
        variance = evaluation.objective / degrees
    errors = np.sqrt(np.diag(covariance))
    unseen = errors > UNSEEN * np.maximum(np.abs(vector), sizes_at(problem, vector))
    series = [s for c in problem.conditions for s in c.series.values()]
    if series and all(s.censored is not None and s.censored.all() for s in series):
        unseen = np.isfinite(errors)  # bounds exist on one side only
    for k in np.flatnonzero(unseen):
        trouble.setdefault(problem.keys[k], Trouble.WEAKLY_DETERMINED)
    errors[unseen] = covariance[unseen, :] = covariance[:, unseen] = np.nan
    correlation = correlation_of(covariance, errors)
    for i, key in enumerate(problem.keys):
        if key not in trouble and is_weak(problem.unknowns[i], vector[i], errors[i]):
            trouble[key] = Trouble.WEAKLY_DETERMINED
    each = np.full(n, degrees) if of_each is None else of_each
    quantiles = np.array([quantile_of(level, of) for of in each])
    intervals = intervals_of(problem, vector, errors, quantiles)
    corrected: dict[str, float] = {}
    if freedom is not None and freedom.enough:
        noise = zip(freedom.unknowns, freedom.corrected(vector), freedom.factors, strict=True)
        for k, value, factor in noise:
            corrected[problem.keys[k]] = float(value)
            # The degrees of freedom of a factor whose logarithm has this standard error.
            each[k] = 0.5 * (vector[k] / errors[k]) ** 2 if factor else degrees
            intervals[k] = _of_noise(problem.unknowns[k], value, errors[k], each[k], factor, level)
    uncertainty = Uncertainty(
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
        _sentence(forward, trouble, directions, degrees, variance, freedom),
        {} if of_each is None else dict(zip(problem.keys, each.tolist(), strict=True)),
        corrected,
    )
    if variance == 0.0:
        return _without_noise(forward, uncertainty)
    return with_small_samples(forward, vector, evaluation, uncertainty)


def _determined(
    scaled: Array, norms: Array, s: Array, vt: Array, known: BoolArray
) -> tuple[Array, Array]:
    """Return the determined directions as columns, in natural units and as residuals."""
    basis = vt[known].T / s[known]
    return basis / norms[:, None], scaled @ basis


def _with_pivots_held(
    scaled: Array, norms: Array, rows: Array, basis: Array, orthonormal: Array
) -> tuple[Array, Array]:
    """Return the same with each flat direction's most affected unknown held.

    Unknowns outside the directions are the same in both. Slightly affected ones get the standard
    error for known values of the held unknowns.
    """
    pivots = np.unique(np.argmax(np.abs(rows), axis=1))
    free = np.setdiff1d(np.arange(len(norms)), pivots)
    if len(pivots) < len(rows):
        return basis, orthonormal
    s, vt, known, _ = singular_directions(scaled[:, free])
    if not known.all():
        return basis, orthonormal
    moved_basis = np.zeros_like(basis)
    moved_basis[free], orthonormal = _determined(scaled[:, free], norms[free], s, vt, known)
    return moved_basis, orthonormal


def _without_exact_rows(
    forward: ForwardMap, vector: Array, evaluation: Evaluation
) -> tuple[Array, BoolArray]:
    """Return the information of all values with noise, and the unknowns that the others determine.

    Where an observable is reproduced to rounding, its estimated noise vanishes: the unknowns that
    act on it are known exactly, and no others.
    """
    jacobian = evaluation.information
    sure = np.zeros(len(jacobian), dtype=bool)
    in_rows = forward.nodes is None and len(jacobian) == len(evaluation.residuals)
    if forward.likelihood and in_rows:
        rows = noiseless_rows(forward, vector, evaluation.choice)
        sure[: len(rows)] = rows
    exact = np.any(jacobian[sure] != 0.0, axis=0)
    return np.where(sure[:, None], 0.0, jacobian), exact


def _without_noise(forward: ForwardMap, uncertainty: Uncertainty) -> Uncertainty:
    """Return the uncertainty if all residuals are zero: no errors, but troubles."""
    nothing = {
        name: np.full_like(getattr(uncertainty, name), np.nan)
        for name in ("standard_errors", "intervals", "covariance", "correlation")
    }
    troubles: dict[str, Trouble] = {
        k: v for k, v in uncertainty.trouble.items() if v is not Trouble.WEAKLY_DETERMINED
    }
    trouble: dict[str, Trouble] = {k: troubles.get(k, Trouble.NO_NOISE) for k in uncertainty.keys}
    at = uncertainty.directions, uncertainty.degrees_of_freedom, uncertainty.variance, None
    return replace(
        uncertainty, **nothing, trouble=trouble, sentence=_sentence(forward, trouble, *at)
    )


def _measurements(forward: ForwardMap) -> int:
    return forward.problem.size + len(forward.problem.priors)


def singular_directions(
    scaled: Array, tolerance: float = RANK_TOLERANCE
) -> tuple[Array, Array, BoolArray, Array]:
    """Return the directions that the rows of a Jacobian with columns of unit length determine.

    The results are singular values, shape (n,), right singular vectors as rows, which of these
    directions are determined, and the share of each unknown in the undetermined ones.
    """
    # All right singular vectors are needed, but no left ones, a square matrix of measurements.
    _, s, vt = np.linalg.svd(scaled, full_matrices=scaled.shape[0] < scaled.shape[1])
    s = np.concatenate([s, np.zeros(scaled.shape[1] - len(s))])
    determined = s > tolerance * s[0]
    return s, vt, determined, np.sqrt(np.sum(vt[~determined] ** 2, axis=0))


def is_weak(unknown: Unknown, value: float, error: float) -> bool:
    """Tell whether a standard error exceeds the value of a positive unknown, or its bounds' width.

    It is False for an unknown without a standard error.
    """
    parameter = unknown.parameter
    positive = parameter.lower >= 0 or parameter.scale == "log10"
    limit = abs(value) if positive else parameter.upper - parameter.lower
    return bool(math.isfinite(error) and error > limit)


def _fewest(degrees: Array, good: IntArray, freedom: NoiseFreedom) -> float:
    """Return the fewest degrees of freedom of any unknown that acts on more than the noise."""
    others = np.setdiff1d(good, freedom.unknowns)
    return float(degrees[others].min()) if len(others) else freedom.degrees


def _of_noise(
    unknown: Unknown, value: float, error: float, degrees: float, factor: bool, level: float
) -> tuple[float, float]:
    """Return the interval of a noise parameter whose corrected estimate is `value`."""
    if not (value > 0 and math.isfinite(error)):
        return math.nan, math.nan
    if factor:
        low, high = chi_square_interval(value, degrees, level)
    else:
        half = quantile_of(level, degrees) * error
        low, high = value - half, value + half
    return max(low, unknown.parameter.lower), min(high, unknown.parameter.upper)


def weakly_determined(trouble: Mapping[str, Trouble]) -> str:
    """Return the sentence on unknowns that are weakly determined; it is empty without them."""
    listed = ", ".join(k for k, kind in trouble.items() if kind is Trouble.WEAKLY_DETERMINED)
    text = "Hardly determined by the data (the standard error exceeds the value)"
    return f"{text}: {listed}." if listed else ""


def _sentence(
    forward: ForwardMap,
    trouble: dict[str, Trouble],
    directions: Sequence[Direction],
    degrees: float,
    variance: float,
    freedom: NoiseFreedom | None,
) -> str:
    parts = []
    names: dict[Trouble, list[str]] = {}
    for key, kind in trouble.items():
        names.setdefault(kind, []).append(key)
    if Trouble.NO_EFFECT in names:
        parts.append(f"No effect on any measurement: {', '.join(names[Trouble.NO_EFFECT])}.")
    parts += [d.sentence for d in directions]
    if weak := weakly_determined(trouble):
        parts.append(weak)
    if Trouble.AT_A_BOUND in names:
        listed = ", ".join(names[Trouble.AT_A_BOUND])
        parts.append(f"At a bound, and held there for the standard errors of the others: {listed}.")
    exact = names.get(Trouble.NO_NOISE, [])
    if exact:
        parts.append(
            f"The model reproduces the data that determine {', '.join(exact)} to rounding, so no "
            "noise is left from which to estimate standard errors."
        )
    if exact and len(trouble) == len(forward.problem.keys):
        return " ".join(parts)  # the rest is about errors, which are missing
    if freedom is not None and degrees > 0:
        fewest = f" with {degrees_in_words(degrees)}" if math.isfinite(degrees) else ""
        parts.append(
            "The noise is estimated: standard errors and intervals allow for the unknowns that "
            f"were fitted{fewest}."
        )
    elif forward.likelihood and forward.nodes is not None:
        parts.append(
            "The noise is a maximum likelihood estimate; with few measurements, standard errors "
            "based on it are too small."
        )
    elif degrees <= 0:
        parts.append("There are as many unknowns as measurements, so no error can be estimated.")
    elif math.isinf(degrees):
        parts.append("Standard errors come from the noise model.")
    else:
        parts.append(
            f"The noise is estimated from the residuals: standard deviation "
            f"{math.sqrt(variance):.4g} with {degrees_in_words(round(degrees))}."
        )
    return " ".join(parts)


def intervals_of_bad_fit(
    problem: Problem,
    vector: Array,
    uncertainty: Uncertainty,
    goodness: Goodness | None,
    choice: Treatment,
) -> Uncertainty:
    """Return the uncertainty as the user requests for a bad goodness of fit.

    A good fit changes nothing. ``"scaled"`` multiplies standard errors by the root of the reduced
    chi-square, whose degrees of freedom then apply (R. T. Birge, Physical Review 40, 1932,
    207-227); ``"withheld"`` removes them. The sandwich
    (:mod:`odefit.assessment.intervals.sandwich`) does not depend on the goodness of fit, and is
    applied elsewhere.
    """
    if goodness is None or not goodness.bad or choice in ("as-is", "sandwich"):
        return uncertainty
    if choice == "withheld":
        nothing = {
            name: np.full_like(getattr(uncertainty, name), np.nan)
            for name in ("standard_errors", "intervals", "covariance", "correlation")
        }
        sentence = (
            "Standard errors and intervals are withheld, because the residuals do not look like "
            "noise."
        )
        return replace(
            uncertainty,
            **nothing,
            treatment="withheld",
            sentence=f"{uncertainty.sentence} {sentence}".strip(),
        )
    reduced = goodness.reduced_chi_square
    if not reduced > 1.0:
        sentence = (
            "Standard errors and intervals are not scaled: they come from residuals of this size."
        )
        return replace(uncertainty, sentence=f"{uncertainty.sentence} {sentence}".strip())
    factor = math.sqrt(reduced)
    errors = factor * uncertainty.standard_errors
    degrees = goodness.degrees_of_freedom
    quantiles = np.full(len(errors), quantile_of(uncertainty.level, degrees))
    sentence = (
        f"Standard errors and intervals are scaled by {factor:.3g}, the root of the reduced "
        f"chi-square, with {degrees_in_words(degrees)}."
    )
    return replace(
        uncertainty,
        standard_errors=errors,
        covariance=reduced * uncertainty.covariance,
        intervals=intervals_of(problem, vector, errors, quantiles),
        degrees_of_freedom=degrees,
        treatment="scaled",
        sentence=f"{uncertainty.sentence} {sentence}".strip(),
    )
