"""Lyapunov exponents, a by-product of the Local Linearization method.

After Carbonell, Jimenez and Biscay (2002): each step has the propagator of small perturbations,
exp(hJ), at hand. Orthonormal perturbations are carried through every step and orthonormalised
again; the mean logarithms of their growth are the exponents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import Array
from odefit.problem.binding import Binding
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.features import refuse_integrated_features
from odefit.problem.problem import Problem
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engine import BatchFailure, InitialValueProblems
from odefit.simulation.failure import Failure
from odefit.simulation.local_linearization import LocalLinearizationBatchIntegrator

TOLERANCE = 1e-4
"""Relative tolerance of the integration. Its effect on the exponents of the Lorenz equations,
1e-3 in their sum, is far below what the finite duration leaves open."""

BATCHES = 20
"""Number of equal parts of the duration, whose scatter gives the standard errors."""

TRANSIENT = 0.1
"""Time before the averages begin, over the duration: until perturbations and states have
settled."""

MAX_STEPS = 10_000_000
"""Integration steps, at most."""


@dataclass(frozen=True, eq=False)
class LyapunovSpectrum:
    """Mean exponential rates at which small perturbations of a trajectory grow.

    Attributes
    ----------
    exponents
        The largest ones, in descending order, shape (count,), in 1/time unit of the problem.
    errors
        Their standard errors by batch means, shape (count,): by how much the exponents of
        another time span of the same length may differ. They know nothing of a trajectory that
        has not settled yet.
    duration
        The time that the exponents are means over.
    steps
        Number of steps that the integrator has taken.
    """

    exponents: Array
    errors: Array
    duration: float
    steps: int


def lyapunov_exponents(
    problem: Problem,
    vector: Array | Mapping[str, float],
    duration: float,
    *,
    experiment: str | None = None,
    count: int | None = None,
    transient: float | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> LyapunovSpectrum | Failure:
    """Return the Lyapunov exponents of one experiment's trajectory.

    Parameters
    ----------
    problem
        The problem; its data are not used, inputs and events are refused.
    vector
        Unknowns, shape (n,), or their values by name.
    duration
        Time to average over.
    experiment
        Name of the experiment whose initial values to start from (the first).
    count
        How many exponents, the largest first; None for as many as there are states.
    transient
        Time that passes from t0 before the averages begin; None for a tenth of `duration`.
    tolerance
        Relative tolerance of the integration.
    max_steps
        Integration steps, at most.

    Returns
    -------
    LyapunovSpectrum or Failure
        A failure where the trajectory cannot be integrated.

    Raises
    ------
    InputError
        The problem has inputs, events or algebraic equations that have to be solved; unknown
        experiment; times or counts that make no sense.

    Examples
    --------
    >>> from odefit import Model, Problem
    >>> model = Model(ode={"x": "v", "v": "-x - 0.2*v"})
    >>> problem = Problem(model, {"t": [0, 1], "x": [1, 0]}, {}, {"x": 1.0, "v": {}})
    >>> found = lyapunov_exponents(problem, {"v": 0.0}, 200.0)
    >>> [round(float(rate), 2) + 0.0 for rate in found.exponents]
    [-0.1, -0.1]
    """
    condition = problem.condition(experiment)
    field = VectorField.of(problem.model, problem.conditions)
    n = len(field.states)
    count = n if count is None else count
    before = TRANSIENT * duration if transient is None else transient
    _check(problem, condition, duration, before, count)
    if isinstance(vector, Mapping):
        vector = problem.vector(vector)
    with np.errstate(all="ignore"):
        states = Binding([condition.initial[s] for s in field.states], condition.scalars)(vector)
        scalars = Binding([condition.scalars[s] for s in field.scalars], condition.scalars)(vector)
    if not np.isfinite(states).all():
        return Failure(condition.name, condition.t0, "an initial value is not finite")
    integrator = LocalLinearizationBatchIntegrator(
        field, SensitivityPattern(count, frozenset()), tolerance, 1e-3 * tolerance, order=3
    )
    # Perturbations of the states' own size, which is what their errors are measured by.
    growth = _Growth(float(np.abs(states).max(initial=0.0)) or 1.0, condition.t0, count)
    start = condition.t0
    marks = start + before + duration * np.linspace(0.0, 1.0, BATCHES + 1)
    problems = InitialValueProblems(
        np.array([start]),
        [marks[marks > start]],
        np.zeros((1, 0, 5)),
        states[None],
        scalars,
        growth.size * np.eye(n, count),
        np.zeros((len(scalars), count)),
    )
    found = integrator.integrate(problems, max_steps, growth)
    if isinstance(found, BatchFailure):
        return Failure(condition.name, found.failure.time, found.failure.reason)
    rates = np.diff(growth.at(marks), axis=0) / np.diff(marks)[:, None]
    exponents = rates.mean(axis=0)
    errors = rates.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    order = np.argsort(-exponents)
    return LyapunovSpectrum(exponents[order], errors[order], duration, int(found.steps[0]))


class _Growth:
    """Orthonormalises perturbations after each step, and adds up the logarithms of their growth.

    Parameters
    ----------
    size
        Length of the perturbations.
    start
        The time at which there has been no growth.
    count
        Number of perturbations.
    """

    def __init__(self, size: float, start: float, count: int) -> None:
        self.size = size
        self._times = [start]
        self._logarithms = [np.zeros(count)]

    def __call__(self, times: Array, sensitivities: Array) -> Array:
        Q, R = np.linalg.qr(sensitivities[0] / self.size)
        # A step that was refused has left the perturbations as they were: its logarithms are 0.
        self._times.append(float(times[0]))
        self._logarithms.append(self._logarithms[-1] + np.log(np.abs(np.diagonal(R))))
        return np.asarray(self.size * Q[None])

    def at(self, times: Array) -> Array:
        """Return the logarithms of the growth until `times`, at which steps have ended."""
        rows = np.searchsorted(self._times, times, side="right") - 1
        return np.array(self._logarithms)[rows]


def _check(
    problem: Problem, condition: Condition, duration: float, transient: float, count: int
) -> None:
    refuse_integrated_features(problem, "a Lyapunov exponent")
    if condition.events:
        raise InputError(
            f'experiment "{condition.name}" has events; Lyapunov exponents are those of one '
            "vector field for all times: remove the events"
        )
    if problem.model.inputs:
        names = ", ".join(problem.model.inputs)
        raise InputError(
            f"the model has inputs ({names}), which are not known beyond the data; write them "
            "as functions of the time t"
        )
    if not (math.isfinite(duration) and duration > 0):
        raise InputError(f"duration must be a positive number, got {duration}")
    if not (math.isfinite(transient) and transient >= 0):
        raise InputError(f"transient must be a number that is not negative, got {transient}")
    states = len(problem.model.states)
    if not 1 <= count <= states:
        raise InputError(f"count must be from 1 to {states}, the number of states; got {count}")
