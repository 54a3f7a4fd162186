"""The cases of the SBML community's semantic test suite, read and simulated by odefit.

The suite is not part of this repository: the environment variable SBML_SUITE names its archive or
the folder that it was unpacked to. A folder for each case (``00001``) holds the model, the settings
(times, variables, tolerances) and the expected results.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task
from evidence.running.output import listed
from odefit.common.errors import InputError

VARIABLE = "SBML_SUITE"  # names the suite
BESIDE = Path(__file__).parents[3] / "shared" / "sbml-suite" / "semantic-even.tar.xz"
OPTIONS = (
    Option("folder", "", f"the suite's folder or archive, where {VARIABLE} does not name it"),
    Option("cases", (), "numbers of cases such as 00001; all of them by default", kind=str),
)
VERDICTS = ("right", "refused", "wrong", "failed")


@dataclass(frozen=True)
class Case:
    """A model with its expected values."""

    name: str
    model: str  # SBML
    variables: Sequence[str]
    amounts: frozenset[str]
    concentrations: frozenset[str]
    absolute: float
    relative: float
    times: npt.NDArray[np.float64]
    expected: Mapping[str, npt.NDArray[np.float64]]  # by variable


@cache
def suite(given: str = "") -> Path | None:
    """Return the folder of the cases, unpacked if necessary; None without a suite."""
    place = Path(given or os.environ.get(VARIABLE) or BESIDE)
    if place.is_file():
        folder = Path(tempfile.gettempdir()) / f"sbml-suite-{zlib.crc32(place.read_bytes()):08x}"
        if not folder.is_dir():
            fresh = Path(tempfile.mkdtemp(dir=folder.parent))
            with tarfile.open(place) as archive:
                archive.extractall(fresh, filter="data")
            if folder.is_dir():  # of another process, meanwhile
                shutil.rmtree(fresh)
            else:
                fresh.rename(folder)
        place = folder
    found = next(iter(sorted(place.glob("**/*-settings.txt"))), None) if place.is_dir() else None
    return None if found is None else found.parents[1]


def case(name: str, folder: Path) -> Case:
    """Return a case by its number."""
    place = folder / name
    text = (place / f"{name}-settings.txt").read_text(encoding="utf-8")
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    given = {key.strip(): value.strip() for key, _, value in pairs}

    def names(key: str) -> list[str]:
        return [n.strip() for n in given.get(key, "").split(",") if n.strip()]

    with (place / f"{name}-results.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    columns = np.array([[float(cell) for cell in row] for row in rows if row]).T
    titles = [title.strip().strip('"') for title in head]
    [model] = place.glob("*-sbml-*.xml")
    return Case(
        name,
        model.read_text(encoding="utf-8"),
        names("variables"),
        frozenset(names("amount")),
        frozenset(names("concentration")),
        float(given["absolute"]),
        float(given["relative"]),
        columns[0],
        dict(zip(titles[1:], columns[1:], strict=True)),
    )


def observed(one: Case, model: odefit.problem.sbml.SbmlModel) -> dict[str, str]:
    """Return an expression for each variable of a case, in the names of the model."""
    import libsbml

    document = libsbml.readSBMLFromString(one.model)
    species = {s.getId(): s for s in document.getModel().getListOfSpecies()}
    found = {}
    for variable in one.variables:
        name = model.names.get(variable, variable)
        found[variable] = name
        if variable not in species:
            continue
        element = species[variable]
        compartment = model.names.get(element.getCompartment(), element.getCompartment())
        flat = document.getModel().getCompartment(element.getCompartment())
        held = element.getHasOnlySubstanceUnits() or flat.getSpatialDimensions() == 0
        if held and variable in one.concentrations:
            found[variable] = f"{name}/{compartment}"
        elif not held and variable in one.amounts:
            found[variable] = f"{name}*{compartment}"
    return found


def simulated(one: Case) -> Mapping[str, npt.NDArray[np.float64]]:
    """Return the values of the variables at the expected times."""
    model = odefit.read_sbml(one.model)
    sections = model.mapping()
    changed = {name for event in model.events for name in event.assign}
    written = {n: t for n, t in model.computed.items() if n not in changed}
    sections["observables"] = {
        f"seen_{k}": odefit.problem.sbml.substituted(
            odefit.problem.sbml.substituted(text, model.assigned), written
        )
        for k, text in enumerate(observed(one, model).values())
    }
    times = one.times
    [experiment] = sections["experiment"]
    experiment["data"] = {"t": times} | dict.fromkeys(sections["observables"], [1.0] * len(times))
    problem = odefit.problem.problem_from_mapping(sections)
    unknown = list(problem.keys)
    if unknown:
        raise InputError(f"unknown: {', '.join(unknown)}")
    found = odefit.simulate(problem, np.zeros(0), times).observables
    return dict(zip(one.variables, found.values(), strict=True))


def run(task: Task) -> dict[str, Any]:
    """Return the outcome of a case: right, refused, wrong or failed, with the reason."""
    one = case(task["case"], Path(task["folder"]))
    try:
        found = simulated(one)
    except (InputError, odefit.SimulationError) as error:
        verdict = "refused" if isinstance(error, InputError) else "failed"
        return {"verdict": verdict, "reason": " ".join(str(error).split())}
    worst, reason = 1.0, ""
    for variable in one.variables:
        right = one.expected[variable]
        same = (np.isnan(right) & np.isnan(found[variable])) | (right == found[variable])
        with np.errstate(invalid="ignore"):
            far = np.abs(found[variable] - right) / (one.absolute + one.relative * np.abs(right))
        far = np.where(same, 0.0, np.where(np.isfinite(far), far, np.inf))
        k = int(np.argmax(far))
        if far[k] > worst:
            at = ", there alone" if (far > 1.0).sum() == 1 else ""
            worst = float(far[k])
            reason = (
                f"{variable} at t = {one.times[k]:g}{at}: {found[variable][k]:.6g} instead of "
                f"{right[k]:.6g}"
            )
    return {"verdict": "wrong" if reason else "right", "reason": reason}


def tasks(folder: str, cases: Sequence[str]) -> list[Task]:
    """Return the chosen cases; an empty list without a suite."""
    place = suite(folder)
    if place is None:
        return []
    there = sorted(one.name for one in place.iterdir() if one.is_dir())
    return [{"key": n, "case": n, "folder": str(place)} for n in cases or there]


def tables(records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """Return the number of cases by outcome, and by name those that are not right."""
    results = {
        r.task["case"]: r.result or {"verdict": "failed", "reason": r.reason} for r in records
    }
    counts = Counter(result["verdict"] for result in results.values())
    rows = [(verdict, str(counts[verdict])) for verdict in VERDICTS]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, result in results.items():
        if result["verdict"] != "right":
            reason = re.sub(r"^SBML text[^:]*: | \(line \d+\)", "", result["reason"])
            by_reason.setdefault((result["verdict"], reason), []).append(name)
    others = [(", ".join(names), *why) for why, names in sorted(by_reason.items())]
    return {
        "verdicts": listed(("verdict", "cases"), rows),
        "others": listed(("cases", "verdict", "reason"), others),
    }
