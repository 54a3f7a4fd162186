"""Predictions one step ahead: each measurement from those before it, beside the free run.

An extended Kalman filter corrects the states by every measurement. Besides the noise of
measurements it has disturbances of the states: independent increments whose standard deviation over
the whole run is a share of the size of each state. That share maximises the likelihood of the
innovations (N. R. Kristensen, H. Madsen and S. B. Jorgensen, Parameter estimation in stochastic
grey-box models, Automatica 40, 2004, 225-237). Without disturbances the filter is the free run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odefit.assessment.outputs import noise_sds
from odefit.assessment.predictions.obstacles import NoOneStep, Obstacle, obstacle_of
from odefit.assessment.predictions.starting_values import known_noise, with_numbers
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.parameters import Parameter, Unknown
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice

DISTURBANCES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""Sizes of disturbances, relative to the states, at which a search begins."""

REFINEMENTS = 8
"""Number of further evaluations between the best of these and its neighbours."""


@dataclass(frozen=True, eq=False)
class OneStep:
    """Predictions one step ahead of all measurements.

    Attributes
    ----------
    predicted
        Predictions by run and observable, in the order of the measurements.
    disturbance
        The standard deviation of the disturbances over a whole run, relative to the root mean
        square of each state; 0 where they do not increase the likelihood.
    probability
        The probability of as much evidence of disturbances, by the likelihood ratio, if the states
        follow the equations.
    mean_square
        The mean square of measured minus predicted values, in standard deviations of the noise.
    """

    predicted: dict[tuple[str, str], Array]
    disturbance: float
    probability: float
    mean_square: float


@dataclass(frozen=True, eq=False)
class _Measured:
    """The measurements of a run at one time: observables, their numbers in the series, values."""

    time: float
    names: tuple[str, ...]
    places: tuple[int, ...]
    values: Array
    sds: tuple[float | None, ...]


@dataclass(eq=False)
class _Run:
    """A run whose initial values are its only unknowns."""

    forward: ForwardMap
    condition: Condition
    start: Array
    measured: Sequence[_Measured]
    sizes: Array
    span: float
    changes: Sequence[tuple[float, Mapping[str, float]]]
    choice: EngineChoice = field(default=UNDECIDED)
    maps: dict[tuple[float, float | None, bool], ForwardMap] = field(default_factory=dict)
    """Forward maps of intervals and times, which filters with all disturbances share."""

    def map(self, begin: float, end: float | None, *, done: bool) -> ForwardMap:
        """Return the forward map over an interval, or at a time, where nothing happens any more.

        Events at the beginning of an interval happen unless they are `done`.
        """
        key = begin, end, done
        if key not in self.maps:
            events = tuple(
                (t, assign)
                for t, assign in self.condition.events
                if end is not None and (t > begin or (t == begin and not done))
            )
            problem = copy(self.forward.problem)
            problem.conditions = (
                replace(
                    self.condition,
                    t0=begin,
                    events=events,
                    times=np.array([begin if end is None else end]),
                    series={},
                    scalars=self.scalars(begin, after=done),
                ),
            )
            self.maps[key] = self.forward.of(problem)
        return self.maps[key]

    def scalars(self, time: float, *, after: bool) -> dict[str, Any]:
        """Return parameters and constants at a time, before or `after` the events of that time."""
        scalars: dict[str, Any] = dict(self.condition.scalars)
        for moment, changed in self.changes:
            if moment < time or (after and moment == time):
                scalars.update(changed)
        return scalars


@dataclass(frozen=True, eq=False)
class _Filtered:
    minus_two_log: float
    squares: float
    predicted: dict[tuple[str, str], Array]


