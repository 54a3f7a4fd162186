"""Tables of PEtab, in versions 1 and 2, as a description shared by both."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from odefit.common.errors import shown, some
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
    Row,
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
    prior_of_version_1,
    prior_of_version_2,
    unique,
)
from odefit.formats.petab.yaml_file import PetabFiles
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise_distributions.registry import PETAB

COLUMNS_1: Mapping[str, tuple[str, ...]] = {
    "parameter": (
        "parameterId", "parameterName", "parameterScale", "lowerBound", "upperBound",
        "nominalValue", "estimate", "initializationPriorType", "initializationPriorParameters",
        "objectivePriorType", "objectivePriorParameters",
    ),
    "observable": (
        "observableId", "observableName", "observableFormula", "observableTransformation",
        "noiseFormula", "noiseDistribution",
    ),
    "measurement": (
        "observableId", "preequilibrationConditionId", "simulationConditionId", "measurement",
        "time", "observableParameters", "noiseParameters", "datasetId", "replicateId",
    ),
    "mapping": ("petabEntityId", "modelEntityId", "name"),
}  # fmt: skip

COLUMNS_2: Mapping[str, tuple[str, ...]] = {
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
"""Name of the experiment for measurements without one: the unchanged model."""

DISTRIBUTIONS = (*PETAB, *(f"log-{name}" for name in PETAB))

_PLACEHOLDER = r"\b{}Parameter([0-9]+)_{}\b"


def describe(files: PetabFiles, issues: Issues) -> Description:
    """Return the content of the tables; mistakes are added to `issues`."""
    first = files.version == 1
    tables = files.tables
    notes = [*files.notes, *column_notes(tables, COLUMNS_1 if first else COLUMNS_2, issues)]
    parameters = (_parameters_1 if first else _parameters_2)(tables["parameter"], notes, issues)
    read = _observable_1 if first else _observable_2
    required = ("observableId", "observableFormula", "noiseFormula")
    rows = unique(all_rows(tables["observable"], required, issues), "observableId", issues)
    observables = tuple(read(name, row, issues) for name, row in rows.items())
    known = {o.name for o in observables}
    if first:
        conditions = _conditions_1(tables["condition"], issues)
        measured = _measurements_1(tables["measurement"], known, conditions, issues)
        experiments, measurements = measured
        used = {p.place for e in experiments for p in e.periods}
        idle = [name for name, condition in conditions.items() if condition.place not in used]
        origin = "under the conditions"
    else:
        by_name = _experiments_2(tables, issues)
        measurements = _measurements_2(tables["measurement"], known, set(by_name), issues)
        names = {m.experiment for m in measurements}
        idle = [name for name in by_name if name not in names]
        origin = "of the experiments"
        if NO_EXPERIMENT in names and NO_EXPERIMENT not in by_name:
            by_name[NO_EXPERIMENT] = ExperimentRows(NO_EXPERIMENT, (Period(0.0, {}, ""),))
        experiments = tuple(e for name, e in by_name.items() if name in names)
    if idle:
        notes.append(f"There are no measurements {origin} {some(idle)}.")
    return Description(
        name=files.name,
        version=files.version,
        model=files.model,
        parameters=parameters,
        observables=observables,
        experiments=experiments,
        measurements=measurements,
        aliases=aliases(tables["mapping"], issues),
        notes=tuple(notes),
    )


def _parameters_1(
    tables: Sequence[Table], notes: list[str], issues: Issues
) -> tuple[ParameterRow, ...]:
    required = ("parameterId", "parameterScale", "lowerBound", "upperBound", "estimate")
    rows = []
    for name, row in unique(all_rows(tables, required, issues), "parameterId", issues).items():
        scale = row.choice("parameterScale", ("lin", "log", "log10"), issues)
        flag = row.number("estimate", issues)
        if flag is not None and flag not in (0, 1):
            issues.error(row.place, f"estimate: expected 0 or 1, got {flag:g}")
        estimate = flag != 0
        prior = prior_of_version_1(row, scale, issues) if estimate else None
        made = _parameter(
            name, "linear" if scale == "lin" else "log10", estimate, prior, row, issues
        )
        if estimate and scale != "lin" and made.lower <= 0:
            issues.error(
                row.place,
                f"parameterScale {scale} needs a positive lowerBound, got {made.lower:g}; raise "
                "it, or write lin",
            )
        if row.get("initializationPriorType"):
            notes.append(
                f"The initialisation prior of {name} is not read; starts are drawn within bounds."
            )
        rows.append(made)
    return tuple(rows)


def _parameters_2(
    tables: Sequence[Table], notes: list[str], issues: Issues
) -> tuple[ParameterRow, ...]:
    required = ("parameterId", "lowerBound", "upperBound", "estimate")
    rows = []
    for name, row in unique(all_rows(tables, required, issues), "parameterId", issues).items():
        flag = row.get("estimate").casefold()
        if flag not in ("true", "false"):
            issues.expected(row.place, "true or false for estimate", row.get("estimate"))
        estimate = flag == "true"
        prior = prior_of_version_2(row, issues) if estimate else None
        rows.append(_parameter(name, None, estimate, prior, row, issues))
    return tuple(rows)


def _parameter(
    name: str,
    scale: Literal["linear", "log10"] | None,
    estimate: bool,
    prior: Mapping[str, object] | None,
    row: Row,
    issues: Issues,
) -> ParameterRow:
    lower, upper = bounds(row, estimate, issues)
    return ParameterRow(
        name=name,
        scale=scale,
        lower=lower,
        upper=upper,
        nominal=nominal_value(row, estimate, issues),
        estimate=estimate,
        prior=prior,
        place=row.place,
    )


def _observable_1(name: str, row: Row, issues: Issues) -> ObservableRow:
    transform = row.choice("observableTransformation", ("lin", "log", "log10"), issues)
    distribution = row.choice("noiseDistribution", tuple(PETAB), issues)
    formula = row.text("observableFormula", issues)
    noise = row.text("noiseFormula", issues)
    return ObservableRow(
        name=name,
        formula=formula,
        noise=noise,
        transform="log" if transform == "log" else "log10" if transform == "log10" else None,
        distribution=PETAB.get(distribution, "normal"),
        placeholders=_placeholders("observable", name, formula),
        noise_placeholders=_placeholders("noise", name, noise),
        place=row.place,
    )


def _observable_2(name: str, row: Row, issues: Issues) -> ObservableRow:
    distribution = row.choice("noiseDistribution", DISTRIBUTIONS, issues)
    return ObservableRow(
        name=name,
        formula=row.text("observableFormula", issues),
        noise=row.text("noiseFormula", issues),
        transform="log" if distribution.startswith("log-") else None,
        distribution=PETAB.get(distribution.removeprefix("log-"), "normal"),
        placeholders=as_list(row.get("observablePlaceholders")),
        noise_placeholders=as_list(row.get("noisePlaceholders")),
        place=row.place,
        title=row.get("observableName") or "",
    )


def _placeholders(kind: Literal["observable", "noise"], name: str, formula: str) -> tuple[str, ...]:
    """Return the placeholders ``<kind>Parameter<n>_<observable>`` in a formula, up to the last."""
    numbers = re.findall(_PLACEHOLDER.format(kind, re.escape(name)), formula)
    last = min(max(map(int, numbers), default=0), 1000)
    return tuple(f"{kind}Parameter{i}_{name}" for i in range(1, last + 1))


def _conditions_1(tables: Sequence[Table], issues: Issues) -> dict[str, Period]:
    """Return the assignments of each condition; empty cells assign nothing."""
    rows = all_rows(tables, ("conditionId",), issues)
    periods = {}
    for name, row in unique(rows, "conditionId", issues).items():
        cells = {k: v for k, v in row.cells.items() if k not in ("conditionId", "conditionName")}
        periods[name] = Period(0.0, cells, row.place)
    return periods


def _measurements_1(
    tables: Sequence[Table], observables: set[str], conditions: Mapping[str, Period], issues: Issues
) -> tuple[tuple[ExperimentRows, ...], tuple[Measurement, ...]]:
    required = ("observableId", "simulationConditionId", "measurement", "time")
    pairs: dict[tuple[str, str], str] = {}
    rows = all_rows(tables, required, issues)
    before: dict[str, set[str]] = {}
    for row in rows:
        pair = row.get("preequilibrationConditionId"), row.get("simulationConditionId")
        before.setdefault(pair[1], set()).add(pair[0])
    measurements = []
    for row in rows:
        observable = row.text("observableId", issues)
        check_known(row, "observable", observable, observables, issues)
        pair = row.get("preequilibrationConditionId"), row.text("simulationConditionId", issues)
        for name in pair:
            check_known(row, "condition", name, conditions, issues)
        if pair not in pairs:
            alone = len(before.get(pair[1], ())) == 1
            pairs[pair] = pair[1] if alone else f"{pair[1]} after {pair[0] or 'nothing'}"
        time = row.number("time", issues, infinite=True)
        if time is not None and time < 0:
            issues.error(row.place, f"time: measurements begin at time 0, got {time:g}")
        measured = measurement(row, observable, pairs[pair], time, issues)
        if measured is not None:
            measurements.append(measured)
    check_measured(rows, tables, issues)
    experiments = []
    for (steady, main), name in pairs.items():
        if main not in conditions or (steady and steady not in conditions):
            continue
        periods = [conditions[main]]
        if steady:
            first = conditions[steady]
            periods.insert(0, Period(STEADY, first.assign, first.place))
        experiments.append(ExperimentRows(name, tuple(periods)))
    return tuple(experiments), tuple(measurements)


def _conditions_2(tables: Sequence[Table], issues: Issues) -> dict[str, Period]:
    """Return the assignments of each condition."""
    assigned: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for row in all_rows(tables, ("conditionId", "targetId", "targetValue"), issues):
        name, target = row.text("conditionId", issues), row.text("targetId", issues)
        value = row.text("targetValue", issues)
        if not name or not target:
            continue
        of_condition = assigned.setdefault(name, {})
        places.setdefault(name, row.place)
        if target in of_condition:
            issues.error(row.place, f"the condition assigns {shown(target)} twice; remove one")
        of_condition[target] = value
    return {
        name: Period(0.0, of_condition, places[name]) for name, of_condition in assigned.items()
    }


def _experiments_2(
    tables: Mapping[str, Sequence[Table]], issues: Issues
) -> dict[str, ExperimentRows]:
    """Return the experiments by id, with conditions at equal times combined."""
    conditions = _conditions_2(tables["condition"], issues)
    periods: dict[str, dict[float, dict[str, str]]] = {}
    places: dict[tuple[str, float], str] = {}
    for row in all_rows(tables["experiment"], ("experimentId", "time", "conditionId"), issues):
        name = row.text("experimentId", issues)
        time = row.number("time", issues, infinite=True)
        if not name or time is None:
            continue
        if time == math.inf:
            issues.error(row.place, "time: a period cannot begin at inf")
            continue
        by_time = periods.setdefault(name, {}).setdefault(time, {})
        places.setdefault((name, time), row.place)
        condition = row.get("conditionId")
        if not condition:
            continue
        check_known(row, "condition", condition, conditions, issues)
        if condition not in conditions:
            continue
        for target, value in conditions[condition].assign.items():
            if target in by_time:
                issues.error(row.place, f"two conditions of this time assign {shown(target)}")
            by_time[target] = value
    return {
        name: ExperimentRows(
            name, tuple(Period(t, by_time[t], places[name, t]) for t in sorted(by_time))
        )
        for name, by_time in periods.items()
    }


def _measurements_2(
    tables: Sequence[Table], observables: set[str], experiments: set[str], issues: Issues
) -> tuple[Measurement, ...]:
    measurements = []
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
            measurements.append(measured)
    check_measured(measurements, tables, issues)
    return tuple(measurements)
