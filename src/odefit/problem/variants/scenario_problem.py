"""Problems with scenarios in addition to their experiments, or with other experiments.

A scenario becomes an experiment, and then a condition like those of the data, with the same
unknowns. It has no measurements, so that statements on the fit do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean, one_of, shown
from odefit.expressions.expressions import TIME
from odefit.problem.building.columns import as_table, column_names, numeric_column, used_columns
from odefit.problem.building.layout import laid_out
from odefit.problem.building.preparation import ScenarioName, experiment_place, prepared
from odefit.problem.building.resolution import resolve_further
from odefit.problem.building.switches import with_switches
from odefit.problem.building.times import with_times
from odefit.problem.calendars import as_times
from odefit.problem.condition import Condition
from odefit.problem.experiment import UNREADABLE, Experiment, data_place
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.model import Model
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem, definition_of
from odefit.problem.variants.scenario import Scenario
from odefit.problem.variants.scenario_doses import with_doses


def with_scenarios(
    problem: Problem, scenarios: Sequence[Scenario], *, measured: bool = False
) -> Problem:
    """Return the problem with a condition for each scenario after those of its experiments.

    Its unknowns, measurements and residuals are those of the problem. If `measured`, the scenarios
    keep the observables in their tables, which then count as residuals.

    Raises InputError with all mistakes in the scenarios.
    """
    issues = Issues()
    made: list[tuple[Experiment, str]] = []
    model = problem.given
    taken = [c.name for c in problem.conditions]
    for scenario in scenarios:
        if scenario.name in taken:
            issues.error(
                experiment_place(ScenarioName(scenario.name)),
                "there is an experiment or a scenario of this name; give it another name",
            )
            continue
        taken.append(scenario.name)
        experiment, like, model = _experiment(problem, scenario, model, issues, measured)
        made.append((experiment, like))
    issues.raise_errors()
    definition = replace(definition_of(problem), model=model)
    known, further = resolve_further(definition, made, issues)
    issues.raise_errors()
    if not measured:
        further = tuple(replace(c, series={}, times=np.array([c.t0])) for c in further)
    extended = copy(problem)
    extended.given = model
    extended.model, extended.conditions = with_switches(model, (*known, *further))
    return extended


def scenario_experiment(problem: Problem, scenario: Scenario) -> Experiment:
    """Return a scenario as an experiment with the measurements of the one it modifies.

    Raises InputError with all mistakes in it.
    """
    issues = Issues()
    experiment, like, _ = _experiment(problem, scenario, problem.given, issues, measured=False)
    issues.raise_errors()
    modified = next(e for e in problem.experiments if e.name == like)
    if not scenario.inputs and scenario.data is None:
        return replace(experiment, data=modified.data)
    names = used_columns(problem.given) - {*problem.given.inputs}
    table = {n: column for n, column in (as_table(modified.data) or {}).items() if n in names}
    return replace(experiment, data=_stacked(table, as_table(experiment.data) or {}))


def named_apart(problem: Problem, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return scenarios with names that no experiment of the fit has.

    One that was called like an experiment modifies that one, so that it has its unknowns.
    """
    taken = {c.name for c in problem.conditions}
    renamed = []
    for scenario in scenarios:
        name = scenario.name
        while name in taken:
            name += " (new)"
        like = scenario.name if scenario.like is None and scenario.name in taken else scenario.like
        taken.add(name)
        renamed.append(replace(scenario, name=name, like=like))
    return renamed


def named_condition(problem: Problem, name: str | None) -> Condition:
    """Return the condition of that name; the first one for an unknown name."""
    named = [c for c in problem.conditions if c.name == name]
    return (*named, problem.conditions[0])[0]


def prediction_times(problem: Problem, scenario: Scenario) -> Array:
    """Return the times at which a scenario is predicted by default, shape (k,).

    Raises InputError for times that are not numbers.
    """
    condition = named_condition(problem, scenario.like)
    asked = scenario.times
    if asked is None and scenario.data is not None:
        like = next(e for e in problem.experiments if e.name == condition.name)
        data, _ = with_times(_laid_out(scenario.data, like), TIME, "", Issues())
        table = as_table(data) or {}
        asked = numeric_column(table[TIME], "", Issues()) if TIME in table else None
    if asked is None:
        return condition.times
    try:
        times = np.unique(as_times(asked, problem, condition))
    except InputError:
        times = np.array([np.nan])
    t0 = condition.t0 if scenario.t0 is None else scenario.t0
    if np.isnan(times).any() or times.ndim != 1:
        raise InputError(
            f'scenario "{scenario.name}" times: expected a list of numbers, such as [0, 5, 10], '
            f"got {shown(asked)}"
        )
    return times if scenario.times is not None else times[times >= t0]


