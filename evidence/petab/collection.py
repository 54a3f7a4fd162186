"""Published PEtab problems: import, likelihood, cost and gradient, beside AMICI's in the same run.

    python -m evidence.petab.collection FOLDER [--models Boehm_JProteomeRes2014 ...]
        [--amici PYTHON] [--compiled FOLDER] [--out FILE.md]

FOLDER has one folder a problem, as the benchmark collection has (Benchmarking-Initiative/
Benchmark-Models-PEtab). Everything is at the nominal values, on one core.

import
    Seconds of ``odefit.load``: tables, SBML, the problem with every name resolved.
log-likelihood
    At the nominal values; beside it that of the published simulation (the table simulatedData) at
    its own noise, where its rows are those of the measurements, and the largest difference of the
    simulations relative to the size of the observable.
derivatives
    With --derivatives, the sensitivities of all simulated measurements against central differences
    of fourth order: by unknown the norm of the difference relative to the norm of the sensitivities
    (of logarithms by logarithms), for the step that suits best; the largest over all unknowns.
cost, gradient
    Milliseconds of ``evaluate_cost`` and ``evaluate``, medians; the first evaluation, which
    compiles, apart. With --amici, another Python that has AMICI: wall milliseconds of its PEtab
    interface (``simulate_petab``) without and with forward sensitivities, and of its adjoint ones,
    with the integrator's own milliseconds in brackets, and the seconds in which it has compiled.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from evidence.running.processes import machine, markdown, publish, run_process
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.formats.petab import PetabImport, read_petab
from odefit.simulation import Failure, ForwardMap

BUDGET = 3.0  # seconds that the repetitions of one measurement take

# Steps of central differences, in units of each unknown
STEPS = (1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
ENOUGH = 1e-6  # error at which no further step is tried

# Tolerances of the implicit engines there, the first with which the sensitivities are found
TIGHT = (1e-12, 1e-11, 1e-10, None)

# Norm of sensitivities below which the error counts relative to this: differences of what hardly
# acts have no digits
WEAK = 1e-3
STENCIL = (-2, -1, 1, 2)
WEIGHTS = (1 / 12, -2 / 3, 2 / 3, -1 / 12)  # central differences of fourth order
LIMIT = 3600.0  # seconds that AMICI gets for a problem


def nominal(found: PetabImport) -> Array:
    """Return the vector of nominal values."""
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
    """Return the largest error of the sensitivities of the simulations, see above."""
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


# What runs in the Python that has AMICI
AMICI = """
import json, statistics, sys, time, logging
import amici, petab.v1 as petab
from amici.petab.petab_import import import_petab_problem
from amici.petab.simulations import simulate_petab
yaml, out, name, budget = sys.argv[1:4] + [float(sys.argv[4])]
problem = petab.Problem.from_yaml(yaml)
if petab.measurement_table_has_timepoint_specific_mappings(
    problem.measurement_df, allow_scalar_numeric_noise_parameters=True
):
    petab.flatten_timepoint_specific_output_overrides(problem)
began = time.perf_counter()
model = import_petab_problem(problem, model_output_dir=out, model_name=name, verbose=False)
found = {"compile": time.perf_counter() - began}
solver = model.getSolver()
solver.setAbsoluteTolerance(1e-8); solver.setRelativeTolerance(1e-8)
solver.setMaxSteps(100000)
def ms(order, method):
    solver.setSensitivityOrder(order); solver.setSensitivityMethod(method)
    taken, cpu = [], []
    began = time.perf_counter()
    while len(taken) < 2 or time.perf_counter() - began < budget:
        start = time.perf_counter()
        result = simulate_petab(problem, model, solver=solver)
        taken.append(1e3 * (time.perf_counter() - start))
        cpu.append(sum(r.cpu_time_total for r in result["rdatas"]))
    llh = result["llh"]
    return statistics.median(taken), statistics.median(cpu), llh
for key, order, method in (("cost", 0, amici.SensitivityMethod.none),
                           ("gradient", 1, amici.SensitivityMethod.forward),
                           ("adjoint", 1, amici.SensitivityMethod.adjoint)):
    try:
        wall, cpu, llh = ms(order, method)
        found[key] = [wall, cpu]
        if key == "cost":
            found["log_likelihood"] = llh
        elif llh != llh:
            found[key] = None
    except Exception as error:
        found[key] = None
print(json.dumps(found))
"""


def amici(python: str, folder: Path, compiled: Path) -> dict[str, Any]:
    """Return the figures of AMICI for one problem, empty if it fails."""
    arguments = [str(folder / f"{folder.name}.yaml"), str(compiled / folder.name), folder.name]
    ended = run_process([python, "-c", AMICI, *arguments, str(BUDGET)], LIMIT)
    lines = [line for line in ended.output.splitlines() if line.startswith("{")]
    if ended.status != 0 or not lines:
        print(f"{folder.name}: AMICI: {ended.errors.strip()[-300:]}", file=sys.stderr)
        return {}
    return dict(json.loads(lines[-1]))


def shown(value: float | None, digits: int = 3) -> str:
    """Return a number with a few digits, or a dash."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def pair(found: list[float] | None) -> str:
    """Return wall milliseconds, and the integrator's own in brackets."""
    return "–" if found is None else f"{found[0]:.3g} ({found[1]:.2g})"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--amici", metavar="PYTHON")
    parser.add_argument("--compiled", type=Path, default=Path("amici_models"))
    parser.add_argument("--derivatives", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.models or sorted(p.name for p in options.folder.iterdir() if p.is_dir())
    rows = []
    for name in names:
        own = measure(options.folder / name, derivatives=options.derivatives)
        other = (
            amici(options.amici, options.folder / name, options.compiled) if options.amici else {}
        )
        print(json.dumps({**own, "amici": other}), file=sys.stderr, flush=True)
        if "error" in own:
            print(f"{name}: {own['error']}", file=sys.stderr)
            rows.append([name, own.get("size", ""), "fails"])
            continue
        likelihood = other.get("log_likelihood")
        rows.append(
            [
                name,
                own["size"],
                f"{own['import']:.2f}",
                f"{own['log_likelihood']:.5f}" if own["log_likelihood"] is not None else "–",
                "–" if likelihood is None else f"{likelihood:.5f}",
                shown(own.get("derivative_error"), 2),
                shown(own["first"]),
                shown(own["cost"]),
                shown(own["gradient"]),
                shown(other.get("compile")),
                pair(other.get("cost")),
                pair(other.get("gradient")),
                pair(other.get("adjoint")),
            ]
        )
    header = [
        "problem", "states, unknowns, conditions", "import, s", "log-likelihood", "AMICI's",
        "derivatives", "first, s", "cost, ms", "gradient, ms", "AMICI: compile, s", "cost, ms",
        "gradient, ms", "adjoint, ms",
    ]  # fmt: skip
    rows = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    publish(f"{markdown(header, rows)}\n\n{machine()}", options.out)


if __name__ == "__main__":
    main()
