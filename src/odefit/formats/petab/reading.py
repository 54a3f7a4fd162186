"""PEtab problems read: their tables and model become the mapping of format 1."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odefit.formats.petab.description import Description, Measurement
from odefit.formats.petab.experiments import Experiments, comment_columns
from odefit.formats.petab.names import PetabNames, names_in, reachable
from odefit.formats.petab.observables import Observables, Observed, ObservedRow
from odefit.formats.petab.versions import describe
from odefit.formats.petab.yaml_file import read_files
from odefit.problem.inputs.file_access import MAX_EXPERIMENTS, too_many_experiments
from odefit.problem.inputs.issues import Issues
from odefit.problem.problem import Problem
from odefit.problem.sbml import SbmlModel, read_sbml
from odefit.problem.toml.files import problem_from_mapping


@dataclass(frozen=True)
class PetabImport:
    """A PEtab problem as a problem of odefit."""

    problem: Problem
    mapping: Mapping[str, Any]  # the same in the structure of format 1
    # nominal values by name, of parameters that are estimated and have one
    nominal: Mapping[str, float]
    # for each measurement in the order of the file, the names of its experiment and observable in
    # the problem, and its row
    rows: Sequence[tuple[str, str, Measurement]]
    version: int  # the version of PEtab


def read_petab(
    path: str | os.PathLike[str], *, nominal: bool = False, within: Path | None = None
) -> PetabImport:
    """Read a PEtab problem of version 1 or 2, whose model is in SBML.

    With `nominal`, nominal values within the bounds become guesses. Other files must be in the
    folder `within`: by default the folder of the YAML file or the one above.
    """
    source = Path(os.fspath(path))
    issues = Issues(source.name)
    files = read_files(source, issues, within)
    description = describe(files, issues)
    if len(description.experiments) > MAX_EXPERIMENTS:
        issues.error("experiments", too_many_experiments())
    issues.raise_errors()
    model = read_sbml(description.model)
    names = PetabNames(description, model, issues)
    _check_parameters(description, names, issues)
    observed = Observables(description, names, issues)()
    comments = comment_columns(description.experiments, names) if files.version == 1 else []
    translated = Experiments(names, files.version, issues, comments)
    experiments = [translated(e) for e in description.experiments]
    by_experiment: dict[str, list[ObservedRow]] = {e["name"]: [] for e in experiments}
    for row in observed.rows:
        by_experiment[row.experiment].append(row)
    for experiment in experiments:
        constants = experiment["constants"]
        for name, value in observed.constants[experiment["name"]].items():
            # a constant equal to another one takes its value
            another = constants.get(value) if isinstance(value, str) else None
            constants[name] = another if isinstance(another, str) else value
        experiment["data"] = _data(by_experiment[experiment["name"]])
    issues.raise_errors()
    mapping = _mapping(description, model, names, observed, experiments, nominal, issues)
    unread = [
        f"The column '{c}' of the condition table is not read: the model has no '{c}', and the "
        "column holds texts that are not values."
        for c in comments
    ]
    notes = [*description.notes, *unread, *model.translated, *observed.notes, *issues.warnings]
    problem = problem_from_mapping(mapping, source.parent, source.name, notes=tuple(notes))
    values = {
        names.of(p.name): p.nominal
        for p in description.parameters
        if p.estimate and p.nominal is not None
    }
    order = {id(m): i for i, m in enumerate(description.measurements)}
    rows = sorted(observed.rows, key=lambda row: order[id(row.measurement)])
    return PetabImport(problem, mapping, values, [row[:3] for row in rows], files.version)


def _mapping(
    description: Description,
    model: SbmlModel,
    names: PetabNames,
    observed: Observed,
    experiments: list[dict[str, Any]],
    nominal: bool,
    issues: Issues,
) -> dict[str, Any]:
    """Return the problem in the structure of format 1."""
    constants = {k: v for k, v in model.constants.items() if k not in names.parameters}
    used = _used(model, observed, experiments)
    events = [event for e in experiments for event in e["event"]]
    for table in (constants, *(e["constants"] for e in experiments)):
        for name in [n for n in table if n not in used]:
            del table[name]
    for event in events:
        event["assign"] = {
            n: v for n, v in event["assign"].items() if n in used or n in model.states
        }
    for experiment in experiments:
        experiment["event"] = [e for e in experiment["event"] if e["assign"]]
    mapping: dict[str, Any] = {
        "format": 1,
        "name": description.name,
        "time_unit": model.time_unit,
        "ode": dict(model.states),
        "algebraic": dict(model.algebraic),
        "observables": observed.observables,
        "constants": constants,
        "parameters": {
            name: table
            for name, table in _parameters(description, names, nominal, issues).items()
            if name in used or "fixed" not in table
        },
        "initial": dict(model.initial),
        "noise": observed.noise,
        "experiment": experiments,
    }
    return {key: value for key, value in mapping.items() if value}


def _used(
    model: SbmlModel, observed: Observed, experiments: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Return all names on which trajectories, observables or noise depend."""
    texts: list[object] = [*model.states.values(), *model.initial.values()]
    texts += model.algebraic.values()
    texts += observed.observables.values()
    texts += [noise.get("sd") for noise in observed.noise.values()]
    defined: dict[str, set[str]] = {}
    for experiment in experiments:
        texts += experiment["initial"].values()
        for name, value in experiment["constants"].items():
            defined.setdefault(name, set()).update(names_in(str(value)))
        for event in experiment["event"]:
            texts += [event.get("when"), event.get("time")]
            for name, value in event["assign"].items():
                if name in model.states:
                    texts.append(value)
                else:
                    defined.setdefault(name, set()).update(names_in(str(value)))
    roots = {n for text in texts if isinstance(text, str) for n in names_in(text)}
    return reachable(roots, defined)


