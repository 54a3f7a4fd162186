"""The runs to predict: experiments of the fit, and scenarios."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, shown
from odefit.problem.calendars import as_times
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.variants.scenario import Scenario, as_scenario
from odefit.problem.variants.scenario_problem import (
    named_condition,
    prediction_times,
    with_scenarios,
)


@dataclass(frozen=True, eq=False)
class Run:
    """A condition that is predicted at some times, with the scenario that it comes from, if any.

    `like` is the condition of the experiment that the scenario modifies, or the condition itself.
    """

    condition: Condition
    times: Array
    like: Condition
    scenario: Scenario | None = None


def runs_of(
    problem: Problem, experiment: Any = None, times: Any = None
) -> tuple[Problem, list[Run]]:
    """Return the requested runs, and a problem with a condition for each.

    Parameters
    ----------
    problem
        The problem of the fit. The returned problem has the same unknowns and measurements.
    experiment
        The name of an experiment, a scenario in any form that :func:`as_scenario` takes, or a list
        of these; None for the first experiment.
    times
        Times for all runs, or for each experiment by its name, numbers or dates; None for those
        of each.

    Raises
    ------
    InputError
        An experiment is unknown, a scenario or the times are unusable.
    """
    listed = experiment if isinstance(experiment, list | tuple) else [experiment]
    if not listed:
        raise InputError("experiment: the list is empty; name an experiment or give a scenario")
    parts = [one if one is None or isinstance(one, str) else as_scenario(one) for one in listed]
    scenarios = [part for part in parts if isinstance(part, Scenario)]
    whole = problem
    if scenarios:
        if times is not None:
            likes = [named_condition(problem, scenario.like) for scenario in scenarios]
            scenarios = [
                replace(scenario, times=checked_times(_of(times, like), problem, like))
                for scenario, like in zip(scenarios, likes, strict=True)
            ]
        whole = _with_known_noise(with_scenarios(problem, scenarios))
    runs: list[Run] = []
    later = iter(scenarios)
    for part in parts:
        if isinstance(part, Scenario):
            scenario = next(later)
            run_times = prediction_times(problem, scenario)
            like, condition = (
                named_condition(problem, scenario.like),
                whole.condition(scenario.name),
            )
            early = run_times[run_times < condition.t0]
            if len(early):
                raise InputError(
                    f'scenario "{scenario.name}" times: t = {early[0]:g} is before '
                    f"t0 = {condition.t0:g}; leave it out, or give an earlier t0"
                )
            if not len(run_times):
                raise InputError(
                    f'scenario "{scenario.name}" times: expected at least one; give times'
                )
            runs.append(Run(condition, run_times, like, scenario))
        else:
            condition = whole.condition(part)
            run_times = _of(times, condition)
            points = (
                condition.times
                if run_times is None
                else checked_times(run_times, problem, condition)
            )
            runs.append(Run(condition, points, condition))
    return whole, runs


def _of(times: Any, condition: Condition) -> Any:
    """Return the times that are given for an experiment."""
    return times[condition.name] if isinstance(times, dict) else times


def refused_on_nodes(output: str) -> InputError:
    """Return the error for an output that an answer on shooting nodes lacks."""
    return InputError(
        "the answer is on shooting nodes, since no single integration can follow it; there are no "
        f"{output} of it"
    )


def checked_times(times: Any, problem: Problem, condition: Condition) -> Array:
    """Return the times of a prediction, strictly increasing; otherwise raise InputError."""
    times_checked = as_times(times, problem, condition)
    if times_checked.ndim != 1 or not len(times_checked) or np.isnan(times_checked).any():
        expected = "expected a number or a list of numbers, such as [0, 5, 10]"
        raise InputError(f"times: {expected}, got {shown(times)}")
    return np.unique(times_checked)


def _with_known_noise(problem: Problem) -> Problem:
    """Return the problem with noise that takes equal standard deviations from the data.

    The measurements keep their standard deviations, so that this serves predictions alone.
    """
    noise = dict(problem.noise)
    for name in problem.model.observables:
        series = [c.series[name] for c in problem.conditions if name in c.series]
        all_sds = [s.sds for s in series if s.sds is not None and s.sds_given]
        noise_of = noise.get(name, Noise())
        if (
            series
            and len(all_sds) == len(series)
            and noise_of.sd is None
            and noise_of.relative is None
        ):
            values = np.unique(np.concatenate(all_sds))
            if len(values) == 1:
                noise[name] = replace(noise_of, sd=float(values[0]))
    if noise == problem.noise:
        return problem
    problem_copy = copy(problem)
    problem_copy.noise = noise
    return problem_copy
