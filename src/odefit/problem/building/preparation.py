"""Experiments as given by the user, with texts parsed, types checked and data copied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.common.errors import shown
from odefit.expressions.expressions import Expression, parse
from odefit.problem.building.times import with_times
from odefit.problem.experiment import UNREADABLE, Cycle, Event, Experiment, data_place
from odefit.problem.inputs.file_access import has_controls
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter, as_parameter, is_pair


@dataclass(frozen=True, eq=False)
class Definition:
    """A problem as defined by the user, with every text parsed and no name resolved yet."""

    model: Model
    parameters: Mapping[str, Parameter]  # parameters by name
    # initial value of each state: an expression, or an unknown
    initial: Mapping[str, Expression | Parameter]
    noise: Mapping[str, Noise]  # noise by observable
    experiments: Sequence[Experiment]  # the experiments, as :func:`prepared` returns them


def as_initial(value: Any, place: str, issues: Issues) -> Expression | Parameter:
    """Return `value` as an initial value, known or unknown; mistakes go to `issues`."""
    if isinstance(value, (Parameter, Mapping)) or is_pair(value):
        return as_parameter(value, place, issues)
    return issues.expression(place, value) or parse("0")


def prepared(experiment: Experiment, issues: Issues) -> Experiment:
    """Return `experiment` with a copy of its data and with every value parsed.

    Initial values become expressions or parameters, constants and assignments expressions, times of
    events floats.
    """
    place = experiment_place(experiment.name)
    name = experiment.name
    if not isinstance(name, str) or not name.strip():
        issues.expected("[[experiment]] name", "a text", name)
        name = str(name)
    elif has_controls(name) or any(c in "[]\n\t\r" for c in name):
        issues.error(
            f"[[experiment]] name = {shown(name)}",
            "square brackets, line breaks and control characters cannot be used in the name of an "
            "experiment",
        )
    t0 = experiment.t0
    data, time = with_times(experiment.data, experiment.time, data_place(experiment), issues)
    return replace(
        experiment,
        name=name,
        data=_owned(data),
        time=time,
        t0=None if t0 is None else finite_number(t0, f"{place} t0", issues),
        initial={
            k: as_initial(v, f"{place} initial.{k}", issues)
            for k, v in issues.items(f"{place} initial", experiment.initial)
        },
        # A mistaken expression becomes zero, so that its name is not reported as missing too.
        constants={
            k: issues.expression(f"{place} constants.{k}", v) or parse("0")
            for k, v in issues.items(f"{place} constants", experiment.constants)
        },
        events=tuple(
            _prepared_event(e, f"{place} event {i}", issues)
            for i, e in enumerate(experiment.events, 1)
        ),
        steady_state=_steady(experiment.steady_state, f"{place} steady_state", issues),
    )


def _steady(value: bool | Cycle, place: str, issues: Issues) -> bool | Cycle:
    if not isinstance(value, Cycle):
        return _flag(value, place, issues)
    period = finite_number(value.period, f"{place}.period", issues)
    if period is not None and period <= 0:
        issues.error(f"{place}.period", f"must be positive, got {period:g}")
    events = tuple(
        _prepared_event(e, f"{place}.event {i}", issues) for i, e in enumerate(value.events, 1)
    )
    for i, event in enumerate(events, 1):
        wrong = [t for t in event.times if isinstance(t, float) and not 0 <= t < (period or 1.0)]
        if wrong:
            issues.error(
                f"{place}.event {i} time",
                f"expected times from 0 to below the period, got {wrong[0]:g}",
            )
        if event.when is not None:
            issues.error(f"{place}.event {i} when", "repeated events have times; write time")
    return Cycle(1.0 if period is None else period, events)


class ScenarioName(str):
    """The name of an experiment made from a scenario, which messages call so."""

    __slots__ = ()


def experiment_place(name: object) -> str:
    """Return the name of an experiment in messages."""
    text = shown(name)
    if isinstance(name, ScenarioName):
        return f'scenario "{text[1:-1]}"'
    return f'[[experiment]] "{text[1:-1] if isinstance(name, str) else text}"'


def _prepared_event(event: Event, place: str, issues: Issues) -> Event:
    assign = {
        k: issues.expression(f"{place} assign.{k}", v) or parse("0")
        for k, v in issues.items(f"{place} assign", event.assign)
    }
    if not assign and not issues.has_errors(f"{place} assign"):
        issues.error(
            f"{place} assign", 'nothing is assigned; write, for example, assign = { x = "x + 100" }'
        )
    times: Any = event.times
    if isinstance(times, (str, bytes, Mapping)) or not isinstance(times, Iterable):
        times = (times,)
    times_found = [_event_time(t, f"{place} time", issues) for t in times]
    if event.when is not None and times_found:
        issues.error(f"{place} when", "when and a time are both given; keep one of them")
    elif event.when is None and not times_found:
        issues.error(f"{place} time", "the event has no time; write time = 24.0 or times = [0, 24]")
    if event.measured not in ("before", "after"):
        issues.expected(f"{place} measured", '"before" or "after"', event.measured)
    if event.values not in ("event", "trigger"):
        issues.expected(f"{place} values", '"event" or "trigger"', event.values)
    if event.when is None:
        plain = Event(event.times, event.assign)
        for key in ("initially", "delay", "priority", "persistent", "values"):
            if getattr(event, key) != getattr(plain, key):
                issues.error(
                    f"{place} {key}", "it belongs to an event with when, this one has a time"
                )
    priority = event.priority
    if priority is not None:
        priority = issues.expression(f"{place} priority", priority)
    return replace(
        event,
        initially=_flag(event.initially, f"{place} initially", issues),
        persistent=_flag(event.persistent, f"{place} persistent", issues),
        delay=_event_time(event.delay, f"{place} delay", issues) or 0.0,
        priority=priority,
        times=tuple(t for t in times_found if t is not None),
        assign=assign,
        when=None if event.when is None else issues.condition(f"{place} when", event.when),
    )


def _event_time(value: Any, place: str, issues: Issues) -> float | Expression | None:
    """Return the time of an event, a number where it is known."""
    if not isinstance(value, (str, Expression)):
        return finite_number(value, place, issues)
    expression = issues.expression(place, value)
    known = None if expression is None else expression.constant
    return expression if known is None else known


def _flag(value: object, place: str, issues: Issues) -> bool:
    if not isinstance(value, bool):
        issues.expected(place, "true or false", value)
    return value is True


def _owned(data: Any) -> Any:
    """Return a private copy of `data`."""
    if data is UNREADABLE:
        return data
    if isinstance(data, Mapping):
        return {str(name): _own_column(data[name]) for name in data}
    return data.copy() if hasattr(data, "iloc") else data


def _own_column(values: Any) -> Any:
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        return values
    try:
        column = np.array(values)
    except ValueError:  # ragged lists are refused when the columns are read
        return values
    column.setflags(write=False)
    return column
