"""Both methods with the optimisers of the authors' program, simode for R.

Their nonlinear least squares is a general minimiser on all parameters: Nelder and Mead's simplex of
at most 500 evaluations for Lotka-Volterra, a variable metric method (J. C. Nash, Compact numerical
methods for computers, 1990, algorithm 21) of at most 100 iterations for the others. Both stop at a
relative decrease of 1.5e-8. A value outside the bounds is replaced by the nearest one inside.
Smoothing is by cubic splines with generalised cross-validation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize

from evidence.running.campaign import Task
from evidence.separable import plan as plan
from odefit import Problem
from odefit.common.arrays import Array
from odefit.methods.integral_matching.criterion import IntegralCriterion
from odefit.methods.integral_matching.segments import smoothed_segments
from odefit.methods.integral_matching.state_reconstruction import measured_states
from odefit.methods.smoothing import SmoothingSpline
from odefit.structure.invariants import invariants

RELATIVE = float(np.sqrt(np.finfo(float).eps))  # relative decrease below which a search ends

# Limits of the searches: iterations of the variable metric method, evaluations of the simplex
ITERATIONS, EVALUATIONS = 100, 500
Function = Callable[["Array"], tuple[float, "Array"]]  # a function that returns value and gradient


def variable_metric(function: Function, start: Array) -> Array:
    """Minimise with a BFGS approximation of the inverse Hessian and a backtracking search."""
    x = np.array(start, dtype=float)
    value, gradient = function(x)
    if not np.isfinite(value):
        return x
    n = len(x)
    inverse, fresh = np.eye(n), True
    for _ in range(ITERATIONS):
        direction = -inverse @ gradient
        slope = float(direction @ gradient)
        step, new, there = 1.0, value, gradient
        accepted = False
        while slope < 0 and not accepted:
            trial = x + step * direction
            if np.array_equal(10.0 + trial, 10.0 + x):
                break
            new, there = function(trial)
            accepted = bool(np.isfinite(new)) and new <= value + 1e-4 * step * slope
            step = step if accepted else 0.2 * step
        if not accepted or value - new <= RELATIVE * (abs(value) + RELATIVE):
            if accepted:
                x, value = trial, new
            if fresh:
                break
            inverse, fresh = np.eye(n), True
            if accepted:
                value, gradient = function(x)
            continue
        moved, turned = step * direction, there - gradient
        x, value, gradient = trial, new, there
        curvature = float(moved @ turned)
        if curvature > 0:
            bent = inverse @ turned
            factor = 1.0 + float(turned @ bent) / curvature
            inverse = (
                inverse
                + (factor * np.outer(moved, moved) - np.outer(moved, bent) - np.outer(bent, moved))
                / curvature
            )
            fresh = False
        else:
            inverse, fresh = np.eye(n), True
    return x


def simplex(function: Function, start: Array) -> Array:
    """Minimise with Nelder and Mead's simplex, its first edges a tenth of the largest value."""
    edge = 0.1 * float(np.abs(start).max())
    corners = np.vstack([start, start + edge * np.eye(len(start))])

    def logarithm(x: Array) -> float:
        # the simplex only compares values, so differences may be relative
        return float(np.log(function(x)[0]))

    options: Any = {"initial_simplex": corners, "maxfev": EVALUATIONS}
    options |= {"fatol": RELATIVE, "xatol": np.inf}
    found = minimize(logarithm, start, method="Nelder-Mead", options=options)
    return np.asarray(found.x)


# The optimisers by name in :data:`separable_plan.MODELS`
OPTIMISERS: Mapping[str, Callable[[Function, Array], Array]] = {
    "bfgs": variable_metric,
    "nelder-mead": simplex,
}


