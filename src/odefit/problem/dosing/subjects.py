"""Experiments from long tables: one for each subject, with doses, covariates, measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean
from odefit.expressions.expressions import TIME, Expression, as_expression
from odefit.problem.building.columns import as_table, column_names, used_columns
from odefit.problem.building.preparation import experiment_place
from odefit.problem.building.times import time_column
from odefit.problem.dosing.dose_events import DoseEvents
from odefit.problem.dosing.dose_records import BESIDE, ROLES, LongTable, Record
from odefit.problem.experiment import UNREADABLE, Experiment, as_doses, data_place, expressions_of
from odefit.problem.inputs.file_access import MAX_EXPERIMENTS, too_many_experiments
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.inputs.sentinels import point_out_sentinels
from odefit.problem.inputs.table import Cells
from odefit.problem.model import Model

IDENTIFIERS = frozenset({"ID", "SUBJECT", "PATIENT", "SUBJID", "USUBJID"})
"""Upper-case names of columns that may identify subjects."""

DOSING = frozenset({"AMT", "EVID", "ADDL", "DV", "MDV"})
"""Upper-case names of columns that hardly occur outside the convention of long tables."""


def with_subjects(
    experiments: Sequence[Experiment],
    model: Model,
    tables: Mapping[str, Mapping[str, Any]],
    issues: Issues,
    *,
    measured: bool = True,
) -> tuple[list[Experiment], Model]:
    """Return the experiments with long tables expanded, and the equations with infusions.

    `tables` holds ``parameters``, ``initial`` and ``noise`` as given. Unless `measured` is set,
    subjects may have doses without measurements.
    """
    subjects_made: list[Experiment] = []
    infusions: dict[str, str] = {}
    for original in experiments:
        experiment = _with_own_names(original, model, tables, issues)
        if not experiment.long:
            _refuse_pooling(experiment, model, issues)
            table = as_table(experiment.data) or {}
            used = {*model.observables, *model.inputs, time_column(experiment, table)}
            shown = {n: column for n, column in table.items() if n in used}
            point_out_sentinels(shown, data_place(experiment), issues)
            subjects_made.append(experiment)
        elif model.ode:
            made: list[Experiment] = []
            if experiment.data is not UNREADABLE:
                subjects = _Subjects(experiment, model, tables, infusions, issues)
                made = subjects.experiments(measured=measured)
            subjects_made += made or [_placeholder(experiment, model, tables)]
    return subjects_made, with_infusions(model, infusions) if infusions else model


def _placeholder(
    experiment: Experiment, model: Model, tables: Mapping[str, Mapping[str, Any]]
) -> Experiment:
    """Return an experiment that replaces subjects with mistakes.

    Its constants are the names that columns may supply, so that these are not reported as unknown
    too.
    """
    known = {*model.ode, *model.constants, *model.inputs, *model.observables}
    covariates = dict.fromkeys(_needed_columns(experiment, model, tables) - known, 0.0)
    return replace(
        experiment,
        name=experiment.name or "subjects",
        data=UNREADABLE,
        t0=0.0,
        constants=covariates | dict(experiment.constants),
        by=None,
        doses=None,
        observable=None,
        columns={},
    )


def _with_own_names(
    experiment: Experiment, model: Model, tables: Mapping[str, Mapping[str, Any]], issues: Issues
) -> Experiment:
    """Return an experiment with columns renamed as the equations need."""
    used = used_columns(model)
    if experiment.long:
        used |= _needed_columns(experiment, model, tables) - ROLES.keys()  # covariates
    columns = {n: c for n, c in experiment.columns.items() if n in used}
    table = as_table(experiment.data)
    if not columns or table is None:
        return experiment
    place = data_place(experiment)
    for name, column in columns.items():
        if experiment.data is not UNREADABLE and column not in table:
            issues.error(
                place,
                f"no column '{column}', which columns.{name} names{did_you_mean(column, table)} "
                f"(columns are: {', '.join(table)})",
            )
        elif name in table and name != column:
            issues.error(
                place, f"columns.{name} is '{column}', but there is a column '{name}'; keep one"
            )
    names = {column: name for name, column in columns.items()}
    renamed = {names.get(column, column): cells for column, cells in table.items()}
    if isinstance(experiment.data, Cells):
        data = Cells(renamed)
        data.lines = experiment.data.lines
        renamed = data
    roles = {key: c for key, c in experiment.columns.items() if key not in columns}
    new_data = renamed if experiment.data is not UNREADABLE else UNREADABLE
    by = experiment.by
    return replace(
        experiment, data=new_data, columns=roles, by=by if by is None else names.get(by, by)
    )


def _needed_columns(
    experiment: Experiment, model: Model, tables: Mapping[str, Mapping[str, Any]]
) -> set[str]:
    """Return the names in expressions that a column may supply."""
    doses = as_doses(experiment.doses, list(model.ode), "", Issues())
    values: list[Any] = [*tables["initial"].values(), *experiment.initial.values()]
    values += [*experiment.constants.values(), *expressions_of(doses)]
    for one in tables["noise"].values():
        fields = one if isinstance(one, Mapping) else getattr(one, "__dict__", {})
        values += [fields.get(name) for name in ("sd", "dispersion", "correlation_time")]
    for event in experiment.events:
        values += event.expressions
    names = {n for value in values for n in _names(value)}
    for section in (model.ode, model.algebraic, model.observables):
        names |= {n for e in section.values() for n in e.names}
    return names - {*tables["parameters"], *model.algebraic, TIME}


def with_infusions(model: Model, infusions: Mapping[str, str]) -> Model:
    """Return the equations with a constant added to each of these states, zero by default."""
    ode = {
        state: f"{expression.text} + {infusions[state]}" if state in infusions else expression
        for state, expression in model.ode.items()
    }
    constants = {**model.constants, **dict.fromkeys(infusions.values(), 0.0)}
    extended = Model(ode, model.observables, model.algebraic, constants, model.inputs)
    for name in ("notation", "unknown_functions"):
        object.__setattr__(extended, name, getattr(model, name))
    return extended


def _refuse_pooling(experiment: Experiment, model: Model, issues: Issues) -> None:
    """Refuse to read the records of several subjects, or dose records, as plain measurements."""
    names = column_names(experiment.data) or []
    known = {*model.observables, *model.inputs, experiment.time, TIME}
    others = [name for name in names if name not in known]
    dosing = [name for name in others if name.upper() in DOSING]
    table = as_table(experiment.data) or {}
    place = data_place(experiment)
    time = next((n for n in names if n.upper() == "TIME"), TIME)
    for name in others:
        if name.upper() not in IDENTIFIERS:
            continue
        values = [str(v) for v in np.asarray(table[name]).tolist()]
        texts = set(values) == {"nan"}  # from a CSV file, in which texts are not data
        several = len(set(values)) > 1 or texts
        if several and (len(set(values)) < len(values) or dosing):
            issues.error(
                f"{place}, column {name}",
                "there are several subjects, which would count as replicates of one; write "
                f'by = "{name}"{_time_hint(time)} beside the data for an experiment each, or '
                "remove the column",
            )
            return
    if dosing:
        issues.error(
            f"{place}, column {dosing[0]}",
            "the table seems to have dose records, which are not read; write "
            f'doses = {{ into = "{next(iter(model.ode), "STATE")}" }}{_time_hint(time)} beside '
            'the data (and by = "ID" if there are several subjects), or remove the column',
        )


def _time_hint(time: str) -> str:
    return "" if time == TIME else f' and time = "{time}"'


class _Subjects:
    """The experiments of one long table."""

    def __init__(
        self,
        experiment: Experiment,
        model: Model,
        tables: Mapping[str, Mapping[str, Any]],
        infusions: dict[str, str],
        issues: Issues,
    ) -> None:
        self._experiment, self._model, self._issues = experiment, model, issues
        self._infusions = infusions
        parameters, initial = tables["parameters"], tables["initial"]
        place = f"{experiment_place(experiment.name or experiment.source or 'data')} doses"
        doses = as_doses(experiment.doses, list(model.ode), place, issues)
        names = _needed_columns(experiment, model, tables)
        self._taken = {*names, *parameters, *model.ode, *model.algebraic, *model.constants}
        self._taken |= {*model.observables, *model.inputs}
        self._table = LongTable(experiment, model, names, issues)
        columns = self._table.has("RATE") or self._table.has("DUR")
        values = {**initial, **experiment.initial}
        self._events = DoseEvents(model, doses, values, columns, issues)

    def experiments(self, *, measured: bool) -> list[Experiment]:
        """Return one experiment for each subject; with `measured`, each needs measurements."""
        if not self._table.usable:
            return []
        subjects = self._table.subjects()
        if not subjects and not self._issues.has_errors(self._table.place):
            self._issues.error(self._table.place, "no rows that can be used")
        if len(subjects) > MAX_EXPERIMENTS:
            self._issues.error(self._table.place, too_many_experiments())
            return []
        self._events.infusions.update(self._infusions)
        for records in subjects.values():
            self._events.find_infusions(records, self._taken)
        self._infusions.update(self._events.infusions)
        self._point_out_sentinels([r for records in subjects.values() for r in records])
        included = {
            key: not measured or any(r.values for r in records) for key, records in subjects.items()
        }
        if not any(included.values()):
            if not self._issues.has_errors(self._table.place):
                message = "nothing is measured; expected values in a column DV, or in at least one"
                have = ", ".join(self._model.observables)
                self._issues.error(self._table.place, f"{message} of: {have}")
            return []
        for key in subjects:
            if not included[key]:
                self._issues.warn(
                    f"{self._table.place}, {self._experiment.by} = {key}",
                    "the subject has no measured value, and is left out",
                )
        return [self._one(key, records) for key, records in subjects.items() if included[key]]

    def _point_out_sentinels(self, records: Sequence[Record]) -> None:
        sentinels_found: dict[str, list[float]] = {}
        for record in records:
            for name, value in (*record.values.items(), *record.others.items()):
                if not name.endswith(BESIDE[1:]):
                    sentinels_found.setdefault(name, []).append(value)
        point_out_sentinels(sentinels_found, self._table.place, self._issues)

    def _one(self, key: str, records: list[Record]) -> Experiment:
        table_run = self._experiment
        by, place = table_run.by, self._table.place
        source = place if by is None else f"{place}, {by} = {key}"
        t0 = (
            None
            if table_run.t0 is None
            else finite_number(table_run.t0, f"{place} t0", self._issues)
        )
        if t0 is None:
            t0 = min((r.time for r in records if math.isfinite(r.time)), default=0.0)
        course = self._events.course(records, t0)
        if course.steady_state is not False and table_run.steady_state:
            self._issues.error(source, "SS = 1 and steady_state are both given; keep one of them")
        return replace(
            table_run,
            name=table_run.name if by is None else _name(table_run.name, by, key),
            data=self._data(records),
            t0=t0,
            constants={
                **table_run.constants,
                **self._covariates(records, source),
                **course.constants,
            },
            events=(*table_run.events, *course.events),
            steady_state=course.steady_state or table_run.steady_state,
            source=source,
            time=TIME,
            by=None,
            observable=None,
            columns={},
            doses=None,
            origin=table_run.origin.get(key)
            if isinstance(table_run.origin, Mapping)
            else table_run.origin,
        )

    def _data(self, records: Sequence[Record]) -> dict[str, Array]:
        """Return the columns of one subject."""
        inputs = set(self._model.inputs)
        rows = [r for r in records if r.values or inputs & r.others.keys()]
        names = dict.fromkeys(n for r in rows for n in r.values)
        names |= dict.fromkeys(n for n in self._model.inputs)
        columns = {TIME: np.array([r.time for r in rows], dtype=float)}
        for name in names:
            columns[name] = np.array(
                [r.values.get(name, r.others.get(name, np.nan)) for r in rows], dtype=float
            )
        return columns

    def _covariates(self, records: Sequence[Record], source: str) -> dict[str, float]:
        covariates = {}
        for name in self._table.covariates:
            values = {r.others[name] for r in records if name in r.others}
            if len(values) > 1:
                self._issues.error(
                    f"{source}, column {name}",
                    f"the covariate changes within the subject (from {min(values):g} to "
                    f"{max(values):g}); for one that changes in time write [inputs] "
                    f'{name} = {{ interpolation = "constant" }}',
                )
            elif values:
                covariates[name] = values.pop()
            elif name not in self._model.constants:
                self._issues.error(
                    f"{source}, column {name}",
                    "the covariate has no value in any row of the subject; fill it, or give "
                    f"{name} in [constants] for subjects without one",
                )
        return covariates


def _name(pattern: str, by: str, key: str) -> str:
    """Return the name of a subject's experiment."""
    if "{}" in pattern:
        return pattern.replace("{}", key)
    return f"{pattern} {key}" if pattern else f"{by} {key}"


def _names(value: Any) -> frozenset[str]:
    """Return the names in a value that may be an expression."""
    if not isinstance(value, (str, Expression)):
        return frozenset()
    try:
        return as_expression(value).names
    except (InputError, ValueError):
        return frozenset()
