"""The same problems in other units: their answers must be the same.

    python -m evidence.agreement.units [--models NAME ...] [--library] [--guises 4] [--engine auto]
                               [--first 0] [--out FILE]

A dozen models (`guises.py`), and with `--library` the problems of the library, are written in other
units: states and observables times 1e-12 to 1e12, the time times 1e-9 to 1e9, states of 1e-6 beside
others of 1e6. Each is fitted by odefit's default with `--engine auto`, by single shooting with one
engine otherwise, and compared with the same problem in plain units: status, objective, estimates,
standard errors and what is said of each unknown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.agreement.guises import OWN, Guise, other_guise, own_guise
from evidence.running.processes import machine, markdown
from odefit import library
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
    """Return how an answer differs from that in the plain units, in words."""
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
        plain = problem_to_mapping(library.load(name))
        for number in range(count):
            rng = np.random.default_rng([first + number, *name.encode()])
            units = random_units(rng, [*plain["ode"], *plain.get("parameters", {})])
            if not plain.get("noise"):  # measurements in one unit, of which squares are added
                units |= dict.fromkeys(plain["ode"], float(10.0 ** rng.integers(-12, 13)))
            span = float(10.0 ** rng.integers(-9, 10))
            try:
                guise = other_guise(plain, units, span)
            except ValueError as error:
                print(f"{name}: left out, {error}", file=sys.stderr)
                break
            yield f"{name} guise {first + number}", Guise(plain, {}), guise


def _shown(units: Mapping[str, float]) -> str:
    return " ".join(f"{k}={v:.0e}" for k, v in units.items() if v != 1.0)


def main() -> int:
    """Compare the problems that are asked for; return 1 if any answer differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(OWN), choices=list(OWN))
    parser.add_argument("--library", nargs="*", default=None, metavar="NAME")
    parser.add_argument("--guises", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = list(own_cases(options.models, options.first, options.guises))
    if options.library is not None:
        names = options.library or list(library.names())
        cases = list(library_cases(names, options.first, options.guises))
    rows, wrong = [], 0
    known: dict[str, Answer] = {}
    for name, plain, other in cases:
        model = name.split()[0]
        if model not in known:
            known[model] = answer(plain, options.engine)
        found = differences(known[model], here := answer(other, options.engine))
        wrong += bool(found)
        print(f"{name}: {'; '.join(found) or 'the same'} ({here.seconds:.1f} s)", flush=True)
        rows.append([name, "; ".join(found) or "the same", f"{here.seconds:.1f}"])
    said = f"{len(rows) - wrong} of {len(rows)} answers are the same in other units."
    print(said)
    if options.out:
        table = markdown(["problem", "answer", "seconds"], rows)
        options.out.write_text(f"{machine()}\n\n{said}\n\n{table}\n", encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
