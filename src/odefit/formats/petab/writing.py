"""Problems written as PEtab, version 2, with a model in SBML."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.partial_files import write_together
from odefit.formats.petab.export import Export, plain_id
from odefit.formats.petab.sbml_writing import identifier, sbml_text
from odefit.problem.priors import Prior
from odefit.problem.problem import Problem

FILES = {
    "model": "model.xml",
    "parameter": "parameters.tsv",
    "observable": "observables.tsv",
    "condition": "conditions.tsv",
    "experiment": "experiments.tsv",
    "measurement": "measurements.tsv",
}


def write_petab(problem: Problem, path: str | os.PathLike[str]) -> Path:
    """Write a problem as PEtab, version 2, with a model in SBML; return the path of the YAML file.

    Without the ending ``.yaml`` the path is that of a folder, whose YAML file is ``problem.yaml``.
    Raises InputError with everything that PEtab cannot express.
    """
    target = Path(os.fspath(path))
    if target.suffix.lower() not in (".yaml", ".yml"):
        target = target / "problem.yaml"
    texts = petab_texts(problem)
    listing = texts.pop("problem.yaml")
    others = {target.parent / name: text for name, text in texts.items()}
    write_together(others | {target: listing})
    return target


def petab_texts(problem: Problem) -> dict[str, str]:
    """Return the files of a PEtab problem by name; the YAML file is ``problem.yaml``."""
    export = Export(problem)
    export.issues.raise_errors()
    tables = {
        "parameter": _table(
            "parameterId lowerBound upperBound nominalValue estimate priorDistribution "
            "priorParameters",
            _parameter_rows(problem, export),
        ),
        "observable": _table(
            "observableId observableFormula noiseFormula noiseDistribution noisePlaceholders "
            "observableName",
            export.observables,
        ),
        "condition": _table("conditionId targetId targetValue", export.conditions),
        "experiment": _table("experimentId time conditionId experimentName", export.experiments),
        "measurement": _table(
            "observableId experimentId time measurement noiseParameters", export.measurements
        ),
    }
    export.issues.raise_errors()
    model = plain_id(problem.name or "model")
    lines = ["format_version: 2.0.0", f"id: {model}", "model_files:", f"  {model}:"]
    lines += ["    language: sbml", f"    location: {FILES['model']}"]
    lines += [f"{kind}_files:\n- {FILES[kind]}" for kind in tables]
    return {
        "problem.yaml": "\n".join(lines) + "\n",
        FILES["model"]: sbml_text(model, export.equations, problem.time_unit),
        **{FILES[kind]: text for kind, text in tables.items()},
    }


def _table(columns: str, rows: Sequence[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
    writer.writerow(columns.split())
    writer.writerows([[_cell(value) for value in row] for row in rows])
    return stream.getvalue()


def _cell(value: object) -> str:
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def _parameter_rows(problem: Problem, export: Export) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for name, unknown in zip(export.unknowns, problem.unknowns, strict=True):
        p = unknown.parameter
        family, numbers = _prior(p.prior, unknown.key, export)
        rows.append([name, p.lower, p.upper, export.nominal[name], "true", family, numbers])
    for name, parameter in problem.parameters.items():
        if parameter.fixed is not None:
            low, high = parameter.lower, parameter.upper
            rows.append([identifier(name), low, high, parameter.fixed, "false", "", ""])
    return rows


def _prior(prior: Prior | None, key: str, export: Export) -> tuple[str, str]:
    if prior is None or (prior.flat and prior.on != "linear"):  # the bounds specify the latter
        return "", ""
    if prior.on != "linear":
        export.issues.error(
            f"the prior of {key}",
            f"{prior}: PEtab 2 has only densities of the value itself; take one of these",
        )
    family = "chisquare" if prior.distribution == "chi-square" else prior.distribution
    numbers: Mapping[str, float] = prior.numbers
    return family, ";".join(repr(float(v)) for v in numbers.values())