def one_step_ahead(measured: Problem, vector: Array, unit: float) -> OneStep | NoOneStep:
    """Return predictions one step ahead of the measurements of a problem.

    `vector` has the unknowns, `unit` multiplies the standard deviations of the noise. Returns the
    reason if such a filter does not apply. Reasons are noise that is not normal, censored values,
    algebraic equations, triggered events, and events that set constants by states. Others are
    steady states, very many times, or a model that cannot be integrated.
    """
    for condition in measured.conditions:
        obstacle = obstacle_of(measured, condition)
        if obstacle is not None:
            return obstacle
    runs = []
    for condition in measured.conditions:
        run = _run(measured, condition, vector)
        if run is None:
            return NoOneStep(Obstacle.FAILED, condition.name)
        runs.append(run)
    tried: dict[float, list[_Filtered]] = {}
    failed = ""

    def likelihood(disturbance: float) -> float:
        nonlocal failed
        if disturbance not in tried:
            by_run = [_filtered(run, disturbance, unit) for run in runs]
            for run, one in zip(runs, by_run, strict=True):
                if one is None:
                    failed = run.condition.name
                    return math.inf
            tried[disturbance] = [one for one in by_run if one is not None]
        return sum(one.minus_two_log for one in tried[disturbance])

    free = likelihood(0.0)
    if not math.isfinite(free):
        return NoOneStep(Obstacle.FAILED, failed)
    best = min((0.0, *DISTURBANCES), key=likelihood)
    if best > 0:
        best = _refined(likelihood, best)
    gain = max(free - likelihood(best), 0.0)
    filtered = tried[best]
    count = sum(len(values) for one in filtered for values in one.predicted.values())
    predicted = {key: values for one in filtered for key, values in one.predicted.items()}
    mean_square = sum(one.squares for one in filtered) / count
    return OneStep(predicted, best, _probability(gain), mean_square)


def _probability(gain: float) -> float:
    """Return the probability of a likelihood ratio where the smaller model lies at a bound.

    Half of its distribution is at zero, the other half chi-square (S. G. Self and K.-Y. Liang,
    Journal of the American Statistical Association 82, 1987).
    """
    from scipy.special import chdtrc

    return 1.0 if gain <= 0 else 0.5 * float(chdtrc(1, gain))


def _refined(function: Callable[[float], float], best: float) -> float:
    """Return the minimiser of a function near the best of :data:`DISTURBANCES`."""
    from scipy.optimize import minimize_scalar

    place = DISTURBANCES.index(best)
    low = DISTURBANCES[place - 1] if place else best / 10
    high = DISTURBANCES[place + 1] if place + 1 < len(DISTURBANCES) else 10 * best
    minimum = minimize_scalar(
        lambda logarithm: function(math.exp(logarithm)),
        bounds=(math.log(low), math.log(high)),
        method="bounded",
        options={"maxiter": REFINEMENTS, "xatol": 0.02},
    )
    size = math.exp(float(minimum.x))
    return size if function(size) < function(best) else best


def _changes(numbers: Condition) -> list[tuple[float, Mapping[str, float]]]:
    """Return the new values of parameters and constants by events, in the order of time."""
    now: dict[str, Any] = dict(numbers.scalars)
    changes: list[tuple[float, Mapping[str, float]]] = []
    for time, assign in numbers.events:
        new = {
            name: float(np.asarray(bound_value(value, now, (), NUMPY)))
            for name, value in assign.items()
            if name in now
        }
        if new:
            now.update(new)
            changes.append((time, new))
    return changes


def _run(problem: Problem, condition: Condition, vector: Array) -> _Run | None:
    """Return a run whose states at its beginning are the unknowns; None if it cannot be made."""
    numbers = with_numbers(condition, vector)
    states = list(problem.model.states)
    # With numbers, no initial value is an expression.
    start = np.array([numbers.initial[name] for name in states], dtype=float)
    unknowns = [
        Unknown(name, "initial", None, name, Parameter(guess=value))
        for name, value in zip(states, start.tolist(), strict=True)
    ]
    changed = copy(problem)
    for name in ("lower", "upper"):
        vars(changed).pop(name, None)  # computed of other unknowns, and kept
    bound = replace(numbers, initial={name: i for i, name in enumerate(states)})
    changed.unknowns, changed.conditions = tuple(unknowns), (bound,)
    changed.noise = known_noise(problem, vector)
    forward = ForwardMap(changed)
    course = forward.trajectory(start, condition.name, condition.times, sensitivities=False)
    if isinstance(course, Failure):
        return None
    order = [forward.field.states.index(name) for name in states]
    sizes = np.sqrt(np.mean(course.states[:, order] ** 2, axis=0))
    span = max(float(condition.times[-1]) - condition.t0, 1e-300)
    measured = _at_each_time(condition)
    return _Run(forward, bound, start, measured, sizes, span, _changes(numbers))


