"""Published PEtab problems: import, likelihood, cost and gradient, beside AMICI's in the same run.

`folder` has one folder a problem, as the benchmark collection has (Benchmarking-Initiative/
Benchmark-Models-PEtab). Everything is at the nominal values, on one core.

import
    Seconds of ``odefit.load``: tables, SBML, and a problem with every name resolved.
log-likelihood
    At the nominal values. Beside it that of the published simulation (the table simulatedData) at
    its own noise, where its rows match the measurements. Also the largest difference of the
    simulations relative to the size of the observable.
derivatives
    With `derivatives`, the sensitivities of all simulated measurements against central differences
    of fourth order: by unknown the norm of the difference relative to the norm of the sensitivities
    (of logarithms by logarithms), for the best step; the largest over all unknowns.
cost, gradient
    Milliseconds of ``evaluate_cost`` and ``evaluate``, medians; the first evaluation, which
    compiles, is shown separately. With `amici`, another Python that has AMICI: wall milliseconds of
    its PEtab interface (``simulate_petab``) without and with forward sensitivities, and of its
    adjoint ones, with the integrator's own milliseconds in brackets, and the seconds of its
    compilation.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.peers.amici import TIMES, by_amici, problem_folders
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit import Failure, ForwardMap, InputError
from odefit.common.arrays import Array
from odefit.formats.petab import PetabImport, read_petab

BUDGET = 3.0  # seconds that the repetitions of one measurement take

# Steps of central differences, in units of each unknown
STEPS = (1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
ENOUGH = 1e-6  # error at which no further step is tried

# Tolerances of the implicit engines there, the first with which the sensitivities are found
TIGHT = (1e-12, 1e-11, 1e-10, None)

# Smallest norm of sensitivities for relative errors: differences by a weak unknown have no digits
WEAK = 1e-3
STENCIL = (-2, -1, 1, 2)
WEIGHTS = (1 / 12, -2 / 3, 2 / 3, -1 / 12)  # central differences of fourth order
LIMIT = 3600.0  # seconds that AMICI gets for a problem


def nominal(found: PetabImport) -> Array:
    return np.array([found.nominal[key] for key in found.problem.keys])


def median_ms(call: Any) -> float:
    """Return the median milliseconds of a call, repeated within the budget."""
    taken: list[float] = []
    began = time.perf_counter()
    while len(taken) < 3 or (time.perf_counter() - began < BUDGET and len(taken) < 200):
        start = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - start))
        if sum(taken) > 20e3 * BUDGET:
            break
    return statistics.median(taken)


def derivative_error(forward: ForwardMap, vector: Array) -> float:
    """Return the largest error of the sensitivities of the simulations, see the module."""
    at = simulations(forward, vector, derivatives=True)
    if at is None:
        return math.nan
    units = np.where(vector == 0.0, 1.0, np.abs(vector))
    sizes = np.maximum(np.abs(at[0]), 1e-6 * np.abs(at[0]).max())
    worst = 0.0
    for k, unit in enumerate(units):
        exact = at[1][:, k] * unit / sizes
        best = math.inf
        for step in STEPS:
            values = []
            for i in STENCIL:
                moved = vector.copy()
                moved[k] += i * step * unit
                found = simulations(forward, moved, derivatives=False)
                values.append(np.full(len(exact), math.nan) if found is None else found[0])
            slope = sum(w * v for w, v in zip(WEIGHTS, values, strict=True)) / (step * sizes)
            error = float(np.linalg.norm(slope - exact)) / max(float(np.linalg.norm(exact)), WEAK)
            best = min(best, error if math.isfinite(error) else math.inf)
            if best < ENOUGH:
                break
        worst = max(worst, best)
    return worst


def simulations(
    forward: ForwardMap, vector: Array, *, derivatives: bool
) -> tuple[Array, Array] | None:
    """Return the simulation of each measurement and its derivatives, shapes (n,) and (n, m)."""
    found = forward.trajectories(vector, sensitivities=derivatives)
    if isinstance(found, Failure):
        return None
    values, rows = [], []
    for condition, trajectory in zip(forward.problem.conditions, found, strict=True):
        predicted = forward.predictions(condition, vector, trajectory)
        count = len(condition.times)
        for name, series in condition.series.items():
            values.append(predicted[name].array(count)[series.rows])
            own = np.zeros((len(series.rows), len(vector)))
            for k, partial in predicted[name].partials.items() if derivatives else ():
                own[:, k] = np.broadcast_to(partial, (count,))[series.rows]
            rows.append(own)
    return np.concatenate(values), np.concatenate(rows)


def measure(folder: Path, *, derivatives: bool) -> dict[str, Any]:
    """Return the figures of odefit for one problem."""
    began = time.perf_counter()
    try:
        found = read_petab(folder / f"{folder.name}.yaml")
    except InputError as error:
        return {"model": folder.name, "error": error.messages[0]}
    row: dict[str, Any] = {"model": folder.name, "import": time.perf_counter() - began}
    problem = found.problem
    row["size"] = f"{len(problem.model.ode)}, {len(problem.unknowns)}, {len(problem.conditions)}"
    forward, vector = ForwardMap(problem), nominal(found)
    began = time.perf_counter()
    first = forward.evaluate(vector)
    row["first"] = time.perf_counter() - began
    if isinstance(first, Failure):
        return {**row, "error": str(first)}
    row["log_likelihood"] = first.log_likelihood
    row["cost"] = median_ms(lambda: forward.evaluate_cost(vector, first.choice))
    row["gradient"] = median_ms(lambda: forward.evaluate(vector, first.choice))
    if derivatives:
        for tolerance in TIGHT:  # differences need digits
            row["derivative_error"] = derivative_error(
                ForwardMap(problem, tolerance=tolerance), vector
            )
            if math.isfinite(row["derivative_error"]):
                break
    return row


def shown(value: float | None, digits: int = 3) -> str:
    """Return a number with a few digits, or a dash."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def pair(found: list[float] | None) -> str:
    """Return wall milliseconds, and the integrator's own in brackets."""
    return "–" if found is None else f"{found[0]:.3g} ({found[1]:.2g})"


