"""Insertion of unknown functions into a model and a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from odefit.common.errors import shown
from odefit.expressions.expressions import TIME, Expression, parse
from odefit.problem.experiment import UNREADABLE, Experiment
from odefit.problem.inputs.issues import Issues
from odefit.problem.unknown_functions.expansion import Expansion, expanded
from odefit.problem.unknown_functions.specification import is_unknown, read_function


class HasFunctions(Protocol):
    """A model with unknown functions, which must not import this module."""

    @property
    def unknown_functions(self) -> Mapping[str, Expansion]:
        """The functions by name."""

    @property
    def observables(self) -> Mapping[str, Expression]:
        """The observables by name."""


@dataclass(frozen=True)
class Tables:
    """The tables of a model, without the unknown functions among its inputs."""

    inputs: Any  # the known inputs
    definitions: Any  # including each unknown function as a named expression
    functions: Mapping[str, Expansion]  # by name


def without_unknown(inputs: Any, definitions: Any, issues: Issues) -> Tables:
    """Return the tables of a model without the unknown functions among its inputs."""
    if not isinstance(inputs, Mapping) or not any(is_unknown(v) for v in inputs.values()):
        return Tables(inputs, definitions, {})
    known = {name: value for name, value in inputs.items() if not is_unknown(value)}
    named = dict(definitions) if isinstance(definitions, Mapping) else {}
    known_tables = {}
    for name in [str(n) for n in inputs if n not in known]:
        place = f"[inputs] {name}"
        function = read_function(name, inputs[name], place, issues)
        if name in named:
            issues.error(place, f"'{name}' is in [definitions], too; rename one")
        if function is None:
            named[name] = "0"  # so that its name is not reported as unknown too
        else:
            known_tables[name] = expanded(function)
            named[name] = known_tables[name].text
    return Tables(known, named, known_tables)


def observed(
    observables: Mapping[str, Any], functions: Mapping[str, Expansion], written: Any, issues: Issues
) -> Mapping[str, Any]:
    """Return observables including the unknown functions, so that results show these.

    `written` expands definitions in a text. An expanded problem has the functions already.
    """
    added = {}
    for name, expansion in functions.items():
        text = written(expansion.text)
        present = observables.get(name)
        if present is not None and str(present) not in (str(parse(text)), text):
            issues.error(
                f"[observables] {name}",
                "the function of this name in [inputs] is shown already; give the observable "
                "another name",
            )
        added[name] = text
    return {**observables, **added}


def with_functions(
    experiments: Sequence[Experiment],
    parameters: Sequence[tuple[str, Any]],
    model: HasFunctions,
    issues: Issues,
) -> tuple[tuple[Experiment, ...], list[tuple[str, Any]]]:
    """Return experiments with the functions' constants, and parameters with their unknowns.

    Given entries stay, such as a fixed coefficient, or the knots of a modified problem.
    """
    functions = model.unknown_functions
    if not functions:
        return tuple(experiments), list(parameters)
    unknowns = dict(parameters)
    constants: dict[str, Expression] = {}
    for expansion in functions.values():
        limits = _limits(expansion, experiments, model.observables, issues)
        for end, value in zip(expansion.ends, limits, strict=True):
            if not expansion.function.changes:
                constants[end] = parse(repr(value))
        constants |= {c: parse(text) for c, text in expansion.constants.items()}
        for key, parameter in expansion.parameters(limits).items():
            unknowns.setdefault(key, parameter)
    return (
        tuple(replace(e, constants={**constants, **e.constants}) for e in experiments),
        list(unknowns.items()),
    )


def _limits(
    expansion: Expansion,
    experiments: Sequence[Experiment],
    observables: Mapping[str, Expression],
    issues: Issues,
) -> tuple[float, float]:
    """Return the places of the first and last knot: as given, or from the data."""
    function, (start, end) = expansion.function, expansion.ends
    if function.range is not None:
        return function.range
    for e in experiments:
        stated = [e.constants.get(key) for key in (start, end)]
        ends = [c.constant for c in stated if isinstance(c, Expression) and c.constant is not None]
        if len(ends) == 2:
            return ends[0], ends[1]
    of = function.of
    columns = [TIME] if of is None else [o for o, e in observables.items() if str(e) == str(of)]
    if of is not None and not columns:
        issues.error(
            f"[inputs] {function.name}",
            f"the range of {shown(of.text)} is unknown; write, for example, range = [0, 10]",
        )
        return 0.0, 1.0
    values = [v for e in experiments for c in columns for v in _values(e, c, of is None)]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    if low < high:
        return low, high
    issues.error(
        f"[inputs] {function.name}",
        f"the data have no two values of '{columns[0]}', so the range of the function is unknown; "
        "write, for example, range = [0, 10]",
    )
    return 0.0, 1.0


def _values(experiment: Experiment, column: str, of_time: bool) -> list[float]:
    data = experiment.data
    if data is UNREADABLE or data is None or column not in data:
        return []
    try:
        numbers = np.asarray(data[column], dtype=float)
    except (TypeError, ValueError):
        return []  # reading the columns reports it
    finite = [float(v) for v in numbers[np.isfinite(numbers)]]
    if of_time and isinstance(experiment.t0, float):
        finite.append(experiment.t0)
    return finite
