"""Bounded trust-region Gauss-Newton (Fisher scoring) for likelihoods of Gaussian form.

Levenberg-Marquardt steps in More's formulation (J. J. More, The Levenberg-Marquardt algorithm,
1978): the damping is found from the trust radius, columns are scaled by the largest norm they
have had, so that the units of the unknowns do not matter.
:mod:`odefit.methods.local.quadratic_models` has the steps, into which bounds enter.

Where the valley is narrow and curved, a straight step is short. From the iteration on at which
it is clear that the problem is of that kind, steps follow the curvature to second order
(geodesic acceleration: M. K. Transtrum and J. P. Sethna, Improvements to the
Levenberg-Marquardt algorithm, 2012). Measured on the twelve transcription problems, this halves
the evaluations on the hard ones; used from the start it would double them on the easy ones.
Where residuals stay large, it is the second-order part of the Hessian that steps lack; from the
same iteration on they have it where it predicts the cost better
(:mod:`odefit.methods.local.second_order`). Where the noise is estimated, the logarithms of its
standard deviations are part of the cost, and residuals are in its units and never small, so that
this second model serves from the beginning, instead of the geodesic acceleration. On the published
model of Fujita et al. searches that had stopped at saddles go on with it. Where the noise is given,
the acceleration is worth more: a cascade of 40 unknowns is fitted in half the time with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.local.quadratic_models import (
    GaussNewtonModel,
    SecondOrderModel,
    column_norms,
    norm,
    within,
)
from odefit.methods.local.scaling import NEARLY_ZERO
from odefit.methods.local.second_order import SecondOrderPart

STRAIGHT_STEPS = 12
"""Number of steps after which a valley counts as curved if the iteration has not converged."""

MIN_RELATIVE_WEIGHT = 1e-3
"""Smallest weight of a relative change of an unknown, relative to the largest weight."""

PROBE_FRACTION = 0.1  # fraction of a step at which its curvature is measured

SMALL_PROMISE = 1e-6
"""Promised decrease, relative to the cost, from which on steps may be judged by what is promised
where they end: errors of the integration then hide what they gain."""

SMALL_RISE = 1e-4  # rise of the cost, relative to it, that such errors may make

PROMISE_RATIO = 0.25
"""Largest ratio of the decrease that is promised after and before a step that is so judged."""

STALL_GAIN = 0.1  # gain of the log-likelihood below which the iteration counts as stalled

MAX_ACCELERATION_RATIO = 0.75
"""Largest geodesic acceleration: twice the length of the correction over that of the step."""


MAX_HALVINGS = 12
"""Largest number of times that a step is halved which need not go to the very minimum."""


class Quadratic(Protocol):
    """A cost at a point with its Gauss-Newton model: gradient J'r, Hessian J'J."""

    @property
    def cost(self) -> float: ...
    @property
    def residuals(self) -> Array: ...
    @property
    def jacobian(self) -> Array: ...


@dataclass(frozen=True)
class Tolerances:
    """The stopping rules of :func:`minimise`."""

    # stop when the full Gauss-Newton step promises less than this relative decrease
    cost: float = 1e-12
    step: float = 1e-11  # stop when a step is smaller than this, relative to the unknowns
    # cost that counts as zero, which no other can beat; minus infinity where there is none
    floor: float = -math.inf
    evaluations: int = 200  # largest number of evaluations
    patience: int = 200  # number of evaluations in which the cost must fall by one per cent
    # Absolute decrease of the cost that is too small for another step. Costs that can pass through
    # zero, such as log-likelihoods, need one; :data:`STALL_GAIN` then replaces the one per cent.
    least: float = 0.0
    # whether residuals are known not to become small, as those in units of an estimated noise
    noisy: bool = False


@dataclass(frozen=True, eq=False)
class Minimum:
    """The end of the iteration."""

    vector: Array  # last point, shape (n,)
    evaluation: Quadratic | None  # cost there with its model; None if the start itself failed
    converged: bool  # whether a tolerance was met
    message: str  # which tolerance was met, or what else stopped the iteration
    evaluations: int  # number of evaluations of the cost


# Far from any sensible answer squares overflow. An infinite cost is no step forward, and what is
# promised by a model that overflows is not known to be little: these are values, no mistakes.
@np.errstate(all="ignore")
def minimise(
    evaluate: Callable[[Array], Quadratic | None],
    start: Array,
    lower: Array,
    upper: Array,
    tolerances: Tolerances,
    stop: Callable[[], bool] = lambda: False,
    first_step: Array | None = None,
    sizes: Array | None = None,
) -> Minimum:
    """Minimise a cost within bounds, which are infinite where there are none.

    `evaluate` returns None where it fails. `stop` is called before each evaluation; True ends with
    the best so far. The first step may be as long as `first_step`, None for the start vector;
    unknowns near zero count with the magnitudes `sizes` at least.
    """
    x = np.clip(start, lower, upper)
    current = _usable(evaluate(x))
    count = 1
    if current is None:
        return Minimum(x, None, False, "the start could not be evaluated", count)
    scale = column_norms(current.jacobian)
    radius = 0.0
    steps = 0
    second = SecondOrderPart(len(x))
    milestone = (count, current.cost)
    while True:
        if current.cost <= tolerances.floor:
            return Minimum(x, current, True, "the residuals are zero to rounding", count)
        scale = np.maximum(scale, column_norms(current.jacobian))
        weight = _weights(scale, x, sizes)
        model = GaussNewtonModel(current.residuals, current.jacobian, weight, x, lower, upper)
        gradient = current.jacobian.T @ current.residuals
        if not model.promises(max(tolerances.cost * abs(current.cost), tolerances.least, 1e-300)):
            return Minimum(x, current, True, "no further decrease is possible", count)
        if radius == 0.0:
            longest = magnitudes(x, sizes) if first_step is None else first_step
            radius = norm(weight * longest) or norm(current.residuals)
        while True:
            if count >= tolerances.evaluations:
                return Minimum(x, current, False, f"stopped after {count} evaluations", count)
            if stop():
                return Minimum(x, current, False, "the search was stopped", count)
            if count - milestone[0] >= tolerances.patience:
                if milestone[1] - current.cost < (
                    STALL_GAIN if tolerances.least else 0.01 * milestone[1]
                ):
                    return Minimum(x, current, False, "the fit hardly improves any more", count)
                milestone = (count, current.cost)
            hessian = current.jacobian.T @ current.jacobian + second.matrix
            full = SecondOrderModel(gradient, hessian, weight, x, lower, upper)
            curved = steps >= STRAIGHT_STEPS
            by_second = second.in_use and (curved or tolerances.noisy)
            used = full if by_second else model
            d = used.step(radius)
            trial = within(x + d, lower, upper)
            d = trial - x
            length = norm(weight * d)
            predicted = used.decrease(d)
            if curved and not (by_second or tolerances.noisy) and length > 0:
                probe = _usable(evaluate(x + PROBE_FRACTION * d))
                count += 1
                if probe is not None:
                    bend = model.acceleration(
                        (probe.jacobian @ d - current.jacobian @ d) / PROBE_FRACTION
                    )
                    if 2 * norm(weight * bend) <= MAX_ACCELERATION_RATIO * length:
                        trial = within(trial + bend, lower, upper)
            new = _usable(evaluate(trial)) if length > 0 else None
            count += 1
            actual = current.cost - new.cost if new is not None else -math.inf
            if new is not None and math.isfinite(new.cost):
                moved = trial - x
                second.compare(actual, model.decrease(moved), full.decrease(moved))
                change = new.jacobian.T @ new.residuals - gradient
                second.update(moved, change, new.jacobian, weight)
            ratio = actual / predicted if predicted > 0 else -1.0
            if new is None or not math.isfinite(ratio) or ratio < 0.25:
                radius = 0.25 * min(radius, length)
            elif ratio > 0.75 and length > 0.9 * radius:
                radius = 2.5 * radius
            if new is not None and (
                ratio > 1e-4 or _nearer(model, current.cost, new, weight, trial, lower, upper)
            ):
                x, current = trial, new
                steps += 1
                break
            small = tolerances.step * norm(weight * x)
            if length <= small or radius <= small:
                return Minimum(x, current, True, "no smaller step improves the fit", count)
        if length <= tolerances.step * norm(weight * x):
            return Minimum(x, current, True, "the steps have become negligible", count)


def _usable(found: Quadratic | None) -> Quadratic | None:
    """Return a cost with its model; None where the squares of its Jacobian overflow."""
    if found is None or not math.isfinite(np.vdot(found.jacobian, found.jacobian)):
        return None
    return found


@np.errstate(all="ignore")  # as above
def promised_decrease(
    residuals: Array, jacobian: Array, x: Array, lower: Array, upper: Array
) -> float:
    """Return the decrease of the cost that its Gauss-Newton model promises within the bounds."""
    norms = column_norms(jacobian)
    weight = np.where(norms > 0, norms, 1.0)
    return GaussNewtonModel(residuals, jacobian, weight, x, lower, upper).promised


@np.errstate(all="ignore")  # as above
def bounded_step(
    residuals: Array, jacobian: Array, x: Array, lower: Array, upper: Array, slack: float = 0.0
) -> Array:
    """Return the step to the minimum of the Gauss-Newton model of a cost within the bounds.

    The decrease `slack` is given up for a shorter step: where the model is nearly flat, its minimum
    may be far away.
    """
    weight = _weights(column_norms(jacobian), x)
    model = GaussNewtonModel(residuals, jacobian, weight, x, lower, upper)
    best = model.step(math.inf)
    wanted = model.decrease(best) - slack
    length = norm(weight * best)
    for _ in range(MAX_HALVINGS if slack > 0 and length > 0 else 0):
        length *= 0.5
        shorter = model.step(length)
        if model.decrease(shorter) < wanted:
            break
        best = shorter
    return best


def _nearer(
    model: GaussNewtonModel,
    cost: float,
    new: Quadratic,
    weight: Array,
    trial: Array,
    lower: Array,
    upper: Array,
) -> bool:
    """Say whether a step has come nearer to the minimum although the cost does not show it."""
    near = new.cost - cost <= SMALL_RISE * abs(cost)  # false for NaN
    if not near or model.promises(SMALL_PROMISE * abs(cost)):
        return False
    there = GaussNewtonModel(new.residuals, new.jacobian, weight, trial, lower, upper)
    return not there.promises(PROMISE_RATIO * model.promised)


def magnitudes(x: Array, sizes: Array | None) -> Array:
    """Return the magnitudes of unknowns, which count with their `sizes` at least."""
    return np.abs(x) if sizes is None else np.maximum(np.abs(x), sizes)


def _weights(scale: Array, x: Array, sizes: Array | None = None) -> Array:
    """Return the weight of each unknown in the trust radius: its column norm, bounded below.

    An unknown that hardly acts would otherwise run to its bounds in every trial step, however
    small the radius, and act there.
    """
    found = np.maximum(magnitudes(x, sizes), 1e-300)
    least = MIN_RELATIVE_WEIGHT * (scale * found).max(initial=0.0)
    if sizes is None:
        found = np.maximum(found, NEARLY_ZERO * found.max(initial=0.0))
    weight = np.maximum(scale, least / found)
    return np.where(weight > 0, weight, 1.0)
