"""The layout of an experiment's table, kept for later tables that are laid out likewise."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from odefit.common.errors import shown
from odefit.expressions.expressions import TIME
from odefit.problem.experiment import Experiment
from odefit.problem.inputs.issues import Issues

KEYS = ("time", "by", "columns")
"""The settings of an experiment that a layout may hold."""


def layout_of(experiment: Experiment) -> dict[str, Any]:
    """Return the names of columns in the table of an experiment, where they differ from ours."""
    if experiment.layout:
        return dict(experiment.layout)
    layout = {
        "time": None if experiment.time == TIME else experiment.time,
        "by": experiment.by,
        "columns": dict(experiment.columns),
    }
    return {key: value for key, value in layout.items() if value}


def read_layout(raw: Mapping[str, Any], place: str, issues: Issues) -> dict[str, Any]:
    """Return the layout in a file; mistakes go to `issues`."""
    layout: dict[str, Any] = {}
    for key, value in raw.items():
        names = value if isinstance(value, Mapping) else {key: value}
        wrong = [name for name in names.values() if not isinstance(name, str)]
        if key not in KEYS or wrong or isinstance(value, Mapping) != (key == "columns"):
            issues.error(f"{place}.{key}", f"expected time, by or columns, got {shown(value)}")
        else:
            layout[key] = dict(value) if isinstance(value, Mapping) else value
    return layout


def names_by_column(layout: Mapping[str, Any], columns: Collection[str]) -> dict[str, str]:
    """Return our names of those `columns` that a layout names, by column.

    A column that has our name already stays the one of that name.
    """
    named = {**layout.get("columns", {})}
    if "time" in layout:
        named[TIME] = layout["time"]
    return {c: name for name, c in named.items() if c in columns and name not in columns}


def laid_out(data: Any, layout: Mapping[str, Any], columns: Collection[str]) -> Any:
    """Return a table, of these columns, under our names; `data` is a DataFrame or a mapping."""
    names = names_by_column(layout, columns)
    if not names:
        return data
    if hasattr(data, "iloc"):
        return data.rename(columns=names)
    return {names.get(str(column), column): data[column] for column in data}