def _check_parameters(description: Description, names: PetabNames, issues: Issues) -> None:
    """Report rows of the parameter table that are not parameters in the model."""
    for row in description.parameters:
        name = names.of(row.name)
        if name in names.model.states or name in names.model.assigned:
            kind = "state" if name in names.model.states else "variable of an assignment rule"
            issues.error(row.place, f"{row.name} is a {kind} of the model and not a parameter")
    issues.raise_errors()


def _parameters(
    description: Description, names: PetabNames, nominal: bool, issues: Issues
) -> dict[str, dict[str, Any]]:
    parameters: dict[str, dict[str, Any]] = {}
    for row in description.parameters:
        name = names.of(row.name)
        table: dict[str, Any] = {}
        inside = row.nominal is None or row.lower <= row.nominal <= row.upper
        if math.isfinite(row.lower):
            table["lower"] = row.lower
        if math.isfinite(row.upper):
            table["upper"] = row.upper
        if not row.estimate:
            table["fixed"] = row.nominal
            parameters[name] = table
            continue
        if row.scale is not None:
            table["scale"] = row.scale
        if row.prior is not None:
            table["prior"] = dict(row.prior)
        if not inside:
            issues.warn(
                row.place,
                f"the nominal value {row.nominal:g} of {row.name} is outside its bounds "
                f"[{row.lower:g}, {row.upper:g}]",
            )
        elif nominal and row.nominal is not None:
            table["guess"] = row.nominal
        parameters[name] = table
    return parameters


def _data(measured: Sequence[ObservedRow]) -> dict[str, list[float | None]]:
    """Return the columns of an experiment; replicates are in separate rows."""
    counts: dict[tuple[str, float], int] = {}
    rows: dict[tuple[float, int], dict[str, float]] = {}
    for _, observable, measurement, sd in measured:
        key = observable, measurement.time
        number = counts[key] = counts.get(key, -1) + 1
        row = rows.setdefault((measurement.time, number), {})
        row[observable] = measurement.value
        if sd is not None:
            row[f"{observable}_sd"] = sd
    order = sorted(rows)
    columns = dict.fromkeys(name for key in order for name in rows[key])
    table: dict[str, list[float | None]] = {"t": [time for time, _ in order]}
    for column in columns:
        table[column] = [rows[key].get(column) for key in order]
    return table
