"""PEtab, version 1: its tables as a :class:`~odefit.formats.petab.description.Description`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

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
    bounds,
    check_known,
    check_measured,
    column_notes,
    measurement,
    nominal_value,
    prior_of_version_1,
    unique,
)
from odefit.formats.petab.yaml_file import PetabFiles
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise_distributions.registry import PETAB

COLUMNS: Mapping[str, tuple[str, ...]] = {
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

_PLACEHOLDER = r"\b{}Parameter([0-9]+)_{}\b"


def describe(files: PetabFiles, issues: Issues) -> Description:
    """Return what the tables say; mistakes go to `issues`."""
    notes = [*files.notes, *column_notes(files.tables, COLUMNS, issues)]
    parameters = _parameters(files.tables["parameter"], notes, issues)
    observables = _observables(files.tables["observable"], issues)
    conditions = _conditions(files.tables["condition"], issues)
    experiments, measurements = _measurements(
        files.tables["measurement"], {o.name for o in observables}, conditions, issues
    )
    used = {p.place for e in experiments for p in e.periods}
    idle = [name for name, condition in conditions.items() if condition.place not in used]
    if idle:
        notes.append(f"There are no measurements under the conditions {', '.join(idle)}.")
    return Description(
        files.name,
        1,
        *files.model,
        parameters,
        observables,
        experiments,
        measurements,
        aliases(files.tables["mapping"], issues),
        tuple(notes),
    )


def _parameters(
    tables: Sequence[Table], notes: list[str], issues: Issues
) -> tuple[ParameterRow, ...]:
    required = ("parameterId", "parameterScale", "lowerBound", "upperBound", "estimate")
    found = []
    for name, row in unique(all_rows(tables, required, issues), "parameterId", issues).items():
        scale = row.get("parameterScale") or "lin"
        if scale not in ("lin", "log", "log10"):
            issues.error(
                row.place,
                f"parameterScale: unknown {shown(scale)}{one_of(scale, ('lin', 'log', 'log10'))}",
            )
        flag = row.number("estimate", issues)
        if flag is not None and flag not in (0, 1):
            issues.error(row.place, f"estimate: expected 0 or 1, got {flag:g}")
        estimate = flag != 0
        lower, upper = bounds(row, estimate, issues)
        if estimate and scale != "lin" and lower <= 0:
            issues.error(
                row.place,
                f"parameterScale {scale} needs a positive lowerBound, got {lower:g}; raise it, or "
                "write lin",
            )
        if row.get("initializationPriorType"):
            notes.append(
                f"The initialisation prior of {name} is not read; starts are drawn within bounds."
            )
        prior = prior_of_version_1(row, scale, issues) if estimate else None
        found.append(
            ParameterRow(
                name,
                "linear" if scale == "lin" else "log10",
                lower,
                upper,
                nominal_value(row, estimate, issues),
                estimate,
                prior,
                row.place,
            )
        )
    return tuple(found)


def _observables(tables: Sequence[Table], issues: Issues) -> tuple[ObservableRow, ...]:
    required = ("observableId", "observableFormula", "noiseFormula")
    found = []
    for name, row in unique(all_rows(tables, required, issues), "observableId", issues).items():
        transform = row.get("observableTransformation") or "lin"
        if transform not in ("lin", "log", "log10"):
            known = ("lin", "log", "log10")
            issues.error(
                row.place,
                f"observableTransformation: unknown {shown(transform)}{one_of(transform, known)}",
            )
        distribution = row.get("noiseDistribution") or "normal"
        if distribution not in PETAB:
            issues.error(
                row.place,
                f"noiseDistribution: unknown {shown(distribution)}"
                f"{one_of(distribution, tuple(PETAB))}",
            )
        formula = row.text("observableFormula", issues)
        noise = row.text("noiseFormula", issues)
        found.append(
            ObservableRow(
                name,
                formula,
                noise,
                "log" if transform == "log" else "log10" if transform == "log10" else None,
                PETAB.get(distribution, "normal"),
                _placeholders("observable", name, formula),
                _placeholders("noise", name, noise),
                row.place,
            )
        )
    return tuple(found)


def _placeholders(kind: Literal["observable", "noise"], name: str, formula: str) -> tuple[str, ...]:
    """Return the placeholders ``<kind>Parameter<n>_<observable>`` in a formula, up to the last."""
    numbers = re.findall(_PLACEHOLDER.format(kind, re.escape(name)), formula)
    last = min(max(map(int, numbers), default=0), 1000)
    return tuple(f"{kind}Parameter{i}_{name}" for i in range(1, last + 1))


def _conditions(tables: Sequence[Table], issues: Issues) -> dict[str, Period]:
    """Return what each condition assigns; cells that say nothing assign nothing."""
    rows = all_rows(tables, ("conditionId",), issues)
    found = {}
    for name, row in unique(rows, "conditionId", issues).items():
        cells = {k: v for k, v in row.cells.items() if k not in ("conditionId", "conditionName")}
        found[name] = Period(0.0, cells, row.place)
    return found


def _measurements(
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