def _experiment(
    problem: Problem, scenario: Scenario, model: Model, issues: Issues, measured: bool
) -> tuple[Experiment, str, Model]:
    """Return a scenario as an experiment, the one that supplies its unknowns, and the equations."""
    name = ScenarioName(scenario.name)
    place = experiment_place(name)
    like = _like(problem, scenario, place, issues)
    scenario = replace(scenario, data=_laid_out(scenario.data, like))
    condition = problem.condition(like.name)
    t0 = condition.t0
    if scenario.t0 is not None:
        stated = finite_number(scenario.t0, f"{place} t0", issues)
        t0 = t0 if stated is None else stated
    source = scenario.source or place
    known = {*model.constants, *problem.parameters}
    known |= {name for e in problem.experiments for name in e.constants}
    constants = _known(scenario.constants, known, "constant or parameter", place, issues)
    initial = {**like.initial, **dict(issues.items(f"{place} initial", scenario.initial))}
    states = {*model.ode, *model.algebraic}
    for state, value in scenario.initial.items():
        if state not in states:
            issues.error(
                f"{place} initial.{state}",
                f"there is no state '{state}'{did_you_mean(str(state), states)}",
            )
            initial.pop(state)
        elif isinstance(value, (Parameter, Mapping, tuple, list)):
            issues.error(
                f"{place} initial.{state}",
                "nothing is estimated in a scenario; expected a number or an expression",
            )
            initial.pop(state)
    experiment = Experiment(
        name=name,
        data=_table(scenario, source, issues),
        t0=t0,
        origin=like.origin,
        initial=initial,
        constants={**like.constants, **constants},
        events=like.events if scenario.events is None else tuple(scenario.events),
        steady_state=like.steady_state,
        source=source,
    )
    if scenario.steady_state is not None:
        experiment = replace(experiment, steady_state=scenario.steady_state)
    experiment, model, dosed = with_doses(problem, scenario, experiment, model, issues)
    data = _data(problem, scenario, experiment, like, model, dosed, issues, measured)
    experiment = model.notation.experiment(replace(experiment, data=data), place, issues)
    return prepared(experiment, issues), like.name, model


def _laid_out(data: Any, like: Experiment) -> Any:
    """Return a table under our names, if it is laid out as that of the experiment."""
    return laid_out(data, like.layout, column_names(data) or ())


def _like(problem: Problem, scenario: Scenario, place: str, issues: Issues) -> Experiment:
    names = [e.name for e in problem.experiments]
    if scenario.like is None:
        return problem.experiments[0]
    if scenario.like not in names:
        issues.error(
            f"{place} like",
            f"there is no experiment {shown(scenario.like)}{one_of(str(scenario.like), names)}",
        )
        return problem.experiments[0]
    return problem.experiments[names.index(scenario.like)]


def _known(
    values: Mapping[str, Any], known: set[str], kind: str, place: str, issues: Issues
) -> dict[str, Any]:
    """Return the values given to known names."""
    accepted = {}
    for name, value in issues.items(f"{place} constants", values):
        if name in known:
            accepted[name] = value
        else:
            issues.error(
                f"{place} constants.{name}",
                f"there is no {kind} '{name}'{did_you_mean(name, known)}",
            )
    return accepted


def _table(scenario: Scenario, source: str, issues: Issues) -> Any:
    """Return the table of a scenario, its times in the column ``t`` unless it has doses."""
    if scenario.data is None or scenario.data is UNREADABLE:
        return scenario.data
    if as_table(scenario.data) is None:
        issues.expected(source, "a DataFrame or a dict of columns", scenario.data)
        return UNREADABLE
    return scenario.data