def _at_each_time(condition: Condition) -> list[_Measured]:
    by_time = []
    for row, time in enumerate(condition.times.tolist()):
        names, places, values, sds = [], [], [], []
        for name, series in condition.series.items():
            for place in np.flatnonzero(series.rows == row):
                names.append(name)
                places.append(int(place))
                values.append(float(series.values[place]))
                known = series.sds is not None and np.isfinite(series.sds[place])
                sds.append(float(series.sds[place]) if known and series.sds is not None else None)
        if names:
            by_time.append(
                _Measured(time, tuple(names), tuple(places), np.array(values), tuple(sds))
            )
    return by_time


def _filtered(run: _Run, disturbance: float, unit: float) -> _Filtered | None:
    """Return the innovations of a run with disturbances of some size; None for a failure."""
    x, covariance = run.start.copy(), np.zeros((len(run.start),) * 2)
    time, done = run.condition.t0, False
    rate = np.diag((disturbance * run.sizes) ** 2) / run.span
    total, squares = 0.0, 0.0
    predicted = {
        (run.condition.name, name): np.zeros(len(series.values))
        for name, series in run.condition.series.items()
    }
    for here in run.measured:
        moved = _moved(run, x, time, here.time, done)
        if moved is None:
            return None
        x, slope = moved
        covariance = slope @ covariance @ slope.T + rate * (here.time - time)
        outputs = _outputs(run, x, here, unit)
        if outputs is None:
            return None
        values, shown, gradient, sds = outputs
        for name, place, value in zip(here.names, here.places, shown, strict=True):
            predicted[run.condition.name, name][place] = value
        spread = gradient @ covariance @ gradient.T + np.diag(sds**2)
        solved = np.linalg.solve(spread, np.column_stack([values, gradient @ covariance]))
        total += float(values @ solved[:, 0]) + float(np.linalg.slogdet(spread)[1])
        squares += float(np.sum((values / sds) ** 2))
        gain = solved[:, 1:].T
        x = x + gain @ values
        factor = np.eye(len(x)) - gain @ gradient
        covariance = factor @ covariance @ factor.T + gain @ np.diag(sds**2) @ gain.T
        time, done = here.time, run.condition.sees_events(here.time)
    return _Filtered(total, squares, predicted)


def _moved(run: _Run, x: Array, begin: float, end: float, done: bool) -> tuple[Array, Array] | None:
    """Return the states at the end of an interval, and their derivatives by those at its beginning.

    Events at its beginning happen unless they are `done`.
    """
    forward = run.map(begin, end, done=done)
    course = forward.trajectory(x, None, np.array([end]), choice=run.choice)
    if isinstance(course, Failure) or not np.isfinite(course.states).all():
        return None
    run.choice = course.choice
    names = list(run.forward.problem.model.states)
    order = [run.forward.field.states.index(name) for name in names]
    slope = np.zeros((len(x), len(x)))
    slope[:, list(course.unknowns)] = course.sensitivities[0][order]
    return course.states[0][order], slope


def _outputs(
    run: _Run, x: Array, here: _Measured, unit: float
) -> tuple[Array, Array, Array, Array] | None:
    """Return measured minus predicted values, predictions, their derivatives and deviations.

    All but the predictions are on the scale of the noise.
    """
    times = np.array([here.time])
    forward = run.map(here.time, None, done=run.condition.sees_events(here.time))
    problem, (condition,) = forward.problem, forward.problem.conditions
    course = forward.trajectory(x, None, times, choice=run.choice)
    if isinstance(course, Failure):
        return None
    outputs = forward.predictions(condition, x, course, noise=True)
    differences, shown, gradients, sds = [], [], [], []
    for name, measured, known_sd in zip(here.names, here.values, here.sds, strict=True):
        value = float(outputs[name].array(1)[0])
        gradient = outputs[name].gradient(len(x), 1)[0]
        sd = known_sd
        if sd is None:
            known = noise_sds(forward, condition, name, x, outputs, times)
            sd = 1.0 if known is None else float(known[0])
        transform = problem.noise.get(name, Noise()).transform
        difference = measured - value
        if transform is not None:
            if value <= 0 or measured <= 0:
                return None
            base = log_of_base(transform)
            difference = math.log(measured / value) / base
            gradient = gradient / (value * base)
        differences.append(difference)
        shown.append(value)
        gradients.append(gradient)
        sds.append(sd * unit)
    arrays = np.array(differences), np.array(shown), np.array(gradients), np.array(sds)
    if not all(np.isfinite(one).all() for one in arrays) or not (arrays[3] > 0).all():
        return None
    return arrays