def published_estimates(
    task: Task, problem: Problem, starts: Mapping[str, Array]
) -> dict[str, dict[str, Any]]:
    """Return ``vector``, ``loss`` and ``search`` (seconds) by method."""
    model = plan.MODELS[task["model"]]
    smoother = SmoothingSpline(order=2, size=None, criterion="gcv")
    measured = measured_states(problem.model, problem.conditions)
    hidden = tuple(s for s in problem.model.states if s not in measured)
    weights = invariants(problem, hidden)
    assert weights is not None
    smoothed, _ = smoothed_segments(problem, smoother, measured)
    criterion = IntegralCriterion(problem, smoothed, hidden, weights)
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for name, (low, high) in model.published_bounds.items():
        lower[problem.keys.index(name)], upper[problem.keys.index(name)] = low, high
    minimiser = OPTIMISERS[model.optimiser]
    loss = _Loss(criterion, plan.linear(task, problem), lower, upper, model.samples[task["size"]])

    began = time.process_time()
    others = loss.others
    end = minimiser(loss.separated, starts["high"][others])
    found = {"sls": (loss.completed(end), time.process_time() - began)}
    for quality, start in starts.items():
        began = time.process_time()
        end = np.clip(minimiser(loss.whole, start), lower, upper)
        found[f"nls, {quality}"] = (end, time.process_time() - began)
    return {
        name: {"vector": vector, "loss": loss.of(vector), "search": seconds}
        for name, (vector, seconds) in found.items()
    }


class _Loss:
    """The integral criterion as a sum of squares of states in their own units, over n times."""

    def __init__(
        self, criterion: IntegralCriterion, linear: list[int], lower: Array, upper: Array, n: int
    ) -> None:
        self._criterion, self._linear = criterion, linear
        self._lower, self._upper = lower, upper
        self.others = [k for k in range(len(lower)) if k not in linear]
        (segment,) = criterion.segments
        span = float(segment.grid.times[-1] - segment.grid.times[0])
        sizes = [float(np.abs(segment.states[state]).max()) for _, state in criterion.equations]
        self._factors = [size * np.sqrt(n / span) for size in sizes]

    def whole(self, vector: Array) -> tuple[float, Array]:
        """Return the loss as a function of all unknowns."""
        inside = np.clip(vector, self._lower, self._upper)
        residuals, jacobian = self._stacked(inside, range(len(vector)))
        return self._value(residuals, jacobian, vector == inside)

    def separated(self, nonlinear: Array) -> tuple[float, Array]:
        """Return the loss as a function of the nonlinear unknowns, the linear ones solved for."""
        inside = np.clip(nonlinear, self._lower[self.others], self._upper[self.others])
        vector, basis = self._solved(inside)
        residuals, jacobian = self._stacked(vector, self.others)
        jacobian = jacobian - basis @ (basis.T @ jacobian)
        return self._value(residuals, jacobian, nonlinear == inside)

    def completed(self, nonlinear: Array) -> Array:
        """Return all unknowns, the linear ones solved for."""
        inside = np.clip(nonlinear, self._lower[self.others], self._upper[self.others])
        return self._solved(inside)[0]

    def of(self, vector: Array) -> float:
        residuals, _ = self._stacked(vector, ())
        return float(residuals @ residuals)

    def _solved(self, nonlinear: Array) -> tuple[Array, Array]:
        vector = np.zeros(len(self._lower))
        vector[self.others] = nonlinear
        constant, columns = self._stacked(vector, self._linear)
        if not (np.isfinite(constant).all() and np.isfinite(columns).all()):
            return np.full(len(vector), np.nan), np.zeros((len(constant), 0))
        basis, triangle = np.linalg.qr(columns)
        vector[self._linear] = -np.linalg.lstsq(triangle, basis.T @ constant, rcond=None)[0]
        return vector, basis

    def _stacked(self, vector: Array, active: Any) -> tuple[Array, Array]:
        values, jacobian = self._criterion.residuals(vector, list(active))
        return (
            np.concatenate([f * v for f, v in zip(self._factors, values, strict=True)]),
            np.concatenate([f * s for f, s in zip(self._factors, jacobian, strict=True)]),
        )

    @staticmethod
    def _value(residuals: Array, jacobian: Array, moving: Any) -> tuple[float, Array]:
        value = float(residuals @ residuals)
        if not np.isfinite(value):
            return np.inf, np.zeros(jacobian.shape[1])
        return value, np.where(moving, 2.0 * jacobian.T @ residuals, 0.0)
