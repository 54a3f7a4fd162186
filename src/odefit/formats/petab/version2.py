"""PEtab, version 2: its tables as a :class:`~odefit.formats.petab.description.Description`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from odefit.common.errors import one_of, shown
from odefit.formats.petab.description import (
    STEADY,
    Description,
    ExperimentRows,
    Measurement,
    ObservableRow,
    ParameterRow,
    Period,
)
from odefit.formats.petab.tables import (
    Table,
    aliases,
    all_rows,
    as_list,
    bounds,
    check_known,
    check_measured,
    column_notes,
    measurement,
    nominal_value,
    prior_of_version_2,
    unique,
)
from odefit.formats.petab.yaml_file import PetabFiles
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise_distributions.registry import PETAB

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "parameter": (
        "parameterId", "parameterName", "lowerBound", "upperBound", "nominalValue", "estimate",
        "priorDistribution", "priorParameters",
    ),
    "observable": (
        "observableId", "observableName", "observableFormula", "noiseFormula",
        "noiseDistribution", "observablePlaceholders", "noisePlaceholders",
    ),
    "condition": ("conditionId", "targetId", "targetValue", "conditionName"),
    "experiment": ("experimentId", "time", "conditionId", "experimentName"),
    "measurement": (
        "modelId", "observableId", "experimentId", "time", "measurement", "observableParameters",
        "noiseParameters", "datasetId", "replicateId",
    ),
    "mapping": ("petabEntityId", "modelEntityId", "name"),
}  # fmt: skip

NO_EXPERIMENT = "data"
"""Name of the experiment of measurements that name none: the model as it is."""

DISTRIBUTIONS = (*PETAB, *(f"log-{name}" for name in PETAB))


def describe(files: PetabFiles, issues: Issues) -> Description:
    """Return what the tables say; mistakes go to `issues`."""
    notes = [*files.notes, *column_notes(files.tables, COLUMNS, issues)]
    observables = _observables(files.tables["observable"], issues)
    conditions = _conditions(files.tables["condition"], issues)
    experiments = _experiments(files.tables["experiment"], conditions, issues)
    measurements = _measurements(
        files.tables["measurement"], {o.name for o in observables}, set(experiments), issues
    )
    measured = {m.experiment for m in measurements}
    idle = [name for name in experiments if name not in measured]
    if idle:
        notes.append(f"There are no measurements of the experiments {', '.join(idle)}.")
    if NO_EXPERIMENT in measured and NO_EXPERIMENT not in experiments:
        experiments[NO_EXPERIMENT] = ExperimentRows(NO_EXPERIMENT, (Period(0.0, {}, ""),))
    return Description(
        files.name,
        2,
        *files.model,
        _parameters(files.tables["parameter"], issues),
        observables,
        tuple(e for name, e in experiments.items() if name in measured),
        measurements,
        aliases(files.tables["mapping"], issues),
        tuple(notes),
    )


def _parameters(tables: Sequence[Table], issues: Issues) -> tuple[ParameterRow, ...]:
    required = ("parameterId", "lowerBound", "upperBound", "estimate")
    found = []
    for name, row in unique(all_rows(tables, required, issues), "parameterId", issues).items():
        flag = row.get("estimate").casefold()
        if flag not in ("true", "false"):
            issues.error(
                row.place, f"estimate: expected true or false, got {shown(row.get('estimate'))}"
            )
        estimate = flag == "true"
        lower, upper = bounds(row, estimate, issues)
        found.append(
            ParameterRow(
                name,
                None,
                lower,
                upper,
                nominal_value(row, estimate, issues),
                estimate,
                prior_of_version_2(row, issues) if estimate else None,
                row.place,
            )
        )
    return tuple(found)


def _observables(tables: Sequence[Table], issues: Issues) -> tuple[ObservableRow, ...]:
    required = ("observableId", "observableFormula", "noiseFormula")
    found = []
    for name, row in unique(all_rows(tables, required, issues), "observableId", issues).items():
        distribution = row.get("noiseDistribution") or "normal"
        if distribution not in DISTRIBUTIONS:
            issues.error(
                row.place,
                f"noiseDistribution: unknown {shown(distribution)}"
                f"{one_of(distribution, DISTRIBUTIONS)}",
            )
        found.append(
            ObservableRow(
                name,
                row.text("observableFormula", issues),
                row.text("noiseFormula", issues),
                "log" if distribution.startswith("log-") else None,
                PETAB.get(distribution.removeprefix("log-"), "normal"),
                as_list(row.get("observablePlaceholders")),
                as_list(row.get("noisePlaceholders")),
                row.place,
            )
        )
    return tuple(found)


def _conditions(tables: Sequence[Table], issues: Issues) -> dict[str, Period]:
    """Return what each condition assigns."""
    assigned: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for row in all_rows(tables, ("conditionId", "targetId", "targetValue"), issues):
        name, target = row.text("conditionId", issues), row.text("targetId", issues)
        value = row.text("targetValue", issues)
        if not name or not target:
            continue
        own = assigned.setdefault(name, {})
        places.setdefault(name, row.place)
        if target in own:
            issues.error(row.place, f"the condition assigns {shown(target)} twice; remove one")
        own[target] = value
    return {name: Period(0.0, own, places[name]) for name, own in assigned.items()}


def _experiments(
    tables: Sequence[Table], conditions: Mapping[str, Period], issues: Issues
) -> dict[str, ExperimentRows]:
    """Return the experiments by id, with the conditions of equal times put together."""
    periods: dict[str, dict[float, dict[str, str]]] = {}
    places: dict[tuple[str, float], str] = {}
    for row in all_rows(tables, ("experimentId", "time", "conditionId"), issues):
        name = row.text("experimentId", issues)
        time = row.number("time", issues, infinite=True)
        if not name or time is None:
            continue
        if time == math.inf:
            issues.error(row.place, "time: a period cannot begin at inf")
            continue
        own = periods.setdefault(name, {}).setdefault(time, {})
        places.setdefault((name, time), row.place)
        condition = row.get("conditionId")
        if not condition:
            continue
        check_known(row, "condition", condition, conditions, issues)
        if condition not in conditions:
            continue
        for target, value in conditions[condition].assign.items():
            if target in own:
                issues.error(row.place, f"two conditions of this time assign {shown(target)}")
            own[target] = value
    return {
        name: ExperimentRows(name, tuple(Period(t, own[t], places[name, t]) for t in sorted(own)))
        for name, own in periods.items()
    }


def _measurements(
    tables: Sequence[Table], observables: set[str], experiments: set[str], issues: Issues
) -> tuple[Measurement, ...]:
    found = []
    for row in all_rows(tables, ("observableId", "experimentId", "time", "measurement"), issues):
        observable, experiment = row.text("observableId", issues), row.get("experimentId")
        check_known(row, "observable", observable, observables, issues)
        check_known(row, "experiment", experiment, experiments, issues)
        time = row.number("time", issues, infinite=True)
        if time == STEADY:
            issues.error(row.place, "time: there are no measurements at -inf")
            continue
        measured = measurement(row, observable, experiment or NO_EXPERIMENT, time, issues)
        if measured is not None:
            found.append(measured)
    check_measured(found, tables, issues)
    return tuple(found)
