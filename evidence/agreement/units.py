"""The same problems in other units: their answers must be the same.

A dozen models (`guises.py`), or problems of the library, are written in other
units: states and observables times 1e-12 to 1e12, the time times 1e-9 to 1e9, states of 1e-6 beside
others of 1e6. Each is fitted by odefit's default with the engine `auto`, otherwise by single
shooting with one engine, and compared with the same problem in plain units: status, objective,
estimates, standard errors and what is said of each unknown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.agreement.guises import OWN, Guise, other_guise, own_guise
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit import library as problems
from odefit.problem import problem_from_mapping
from odefit.problem.toml.writing import problem_to_mapping
from odefit.simulation.engines.registry import EngineName

SAME_OBJECTIVE = 1e-5  # relative difference of objectives that counts as none
SAME_ESTIMATE = 0.05  # difference of an estimate, in standard errors, that counts as none
SAME_ERROR = 0.02  # relative difference of standard errors that counts as none

# Units that every own model is tried in; random ones follow
FIXED: tuple[Mapping[str, float], ...] = (
    dict.fromkeys("abc", 1e-12),
    dict.fromkeys("abc", 1e12),
    {"t": 1e-9},
    {"t": 1e9},
    {"a": 1e-6, "b": 1e6, "c": 1.0, "dose": 1e-6, "y": 1e-6},
    {"a": 1e13, "b": 1e13, "c": 1e13, "dose": 1e13, "y": 1e13, "t": 1e3},
    {"a": 1e-15, "b": 1e-15, "c": 1e-15, "dose": 1e-15, "y": 1e-15, "t": 1e-3},
)


@dataclass(frozen=True)
class Answer:
    """What is compared of an answer, in the plain units."""

    status: str
    objective: float
    estimates: Mapping[str, float]
    errors: Mapping[str, float]
    trouble: Mapping[str, str]
    exact: bool
    seconds: float


def answer(guise: Guise, engine: EngineName = "auto", seed: int = 1) -> Answer:
    """Fit a problem, and return its answer in the plain units."""
    problem = problem_from_mapping(guise.mapping)
    method: Any = None
    if engine != "auto":
        method = odefit.MultiStart(odefit.SingleShooting(engine=engine), most=30)
    began = time.perf_counter()
    result = odefit.fit(problem, method, seed=seed)
    seconds = time.perf_counter() - began
    found, local = result.uncertainty, result.assessment.local
    assert found is not None, result.message
    assert local is not None, result.message
    factors = {k: guise.factors.get(k.split("[")[0], 1.0) for k in problem.keys}
    vector = result.solutions[0].vector
    units = np.array([factors[k] for k in problem.keys])
    errors = found.standard_errors / units
    trouble = {k: v for k, v in found.trouble.items() if v not in ("not linear",)}
    return Answer(
        result.status.value,
        result.objective / guise.objective,
        dict(zip(problem.keys, (vector / units).tolist(), strict=True)),
        dict(zip(problem.keys, errors.tolist(), strict=True)),
        trouble,
        "to rounding" in local.sentence,
        seconds,
    )


def differences(plain: Answer, other: Answer) -> list[str]:
    found = []
    if plain.status != other.status:
        found.append(f"{other.status} instead of {plain.status}")
    exact = plain.exact and other.exact
    if (
        not exact
        and abs(other.objective - plain.objective) > SAME_OBJECTIVE * abs(plain.objective) + 1e-12
    ):
        found.append(f"objective {other.objective:.7g} instead of {plain.objective:.7g}")
    found += [
        f"{key} {other.trouble.get(key)} instead of {plain.trouble.get(key)}"
        for key in {**plain.trouble, **other.trouble}
        if plain.trouble.get(key) != other.trouble.get(key)
    ]
    if exact:
        return found  # the rest is rounding
    for key, value in plain.estimates.items():
        error = plain.errors[key]
        if key in plain.trouble or not np.isfinite(error):
            continue
        if abs(other.estimates[key] - value) > SAME_ESTIMATE * error + 1e-9 * abs(value):
            found.append(f"{key} = {other.estimates[key]:.6g} instead of {value:.6g}")
        if not abs(other.errors[key] / error - 1) <= SAME_ERROR:
            found.append(f"error of {key} {other.errors[key]:.3g} instead of {error:.3g}")
    return found


def random_units(rng: np.random.Generator, names: list[str]) -> dict[str, float]:
    """Return random units: powers of ten within twelve decades either way."""
    return {n: float(10.0 ** rng.integers(-12, 13)) for n in names}


def own_cases(models: list[str], first: int, count: int) -> Iterator[tuple[str, Guise, Guise]]:
    """Yield the name, the plain problem and its other guises of each model."""
    for name in models:
        plain = own_guise(name, {})
        guises: list[Mapping[str, float]] = list(FIXED)
        for number in range(count):
            rng = np.random.default_rng([first + number, *name.encode()])
            drawn = random_units(rng, ["a", "b", "c", "dose", "y"])
            guises.append({**drawn, "t": float(10.0 ** rng.integers(-9, 10))})
        for units in guises:
            yield f"{name} {_shown(units)}", plain, own_guise(name, units)


def library_cases(names: list[str], first: int, count: int) -> Iterator[tuple[str, Guise, Guise]]:
    """Yield the same of problems of the library, with units for states and parameters."""
    for name in names:
        plain = problem_to_mapping(problems.load(name))
        for number in range(count):
            rng = np.random.default_rng([first + number, *name.encode()])
            units = random_units(rng, [*plain["ode"], *plain.get("parameters", {})])
            if not plain.get("noise"):  # measurements in one unit, of which squares are added
                units |= dict.fromkeys(plain["ode"], float(10.0 ** rng.integers(-12, 13)))
            span = float(10.0 ** rng.integers(-9, 10))
            try:
                guise = other_guise(plain, units, span)
            except ValueError:  # this has what is not rewritten
                break
            yield f"{name} guise {first + number}", Guise(plain, {}), guise


def _shown(units: Mapping[str, float]) -> str:
    return " ".join(f"{k}={v:.0e}" for k, v in units.items() if v != 1.0)


OPTIONS = (
    Option("models", tuple(OWN), "own models, e.g. sir,hill", OWN),
    Option("library", (), "problems of the library instead, or all"),
    Option("guises", 4, "random units of each", least=0),
    Option("first", 0, "number of the first of these"),
    Option("engine", "auto", "name of the engine"),
)


def tasks(
    models: Sequence[str], library: Sequence[str], guises: int, first: int, engine: str
) -> list[Task]:
    options: dict[str, Any] = {"guises": guises, "first": first, "engine": engine}
    if not library:
        return tasks_of("model", models, **options, own=True)
    names = tuple(problems.names()) if library == ("all",) else library
    return tasks_of("model", names, **options, own=False)


def run(task: Task) -> dict[str, Any]:
    """Compare the answers in other units with that in the plain ones."""
    cases = own_cases if task["own"] else library_cases
    rows = []
    known: Answer | None = None
    for name, plain, other in cases([task["model"]], task["first"], task["guises"]):
        known = known or answer(plain, task["engine"])
        found = differences(known, here := answer(other, task["engine"]))
        rows.append([name, "; ".join(found) or "the same", f"{here.seconds:.1f}"])
    return {"rows": rows}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    table = listed(("problem", "answer", "seconds"), records)
    same = int((table["answer"] == "the same").sum())
    table.attrs["notes"] = [f"{same} of {len(table)} answers are the same in other units."]
    return {"answers": table}
