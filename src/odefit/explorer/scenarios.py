"""Scenarios: experiments with other constants, inputs and doses, beside those of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.common.errors import InputError
from odefit.expressions.expressions import as_expression
from odefit.problem.experiment import Event, Experiment
from odefit.problem.problem import Problem

DOSES, SHIFT = "doses", "shift"
"""The factor of all that events change, and the time by which they come later."""


@dataclass(frozen=True)
class Given:
    """A quantity of an experiment that a scenario may change, with its value in the problem.

    Its `kind` is "constant", "input" (a factor), "doses" (a factor) or "shift" (a time).
    """

    key: str
    kind: str
    name: str
    value: float
    unit: str


def givens(problem: Problem, experiment: Experiment) -> list[Given]:
    """Return what a scenario may change in an experiment."""
    condition = problem.condition(experiment.name)
    found = []
    for name in problem.given.constants:
        value = condition.scalars.get(name)
        if isinstance(value, float):
            found.append(Given(name, "constant", name, value, problem.units.get(name, "")))
    found += [Given(f"input {name}", "input", name, 1.0, "") for name in condition.inputs]
    if experiment.events:
        found.append(Given(DOSES, DOSES, "", 1.0, ""))
        found.append(Given(SHIFT, SHIFT, "", 0.0, problem.time_unit))
    return found


def with_scenario(problem: Problem, changes: Mapping[str, Mapping[str, float]]) -> Problem:
    """Return the problem with other values of the givens, by experiment and key.

    Raises InputError for what no scenario can change.
    """
    experiments = []
    for experiment in problem.experiments:
        mine = dict(changes.get(experiment.name, {}))
        known = {given.key: given for given in givens(problem, experiment)}
        for key in mine:
            if key not in known:
                raise InputError(f'experiment "{experiment.name}": no scenario changes {key!r}')
        experiments.append(_changed(experiment, mine, known) if mine else experiment)
    return problem._copy(experiments=experiments)


def _changed(
    experiment: Experiment, values: Mapping[str, float], known: Mapping[str, Given]
) -> Experiment:
    constants, data = dict(experiment.constants), dict(experiment.data)
    for key, value in values.items():
        if known[key].kind == "constant":
            constants[key] = value
        elif known[key].kind == "input":
            data[known[key].name] = value * np.asarray(data[known[key].name], dtype=float)
    factor, shift = values.get(DOSES, 1.0), values.get(SHIFT, 0.0)
    events = [_moved(event, factor, shift) for event in experiment.events]
    return replace(experiment, constants=constants, data=data, events=events)


def _moved(event: Event, factor: float, shift: float) -> Event:
    """Return an event that changes so many times as much, and comes so much later."""
    assign: dict[str, Any] = dict(event.assign)
    if factor != 1.0:
        for name, value in event.assign.items():
            assign[name] = f"{name} + {factor!r}*(({as_expression(value).text}) - {name})"
    times = tuple(t + shift if isinstance(t, float | int) else t for t in event.times)
    return replace(event, assign=assign, times=times)
