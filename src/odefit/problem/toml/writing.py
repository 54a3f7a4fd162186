"""Problems written in format 1: as a mapping with data included, or as TOML with CSV tables."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from odefit.common.partial_files import write_together
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.building.columns import as_table, numeric_column, used_columns
from odefit.problem.experiment import Cycle, Event, Experiment
from odefit.problem.inputs.dates import date_text, moment
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter
from odefit.problem.priors import Prior, prior_table
from odefit.problem.problem import Problem


def problem_to_mapping(problem: Problem) -> dict[str, Any]:
    """Return `problem` in the structure of format 1: dicts, lists, texts and finite numbers.

    Each experiment includes its data: ``{"t": [...], "y1": [..., None]}``, with None for missing
    values and the text ``"inf"`` for the time of a steady state, without columns that the model
    does not use. :func:`~odefit.problem.toml.reading.problem_from_mapping` is the inverse:
    unknowns, expressions, data, noise and events are then equal.
    """
    model = problem.given
    sections: dict[str, dict[str, Any]] = {
        "ode": _expressions(model.ode),
        "algebraic": _expressions(model.algebraic),
        "observables": _expressions(model.observables),
        "constants": {k: float(v) for k, v in model.constants.items()},
        "inputs": {k: {"interpolation": v} for k, v in model.inputs.items()}
        | {k: e.function.table() for k, e in model.unknown_functions.items()},
        "parameters": {k: _parameter(v) for k, v in problem.parameters.items()},
        "initial": {k: _value(v) for k, v in problem.initial.items()},
        "noise": {k: _noise(v) for k, v in problem.noise.items()},
        "units": dict(problem.units),
    }
    texts = {
        "name": problem.name,
        "description": problem.description,
        "time_unit": problem.time_unit,
    }
    return {
        "format": 1,
        **{k: v for k, v in texts.items() if v},
        **{k: v for k, v in sections.items() if v},
        "experiment": [_experiment(e, model) for e in problem.experiments],
    }


def _expressions(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in table.items()}


def _value(value: Any) -> Any:
    """Return a value in the form of format 1: a number, a text or a table."""
    if isinstance(value, Parameter):
        return _parameter(value)
    if not isinstance(value, Expression):
        return value
    constant = value.constant
    # Reading returns the text, so that equal problems stay equal.
    return constant if constant is not None and repr(constant) == value.text else value.text


def _parameter(parameter: Parameter) -> dict[str, Any]:
    table = {}
    for field in fields(Parameter):
        value = getattr(parameter, field.name)
        if isinstance(value, Prior):
            table[field.name] = prior_table(value)
        elif value != field.default:
            table[field.name] = value
    return table


def _noise(noise: Noise) -> dict[str, Any]:
    settings = {field.name: getattr(noise, field.name) for field in fields(Noise)}
    return {name: _value(value) for name, value in settings.items() if value is not None}


def _experiment(experiment: Experiment, model: Model) -> dict[str, Any]:
    table: dict[str, Any] = {"name": experiment.name, "data": _data(experiment, model)}
    if experiment.t0 is not None:
        table["t0"] = experiment.t0
    origin = moment(experiment.origin)
    if origin is not None:
        table["origin"] = date_text(origin)
    if experiment.layout:
        table["layout"] = dict(experiment.layout)
    if experiment.initial:
        table["initial"] = _expressions(experiment.initial)
    if experiment.constants:
        table["constants"] = _expressions(experiment.constants)
    if isinstance(experiment.steady_state, Cycle):
        cycle = experiment.steady_state
        table["steady_state"] = {
            "period": cycle.period,
            "event": [_event(event) for event in cycle.events],
        }
    elif experiment.steady_state:
        table["steady_state"] = True
    if experiment.events:
        table["event"] = [_event(event) for event in experiment.events]
    return table


def _event(event: Event) -> dict[str, Any]:
    table: dict[str, Any] = {"assign": _expressions(event.assign)}
    if event.when is not None:
        table["when"] = str(event.when)
        if not event.initially:
            table["initially"] = False
        if event.delay != 0.0:
            table["delay"] = _value(event.delay)
        if event.priority is not None:
            table["priority"] = _value(event.priority)
        if not event.persistent:
            table["persistent"] = False
        if event.values != "event":
            table["values"] = event.values
    else:
        table["times"] = [_value(time) for time in event.times]
    if event.measured != "before":
        table["measured"] = event.measured
    return table


def _data(experiment: Experiment, model: Model) -> dict[str, list[float | str | None]]:
    known = used_columns(model)
    columns = as_table(experiment.data) or {}
    return {name: _column(columns[name], name) for name in columns if name in known}


def _column(values: Any, name: str) -> list[float | str | None]:
    """Return numbers, with None for missing ones and the text "inf" for infinite times."""
    numbers = numeric_column(values, "data", Issues())
    infinite = "inf" if name == TIME else None
    return [
        v if math.isfinite(v) else infinite if v > 0 else None
        for v in ([] if numbers is None else numbers.tolist())
    ]


def write_toml(problem: Problem, path: str | os.PathLike[str]) -> list[Path]:
    """Write ``NAME.toml`` and for each experiment ``NAME_EXPERIMENT.csv``; return all paths.

    Existing files are replaced.
    """
    target = Path(os.fspath(path))
    mapping = problem_to_mapping(problem)
    files: dict[Path, str] = {}
    for table, experiment in zip(mapping["experiment"], problem.experiments, strict=True):
        stem = re.sub(r"[^\w-]", "_", experiment.name)
        file = target.with_name(f"{target.stem}_{stem}.csv")
        while file in files:
            file = file.with_name(f"{file.stem}_.csv")
        files[file] = _csv(experiment, problem.given)
        table["data"] = file.name
    write_together({**files, target: toml_text(mapping)})
    return [target, *files]


def toml_text(mapping: Mapping[str, Any]) -> str:
    """Return the structure of format 1 as TOML.

    >>> print(toml_text({"format": 1, "ode": {"x": "-k*x"}, "parameters": {"k": {"lower": 0.0}}}))
    format = 1
    <BLANKLINE>
    [ode]
    x = "-k*x"
    <BLANKLINE>
    [parameters]
    k = { lower = 0.0 }
    <BLANKLINE>
    """
    lines: list[str] = []
    _append_table("", mapping, lines)
    return "\n".join(lines) + "\n"


def _append_table(place: str, table: Mapping[str, Any], lines: list[str]) -> None:
    """Append the lines of a table: values, then tables, then arrays of tables."""
    inline = place.endswith(("assign", "parameters", "noise", "inputs", "initial"))
    parts = {k: v for k, v in table.items() if isinstance(v, Mapping) and not inline}
    arrays = {k: v for k, v in table.items() if _is_array_of_tables(v)}
    for key, value in table.items():
        if key not in parts and key not in arrays:
            lines.append(f"{_key(key)} = {_toml_value(value)}")
    for key, part in parts.items():
        inside = f"{place}.{_key(key)}" if place else _key(key)
        lines += ["", f"[{inside}]"]
        _append_table(inside, part, lines)
    for key, array in arrays.items():
        inside = f"{place}.{_key(key)}" if place else _key(key)
        for part in array:
            lines += ["", f"[[{inside}]]"]
            _append_table(inside, part, lines)


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(k)} = {_toml_value(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def _csv(experiment: Experiment, model: Model) -> str:
    """Return the data of an experiment, without columns that the model does not use."""
    known = used_columns(model)
    columns = {n: v for n, v in (as_table(experiment.data) or {}).items() if n in known}
    lists = {}
    for name, values in columns.items():
        numbers = numeric_column(values, "data", Issues())
        lists[name] = [] if numbers is None else numbers.tolist()
    rows = [",".join(lists)]
    rows += [
        ",".join("" if math.isnan(v) else repr(v) for v in row)
        for row in zip(*lists.values(), strict=True)
    ]
    return "\n".join(rows) + "\n"
