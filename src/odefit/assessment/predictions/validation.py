"""Validation: a fitted model compared with measurements that were not fitted.

Only initial values that the user frees are fitted again. The test of all residuals together allows
for the uncertainty of the estimates. With the covariance of measurements and predictions, the sum
of squares has a chi-square distribution, or F where the noise is estimated (G. A. F. Seber and C.
J. Wild, Nonlinear Regression, 1989, section 5.1, for several measurements).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.outputs import evaluated
from odefit.assessment.predictions.obstacles import NoOneStep
from odefit.assessment.predictions.one_step import OneStep, one_step_ahead
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.predictions.starting_values import initial_values
from odefit.assessment.predictions.validation_data import (
    SIGNIFICANT,
    OtherSolution,
    Undecided,
    ValidatedSeries,
    ValidationData,
    Verdict,
)
from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean
from odefit.methods.running.control import Control
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem
from odefit.problem.variants.scenario import Scenario, as_scenario
from odefit.problem.variants.scenario_problem import named_apart, with_scenarios
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.simulations import residuals_by

COURSE = 200
"""Number of times of a curve that is drawn, beside those of its measurements."""

FEWEST_OF_A_TEST = 8
"""Smallest number of residuals of a series that is checked for a pattern."""


def validated(
    problem: Problem,
    vector: Array,
    runs: Sequence[Any],
    *,
    free_initial: Sequence[str] | bool = (),
    level: float = 0.95,
    one_step: bool = True,
    control: Control | None = None,
    others: Sequence[tuple[int, Array]] = (),
) -> ValidationData:
    """Compare a fit with runs that have measurements in their tables.

    `runs` are scenarios in any form that :func:`as_scenario` takes. `free_initial` names states
    whose initial values are fitted to the new measurements, True means all. `one_step` asks for
    predictions one step ahead beside the free run. `others` are solutions that fit as well, with
    their numbers. Raises InputError for unusable arguments, and if the model cannot be integrated.
    """
    scenarios = named_apart(problem, [as_scenario(run) for run in runs])
    measured = _measured(problem, scenarios)
    freed: dict[str, float] = {}
    states = problem.model.states
    names = list(states) if free_initial is True else list(free_initial or ())
    wrong = [name for name in names if name not in states]
    if wrong:
        raise InputError(
            [f"free_initial: there is no state '{n}'{did_you_mean(n, states)}" for n in wrong]
        )
    if names:
        freed = initial_values(measured, vector, names, control or Control())
        scenarios = [
            replace(
                scenario,
                initial={**scenario.initial, **{n: freed[f"{n}[{scenario.name}]"] for n in names}},
            )
            for scenario in scenarios
        ]
        measured = _measured(problem, scenarios)
    compared = _compared(problem, vector, scenarios, measured, level, freed, one_step)
    options: dict[str, Any] = {"free_initial": free_initial, "level": level, "control": control}
    return replace(compared, others=tuple(_other(problem, o, runs, options) for o in others))


def _other(
    problem: Problem, other: tuple[int, Array], runs: Sequence[Any], options: Mapping[str, Any]
) -> OtherSolution:
    """Return the comparison of another solution."""
    number, vector = other
    try:
        one = validated(problem, vector, runs, one_step=False, **options)
    except InputError:
        return OtherSolution(number, math.nan, math.nan, Verdict.UNKNOWN)
    return OtherSolution(number, one.reduced_chi_square, one.probability, one.verdict)


def _compared(
    problem: Problem,
    vector: Array,
    scenarios: Sequence[Scenario],
    measured: Problem,
    level: float,
    freed: Mapping[str, float],
    one_step: bool,
) -> ValidationData:
    """Return the comparison for scenarios whose measurements belong to a problem of their own."""
    forward = ForwardMap(problem)
    evaluation = evaluated(forward, vector)
    deviance = Deviance.of(forward, vector, evaluation)
    unit = _unit(forward, deviance)
    beside = with_scenarios(problem, scenarios)
    bands = LinearBands(ForwardMap(beside), vector)
    new_forward = ForwardMap(measured)
    all_residuals = residuals_by(new_forward, vector)
    if isinstance(all_residuals, Failure):
        raise InputError(f"the new measurements cannot be simulated: {all_residuals}")
    asked = one_step_ahead(measured, vector, unit) if one_step else None
    ahead = asked if isinstance(asked, OneStep) else None
    series: list[ValidatedSeries] = []
    slopes: list[Array] = []
    for residuals in all_residuals:
        condition = measured.condition(residuals.experiment)
        censored = condition.series[residuals.observable].censored
        uncensored = (
            np.ones(len(residuals.times), dtype=bool) if censored is None else censored == 0
        )
        if not uncensored.any():
            continue
        times = np.unique(residuals.times)
        run = beside.condition(residuals.experiment)
        finite = times[np.isfinite(times)]
        dense = np.linspace(run.t0, finite[-1], COURSE) if len(finite) else finite
        along = np.union1d(dense, times)
        made = bands.bands(run, along, level, [residuals.observable])
        course = new_forward.trajectory(vector, condition.name, times)
        if isinstance(made, Failure) or isinstance(course, Failure):
            raise InputError(f"the new measurements cannot be simulated: {made}")
        place = np.searchsorted(times, residuals.times[uncensored])
        output = new_forward.predictions(condition, vector, course)[residuals.observable]
        gradient = output.gradient(len(vector), len(times))[place]
        scale = residuals.sds[uncensored] * unit
        transform = problem.noise.get(residuals.observable, Noise()).transform
        if transform is not None:
            scale = scale * residuals.predicted[uncensored] * log_of_base(transform)
        slopes.append(gradient / scale[:, None])
        series.append(
            _series(
                residuals.experiment,
                residuals.observable,
                residuals.times[uncensored],
                residuals.measured[uncensored],
                residuals.predicted[uncensored],
                made[0].prediction[:, np.searchsorted(along, times)[place]],
                -residuals.standardized[uncensored] / unit,
                None if ahead is None else ahead.predicted[condition.name, residuals.observable],
                np.vstack([along, made[0].values, made[0].prediction])[:, np.isfinite(along)],
            )
        )
    every = np.concatenate([s.residuals for s in series])
    inside = np.concatenate([(s.low <= s.measured) & (s.measured <= s.high) for s in series])
    known = np.concatenate([np.isfinite(s.low) for s in series])
    degrees = max(len(every) - len(freed), 1)
    probability, undecided = math.nan, None
    if any(noise.correlation is not None for noise in problem.noise.values()):
        undecided = Undecided.CORRELATED
    elif not forward.gaussian:
        undecided = Undecided.NOT_NORMAL
    else:
        factor = bands.factor_of(np.concatenate(slopes))
        probability = _probability(factor, every, degrees, deviance.degrees)
        if not math.isfinite(probability):
            known_errors = np.isfinite(factor).all()
            undecided = Undecided.NO_FREEDOM if known_errors else Undecided.UNDETERMINED
    verdict = Verdict.WORSE if probability < SIGNIFICANT else Verdict.AS_WELL
    if undecided is not None:
        verdict = Verdict.UNKNOWN
    rows = [block.rows for block in forward.series_rows]
    of_fit = np.concatenate([evaluation.residuals[r] for r in rows]) / unit
    left = deviance.degrees if math.isfinite(deviance.degrees) else len(of_fit) - len(vector)
    return ValidationData(
        tuple(series),
        level,
        float(every @ every) / degrees,
        float(of_fit @ of_fit) / left if left > 0 else math.nan,
        float(inside[known].mean()) if known.any() else math.nan,
        probability,
        verdict,
        freed,
        ahead,
        problem.time_unit,
        asked if isinstance(asked, NoOneStep) else None,
        undecided,
    )


def _unit(forward: ForwardMap, deviance: Deviance) -> float:
    """Return the standard deviation of residuals, by as many degrees of freedom as there are."""
    if not forward.given_noise:
        if not deviance.variance > 0:
            raise InputError(
                "the fit leaves no residuals to show how new measurements scatter; give their "
                "standard deviation in [noise]"
            )
        return math.sqrt(deviance.variance)
    if deviance.estimated and deviance.degrees > 0:
        return math.sqrt(deviance.estimated / deviance.degrees)
    return 1.0


def _probability(factor: Array, residuals: Array, count: int, degrees: float) -> float:
    """Return the probability of residuals as large as these, shape (n,).

    Their covariance is I + F F^T with the `factor` F, shape (n, m). The sum of squares with its
    inverse is the minimum of |r - F z|^2 + |z|^2, which takes no matrix of n by n.
    """
    from scipy.special import chdtrc, fdtrc

    if not np.isfinite(factor).all():
        return math.nan
    rows = np.vstack([factor, np.eye(factor.shape[1])])
    errors = np.concatenate([residuals, np.zeros(factor.shape[1])])
    moved, *_ = np.linalg.lstsq(rows, errors, rcond=None)
    square = float(np.sum((errors - rows @ moved) ** 2))
    if math.isfinite(degrees):
        return float(fdtrc(count, degrees, square / count)) if degrees > 0 else math.nan
    return float(chdtrc(count, square))


def _series(
    experiment: str,
    observable: str,
    times: Array,
    measured: Array,
    predicted: Array,
    ends: Array,
    residuals: Array,
    ahead: Array | None,
    course: Array,
) -> ValidatedSeries:
    errors, spread = measured - predicted, measured - measured.mean()
    about, whole = float(errors @ errors), float(spread @ spread)
    known = np.isfinite(ends).all(axis=0)
    inside = (ends[0] <= measured) & (measured <= ends[1])
    lagged, runs = math.nan, math.nan
    if len(residuals) >= FEWEST_OF_A_TEST:
        centred = residuals - residuals.mean()
        lagged = float(centred[1:] @ centred[:-1] / (centred @ centred))
        runs = runs_probability(residuals)
    return ValidatedSeries(
        experiment,
        observable,
        times,
        measured,
        predicted,
        ends[0],
        ends[1],
        residuals,
        _percent(errors, spread),
        1.0 - about / whole if whole > 0 else math.nan,
        float(np.mean(residuals**2)),
        float(inside[known].mean()) if known.any() else math.nan,
        float(residuals.mean()),
        lagged,
        runs,
        np.zeros(0) if ahead is None else ahead,
        math.nan if ahead is None else _percent(measured - ahead, spread),
        course,
    )


def _percent(errors: Array, spread: Array) -> float:
    """Return the fit in per cent as MATLAB's ``compare`` gives it; NaN for a single value."""
    whole = float(spread @ spread)
    return 100.0 * (1.0 - math.sqrt(float(errors @ errors) / whole)) if whole > 0 else math.nan


