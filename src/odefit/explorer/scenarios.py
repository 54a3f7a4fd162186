"""Scenarios: experiments with other constants, inputs and doses, besides those of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.common.errors import InputError
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME, as_expression
from odefit.problem.experiment import Event, Experiment
from odefit.problem.problem import Problem
from odefit.problem.variants.scenario import Scenario
from odefit.problem.variants.scenario_problem import scenario_experiment

DOSES, SHIFT = "doses", "shift"
"""The factor of all changes by events, and their common delay."""


MAX_RECORDS = 60
"""Largest number of single doses and changes of an experiment that a page lists; all of them share
a factor and a shift."""


@dataclass(frozen=True)
class Given:
    """A quantity of an experiment that a scenario may change, with its value in the problem.

    Its `kind` is "constant", "input" (a factor), "doses" (a factor of all) or "shift" (a time for
    all). A single dose or change has the number `record`. Its kinds are "time", "amount" (added to
    the quantity `name`), "level" (its new value) or "factor" (of any other change of it).
    """

    key: str
    kind: str
    name: str
    value: float
    unit: str
    record: int | None = None


def givens(problem: Problem, experiment: Experiment) -> list[Given]:
    """Return the quantities of an experiment that a scenario may change."""
    condition = problem.condition(experiment.name)
    quantities = []
    changed = {name for event in experiment.events for name in event.assign}
    for name in dict.fromkeys((*problem.given.constants, *experiment.constants)):
        if name in changed:  # the rate of an infusion belongs to its doses
            continue
        value = condition.scalars.get(name)
        if isinstance(value, float):
            quantities.append(Given(name, "constant", name, value, problem.units.get(name, "")))
    quantities += [Given(f"input {name}", "input", name, 1.0, "") for name in condition.inputs]
    if experiment.events:
        quantities.append(Given(DOSES, DOSES, "", 1.0, ""))
        quantities.append(Given(SHIFT, SHIFT, "", 0.0, problem.time_unit))
        quantities += _records(problem, experiment)
    return quantities


def _records(problem: Problem, experiment: Experiment) -> list[Given]:
    """Return times and amounts of the single doses and changes, the earliest first."""
    places = [
        (time if isinstance(time, float) else math.inf, number, index)
        for number, event in enumerate(experiment.events)
        for index, time in enumerate(event.times)
    ]
    records = []
    for record, (time, number, index) in enumerate(sorted(places)[:MAX_RECORDS], 1):
        for name, change in experiment.events[number].assign.items():
            kind, value = _change(name, change)
            key = _key(number, index, name)
            records.append(Given(key, kind, name, value, problem.units.get(name, ""), record))
        if math.isfinite(time):
            key = _key(number, index, TIME)
            records.append(Given(key, "time", "", time, problem.time_unit, record))
    return records


def _key(number: int, index: int, name: str) -> str:
    """Return the key of a part of a single dose or change; names contain no blank."""
    return f"event {number} {index} {name}"


def _change(name: str, change: Any) -> tuple[str, float]:
    """Return the kind of a change of a quantity, and its number."""
    expression = as_expression(change)
    if expression.names <= {name}:
        with np.errstate(all="ignore"):
            values = [float(expression.evaluate({name: x}, NUMPY)) for x in (0.0, 1.0, 2.0)]
        if all(math.isfinite(v) for v in values):
            if not expression.names:
                return "level", values[0]
            if np.allclose(np.diff(values), 1.0, rtol=0.0, atol=1e-9 * (1.0 + abs(values[0]))):
                return "amount", values[0]
    return "factor", 1.0


def with_scenario(problem: Problem, changes: Mapping[str, Mapping[str, float]]) -> Problem:
    """Return the problem with other values of the givens, by experiment and key.

    Raises InputError for a quantity that no scenario can change.
    """
    experiments = []
    for experiment in problem.experiments:
        changed_values = dict(changes.get(experiment.name, {}))
        known = {quantity.key: quantity for quantity in givens(problem, experiment)}
        for key in changed_values:
            if key not in known:
                raise InputError(f'experiment "{experiment.name}": no scenario changes {key!r}')
        experiments.append(
            _changed(problem, experiment, changed_values, known) if changed_values else experiment
        )
    return problem._copy(experiments=experiments)


def _changed(
    problem: Problem,
    experiment: Experiment,
    values: Mapping[str, float],
    known: Mapping[str, Given],
) -> Experiment:
    condition = problem.condition(experiment.name)
    constants, inputs = {}, {}
    for key, value in values.items():
        if known[key].kind == "constant":
            constants[key] = value
        elif known[key].kind == "input":
            signal = condition.inputs[known[key].name]
            inputs[known[key].name] = {"t": signal.times, "value": value * signal.values}
    factor, shift = values.get(DOSES, 1.0), values.get(SHIFT, 0.0)
    scenario = Scenario(
        name=experiment.name,
        like=experiment.name,
        constants=constants,
        inputs=inputs,
        events=[
            _moved(each, factor, shift)
            for number, event in enumerate(experiment.events)
            for each in _edited(event, number, values, known)
        ],
        t0=condition.t0,
        times=[],
    )
    return scenario_experiment(problem, scenario)


def _edited(
    event: Event, number: int, values: Mapping[str, float], known: Mapping[str, Given]
) -> list[Event]:
    """Return an event with the single times and changes of a scenario."""
    unchanged: list[Any] = []
    events = []
    for index, time in enumerate(event.times):
        keys = {name: _key(number, index, name) for name in (*event.assign, TIME)}
        if values.keys().isdisjoint(keys.values()):
            unchanged.append(time)
            continue
        assign = dict(event.assign)
        for name in event.assign:
            if keys[name] in values:
                assign[name] = _with_number(
                    name, event.assign[name], known[keys[name]].kind, values[keys[name]]
                )
        events.append(replace(event, times=(values.get(keys[TIME], time),), assign=assign))
    if unchanged or event.when is not None or not events:
        events.insert(0, replace(event, times=tuple(unchanged)))
    return events


def _with_number(name: str, change: Any, kind: str, value: float) -> Any:
    """Return a change of a quantity with another number."""
    if kind == "level":
        return value
    if kind == "amount":
        return f"{name} + {value!r}"
    return _times(name, change, value)


def _times(name: str, change: Any, factor: float) -> str:
    """Return a change of a quantity multiplied by a factor."""
    return f"{name} + {factor!r}*(({as_expression(change).text}) - {name})"


def _moved(event: Event, factor: float, shift: float) -> Event:
    """Return an event with changes multiplied by a factor, and with a delay."""
    assign: dict[str, Any] = dict(event.assign)
    if factor != 1.0:
        assign = {name: _times(name, value, factor) for name, value in event.assign.items()}
    times = tuple(t + shift if isinstance(t, float | int) else t for t in event.times)
    return replace(event, assign=assign, times=times)