HEAD = (
    *("problem", "states, unknowns, conditions", "import, s", "log-likelihood", "AMICI's"),
    *("derivatives", "first, s", "cost, ms", "gradient, ms"),
    *("AMICI: compile, s", "AMICI: cost, ms", "AMICI: gradient, ms", "AMICI: adjoint, ms"),
)
OPTIONS = (
    Option("folder", "", "folder with a folder for each problem, as the collection has"),
    Option("models", (), "names of problems, e.g. Boehm_JProteomeRes2014"),
    Option("amici", "", "a Python that has AMICI"),
    Option("compiled", "amici_models", "folder of AMICI's compiled models"),
    Option("derivatives", False, "whether sensitivities are checked, yes or no"),
)


def tasks(folder: str, models: tuple[str, ...], **options: Any) -> list[Task]:
    names = problem_folders(folder, models) if folder else []
    return tasks_of("model", names, folder=folder, **options)


def run(task: Task) -> dict[str, Any]:
    folder = Path(task["folder"]) / task["model"]
    found: dict[str, Any] = {"own": measure(folder, derivatives=task["derivatives"]), "amici": {}}
    if task["amici"]:
        given = [str(BUDGET)]
        found["amici"] = by_amici(TIMES, task["amici"], folder, task["compiled"], given, LIMIT)
    return found


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows, notes = [], []
    for record in records:
        if record.result is None:
            continue
        name, own, other = record.task["model"], record.result["own"], record.result["amici"]
        notes += [f"{name}: {one['error']}" for one in (own, other) if "error" in one]
        if "error" in own:
            rows.append([name, own.get("size", ""), "fails"])
            continue
        rows.append(
            [
                name,
                own["size"],
                f"{own['import']:.2f}",
                *(_likelihood(one.get("log_likelihood")) for one in (own, other)),
                shown(own.get("derivative_error"), 2),
                *(shown(own[key]) for key in ("first", "cost", "gradient")),
                shown(other.get("compile")),
                *(pair(other.get(key)) for key in ("cost", "gradient", "adjoint")),
            ]
        )
    return {"likelihoods": listed(HEAD, rows, *notes)}


def _likelihood(value: float | None) -> str:
    return "–" if value is None else f"{value:.5f}"
