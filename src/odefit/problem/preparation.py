"""Experiments as the user gave them, with texts parsed, types checked and data copied."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.problem.errors import shown
from odefit.problem.experiment import UNREADABLE, Event, Experiment
from odefit.problem.expressions import Expression, parse
from odefit.problem.issues import Issues, finite_number
from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter, as_parameter


@dataclass(frozen=True, eq=False)
class Definition:
    """A problem as the user defined it, with every text parsed and no name resolved yet.

    Attributes
    ----------
    model
        The equations.
    parameters
        Parameters by name.
    initial
        Initial value of each state: an expression, or an unknown.
    noise
        Noise by observable.
    experiments
        The experiments, as :func:`prepared` returns them.
    """

    model: Model
    parameters: Mapping[str, Parameter]
    initial: Mapping[str, Expression | Parameter]
    noise: Mapping[str, Noise]
    experiments: Sequence[Experiment]


def as_initial(value: Any, place: str, issues: Issues) -> Expression | Parameter:
    """Return `value` as an initial value, known or unknown; mistakes go to `issues`."""
    if isinstance(value, (Parameter, Mapping)):
        return as_parameter(value, place, issues)
    return issues.expression(place, value) or parse("0")


def prepared(experiment: Experiment, issues: Issues) -> Experiment:
    """Return `experiment` with a copy of its data and with every value parsed.

    Its initial values are expressions or parameters, its constants and assignments expressions,
    the times of its events floats.
    """
    place = experiment_place(experiment.name)
    name = experiment.name
    if not isinstance(name, str) or not name.strip():
        issues.error("[[experiment]] name", f"expected a text, got {shown(name)}")
        name = str(name)
    elif any(c in "[]" or unicodedata.category(c) == "Cc" for c in name):
        issues.error(
            f"[[experiment]] name = {shown(name)}",
            "square brackets and line breaks cannot be used in the name of an experiment",
        )
    t0 = experiment.t0
    return replace(
        experiment,
        name=name,
        data=_owned(experiment.data),
        t0=None if t0 is None else finite_number(t0, f"{place} t0", issues),
        initial={
            k: as_initial(v, f"{place} initial.{k}", issues)
            for k, v in issues.items(f"{place} initial", experiment.initial)
        },
        # A mistaken expression stays as a zero, so that its name does not count as missing too.
        constants={
            k: issues.expression(f"{place} constants.{k}", v) or parse("0")
            for k, v in issues.items(f"{place} constants", experiment.constants)
        },
        events=tuple(
            _prepared_event(e, f"{place} event {i}", issues)
            for i, e in enumerate(experiment.events, 1)
        ),
        steady_state=_flag(experiment.steady_state, f"{place} steady_state", issues),
    )


def experiment_place(name: object) -> str:
    """Return the name of an experiment in messages."""
    text = shown(name)
    return f'[[experiment]] "{text[1:-1] if isinstance(name, str) else text}"'


def _prepared_event(event: Event, place: str, issues: Issues) -> Event:
    assign = {
        k: issues.expression(f"{place} assign.{k}", v) or parse("0")
        for k, v in issues.items(f"{place} assign", event.assign)
    }
    if not assign and not issues.has_errors(f"{place} assign"):
        issues.error(
            f"{place} assign", 'nothing is assigned; write such as assign = { x = "x + 100" }'
        )
    times: Any = event.times
    if isinstance(times, (str, bytes, Mapping)) or not isinstance(times, Iterable):
        times = (times,)
    found = [_event_time(t, f"{place} time", issues) for t in times]
    if event.when is not None and found:
        issues.error(f"{place} when", "when and a time are both given; keep one of them")
    elif event.when is None and not found:
        issues.error(f"{place} time", "the event has no time; write time = 24.0 or times = [0, 24]")
    if event.measured not in ("before", "after"):
        issues.error(
            f"{place} measured", f'expected "before" or "after", got {shown(event.measured)}'
        )
    initially = _flag(event.initially, f"{place} initially", issues)
    if event.when is None and not initially:
        issues.error(f"{place} initially", "it belongs to an event with when, this one has a time")
    return replace(
        event,
        initially=initially,
        times=tuple(t for t in found if t is not None),
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
        issues.error(place, f"expected true or false, got {shown(value)}")
    return value is True


def _owned(data: Any) -> Any:
    """Return a copy of `data` that nobody else can change."""
    if data is UNREADABLE:
        return data
    if isinstance(data, Mapping):
        return {str(name): _owned_column(data[name]) for name in data}
    return data.copy() if hasattr(data, "iloc") else data


def _owned_column(values: Any) -> Any:
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        return values
    try:
        own = np.array(values)
    except ValueError:  # ragged lists, which are refused when the columns are read
        return values
    own.setflags(write=False)
    return own
