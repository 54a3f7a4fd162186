"""Problems written as problem files of format 1, with their data as CSV tables beside them."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odefit.common.errors import InputError
from odefit.problem.building.columns import as_table, numeric_column, used_columns
from odefit.problem.experiment import Experiment
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.problem.toml.writing import problem_to_mapping


def write_toml(problem: Problem, path: str | os.PathLike[str]) -> list[Path]:
    """Write ``NAME.toml`` and for each experiment ``NAME_EXPERIMENT.csv``; return all paths.

    Files of the same names are replaced.
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
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for file, text in {target: toml_text(mapping), **files}.items():
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"{target.parent}: cannot be written: {error.strerror}") from None
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
    _write("", mapping, lines)
    return "\n".join(lines) + "\n"


def _write(place: str, table: Mapping[str, Any], lines: list[str]) -> None:
    """Append the lines of a table: values, then tables, then arrays of tables."""
    inline = place.endswith(("assign", "parameters", "noise", "inputs", "initial"))
    parts = {k: v for k, v in table.items() if isinstance(v, Mapping) and not inline}
    arrays = {k: v for k, v in table.items() if _is_array_of_tables(v)}
    for key, value in table.items():
        if key not in parts and key not in arrays:
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, part in parts.items():
        inside = f"{place}.{_key(key)}" if place else _key(key)
        lines += ["", f"[{inside}]"]
        _write(inside, part, lines)
    for key, array in arrays.items():
        inside = f"{place}.{_key(key)}" if place else _key(key)
        for part in array:
            lines += ["", f"[[{inside}]]"]
            _write(inside, part, lines)


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def _csv(experiment: Experiment, model: Model) -> str:
    """Return the data of an experiment, without columns that mean nothing to the model."""
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