def _data(
    problem: Problem,
    scenario: Scenario,
    experiment: Experiment,
    like: Experiment,
    model: Model,
    dosed: bool,
    issues: Issues,
    measured: bool,
) -> Any:
    """Return the columns of a scenario: times, inputs and, if it is `measured`, observables."""
    place, t0 = experiment_place(experiment.name), experiment.t0
    assert isinstance(t0, float)
    for name in [str(n) for n in scenario.inputs if n not in model.inputs]:
        have = tuple(model.inputs)
        hint = one_of(name, have) if have else "; the model has no inputs"
        issues.error(f"{place} inputs.{name}", f"there is no input '{name}'{hint}")
    if scenario.data is UNREADABLE:
        return UNREADABLE
    table: Mapping[str, Any] = {}
    if scenario.data is not None:
        data = experiment.data if dosed else scenario.data
        data, _ = with_times(data, TIME, data_place(experiment), issues)
        table = as_table(data) or {}
        if TIME not in table:
            return data  # reading the columns reports it
    parts = [{TIME: np.array([t0])}]
    parts += _inputs(problem, scenario, like, model, table, t0, place, issues)
    if measured and table:
        beside = [f"{o}{end}" for o in model.observables for end in ("", "_sd", "_cens")]
        rows = {n: table[n] for n in (TIME, *beside) if n in table}
        parts.append(rows)
    columns: Any = {}
    for part in parts:
        columns = _stacked(columns, part)
    return columns


def _inputs(
    problem: Problem,
    scenario: Scenario,
    like: Experiment,
    model: Model,
    table: Mapping[str, Any],
    t0: float,
    place: str,
    issues: Issues,
) -> Iterator[dict[str, Any]]:
    """Yield times and values of each input."""
    condition = problem.condition(like.name)
    for name in model.inputs:
        new_input = scenario.inputs.get(name)
        at = f"{place} inputs.{name}"
        if new_input is not None and name in table:
            issues.error(at, "the table has a column of this name, too; keep one of the two")
        elif isinstance(new_input, Mapping):
            columns = {k: numeric_column(new_input[k], f"{at}.{k}", issues) for k in new_input}
            times, values = columns.get("t"), columns.get("value")
            if set(new_input) != {"t", "value"} or times is None or values is None:
                issues.error(at, "expected a number, or the lists t and value")
            elif len(times) != len(values) or not len(times):
                issues.error(at, f"{len(times)} times in t, but {len(values)} numbers in value")
            else:
                _check_span(problem, scenario, name, times, t0, at, issues)
                yield {TIME: times, name: values}
        elif new_input is not None:
            number = finite_number(new_input, at, issues)
            if number is not None:
                yield {TIME: np.array([t0]), name: np.array([number])}
        elif name in table:
            times = numeric_column(table[TIME], f"{place}, column {TIME}", issues)
            values = numeric_column(table[name], f"{place}, column {name}", issues)
            if times is not None and values is not None and len(times) == len(values):
                _check_span(problem, scenario, name, times[np.isfinite(values)], t0, at, issues)
            yield {TIME: table[TIME], name: table[name]}
        elif table:
            issues.error(
                at,
                f"the table has no column '{name}' for this input; add it, or give the input a "
                f"value: inputs = {{ {name} = NUMBER }}",
            )
        else:
            known = condition.inputs[name]
            yield {TIME: known.times, name: known.values}


def _check_span(
    problem: Problem,
    scenario: Scenario,
    name: str,
    times: Array,
    t0: float,
    at: str,
    issues: Issues,
) -> None:
    """Report predicted times that a new input does not cover."""
    if len(times) < 2 or problem.given.inputs[name] == "constant":
        return  # a constant input keeps its value
    predicted = prediction_times(problem, scenario)
    predicted = predicted[np.isfinite(predicted)]
    first, last = float(times.min()), float(times.max())
    if len(predicted) and (predicted[-1] > last or first > t0):
        issues.error(
            at,
            f"its values are given from t = {first:g} to {last:g}, but it is needed from "
            f"t = {t0:g} to {max(float(predicted[-1]), t0):g}; add rows, or predict other times",
        )


def _stacked(table: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables stacked, with missing values where one lacks a column."""
    if not table:
        return dict(more)
    parts = (table, more)
    counts = [len(part[TIME]) for part in parts]
    return {
        name: np.concatenate(
            [
                np.asarray(part[name], dtype=float) if name in part else np.full(count, np.nan)
                for part, count in zip(parts, counts, strict=True)
            ]
        )
        for name in dict.fromkeys((*table, *more))
    }