def runs_probability(residuals: Array) -> float:
    """Return the two-sided probability of the number of runs of signs (Wald and Wolfowitz 1940).

    It uses the normal approximation; NaN if all signs are equal.
    """
    from scipy.special import ndtr

    signs = residuals > 0
    up, down = int(signs.sum()), int((~signs).sum())
    count = up + down
    if not up or not down or count < FEWEST_OF_A_TEST:
        return math.nan
    runs = 1 + int((signs[1:] != signs[:-1]).sum())
    mean = 1.0 + 2.0 * up * down / count
    variance = (mean - 1.0) * (mean - 2.0) / (count - 1)
    return float(2.0 * ndtr(-abs(runs - mean) / math.sqrt(variance))) if variance > 0 else math.nan


def _measured(problem: Problem, scenarios: Sequence[Scenario]) -> Problem:
    """Return the problem whose only conditions are scenarios with their measurements."""
    whole = with_scenarios(problem, scenarios, measured=True)
    names = [scenario.name for scenario in scenarios]
    part = copy(whole)
    part.conditions = tuple(c for c in whole.conditions if c.name in names)
    empty = [c.name for c in part.conditions if not c.series]
    if empty or not names:
        observables = ", ".join(problem.model.observables)
        raise InputError(
            [
                f'"{name}": there are no measurements; the table needs at least one of the '
                f"columns {observables}"
                for name in empty
            ]
            or "there is nothing to compare with; give a table or a scenario with measurements"
        )
    return part
